"""C++ spelling of types, numbers, conversions and operators; names that no text of a user can break out of."""

from __future__ import annotations

import math
import re
import struct

from phobos.language.scalars import FLOATS, scalar

VALUES = {
    "f16": "float", "bf16": "float", "f32": "float", "f64": "double",
    "i8": "int", "u8": "int", "i32": "int", "i64": "long long", "index": "long long", "bool": "bool",
}  # fmt: skip
"""The type in which a value of each element type is computed. f16 and bf16 are rounded after every operation."""

CELLS = {
    "f16": "ph_f16", "bf16": "ph_bf16", "f32": "float", "f64": "double",
    "i8": "signed char", "u8": "unsigned char", "i32": "int", "i64": "long long", "index": "long long",
    "bool": "unsigned char",
}  # fmt: skip
"""The type of a cell in memory."""


class Names:
    """Identifiers for C++: a readable part of what the user wrote, and a number that makes each its own."""

    def __init__(self) -> None:
        self._count: dict[str, int] = {}

    def fresh(self, wish: str) -> str:
        stem = re.sub(r"[^A-Za-z0-9_]", "", wish) or "t"
        if not stem[0].isalpha():
            stem = "t" + stem
        self._count[stem] = number = self._count.get(stem, 0) + 1
        return f"{stem}_{number}"


def kernel_symbol(name: str) -> str:
    """The function's name in the module."""
    return "phk_" + re.sub(r"[^A-Za-z0-9_]", "_", name)


def file_literal(path: str) -> str:
    """A path as a string literal of `#line`: nothing in it can end the literal or the line."""
    return '"' + "".join(c if c.isprintable() and c not in '"\\?' and ord(c) < 127 else "_" for c in path) + '"'


def integer(number: int) -> str:
    """An integer literal, of 64 bits where 32 could be too few."""
    if -(2**31) < number < 2**31:
        return f"{number}LL" if abs(number) > 2**30 else str(number)
    if number == -(2**63):
        return "(-9223372036854775807LL - 1)"
    return f"{number}LL"


def index(number: int) -> str:
    return "(-9223372036854775807LL - 1)" if number == -(2**63) else f"{number}LL"


def real(number: float, dtype: str) -> str:
    """A float literal, rounded to its type."""
    suffix = "" if dtype == "f64" else "f"
    if suffix and abs(number) < 3.4028235677973366e38:
        (number,) = struct.unpack("f", struct.pack("f", number))  # the compiler refuses what is too small for its type
    if math.isnan(number):
        return "__int_as_float(0x7fffffff)" if suffix else "__longlong_as_double(0x7fffffffffffffffLL)"
    if math.isinf(number) or (suffix and abs(number) >= 3.4028235677973366e38):
        text = "__int_as_float(0x7f800000)" if suffix else "__longlong_as_double(0x7ff0000000000000LL)"
        return f"(-{text})" if number < 0 else text
    text = _shortest(number) if suffix else repr(float(number))
    return (text if "." in text or "e" in text else text + ".0") + suffix


def _shortest(number: float) -> str:
    """The shortest decimal that is this number in f32."""
    held = struct.pack("f", number)
    return next(t for t in (f"{number:.{digits}g}" for digits in range(1, 10)) if struct.pack("f", float(t)) == held)


def convert(text: str, source: str, target: str) -> str:
    """A value of type `source` as a value of type `target`."""
    if source == target or {source, target} == {"i64", "index"}:
        return text
    if target == "bool":
        return f"({text} != 0)"
    if target in FLOATS:
        if target == "f64":
            return f"(double)({bare(text)})"
        if source in ("f16", "bf16") and target == "f32":
            return text
        if target == "f32":
            return f"(float)({bare(text)})"
        if target == "f16":
            return f"ph_round_f16({bare(text) if source not in ('bool', 'i8', 'u8') else f'(int)({text})'})"
        narrowed = f"ph_odd<{VALUES[source]}>" if source in ("f64", "i32", "i64", "index") else "(float)"
        return f"ph_round_bf16({narrowed}({bare(text)}))"
    if source in FLOATS:
        if target in ("i64", "index"):
            return f"ph_saturate_i64({bare(text)})"
        if target == "i32" and source != "f64":
            return f"ph_saturate_i32({bare(text)})"
        kind = scalar(target)
        return f"(int)ph_saturate({bare(text)}, {kind.low}.0, {kind.high}.0)"
    if target in ("i64", "index"):
        return f"(long long)({bare(text)})"
    if target == "i32":
        return f"(int)({bare(text)})"
    return f"(int)({CELLS[target]})({bare(text)})"


def rounded(text: str, dtype: str) -> str:
    """The result of arithmetic as its type holds it."""
    if dtype == "f16":
        return f"ph_round_f16({bare(text)})"
    if dtype == "bf16":
        return f"ph_round_bf16({bare(text)})"
    if dtype in ("i8", "u8"):
        return f"(int)({CELLS[dtype]})({bare(text)})"
    return text


