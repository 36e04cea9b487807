"""What every index value is, as a polynomial, and the range it can have.

A `let` is what it was bound to; a loop variable is an atom with bounds; a `var` that a loop changes by the
same amount each round is its start plus the round times the amount; anything else a loop changes is an atom
of its own in each round.
"""

from __future__ import annotations

from phobos.semantics import ir
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program, fact
from phobos.value import value


@value
class LoopFact:
    """One `for` or `while`: the atom that counts or walks it and its bounds, where they are known.

    `variable` is the atom of the loop variable (`for`) or of the round counter (`while`). The variable takes
    `lo, lo + step, ...` below `hi`. Each is None where it has no polynomial form.
    """

    statement: ir.For | ir.While
    variable: Atom
    lo: Poly | None
    hi: Poly | None
    step: Poly | None


class Values:
    """`poly` of every index expression of a program, and what is known about each atom."""

    def poly(self, expression: ir.Expression) -> Poly:
        """The value of an index expression at the place where it stands."""
        raise NotImplementedError

    def loop(self, statement: ir.For | ir.While) -> LoopFact:
        raise NotImplementedError

    def loop_of(self, atom: Atom) -> LoopFact | None:
        """The loop that an atom walks."""
        raise NotImplementedError

    def at_least(self, poly: Poly) -> int | None:
        """The largest known lower bound over everything the program allows (extents are >= 0, ids in their grid)."""
        raise NotImplementedError

    def divisor(self, poly: Poly) -> int:
        """A number that divides it always, promises of `@aligned` included; 0 when it is always 0."""
        raise NotImplementedError


@fact
def values_of(program: Program) -> Values:
    raise NotImplementedError
