"""Runs the rules: on a program once, on a file as often as asked.

What the rules say of a kernel is kept with its program, in spans of the item, so that a line inserted above
twenty kernels runs no rule again. `findings` places them in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from phobos.check import registry
from phobos.check.configuration import DEFAULT, Configuration
from phobos.check.patience import patient_collector
from phobos.check.rule import Context, FixedGrid
from phobos.check.suppressions import MARK, Suppressions
from phobos.diagnostic import Diagnostic, Edit, Fix, Related, Span
from phobos.semantics import module as modules
from phobos.semantics.program import Program, Settings
from phobos.syntax import tree
from phobos.syntax.lines import LineIndex
from phobos.value import replace

Check = Callable[[Context], Iterable[Diagnostic]]

# Where two findings stand at one place and the first explains the second, only the first is reported.
OVER: tuple[tuple[str, str], ...] = (
    ("PH206", "PH104"),
    ("PH206", "PH107"),
    ("PH207", "PH104"),
    # A barrier that cannot work is to be mended first; whether it is needed is for later.
    *((over, "PH504") for over in ("PH201", "PH202", "PH203", "PH204", "PH205", "PH215")),
)
_PER_CHAIN = frozenset(("PH203", "PH204", "PH205", "PH215"))  # one for each call chain that leads to the place


def settings_of(configuration: Configuration) -> Settings:
    """What the semantics needs to know of a configuration."""
    return Settings(configuration.constants, configuration.sizes, configuration.known_functions)


def findings(path: str, text: str, configuration: Configuration = DEFAULT) -> list[Diagnostic]:
    """Everything the enabled rules say of a file, of every severity, in order of place.

    Spans are absolute, their owner is `path`. Suppressed findings are gone; what is wrong with suppressions is
    reported. Never raises for what the text holds.
    """
    with patient_collector():
        return findings_of(modules.analyse(path, text, settings_of(configuration)), configuration)


def findings_of(module: modules.Module, configuration: Configuration) -> list[Diagnostic]:
    """`findings` of a file that was analysed with the configuration's settings."""
    path, text = module.path, module.file.text
    enabled = configuration.enabled(path)
    found = unsilenced(module, configuration)
    together: list[Diagnostic] = []  # what only the fusion of kernels is told
    if configuration.kernel is not None and "+" in configuration.kernel:
        from phobos.check.fusing import fusion_findings

        together = [*fusion_findings(module, configuration.kernel, configuration.order)]
    if MARK in text:
        suppressions = Suppressions(path, text, LineIndex(text), module.file)
        kept = suppressions.keep([*found, *together])
        of_fusion = {id(diagnostic) for diagnostic in together}
        together = [diagnostic for diagnostic in kept if id(diagnostic) in of_fusion]
        found = [diagnostic for diagnostic in kept if id(diagnostic) not in of_fusion]
        found += suppressions.findings(enabled)
    if configuration.kernel is not None:
        found = of_kernels(module, found, configuration.kernel.split("+"))
    found = [diagnostic for diagnostic in [*found, *together] if diagnostic.code in enabled]
    return sorted(found, key=lambda d: (d.span.start, d.code, d.span.end, d.message))


def unsilenced(module: modules.Module, configuration: Configuration) -> list[Diagnostic]:
    """What all rules say of a file, those included that the configuration or a comment silences."""
    found: list[Diagnostic] = []
    found += syntax_findings(module.path, module.file)
    for unit in module.units:
        for problem in unit.problems:
            found.append(registry.worded(problem).map_spans(lambda span, unit=unit: module.absolute(unit, span)))  # type: ignore[misc]
        for diagnostic in diagnostics_of(context_of(module, unit, configuration)):
            found.append(diagnostic.map_spans(lambda span, unit=unit: module.absolute(unit, span)))  # type: ignore[misc]
    return _tidy(first_to_speak(distinct(found)), module.file.text)


def _tidy(found: list[Diagnostic], text: str) -> list[Diagnostic]:
    """The findings, with fixes that take out the blanks around what they take out, and the line where that is all."""
    if not any(_takes_out(edit) for one in found if one.fix is not None for edit in one.fix.edits):
        return found
    lines = LineIndex(text)

    def tidied(edit: Edit) -> Edit:
        if not _takes_out(edit):
            return edit
        return replace(edit, span=Span(edit.span.owner, *lines.without(edit.span.start, edit.span.end)))

    return [
        one if one.fix is None else replace(one, fix=replace(one.fix, edits=tuple(map(tidied, one.fix.edits))))
        for one in found
    ]


def _takes_out(edit: Edit) -> bool:
    return edit.content == ""


def context_of(module: modules.Module, unit: modules.Unit, configuration: Configuration) -> Context:
    """What the rules may read of one kernel or function of a file."""
    program = unit.program
    grid = fixed_grid(module.file.text, program.name) if program.owner is None else None
    called = (module.functions[name] for name in program.inlined if name in module.functions)
    parses = not any(one.item.problems for one in (unit, *called))
    return Context(program, configuration.target, grid, _rebuilder(module, unit), configuration.measure, parses)


def diagnostics_of(context: Context) -> tuple[Diagnostic, ...]:
    """What the rules that read facts say of one program, in spans of its item; kept with the program."""
    for _ in _steps(context):
        pass
    return context.program._facts[_key(context)]  # type: ignore[index, return-value]


def steps(module: modules.Module, configuration: Configuration) -> Iterator[None]:
    """Does what `findings_of` will need in pieces of some milliseconds, for callers with other things to do between."""
    for unit in module.units:
        yield from _steps(context_of(module, unit, configuration))


