"""`run` checks first: which findings stop a launch, and what a run then confirms of them.

An error of syntax, types or attributes stops everything. An error about barriers, promises or races stops a GPU;
the reference runtime runs such a kernel, because to show the fault is what it is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from phobos.diagnostic import Diagnostic
from phobos.errors import CheckError

if TYPE_CHECKING:
    from phobos.semantics.module import Module, Unit

STOPS_ALL = ("PH0", "PH1", "PH4")
STOPS_DEVICE = ("PH2", "PH3", "PH5")


def findings(module: Module, kernel: str) -> list[Diagnostic]:
    """What the checker says of a kernel (`a+b`: of each) and the functions it calls, by its file's configuration."""
    from phobos.check import findings as all_findings
    from phobos.check.configuration import DEFAULT, of_file
    from phobos.check.engine import of_kernels

    configuration = DEFAULT if module.path.startswith("<") else of_file(module.path)
    found = all_findings(module.path, module.file.text, configuration)
    names = kernel.split("+")
    inside = of_kernels(module, found, names)
    items = [(unit.offset, unit.offset + len(unit.item.text)) for unit in map(module.kernels.__getitem__, names)]
    syntax = [
        d for d in found if d.code.startswith("PH0") and d.severity == "error" and d not in inside
        and any(start <= d.span.start <= end for start, end in items)
    ]  # fmt: skip
    return inside + syntax


def own_errors(module: Module, unit: Unit) -> list[Diagnostic]:
    """What the builder says against the kernel at the constants it is to run with."""
    from phobos.check.engine import worded

    errors = [problem for problem in unit.program.problems if problem.severity == "error"]
    return [worded(problem).map_spans(lambda span: module.absolute(unit, span)) for problem in errors]


def demand_program(module: Module, unit: Unit, kernel: str, found: Sequence[Diagnostic] = ()) -> None:
    """Raises CheckError where there is no program to run: by `found`, by the builder, or as a barrier has no tensor."""
    from phobos.semantics import ir
    from phobos.semantics.walking import statements_of

    own = own_errors(module, unit)
    demand([*found, *own], kernel, on_device=False)
    if not own:
        return
    without = [
        module.absolute(unit, one.argument)
        for one in statements_of(unit.program.body)
        if isinstance(one, ir.Barrier) and one.tensor.name not in unit.program.tensors
    ]
    if without:
        against = [error for error in own if error.span in without] or own
        raise CheckError(f"`{kernel}` was not run: {against[0].code} {against[0].message}", against)


def stopping(found: Sequence[Diagnostic], *, on_device: bool) -> list[Diagnostic]:
    """The findings that forbid a run there."""
    groups = STOPS_ALL + STOPS_DEVICE if on_device else STOPS_ALL
    return [d for d in found if d.severity == "error" and d.code.startswith(groups)]


def demand(found: Sequence[Diagnostic], kernel: str, *, on_device: bool) -> None:
    """Raises CheckError where a finding forbids the run; what is in `found` twice is said once."""
    from phobos.check.engine import distinct

    against = distinct(stopping(found, on_device=on_device))
    if against:
        first = against[0]
        more = f" (and {len(against) - 1} more)" if len(against) > 1 else ""
        raise CheckError(f"`{kernel}` was not run: {first.code} {first.message}{more}", against)


def doubtful(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Errors that a run in the reference runtime can confirm."""
    return [d for d in found if d.severity == "error" and d.code.startswith(STOPS_DEVICE)]
