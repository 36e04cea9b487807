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
    text = repr(float(number))
    return (text if "." in text or "e" in text else text + ".0") + suffix


def convert(text: str, source: str, target: str) -> str:
    """A value of type `source` as a value of type `target`."""
    if source == target or {source, target} == {"i64", "index"}:
        return text
    if target == "bool":
        return f"({text} != 0)"
    if target in FLOATS:
        if target == "f64":
            return f"(double)({text})"
        if source in ("f16", "bf16") and target == "f32":
            return text
        if target == "f32":
            return f"(float)({text})"
        if target == "f16":
            return f"ph_round_f16({text if source not in ('bool', 'i8', 'u8') else f'(int)({text})'})"
        return f"ph_round_bf16((float)({text}))"
    if source in FLOATS:
        if target in ("i64", "index"):
            return f"ph_saturate_i64({text})"
        if target == "i32" and source != "f64":
            return f"ph_saturate_i32({text})"
        kind = scalar(target)
        return f"(int)ph_saturate({text}, {kind.low}.0, {kind.high}.0)"
    if target in ("i64", "index"):
        return f"(long long)({text})"
    if target == "i32":
        return f"(int)({text})"
    return f"(int)({CELLS[target]})({text})"


def rounded(text: str, dtype: str) -> str:
    """The result of arithmetic as its type holds it."""
    if dtype == "f16":
        return f"ph_round_f16({text})"
    if dtype == "bf16":
        return f"ph_round_bf16({text})"
    if dtype in ("i8", "u8"):
        return f"(int)({CELLS[dtype]})({text})"
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
        return f"ph_to_{dtype}({_unrounded(text, dtype)})"
    return f"({CELLS[dtype]})({text})" if dtype in ("i8", "u8", "bool") else text


def _unrounded(text: str, dtype: str) -> str:
    """Without the rounding that this text ends with: the cell rounds, and once is enough."""
    head = f"ph_round_{dtype}("
    if not (text.startswith(head) and text.endswith(")")):
        return text
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and character == ")":
            return text[len(head) : -1] if at == len(text) - 1 else text
    return text


def empty_cell(dtype: str) -> str:
    """What a masked cell reads as."""
    return f"{CELLS[dtype]}{{}}" if dtype in ("f16", "bf16") else f"({CELLS[dtype]})0"


def zero(dtype: str) -> str:
    if dtype == "bool":
        return "false"
    return "0.0" if dtype == "f64" else "0.0f" if dtype in FLOATS else "0LL" if dtype in ("i64", "index") else "0"


def multiply_add(a: str, b: str, c: str, dtype: str) -> str:
    """a * b + c, rounded once where `dtype` is f32 or f64.

    The compiler is told to contract nothing by itself: what it would do hangs on the code around it, and a kernel must
    give the same bits in every loop over its blocks.
    """
    if dtype == "f32":
        return f"fmaf({a}, {b}, {c})"
    return f"fma({a}, {b}, {c})" if dtype == "f64" else f"({a} * {b} + {c})"


def binary(op: str, left: str, right: str, dtype: str) -> str:
    """Arithmetic on two values of `dtype`; comparisons give bool."""
    if op in ("==", "!=", "<", "<=", ">", ">=", "&&", "||"):
        return f"({left} {op} {right})"
    if op in ("&", "|", "^"):
        return f"(bool)({left} {op} {right})" if dtype == "bool" else rounded(f"({left} {op} {right})", dtype)
    if op == "<<":
        return rounded(f"ph_shift_left<{VALUES[dtype]}>({left}, {right})", dtype)
    if op == ">>":
        return rounded(f"ph_shift_right<{VALUES[dtype]}>({left}, {right})", dtype)
    if dtype in FLOATS:
        if op == "%":
            return rounded(f"fmod({left}, {right})" if dtype == "f64" else f"fmodf({left}, {right})", dtype)
        return rounded(f"({left} {op} {right})", dtype)
    kind = VALUES[dtype]
    if op == "/":
        return rounded(f"ph_divide<{kind}>({left}, {right})", dtype)
    if op == "%":
        return rounded(f"ph_remainder<{kind}>({left}, {right})", dtype)
    if kind == "int":  # wraps, without the undefined overflow of C++
        return rounded(f"(int)((unsigned)({left}) {op} (unsigned)({right}))", dtype)
    return f"({left} {op} {right})"
