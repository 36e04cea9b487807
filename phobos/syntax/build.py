"""Tokens and nodes to a node: one function for each rule of `grammar.lark`, called by the rule's name.

The first argument collects what is wrong with the words themselves (a number out of range, an unknown type);
the others are the rule's symbols in order, a token as `(start, end, text)`. A token that recovery put in is
empty: text "" and no width.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from phobos.syntax.advice import nearest
from phobos.syntax.tokens import Token
from phobos.syntax.tree import (
    Assign,
    Attribute,
    Binary,
    Bool,
    Break,
    Call,
    Continue,
    Expr,
    ExprStmt,
    Float,
    Index,
    Int,
    KeywordArg,
    Let,
    Member,
    Missing,
    Name,
    Param,
    Paren,
    PlainArg,
    Point,
    Range,
    Return,
    ScalarType,
    SearchArg,
    SpanOf,
    Subscript,
    SyntaxProblem,
    TensorType,
    TileType,
    TypeNode,
    Unary,
    Var,
)
from phobos.value import value

Problems = list[SyntaxProblem]
Literal = Int | Float | Bool | Name
Argument = SearchArg | KeywordArg | PlainArg

SCALARS = ("f16", "bf16", "f32", "f64", "i8", "u8", "i32", "i64", "bool")
_LARGEST = 2**63 - 1
_INT = re.compile(r"0[xX][0-9a-fA-F](?:_?[0-9a-fA-F])*|[0-9](?:_?[0-9])*")
_FLOAT = re.compile(
    r"[0-9](?:_?[0-9])*(?:\.(?:[0-9](?:_?[0-9])*)?(?:[eE][+-]?[0-9](?:_?[0-9])*)?|[eE][+-]?[0-9](?:_?[0-9])*)"
)


_FLOAT_START = re.compile(r"[0-9][0-9_]*(?:\.|[eE][+-]?[0-9])")


@value
class KernelHeader:
    start: int
    end: int
    name: Name
    params: tuple[Param, ...]


@value
class FunctionHeader:
    start: int
    end: int
    name: Name
    params: tuple[Param, ...]
    result: TypeNode | None


@value
class ForHeader:
    start: int
    end: int
    variable: Name
    lo: Expr
    hi: Expr
    step: Expr | None
    unroll: Int | None


@value
class ConditionHeader:
    """`while e` or `if e`."""

    start: int
    end: int
    condition: Expr


# --- attributes, parameters, types ------------------------------------------------------------------------------


def attribute(problems: Problems, at: Token, word: Token, *rest: Any) -> Attribute:
    if not rest:
        return Attribute(at[0], word[1], Name(*word), (), False)
    return Attribute(at[0], rest[-1][1], Name(*word), rest[1:-1:2], True)


def search_argument(problems: Problems, word: Token, in_: Token, opening: Token, *rest: Any) -> SearchArg:
    return SearchArg(word[0], rest[-1][1], Name(*word), tuple(v for v in rest[:-1:2] if v.end > v.start))


def keyword_argument(problems: Problems, word: Token, equal: Token, given: Literal) -> KeywordArg:
    return KeywordArg(word[0], given.end, Name(*word), given)


def plain_argument(problems: Problems, given: Literal) -> PlainArg:
    return PlainArg(given.start, given.end, given)


def kernel_header(problems: Problems, keyword: Token, name: Name, opening: Token, *rest: Any) -> KernelHeader:
    return KernelHeader(keyword[0], rest[-1][1], name, rest[:-1:2])


def function_header(problems: Problems, keyword: Token, name: Name, opening: Token, *rest: Any) -> FunctionHeader:
    if isinstance(rest[-1], tuple):
        return FunctionHeader(keyword[0], rest[-1][1], name, rest[:-1:2], None)
    result = rest[-1]
    return FunctionHeader(keyword[0], result.end, name, rest[:-3:2], result)


def param(problems: Problems, name: Name, colon: Token, type: TypeNode) -> Param:
    return Param(name.start, type.end, name, type)


def scalar_type(problems: Problems, word: Token) -> ScalarType:
    text = word[2]
    if text not in SCALARS and text:
        if text in ("tensor", "tile"):
            problems.append(
                SyntaxProblem("PH001", f"expected `<` and the element type after `{text}`", word[0], word[1],
                              help=f"write `{text}<f32>[N]`")
            )  # fmt: skip
        else:
            problems.append(_unknown_type(word, "unknown type"))
    return ScalarType(word[0], word[1], text)


def shaped_type(problems: Problems, word: Token, less: Token, scalar: Token, more: Token, *rest: Any) -> TypeNode:
    if scalar[2] not in SCALARS and scalar[2]:
        problems.append(_unknown_type(scalar, "unknown element type"))
    element = ScalarType(scalar[0], scalar[1], scalar[2])
    dims = rest[1:-1:2]
    if word[2] == "tensor":
        return TensorType(word[0], rest[-1][1], element, dims)
    if word[2] != "tile" and word[2]:
        near = nearest(word[2], ("tensor", "tile"))
        problems.append(
            SyntaxProblem("PH001", f"expected `tensor` or `tile`, found `{word[2]}`", word[0], word[1],
                          help=f"did you mean `{near}`?" if near else None)
        )  # fmt: skip
        if near == "tensor":
            return TensorType(word[0], rest[-1][1], element, dims)
    return TileType(word[0], rest[-1][1], element, dims)


def _unknown_type(word: Token, what: str) -> SyntaxProblem:
    meant = _FOREIGN_TYPES.get(word[2]) or nearest(word[2].lower(), (*SCALARS, "tensor", "tile"))
    return SyntaxProblem(
        "PH001",
        f"{what} `{word[2]}`",
        word[0],
        word[1],
        label="not a type",
        help=f"did you mean `{meant}`?" if meant else f"the element types are {', '.join(SCALARS)}",
    )


_FOREIGN_TYPES = {"float": "f32", "double": "f64", "half": "f16", "int": "i32", "float32": "f32", "float16": "f16",
                  "float64": "f64", "int32": "i32", "int64": "i64", "int8": "i8", "uint8": "u8", "bfloat16": "bf16",
                  "long": "i64"}  # fmt: skip


# --- statements -------------------------------------------------------------------------------------------------


def for_header(problems: Problems, keyword: Token, *rest: Any) -> ForHeader:
    unroll = None
    if isinstance(rest[0], tuple):  # `<` NAME INT `>`
        _expect(problems, rest[1], "unroll", "write `for<unroll 4> i in range(0, 8)`")
        unroll, rest = rest[2], rest[4:]
    variable, _, word, _, lo, _, hi, *rest_of = rest
    _expect(problems, word, "range", "a loop runs over `range(first, end)` or `range(first, end, step)`")
    step = rest_of[1] if len(rest_of) == 3 else None
    return ForHeader(keyword[0], rest_of[-1][1], variable, lo, hi, step, unroll)


def _expect(problems: Problems, word: Token, wanted: str, help: str) -> None:
    if word[2] not in (wanted, ""):
        problems.append(SyntaxProblem("PH001", f"expected `{wanted}`, found `{word[2]}`", word[0], word[1], help=help))


def condition_header(problems: Problems, keyword: Token, condition: Expr) -> ConditionHeader:
    return ConditionHeader(keyword[0], condition.end, condition)


def let(problems: Problems, keyword: Token, name: Name, *rest: Any) -> Let:
    given = rest[-1]
    return Let(keyword[0], given.end, name, rest[1] if len(rest) == 4 else None, given)


def var(problems: Problems, keyword: Token, name: Name, *rest: Any) -> Var:
    last = rest[-1]
    if len(rest) == 4:
        return Var(keyword[0], last.end, name, rest[1], last)
    if rest[0][2] == ":":
        return Var(keyword[0], last.end, name, last, None)
    return Var(keyword[0], last.end, name, None, last)


def assign(problems: Problems, target: Expr, operator: Token, given: Expr) -> Any:
    return Assign(target.start, given.end, target, operator[2] or "=", operator[0], given)  # type: ignore[arg-type]


def break_(problems: Problems, keyword: Token) -> Break:
    return Break(keyword[0], keyword[1])


def continue_(problems: Problems, keyword: Token) -> Continue:
    return Continue(keyword[0], keyword[1])


def return_(problems: Problems, keyword: Token, given: Expr | None = None) -> Return:
    return Return(keyword[0], given.end if given is not None else keyword[1], given)


def expression(problems: Problems, given: Expr) -> ExprStmt:
    return ExprStmt(given.start, given.end, given)


# --- expressions ------------------------------------------------------------------------------------------------


def binary(problems: Problems, left: Expr, operator: Token, right: Expr) -> Binary:
    return Binary(left.start, right.end, operator[2], operator[0], left, right)


def unary(problems: Problems, operator: Token, operand: Expr) -> Unary:
    return Unary(operator[0], operand.end, operator[2], operand)


def paren(problems: Problems, opening: Token, inner: Expr, closing: Token) -> Paren:
    return Paren(opening[0], closing[1], inner)


def call(problems: Problems, word: Token, opening: Token, *rest: Any) -> Call:
    return Call(word[0], rest[-1][1], Name(*word), rest[:-1:2])


def subscript(problems: Problems, base: Expr, opening: Token, *rest: Any) -> Subscript:
    return Subscript(base.start, rest[-1][1], base, rest[:-1:2])


def member(problems: Problems, base: Expr, dot: Token, word: Token) -> Member:
    return Member(base.start, word[1], base, Name(*word))


def missing(problems: Problems, place: Token) -> Missing:
    return Missing(place[0], place[1])


def point(problems: Problems, at: Expr) -> Index:
    return Point(at.start, at.end, at)


def span(problems: Problems, first: Expr, operator: Token, length: Expr) -> Index:
    return SpanOf(first.start, length.end, first, length)


def whole(problems: Problems, colon: Token) -> Index:
    return Range(colon[0], colon[1], None, None)


def range_(problems: Problems, lo: Expr, colon: Token, hi: Expr) -> Index:
    return Range(lo.start, hi.end, lo, hi)


def range_to(problems: Problems, colon: Token, hi: Expr) -> Index:
    return Range(colon[0], hi.end, None, hi)


def range_from(problems: Problems, lo: Expr, colon: Token) -> Index:
    return Range(lo.start, colon[1], lo, None)


def name(problems: Problems, word: Token) -> Name:
    return Name(*word)


def bool_(problems: Problems, word: Token) -> Bool:
    return Bool(word[0], word[1], word[2] == "true")


def number_problem(word: Token) -> SyntaxProblem | None:
    """What is wrong with a number, if anything is."""
    problems: Problems = []
    (int_ if not _FLOAT_START.match(word[2]) else float_)(problems, word)
    return problems[0] if problems else None


def int_(problems: Problems, word: Token) -> Int:
    start, end, text = word
    if len(text) < 19 and text.isdigit() and text.isascii():
        return Int(start, end, int(text))
    if not text:
        return Int(start, end, 0)
    good = _INT.match(text)
    if good is None or good.end() != len(text):
        problems.append(_malformed(word, good.end() if good else 0))
        return Int(start, end, 0)
    number = _LARGEST + 1 if len(text) > 100 else int(text, 16 if text[:2] in ("0x", "0X") else 10)
    if number > _LARGEST:
        problems.append(
            SyntaxProblem("PH005", f"{_shortened(text)} does not fit in 64 bits", start, end,
                          label="out of range", help=f"the largest integer is {_LARGEST}")
        )  # fmt: skip
        number = _LARGEST
    return Int(start, end, number)


def float_(problems: Problems, word: Token) -> Float:
    start, end, text = word
    good = _FLOAT.match(text)
    if good is None or good.end() != len(text):
        problems.append(_malformed(word, good.end() if good else 0))
        return Float(start, end, 0.0, text)
    number = float(text)
    if number in (float("inf"),):
        problems.append(
            SyntaxProblem("PH005", f"{_shortened(text)} is too large for a float", start, end, label="out of range",
                          help="the largest f64 is about 1.8e308")
        )  # fmt: skip
    return Float(start, end, number, text)


def _malformed(word: Token, good: int) -> SyntaxProblem:
    start, end, text = word
    stray = text[good : good + 1] or text[-1:]
    at = min(start + good, end - 1)
    if text[:2] in ("0x", "0X"):
        help = "a hexadecimal number is `0x` and digits `0`-`9`, `a`-`f`"
        what = f"`{stray}` is not part of a hexadecimal number" if len(text) > 2 else "`0x` without digits"
    elif stray == "_":
        help = "put `_` between two digits only"
        what = "misplaced `_` in a number"
    else:
        what = f"`{stray}` is glued to a number"
        if text[good:] in ("f", "F", "h", "l", "L", "u", "U", "ul", "ll", "i", "d"):
            help = "a number has no suffix: `1.0` is an f32, and `f16(1.0)` converts"
        elif text[:2] in ("0b", "0B", "0o", "0O"):
            help = "a number is decimal or, with `0x`, hexadecimal"
        else:
            help = f"put a space or an operator before `{stray}`; a name begins with a letter or `_`"
    return SyntaxProblem("PH005", what, at, at + 1, label="the number ends here", help=help)


def _shortened(text: str) -> str:
    return f"`{text}`" if len(text) <= 40 else f"`{text[:20]}...{text[-8:]}` ({len(text)} characters)"


RULES: dict[str, Callable[..., Any]] = {
    "attribute": attribute, "search_argument": search_argument, "keyword_argument": keyword_argument,
    "plain_argument": plain_argument, "kernel_header": kernel_header, "function_header": function_header,
    "param": param, "scalar_type": scalar_type, "shaped_type": shaped_type, "for_header": for_header,
    "while_header": condition_header, "if_header": condition_header, "let": let, "var": var, "assign": assign,
    "break_": break_, "continue_": continue_, "return_": return_, "expression": expression, "binary": binary,
    "comparison": binary, "unary": unary, "paren": paren, "call": call, "subscript": subscript, "member": member,
    "missing": missing, "point": point, "span": span, "whole": whole, "range_": range_, "range_to": range_to,
    "range_from": range_from, "name": name, "int": int_, "float_": float_, "bool_": bool_,
}  # fmt: skip
