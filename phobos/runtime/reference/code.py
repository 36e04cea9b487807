"""A compiled program: a flat list of instructions, so that a group of blocks can stop, part and meet anywhere.

A coroutine is a group with a place in this list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from phobos.runtime.reference.group import Group, Key
from phobos.runtime.reference.numbers import Value
from phobos.semantics import ir
from phobos.semantics.program import Program
from phobos.value import value

RUN, BRANCH, JUMP, ROUND, ATOMIC, BARRIER, END = range(7)


@value
class Instruction:
    """`action` of RUN and ATOMIC; `condition` of BRANCH, which goes to `target` when it is false."""

    kind: int
    statement: ir.Statement | None
    action: Callable[[Group], Value] | None
    target: int


@value
class BarrierPlace:
    """A barrier call with the constructs it stands in, outermost first."""

    statement: ir.Barrier
    enclosing: tuple[ir.If | ir.For | ir.While, ...]


@value
class Code:
    """`scope` holds, for each instruction, the variables (and loop states) that live there.

    `local_whiles` touch no tensor, so only themselves can end them. `mutable` are the variables whose cells
    are written in place. `stored` and `atomics` are names of tensors.
    """

    program: Program
    instructions: tuple[Instruction, ...]
    scope: tuple[frozenset[Key], ...]
    mutable: frozenset[Key]
    barriers: dict[int, BarrierPlace]
    local_whiles: frozenset[ir.While]
    barrier_whiles: frozenset[ir.While]
    has_while: bool
    has_atomic: bool
    stored: frozenset[str]
    atomics: frozenset[str]


def side_by_side(codes: Sequence[Code]) -> tuple[Code, tuple[int, ...]]:
    """Several programs as one list of instructions, and where each begins. None of them holds a barrier."""
    if len(codes) == 1:
        return codes[0], (0,)
    starts: list[int] = []
    instructions: list[Instruction] = []
    for code in codes:
        base = len(instructions)
        starts.append(base)
        for one in code.instructions:
            target = one.target if one.target < 0 else one.target + base
            instructions.append(Instruction(one.kind, one.statement, one.action, target))
    return Code(
        program=codes[0].program,
        instructions=tuple(instructions),
        scope=tuple(scope for code in codes for scope in code.scope),
        mutable=frozenset().union(*(code.mutable for code in codes)),
        barriers={},
        local_whiles=frozenset().union(*(code.local_whiles for code in codes)),
        barrier_whiles=frozenset(),
        has_while=any(code.has_while for code in codes),
        has_atomic=any(code.has_atomic for code in codes),
        stored=frozenset().union(*(code.stored for code in codes)),
        atomics=frozenset().union(*(code.atomics for code in codes)),
    ), tuple(starts)
