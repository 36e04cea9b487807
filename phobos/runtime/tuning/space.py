"""What there is to try of a kernel: constants, schedules, grids, grouping for the L2 cache. Pure; nothing runs here.

Constants of `@autotune` span the space. Held at one value are those that the caller sets, those that are an extent of
a tensor (another value is another problem), and those that stand for the grid, which the launch binds.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from phobos.semantics import ir
from phobos.semantics.grid import cap_at, grid_of, useful_work_at
from phobos.semantics.program import Program
from phobos.value import value

FLAT = "flat"


@value
class Variant:
    """One candidate. `constants` are those that are tuned, in the kernel's order.

    `per_sm` is the number of CTAs on each multiprocessor, of a persistent grid; None as many as the plan decides. The
    reference runtime counts as one multiprocessor.
    """

    constants: tuple[tuple[str, int], ...] = ()
    schedule: str = FLAT
    l2_group: int = 1
    per_sm: int | None = None

    @property
    def label(self) -> str:
        """`TILE=1024 persistent-blocked 2/SM`; the same for the same variant, and for no other."""
        words = [f"{name}={number}" for name, number in self.constants]
        if self.schedule != FLAT:
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
    """The inverse of `as_dict`. Raises ValueError, KeyError, TypeError where it is none."""
    constants, schedule, group, per_sm = (kept[key] for key in ("constants", "schedule", "l2_group", "ctas_per_sm"))
    if not isinstance(constants, dict) or not isinstance(schedule, str) or not isinstance(group, int):
        raise ValueError("no variant")
    if not (per_sm is None or isinstance(per_sm, int)) or not all(isinstance(n, int) for n in constants.values()):
        raise ValueError("no variant")
    return Variant(tuple((str(name), number) for name, number in constants.items()), schedule, group, per_sm)


def tuned_constants(program: Program, fixed: Mapping[str, int]) -> tuple[ir.Constant, ...]:
    """The constants whose choices span the space, in the kernel's order."""
    extents = {e.name for tensor in program.tensors.values() for e in tensor.extents if isinstance(e, ir.Constant)}
    grids = {constant.constant.name for constant in grid_of(program).constants}
    return tuple(
        constant
        for name, constant in program.constants.items()
        if constant.attribute == "autotune" and name not in fixed and name not in extents and name not in grids
    )


def space(
    program: Program, fixed: Mapping[str, int], schedules: Sequence[str] = (FLAT,), groups: Sequence[int] = (1,)
) -> tuple[Variant, ...]:
    """Every variant, the one that runs without tuning first; the last constant varies fastest.

    `program` is the kernel at its default constants. `schedules` and `groups` are those to try; grouping is for
    schedules that order blocks of more than one dimension, which the caller knows. Grids are added by `with_grids`.
    """
    constants = tuned_constants(program, fixed)
    first = tuple((constant.name, constant.value) for constant in constants)
    names = [constant.name for constant in constants]
    points = [tuple(zip(names, point)) for point in itertools.product(*(constant.choices for constant in constants))]
    points.sort(key=lambda point: point != first)
    return tuple(
        Variant(point, schedule, group)
        for point, schedule, group in itertools.product(points, schedules or (FLAT,), groups or (1,))
    )


def sizes_its_grid(program: Program) -> bool:
    """Whether the number of blocks is the launcher's choice: a persistent kernel whose grid no constant fixes."""
    return program.is_persistent and all(constant.stride_form for constant in grid_of(program).constants)


def with_grids(
    variant: Variant, program: Program, sizes: Mapping[str, int], most_per_sm: int, multiprocessors: int
) -> Iterator[Variant]:
    """The variant at 1, 2, 4, ... CTAs on each multiprocessor up to `most_per_sm`, without two that launch the same.

    `program` is the kernel at the variant's constants, `sizes` its extents and integer parameters. What launches as
    many blocks as the plan would without being told carries no number.
    """
    if not sizes_its_grid(program) or most_per_sm < 1:
        yield variant
        return
    whole = workers(program, sizes, most_per_sm, multiprocessors)
    seen = {whole}
    yield variant
    count = 1
    while count < most_per_sm:
        blocks = workers(program, sizes, count, multiprocessors)
        if blocks not in seen:
            seen.add(blocks)
            yield Variant(variant.constants, variant.schedule, variant.l2_group, count)
        count *= 2


def workers(program: Program, sizes: Mapping[str, int], per_sm: int, multiprocessors: int) -> int:
    """How many blocks a persistent grid has with so many CTAs on each multiprocessor: never more than have work."""
    known = {**{name: constant.value for name, constant in program.constants.items()}, **sizes}
    counts = [per_sm * multiprocessors]
    useful, cap = useful_work_at(program, known), cap_at(program, known)
    if useful is not None:
        counts.append(useful)
    if cap is not None:
        counts.append(cap[0])
    return max(1, min(counts))
