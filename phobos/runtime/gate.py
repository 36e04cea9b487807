"""`run` checks first: which findings stop a launch, and what a run then confirms of them.

An error of syntax, types or attributes stops everything. An error about barriers, promises or races stops a GPU;
the reference runtime runs such a kernel, because to show the fault is what it is for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from phobos.codegen import cache
from phobos.diagnostic import Diagnostic
from phobos.errors import CheckError
from phobos.syntax.lines import line_at
from phobos.value import replace

if TYPE_CHECKING:
    from phobos.check.configuration import Configuration
    from phobos.runtime.options import Chosen
    from phobos.semantics.module import Module, Unit

STOPS_ALL = ("PH0", "PH1", "PH4")
STOPS_DEVICE = ("PH2", "PH3", "PH5")


def findings(module: Module, kernel: str, constants: Chosen = ()) -> list[Diagnostic]:
    """What the checker says of a kernel (`a+b`: of each) and the functions it calls, by its file's configuration and at
    these constants."""
    from phobos.check import findings as all_findings
    from phobos.check.engine import of_kernels

    found = all_findings(module.path, module.file.text, _configuration(module, constants))
    inside = of_kernels(module, found, kernel.split("+"))
    return inside + [d for d in _unparsed(module, found, kernel) if d not in inside]


def codes(
    module: Module, kernel: str, found: Sequence[Diagnostic], constants: Chosen = ()
) -> tuple[str, ...]:  # fmt: skip
    """The codes of `found`, and then of what is silenced: who silences a finding says that their launches are not those
    it is about, and is believed; but a launch that hangs all the same shall end."""
    from phobos.check.engine import of_kernels, settings_of, unsilenced
    from phobos.semantics.module import analyse

    configuration = _configuration(module, constants)
    read = analyse(module.path, module.file.text, settings_of(configuration))
    everything = of_kernels(read, unsilenced(read, configuration), kernel.split("+"))
    return tuple(dict.fromkeys(finding.code for finding in (*found, *everything)))


def _configuration(module: Module, constants: Chosen) -> Configuration:
    from phobos.check.configuration import DEFAULT, of_file

    read = DEFAULT if module.path.startswith("<") else of_file(module.path)
    return replace(read, constants=constants) if constants else read


def _unparsed(module: Module, found: Sequence[Diagnostic], kernel: str) -> list[Diagnostic]:
    """The errors of syntax among `found` that stand in a kernel, or at its very end."""
    items = [
        (unit.offset, unit.offset + len(unit.item.text)) for unit in map(module.kernels.__getitem__, kernel.split("+"))
    ]
    return [
        d for d in found
        if d.code.startswith("PH0") and d.severity == "error"
        and any(start <= d.span.start <= end for start, end in items)
    ]  # fmt: skip


def passed(path: str, text: str, kernel: str, constants: Chosen = ()) -> tuple[str, ...] | None:
    """The `codes` of a kernel that nothing forbids to run anywhere, where that is known from before."""
    return cache.verdict(_key(path, text, kernel, constants))


def keep(
    path: str, text: str, kernel: str, found: Sequence[Diagnostic], codes: tuple[str, ...], constants: Chosen = ()
) -> None:  # fmt: skip
    """Keep that nothing forbids a kernel to run, where that is so, for the next start."""
    if not stopping(found, on_device=True):
        cache.keep_verdict(_key(path, text, kernel, constants), codes)


def _key(path: str, text: str, kernel: str, constants: Chosen) -> str:
    """Names all that the checker goes by: the words, the constants, and every configuration file that may count."""
    files = [f"{name}={number}" for name, number in constants]
    if not path.startswith("<"):
        place = Path(path).resolve()
        files.append(str(place))
        for folder in place.parents:
            for name in ("phobos.toml", "pyproject.toml"):
                with contextlib.suppress(OSError):
                    state = (folder / name).stat()
                    files.append(f"{folder}/{name}:{state.st_size}:{state.st_mtime_ns}")
    return cache.verdict_key([text, kernel, *files])


def own_errors(module: Module, unit: Unit) -> list[Diagnostic]:
    """What the builder says against the kernel at the constants it is to run with."""
    errors = [problem for problem in unit.program.problems if problem.severity == "error"]
    if not errors:
        return []
    from phobos.check.registry import worded

    return [worded(problem).map_spans(lambda span: module.absolute(unit, span)) for problem in errors]


def demand_program(module: Module, unit: Unit, kernel: str, found: Sequence[Diagnostic] = ()) -> None:
    """Raises CheckError where there is no program to run, by the parser, by `found` or by the builder, or LaunchError:
    a barrier has no tensor, and no error says why (it is given what comes from a function that nobody knows).
    """
    from phobos.runtime.faults import refusal
    from phobos.semantics import ir
    from phobos.semantics.walking import statements_of

    own = own_errors(module, unit)
    syntax: list[Diagnostic] = []
    if any(item.problems for _, item in module.file.items):
        from phobos.check.engine import syntax_findings

        syntax = _unparsed(module, syntax_findings(module.path, module.file), kernel)
    demand([*syntax, *found, *own], kernel, module.file.text, on_device=False)
    without = [
        one.argument
        for one in statements_of(unit.program.body)
        if isinstance(one, ir.Barrier) and one.tensor.name not in unit.program.tensors
    ]
    if not without:
        return
    places = [module.absolute(unit, span) for span in without]
    against = [error for error in own if error.span in places] or own
    if against:
        raise CheckError(f"`{kernel}` cannot run: {_first(against, module.file.text)}", against)
    what = f"`{kernel}` cannot run: this is not known to be one of its tensors"
    raise refusal(module, unit, None, what, without[0], label="what the barrier counts in")


def stopping(found: Sequence[Diagnostic], *, on_device: bool) -> list[Diagnostic]:
    """The findings that forbid a run there."""
    groups = STOPS_ALL + STOPS_DEVICE if on_device else STOPS_ALL
    return [d for d in found if d.severity == "error" and d.code.startswith(groups)]


def demand(found: Sequence[Diagnostic], kernel: str, text: str, *, on_device: bool) -> None:
    """Raises CheckError where a finding in a file of this text forbids the run; what is there twice is said once."""
    against = stopping(found, on_device=on_device)
    if against:
        from phobos.check.engine import distinct

        against = distinct(against)
        more = f" (and {len(against) - 1} more)" if len(against) > 1 else ""
        raise CheckError(f"`{kernel}` cannot run: {_first(against, text)}{more}", against)


def _first(against: Sequence[Diagnostic], text: str) -> str:
    """The first of them in one line, with its place."""
    first = against[0]
    return f"{first.span.owner}:{line_at(text, first.span.start)}: {first.code} {first.message}"


def doubtful(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Errors that a run in the reference runtime can confirm."""
    return [d for d in found if d.severity == "error" and d.code.startswith(STOPS_DEVICE)]
