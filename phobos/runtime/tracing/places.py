"""The stretches of a launch: names for what blocks do between barriers, with the lines of the source."""

from __future__ import annotations

from collections.abc import Sequence

from phobos.diagnostic import Span
from phobos.runtime.binding import Bound
from phobos.runtime.tracing.trace import Stretch
from phobos.semantics.fusion import FusedProgram
from phobos.value import value


@value
class Barrier:
    """A grid barrier: the line where it stands, and what else is to be said of it."""

    line: int
    note: str


def barrier_at(bound: Bound, span: Span, calls: Sequence[Span]) -> Barrier:
    """A call of `grid_barrier`, and where the functions were called that it stands in."""
    lines = ", ".join(str(bound.line(call)) for call in reversed(calls))
    return Barrier(bound.line(span), f"called from line {lines}" if lines else "")


def between(barriers: Sequence[Barrier], complete: bool) -> tuple[tuple[Stretch, ...], tuple[int, ...]]:
    """The stretches of a kernel that crosses these barriers, and which stands before each, and at the end."""
    made: dict[tuple[object, ...], int] = {}
    stretches: list[Stretch] = []
    order: list[int] = []
    before: Barrier | None = None
    for barrier in (*barriers, None) if complete else barriers:
        key = tuple(None if one is None else (one.line, one.note) for one in (before, barrier))
        if key not in made:
            made[key] = len(stretches)
            stretches.append(_stretch(before, barrier))
        order.append(made[key])
        before = barrier
    return tuple(stretches), tuple(order)


def of_phases(bound: Bound, kept: int, complete: bool) -> tuple[tuple[Stretch, ...], tuple[int, ...]]:
    """The phases of a fusion: a barrier stands before each but the first. `kept` barriers are in the trace."""
    assert isinstance(bound.program, FusedProgram)
    fusion = bound.program.fusion
    stretches = []
    for number, phase in enumerate(fusion.phases):
        name = " and ".join(f"`{fusion.programs[n].name}`" for n in phase)
        line, note = None, ""
        if number + 1 < len(fusion.phases):
            following = fusion.programs[fusion.phases[number + 1][0]]
            line, note = bound.line(following.named), f"before `{following.name}`"
        stretches.append(Stretch(name, line, note))
    count = kept + 1 if complete else kept
    return tuple(stretches[:count]), tuple(range(count))


def _stretch(before: Barrier | None, after: Barrier | None) -> Stretch:
    if before is None and after is None:
        return Stretch("the whole kernel", None, "")
    since = "the start" if before is None else f"line {before.line}"
    until = "the end" if after is None else f"line {after.line}"
    return Stretch(f"{since} to {until}", None if after is None else after.line, "" if after is None else after.note)
