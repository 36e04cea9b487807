"""What is being typed at an offset, read from tokens, so that it is known in code that does not parse yet."""

from __future__ import annotations

from typing import Literal

from phobos.ide.document import Place
from phobos.syntax.tokens import END, NAME, Token, Tokens, ends_statement, tokens_of
from phobos.value import value

Position = Literal[
    "item",  # where a kernel, function or attribute begins
    "attribute",  # behind `@`
    "attribute-argument",
    "member",  # behind `ctx.`
    "axis",  # behind `ctx.block.`
    "type",  # behind a `:` of a parameter or annotation
    "result",  # behind `->`
    "scalar",  # inside `tensor<`, `tile<`
    "dimension",  # inside `tensor<..>[`, `tile<..>[`
    "hint",  # inside `for<`
    "in",  # behind the variable of a `for`
    "range",  # behind `in` of a `for`
    "declaration",  # a new name
    "statement",
    "expression",
    "else",  # behind the `}` of an `if` on the same line
    "else-if",  # behind `else`
    "comment",
    "complete",  # behind what needs nothing more on its line: an operator or a line end comes
]


@value
class Calling:
    """An unfinished call around the cursor: who is called, the offset of `(`, and which argument the cursor is in."""

    name: str
    open: int
    argument: int
    is_attribute: bool


@value
class Cursor:
    """`prefix` is the part of a word before the cursor; it stands at `prefix_start`. Offsets are item-relative."""

    position: Position
    prefix: str
    prefix_start: int
    word_end: int
    path: tuple[str, ...]  # of a member: ("ctx",), ("ctx", "block")
    calling: Calling | None
    attribute: str | None  # the attribute whose arguments these are
    in_loop: bool
    in_kernel: bool
    in_function: bool
    wanted: Literal["index", "length", "extent"] | None  # what a subscript, or a dim of a type, needs here


def cursor_at(place: Place) -> Cursor:
    """The position of `place.inside` in its item's tokens."""
    tokens = tokens_of(place.item.text)
    words, kinds = tokens.list, tokens.kinds
    offset = place.inside
    for comment in tokens.comments:
        if comment.start < offset <= comment.end:
            return _plain("comment", offset)
    count = _before(words, offset)  # tokens that begin before the cursor
    prefix, prefix_start, word_end = "", offset, offset
    if count and words[count - 1][1] >= offset and _is_word(kinds[count - 1], words[count - 1]):
        start, end, text = words[count - 1]
        prefix, prefix_start, word_end = text[: offset - start], start, end
        count -= 1
    elif count < len(words) and words[count][0] == offset and _is_word(kinds[count], words[count]):
        word_end = words[count][1]
    return _classify(tokens, count, prefix, prefix_start, word_end)


def calling_at(place: Place) -> Calling | None:
    """The innermost call that is open at the cursor."""
    tokens = tokens_of(place.item.text)
    count = _before(tokens.list, place.inside)
    return _calling(tokens, count, _frames(tokens, count))


def _plain(position: Position, offset: int) -> Cursor:
    return Cursor(position, "", offset, offset, (), None, None, False, False, False, None)


def _is_word(kind: str, token: Token) -> bool:
    return kind == NAME or (token[2][:1].isalpha() and token[2].isidentifier())


def _before(words: list[Token], offset: int) -> int:
    low, high = 0, len(words)
    while low < high:
        middle = (low + high) // 2
        if words[middle][0] < offset:
            low = middle + 1
        else:
            high = middle
    return low


