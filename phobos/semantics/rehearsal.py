"""Small launches rehearsed: all blocks, statement by statement, with numbers for extents and contents.

What two stores put in a cell may be one number although no two expressions look alike: a value that was stored, read
back and stored again is the same value. And what tells two blocks apart at one branch need not do so in the end: they
may have left before, or never come there. Carrying it out shows both. One block runs after another from barrier to
barrier, with turns between atomics, which is an order that a launch may take. Floats are Python's, contents made up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from phobos.semantics import ir
from phobos.semantics.program import Program, fact
from phobos.semantics.rehearsed_launch import MOST_WORK, Contents, Launch, Place, Seen
from phobos.semantics.rehearsed_numbers import Scalar
from phobos.semantics.values import statements_in, walk, written_tensors

MOST_LAUNCHES = 120  # of one program
MOST_TOGETHER = 20 * MOST_WORK  # of one program: a second or two


def reads_what_is_written(program: Program, expression: ir.Expression) -> bool:
    """Whether a value may come from cells that the kernel itself writes, directly or through variables."""
    written = written_tensors(program)
    sources: dict[ir.Variable, list[ir.Expression]] = {}
    views: dict[ir.Variable, ir.Access] = {}
    atomic: set[ir.Variable | None] = set()
    for statement in statements_in(program):
        match statement:
            case ir.Define(variable=variable, value=stored) | ir.Assign(variable=variable, value=stored):
                sources.setdefault(variable, []).extend(() if stored is None else (stored,))
            case ir.Store(access=access, value=stored) if isinstance(access.base, ir.Variable):
                sources.setdefault(access.base, []).append(stored)
            case ir.DefineView(variable=variable, access=access):
                views[variable] = access
            case ir.Atomic(result=result):
                atomic.add(result)
    seen: set[ir.Variable] = set()
    stack = [expression]
    while stack:
        for one in walk(stack.pop()):
            base: ir.Tensor | ir.Variable | None = None
            if isinstance(one, ir.Load):
                base = one.access.base
            elif isinstance(one, ir.TensorRef):
                base = one.tensor
            elif isinstance(one, ir.VariableRef):
                base = views[one.variable].base if one.variable in views else one.variable
            if isinstance(base, ir.Tensor) and base.name in written:
                return True
            if isinstance(base, ir.Variable) and base not in seen:
                if base in atomic:
                    return True
                seen.add(base)
                stack += sources.get(base, [])
    return False


class Rehearsals:
    """The launches of one program that were carried out, each once, and only so many."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[object, Seen] = {}
        self._spent = 0

    def seen(
        self, which: int, sizes: Mapping[str, int], counts: Sequence[int], last_first: bool = False
    ) -> Seen | None:
        """One launch with the contents of that number; None where there were too many already.

        `sizes`: extents and parameters by name (others are made up), `counts` the grid. With `last_first` the last
        block has the first turn.
        """
        key = which, tuple(counts), tuple(sorted(sizes.items())), last_first
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_LAUNCHES or self._spent >= MOST_TOGETHER:
                return None
            known = self._known[key] = Launch(self._program, *VARIANTS[which], sizes, counts).run(last_first)
            self._spent += known.spent
        return known

    def meeting(self, one: Place, other: Place, sizes: Mapping[str, int], counts: Sequence[int]) -> str:
        """What becomes of two accesses to one cell by two blocks, in one phase.

        "differ": they meet, and where both are stores with different numbers, for some contents; "equal": two stores
        put one and the same number there; "apart": they are never seen to meet; "unknown".
        """
        pair = frozenset((one, other))
        stores = one[1] == other[1] == "store"
        found = "apart"
        for which in range(len(VARIANTS)):
            seen = self.seen(which, sizes, counts)
            if seen is None or (pair in seen.unclear and pair not in seen.differ):
                return "unknown"
            if pair in (seen.differ if stores else seen.met):
                return "differ"
            if seen.stopped or seen.parted:
                return "unknown"
            found = "equal" if pair in seen.met else found
        return found


@fact
def rehearsals_of(program: Program) -> Rehearsals:
    """What was rehearsed of a program, filled as it is asked for."""
    return Rehearsals(program)


def _mixed(tensor: int, flat: int, is_float: bool) -> Scalar:
    return ((tensor * 331 + flat * 617 + 101) % 997) / 997 + 0.003 if is_float else flat


def _counted(tensor: int, flat: int, is_float: bool) -> Scalar:
    return float(flat * 3 + tensor * 50 - 7) if is_float else (flat + 1) % 3


def _nought(tensor: int, flat: int, is_float: bool) -> Scalar:
    return -((tensor * 97 + flat * 41 + 11) % 89) / 89 if is_float else 0


VARIANTS: tuple[tuple[Contents, int], ...] = ((_mixed, 8), (_counted, 3), (_nought, 13))
"""Contents, and the extents where nobody asks for one."""

NOUGHT = 2  # the contents with which counters begin at 0


__all__ = ["Rehearsals", "reads_what_is_written", "rehearsals_of"]
