"""Variants compiled before they are judged, in as many processes as there are cores; no device is asked.

What is compiled goes to the process that judges with its task, whichever machine that is on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from phobos.codegen import cards
from phobos.codegen.nvrtc import CompileError
from phobos.errors import CheckError, LaunchError
from phobos.runtime.binding import Bound
from phobos.runtime.compiling import build, lendable
from phobos.runtime.cuda.preparing import lowering_for
from phobos.runtime.faults import said_of
from phobos.runtime.fusing import form_for
from phobos.runtime.placing import extents_of
from phobos.runtime.scheduling import form_of_one, schedule_for
from phobos.runtime.tuning.judging import Lent, Row, bound_at, options_of
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
    """`ctas_per_sm` by the table of cards, 0 where nothing of it fits. `lent` is all code that the judge launches, but
    what keeps tiles on chip across barriers, which hangs on how many blocks the device turns out to hold."""

    ctas_per_sm: int
    registers: int
    lent: Lent | None = None


def ahead(problem: Problem, variant: Variant) -> Ahead | Row:
    """Compile a variant for `problem.arch`; a row where it can be refused or does not compile."""
    lent: dict[str, tuple[bytes, bytes]] = {}
    try:
        for source in _sources(problem, variant):
            made = build(*source)
            lent.update(lendable(source[1], made))
    except CheckError as error:
        return Row(variant, "refused", str(error))
    except LaunchError as error:
        return Row(variant, "refused", said_of(error))
    except CompileError as error:
        return Row(variant, "crashed", str(error))
    limits = cards.LIMITS.get(problem.arch)
    return Ahead(1 if limits is None else made.occupancy(limits).ctas_per_sm, made.registers, lent)


def _sources(problem: Problem, variant: Variant) -> list[tuple[Module, Unit, Options]]:
    """The code for the sizes that are judged and, last, for those that are timed, where it is another."""
    bound = bound_at(problem, problem.made(), variant, problem.small)
    # Smaller extents are multiples of the same numbers, so that the code is the same but for its form.
    forms = [_form(problem, replace(bound, dims=dims), variant) for dims in (problem.small, problem.dims)]
    small, whole = (None if form is None else form.key for form in forms)
    lowering = lowering_for(bound, options_of(problem, variant, bound), problem.arch)
    different = forms[1:] if small == whole else forms
    return [(bound.module, bound.unit, replace(lowering, form=form)) for form in different]


def _form(problem: Problem, bound: Bound, variant: Variant) -> Form | None:
    options = options_of(problem, variant, bound)
    if isinstance(bound.program, FusedProgram):
        return form_for(bound, bound.program.fusion, options)
    grid = extents_of(bound, problem.grid)
    if grid is None:
        try:
            grid = blocks_at(bound.program, bound.sizes)
        except (GridUnknown, GridDisagrees):
            return None
    return form_of_one(bound, schedule_for(options.schedule, options.l2_group), grid)
