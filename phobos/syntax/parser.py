"""The text of an item to its tree: braces and statement ends cut it into pieces, `pieces` turns those into nodes.

Anything gives a tree. What a mistake costs is its own piece: the statement before and after it, and the block
it stands in, are as if it were not there. `mistakes` has the words for what went wrong.
"""

from __future__ import annotations

import re
from typing import Any

from phobos.syntax import mistakes
from phobos.syntax.build import ConditionHeader, ForHeader, FunctionHeader, KernelHeader
from phobos.syntax.pieces import shape_of
from phobos.syntax.shapes import DEPTH
from phobos.syntax.statements import StatementParser
from phobos.syntax.tokens import END, KEYWORDS, NAME, tokens_of
from phobos.syntax.tree import (
    Attribute,
    Block,
    For,
    Function,
    If,
    Item,
    Kernel,
    Missing,
    Stmt,
    SyntaxProblem,
    While,
)

_HEADER_END = re.compile(r"[^{}LVIERWBCT]*")
_HEADERS = {"R": "for_header", "W": "while_header", "I": "if_header"}


def parse_item(text: str) -> Item:
    """An item, or a stretch of text between items."""
    return _ItemParser(tokens_of(text)).item()


class _Frame:
    """A block that is open: what it hangs on, and its statements so far."""

    __slots__ = ("arms", "header", "keyword", "opening", "statements")

    def __init__(self, keyword: str, header: Any, opening: int) -> None:
        self.keyword = keyword  # kind of `for`, `while`, `if`, `else`; `{` for a bare block, `K` for the body
        self.header = header
        self.opening = opening  # token index of `{`, or -1 when it is missing
        self.statements: list[Stmt] = []
        self.arms: list[tuple[ConditionHeader, Block, int | None]] = []  # of an `if` with its `else if`s


class _ItemParser(StatementParser):
    unopened = False

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
        return Item(self.text, node, problems, self.tokens.comments, self.unopened)

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
            attributes.append(self.piece("attribute", self.at, end))
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
        said = len(self.problems)
        is_foreign = kinds[start] == NAME
        if is_foreign:
            word = self.list[start][2]
            meant = "fn" if word.startswith("f") or word == "def" else "kernel"
            self.problems.append(mistakes.misspelt_keyword(self.list[start], meant))
            self.kinds = kinds = kinds[:start] + KEYWORDS[meant] + kinds[start + 1 :]
        rule = "kernel_header" if kinds[start] == "K" else "function_header"
        header: KernelHeader | FunctionHeader = self.piece(rule, start, end)
        if is_foreign:
            del self.problems[said + 1 :]  # behind a word of another language, one message is enough
        self.at = end
        if end < len(kinds) and kinds[end] == "{":
            return header
        self.unopened = True
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
        frames = [_Frame("K", None, opening)]
        self.rest = None  # of attributes and header: no place for it
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
                self.simple(frames[-1].statements)
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
        indent = self.indent(self.at)
        if indent >= self._indent_of(frames[-1]):
            return None
        return next((i for i in range(len(frames) - 2, -1, -1) if self._indent_of(frames[i]) == indent), None)

    def _indent_of(self, frame: _Frame) -> int:
        return self.indent(frame.opening) if frame.opening >= 0 else 0

    def _open(self, frames: list[_Frame], keyword: str, header: Any) -> None:
        opening = self.at
        if self.nested >= DEPTH:
            self.too_deep(self.list[opening])
            self._skip_block()
            return
        self.nested += 1
        frames.append(_Frame(keyword, header, opening))
        self.at += 1

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
        if kinds.startswith(";E", at) and self.is_newline(at):
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
            self.take_rest(frame.statements)
            if opened and self.nested < DEPTH:
                self.nested += 1
                frame.header = header
                frame.opening = self.at
                self.at += 1
                return True
            if opened:
                self.too_deep(self.list[self.at])
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
        self.unopened = True
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
        self.take_rest(frames[-1].statements)
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
        end = self.simple_end(start)
        joined = self.joined(_HEADERS[keyword], start, end)
        if joined is not None:
            end, header = joined
        else:
            failure = shape_of(_HEADERS[keyword], kinds[start:end]).failure
            if failure is not None:
                end = self.line_that_stands_alone(start, end, start + failure.at) or end
            header = self.piece(_HEADERS[keyword], start, end)
        self.at = end
        if kinds.startswith("{", end):
            return header, True
        if kinds.startswith(";{", end) and self.is_newline(end):
            if len(self.problems) == said:
                self.problems.append(mistakes.newline_ends(self.tokens, [end]))
            self.at = end + 1
            return header, True
        self.unopened = True
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
