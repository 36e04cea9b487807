"""Types in words, and the small questions about them that builder, hover and rules ask alike."""

from __future__ import annotations

from phobos.language.scalars import FLOATS, INTEGERS, REAL_INTEGERS
from phobos.semantics import ir
from phobos.semantics.poly import Poly

INDEX = ir.ScalarT("index")
BOOL = ir.ScalarT("bool")
F32 = ir.ScalarT("f32")
I32 = ir.ScalarT("i32")
ERROR = ir.ErrorT()

_SCALARS = {"index": INDEX, "bool": BOOL, "f32": F32, "i32": I32}


def scalar_type(dtype: str) -> ir.ScalarT:
    known = _SCALARS.get(dtype)
    if known is None:
        known = _SCALARS[dtype] = ir.ScalarT(dtype)
    return known


def length_text(length: int | Poly) -> str:
    """A length as a user would write it."""
    return str(length) if isinstance(length, int) else poly_text(length)


def shape_text(shape: tuple[int | Poly, ...]) -> str:
    """`[64, N - 4]`"""
    return "[" + ", ".join(length_text(length) for length in shape) + "]"


def type_text(type_: ir.Type) -> str:
    """`f32`, `real i32`, `tile<f32>[64, 64]`; `?` for what was already reported."""
    if isinstance(type_, ir.ScalarT):
        return f"real {type_.dtype}" if type_.dtype in REAL_INTEGERS else type_.dtype
    if isinstance(type_, ir.TileT):
        return f"tile<{type_.dtype}>{shape_text(type_.shape)}"
    return "?"


def tensor_text(tensor: ir.Tensor) -> str:
    """`tensor<f32>[M, 64]`"""
    return f"tensor<{tensor.dtype}>[{', '.join(extent_text(extent) for extent in tensor.extents)}]"


def extent_text(extent: int | ir.Dim | ir.Constant) -> str:
    return str(extent) if isinstance(extent, int) else extent.name


def is_float(dtype: str) -> bool:
    return dtype in FLOATS


def is_integer(dtype: str) -> bool:
    return dtype in INTEGERS


def is_index(type_: ir.Type) -> bool:
    return isinstance(type_, ir.ScalarT) and type_.dtype == "index"


def is_real_integer(type_: ir.Type) -> bool:
    """A scalar integer that is not an index: an atomic's result, `i32(x)`."""
    return isinstance(type_, ir.ScalarT) and type_.dtype in REAL_INTEGERS


def element(type_: ir.Type) -> str | None:
    """The element type of a scalar or tile, None for an error."""
    return None if isinstance(type_, ir.ErrorT) else type_.dtype


_AXES = "xyz"


def poly_text(poly: Poly) -> str:
    """A polynomial as a user would write it: `N - 64`, `ctx.block.x * 64 + 8`."""
    positive: list[str] = []
    negative: list[str] = []
    for monomial, c in sorted(poly.terms.items(), key=lambda item: (not item[0], repr(item[0]))):
        atoms = " * ".join(atom_text(atom) for atom in monomial)
        size = abs(c)
        text = str(size) if not atoms else atoms if size == 1 else f"{atoms} * {size}"
        (positive if c > 0 else negative).append(text)
    if not positive and not negative:
        return "0"
    first = " + ".join(positive) if positive else "-" + negative.pop(0)
    return " - ".join([first, *negative])


def atom_text(atom: tuple[object, ...]) -> str:
    match atom:
        case ("dim" | "param" | "const", name, *_):
            return str(name)
        case ("block", int() as axis):
            return f"ctx.block.{_AXES[axis]}"
        case ("blocks", int() as axis):
            return f"ctx.blocks.{_AXES[axis]}"
        case ("loop" | "var", _, str() as name, *_):
            return name
        case ("div", tuple() as left, tuple() as right):
            return f"({poly_text(Poly(dict(left)))}) / ({poly_text(Poly(dict(right)))})"
        case ("mod", tuple() as left, tuple() as right):
            return f"({poly_text(Poly(dict(left)))}) % ({poly_text(Poly(dict(right)))})"
    return "?"
