"""Uniformity: which values are the same for all blocks of the grid, and why not where they are not.

Lattice: CONSTANT < UNIFORM < VARYING < LANE. Control dependence, loop back edges to a fixed point, phase by
phase; every varying value keeps a pointer to what made it vary, and `why` walks those pointers.
"""

from __future__ import annotations

from enum import IntEnum

from phobos.diagnostic import Span
from phobos.semantics import ir
from phobos.semantics.program import Program, fact
from phobos.value import value


class Level(IntEnum):
    CONSTANT = 0
    UNIFORM = 1
    VARYING = 2
    LANE = 3


@value
class Origin:
    """What brought variation in. `kind`: "block", "load", "atomic", "thread", "assigned-under", "loop-exit".

    `certain`: index arithmetic alone tells two blocks apart (E); otherwise loaded data or the order of atomics (W).
    """

    kind: str
    span: Span
    calls: tuple[Span, ...]
    message: str  # "`p` is the block index", "`X` is written by other blocks in this phase", ...
    certain: bool


@value
class Divergence:
    """Why a barrier is not reached by all blocks alike.

    `kind`: "branch" (PH203), "exit" (PH204), "trip" (PH205), "arms" (PH215). `construct` is the keyword of the
    `if`/`for`/`while`, or the exit statement. `others` are the further barriers concerned ("arms").
    """

    barrier: ir.Barrier
    kind: str
    construct: Span
    construct_calls: tuple[Span, ...]
    chain: tuple[Origin, ...]  # from the condition's identifier to the origin
    certain: bool
    others: tuple[ir.Barrier, ...]


class Uniformity:
    divergences: tuple[Divergence, ...]  # at most one per barrier call and call chain

    def level(self, what: ir.Expression | ir.Variable) -> Level:
        """Of an expression where it stands; of a variable over its life (the highest it takes)."""
        raise NotImplementedError

    def why(self, what: ir.Expression | ir.Variable) -> tuple[Origin, ...]:
        """The shortest chain from a varying value to its origin; empty when it does not vary."""
        raise NotImplementedError

    def control(self, statement: ir.Statement) -> Level:
        """Whether blocks agree on reaching a statement."""
        raise NotImplementedError


@fact
def uniformity_of(program: Program) -> Uniformity:
    raise NotImplementedError
