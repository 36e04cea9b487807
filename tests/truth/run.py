"""The truth run: seeds from where the last one ended, on all cores; sums and open misses go to RESULTS.md.

python -m tests.truth.run --seeds 2000          # go on from the seed in RESULTS.md
python -m tests.truth.run --from 0 --seeds 200  # these, and write nothing
python -m tests.truth.run --show 137            # one seed: kernel, findings, what happened
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from phobos.check import registry
from phobos.runtime.reference.faults import KINDS
from tests.truth.compare import Report, checked, compare
from tests.truth.generator import generate

RESULTS = Path(__file__).with_name("RESULTS.md")
TAME = 50  # occurrences in 2 000 kernels below which the generator is too tame


class Total:
    """The sums of a run."""

    def __init__(self) -> None:
        self.kernels = self.skipped = self.failing = self.never = self.runs = self.gave_up = self.gave_up_failing = 0
        self.kinds: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.codes: Counter[str] = Counter()
        self.doubts: Counter[str] = Counter()
        self.open: list[tuple[int, str, str]] = []  # seed, what, sentence

    def add(self, report: Report) -> None:
        self.kernels += 1
        self.runs += report.runs
        self.codes.update(report.codes)
        if report.skipped:
            self.skipped += 1
            return
        self.kinds.update(report.failing)
        self.refused.update(report.refused)
        self.doubts.update(report.doubts)
        if report.failing:
            self.failing += 1
            self.gave_up_failing += report.gave_up
        else:
            self.never += 1
            self.gave_up += report.gave_up
        for what in ("misses", "false", "unexplained", "silent"):
            self.open += [(report.seed, what, sentence) for sentence in getattr(report, what)]

    def count(self, what: str) -> int:
        return sum(kind == what for _, kind, _ in self.open)

    def table(self) -> str:
        rows = [
            f"| kernels | {self.kernels} |",
            f"| refused before running (errors of 0xx, 1xx, 4xx) | {self.skipped} |",
            f"| failing | {self.failing} |",
            f"| never failing | {self.never} |",
            f"| runs | {self.runs} |",
            f"| **misses** | **{self.count('misses')}** |",
            f"| **false errors** | **{self.count('false')}** |",
            f"| faults at no obligation | {self.count('unexplained')} |",
            f"| results that depend on the grid, unsaid | {self.count('silent')} |",
            f"| PH506 on never-failing kernels | {_share(self.gave_up, self.never)} |",
            f"| PH506 on failing kernels | {_share(self.gave_up_failing, self.failing)} |",
        ]
        rows += [
            f"| warning {code} on never-failing kernels | {_share(n, self.never)} |"
            for code, n in sorted(self.doubts.items())
        ]
        rows += [f"| fault {kind} | {self.kinds[kind]} |" for kind in KINDS if self.kinds[kind]]
        rows += [f"| refused: {kind} | {n} |" for kind, n in sorted(self.refused.items())]
        rows += [f"| rule {code} | {n} |" for code, n in sorted(self.codes.items())]
        return "\n".join(["| what | count |", "|---|---|", *rows])

    def tame(self) -> list[str]:
        """What came up too seldom to mean anything."""
        least = TAME * self.kernels / 2000
        seen = {kind: self.kinds[kind] + self.refused[kind] for kind in KINDS if kind != "timeout"}
        rules = [code for code in registry.names() if code[:3] in ("PH2", "PH3", "PH5")]
        return [f"fault {kind}: {n}" for kind, n in seen.items() if n < least] + [
            f"rule {code}: {self.codes[code]}" for code in rules if self.codes[code] < least
        ]


def reports(seeds: Iterable[int], jobs: int) -> Iterable[Report]:
    if jobs == 1:
        yield from map(compare, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(compare, seeds, chunksize=8)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2000, help="how many")
    parser.add_argument("--from", type=int, dest="first", help="the first seed; default: where RESULTS.md ends")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--show", type=int, metavar="SEED", help="one seed in full")
    options = parser.parse_args(arguments)
    if options.show is not None:
        show(options.show)
        return 0
    keep = options.first is None
    first = _next_seed() if keep else options.first
    total = Total()
    started = time.monotonic()
    for report in reports(range(first, first + options.seeds), options.jobs):
        total.add(report)
        if sys.stderr.isatty():
            print(f"\r{total.kernels}/{options.seeds}, {total.count('misses')} misses", end="", file=sys.stderr)
    took = time.monotonic() - started
    print(f"seeds {first}..{first + options.seeds - 1}, {took:.0f} s\n\n{total.table()}\n")
    for seed, what, sentence in total.open:
        print(f"{what}: seed {seed}: {sentence}")
    for sentence in total.tame():
        print(f"too tame: {sentence}")
    if keep:
        _write(first, options.seeds, total)
    return 1 if total.count("misses") or total.count("false") or total.tame() else 0


def show(seed: int) -> None:
    sample = generate(seed)
    print("".join(f"{n:3} {line}\n" for n, line in enumerate(sample.text.splitlines(), 1)))
    for d in checked(sample):
        print(f"line {sample.text.count(chr(10), 0, d.span.start) + 1}: {d.severity} {d.code}: {d.message}")
    print(compare(seed))


def _share(count: int, of: int) -> str:
    return f"{count} ({100 * count / of:.1f} %)" if of else str(count)


def _next_seed() -> int:
    found = re.search(r"next seed: (\d+)", RESULTS.read_text("utf-8")) if RESULTS.exists() else None
    return int(found.group(1)) if found else 0


def _write(first: int, seeds: int, total: Total) -> None:
    lines = [f"- {what}: seed {seed}: {sentence}" for seed, what, sentence in total.open]
    text = (
        f"# The truth run\n\nnext seed: {first + seeds}\n\nLast run, seeds {first} to {first + seeds - 1}"
        f" (`make truth`):\n\n{total.table()}\n\n## Open\n\n" + ("\n".join(lines) or "nothing") + "\n"
    )
    RESULTS.write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(main())
