"""The text of an item to its tree: braces and statement ends cut it into pieces, `pieces` turns those into nodes.

Anything gives a tree. What a mistake costs is its own piece: the statement before and after it, and the block
it stands in, are as if it were not there. `mistakes` has the words for what went wrong.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from operator import itemgetter
from typing import Any

from phobos.syntax import mistakes
from phobos.syntax.build import ConditionHeader, ForHeader, FunctionHeader, KernelHeader
from phobos.syntax.pieces import DEPTH, Shape, make, shape_of
from phobos.syntax.tokens import END, KEYWORDS, NAME, Token, Tokens, tokenize
from phobos.syntax.tree import (
    Attribute,
    Block,
    Broken,
    Expr,
    ExprStmt,
    For,
    Function,
    If,
    Item,
    Kernel,
    Missing,
    Name,
    Stmt,
    SyntaxProblem,
    While,
)

_SIMPLE_END = re.compile(r"[^;{}LVIERWBCT]*")
_HEADER_END = re.compile(r"[^{}LVIERWBCT]*")
_HEADERS = {"R": "for_header", "W": "while_header", "I": "if_header"}
_CONTINUES = frozenset("*=<>oqh+&|^AOas:,)].rN[")  # no statement begins with these
_INFIX = frozenset("*<>oqh+&|^AO=a")
_JOINED_LINES = 32  # as many lines are tried together for one statement
_REST_PARTS = 8


def parse_item(text: str) -> Item:
    """An item, or a stretch of text between items."""
    return _ItemParser(tokenize(text)).item()


class _Frame:
    """A block that is open: what it hangs on, and its statements so far."""

    __slots__ = ("arms", "header", "indent", "keyword", "opening", "statements")

    def __init__(self, keyword: str, header: Any, opening: int, indent: int) -> None:
        self.keyword = keyword  # kind of `for`, `while`, `if`, `else`; `{` for a bare block, `K` for the body
        self.header = header
        self.opening = opening  # token index of `{`, or -1 when it is missing
        self.indent = indent
        self.statements: list[Stmt] = []
        self.arms: list[tuple[ConditionHeader, Block, int | None]] = []  # of an `if` with its `else if`s


class _ItemParser:
    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.text = tokens.text
        self.kinds = tokens.kinds
        self.list = tokens.list
        self.problems: list[SyntaxProblem] = []
        self.at = 0
        self.is_too_deep = False
        self.nested = 0  # blocks open, `else if` counted

    # --- items --------------------------------------------------------------------------------------------------

    def item(self) -> Item:
        node: Kernel | Function | None = None
        self.at = len(self.kinds) - len(self.kinds.lstrip(END))  # statement ends between items mean nothing
        if self.at < len(self.kinds):
            if self.kinds[self.at] in "KF@" or self._misspelt_header(self.at):
                node = self._kernel_or_function()
            else:
                self.problems.append(mistakes.not_an_item(self.tokens, self.at))
        problems = tuple(sorted(self.problems, key=lambda p: (p.start, p.end)))
        return Item(self.text, node, problems, self.tokens.comments)

    def _kernel_or_function(self) -> Kernel | Function | None:
        attributes = self._attributes()
        if self.at >= len(self.kinds):
            if not self.problems:
                self.problems.append(mistakes.attributes_alone(self.tokens))
            return None
        header = self._item_header()
        if header is None:
            return None
        body = self._body()
        start = attributes[0].start if attributes else header.start
        if isinstance(header, FunctionHeader):
            if attributes:
                self.problems.append(mistakes.attribute_on_function(attributes[0]))
            return Function(header.start, body.end, header.name, header.params, header.result, body)
        return Kernel(start, body.end, tuple(attributes), header.name, header.params, body)

    def _attributes(self) -> list[Attribute]:
        attributes: list[Attribute] = []
        while self.at < len(self.kinds) and self.kinds[self.at] in "@;":
            if self.kinds[self.at] == END:
                self.at += 1
                continue
            end = self._attribute_end(self.at)
            node = self._piece("attribute", self.at, end)
            if node is not None:
                attributes.append(node)
            self.at = end
        return attributes

    def _attribute_end(self, at: int) -> int:
        """Attributes stand on lines of their own or one after another; brackets may hold line ends by mistake."""
        kinds = self.kinds
        depth = 0
        index = at + 1
        while index < len(kinds):
            kind = kinds[index]
            if kind in "@KF{}" or (kind == END and not depth):
                break
            if kind in "([":
                depth += 1
            elif kind in ")]" and depth:
                depth -= 1
            elif kind == END and not self._closes_later(index, depth):
                break
            index += 1
        return index

    def _closes_later(self, index: int, depth: int) -> bool:
        for kind in self.kinds[index : index + 64]:
            if kind in "@KF{}":
                return False
            depth += (kind in "([") - (kind in ")]")
            if depth == 0:
                return True
        return False

    def _misspelt_header(self, at: int) -> bool:
        return self.kinds.startswith("nn(", at)

    def _item_header(self) -> KernelHeader | FunctionHeader | None:
        kinds = self.kinds
        start = self.at
        if kinds[start] not in "KF" and not self._misspelt_header(start):
            if not self.problems:
                self.problems.append(mistakes.expected_kernel(self.tokens, start))
            return None
        end = self._header_end(start)
        if kinds[start] == NAME:
            word = self.list[start][2]
            meant = "fn" if word.startswith("f") or word == "def" else "kernel"
            self.problems.append(mistakes.misspelt_keyword(self.list[start], meant))
            self.kinds = kinds = kinds[:start] + KEYWORDS[meant] + kinds[start + 1 :]
        rule = "kernel_header" if kinds[start] == "K" else "function_header"
        said = len(self.problems)
        header: KernelHeader | FunctionHeader = self._piece(rule, start, end)
        self.at = end
        if end < len(kinds) and kinds[end] == "{":
            return header
        if len(self.problems) == said:
            self.problems.append(mistakes.expected_block(self.tokens, start, end))
        return header

    def _header_end(self, start: int) -> int:
        match = _HEADER_END.match(self.kinds, start + 1)
        assert match is not None
        end = match.end()
        while end > start + 1 and self.kinds[end - 1] == END and (end == len(self.kinds) or self.kinds[end] != "{"):
            end -= 1
        return end

    # --- blocks -------------------------------------------------------------------------------------------------

    def _body(self) -> Block:
        """The block of the item, from `{` on or where it should be."""
        kinds = self.kinds
        count = len(kinds)
        missing = kinds.count("{") - kinds.count("}")
        opening = self.at if self.at < count and kinds[self.at] == "{" else -1
        start = self.list[opening][0] if opening >= 0 else self.list[self.at - 1][1]
        frames = [_Frame("K", None, opening, 0)]
        if opening >= 0:
            self.at += 1
        else:
            missing += 1
        unclosed: SyntaxProblem | None = None
        while self.at < count:
            kind = kinds[self.at]
            if kind == END:
                self.at += 1
            elif kind == "}":
                if missing > 0 and len(frames) > 1 and (outer := self._closes_outer(frames)) is not None:
                    while len(frames) > outer + 1:
                        if unclosed is None and frames[-1].opening >= 0:
                            unclosed = mistakes.unclosed_block(self.tokens, frames[-1].opening, self.at)
                        missing -= 1
                        self._close(frames, self.list[self.at][0])
                self.at += 1
                end = self.list[self.at - 1][1]
                if len(frames) == 1:
                    return self._end_body(frames, start, end, unclosed)
                if not self._else(frames, end):
                    self._close(frames, end)
            elif kind in _HEADERS:
                self._open_header(frames)
            elif kind == "{":
                if frames[-1].keyword != "{":
                    self.problems.append(mistakes.bare_block(self.tokens, self.at))
                self._open(frames, "{", None)
            elif kind == "E":
                self._stray_else(frames)
            else:
                self._simple(frames[-1].statements)
                if self.at < count and kinds[self.at] == "{":
                    self._stray_block(frames)
        end = len(self.text)
        suspect = next((f for f in reversed(frames) if f.opening >= 0), None)
        if unclosed is None and suspect is not None:
            unclosed = mistakes.unclosed_block(self.tokens, suspect.opening, count)
        while len(frames) > 1:
            self._close(frames, end)
        return self._end_body(frames, start, end, unclosed)

    def _end_body(self, frames: list[_Frame], start: int, end: int, unclosed: SyntaxProblem | None) -> Block:
        if unclosed is not None:
            self.problems.append(unclosed)
        return Block(start, end, tuple(frames[0].statements))

    def _closes_outer(self, frames: list[_Frame]) -> int | None:
        """The frame that the `}` here seems to close, if its indentation says it is not the innermost one."""
        if not self.tokens.first_of_line(self.at):
            return None
        indent = self._indent(self.at)
        if indent >= frames[-1].indent:
            return None
        return next((i for i in range(len(frames) - 2, -1, -1) if frames[i].indent == indent), None)

    def _indent(self, index: int) -> int:
        """The column of the first character of a token's line."""
        at = self.list[index][0]
        line = max(self.text.rfind("\n", 0, at), self.text.rfind("\r", 0, at)) + 1
        content = self.text[line : at + 1]
        return len(content) - len(content.lstrip())

    def _open(self, frames: list[_Frame], keyword: str, header: Any) -> None:
        opening = self.at
        if self.nested >= DEPTH:
            self._too_deep(self.list[opening])
            self._skip_block()
            return
        self.nested += 1
        frames.append(_Frame(keyword, header, opening, self._indent(opening)))
        self.at += 1

    def _too_deep(self, token: Token) -> None:
        """Say so once: what goes too deep once goes too deep all the way in."""
        if not self.is_too_deep:
            self.problems.append(mistakes.too_deep(token, DEPTH))
        self.is_too_deep = True

    def _skip_block(self) -> None:
        """Past the block here, and past the `else` that may follow it."""
        depth = 0
        for index in range(self.at, len(self.kinds)):
            depth += (self.kinds[index] == "{") - (self.kinds[index] == "}")
            if depth == 0 and not self.kinds.startswith(("}E{", "}EI"), index):
                self.at = index + 1
                return
        self.at = len(self.kinds)

    def _close(self, frames: list[_Frame], end: int) -> None:
        """The innermost block ends: it becomes a statement of the one around it."""
        frame = frames.pop()
        self.nested -= 1
        statement = self._statement_of(frame, end)
        frames[-1].statements.append(statement)

    def _block_of(self, frame: _Frame, end: int) -> Block:
        return Block(self.list[frame.opening][0], end, tuple(frame.statements))

    def _statement_of(self, frame: _Frame, end: int) -> Stmt:
        block = self._block_of(frame, end)
        header = frame.header
        if frame.keyword == "R":
            assert isinstance(header, ForHeader)
            return For(header.start, end, header.variable, header.lo, header.hi, header.step, header.unroll, block)
        if frame.keyword == "W":
            return While(header.start, end, header.condition, block)
        if frame.keyword == "{":
            return block
        arms = frame.arms
        otherwise: Block | If | None = None
        if frame.keyword == "E":
            otherwise = block
        else:
            arms = [*arms, (header, block, None)]
        self.nested -= len(frame.arms) - (frame.keyword == "E")
        for condition, then, else_start in reversed(arms):
            otherwise = If(condition.start, end, condition.condition, then, otherwise, else_start)
        assert isinstance(otherwise, If)
        return otherwise

    def _else(self, frames: list[_Frame], end: int) -> bool:
        """After the `}` of an `if`: go on with its `else`, and say whether there is one."""
        frame = frames[-1]
        if frame.keyword != "I":
            return False
        kinds = self.kinds
        at = self.at
        if kinds.startswith(";E", at) and self._is_newline(at):
            self.problems.append(mistakes.newline_ends(self.tokens, [at]))
            at += 1
        if not kinds.startswith("E", at):
            return False
        else_start = self.list[at][0]
        following = at + 1
        frame.arms.append((frame.header, self._block_of(frame, end), else_start))
        frame.statements = []
        if kinds.startswith("I", following):
            self.at = following
            header, opened = self._header("I")
            if opened and self.nested < DEPTH:
                self.nested += 1
                frame.header = header
                frame.opening = self.at
                self.at += 1
                return True
            if opened:
                self._too_deep(self.list[self.at])
                self._skip_block()
            else:
                end = max(header.end, self.list[self.at - 1][1])
                self.nested += 1
                frame.arms.append((header, Block(end, end, ()), None))
            return self._end_if(frames, frame, end)
        if kinds.startswith(";{", following):
            following += 1
        if kinds.startswith("{", following):
            frame.keyword = "E"
            frame.opening = following
            self.at = following + 1
            return True
        self.problems.append(mistakes.expected_block(self.tokens, at, following))
        self.at = following
        return self._end_if(frames, frame, end)

    def _end_if(self, frames: list[_Frame], frame: _Frame, end: int) -> bool:
        """The `if` ends without the block its last `else` should have."""
        frames.pop()
        self.nested -= len(frame.arms)
        statement: If | None = None
        for condition, then, after in reversed(frame.arms):
            statement = If(condition.start, end, condition.condition, then, statement, after if statement else None)
        assert statement is not None
        frames[-1].statements.append(statement)
        return True

    def _open_header(self, frames: list[_Frame]) -> None:
        """`for`, `while` or `if` here, up to its `{`."""
        keyword = self.kinds[self.at]
        header, opened = self._header(keyword)
        if opened:
            self._open(frames, keyword, header)
            return
        end = max(header.end, self.list[self.at - 1][1])
        block = Block(end, end, ())
        frame_statements = frames[-1].statements
        if keyword == "R":
            frame_statements.append(
                For(header.start, end, header.variable, header.lo, header.hi, header.step, header.unroll, block)
            )
        elif keyword == "W":
            frame_statements.append(While(header.start, end, header.condition, block))
        else:
            frame_statements.append(If(header.start, end, header.condition, block, None, None))

    def _header(self, keyword: str) -> tuple[Any, bool]:
        """The header at the current token; afterwards the current token is its `{`, if it has one (second result)."""
        start = self.at
        kinds = self.kinds
        said = len(self.problems)
        end = self._simple_end(start)
        joined = self._joined(_HEADERS[keyword], start, end)
        if joined is not None:
            end, header = joined
        else:
            failure = shape_of(_HEADERS[keyword], kinds[start:end]).failure
            if failure is not None:
                end = self._line_that_stands_alone(start, end, start + failure.at) or end
            header = self._piece(_HEADERS[keyword], start, end)
        self.at = end
        if kinds.startswith("{", end):
            return header, True
        if kinds.startswith(";{", end) and self._is_newline(end):
            if len(self.problems) == said:
                self.problems.append(mistakes.newline_ends(self.tokens, [end]))
            self.at = end + 1
            return header, True
        if len(self.problems) == said:
            self.problems.append(mistakes.expected_block(self.tokens, start, end))
        return header, False

    def _stray_else(self, frames: list[_Frame]) -> None:
        self.problems.append(mistakes.else_alone(self.tokens, self.at))
        self.at += 1
        if self.kinds.startswith("{", self.at):
            self._stray_block(frames)

    def _stray_block(self, frames: list[_Frame]) -> None:
        """A `{` behind something that takes no block, which has been told of: read as the block of an `if`."""
        at = self.list[self.at][0]
        self._open(frames, "I", ConditionHeader(at, at, Missing(at, at)))

    # --- statements ---------------------------------------------------------------------------------------------

    def _simple(self, statements: list[Stmt]) -> None:
        """One statement without a block, from the current token."""
        start = self.at
        kinds = self.kinds
        end = self._simple_end(start)
        shape = shape_of("simple", kinds[start:end])
        clean = shape.failure is None and not shape.chained and not shape.targets
        if clean and shape.depth + self.nested <= DEPTH and not self._continued(end):
            statements.append(make(shape, self.list[start:end], 0, self.problems))
            self.at = end
            if end < len(kinds) and kinds[end] not in ";}":
                self.problems.append(mistakes.statement_goes_on(self.tokens, end))
            return
        joined = self._joined("simple", start, end)
        if joined is not None:
            self.at, node = joined
            if node is not None:
                statements.append(node)
            return
        at_keyword = end < len(kinds) and kinds[end] not in ";{}" and not self.tokens.first_of_line(end)
        if shape.failure is not None and at_keyword:  # it stands where something else should
            end = self._simple_end(end)
            shape = shape_of("simple", kinds[start:end])
        failed = shape.failure.at if shape.failure is not None else shape.targets[0] if shape.targets else None
        if failed is not None:
            end = self._line_that_stands_alone(start, end, start + failed) or end
        node = self._piece("simple", start, end, statements)
        if node is not None:
            statements.append(node)
        self.at = end

    def _simple_end(self, start: int) -> int:
        """Where the piece that begins at token `start` can reach at most."""
        match = _SIMPLE_END.match(self.kinds, start + 1)
        assert match is not None
        return match.end()

    def _continued(self, end: int) -> bool:
        """Whether the line after the statement end at `end` begins with something that begins no statement."""
        return end + 1 < len(self.kinds) and self.kinds[end + 1] in _CONTINUES and self._is_newline(end)

    def _joined(self, rule: str, start: int, end: int) -> tuple[int, Any] | None:
        """The piece with the lines after it, if a newline too many is all that is wrong: (its end, its node)."""
        kinds = self.kinds
        together = kinds[start:end]
        shape = shape_of(rule, together)
        if shape.failure is not None and shape.failure.at < len(together):
            return None
        complete = shape.failure is None
        if complete and not self._continued(end):
            return None
        best = self._with_continuing_lines(rule, start, end) or self._with_lines(rule, start, end)
        if best is None and complete and kinds[end + 1] in _INFIX:
            following = self._simple_end(end + 1)  # the operand after the operator is still to come
            best = following, shape_of(rule, together + kinds[end + 1 : following]), [end]
        if best is None:
            return None
        end, shape, breaks = best
        skipped = set(breaks)
        tokens = [t for i, t in enumerate(self.list[start:end], start) if i not in skipped]
        together = "".join(k for i, k in enumerate(kinds[start:end], start) if i not in skipped)
        self.problems.append(mistakes.newline_ends(self.tokens, breaks))
        said = len(self.problems)
        node = self._node(shape, rule, tokens, together, None)
        if shape.failure is not None:
            del self.problems[said:]
        return end, node

    def _with_continuing_lines(self, rule: str, start: int, end: int) -> tuple[int, Shape, list[int]] | None:
        """The piece with all the lines after it that begin with something that begins no statement, if that parses."""
        breaks: list[int] = []
        parts = [self.kinds[start:end]]
        while self._continued(end):
            breaks.append(end)
            following = self._simple_end(end + 1)
            parts.append(self.kinds[end + 1 : following])
            end = following
        if not breaks:
            return None
        shape = shape_of(rule, "".join(parts))
        return (end, shape, breaks) if shape.failure is None else None

    def _with_lines(self, rule: str, start: int, end: int) -> tuple[int, Shape, list[int]] | None:
        """The piece with as few of the lines after it as make it parse."""
        kinds = self.kinds
        together = kinds[start:end]
        breaks: list[int] = []
        while len(breaks) < _JOINED_LINES and end + 1 < len(kinds) and self._is_newline(end):
            if kinds[end + 1] in "{}LVIERWBCTKF@":
                break
            breaks.append(end)
            following = self._simple_end(end + 1)
            together += kinds[end + 1 : following]
            end = following
            shape = shape_of(rule, together)
            if shape.failure is None:
                return end, shape, breaks
            if shape.failure.at < len(together):
                break
        return None

    def _line_that_stands_alone(self, start: int, end: int, failed: int) -> int | None:
        """Where the unfinished statement ends whose next line was read as its continuation.

        `X[p * ` goes on in the next line for the grammar. If the next line makes sense by itself, the user is
        still typing the first.
        """
        for index in range(min(failed, end - 1), start, -1):
            if not self.tokens.first_of_line(index):
                continue
            alone = shape_of("simple", self.kinds[index:end])
            further = alone.failure is None or index + alone.failure.at > failed
            if self.kinds[index - 1] == "." and alone.failure is not None:
                further = index + alone.failure.at >= failed
            assigns = ("=" in self.kinds[index:end] or "a" in self.kinds[index:end]) and failed < end
            if further and (assigns or self._indent(index) <= self._indent(start)):
                return index
            return None
        return None

    # --- pieces -------------------------------------------------------------------------------------------------

    def _piece(self, rule: str, start: int, end: int, statements: list[Stmt] | None = None) -> Any:
        """The node of the tokens from `start` to `end`; statement ends among them are told of and left out."""
        kinds = self.kinds[start:end]
        tokens = self.list[start:end]
        breaks = [i for i in range(start, end) if self._is_newline(i)] if END in kinds else []
        if breaks:
            skipped = set(breaks)
            tokens = [t for i, t in enumerate(tokens, start) if i not in skipped]
            kinds = "".join(k for i, k in enumerate(kinds, start) if i not in skipped)
            if shape_of(rule, kinds).failure is None:
                self.problems.append(mistakes.newline_ends(self.tokens, breaks))
        return self._node(shape_of(rule, kinds), rule, tokens, kinds, statements)

    def _is_newline(self, index: int) -> bool:
        """Whether token `index` is a statement end that nobody wrote."""
        return self.kinds[index] == END and self.list[index][2] != ";"

    def _node(self, shape: Shape, rule: str, tokens: list[Token], kinds: str, statements: list[Stmt] | None) -> Any:
        if shape.depth + self.nested > DEPTH:
            self._too_deep(mistakes.deepest(tokens, kinds, DEPTH))
            return self._stand_in(rule, tokens)
        failure = shape.failure
        if failure is not None:
            after = self._index_after(tokens)
            self.problems.append(mistakes.unexpected(self.tokens, rule, failure, tokens, kinds, after))
            words: list[SyntaxProblem] = []  # one mistake, one diagnostic
            node = make(shape, tokens, len(self.text), words)
            parts = self._parts(tokens[shape.rest :], kinds[shape.rest :])
            if parts and statements is not None:
                statements.append(node)
                return Broken(tokens[shape.rest][0], tokens[-1][1], parts)
            return node
        words = []
        node = make(shape, tokens, len(self.text), words)
        if words:
            self.problems.extend(words)
        elif shape.chained:
            self.problems.append(mistakes.chained(tokens, shape.chained))
        elif shape.targets:
            self.problems.append(mistakes.not_assignable(node, tokens[shape.targets[0]]))
        if shape.targets:
            return Broken(node.start, node.end, (node.target, node.value))
        return node

    def _index_after(self, tokens: list[Token]) -> int:
        """The index of the token behind a piece."""
        return bisect_right(self.list, tokens[-1][0], key=itemgetter(0))

    def _parts(self, tokens: list[Token], kinds: str) -> tuple[Expr, ...]:
        """The expressions among tokens that no statement took."""
        parts: list[Expr] = []
        start = 0
        while start < len(kinds) and len(parts) < _REST_PARTS:
            if kinds[start] not in "nidb(-!":
                start += 1
                continue
            shape = shape_of("simple", kinds[start:])
            if shape.depth > DEPTH or not shape.steps:
                break
            node = make(shape, tokens[start:], tokens[-1][1], [])
            if isinstance(node, ExprStmt):
                parts.append(node.value)
            elif hasattr(node, "target"):
                parts.extend((node.target, node.value))
            if shape.rest == 0:
                break
            start += shape.rest
        return tuple(parts)

    def _stand_in(self, rule: str, tokens: list[Token]) -> Any:
        """What stands for a piece that nests too deep to be read."""
        start, end = tokens[0][0], tokens[-1][1]
        if rule == "simple":
            return Broken(start, end, ())
        short = _STAND_INS[rule]
        node = make(shape_of(rule, short), [(start, start, "")] * len(short), end, [])
        return node


_STAND_INS = {
    "attribute": "@n", "kernel_header": "Kn()", "function_header": "Fn()", "for_header": "RnNn(_,_)",
    "while_header": "W_", "if_header": "I_",
}  # fmt: skip

__all__ = ["Name", "parse_item"]
