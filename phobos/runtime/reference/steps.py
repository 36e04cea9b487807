"""How long each block of a run takes, in steps: what a trace shows where there is no clock.

A step is one operation on at most as many elements as a block has threads. An operation, a built-in, a load or a store
of a tile of C elements in a block of T threads takes ceil(C / T) steps, a product of M x K and K x N elements
ceil(M * K * N / T); a statement takes at least one. Jumps, conditions and the counting of loops take none, and neither
do barriers. So a block that goes round a loop four times as often takes four times as many steps, whatever the order
in which the runtime runs the blocks. Where blocks wait for each other in a `while`, their rounds are steps, as many as
the scheduler let them go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from phobos.runtime.reference.code import ATOMIC, RUN, Code, Instruction
from phobos.runtime.reference.memory import cells
from phobos.semantics import ir
from phobos.semantics.walking import everything_in
from phobos.value import replace, value

if TYPE_CHECKING:
    from phobos.runtime.reference.group import Group
    from phobos.runtime.reference.machine import Machine
    from phobos.runtime.reference.numbers import Array, Value

OPERATIONS = (ir.BinaryOp, ir.UnaryOp, ir.BuiltinCall, ir.Load)


@value
class Counted:
    """The blocks of one phase of kernels: steps to each barrier, one array of all blocks each, and to the end."""

    barriers: list[ir.Barrier]
    before: list[Array]
    last: Array


class Steps:
    """Told by a run what its blocks do; `phases` is then what is known."""

    def __init__(self) -> None:
        self.phases: list[Counted] = []

    def begin(self, machines: Sequence[Machine]) -> None:
        """A phase of kernels is about to run: from now on their instructions count."""
        code = _counting(machines[0].code, machines)
        for machine in machines:
            machine.code = code
        blocks = sum(machine.blocks for machine in machines)
        self.phases.append(Counted([], [], np.zeros(blocks, np.int64)))

    def met(self, groups: Sequence[Group]) -> None:
        """All blocks are at one barrier and go on."""
        phase = self.phases[-1]
        met = np.zeros(len(phase.last), np.int64)
        for group in groups:
            met[group.ids] = group.clock
            group.clock = 0
        statement = groups[0].machine.code.instructions[groups[0].pc].statement
        assert isinstance(statement, ir.Barrier)
        phase.barriers.append(statement)
        phase.before.append(met)

    def ended(self, group: Group) -> None:
        self.phases[-1].last[group.ids] = group.clock


def _counting(code: Code, machines: Sequence[Machine]) -> Code:
    """The code, whose instructions count: each belongs to the last machine that begins at it or before it."""
    made: list[Instruction] = []
    starts = [machine.start for machine in machines]
    for at, one in enumerate(code.instructions):
        machine = machines[int(np.searchsorted(starts, at, side="right")) - 1]
        if one.kind in (RUN, ATOMIC) and one.statement is not None and one.action is not None:
            one = replace(one, action=_counted(one.action, cost(one.statement, machine)))
        made.append(one)
    return replace(code, instructions=tuple(made))


def _counted(action: Callable[[Group], Value], steps: int) -> Callable[[Group], Value]:
    def run(group: Group) -> Value:
        result = action(group)  # or the group is taken apart, and each part comes here by itself
        group.clock = group.clock + steps
        return result

    return run


def cost(statement: ir.Statement, machine: Machine) -> int:
    """Steps of one instruction made of a statement."""
    if isinstance(statement, (ir.For, ir.While, ir.If)):
        return 0
    threads = machine.program.launch.threads
    total = 0
    for part in everything_in(statement):
        if isinstance(part, OPERATIONS) and isinstance(part.type, ir.TileT):
            total += -(-_elements(part, machine) // threads)
    if isinstance(statement, ir.Store) and not statement.access.is_point:
        total += -(-_stored(statement, machine) // threads)
    return max(total, 1)


def _elements(part: ir.Expression, machine: Machine) -> int:
    """Elements that an operation handles: of its result or its largest operand; multiplications of a product."""
    most = cells(machine, part.type)
    if isinstance(part, ir.BuiltinCall):
        of = [cells(machine, argument.type) for argument in part.arguments]
        if part.name == "dot" and isinstance(part.arguments[0].type, ir.TileT):
            inner = part.arguments[0].type.shape[-1]
            return most * max(cells(machine, replace(part.arguments[0].type, shape=(inner,))), 1)
        most = max([most, *of])
    return most


def _stored(statement: ir.Store, machine: Machine) -> int:
    count = cells(machine, statement.value.type)
    fixed = 1
    for sub in statement.access.subs:
        fixed *= sub.static or 1 if isinstance(sub, ir.SliceSub) else 1
    return max(count, fixed)
