"""Statements without a block, and pieces in general: which tokens are one, and what they become.

A statement ends at its line, but a line end too many must not cost more than one message, and a line that is
still being typed must not take the next one with it. Those two judgements are made here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from operator import itemgetter
from typing import Any

from phobos.syntax import mistakes
from phobos.syntax.lines import LineIndex
from phobos.syntax.pieces import make, shape_of
from phobos.syntax.shapes import DEPTH, Shape
from phobos.syntax.tokens import END, Token, Tokens
from phobos.syntax.tree import Broken, Expr, ExprStmt, Stmt, SyntaxProblem

_SIMPLE_END = re.compile(r"[^;{}LVIERWBCT]*")
_CONTINUES = frozenset("*=<>oqh+&|^AOas:,)].rN[")  # no statement begins with these
_INFIX = frozenset("*<>oqh+&|^AO=a")
_JOINED_LINES = 32  # as many lines are tried together for one statement
_REST_PARTS = 8


class StatementParser:
    """Goes through the tokens of an item. `at` is the current one; `problems` collects what is wrong."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.text = tokens.text
        self.kinds = tokens.kinds
        self.list = tokens.list
        self.problems: list[SyntaxProblem] = []
        self.rest: Broken | None = None  # what the last piece left over
        self.lines: LineIndex | None = None  # made when indentation is asked for
        self.at = 0
        self.nested = 0  # blocks open, `else if` counted
        self.is_too_deep = False

    # --- statements ---------------------------------------------------------------------------------------------

    def simple(self, statements: list[Stmt]) -> None:
        """One statement without a block, from the current token."""
        start = self.at
        kinds = self.kinds
        end = self.simple_end(start)
        shape = shape_of("simple", kinds[start:end])
        clean = shape.failure is None and not shape.chained and not shape.targets
        if clean and shape.depth + self.nested <= DEPTH and not self._continued(end):
            statements.append(make(shape, self.list[start:end], 0, self.problems))
            self.at = end
            if end < len(kinds) and kinds[end] not in ";}":
                self.problems.append(mistakes.statement_goes_on(self.tokens, end))
            return
        joined = self.joined("simple", start, end)
        if joined is not None:
            self.at, node = joined
            statements.append(node)
            self.take_rest(statements)
            return
        at_keyword = end < len(kinds) and kinds[end] not in ";{}" and not self.tokens.first_of_line(end)
        if shape.failure is not None and at_keyword:  # it stands where something else should
            end = self.simple_end(end)
            shape = shape_of("simple", kinds[start:end])
        failed = shape.failure.at if shape.failure is not None else shape.targets[0] if shape.targets else None
        if failed is not None:
            end = self.line_that_stands_alone(start, end, start + failed) or end
        statements.append(self.piece("simple", start, end))
        self.take_rest(statements)
        self.at = end

    def take_rest(self, statements: list[Stmt]) -> None:
        """Keep what the last piece had no use for."""
        if self.rest is not None:
            statements.append(self.rest)
        self.rest = None

    def simple_end(self, start: int) -> int:
        """Where the piece that begins at token `start` can reach at most."""
        match = _SIMPLE_END.match(self.kinds, start + 1)
        assert match is not None
        return match.end()

    def _continued(self, end: int) -> bool:
        """Whether the line after the statement end at `end` begins with something that begins no statement."""
        return end + 1 < len(self.kinds) and self.kinds[end + 1] in _CONTINUES and self.is_newline(end)

    def joined(self, rule: str, start: int, end: int) -> tuple[int, Any] | None:
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
            following = self.simple_end(end + 1)  # the operand after the operator is still to come
            best = following, shape_of(rule, together + kinds[end + 1 : following]), [end]
        if best is None:
            return None
        end, shape, breaks = best
        skipped = set(breaks)
        tokens = [t for i, t in enumerate(self.list[start:end], start) if i not in skipped]
        together = "".join(k for i, k in enumerate(kinds[start:end], start) if i not in skipped)
        self.problems.append(mistakes.newline_ends(self.tokens, breaks))
        said = len(self.problems)
        node = self._node(shape, rule, tokens, together)
        if shape.failure is not None:
            del self.problems[said:]
        return end, node

    def _with_continuing_lines(self, rule: str, start: int, end: int) -> tuple[int, Shape, list[int]] | None:
        """The piece with all the lines after it that begin with something that begins no statement, if that parses."""
        breaks: list[int] = []
        parts = [self.kinds[start:end]]
        while self._continued(end):
            breaks.append(end)
            following = self.simple_end(end + 1)
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
        while len(breaks) < _JOINED_LINES and end + 1 < len(kinds) and self.is_newline(end):
            if kinds[end + 1] in "{}LVIERWBCTKF@":
                break
            breaks.append(end)
            following = self.simple_end(end + 1)
            together += kinds[end + 1 : following]
            end = following
            shape = shape_of(rule, together)
            if shape.failure is None:
                return end, shape, breaks
            if shape.failure.at < len(together):
                break
        return None

    def line_that_stands_alone(self, start: int, end: int, failed: int) -> int | None:
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
            if further and (assigns or self.indent(index) <= self.indent(start)):
                return index
            return None
        return None

    # --- pieces -------------------------------------------------------------------------------------------------

    def piece(self, rule: str, start: int, end: int) -> Any:
        """The node of the tokens from `start` to `end`; statement ends among them are told of and left out."""
        kinds = self.kinds[start:end]
        tokens = self.list[start:end]
        breaks = [i for i in range(start, end) if self.is_newline(i)] if END in kinds else []
        if breaks:
            skipped = set(breaks)
            tokens = [t for i, t in enumerate(tokens, start) if i not in skipped]
            kinds = "".join(k for i, k in enumerate(kinds, start) if i not in skipped)
            if shape_of(rule, kinds).failure is None:
                self.problems.append(mistakes.newline_ends(self.tokens, breaks))
        return self._node(shape_of(rule, kinds), rule, tokens, kinds)

    def is_newline(self, index: int) -> bool:
        """Whether token `index` is a statement end that nobody wrote."""
        return self.kinds[index] == END and self.list[index][2] != ";"

    def _node(self, shape: Shape, rule: str, tokens: list[Token], kinds: str) -> Any:
        if shape.depth + self.nested > DEPTH:
            self.too_deep(mistakes.deepest(tokens, kinds, DEPTH))
            return self._stand_in(rule, tokens)
        failure = shape.failure
        if failure is not None:
            after = self._index_after(tokens)
            self.problems.append(mistakes.unexpected(self.tokens, rule, failure, tokens, kinds, after))
            words: list[SyntaxProblem] = []  # one mistake, one diagnostic
            node = make(shape, tokens, len(self.text), words)
            parts = self._parts(tokens[shape.rest :], kinds[shape.rest :])
            self.rest = Broken(tokens[shape.rest][0], tokens[-1][1], parts) if parts else None
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
        return make(shape_of(rule, short), [(start, start, "")] * len(short), end, [])

    # --- what all of them need ----------------------------------------------------------------------------------

    def indent(self, index: int) -> int:
        """The column of the first character of a token's line."""
        if self.lines is None:
            self.lines = LineIndex(self.text)
        start = self.lines.starts[self.lines.line_of(self.list[index][0])]
        while self.text[start : start + 1].isspace():
            start += 1
        return start - self.lines.starts[self.lines.line_of(start)]

    def too_deep(self, token: Token) -> None:
        """Say so once: what goes too deep once goes too deep all the way in."""
        if not self.is_too_deep:
            self.problems.append(mistakes.too_deep(token, DEPTH))
        self.is_too_deep = True


_STAND_INS = {
    "attribute": "@n", "kernel_header": "Kn()", "function_header": "Fn()", "for_header": "RnNn(_,_)",
    "while_header": "W_", "if_header": "I_",
}  # fmt: skip
