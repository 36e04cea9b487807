"""What a store takes: types converted as the language says, shapes equal, or a scalar that fills."""

from __future__ import annotations

from phobos.language.scalars import INTEGERS, wrap
from phobos.semantics import ir, shapes
from phobos.semantics.build_context import Build
from phobos.semantics.build_operators import (
    convert,
    stored,
)
from phobos.semantics.types import element, shape_text
from phobos.syntax import tree


def scalar_stored(
    b: Build, type_: ir.ScalarT, wraps: str | None, value: ir.Expression, where: tree.Node, what: str
) -> ir.Expression | None:
    """A scalar as a variable takes it; one with an integer annotation wraps to its width."""
    if wraps is None or wraps not in INTEGERS:
        return stored(b, value, type_.dtype, where, what, element_of_memory=False)
    if element(value.type) in INTEGERS and type_.dtype == "index" and element(value.type) == "index":
        if wraps == "i64":
            return value
        number = b.poly(value).constant
        if number is not None and isinstance(value, ir.IntLiteral) and _fits(number, wraps):
            return value
        return convert(convert(value, wraps), "index")
    return stored(b, value, type_.dtype, where, what, element_of_memory=False)


def _fits(number: int, dtype: str) -> bool:
    return wrap(number, dtype) == number


def fill(b: Build, type_: ir.TileT, value: ir.Expression, where: tree.Node, what: str) -> ir.Expression | None:
    """A value for all of a tile: a tile of the same shape, or a scalar that fills."""
    if isinstance(value.type, ir.TileT) and not same_shape(b, type_.shape, value.type.shape, where):
        return None
    return stored(b, value, type_.dtype, where, what, element_of_memory=True)


def same_shape(b: Build, target: shapes.Shape, source: shapes.Shape, where: tree.Node) -> bool:
    if len(target) == len(source) and all(
        shapes.same(x, y) or (b.alone and shapes.may_agree(x, y)) for x, y in zip(target, source, strict=True)
    ):
        return True
    broadcasts = shapes.broadcast(target, source) == target
    b.report(
        "PH105",
        f"a value of shape {shape_text(source)} is stored where {shape_text(target)} is expected",
        where,
        f"{shape_text(source)}, not {shape_text(target)}",
        help="a store does not broadcast: combine it with a tile of the full shape first"
        if broadcasts
        else "a whole store needs equal shapes, or a scalar",
    )
    return False