def _classify(tokens: Tokens, count: int, prefix: str, start: int, end: int) -> Cursor:
    words, kinds = tokens.list, tokens.kinds
    frames = _frames(tokens, count)
    in_loop = any(frame.opener == "{" and frame.head in "RW" for frame in frames)
    heads = [frame.head for frame in frames if frame.opener == "{"]
    in_kernel = "K" in heads
    in_function = "F" in heads
    calling = _calling(tokens, count, frames)
    inner = frames[-1] if frames else None
    previous = kinds[count - 1] if count else ""
    new_line = count == 0 or _line_between(tokens.text, words[count - 1][1], start)
    on_this_line = not new_line
    if new_line and ends_statement(previous):
        previous = END  # the last line end of a text is a token at its very end
    wanted: Literal["index", "length", "extent"] | None = None
    if inner is not None and inner.opener == "[" and inner.name is not None:
        if inner.name in ("tensor", "tile"):
            wanted = "extent" if inner.name == "tensor" else "length"  # those of a tile are known when compiled
        else:
            wanted = "length" if previous == "s" else "index"

    def made(position: Position, path: tuple[str, ...] = (), attribute: str | None = None) -> Cursor:
        return Cursor(
            position, prefix, start, end, path, calling, attribute, in_loop, in_kernel, in_function, wanted
        )

    if previous == "." and count >= 2:
        path = _path(tokens, count - 1)
        if path == ("ctx",):
            return made("member", path)
        return made("axis" if len(path) == 2 and path[0] == "ctx" else "comment", path)
    if previous == "@":
        return made("attribute")
    if inner is not None and inner.opener == "(" and inner.attribute is not None:
        return made("attribute-argument", attribute=inner.attribute)
    if inner is not None and inner.opener == "[" and inner.attribute is not None:
        return made("comment")  # numbers of a search list
    if inner is not None and inner.opener == "<" and previous == "<":
        return made("scalar")
    if inner is not None and inner.opener == "[" and inner.name in ("tensor", "tile"):
        return made("dimension")
    if previous == ":" and _is_type_colon(tokens, count - 1, inner):
        return made("type")
    if previous == "r":  # ->
        return made("result")
    if previous == "<" and count >= 2 and kinds[count - 2] == "R":
        return made("hint")
    if previous == NAME and on_this_line and _is_loop_variable(tokens, count - 1):
        return made("in")
    if previous == "N":  # in
        return made("range" if inner is None or inner.opener == "{" else "expression")
    if previous in ("L", "V", "R", "K", "F") and count:
        return made("declaration")
    if inner is not None and inner.opener == "(" and inner.head in ("K", "F"):
        return made("declaration" if previous in ("(", ",") else "comment")
    if previous == "}" and on_this_line and inner is not None:
        return made("else" if _closes_if(tokens, count - 1) else "complete")
    if previous == "E" and inner is not None:
        return made("else-if")
    if not frames or (inner is not None and inner.opener == "{" and not (in_kernel or in_function)):
        if previous in ("", "}", ";", ")") or new_line:
            return made("item")
        return made("item" if not heads else "statement")
    if inner is not None and inner.opener == "{" and previous in ("{", "}", ";", ""):
        return made("statement")
    if on_this_line and (ends_statement(previous) or (previous == ">" and _type_word(tokens, count - 1))):
        # A kernel's `return` takes nothing, a function's does.
        return made("expression" if previous == "T" and in_function else "complete")
    return made("expression")


@value
class _Frame:
    """An open bracket. `head`: what kind of construct it belongs to (K F R W I E, or "")."""

    opener: str
    index: int
    head: str
    name: str | None  # the word right before `(` or `[`; `tensor`/`tile` for a type's dims
    attribute: str | None


_OPENS_OR_CLOSES = frozenset("KFRWIE()[]{}<>;")
_CLOSERS = {")": "(", "]": "[", "}": "{"}


def _frames(tokens: Tokens, count: int) -> list[_Frame]:
    """The brackets that are open before token `count`, outermost first. A `}` closes what was left open in it."""
    words, kinds = tokens.list, tokens.kinds
    frames: list[_Frame] = []
    head = ""  # the construct whose `{` comes next
    for index in range(count):
        kind = kinds[index]
        if kind not in _OPENS_OR_CLOSES:
            continue
        if kind in "KFRWIE":
            if kind in "KF":  # an item begins: whatever was open is not closed any more
                frames = []
            head = kind
        elif kind == "(":
            before = words[index - 1][2] if index and kinds[index - 1] == NAME else None
            attribute = before if before and index >= 2 and kinds[index - 2] == "@" else None
            is_head = index >= 2 and kinds[index - 2] in "KF"
            frames.append(_Frame("(", index, kinds[index - 2] if is_head else "", before, attribute))
        elif kind == "[":
            name = words[index - 1][2] if index and kinds[index - 1] == NAME else None
            if index and words[index - 1][2] == ">":
                name = _type_word(tokens, index - 1) or name
            attribute = next((f.attribute for f in reversed(frames) if f.attribute), None)
            frames.append(_Frame("[", index, "", name, attribute))
        elif kind == "{":
            frames = [f for f in frames if f.opener == "{"]
            frames.append(_Frame("{", index, head, None, None))
            head = ""
        elif kind == "<" and index and words[index - 1][2] in ("tensor", "tile"):
            frames.append(_Frame("<", index, "", words[index - 1][2], None))
        elif kind == ">" and frames and frames[-1].opener == "<":
            frames.pop()
        elif kind in _CLOSERS:
            opener = _CLOSERS[kind]
            at = next((i for i in range(len(frames) - 1, -1, -1) if frames[i].opener == opener), -1)
            if at >= 0:
                del frames[at:]
        elif kind == ";" and words[index][2] != ";" and _statement_follows(tokens, index):
            frames = [f for f in frames if f.opener == "{"]  # brackets that the line end found open were never closed
    return frames


