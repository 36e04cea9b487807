"""The lengths of tiles along the symbols of a kernel: by what a size must be divided to keep what its borders are."""

from __future__ import annotations

from phobos.semantics import ir
from phobos.semantics.footprints import footprints_of
from phobos.semantics.program import Program, fact


@fact
def slice_lengths(program: Program) -> dict[str, frozenset[int]]:
    """For each symbol that a tensor is sliced or read by points along, the static lengths there; a point is 1."""
    found: dict[str, set[int]] = {}
    for footprint in footprints_of(program):
        access = footprint.access
        if not isinstance(access.base, ir.Tensor):
            continue
        for extent, sub in zip(access.base.extents, access.subs):
            if isinstance(extent, ir.Dim):
                length = sub.static if isinstance(sub, ir.SliceSub) else 1
                found.setdefault(extent.name, set()).add(max(length or 1, 1))
    return {name: frozenset(lengths) for name, lengths in found.items()}
