"""`make fuzz`: texts in numbers, from the seed where the last run ended, on all cores; what raised, hung or grew.

python -m tests.fuzz.run --inputs 100000           # go on, and keep the sums in RESULTS.md
python -m tests.fuzz.run --from 0 --inputs 300     # these, and write nothing
python -m tests.fuzz.run --show 137                # one seed: its text and what became of it

The run fails if anything went wrong, if less than half of the texts parse, or, over 50 000 inputs and more, if a rule
was never raised.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from phobos.check import registry
from tests.fuzz.inputs import text_of
from tests.fuzz.stages import STAGES, Tried, tried

KEPT = Path(__file__).with_name("RESULTS.json")
MEMORY = 6 << 30  # bytes of addresses: what grows without bound meets it and is named
MANY = 50_000
# Raised by what a command is given besides the text: a target, a configuration, several kernels at once.
NOT_BY_TEXT = frozenset({"PH902"})


def bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def all_tried(seeds: Iterable[int], jobs: int) -> Iterator[Tried]:
    if jobs == 1:
        yield from map(tried, seeds)
        return
    with ProcessPoolExecutor(jobs, initializer=bounded) as pool:
        yield from pool.map(tried, seeds, chunksize=32)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=100_000, help="how many")
    parser.add_argument("--from", type=int, dest="first", help="the first seed; default: where RESULTS.json ends")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, help="end after this long")
    parser.add_argument("--file", type=Path, default=KEPT, help="where sums are kept")
    parser.add_argument("--show", type=int, metavar="SEED")
    options = parser.parse_args(arguments)
    if options.show is not None:
        print(text_of(options.show))
        print(tried(options.show))
        return 0
    keep = options.first is None
    sums = json.loads(options.file.read_text(encoding="utf-8")) if keep and options.file.exists() else {}
    first = sums.get("next", 0) if keep else options.first
    stages: Counter[str] = Counter(sums.get("stages", {}))
    codes: Counter[str] = Counter(sums.get("codes", {}))
    wrong: list[str] = list(sums.get("wrong", ()))
    total, started = int(sums.get("inputs", 0)), time.monotonic()
    for one in all_tried(range(first, first + options.inputs), options.jobs):
        total += 1
        stages.update(one.stages)
        codes.update(one.codes)
        if one.wrong:
            wrong.append(f"seed {one.seed}: {one.wrong}")
            print(wrong[-1], flush=True)
        if options.seconds and time.monotonic() - started > options.seconds:
            break
    print(report(total, stages, codes, time.monotonic() - started))
    if keep:
        after = first + total - int(sums.get("inputs", 0))
        found = {"inputs": total, "next": after, "stages": stages, "codes": codes, "wrong": wrong}
        options.file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 1 if wrong or complaints(total, stages, codes) else 0


def complaints(total: int, stages: Counter[str], codes: Counter[str]) -> list[str]:
    """What makes a run worth nothing."""
    said = []
    if stages["parsed"] * 2 < total:
        said.append(f"only {stages['parsed']} of {total} texts parse")
    if total >= MANY:
        never = [code for code in registry.stems() if code not in codes and code not in NOT_BY_TEXT]
        said += [f"never raised: {', '.join(never)}"] if never else []
    return said


def report(total: int, stages: Counter[str], codes: Counter[str], seconds: float) -> str:
    lines = [f"{total} inputs, this run took {seconds:.0f} s"]
    lines += [f"  {stage:<10} {stages[stage]:>8}  {100 * stages[stage] / max(total, 1):5.1f} %" for stage in STAGES]
    never = [code for code in registry.stems() if code not in codes]
    lines.append(f"  {len(codes)} codes raised" + (f"; never: {', '.join(never)}" if never else ""))
    return "\n".join(lines + [f"  {said}" for said in complaints(total, stages, codes)])


if __name__ == "__main__":
    sys.exit(main())
