"""What a random kernel is, with its numbers; and what the writer knows of the names in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy

from tests.codegen.compare import TYPES

FLOATS = ("f16", "bf16", "f32", "f64")
INTEGERS = ("i8", "u8", "i32", "i64")
NARROWER = {"f32": ("f16", "bf16"), "f64": ("f32", "f16"), "i32": ("i8", "u8"), "i64": ("i32", "i8", "u8")}
DIGITS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
THREADS = (32, 64, 64, 96, 128, 128, 160, 192, 224, 256)
ROWS = (1, 2, 3, 4, 5, 7, 8, 16, 16, 17, 32)
COLUMNS = (1, 2, 3, 4, 5, 8, 12, 16, 16, 20, 31, 32, 32, 33, 64)
LENGTHS = (1, 5, 16, 31, 32, 33, 48, 64, 64, 96, 100, 128, 200)
TABLE = 16  # cells of the table that indices come from
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Sample:
    """A kernel with its numbers. `special`: float tensors hold NaN, infinities and negative zeros too. `specialised`:
    it is known of extents what they are whole multiples of. `workers` share the blocks (0: a worker each)."""

    seed: int
    text: str
    sizes: Mapping[str, int]
    params: Mapping[str, float]
    grid: int
    special: bool
    arch: str
    vectors: bool
    specialised: bool
    workers: int

    def array(self, name: str, dtype: str, shape: Shape) -> numpy.ndarray:
        """What a tensor holds: it depends on its name and the seed alone, so that a smaller kernel sees the same."""
        random_ = numpy.random.default_rng([self.seed, *name.encode()])
        kind = TYPES[dtype]
        if name in ("BAR", "CNT"):
            return numpy.zeros(shape, kind)
        if name == "TAB":
            return random_.integers(0, TABLE, shape).astype(kind)
        if dtype == "bool":
            return random_.integers(0, 2, shape).astype(kind)
        if dtype in INTEGERS:
            info = numpy.iinfo(kind)
            small = random_.integers(0 if dtype == "u8" else -20, 21, shape)
            edges = random_.choice(numpy.array([info.min, info.max, info.max - 1, -1 if info.min else 1], kind), shape)
            return numpy.where(random_.random(shape) < 0.1, edges, small.astype(kind)).astype(kind)
        cells = random_.integers(-14, 15, shape) / 2
        if self.special:
            odd = random_.choice(numpy.array([numpy.nan, numpy.inf, -numpy.inf, -0.0]), shape)
            cells = numpy.where(random_.random(shape) < 0.06, odd, cells)
        return cells.astype(kind)


@dataclass(frozen=True)
class Bound:
    """Of a float: no more than `most`, and a multiple of 2 to the power of `unit`."""

    most: float
    unit: int

    def fits(self, dtype: str) -> bool:
        return self.most / 2.0**self.unit <= 2.0 ** DIGITS[dtype] and (dtype != "f16" or self.most <= 60000)


PLAIN = Bound(8, -1)


@dataclass(frozen=True)
class Of:
    """An expression: its text and, of floats, how large it may be."""

    text: str
    bound: Bound = PLAIN


@dataclass(frozen=True)
class Name:
    """A tile, view or scalar in scope. `changes`: it may be assigned to."""

    name: str
    dtype: str
    shape: Shape
    changes: bool = False
    view: bool = False
    bound: Bound = PLAIN
    flat: bool = False


@dataclass
class Tensor:
    """`own`: in this phase a block reads and writes its own stretch of rows (`stretch` of them from `base` on);
    otherwise all read all of it, and nobody writes."""

    name: str
    dtype: str
    dims: tuple[str, ...]
    extents: Shape
    own: bool = True
    base: str = "p"
    stretch: int = 0


@dataclass
class Scope:
    names: list[Name] = field(default_factory=list)
    indices: list[tuple[str, int, int]] = field(default_factory=list)  # index values and where they lie


class Stuck(Exception):
    """There is nothing of that shape and type in sight."""


def tile_type(dtype: str, shape: Shape) -> str:
    return f"tile<{dtype}>[{', '.join(map(str, shape))}]"


def larger(one: Of, other: Of) -> Bound:
    return Bound(max(one.bound.most, other.bound.most), min(one.bound.unit, other.bound.unit))


def result_of(sign: str, one: Bound, other: Bound) -> Bound:
    if sign == "*":
        return Bound(one.most * other.most, one.unit + other.unit)
    return Bound(one.most + other.most, min(one.unit, other.unit))


def is_slice(text: str) -> bool:
    """Whether an expression is a slice and no more: `let` makes a view of it."""
    deep = 0
    for at, letter in enumerate(text):
        deep += letter == "["
        deep -= letter == "]"
        if not deep and at and not (letter.isalnum() or letter in "_]"):
            return False
    return text.endswith("]")
