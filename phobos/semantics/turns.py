"""Turns: accesses that blocks come to one after another, because each waits until a cell says that it is its turn.

A block has its turn from a `while` that ends when a cell holds the block's own number until it adds to the cell.
Where every change of the cell is made by a block that has its turn, no two blocks have theirs at once: as long as
one does, nobody changes the cell, and no other block's number is what it holds. And as the one that gives the turn
away and the one that gets it do atomics on one cell, what is done in turns is ordered, whatever the cell began with.
"""

from __future__ import annotations

from collections.abc import Mapping

from phobos.semantics import ir
from phobos.semantics.cells import Cells
from phobos.semantics.concrete import plain_atoms
from phobos.semantics.conditions import Compare
from phobos.semantics.flow import FREE, Reach, flow_of
from phobos.semantics.poly import Poly
from phobos.semantics.program import Program, fact
from phobos.semantics.tickets import FIXED
from phobos.semantics.values import Context, Values, values_of
from phobos.semantics.walking import blocks_of, statements_in
from phobos.semantics.walking import statements_of as walk_of
from phobos.value import value


@value
class Turn:
    """A wait for a turn: the number that it waits for, at the place of the loop."""

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
    """The waits for the turns that one cell gives, and the statements that are only come to in such a turn."""

    waits: tuple[Turn, ...]
    held: frozenset[ir.Statement]


@fact
def turns_of(program: Program) -> tuple[Turns, ...]:
    """By the cells that give turns. That no two blocks wait for one number is left to prove."""
    values = values_of(program)
    atomics = [s for s in statements_in(program) if isinstance(s, ir.Atomic) and s not in values.unreachable]
    stored = {s.access.base for s in statements_in(program) if isinstance(s, ir.Store)}
    found: list[Turns] = []
    for tensor in dict.fromkeys(one.tensor for one in atomics):
        indices = [values.poly(one.index) for one in atomics if one.tensor is tensor]
        fixed = all(atom[0] in FIXED for index in indices for atom in plain_atoms(index))
        if tensor in stored or not fixed or any(index != indices[0] for index in indices):
            continue  # another index may be the same cell
        walk = _Walk(tensor, values, flow_of(program).loops)
        walk.block(program.body, False)
        if walk.waits and not walk.stray:
            found.append(Turns(tuple(walk.waits), frozenset(walk.held)))
    return tuple(found)


class _Walk:
    """One way through a program that knows at each statement whether the block surely has its turn."""

    def __init__(
        self, tensor: ir.Tensor, values: Values, loops: Mapping[ir.Statement, tuple[ir.For | ir.While, ...]]
    ) -> None:
        self.tensor = tensor
        self.values = values
        self.loops = loops
        self.waits: list[Turn] = []
        self.held: set[ir.Statement] = set()
        self.stray = False  # the cell is changed where it may be another's turn

    def block(self, block: ir.Block, has: bool) -> bool | None:
        """Whether it has its turn at the end; None where control does not come there."""
        state: bool | None = has
        for statement in block.statements:
            if state is None:
                break  # nothing comes here
            state = self._statement(statement, state)
        return state

    def _statement(self, statement: ir.Statement, has: bool) -> bool | None:
        if isinstance(statement, (ir.For, ir.While)):
            return self._loop(statement, has)
        if has:
            self.held.add(statement)
        match statement:
            case ir.If(then=then, otherwise=otherwise):
                ends = [end for end in (self.block(then, has), self.block(otherwise, has)) if end is not None]
                return all(ends) if ends else None
            case ir.Inline(body=body):
                end = self.block(body, has)
                if any(isinstance(one, ir.Leave) for one in walk_of(body)):
                    return has and not self._changes(body)  # it may have come back from anywhere in there
                return end
            case ir.Break() | ir.Continue() | ir.Leave():
                return None
            case ir.Atomic() if self._change(statement):
                self.stray = self.stray or not has
                return False
        return has

    def _loop(self, loop: ir.For | ir.While, has: bool) -> bool:
        turn = self._turn(loop)
        if turn is not None:
            self.waits.append(turn)
            return True
        has = has and not any(map(self._changes, blocks_of(loop)))  # a round may begin with the turn given away
        if has:
            self.held.add(loop)
        if isinstance(loop, ir.While):
            self.block(loop.prelude, has)
        self.block(loop.body, has)
        return has

    def _turn(self, loop: ir.For | ir.While) -> Turn | None:
        """What a loop waits for that only ends when the cell holds one number."""
        if not isinstance(loop, ir.While) or loop.body.statements or self._changes(loop.prelude):
            return None
        condition = self.values.condition(loop.condition)
        if not isinstance(condition, Compare) or condition.op != "ne":
            return None
        for statement in loop.prelude.statements:
            if not isinstance(statement, ir.Atomic) or statement.tensor is not self.tensor:
                continue
            atom = next((atom for atom, one in self.values.atomics.items() if one is statement), None)
            weight = None if atom is None else condition.poly.coefficient(atom).constant
            if atom is None or weight not in (1, -1) or not condition.poly.is_linear_in(atom):
                continue
            number = condition.poly.without(atom) * -weight
            context = self.values.context(loop)
            if not number.mentions("atomic") and self.values.holds(number, context):
                return Turn(number, context, self.loops[loop])
        return None

    def _change(self, atomic: ir.Atomic) -> bool:
        """Whether an atomic may change the cell."""
        looks = atomic.kind == "add" and self.values.poly(atomic.operands[0]).constant == 0
        return atomic.tensor is self.tensor and not looks

    def _changes(self, block: ir.Block) -> bool:
        return any(isinstance(one, ir.Atomic) and self._change(one) for one in walk_of(block))


__all__ = ["Turn", "Turns", "turns_of"]
