"""What to write instead, where a piece fails: the habits of other languages, and what is easily mixed up."""

from __future__ import annotations

from phobos.syntax.shapes import Failure
from phobos.syntax.tokens import BOOL, KEYWORDS, NAME, Token

Fix = tuple[str, tuple[tuple[int, int, str], ...]]

_HEADERS = ("for_header", "while_header", "if_header", "kernel_header", "function_header")


def advice(rule: str, failure: Failure, piece: list[Token], kinds: str, kind: str) -> tuple[str | None, Fix | None]:
    """Help, and a fix where one text must have been meant, for a piece that fails at a token of `kind`."""
    at = failure.at
    before = kinds[at - 1] if at else ""
    word = piece[at][2] if at < len(piece) else ""
    if before == "," and kind in ")]":
        comma = piece[at - 1]
        return "a list has no comma at its end", ("remove the comma", ((comma[0], comma[1], ""),))
    if word in _FOREIGN:
        return _FOREIGN[word], None
    if help := JOINED.get("".join(token[2] for token in piece[at : at + 2])):
        return help, None
    if kind in KEYWORDS.values() and kind != BOOL and "NAME" in failure.expected and word:
        if "MISSING" in failure.expected and kind == "I":
            return "`if` is a statement: choose a value with `where(condition, a, b)`", None
        return f"`{word}` is a keyword and cannot be a name", None
    if help := _of_type(failure, kinds, kind, before):
        return help, None
    if kind == ":" and rule in _HEADERS:
        if rule == "function_header" and before == ")":
            return "the type of the result stands behind `->`", None
        return "a block stands in braces: `{ ... }`", None
    if rule == "for_header":
        return _of_for(failure, kind, before, at), None
    if rule == "attribute":
        return _of_attribute(kind), None
    if rule == "kernel_header" and kind == "r":
        return "a kernel gives no value back: it stores into tensors", None
    if rule in ("kernel_header", "function_header"):
        wants_type = failure.expected == {"COLON"}
        return "a parameter has a type: `x: f32`, `X: tensor<f32>[N]`" if wants_type else None, None
    if rule in ("if_header", "while_header") and kind == "=":
        return "`=` assigns; `==` compares", None
    if help := _of_operators(kind, before, word):
        return help, None
    return _of_statement(failure, piece, kinds, kind) if rule == "simple" else None, None


def _of_type(failure: Failure, kinds: str, kind: str, before: str) -> str | None:
    at = failure.at
    if failure.expected == {"LSQB"} and before == ">":
        return "it has dimensions: `tensor<f32>[N]`, `tile<f32>[64, 64]`"
    if kind == "[" and before == NAME and "LESSTHAN" in failure.expected and "PLUS" not in failure.expected:
        return "the element type stands in `<>`: `tensor<f32>[N]`, `tile<f32>[64, 64]`"
    in_dims = failure.open >= 0 and kinds[failure.open] == "[" and kinds[failure.open - 1 : failure.open] == ">"
    if in_dims and kind in "+-*(" and at:
        return "a dimension is a number or a name, not an expression"
    return None


def _of_for(failure: Failure, kind: str, before: str, at: int) -> str | None:
    if before == "N":
        return "a loop runs over `range(first, end)` or `range(first, end, step)`"
    if kind == "(" and before == "R":
        return "write `for i in range(0, n) { ... }`, without parentheses around it"
    one_bound = "COMMA" in failure.expected and "RPAR" not in failure.expected
    if kind != "," and at > 2 and one_bound:
        return "`range` takes a first value and an end: `range(0, n)`"
    if kind == "," and "RPAR" in failure.expected and "COMMA" not in failure.expected:
        return "`range` takes at most a first value, an end and a step"
    return None


def _of_attribute(kind: str) -> str | None:
    if kind == "[":
        return "a list of values is written `NAME in [16, 32]`"
    if kind in "-+":
        return "an attribute takes plain numbers and names, no expressions"
    return None


def _of_operators(kind: str, before: str, word: str) -> str | None:
    if kind == "@":
        return "an attribute stands above a kernel, outside its braces; a product of tiles is written `dot(a, b)`"
    if kind in "+-" and before == kind:
        return f"there is no `{word}{word}`: write `x {word}= 1`"
    if kind == before == "*" and word == "*":
        return "a power is written `pow(a, b)`"
    if kind == ">" and before == "<":
        return "`!=` is the operator for different values"
    if kind == "(" and before in ")]":
        return "only a name can be called"
    if kind == ".":
        return "a number begins with a digit: `0.5`"
    return None


def _of_statement(failure: Failure, piece: list[Token], kinds: str, kind: str) -> str | None:
    at = failure.at
    if kind == "=" and "=" in kinds[:at]:
        return "an assignment has no value: assign one name at a time"
    if kind == "," and "$END" in failure.expected:
        return "a statement sets one variable"
    if kind == "[" and "MISSING" in failure.expected:
        return "there are no lists: a tile is declared with `var t: tile<f32>[R, C]`"
    if kinds.startswith("L") and "EQUAL" in failure.expected:
        if kind == "q":
            return "`==` compares; `let x = ...` gives the value"
        return "`let` needs a value: `let x = ...`; only a tile declared with `var` may lack one"
    if at == 1 and kinds[0] == NAME:
        first = piece[0][2]
        if first in _FOREIGN:
            return _FOREIGN[first]
        if near := nearest(first, tuple(KEYWORDS)):
            return f"did you mean `{near}` instead of `{first}`?"
    return None


def nearest(word: str, choices: tuple[str, ...]) -> str | None:
    from difflib import get_close_matches  # only when something is wrong

    return next(iter(get_close_matches(word, choices, 1, 0.7)), None)


JOINED = {
    "/*": "a comment begins with `//` and ends with the line",
    ":=": "a variable is declared: `let x = ...`, or `var x = ...` where it changes",
}

_FOREIGN = {
    "and": "`and` is written `&&`", "or": "`or` is written `||`", "not": "`not` is written `!`",
    "elif": "`elif` is written `else if`, on the line of the `}`", "def": "a function begins with `fn`",
    "const": "a constant is a `let`", "auto": "a variable is declared with `let` or `var`",
    "int": "a variable is declared with `let` or `var`: `var n: i64 = 0`",
    "float": "a variable is declared with `let` or `var`: `var x: f32 = 0.0`",
    "mut": "a variable that changes is declared with `var`", "loop": "loop with `while true`",
    "as": "the type converts: `f32(x)`",
    "then": "a block stands in braces: `{ ... }`", "do": "loop with `while`", "pass": "an empty block is `{ }`",
}  # fmt: skip
