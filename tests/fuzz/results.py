"""RESULTS.md: the sums of all fuzzing so far, which inputs they cover, and every input that goes wrong, with its text:
numbers mean other texts when seeds change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from phobos.check import registry
from phobos.value import replace
from tests import sums
from tests.fuzz.inputs import as_json, from_json
from tests.fuzz.pool import Sums, Wrong
from tests.fuzz.seeds import raising
from tests.fuzz.shrink import kind_of
from tests.fuzz.stages import STAGES

PATH = Path(__file__).with_name("RESULTS.md")
GROWTH = 400 << 20  # bytes that a process may grow by after its first inputs
WARM = 4_000  # inputs that fill a process's caches
ALIKE = 5  # inputs that go wrong in one way of which the text is kept


@dataclass
class Total:
    """Sums. `covered` are stretches (first, end) of inputs, in order and apart."""

    covered: list[tuple[int, int]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    wrong: dict[int, Wrong] = field(default_factory=dict)
    processes: dict[int, list[tuple[int, int]]] = field(default_factory=dict)  # (inputs, bytes) after each chunk

    @property
    def inputs(self) -> int:
        return sum(end - first for first, end in self.covered)

    def next(self) -> int:
        """The first input that was not tried."""
        return self.covered[0][1] if self.covered and self.covered[0][0] == 0 else 0

    def add(self, done: Sums) -> None:
        self._cover(done.first, done.first + done.count)
        for kind, counts in (("stage", done.stages), ("code", done.codes), ("way", done.ways)):
            self.counts.update({f"{kind} {name}": count for name, count in counts.items()})
        self._open(done.wrong)
        if done.process:
            held = self.processes.setdefault(done.process, [])
            held.append(((held[-1][0] if held else 0) + done.count, done.resident_bytes))

    def _open(self, wrong: Iterable[Wrong]) -> None:
        for one in wrong:
            alike = sum(kind_of(other.said) == kind_of(one.said) for other in self.wrong.values() if other.given)
            self.wrong[one.number] = one if alike < ALIKE else replace(one, given=None)

    def add_all(self, other: Total) -> None:
        """Another run's sums, of other inputs."""
        for first, end in other.covered:
            if any(first < e and f < end for f, e in self.covered):
                raise ValueError(f"inputs {first} to {end} are in both")
            self._cover(first, end)
        self.counts.update(other.counts)
        self._open(other.wrong.values())

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
            rows[f"reached: {stage}"] = sums.share(count, self.inputs)
        for name in sorted(name for name in self.counts if name.startswith("way ")):
            rows[f"made by: {name[4:]}"] = str(self.counts[name])
        raised = [code for code in registry.stems() if self.counts[f"code {code}"]]
        rows["rules raised"] = f"{len(raised)} of {len(registry.stems())}"
        rows["seldomest"] = ", ".join(
            f"{code} {n}" for n, code in sorted((self.counts[f"code {code}"], code) for code in registry.stems())[:5]
        )
        rows["went wrong"] = str(len(self.wrong))
        return sums.table(rows)

    def text(self) -> str:
        introduction = (
            "`make fuzz` goes on behind the inputs covered here and adds to these sums. "
            "`python -m tests.fuzz.run --show N` shows one; `--again` tries what goes wrong once more."
        )
        wrong = [one for _, one in sorted(self.wrong.items())]
        sections = {
            "": self.table(),
            "Goes wrong": sums.listed([f"input {one.number}: {one.said}" for one in wrong]),
        }
        numbers: dict[str, object] = {"covered": self.covered, "counts": dict(sorted(self.counts.items()))}
        if wrong:
            numbers["wrong"] = [
                {"number": one.number, "said": one.said, "given": one.given and as_json(one.given)} for one in wrong
            ]
        return sums.page("Fuzzing", introduction, sections, numbers)

    def write(self, path: Path = PATH) -> None:
        path.write_text(self.text(), "utf-8")


def read(path: Path = PATH) -> Total:
    """What is known so far; nothing where the file does not exist."""
    known = sums.numbers_of(sums.text_of(path))
    wrong = [
        Wrong(one["number"], one["said"], one["given"] and from_json(one["given"])) for one in known.get("wrong", ())
    ]
    return Total(
        [(first, end) for first, end in known.get("covered", ())],
        Counter(known.get("counts", {})),
        {one.number: one for one in wrong},
    )


def chunks_from(first: int, count: int, size: int) -> Iterable[tuple[int, int]]:
    for at in range(first, first + count, size):
        yield at, min(size, first + count - at)