def from_cell(text: str, dtype: str) -> str:
    """A cell's value."""
    if dtype == "f16":
        return f"ph_f16_to({text})"
    if dtype == "bf16":
        return f"ph_bf16_to({text})"
    if dtype == "bool":
        return f"({text} != 0)"
    return f"(int){text}" if dtype in ("i8", "u8") else text


def to_cell(text: str, dtype: str) -> str:
    """A value as a cell holds it."""
    if dtype in ("f16", "bf16"):
        return f"ph_to_{dtype}({bare(_unrounded(text, dtype))})"
    return f"({CELLS[dtype]})({bare(text)})" if dtype in ("i8", "u8", "bool") else text


def _unrounded(text: str, dtype: str) -> str:
    """Without the rounding that this text ends with: the cell rounds, and once is enough."""
    return _inside(text, f"ph_round_{dtype}(")


def bare(text: str) -> str:
    """Without the parentheses around the whole of it, for a place that needs none."""
    return _inside(text, "(")


def _inside(text: str, head: str) -> str:
    """What stands between `head`, which opens a parenthesis, and its end, if that is the end of the text."""
    if not (text.startswith(head) and text.endswith(")")):
        return text
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and character == ")":
            return text[len(head) : -1] if at == len(text) - 1 else text
    return text


def plus(*terms: str | int) -> str:
    """A sum of indices: numbers among them are added up."""
    number = sum(int(term) for term in terms if _is_number(term))
    texts = [str(term) for term in terms if not _is_number(term)]
    return " + ".join([*texts, str(number)] if number or not texts else texts)


def times(term: str | int, factor: str | int) -> str:
    """A product of indices; `term` binds as tightly as a product does, or stands in parentheses."""
    if _is_number(term) and _is_number(factor):
        return str(int(term) * int(factor))
    if term in (0, "0") or factor in (0, "0"):
        return "0"
    return str(term) if factor in (1, "1") else f"{term} * {factor}"


def factor(text: str) -> str:
    """An index as a product takes it: a sum, or what else has several parts, in parentheses."""
    return text if re.fullmatch(r"\w*", text) or bare(text) != text else f"({text})"


def shared(kind: str, offset: int) -> str:
    """What lies so many bytes into a CTA's shared memory, as a `kind*`."""
    return f"({kind}*)(shared + {offset})" if offset else f"({kind}*)shared"


def _is_number(term: str | int) -> bool:
    return isinstance(term, int) or term.isdecimal()


def empty_cell(dtype: str) -> str:
    """What a masked cell reads as."""
    return f"{CELLS[dtype]}{{}}" if dtype in ("f16", "bf16") else f"({CELLS[dtype]})0"


def zero(dtype: str) -> str:
    """Nought as a value of an element type."""
    if dtype == "bool":
        return "false"
    return "0.0" if dtype == "f64" else "0.0f" if dtype in FLOATS else "0LL" if dtype in ("i64", "index") else "0"


def multiply_add(a: str, b: str, c: str, dtype: str) -> str:
    """a * b + c, rounded once where `dtype` is f32 or f64.

    The compiler is told to contract nothing by itself: what it would do hangs on the code around it, and a kernel must
    give the same bits in every loop over its blocks.
    """
    if dtype == "f32":
        return f"fmaf({bare(a)}, {bare(b)}, {bare(c)})"
    return f"fma({bare(a)}, {bare(b)}, {bare(c)})" if dtype == "f64" else f"({a} * {b} + {c})"


def binary(op: str, left: str, right: str, dtype: str) -> str:
    """Arithmetic on two values of `dtype`; comparisons give bool."""
    if op in ("==", "!=", "<", "<=", ">", ">=", "&&", "||"):
        return f"({left} {op} {right})"
    if op in ("&", "|", "^"):
        return f"(bool)({left} {op} {right})" if dtype == "bool" else rounded(f"({left} {op} {right})", dtype)
    if op == "<<":
        return rounded(f"ph_shift_left<{VALUES[dtype]}>({bare(left)}, {bare(right)})", dtype)
    if op == ">>":
        return rounded(f"ph_shift_right<{VALUES[dtype]}>({bare(left)}, {bare(right)})", dtype)
    if dtype in FLOATS:
        if op == "%":
            function = "fmod" if dtype == "f64" else "fmodf"
            return rounded(f"{function}({bare(left)}, {bare(right)})", dtype)
        return rounded(f"({left} {op} {right})", dtype)
    kind = VALUES[dtype]
    if op == "/":
        return rounded(f"ph_divide<{kind}>({bare(left)}, {bare(right)})", dtype)
    if op == "%":
        return rounded(f"ph_remainder<{kind}>({bare(left)}, {bare(right)})", dtype)
    if dtype != "index":  # wraps, without the undefined overflow of C++; an index is as far from it as its array is
        whole = "unsigned" if kind == "int" else "unsigned long long"
        return rounded(f"({kind})(({whole})({bare(left)}) {op} ({whole})({bare(right)}))", dtype)
    return f"({left} {op} {right})"
