"""RESULTS.md: the sums of all fuzzing so far, which inputs they cover, and every input that goes wrong.

Written for people; the sums also stand in it as one line of JSON, from which the next run goes on, and which another
run's file can be added to.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from phobos.check import registry
from tests.fuzz.pool import Sums
from tests.fuzz.seeds import raising
from tests.fuzz.stages import STAGES

PATH = Path(__file__).with_name("RESULTS.md")
GROWTH = 400 << 20  # bytes that a process may grow by after its first inputs
WARM = 4_000  # inputs that fill a process's caches


@dataclass
class Total:
    """Sums. `covered` are stretches (first, end) of inputs, in order and apart."""

    covered: list[tuple[int, int]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    wrong: dict[int, str] = field(default_factory=dict)
    processes: dict[int, list[tuple[int, int]]] = field(default_factory=dict)  # (inputs, bytes) after each chunk

    @property
    def inputs(self) -> int:
        return sum(end - first for first, end in self.covered)

    def next(self) -> int:
        """The first input that was not tried."""
        return self.covered[0][1] if self.covered and self.covered[0][0] == 0 else 0

    def add(self, sums: Sums) -> None:
        self._cover(sums.first, sums.first + sums.count)
        for kind, counts in (("stage", sums.stages), ("code", sums.codes), ("way", sums.ways)):
            self.counts.update({f"{kind} {name}": count for name, count in counts.items()})
        self.wrong.update(sums.wrong)
        if sums.process:
            held = self.processes.setdefault(sums.process, [])
            held.append(((held[-1][0] if held else 0) + sums.count, sums.resident_bytes))

    def add_all(self, other: Total) -> None:
        """Another run's sums, of other inputs."""
        for first, end in other.covered:
            if any(first < e and f < end for f, e in self.covered):
                raise ValueError(f"inputs {first} to {end} are in both")
            self._cover(first, end)
        self.counts.update(other.counts)
        self.wrong.update(other.wrong)

    def _cover(self, first: int, end: int) -> None:
        joined: list[tuple[int, int]] = []
        for f, e in sorted([*self.covered, (first, end)]):
            if joined and f <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(e, joined[-1][1]))
            else:
                joined.append((f, e))
        self.covered = joined

    def complaints(self) -> list[str]:
        """What makes a run worth nothing, beside what went wrong. Codes are asked of runs that begin at 0."""
        said = []
        if self.counts["stage parsed"] * 2 < self.inputs:
            said.append(f"only {self.counts['stage parsed']} of {self.inputs} texts parse")
        if self.next() >= raising():
            never = [code for code in registry.stems() if not self.counts[f"code {code}"]]
            said += [f"never raised: {', '.join(never)}"] if never else []
        for held in self.processes.values():
            warm = [size for inputs, size in held if inputs >= WARM]
            if warm and warm[-1] - warm[0] > GROWTH:
                said.append(f"a process grew from {warm[0] >> 20} to {warm[-1] >> 20} MiB in {held[-1][0]} inputs")
        return said

    def table(self) -> str:
        rows = {"inputs": str(self.inputs)}
        for stage in STAGES:
            count = self.counts[f"stage {stage}"]
            rows[f"reached: {stage}"] = f"{count} ({100 * count / max(self.inputs, 1):.1f} %)"
        for name in sorted(name for name in self.counts if name.startswith("way ")):
            rows[f"made by: {name[4:]}"] = str(self.counts[name])
        raised = [code for code in registry.stems() if self.counts[f"code {code}"]]
        rows["rules raised"] = f"{len(raised)} of {len(registry.stems())}"
        rows["seldomest"] = ", ".join(
            f"{code} {n}" for n, code in sorted((self.counts[f"code {code}"], code) for code in registry.stems())[:5]
        )
        rows["went wrong"] = str(len(self.wrong))
        return "\n".join(["| what | count |", "|---|---|", *(f"| {name} | {n} |" for name, n in rows.items())])

    def text(self) -> str:
        lines = [f"- input {number}: {' '.join(said.split())}" for number, said in sorted(self.wrong.items())]
        sums = json.dumps({"covered": self.covered, "counts": dict(sorted(self.counts.items()))})
        return (
            "# Fuzzing\n\n`make fuzz` goes on behind the inputs covered here and adds to these sums. "
            "`python -m tests.fuzz.run --show N` shows one.\n\n"
            f"{self.table()}\n\n## Goes wrong\n\n" + ("\n".join(lines) or "Nothing.") + f"\n\n<!-- sums: {sums} -->\n"
        )

    def write(self, path: Path = PATH) -> None:
        path.write_text(self.text(), "utf-8")


def read(path: Path = PATH) -> Total:
    """What is known so far; nothing where the file does not exist."""
    if not path.exists():
        return Total()
    text = path.read_text("utf-8")
    found = re.search(r"<!-- sums: (.*) -->", text)
    known = json.loads(found[1]) if found else {"covered": [], "counts": {}}
    wrong = re.findall(r"^- input (\d+): (.*)$", text, re.MULTILINE)
    covered = [(first, end) for first, end in known["covered"]]
    return Total(covered, Counter(known["counts"]), {int(number): said for number, said in wrong})


def chunks_from(first: int, count: int, size: int) -> Iterable[tuple[int, int]]:
    for at in range(first, first + count, size):
        yield at, min(size, first + count - at)
