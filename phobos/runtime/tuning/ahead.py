"""Variants compiled before they are judged, in as many processes as there are cores; no device is asked.

What is compiled is kept on disk, where the process that launches finds it.
"""

from __future__ import annotations

from phobos.codegen import cards
from phobos.codegen.nvrtc import CompileError
from phobos.errors import CheckError, LaunchError
from phobos.lowering.options import Options
from phobos.runtime import gate
from phobos.runtime.compiling import build
from phobos.runtime.cuda.launch import multiples_of
from phobos.runtime.tuning.judging import Row
from phobos.runtime.tuning.problem import Problem
from phobos.runtime.tuning.space import Variant
from phobos.value import value


@value
class Ahead:
    """`ctas_per_sm` by the table of cards, 0 where nothing of it fits."""

    ctas_per_sm: int
    registers: int


def ahead(problem: Problem, variant: Variant) -> Ahead | Row:
    """Compile a variant for `problem.arch`; a row where it can be refused or does not compile."""
    kernel = problem.made()
    try:
        module, unit = kernel.analysed(problem.constants(variant))
        gate.demand(gate.own_errors(module, unit), kernel.name, on_device=False)
        made = build(module, unit, Options(arch=problem.arch, multiples=multiples_of(problem.dims)))
    except CheckError as error:
        return Row(variant, "refused", str(error))
    except LaunchError as error:
        return Row(variant, "refused", str(error) if error.diagnostic is None else error.diagnostic.message)
    except CompileError as error:
        return Row(variant, "crashed", str(error))
    limits = cards.LIMITS.get(problem.arch)
    return Ahead(1 if limits is None else made.occupancy(limits).ctas_per_sm, made.registers)
