"""Turns: accesses that blocks come to one after another, because each waits until a cell says that it is its turn.

A block has its turn from a `while` that ends when a cell holds the block's own number until it adds to the cell.
Where every change of the cell is made by a block that has its turn, no two blocks have theirs at once: as long as
one does, nobody changes the cell, and no other block's number is what it holds. And as the one that gives the turn
away and the one that gets it do atomics on one cell, all that is done in turns is ordered, whatever the cell began with.
"""

from __future__ import annotations

from phobos.semantics import ir
from phobos.semantics.concrete import plain_atoms
from phobos.semantics.conditions import Compare
from phobos.semantics.flow import FREE, Reach, flow_of
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program, fact
from phobos.semantics.tickets import FIXED
from phobos.semantics.twoblocks import Cells
from phobos.semantics.values import Context, Values, values_of
from phobos.semantics.walking import statements_in
from phobos.value import value

Cell = tuple[object, ...]
"""A tensor's name, and the key of the index, which is the same for all blocks."""


@value
class Turn:
    """A wait for a turn: the cell, and the number that it waits for, at the place of the loop."""

    cell: Cell
    number: Poly
    context: Context
    loops: tuple[ir.For | ir.While, ...]

    def as_cells(self) -> Cells:
        """The number as a cell that the block touches: two blocks that touch none together have no number in common."""
        one = Poly.of(1)
        reach = Reach(tuple((loop, FREE) for loop in self.loops), ())
        return Cells(((self.number, one),), (self.number + 1,), self.context, reach)


@value
class Turns:
    """The waits of one cell and the statements that are only come to in a turn that they give."""

    waits: tuple[Turn, ...]
    held: frozenset[ir.Statement]


@fact
def turns_of(program: Program) -> tuple[Turns, ...]:
    """By each cell that gives turns: that no two waits wait for one number is for the caller to prove."""
    values = values_of(program)
    atomics = [s for s in statements_in(program) if isinstance(s, ir.Atomic) and s not in values.unreachable]
    stored = {s.access.base for s in statements_in(program) if isinstance(s, ir.Store)}
    cells = {cell for cell in (_cell(one, values) for one in atomics) if cell is not None}
    found: list[Turns] = []
    for tensor in {one.tensor: None for one in atomics}:
        of_tensor = [one for one in atomics if one.tensor is tensor]
        mine = {_cell(one, values) for one in of_tensor}
        if tensor in stored or len(mine) > 1 or None in mine or not mine <= cells:
            continue  # another index may be the same cell
        if all(one.kind == "add" for one in of_tensor):
            walk = _Walk(program, values, next(iter(mine)))
            walk.block(program.body, False)
            if walk.waits and not walk.stray:
                found.append(Turns(tuple(walk.waits.values()), frozenset(walk.held)))
    return tuple(found)
