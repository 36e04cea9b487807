"""What may order two accesses in one phase, though no barrier is known that does: atomics, and calls of the unknown.

What a block did before its atomic is seen by a block whose later atomic on that tensor sees it. Whether blocks come to
them in such an order is not for arithmetic to say, so that a pair of which this may be so is not told to be a race.
"""

from __future__ import annotations

from functools import cached_property

from phobos.semantics import ir
from phobos.semantics.cells import conditions_of
from phobos.semantics.conditions import Compare
from phobos.semantics.flow import Flow
from phobos.semantics.groups import Group
from phobos.semantics.program import Program
from phobos.semantics.values import statements_in, values_of
from phobos.semantics.walking import unknown_waits


class Between:
    """Answers for one program."""

    def __init__(self, program: Program, flow: Flow) -> None:
        self.flow = flow
        self.atomics = [s for s in statements_in(program) if isinstance(s, ir.Atomic)]
        self.unknown_waits = unknown_waits(program)
        self._answers = values_of(program).atomics
        self._by_tensor: dict[str, int] = {}  # the bits of its atomics
        for atomic in self.atomics:
            name = atomic.tensor.name
            self._by_tensor[name] = self._by_tensor.get(name, 0) | flow.bit(atomic)
        self._calls = sum(map(flow.bit, self.unknown_waits))
        self._before: dict[ir.Statement, int] = {}
        self._shared: dict[tuple[ir.Statement, str | None], int] = {}

    def reason(self, a: Group, b: Group) -> str | None:
        """Why the two may be in order, or apart in time; None where nothing makes it so."""
        one, other = a.first.statement, b.first.statement
        if self._calls and (self._parted(one, other) or self._parted(other, one)):
            return "a function that is not known here may hold a barrier between the two"
        if not self.atomics:
            return None
        if self._won(a) and self._won(b):
            return "both run only for one result of an atomic"
        mine = next((group.first.access.base.name for group in (a, b) if group.first.kind == "atomic"), None)
        tensor = self._ordered(one, other, mine) or self._ordered(other, one, mine)
        if tensor is not None:
            return f"both blocks do an atomic on `{tensor}` between the two, which may order them"
        for this, that in ((a, b), (b, a)):
            if this.first.kind == "atomic" and self._won(that, this.first.access.base.name):
                return "the plain access runs only for one result of an atomic on that tensor"
        return None

    def _won(self, group: Group, tensor: str | None = None) -> bool:
        """Whether an access runs only where an atomic gave one particular answer."""
        for condition in conditions_of(group.context):
            for part in getattr(condition, "parts", (condition,)):
                if isinstance(part, Compare) and part.op == "eq":
                    for atom in part.poly.atoms:
                        atomic = self._answers.get(atom)
                        if atomic is not None and tensor in (None, atomic.tensor.name):
                            return True
        return False

    def _parted(self, one: ir.Statement, other: ir.Statement) -> bool:
        """Whether what may be a barrier stands on a way from one to the other."""
        return bool(self.flow.after(one) & self._leading_to(other) & self._calls)

    def _ordered(self, one: ir.Statement, other: ir.Statement, mine: str | None) -> str | None:
        """A tensor of which one atomic is done after `one` and one before `other`.

        Where one of the two is itself an atomic, more of them on that tensor (`mine`) order nothing.
        """
        key = one, mine
        if key not in self._shared:
            after = self.flow.after(one)
            self._shared[key] = sum(bits for name, bits in self._by_tensor.items() if name != mine and after & bits)
        found = self._shared[key] & self._leading_to(other)
        return self._names[found & -found] if found else None  # the first in the text

    @cached_property
    def _names(self) -> dict[int, str]:
        return {self.flow.bit(atomic): atomic.tensor.name for atomic in self.atomics}

    def _leading_to(self, statement: ir.Statement) -> int:
        """The bits of those atomics and calls from which it is come to."""
        if statement not in self._before:
            bit = self.flow.bit(statement)
            self._before[statement] = sum(mark for mark, after in self._marks if after & bit)
        return self._before[statement]

    @cached_property
    def _marks(self) -> list[tuple[int, int]]:
        """The bit of each atomic and call, and those of what it leads to."""
        marks = dict.fromkeys(sorted((*self.atomics, *self.unknown_waits), key=self.flow.bit, reverse=True))
        return [(self.flow.bit(one), self.flow.after(one)) for one in marks]


__all__ = ["Between"]
