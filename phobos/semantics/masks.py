"""Which slice can run past which extent, with its proof or its reason.

The emitter leaves a mask out only where `needed` is False; hover, PH115 and PH3xx read the same fact. Sound:
a start is never trusted for mentioning a loop variable.
"""

from __future__ import annotations

from phobos.semantics import ir
from phobos.semantics.program import Program, Promise, fact
from phobos.value import value


@value
class Mask:
    """One axis of one sliced access.

    `needed` - a cell of the slice may lie outside. `reason` is a sentence for people: why it may, or the proof
    why it cannot. `peeled` - inside the loop given, every round but the last ragged one is proved inside
    (the loop splits into whole tiles and one masked remainder). `promises` are those the proof used.
    `outside` - provably wholly outside a static extent (PH115).
    """

    needed: bool
    reason: str
    peeled: ir.For | None
    promises: tuple[Promise, ...]
    outside: bool


@fact
def masks_of(program: Program) -> dict[ir.Access, tuple[Mask | None, ...]]:
    """For each access, a `Mask` per axis: None for points. Tensors and tiles alike."""
    raise NotImplementedError
