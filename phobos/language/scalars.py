"""The scalar types: how wide, of what kind, which two join to which, and what a store may convert.

Besides the types that can be written there is `index`, the 64-bit signed integer of positions and lengths. It has
no name in the language; messages call it by that word.
"""

from __future__ import annotations

from typing import Literal

from phobos.value import value

Kind = Literal["float", "integer", "bool"]


@value
class Scalar:
    """One scalar type. `bits` is its width in memory; `low` and `high` bound an integer's values."""

    name: str
    kind: Kind
    bits: int
    level: str
    documentation: str
    low: int = 0
    high: int = 0

    @property
    def bytes(self) -> int:
        return max(1, self.bits // 8)


SCALARS: dict[str, Scalar] = {
    s.name: s
    for s in (
        Scalar("f16", "float", 16, "0.1", "IEEE half precision: 11 significant bits, up to 65504."),
        Scalar("bf16", "float", 16, "0.1", "Brain float: the range of f32 with 8 significant bits."),
        Scalar("f32", "float", 32, "0.1", "IEEE single precision. Every float literal has this type."),
        Scalar("f64", "float", 64, "0.1", "IEEE double precision."),
        Scalar("i8", "integer", 8, "0.1", "8-bit signed integer.", -(2**7), 2**7 - 1),
        Scalar("u8", "integer", 8, "0.2", "8-bit unsigned integer.", 0, 2**8 - 1),
        Scalar("i32", "integer", 32, "0.1", "32-bit signed integer.", -(2**31), 2**31 - 1),
        Scalar("i64", "integer", 64, "0.1", "64-bit signed integer.", -(2**63), 2**63 - 1),
        Scalar("bool", "bool", 8, "0.1", "True or false. Only `== != ! && ||` take it."),
    )
}
"""The types that can be written, by name."""

INDEX = Scalar(
    "index",
    "integer",
    64,
    "0.1",
    "64-bit signed integer of positions and lengths: literals, extents, constants, block indices, loop variables "
    "and elements read from integer tensors.",
    -(2**63),
    2**63 - 1,
)

_ALL = {**SCALARS, "index": INDEX}

FLOATS = frozenset(n for n, s in SCALARS.items() if s.kind == "float")
INTEGERS = frozenset(n for n, s in _ALL.items() if s.kind == "integer")  # "index" included
REAL_INTEGERS = INTEGERS - {"index"}

_WIDTH = {"i8": 1, "u8": 1, "i32": 2, "i64": 3, "index": 4}


def scalar(name: str) -> Scalar:
    """The entry of a type name, `index` included. Raises KeyError for another name."""
    return _ALL[name]


def join(left: str, right: str) -> str | None:
    """The type in which two element types compute together, or None where they do not join.

    Floats join to the wider, f16 and bf16 to f32; integers to the wider, i8 and u8 to i32. An integer never joins a
    float, and bool joins only itself. (Whether a real integer may stand beside an index is not asked here.)
    """
    if left == right:
        return left
    if left in FLOATS and right in FLOATS:
        if SCALARS[left].bits == SCALARS[right].bits:
            return "f32"
        return left if SCALARS[left].bits > SCALARS[right].bits else right
    if left in INTEGERS and right in INTEGERS:
        if _WIDTH[left] == _WIDTH[right]:
            return "i32"
        return left if _WIDTH[left] > _WIDTH[right] else right
    return None


def stores(source: str, target: str) -> bool:
    """Whether a value of `source` may be stored where `target` is expected, converted on the way.

    Float to float and integer to integer or float convert; a float never becomes an integer by itself; bool only
    stores to bool.
    """
    if source == target:
        return True
    if source in FLOATS:
        return target in FLOATS
    if source in INTEGERS:
        return target in INTEGERS or target in FLOATS
    return False


def wrap(number: int, name: str) -> int:
    """An integer as a type of that name holds it (two's complement)."""
    kind = _ALL[name]
    span = 1 << kind.bits
    number &= span - 1
    return number - span if number > kind.high else number
