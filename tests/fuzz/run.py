"""`make fuzz`: inputs in numbers, from where the last run ended, on all cores; what raised, hung or grew.

python -m tests.fuzz.run --inputs 100000           # go on, and keep the sums in RESULTS.md
python -m tests.fuzz.run --from 0 --inputs 300     # these, and write nothing
python -m tests.fuzz.run --file sums.md --from 200000 --inputs 100000 --seconds 200
                                                   # sums of their own, begun there, gone on with when called again
python -m tests.fuzz.run --add sums.md             # to those in RESULTS.md
python -m tests.fuzz.run --again                   # what goes wrong by that file, and still does: the texts are kept
python -m tests.fuzz.run --again 137 512           # of these, and write nothing
python -m tests.fuzz.run --show 137                # one input: its text, what became of it, the smallest like it

The run fails if anything went wrong, if less than half of the texts parse, if a rule was never raised, if a process
keeps growing, or if the checker says of an input another thing than it said before. What went wrong is kept in
build/fuzz, one smallest text of each kind.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.fuzz import results
from tests.fuzz.inputs import Input, input_of
from tests.fuzz.pool import CHUNK, Sums, Wrong, all_tried, own_cache
from tests.fuzz.results import Total, chunks_from
from tests.fuzz.seeds import ROOT
from tests.fuzz.shrink import kind_of, shrunk
from tests.fuzz.stages import tried_input

KEPT = ROOT / "build" / "fuzz"
WRITTEN_EVERY = 20.0  # seconds: a run that is stopped loses no more
AGAIN = 0.02  # chunks of which the first input is tried a second time, by whichever process


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=100_000, help="how many")
    parser.add_argument("--from", type=int, dest="first", help="the first; default: where the file ends")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin nothing after that long")
    parser.add_argument("--file", type=Path, help="of the sums; default: RESULTS.md, none with --from")
    parser.add_argument("--add", type=Path, nargs="+", metavar="FILE", help="add sums of other runs, try nothing")
    parser.add_argument("--again", type=int, nargs="*", metavar="N", help="what goes wrong by the file, once more")
    parser.add_argument("--show", type=int, metavar="N")
    with own_cache():
        return _main(parser.parse_args(arguments))


def _main(options: argparse.Namespace) -> int:
    if options.show is not None:
        return show(options.show, options.file or results.PATH)
    if options.again is not None:
        return again(options.again, options.file or results.PATH, options.jobs)
    path: Path | None = options.file or (results.PATH if options.first is None else None)
    sums = results.read(path) if path is not None else Total()
    if options.add:
        for file in options.add:
            sums.add_all(results.read(file))
        sums.write(options.file or results.PATH)
        print(sums.table())
        return 1 if sums.wrong or sums.complaints() else 0
    sums.wrong = still_wrong(sums.wrong, options.jobs)
    first = sums.covered[-1][1] if sums.covered else (options.first or 0)
    changed = run(sums, first, options.inputs, options.jobs, options.seconds, path)
    if path is not None:
        sums.write(path)
    print(sums.table())
    complaints = [*sums.complaints(), *changed]
    print("\n".join(complaints), flush=True)
    keep(sums.wrong)
    return 1 if sums.wrong or complaints else 0


def run(sums: Total, first: int, count: int, jobs: int, seconds: float, path: Path | None = None) -> list[str]:
    """Try inputs and add them to `sums`; the inputs of which the checker said two things, as sentences."""
    chunks = list(chunks_from(first, count, CHUNK))
    again = {chunk[0] for chunk in random.Random(first).sample(chunks, math.ceil(len(chunks) * AGAIN))}
    said: dict[int, str] = {}
    spent: Counter[str] = Counter()
    slowest: tuple[float, int] = (0.0, -1)
    began = written = time.monotonic()
    own = 0
    for done in all_tried(chunks, jobs, seconds):
        sums.add(done)
        own += done.count
        spent.update(done.seconds)
        slowest = max(slowest, done.slowest)
        if done.first in again:
            said[done.first] = done.said
        for one in done.wrong:
            print(f"input {one.number}: {one.said}", flush=True)
        if path is not None and time.monotonic() - written > WRITTEN_EVERY:
            sums.write(path)
            written = time.monotonic()
    took = time.monotonic() - began
    each = 1e3 * took * jobs / max(own, 1)
    print(f"{own} inputs from {first} on in {took:.0f} s by {jobs} processes; {each:.1f} ms each")
    print(", ".join(f"{stage} {1e3 * spent[stage] / max(own, 1):.2f} ms" for stage in spent))
    print(f"the slowest, input {slowest[1]}, took {slowest[0]:.1f} s; {memory(sums)}")
    return _said_twice(said, jobs)


def _said_twice(said: dict[int, str], jobs: int) -> list[str]:
    """Inputs of which the checker says another thing now, in processes that know other texts."""
    changed = []
    chunks = [(number, 1) for number in sorted(said, key=lambda n: hashlib.sha256(str(n).encode()).digest())]
    done: Sums
    for done in all_tried(chunks, jobs, 60.0):
        if done.said != said[done.first] and not done.wrong:
            changed.append(f"input {done.first}: first {said[done.first]!r}, then {done.said!r}")
    return changed


def still_wrong(wrong: Mapping[int, Wrong], jobs: int) -> dict[int, Wrong]:
    """What of that is not mended yet. Where no text was kept, others that go wrong alike speak for it."""
    kept = {number: one.given for number, one in wrong.items() if one.given is not None}
    found: dict[int, Wrong] = {}
    for done in all_tried([(number, 1) for number in sorted(kept)], jobs, source=kept.__getitem__):
        found.update({one.number: one for one in done.wrong})
    kinds = {kind_of(one.said) for one in found.values()}
    found.update({n: one for n, one in wrong.items() if one.given is None and kind_of(one.said) in kinds})
    return dict(sorted(found.items()))


def again(numbers: Sequence[int], path: Path, jobs: int) -> int:
    """Some or all of what goes wrong by a file, once more; what is mended leaves the file where all are tried."""
    sums = results.read(path)
    unknown = [number for number in numbers if number not in sums.wrong]
    if unknown:
        print(f"{path} holds nothing that goes wrong at {', '.join(map(str, unknown))}", file=sys.stderr)
        return 2
    tried_again = {number: sums.wrong[number] for number in numbers} if numbers else sums.wrong
    found = still_wrong(tried_again, jobs)
    for number in tried_again:
        print(f"input {number}: {found[number].said if number in found else 'goes through'}")
    if not numbers:
        sums.wrong = found
        sums.write(path)
    return 1 if found else 0


def memory(sums: Total) -> str:
    ends = sorted(held[-1][1] for held in sums.processes.values()) or [0]
    most = max((held[-1][0] for held in sums.processes.values()), default=0)
    return f"processes ended with {ends[0] >> 20} to {ends[-1] >> 20} MiB after up to {most} inputs"


def keep(wrong: Mapping[int, Wrong]) -> None:
    """Write a smallest text of each kind into build/fuzz, as far as a minute takes."""
    ends = time.monotonic() + 60.0
    kinds: dict[str, tuple[Wrong, Input]] = {}
    for _, one in sorted(wrong.items()):
        if one.given is not None:
            kinds.setdefault(kind_of(one.said), (one, one.given))
    for one, given in kinds.values():
        KEPT.mkdir(parents=True, exist_ok=True)
        hangs = "more than" in one.said or "died" in one.said
        left = min(20.0, ends - time.monotonic())
        text = given.text if hangs or left <= 0 else shrunk(given, one.said, left)
        (KEPT / f"{one.number}.ph").write_bytes(text.encode("utf-8", "surrogatepass"))
        print(f"--- input {one.number}, {given.way}: {one.said}\n{text!r}", flush=True)


def show(number: int, path: Path) -> int:
    """One input: as the file keeps it where it goes wrong by it, else what the number means now."""
    known = results.read(path).wrong.get(number)
    given = known.given if known is not None and known.given is not None else input_of(number)
    one = tried_input(given)
    print(given.text)
    print(given.configuration)
    print(one)
    if one.wrong:
        print(f"the smallest like it: {shrunk(given, one.wrong)!r}")
    return 1 if one.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
