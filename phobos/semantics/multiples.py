"""Which extents are known, at a launch, to be whole multiples of what: rows of so many cells can be read 16 bytes at a
time, or 8 or 4, wherever they begin. A launch is served by code that goes by it."""

from __future__ import annotations

from collections.abc import Mapping

from phobos.language.scalars import scalar
from phobos.semantics import ir
from phobos.semantics.program import Program

MULTIPLE = 16  # cells whose bytes are a multiple of 16 in every element type
WIDE_BYTES = 16  # of the widest access to memory


def multiples_of(program: Program, sizes: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Each extent with the most that the code can use of which it is a multiple, by name; others are left out."""
    units: dict[str, set[int]] = {name: {MULTIPLE} for name in program.dims}
    for tensor in program.tensors.values():
        row = tensor.extents[-1]
        if len(tensor.extents) > 1 and isinstance(row, ir.Dim):
            cells = WIDE_BYTES // scalar(tensor.dtype).bytes
            units[row.name] |= {cells >> shift for shift in range(cells.bit_length() - 1)}
    found: list[tuple[str, int]] = []
    for name in sorted(units.keys() & sizes.keys()):
        fitting = [unit for unit in units[name] if sizes[name] % unit == 0]
        found += [(name, max(fitting))] if fitting else []
    return tuple(found)
