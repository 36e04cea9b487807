"""One canonical layout for `.ph` text; `docs/formatting.md` says which.

The formatter works on tokens and comments, never on the tree: it decides where lines break and what stands
between two tokens, and can neither lose nor change a word. Text that does not parse is refused.
"""

from __future__ import annotations

from phobos.errors import PhobosError
from phobos.syntax import parse
from phobos.syntax.lines import LineIndex
from phobos.syntax.tokens import BOOL, END, FLOAT, INT, NAME, Token, tokenize
from phobos.syntax.tree import Comment, SyntaxProblem
from phobos.value import value

__all__ = ["LINE_LENGTH", "FormatError", "TextEdit", "format_range", "format_text"]

LINE_LENGTH = 120
_INDENT = 2
_CONTINUATION = 4
_BOM = "\ufeff"

_OPERANDS = frozenset((NAME, INT, FLOAT, BOOL, ")", "]"))


class FormatError(PhobosError):
    """The text does not parse. `problem` is its first mistake; `line` and `column` count from 1."""

    def __init__(self, problem: SyntaxProblem, line: int, column: int) -> None:
        super().__init__(f"{line}:{column}: {problem.code} {problem.message}")
        self.problem = problem
        self.line = line
        self.column = column


@value
class TextEdit:
    """Replace `text[start:end]` by `content`."""

    start: int
    end: int
    content: str


def format_text(text: str, line_length: int = LINE_LENGTH) -> str:
    """`text` in the canonical layout. Raises FormatError when it does not parse."""
    parts: list[str] = []
    position = 0
    for edit in _edits(text, line_length):
        parts += (text[position : edit.start], edit.content)
        position = edit.end
    parts.append(text[position:])
    return "".join(parts)


def format_range(text: str, start: int, end: int, line_length: int = LINE_LENGTH) -> list[TextEdit]:
    """The edits that lay out the lines touched by `text[start:end]`; every other line stays as it is."""
    lines = LineIndex(text)
    first = lines.starts[lines.line_of(start)]
    last = lines.line_end(lines.line_of(max(start, end)))
    return [e for e in _edits(text, line_length) if first <= e.end and (e.start < last or last == len(text))]


@value
class _Mark:
    """A comment inside a statement, behind token `index` of its line."""

    index: int
    comment: Comment
    own_line: bool


class _Line:
    """What becomes one line, or several if it is too long: the tokens of a statement, or a comment."""

    __slots__ = ("blank_before", "comments", "depth", "kinds", "starts_item", "tokens", "trailing")

    def __init__(self, depth: int, blank_before: bool) -> None:
        self.depth = depth
        self.blank_before = blank_before
        self.kinds = ""
        self.tokens: list[Token] = []
        self.comments: list[_Mark] = []  # between its tokens
        self.trailing: Comment | None = None  # behind them; the line itself, when there are none
        self.starts_item = False

    @property
    def start(self) -> int:
        if self.tokens:
            return self.tokens[0][0]
        assert self.trailing is not None
        return self.trailing.start

    @property
    def end(self) -> int:
        ends = [m.comment.end for m in self.comments[-1:]] + [t[1] for t in self.tokens[-1:]]
        return self.trailing.end if self.trailing is not None else max(ends)


def _edits(text: str, line_length: int) -> list[TextEdit]:
    _refuse_mistakes(text)
    newline = _newline_of(text)
    edits: list[TextEdit] = []

    def replace(start: int, end: int, content: str) -> None:
        if text[start:end] != content:
            edits.append(TextEdit(start, end, content))

    position = len(_BOM) if text.startswith(_BOM) else 0
    first = True
    for line in _lines(text):
        indent = " " * (_INDENT * line.depth)
        gap = "" if first else newline * (2 if line.blank_before else 1)
        replace(position, line.start, gap + indent)
        replace(line.start, line.end, newline.join(_rendered(line, indent, line_length)))
        position = line.end
        first = False
    replace(position, len(text), "" if first else newline)
    return edits


def _refuse_mistakes(text: str) -> None:
    for offset, item in parse(text).items:
        if item.problems:
            problem = item.problems[0]
            line, column = LineIndex(text).position(offset + problem.start)
            raise FormatError(problem, line + 1, column + 1)


def _newline_of(text: str) -> str:
    """The line end that the text uses first."""
    at = min((i for i in (text.find("\n"), text.find("\r")) if i >= 0), default=-1)
    if at < 0 or text[at] == "\n":
        return "\n"
    return "\r\n" if text.startswith("\r\n", at) else "\r"


