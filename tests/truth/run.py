"""The truth run: seeds from where the last one ended, on all cores; sums and open findings go to RESULTS.md.

python -m tests.truth.run --seeds 2000          # go on from the seed in RESULTS.md
python -m tests.truth.run --from 0 --seeds 200  # these, and write nothing
python -m tests.truth.run --file sums.md --from 0 --seeds 20000 --seconds 120
                                                # sums of their own, begun at seed 0, gone on with when called again
python -m tests.truth.run --merge a.md b.md     # add the sums of runs elsewhere that follow one another
python -m tests.truth.run --again 7 10108       # these seeds alone, and what is open of each
python -m tests.truth.run --show 137            # one seed: kernel, findings, what happened
python -m tests.truth.run --mutants             # break every good kernel, and see who notices
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tests.truth import results
from tests.truth.compare import Report, checked, compare
from tests.truth.generator import generate
from tests.truth.results import Total, open_of

WRITTEN_EVERY = 250  # seeds: a run that is stopped loses no more
BATCH = 8  # seeds that a process is given at a time
AHEAD = 4  # batches a process that wait for it, so that none is idle while the first is slow


def reports(seeds: Sequence[int], jobs: int, seconds: float = math.inf) -> Iterator[Report]:
    """What comes of each seed, in order; after that many seconds no further seed is begun."""
    ends = time.monotonic() + seconds
    if jobs == 1:
        yield from map(compare, itertools.takewhile(lambda _: time.monotonic() < ends, seeds))
        return
    with ProcessPoolExecutor(jobs) as pool:
        begun: deque[Future[list[Report]]] = deque()
        for at in range(0, len(seeds), BATCH):
            if time.monotonic() >= ends:
                break
            begun.append(pool.submit(compare_all, seeds[at : at + BATCH]))
            if len(begun) > AHEAD * jobs:
                yield from begun.popleft().result()
        while begun:
            yield from begun.popleft().result()


def compare_all(seeds: Sequence[int]) -> list[Report]:
    return [compare(seed) for seed in seeds]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2000, help="how many")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no further seed after that many")
    parser.add_argument("--from", type=int, dest="first", help="the first seed; default: where the file ends")
    parser.add_argument("--file", type=Path, help="of the sums; default: RESULTS.md, none with --from")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--show", type=int, metavar="SEED", help="one seed in full")
    parser.add_argument("--mutants", action="store_true", help="the table of mutants, kept in the file")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="of the mutants, each N-th alone")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="FILE", help="add the sums in these files")
    parser.add_argument("--again", type=int, nargs="+", metavar="SEED", help="these seeds, and write nothing")
    options = parser.parse_args(arguments)
    if options.show is not None:
        show(options.show)
        return 0
    path: Path | None = options.file or (results.PATH if options.first is None else None)
    if options.merge is not None:
        return merge(options.merge, path or results.PATH)
    if options.again is not None:
        return again(options.again, options.jobs)
    if options.mutants:
        return mutants(options.jobs, options.every, path)
    sums = Total(options.first or 0, first=options.first or 0)
    if path is not None and path.exists():
        sums = results.read(path)
    first = sums.next_seed
    own = Total(first, first=first)
    if sums.open:
        sums.open = still_open(sums.open, options.jobs)
    started = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("0 misses", total=options.seeds)
        for report in reports(range(first, first + options.seeds), options.jobs, options.seconds):
            own.add(report)
            sums.add(report)
            own.next_seed = sums.next_seed = report.seed + 1
            for _, what, sentence in open_of(report):  # at once: the run may be stopped before its end
                print(f"{what}: seed {report.seed}: {sentence}", flush=True)
            if path is not None and own.counts["kernels"] % WRITTEN_EVERY == 0:
                _keep(sums, path)
            bar.update(task, advance=1, description=f"{own.amount('misses')} misses")
    took = time.monotonic() - started
    print(f"seeds {first}..{own.next_seed - 1}, {took:.0f} s\n\n{own.table()}\n")
    print(f"open: {' '.join(str(seed) for seed in sorted({seed for seed, _, _ in own.open})) or 'none'}")
    for sentence in own.tame():
        print(f"too tame: {sentence}")
    if path is not None:
        _keep(sums, path)
    return 1 if own.amount("misses") or own.amount("false") or own.tame() else 0


def _keep(sums: Total, path: Path) -> None:
    sums.mutants = results.read(path).mutants  # another run may have made the table meanwhile
    sums.write(path)


def merge(paths: Sequence[Path], path: Path) -> int:
    """Add the sums of runs elsewhere to those of a file: each must begin where what is there so far ends."""
    sums = results.read(path)
    for other in sorted((results.read(one) for one in paths), key=lambda one: one.first):
        if other.first != sums.next_seed:
            print(f"a run from seed {other.first} does not follow one that ends before {sums.next_seed}")
            return 2
        sums.append(other)
    sums.open = still_open(sums.open, 1) if sums.open else []
    sums.write(path)
    print(f"{sums.counts['kernels']} kernels, next seed {sums.next_seed}, open: {len(sums.open)}")
    return 0


def again(seeds: Sequence[int], jobs: int) -> int:
    """Some seeds once more: what is open of each."""
    found = 0
    for report in reports(seeds, min(jobs, len(seeds))):
        mine = open_of(report)
        found += len(mine)
        print(f"seed {report.seed}: " + ("; ".join(f"{what}: {words}" for _, what, words in mine) or "agrees"))
    return 1 if found else 0


def still_open(listed: list[tuple[int, str, str]], jobs: int) -> list[tuple[int, str, str]]:
    """What of the open findings is not mended yet."""
    seeds = sorted({seed for seed, _, _ in listed})
    return [finding for report in reports(seeds, min(jobs, len(seeds))) for finding in open_of(report)]


def mutants(jobs: int, step: int, path: Path | None) -> int:
    from tests.truth.mutants import all_mutants, judged, table, unexplained

    whole = list(all_mutants())
    every = whole[::step]
    with (
        ProcessPoolExecutor(jobs) as pool,
        Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar,
    ):
        fates = list(bar.track(pool.map(judged, every, chunksize=4), total=len(every), description="mutants"))
    text = f"{len(every)} of {len(whole)} mutants" + (f", every {step}th.\n\n" if step > 1 else ".\n\n")
    text += table(every, fates)
    print(text)
    if path is not None:
        sums = results.read(path)
        sums.mutants = text
        sums.write(path)
    wrong = unexplained(every, fates)
    print("\n".join(wrong))
    return 1 if wrong or any(fate.missed for fate in fates) else 0


def show(seed: int) -> None:
    sample = generate(seed)
    print("".join(f"{n:3} {line}\n" for n, line in enumerate(sample.text.splitlines(), 1)))
    for d in checked(sample):
        print(f"line {sample.text.count(chr(10), 0, d.span.start) + 1}: {d.severity} {d.code}: {d.message}")
    print(compare(seed))


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupted)  # as `timeout` ends a run
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print(f"\nstopped; what is kept ends at most {WRITTEN_EVERY} seeds before", file=sys.stderr)
        sys.exit(130)
