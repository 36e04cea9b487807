"""A variant in the options of a launch: what it says of the grid becomes the number that a runtime takes for it."""

from __future__ import annotations

from collections.abc import Mapping

from phobos.runtime.options import LaunchOptions
from phobos.runtime.tuning.space import Variant, workers
from phobos.semantics.fusion import FusedProgram
from phobos.semantics.program import Program
from phobos.value import replace


def applied(
    options: LaunchOptions, variant: Variant, constants: Mapping[str, int], program: Program, sizes: Mapping[str, int],
    multiprocessors: int,
) -> LaunchOptions:  # fmt: skip
    """`options` with what the variant decides. `program` is the kernel at `constants`, all of the variant's and those
    that are held; `sizes` are its extents and integer parameters."""
    made = replace(
        options, constants=tuple(sorted(constants.items())), schedule=variant.schedule, l2_group=variant.l2_group
    )
    if variant.per_sm is None:
        return made
    count = workers(program, sizes, variant.per_sm, multiprocessors)
    if program.is_persistent or isinstance(program, FusedProgram):
        return replace(made, grid=count)
    return replace(made, resident=count)  # of an ordinary kernel the grid is that of its virtual blocks
