"""What there is to try of a kernel: constants, schedules, grids, grouping for the L2 cache. Pure; nothing runs here.

Constants of `@autotune` with several choices span the space. Held at one value are those that the caller sets, those
that are an extent of a tensor (another value is another problem), and those that stand for the grid, which the launch
binds.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence

from phobos.runtime.tuning.reading import field, whole_numbers
from phobos.semantics import ir
from phobos.semantics.fusion import FusedProgram, largest_phase_at
from phobos.semantics.grid import GridDisagrees, GridUnknown, blocks_at, grid_of, persistent_blocks_at
from phobos.semantics.program import Program
from phobos.semantics.schedules import INTERLEAVED, PERSISTENT, Root
from phobos.semantics.values import statements_of
from phobos.value import value


@value
class Variant:
    """One candidate. `constants` are those that are tuned, in the kernel's order.

    `schedule` None is what a launch takes that says nothing. `per_sm` is the number of CTAs on each multiprocessor,
    where the grid is the launcher's to choose; None as many as the plan decides. The reference runtime counts as one
    multiprocessor.
    """

    constants: tuple[tuple[str, int], ...] = ()
    schedule: str | None = None
    l2_group: int = 1
    per_sm: int | None = None

    @property
    def label(self) -> str:
        """`TILE=1024 persistent-blocked 2/SM`; the same for the same variant, and for no other."""
        words = [f"{name}={number}" for name, number in self.constants]
        if self.schedule is not None:
            words.append(self.schedule)
        if self.l2_group != 1:
            words.append(f"L2 group {self.l2_group}")
        if self.per_sm is not None:
            words.append(f"{self.per_sm}/SM")
        return " ".join(words) or "as it is"

    def as_dict(self) -> dict[str, object]:
        return {
            "constants": dict(self.constants), "schedule": self.schedule, "l2_group": self.l2_group,
            "ctas_per_sm": self.per_sm,
        }  # fmt: skip


def variant_of(kept: Mapping[str, object]) -> Variant:
    """The inverse of `as_dict`. Raises what is `NOT_OURS` where it is none."""
    return Variant(
        tuple(whole_numbers(kept, "constants").items()), field(kept, "schedule", str, None),
        field(kept, "l2_group", int), field(kept, "ctas_per_sm", int, None),
    )  # fmt: skip


def tuned_constants(program: Program, fixed: Mapping[str, int]) -> tuple[ir.Constant, ...]:
    """The constants whose choices span the space, in the kernel's order."""
    extents = {e.name for tensor in program.tensors.values() for e in tensor.extents if isinstance(e, ir.Constant)}
    grids = {constant.constant.name for constant in grid_of(program).constants}
    return tuple(
        constant
        for name, constant in program.constants.items()
        if constant.attribute == "autotune"
        and len(constant.choices) > 1
        and name not in fixed
        and name not in extents
        and name not in grids
    )


def space(
    program: Program, fixed: Mapping[str, int], schedules: Sequence[str | None] = (None,), groups: Sequence[int] = (1,)
) -> tuple[Variant, ...]:
    """Every variant, the one that runs without tuning first; the last constant varies fastest.

    `program` is the kernel at its default constants. `schedules` and `groups` are those to try; which of the variants
    can be is for `worth` to say. Grids are added by `with_grids`.
    """
    constants = tuned_constants(program, fixed)
    first = tuple((constant.name, constant.value) for constant in constants)
    names = [constant.name for constant in constants]
    points = [tuple(zip(names, point)) for point in itertools.product(*(constant.choices for constant in constants))]
    points.sort(key=lambda point: point != first)
    return tuple(
        Variant(point, schedule, group) for point, schedule, group in itertools.product(points, schedules, groups)
    )


def worth(variant: Variant, program: Program, sizes: Mapping[str, int], grid: tuple[int, ...] | None = None) -> bool:
    """Whether a variant is one at all: its schedule can be, and its bands for the L2 cache are more than one.

    `program` is the kernel at the variant's constants, `grid` the caller's.
    """
    if variant.schedule is None and variant.l2_group == 1:
        return True
    if isinstance(program, FusedProgram):
        return variant.l2_group == 1 and (len(program.fusion.phases) == 1 or variant.schedule in PERSISTENT)
    if program.is_persistent or any(isinstance(s, ir.Barrier) for s in statements_of(program.body)):
        return False
    if variant.l2_group == 1:
        return True
    try:
        extents = blocks_at(program, _known(program, sizes)) if grid is None else (*grid, 1, 1)[:3]
    except (GridUnknown, GridDisagrees):
        return False
    return Root((extents[0], extents[1], extents[2]), variant.l2_group).in_bands


def sizes_its_grid(program: Program, schedule: str | None = None) -> bool:
    """Whether the number of blocks (or, of a persistent schedule, of workers) is the launcher's choice."""
    if isinstance(program, FusedProgram):
        several = len(program.fusion.phases) > 1
        return (schedule or (INTERLEAVED if several else None)) in PERSISTENT
    if program.is_persistent:
        return all(constant.stride_form for constant in grid_of(program).constants)
    return schedule in PERSISTENT


def with_grids(
    variant: Variant, program: Program, sizes: Mapping[str, int], most_per_sm: int, multiprocessors: int
) -> Iterator[Variant]:
    """The variant at 1, 2, 4, ... CTAs on each multiprocessor up to `most_per_sm`, without two that launch the same.

    `program` is the kernel at the variant's constants, `sizes` its extents and integer parameters. What launches as
    many blocks as the plan would without being told carries no number.
    """
    yield variant
    if not sizes_its_grid(program, variant.schedule):
        return
    seen = {workers(program, sizes, most_per_sm, multiprocessors)}
    count = 1
    while count < most_per_sm:
        blocks = workers(program, sizes, count, multiprocessors)
        if blocks not in seen:
            seen.add(blocks)
            yield Variant(variant.constants, variant.schedule, variant.l2_group, count)
        count *= 2


def workers(program: Program, sizes: Mapping[str, int], per_sm: int, multiprocessors: int) -> int:
    """How many blocks a grid has with so many CTAs on each multiprocessor: never more than have work."""
    known = _known(program, sizes)
    resident = per_sm * multiprocessors
    if program.is_persistent:
        return persistent_blocks_at(program, known, resident)
    with contextlib.suppress(GridUnknown, GridDisagrees):
        resident = min(resident, largest_phase_at(program, known))
    return max(1, resident)


def _known(program: Program, sizes: Mapping[str, int]) -> dict[str, int]:
    return {**{name: constant.value for name, constant in program.constants.items()}, **sizes}