def _statement_follows(tokens: Tokens, index: int) -> bool:
    """Whether what comes behind a line end is surely a new statement."""
    return index + 1 < len(tokens.kinds) and tokens.kinds[index + 1] in "LVRIWBCT}"


def _type_word(tokens: Tokens, close: int) -> str | None:
    """`tensor` or `tile`, when `close` is the `>` of `tensor<f32>`."""
    for index in range(close - 1, max(-1, close - 4), -1):
        if tokens.kinds[index] == "<" and index and tokens.list[index - 1][2] in ("tensor", "tile"):
            return tokens.list[index - 1][2]
    return None


def _is_loop_variable(tokens: Tokens, index: int) -> bool:
    """Whether a name stands where a `for` declares its variable: behind it, or behind its `<unroll 4>`."""
    kinds = tokens.kinds
    return index >= 1 and (kinds[index - 1] == "R" or (kinds[index - 1] == ">" and "R<" in kinds[index - 5 : index]))


def _closes_if(tokens: Tokens, close: int) -> bool:
    """Whether the `}` at index `close` ends the block of an `if`."""
    depth = 0
    for index in range(close, -1, -1):
        depth += (tokens.kinds[index] == "}") - (tokens.kinds[index] == "{")
        if depth == 0:
            return _frames(tokens, index + 1)[-1].head == "I"
    return False


def _is_type_colon(tokens: Tokens, colon: int, inner: _Frame | None) -> bool:
    """Whether a `:` says a type: of a parameter, or of `let x:`."""
    if inner is not None and inner.opener == "(" and inner.head in ("K", "F"):
        return True
    return colon >= 2 and tokens.kinds[colon - 1] == NAME and tokens.kinds[colon - 2] in "LV"


def _path(tokens: Tokens, dot: int) -> tuple[str, ...]:
    """The names before the `.` at index `dot`, as far as they are members of each other."""
    path: list[str] = []
    index = dot
    while index >= 1 and tokens.kinds[index] == "." and tokens.kinds[index - 1] == NAME:
        path.append(tokens.list[index - 1][2])
        index -= 2
    return tuple(reversed(path))


def _calling(tokens: Tokens, count: int, frames: list[_Frame]) -> Calling | None:
    for number in range(len(frames) - 1, -1, -1):
        frame = frames[number]
        if frame.opener == "{":
            return None
        if frame.opener != "(" or frame.name is None or frame.head in ("K", "F"):
            continue
        # Where the cursor is inside a bracket of an argument, commas from there on are not ours.
        end = frames[number + 1].index if number + 1 < len(frames) else count
        commas = _commas(tokens, frame.index, end)
        return Calling(frame.name, tokens.list[frame.index][0], commas, frame.attribute is not None)
    return None


def _commas(tokens: Tokens, start: int, end: int) -> int:
    """Commas between two tokens that stand in no bracket there."""
    commas = depth = 0
    for index in range(start + 1, end):
        kind = tokens.kinds[index]
        if kind in "([":
            depth += 1
        elif kind in ")]":
            depth -= 1
        elif kind == "," and depth == 0:
            commas += 1
    return commas


def _line_between(text: str, start: int, end: int) -> bool:
    return "\n" in text[start:end] or "\r" in text[start:end]
