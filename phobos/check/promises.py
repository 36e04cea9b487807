"""Spans on dimensions that `@aligned` speaks of, for the rules PH304 to PH306 and PH309."""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.walk import accesses_of, covering, places_of
from phobos.diagnostic import Span
from phobos.semantics import ir
from phobos.semantics.masks import Mask, masks_of
from phobos.semantics.poly import Poly
from phobos.semantics.program import Program, Promise
from phobos.value import value


@value
class SpanOn:
    """One slice on a promised dimension. `place` is where it is written."""

    access: ir.Access
    sub: ir.SliceSub
    mask: Mask
    stored: bool
    place: Span


def named(extent: int | ir.Dim | ir.Constant, name: str) -> bool:
    return not isinstance(extent, int) and extent.name == name


def spans_on(program: Program, promise: Promise) -> Iterator[SpanOn]:
    """Every slice of a tensor on the dimension of a promise, in the order of the text, stores before loads."""
    masks, accesses = masks_of(program), accesses_of(program)
    seen: set[ir.Access] = set()
    for place in places_of(program):
        for access, stored in accesses[place.statement]:
            if access in seen or access not in masks or not isinstance(access.base, ir.Tensor):
                continue
            seen.add(access)
            for axis, sub in enumerate(access.subs):
                mask = masks[access][axis]
                if isinstance(sub, ir.SliceSub) and mask is not None and named(access.base.extents[axis], promise.dim):
                    yield SpanOn(access, sub, mask, stored, covering(sub.first.span, sub.length.span, access.span))


def starts_off(first: Poly, length: int) -> bool:
    """Whether some block or round provably starts off a multiple of `length`."""
    off = False
    for monomial, c in first.terms.items():
        if any(atom[0] not in ("block", "blocks", "round") for atom in monomial):
            return False
        off = off or c % length != 0
    return off
