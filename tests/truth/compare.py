"""The checker's word against the reference runtime's, for one sample.

A *miss*: the kernel deadlocks, races, reads what was never written or breaks a static promise, and the checker
says nothing of it: no error or warning of a rule that speaks of that kind, and no PH506 or PH508. A *false
error*: an error of a rule that claims a witness, on a kernel that never fails. An *unexplained* fault of another
kind stands at no obligation left to the launch or the device.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from phobos.check import findings
from phobos.check.configuration import Configuration
from phobos.diagnostic import Diagnostic
from phobos.runtime.faults import FAMILIES
from phobos.semantics import module as modules
from phobos.semantics.obligations import obligations_of
from tests.truth.generator import Sample, generate
from tests.truth.judge import PATH, Verdict, differs_up_to, judge, other_axis_works, second_look

WITNESSED = ("PH203", "PH204", "PH205", "PH215", "PH303", "PH501", "PH502", "PH503")
DOUBTS = ("PH203", "PH204", "PH205", "PH215", "PH501", "PH502", "PH503", "PH507", "PH508")
COVERAGE = ("PH210", "PH211", "PH212", "PH218", "PH219")
SPEAKS = {
    "deadlock": ("PH20", "PH215", "PH50"),
    "race": ("PH50", "PH211", "PH212", "PH20", "PH215"),
    "uninitialised": ("PH110",),
    "aligned-broken": ("PH303",),
}


@dataclass
class Report:
    """What came of one seed. `misses`, `false` and `unexplained` are sentences, empty when all is well."""

    seed: int
    failing: tuple[str, ...] = ()
    skipped: str = ""
    misses: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)  # results that depend on the grid, and no word of it
    doubts: tuple[str, ...] = ()  # warnings of DOUBTS on a kernel that never fails
    unsteady: bool = False  # never fails, but its results hang on the order of atomics
    gave_up: bool = False  # PH506
    codes: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)  # what refused some launch of it, each once
    runs: int = 0


def compare(seed: int) -> Report:
    """Generate, check, run and compare the kernel of a seed."""
    return compare_sample(generate(seed))


def compare_sample(sample: Sample) -> Report:
    """Check, run and compare one kernel."""
    return told(sample, checked(sample))


def checked(sample: Sample) -> list[Diagnostic]:
    """What the checker says of a kernel."""
    return findings(PATH, sample.text, Configuration(target=sample.targets))


def told(sample: Sample, found: list[Diagnostic], verdict: Verdict | None = None) -> Report:
    """What is to be said of findings, given what happens (None: run it and see)."""
    report = Report(sample.seed)
    report.codes.update({d.code for d in found})
    wrong = sorted({d.code for d in found if d.severity == "error" and d.code[2] in "014"})
    if wrong:  # nothing of it runs: `run` stops at these
        report.skipped = ", ".join(wrong)
        return report
    verdict = judge(sample, found) if verdict is None else verdict
    report.refused.update(verdict.refused.keys())
    report.unexplained += verdict.complaints
    report.runs = verdict.runs
    report.failing = tuple(verdict.failures)
    report.gave_up = any(d.code == "PH506" for d in found)
    _misses(report, sample, found, verdict)
    if not verdict.failures:
        report.unsteady = verdict.unsteady
        claimed = [d for d in found if d.severity == "error" and d.code in WITNESSED]
        if claimed and not second_look(sample, found):
            report.false += [
                f"{d.code} at line {_line(sample.text, d.span.start)}: {d.message}" for d in claimed
            ]
        report.doubts = tuple(sorted({d.code for d in found if d.severity == "warning" and d.code in DOUBTS}))
    _coverage(report, sample, found, verdict)
    return report


def _misses(report: Report, sample: Sample, found: list[Diagnostic], verdict: Verdict) -> None:
    said = {d.code for d in found if d.severity in ("error", "warning")}
    gave_up = {d.code for d in found if d.code in ("PH506", "PH508")}
    for kind, failure in verdict.failures.items():
        if kind in SPEAKS:
            if any(code.startswith(SPEAKS[kind]) for code in said):
                continue
            doubtful = [d for d in found if d.code in gave_up]
            if kind in ("deadlock", "race") and any(_speaks_of(d, failure.tensors, sample.text) for d in doubtful):
                continue
            report.misses.append(f"{kind} at {failure.at}: {failure.message}")
        elif kind == "other" and any(d.severity == "error" for d in found):
            continue  # refused, and the text is wrong anyway
        elif kind == "timeout" or any(code in said for code in FAMILIES.get(kind, ())):
            continue
        elif not _is_obligation(sample, failure.spans):
            report.unexplained.append(f"{kind} at {failure.at}: {failure.message}")


def _speaks_of(diagnostic: Diagnostic, tensors: tuple[str, ...], text: str) -> bool:
    if not tensors:
        return True
    spans = [diagnostic.span, *(related.span for related in diagnostic.related)]
    return any(
        name in text[span.start : span.end] or f"`{name}" in diagnostic.message for name in tensors for span in spans
    )


def _is_obligation(sample: Sample, spans: tuple[tuple[int, int], ...]) -> bool:
    module = modules.analyse(PATH, sample.text)
    unit = module.kernels[sample.kernel]
    for obligation in obligations_of(unit.program):
        if obligation.state == "proved":
            continue
        for span in (obligation.span, *obligation.calls):
            place = module.absolute(unit, span)
            if any(place.start < end and start < place.end for start, end in spans):
                return True
    return False


def _coverage(report: Report, sample: Sample, found: list[Diagnostic], verdict: Verdict) -> None:
    """Work left out or done twice is no fault: it shows in results that depend on the grid."""
    if verdict.failures or not sample.persistent or sample.uses_atomics:
        return
    said = {d.code: d.severity for d in found}
    if any(d.severity == "error" and d.code[:3] == "PH2" and d.code not in COVERAGE for d in found):
        return  # PH210 does not stand beside an error of its group
    if said.get("PH218") == "error" and other_axis_works(sample) is False:
        report.false.append("PH218 says that work is left out, but a second axis changes no result")
    if verdict.varies is None:
        for d in found:
            if d.code == "PH211" and d.severity == "error":
                line = _line(sample.text, d.span.start)
                if differs_up_to(sample, line) is False:
                    report.false.append(f"PH211 at line {line}: work is left out, but no grid changes the result")
    elif not any(code in said for code in (*COVERAGE, "PH506", "PH213")) and "ctx.blocks" not in sample.text:
        report.silent.append(verdict.varies)


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