def _key(context: Context) -> tuple[object, ...]:
    grid = context.grid
    return "check", context.targets, (grid.blocks, grid.source) if grid else None, context.measure


def _steps(context: Context) -> Iterator[None]:
    """Runs the rules on a program and keeps what they say with it; a step each."""
    key = _key(context)
    program = context.program
    facts: dict[object, object] = program._facts  # type: ignore[assignment]
    if key in facts:
        return
    found: list[Diagnostic] = []
    if program.owner is None and program.body is not None:
        if context.parses:
            yield from _conflicts(context)
        for check in checks() if context.parses else local_checks():
            found += check(context)
            yield
    facts[key] = tuple(_told(context, found))


def _conflicts(context: Context) -> Iterator[None]:
    """What takes the race rules long, made in steps before they ask for it."""
    from phobos.check.races import elsewhere
    from phobos.semantics.conflicts import aliases_of, meetings_of
    from phobos.semantics.footprints import footprints_of
    from phobos.semantics.uniformity import uniformity_of
    from phobos.semantics.values import values_of

    def of(program: Program) -> Iterator[None]:
        for fact in (values_of, uniformity_of, footprints_of, meetings_of):
            fact(program)
            yield

    yield from of(context.program)
    aliases_of(context.program)
    for _, program in elsewhere(context):
        yield from of(program)


def _told(context: Context, found: list[Diagnostic]) -> list[Diagnostic]:
    told = [*map(registry.worded, context.program.problems), *found]
    if any((d.severity == "error" and d.code.startswith("PH2")) or d.code in ("PH211", "PH212") for d in told):
        found = [d for d in found if d.code != "PH210"]  # first what hangs, or says the same more closely
    return found


def first_to_speak(found: list[Diagnostic]) -> list[Diagnostic]:
    """Without what another finding at the same place explains."""
    places = {(d.code, d.span.start) for d in found}
    return [d for d in found if not any(d.code == weaker and (over, d.span.start) in places for over, weaker in OVER)]


def syntax_findings(path: str, file: tree.File) -> list[Diagnostic]:
    """What did not parse. Text that stands outside of an item because a `{` is missing in that is not told of again."""
    out: list[Diagnostic] = []
    unopened = False
    for offset, item in file.items:
        if item.node is not None:
            unopened = item.unopened
        elif unopened and not item.text.startswith("@"):
            continue
        out += (_syntax_finding(path, offset, problem) for problem in item.problems)
    return out


def _syntax_finding(path: str, offset: int, problem: tree.SyntaxProblem) -> Diagnostic:
    def place(start: int, end: int) -> Span:
        return Span(path, offset + start, offset + end)

    fix = None
    if problem.fix is not None:
        message, edits = problem.fix
        fix = Fix(message, "safe", tuple(Edit(place(start, end), content) for start, end, content in edits))
    return Diagnostic(
        problem.code, registry.names()[problem.code], "error", problem.message, place(problem.start, problem.end),
        problem.label, tuple(Related(place(start, end), said) for start, end, said in problem.related), (),
        problem.help, fix,
    )  # fmt: skip


def _rebuilder(module: modules.Module, unit: modules.Unit) -> Callable[[Mapping[str, int]], Program]:
    built: dict[tuple[tuple[str, int], ...], Program] = {}  # several rules ask for the same, with its facts

    def at(constants: Mapping[str, int]) -> Program:
        from phobos.semantics.build import build

        settings = unit.program.settings
        fixed = tuple(sorted((dict(settings.constants) | dict(constants)).items()))
        if fixed not in built:
            functions = {name: one.item for name, one in module.functions.items()}
            built[fixed] = build(unit.item, functions, Settings(fixed, settings.sizes, settings.known_functions))
        return built[fixed]

    return at


def checks() -> list[Check]:
    """The `check` of every rule that reads facts, in order of code."""
    if not _CHECKS:
        _CHECKS.extend(registry.module(code).check for code in registry.FACT_RULES)
    return _CHECKS


def local_checks() -> list[Check]:
    """Of a kernel that did not parse: what is missing in the text says nothing about the rest of it."""
    return [registry.module(code).check for code in registry.LOCAL_RULES]


_CHECKS: list[Check] = []


def distinct(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """One finding per mistake: a function checked alone and inlined three times makes one, the gravest first seen."""
    kept: dict[object, Diagnostic] = {}
    for diagnostic in found:
        key: tuple[object, ...] = (diagnostic.code, diagnostic.span.start, diagnostic.span.end)
        if diagnostic.code in _PER_CHAIN:
            key += tuple((r.span.start, r.span.end) for r in diagnostic.related)
        known = kept.get(key)
        if known is None or _RANK[diagnostic.severity] < _RANK[known.severity]:
            kept[key] = diagnostic
    return list(kept.values())


_RANK = {"error": 0, "warning": 1, "info": 2}


def of_kernels(module: modules.Module, found: list[Diagnostic], kernels: list[str]) -> list[Diagnostic]:
    """The findings inside these kernels and the functions they inline."""
    names = set(kernels)
    for name in kernels:
        if name in module.kernels:
            names |= set(module.kernels[name].program.inlined)
    ranges = [(u.offset, u.offset + len(u.item.text)) for u in module.units if u.program.name in names]
    return [d for d in found if any(start <= d.span.start < end for start, end in ranges)]


def fixed_grid(text: str, kernel: str) -> FixedGrid | None:
    """The grid that the file's `// run:` headers fix for a kernel."""
    if "run:" not in text:
        return None
    from phobos.check.headers import fixed_grid as read

    return read(text, kernel)