# --- which tokens stand on a line -------------------------------------------------------------------------------


def _lines(text: str) -> list[_Line]:
    """The lines of a text that parses, with comments and blank lines where they were."""
    layout = _Layout(text)
    tokens = tokenize(text.replace(_BOM, " ", 1) if text.startswith(_BOM) else text)
    comments = list(tokens.comments)
    waiting = 0
    for index, (kind, token) in enumerate(zip(tokens.kinds, tokens.list)):
        while waiting < len(comments) and comments[waiting].start < token[0]:
            layout.comment(comments[waiting])
            waiting += 1
        following = index + 1
        while kind == "{" and tokens.kinds[following : following + 1] == END:
            following += 1
        next_start = tokens.list[following][0] if following < len(tokens.list) else len(text)
        comment_next = waiting < len(comments) and comments[waiting].start < next_start
        layout.token(kind, token, tokens.kinds[following : following + 1], comment_next)
    for comment in comments[waiting:]:
        layout.comment(comment)
    layout.end_line()
    _separate_items(layout.lines)
    return layout.lines


class _Layout:
    """Takes tokens and comments in order and groups them into lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: list[_Line] = []
        self.line: _Line | None = None
        self.depth = 0
        self.in_attributes = False
        self.end = 0  # of the last token or comment

    def end_line(self) -> None:
        self.line = None

    def _begin(self, start: int) -> _Line:
        between = self.text[self.end : start]
        ends = between.count("\n") + between.count("\r") - between.count("\r\n")
        previous = self.lines[-1] if self.lines else None
        opens = previous is None or previous.kinds.endswith("{") or previous.kinds.startswith("@")
        line = _Line(self.depth, ends > 1 and not opens)
        self.lines.append(line)
        return line

    def token(self, kind: str, token: Token, following: str, comment_next: bool) -> None:
        if kind == END:
            if self.line is None or not self.line.kinds.endswith("{"):  # `{ ; }` is an empty block
                self.line = None
            if token[2] == ";":
                self.end = token[1]
            return
        if kind == "}":
            self.depth -= 1
            if not (self.line is not None and self.line.kinds.endswith("{")):
                self.line = None
        elif kind in "@KF":
            self.line = None
        if self.line is None:
            self.line = self._begin(token[0])
            if kind == "}":
                self.line.blank_before = False
            self.line.starts_item = kind in "@KF" and not self.in_attributes
        if kind in "@KF":
            self.in_attributes = kind == "@"
        self.line.tokens.append(token)
        self.line.kinds += kind
        self.end = token[1]
        if kind == "{":
            self.depth += 1
            if following != "}" or comment_next:
                self.line = None
        elif kind == "}" and following != "E":
            self.line = None

    def comment(self, comment: Comment) -> None:
        between = self.text[self.end : comment.start]
        own_line = "\n" in between or "\r" in between or not self.lines
        if self.line is not None:
            self.line.comments.append(_Mark(len(self.line.tokens) - 1, comment, own_line))
        elif own_line or self.lines[-1].trailing is not None:
            self._begin(comment.start).trailing = comment
        else:
            self.lines[-1].trailing = comment
        self.end = comment.end


def _separate_items(lines: list[_Line]) -> None:
    """A blank line before every item but the first, above the comments that stand directly on it."""
    for index, line in enumerate(lines):
        if not line.starts_item:
            continue
        first = index
        while first and not lines[first].blank_before and not lines[first - 1].tokens:
            first -= 1
        if first and lines[first - 1].tokens:
            lines[first].blank_before = True


# --- how a line is written --------------------------------------------------------------------------------------


def _rendered(line: _Line, indent: str, line_length: int) -> list[str]:
    """The text of a line, without the indentation of the first."""
    marks = list(line.comments)
    trailing = line.trailing
    if marks and marks[-1].index == len(line.tokens) - 1 and not marks[-1].own_line and trailing is None:
        trailing = marks.pop().comment
    if not line.tokens:
        assert trailing is not None
        return [trailing.text.rstrip()]
    words = _words(line)
    rows: list[str] = []
    start = 0
    further = indent + " " * _CONTINUATION
    for mark in marks:  # a comment ends a row
        rows += _filled(words[start : mark.index + 1], len(indent) if not rows else len(further), line_length, further)
        start = mark.index + 1
        if mark.own_line or not rows:
            rows.append(mark.comment.text.rstrip())
        else:
            rows[-1] += "  " + mark.comment.text.rstrip()
    if start < len(words):
        rows += _filled(words[start:], len(indent) if not rows else len(further), line_length, further)
    if trailing is not None:
        rows[-1] += "  " + trailing.text.rstrip()
    return [rows[0], *(further + row for row in rows[1:])]


@value
class _Word:
    """A token as it is written; `blank` says whether one stands before it, `breaks` how gladly a row ends behind it.

    Lower is gladder: bracket depth first. 99: never.
    """

    text: str
    blank: bool
    breaks: int


_NEVER = 99


def _filled(words: list[_Word], indent: int, line_length: int, further: str) -> list[str]:
    """Words in rows no longer than the line length, where there is a place to break."""
    rows: list[str] = []
    while words:
        width = indent
        fits = len(words)
        best: int | None = None
        for index, word in enumerate(words):
            width += len(word.text) + (word.blank and index > 0)
            if width > line_length and (best is not None or index == len(words) - 1 or word.breaks < _NEVER):
                if best is not None:
                    fits = best + 1
                elif index < len(words) - 1:
                    fits = index + 1
                break
            if index < len(words) - 1 and word.breaks < _NEVER and (best is None or word.breaks <= words[best].breaks):
                best = index
        rows.append("".join((" " if w.blank and i else "") + w.text for i, w in enumerate(words[:fits])))
        words = words[fits:]
        indent = len(further)
    return rows


def _words(line: _Line) -> list[_Word]:
    kinds = line.kinds
    roles = _roles(kinds)
    words: list[_Word] = []
    depth = 0
    for index, (kind, token) in enumerate(zip(kinds, line.tokens)):
        role = roles[index]
        if kind in ")]":
            depth -= 1
        elif kind in "([":
            depth += 1
        blank = index > 0 and _blank_between(kinds[index - 1], roles[index - 1], kind, role)
        words.append(_Word(token[2], blank, _gladness(kind, role, depth)))
    return words


def _gladness(kind: str, role: str, depth: int) -> int:
    """How gladly a row ends behind a token; a newline behind it must not end the statement."""
    if role in ("unary", "angle", "type"):
        return _NEVER
    if kind == ",":
        return 4 * depth
    if kind in "([":
        return 4 * depth + 2
    if kind in "AOqo<>h+-*&|^":
        return 4 * depth + 1
    if kind in "=a":
        return _NEVER - 1
    return _NEVER


def _roles(kinds: str) -> list[str]:
    """What a token is where its kind alone does not say: `unary`, `angle` (of a type), `type`, `wide`, `tight`.

    A `:` is `type` behind a name that gets a type, else it parts a range: `wide` when it has two ends and one of them
    has more than one token.
    """
    roles = [""] * len(kinds)
    head = kinds[0]
    typed = head in "KF"
    stack: list[int] = []
    for index, kind in enumerate(kinds):
        before = kinds[index - 1] if index else ""
        if kind in "([":
            stack.append(index)
        elif kind in ")]":
            stack.pop()
        elif kind in "-!" and before not in _OPERANDS:
            roles[index] = "unary"
        elif kind == ":" and (head in "KF" or not stack):
            roles[index] = "type"
            typed = True
        elif kind == ":":
            roles[index] = _range_role(kinds, index)
        elif kind == "=" and not stack:
            typed = head in "KF"
        elif kind in "<>" and (typed or (index in (1, 4) and kinds.startswith("R<"))):
            roles[index] = "angle"
    return roles


def _range_role(kinds: str, colon: int) -> str:
    lo, hi = _length(kinds, colon, -1), _length(kinds, colon, 1)
    return "wide" if lo and hi and max(lo, hi) > 1 else "tight"


def _length(kinds: str, colon: int, step: int) -> int:
    """How many tokens (2 for more) the end of a range has, going from its `:` in one direction."""
    for length in (0, 1):
        at = colon + step * (length + 1)
        kind = kinds[at : at + 1]
        if kind in ("", ",") or kind == ("[" if step < 0 else "]"):
            return length
    return 2


def _blank_between(before: str, before_role: str, kind: str, role: str) -> bool:
    """Whether a blank stands between two tokens."""
    if kind == "." and before in (INT, FLOAT):
        return True  # glued to it the point would be the number's
    if before in "([@." or kind in ")],.":
        return False
    if before == "{" or before_role == "unary":
        return False
    if before == ",":
        return True
    if kind == ":":
        return role == "wide"
    if before == ":":
        return before_role != "tight"
    if role == "angle" or (before_role == "angle" and (before == "<" or kind == "[")):
        return False
    if kind in "([":
        return before not in _OPERANDS
    return True
