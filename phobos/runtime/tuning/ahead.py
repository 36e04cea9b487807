"""Variants compiled before they are judged, in as many processes as there are cores; no device is asked.

What is compiled is kept on disk, where the process that launches finds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from phobos.codegen import cards
from phobos.codegen.nvrtc import CompileError
from phobos.errors import CheckError, LaunchError
from phobos.runtime.binding import Bound
from phobos.runtime.compiling import build, lendable
from phobos.runtime.cuda.launch import lowering_for
from phobos.runtime.faults import said_of
from phobos.runtime.kernel import LaunchOptions
from phobos.runtime.placing import extents_of
from phobos.runtime.scheduling import form_of_one, schedule_for
from phobos.runtime.tuning.judging import Row, Task, bound_at, options_of
from phobos.runtime.tuning.problem import Problem
from phobos.runtime.tuning.space import Variant
from phobos.semantics.fusion import FusedProgram
from phobos.semantics.grid import GridDisagrees, GridUnknown, blocks_at
from phobos.semantics.schedules import Form
from phobos.value import replace, value

if TYPE_CHECKING:
    from phobos.lowering.options import Options
    from phobos.semantics.module import Module, Unit


@value
class Ahead:
    """`ctas_per_sm` by the table of cards, 0 where nothing of it fits."""

    ctas_per_sm: int
    registers: int


def ahead(problem: Problem, variant: Variant) -> Ahead | Row:
    """Compile a variant for `problem.arch`; a row where it can be refused or does not compile."""
    try:
        made = build(*_source(problem, variant))
    except CheckError as error:
        return Row(variant, "refused", str(error))
    except LaunchError as error:
        return Row(variant, "refused", said_of(error))
    except CompileError as error:
        return Row(variant, "crashed", str(error))
    limits = cards.LIMITS.get(problem.arch)
    return Ahead(1 if limits is None else made.occupancy(limits).ctas_per_sm, made.registers)


def _form(problem: Problem, bound: Bound, options: LaunchOptions) -> Form | None:
    """The form of the code at the sizes that are timed."""
    grid = extents_of(bound, problem.grid)
    if grid is None:
        try:
            grid = blocks_at(bound.program, {**bound.sizes, **problem.dims})
        except (GridUnknown, GridDisagrees):
            return None
    return form_of_one(bound, schedule_for(options.schedule, options.l2_group), grid)


def cubins(problem: Problem, task: Task) -> dict[str, tuple[bytes, bytes]]:
    """What a machine that judges a variant need not compile: what `ahead` compiled here. See `cache.lend`."""
    try:
        return lendable(*_source(problem, task.variant)) if problem.arch else {}
    except (CheckError, LaunchError, CompileError):
        return {}  # the judge comes upon it, too, and makes a row of it


def _source(problem: Problem, variant: Variant) -> tuple[Module, Unit, Options]:
    # Smaller extents are multiples of the same numbers, so that the code is the same.
    bound = bound_at(problem, problem.made(), variant, problem.small)
    options = options_of(problem, variant, bound)
    lowering = lowering_for(bound, options, problem.arch)
    if not isinstance(bound.program, FusedProgram):
        lowering = replace(lowering, form=_form(problem, bound, options))
    return bound.module, bound.unit, lowering
