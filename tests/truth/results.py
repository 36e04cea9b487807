"""RESULTS.md: the sums of all truth runs so far, every open finding by seed, and the table of mutants."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from phobos.check import registry
from phobos.runtime.reference.faults import KINDS
from tests import sums
from tests.truth.compare import Report

PATH = Path(__file__).with_name("RESULTS.md")
TAME = 50  # occurrences in 2 000 kernels below which the generator is too tame
WHATS = {
    "misses": "a fault of which the checker says nothing",
    "false": "an error with a witness, on a kernel that never fails",
    "unexplained": "a fault at no obligation, or a launch that was not refused as it should",
    "silent": "results that depend on the grid, and no word of it",
}


@dataclass
class Total:
    """Sums over seeds. `counts` holds every number by its name; `open` is (seed, what, sentence).

    `first` is the seed that they begin with.
    """

    next_seed: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    open: list[tuple[int, str, str]] = field(default_factory=list)
    mutants: str = ""
    first: int = 0

    def append(self, other: Total) -> None:
        """Add the sums of a run that begins where this one ends."""
        self.counts.update(other.counts)
        self.open += other.open
        self.next_seed = other.next_seed

    def add(self, report: Report) -> None:
        counts = self.counts
        counts["kernels"] += 1
        counts["runs"] += report.runs
        counts.update(f"rule {code}" for code in report.codes)
        if report.skipped:
            counts["skipped"] += 1
            return
        counts.update(f"fault {kind}" for kind in report.failing)
        counts.update(f"refused {kind}" for kind in report.refused)
        side = "failing" if report.failing else "unsteady" if report.unsteady else "never"
        if side == "never":
            counts.update(f"doubt {code}" for code in report.doubts)
        counts[side] += 1
        counts[f"gave up, {side}"] += report.gave_up
        self.open += open_of(report)

    def amount(self, what: str) -> int:
        return sum(kind == what for _, kind, _ in self.open)

    def table(self) -> str:
        c = self.counts
        rows = {
            "kernels": c["kernels"],
            "refused before running (errors of 0xx, 1xx, 4xx)": c["skipped"],
            "failing": c["failing"],
            "never failing": c["never"],
            "never failing, with results that the order of atomics decides": c["unsteady"],
            "runs": c["runs"],
            "**misses**": self.amount("misses"),
            "**false errors**": self.amount("false"),
            "faults at no obligation, refusals gone wrong": self.amount("unexplained"),
            "results that depend on the grid, unsaid": self.amount("silent"),
            "PH506 on never-failing kernels": sums.share(c["gave up, never"], c["never"]),
            "PH506 on failing kernels": sums.share(c["gave up, failing"], c["failing"]),
        }
        for name in sorted(c):
            if name.startswith("doubt "):
                rows[f"warning {name[6:]} on never-failing kernels"] = sums.share(c[name], c["never"])
        rows |= {f"fault {kind}": c[f"fault {kind}"] for kind in KINDS}
        rows |= {f"a launch refused: {name[8:]}": c[name] for name in sorted(c) if name.startswith("refused ")}
        rows |= {name: c[name] for name in sorted(c) if name.startswith("rule ")}
        return sums.table(rows)

    def tame(self) -> list[str]:
        """What came up too seldom to mean anything. A refusal at the launch counts for its kind."""
        least = TAME * self.counts["kernels"] / 2000
        kinds = {
            f"fault {kind}": self.counts[f"fault {kind}"] + self.counts[f"refused {kind}"]
            for kind in KINDS
            if kind != "timeout"
        }
        rules = {f"rule {c}": self.counts[f"rule {c}"] for c in registry.names() if c[:3] in ("PH2", "PH3", "PH5")}
        return [f"{name}: {n}" for name, n in {**kinds, **rules}.items() if n < least]

    def text(self) -> str:
        meaning = "; ".join(f"`{what}`: {words}" for what, words in WHATS.items())
        found = [f"{what}: seed {seed}: {sentence}" for seed, what, sentence in sorted(self.open)]
        sections = {
            "": self.table(),
            "Open": f"{meaning}.\n\n{sums.listed(found)}",
            "Mutants": f"`python -m tests.truth.run --mutants` makes this table.\n\n{self.mutants.strip()}",
        }
        going_on = f"`make truth` goes on from seed {self.next_seed} and adds to these sums."
        return sums.page("The truth run", going_on, sections, self._numbers())

    def _numbers(self) -> dict[str, object]:
        return {"first": self.first, "next": self.next_seed, "counts": dict(sorted(self.counts.items()))}

    def write(self, path: Path = PATH) -> None:
        path.write_text(self.text(), "utf-8")


def read(path: Path = PATH) -> Total:
    """What is known so far; nothing where the file does not exist."""
    text = sums.text_of(path)
    known = sums.numbers_of(text)
    found = re.findall(r"^- (\w+): seed (\d+): (.*)$", text, re.MULTILINE)
    mutants = re.search(r"makes this table\.\n\n(.*?)\n\n<!-- sums", text, re.DOTALL)
    return Total(
        known.get("next", 0),
        Counter(known.get("counts", {})),
        [(int(seed), what, sentence) for what, seed, sentence in found],
        mutants.group(1) if mutants else "",
        known.get("first", 0),
    )


def open_of(report: Report) -> list[tuple[int, str, str]]:
    return [(report.seed, what, " ".join(sentence.split())) for what in WHATS for sentence in getattr(report, what)]
