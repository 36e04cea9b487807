"""What arithmetic, functions and tiles give in a rehearsed launch: Python's numbers, wrapped where their type ends."""

from __future__ import annotations

import struct
from collections.abc import Callable
from math import exp, isfinite, isnan, log, sqrt, tanh
from operator import eq, ge, gt, le, lt, ne, neg

from phobos.value import value

WIDTHS = {"i8": (-1 << 7, 8), "u8": (0, 8), "i32": (-1 << 31, 32), "i64": (-1 << 63, 64), "index": (-1 << 63, 64)}
FLOATS = {"f16": "e", "f32": "f", "f64": "d", "bf16": "f"}

Scalar = int | float | None  # None: not known


@value
class Tile:
    """`cells` row by row."""

    shape: tuple[int, ...]
    cells: list[Scalar]


Value = Scalar | Tile


class Stop(Exception):
    """The rehearsal cannot go on: too long, or what comes next is not known."""


class Refused(Stop):
    """A divisor is 0."""


def kept(number: int | float, kind: str) -> object:
    """A number as a cell of that type keeps it, not a number made equal to itself."""
    if kind in WIDTHS:
        return wrapped(int(number), kind)
    try:
        return struct.pack(FLOATS.get(kind, "d"), number)
    except OverflowError:
        return "infinite", number > 0


def _of_width(number: int | float, kind: str) -> int | float:
    """What arithmetic gives: a whole number wraps where its type ends, and so cannot grow without end."""
    if isinstance(number, float) or (-1 << 31 <= number < 1 << 31 and kind not in ("i8", "u8")):
        return number
    return wrapped(number, kind if kind in WIDTHS else "index")


def wrapped(number: int, kind: str) -> int:
    low, bits = WIDTHS[kind]
    return (number - low) % (1 << bits) + low


def demand_fits(tile: Tile, shape: tuple[int, ...]) -> None:
    """Raise Stop where some length is neither that of the shape nor one: at such numbers the launch is refused."""
    if not all(length in (1, wanted) for length, wanted in zip(tile.shape, shape, strict=True)):
        raise Stop


def place_in(at: tuple[int, ...], shape: tuple[int, ...]) -> int:
    flat = 0
    for index, length in zip(at, shape):
        flat = flat * length + (index if length > 1 else 0)
    return flat


def converted(number: int | float, dtype: str) -> Scalar:
    if dtype in FLOATS:
        return float(number)
    if dtype not in WIDTHS:
        return number
    if not isinstance(number, float):
        return wrapped(number, dtype)
    low, bits = WIDTHS[dtype]
    high = low + (1 << bits) - 1
    if isnan(number):
        return 0
    return low if number <= low else high if number >= high else int(number)


def computed(op: str, x: int | float, y: int | float, dtype: str) -> Scalar:
    match op:
        case "+":
            return _of_width(x + y, dtype)
        case "-":
            return _of_width(x - y, dtype)
        case "*":
            return _of_width(x * y, dtype)
        case "/" | "%":
            if isinstance(x, float) or isinstance(y, float):
                return x / y if y else None
            if not y:
                raise Refused
            quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
            return quotient if op == "/" else x - quotient * y
        case "<" | "<=" | ">" | ">=" | "==" | "!=":
            return int(COMPARISONS[op](x, y))
        case "&" | "&&":
            return int(x) & int(y)
        case "|" | "||":
            return int(x) | int(y)
        case "^":
            return int(x) ^ int(y)
        case "<<" if 0 <= y < 64:
            return wrapped(int(x) << int(y), dtype if dtype in WIDTHS else "index")
        case ">>" if 0 <= y < 64:
            return int(x) >> int(y)
    return None


UNARY: dict[str, Callable[[int | float], Scalar]] = {"-": neg, "!": lambda x: int(not x), "~": lambda x: ~int(x)}
COMPARISONS: dict[str, Callable[[int | float, int | float], bool]] = {
    "<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne,
}  # fmt: skip
ELEMENTWISE: dict[str, Callable[..., Scalar]] = {
    "exp": exp,
    "log": lambda x: log(x) if x > 0 else None,
    "sqrt": lambda x: sqrt(x) if x >= 0 else None,
    "tanh": tanh,
    "round": lambda x: float(round(x)) if isfinite(x) else x,
    "pow": lambda x, y: x**y if x > 0 else None,
    "tmax": lambda x, y: x if x > y else y,
    "tmin": lambda x, y: x if x < y else y,
    "where": lambda c, x, y: x if c else y,
    "argsel": lambda va, vb, ia, ib: ia if va >= vb else ib,
}
