"""Faults as diagnostics of the file: codes, spans, and which finding of the checker a fault confirms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from phobos.diagnostic import Diagnostic, Related, Span
from phobos.errors import KernelFault, LaunchError, PhobosError
from phobos.syntax.lines import line_at

if TYPE_CHECKING:
    from phobos.runtime.reference.faults import Fault, Site
    from phobos.semantics.module import Module, Unit

CODES = {
    "deadlock": "PH203",
    "race": "PH501",
    "out-of-bounds": "PH115",
    "uninitialised": "PH110",
    "aligned-broken": "PH303",
    "not-resident": "PH214",
    "grid-too-large": "PH219",
    "bad-barrier-tensor": "PH206",
    "bad-step": "PH117",
    "division-by-zero": "PH117",
}
"""The rule that speaks of the same mistake. `assumption-broken` and `timeout` have none."""

FAMILIES = {
    "deadlock": ("PH201", "PH202", "PH203", "PH204", "PH205", "PH207", "PH211", "PH212", "PH215", "PH508"),
    "race": ("PH501", "PH502", "PH503", "PH505", "PH506", "PH507", "PH207", "PH211", "PH212"),
    "out-of-bounds": ("PH115", "PH219"),
    "uninitialised": ("PH110",),
    "aligned-broken": ("PH303",),
    "not-resident": ("PH214", "PH201"),
    "grid-too-large": ("PH219",),
    "bad-barrier-tensor": ("PH206", "PH208"),
    "bad-step": ("PH117",),
    "division-by-zero": ("PH117",),
    "timeout": ("PH508", "PH203", "PH204", "PH205", "PH215"),
}
"""The findings that a fault of a kind can confirm."""

KINDS = (*FAMILIES, "assumption-broken")


def _names() -> dict[str, str]:
    """The names of the rules. They are asked for when something is wrong, which a start need not wait for."""
    from phobos.check import registry

    return registry.names()


def diagnostic_of(module: Module, unit: Unit, fault: Fault) -> Diagnostic:
    """A fault of a run in the form of a finding, spans absolute in the file."""
    code = fault.code or CODES.get(fault.kind, "")
    site = fault.site
    span = unit_name(module, unit) if site is None else module.absolute(unit, site.span)
    related: list[Related] = [] if site is None else _calls(module, unit, site)
    for other in fault.others:
        related.append(Related(module.absolute(unit, other.span), other.message))
        related += _calls(module, unit, other)
    message = fault.message if fault.kind in fault.message else f"{fault.kind}: {fault.message}"
    return Diagnostic(
        code, _names().get(code, fault.kind), "error", message, span, "" if site is None else site.message,
        tuple(related), fault.notes, fault.help,
    )  # fmt: skip


def refusal(
    module: Module, unit: Unit, kind: str | None, message: str, span: Span | None, *, label: str = "",
    notes: Sequence[str] = (), help: str | None = None,
) -> LaunchError:  # fmt: skip
    """A launch that must not happen, with its place in the file (`span` counts in the unit's item)."""
    code = CODES.get(kind or "", "")
    place = unit_name(module, unit) if span is None else module.absolute(unit, span)
    head = f"{kind}: {message}" if kind and kind not in message else message
    diagnostic = Diagnostic(
        code, _names().get(code, kind or "launch"), "error", head, place, label, (), tuple(notes), help
    )
    said = f"{module.path}:{_line(module, place)}: {head}" + (f"; {help}" if help else "")
    return LaunchError(said, kind, diagnostic)


def raised(module: Module, unit: Unit, fault: Fault) -> KernelFault:
    """The exception of a fault: what went wrong and where, with every other place that belongs to it."""
    diagnostic = diagnostic_of(module, unit, fault)
    said = f"{module.path}:{_line(module, diagnostic.span)}: {diagnostic.message}"
    for related in diagnostic.related:
        said += f"; line {_line(module, related.span)}: {related.message}"
    return KernelFault(said, fault.kind, diagnostic, fault.blocks)


def _line(module: Module, place: Span) -> int:
    return line_at(module.file.text, place.start)


def said_of(error: PhobosError) -> str:
    """What a refusal or a fault says, in one line and without its place."""
    diagnostic = getattr(error, "diagnostic", None)
    return str(error) if diagnostic is None else str(diagnostic.message)


def unit_name(module: Module, unit: Unit) -> Span:
    """The name of the kernel in its file."""
    return module.absolute(unit, unit.program.named)


def _calls(module: Module, unit: Unit, site: Site) -> list[Related]:
    return [Related(module.absolute(unit, call), "called from here") for call in reversed(site.calls)]


def confirmed(kind: str, diagnostic: Diagnostic | None, findings: Iterable[Diagnostic]) -> Diagnostic | None:
    """The finding that a fault confirms: of its family, best of its code and at one of its places."""
    family = FAMILIES.get(kind, ())
    best: tuple[int, Diagnostic] | None = None
    places = [] if diagnostic is None else [diagnostic.span, *(related.span for related in diagnostic.related)]
    for finding in findings:
        if finding.code not in family:
            continue
        score = 4 * (finding.severity == "error") + 2 * (finding.severity == "warning")
        score += 8 * (diagnostic is not None and finding.code == diagnostic.code)
        own = [finding.span, *(related.span for related in finding.related)]
        score += 16 * any(a.start < b.end and b.start < a.end for a in places for b in own)
        score += 32 * (bool(places) and places[0].start < finding.span.end and finding.span.start < places[0].end)
        if best is None or score > best[0]:
            best = score, finding
    return None if best is None else best[1]
