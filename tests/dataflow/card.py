"""`python -m tests.dataflow.card`: random kernels in numbers on a card, against the reference runtime.

python -m tests.dataflow.card --seeds 1500 --seconds 60 --jobs 12

Several processes share the seeds; one whose context a kernel has broken ends, and another goes on behind that seed.
Prints a line for each seed that goes wrong, and sums. It fails if any did.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

from phobos.errors import CheckError
from phobos.runtime.cuda import launch
from phobos.runtime.cuda.memory import DeviceArray
from phobos.runtime.kernel import kernel
from phobos.semantics.schedules import BLOCKED, INTERLEAVED
from tests.dataflow.check import arrays_of, judged, params_of, unlike
from tests.dataflow.generator import generate
from tests.dataflow.sample import Sample

BROKEN = 9  # how a process ends whose context is gone


def wrong_on_card(sample: Sample) -> str | None:
    """What a launch leaves otherwise than the reference; "" for nothing, None where it cannot be compared."""
    found = judged(sample)
    if isinstance(found, str):
        return None
    program, want = found
    there = {name: DeviceArray(array, 0) for name, array in arrays_of(sample, program).items()}
    how: dict[str, object] = {}
    if sample.workers and not program.is_persistent:
        how = {"schedule": BLOCKED if sample.seed % 2 else INTERLEAVED, "resident": sample.workers}
    made = kernel(sample.text, "k")
    try:
        made(**there, **params_of(sample, program), grid=sample.grid, timeout=5.0, unchecked=True, **how)
    except CheckError:  # `@pipeline` and no loop for it
        return None
    launch.synchronize()
    return unlike(program, {name: array.numpy() for name, array in there.items()}, want)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1500)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--seconds", type=float, default=60.0, help="begin nothing after that long")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--own", type=int, nargs=2, metavar=("SEED", "STEP"), help="as one of the processes")
    options = parser.parse_args()
    if options.own:
        return own(*options.own, options.first + options.seeds, time.monotonic() + options.seconds)
    return shared_out(options.first, options.seeds, options.seconds, options.jobs)


def own(seed: int, step: int, end: int, until: float) -> int:
    """Every `step`-th seed; a line for each: the seed, then nothing, `-` where it was left out, or what is wrong."""
    while seed < end and time.monotonic() < until:
        print(seed, end=" ", flush=True)
        try:
            said = wrong_on_card(generate(seed))
        except Exception as error:
            print(f"raises {type(error).__name__}: {str(error)[:300]!r}", flush=True)
            return BROKEN
        print("-" if said is None else said, flush=True)
        seed += step
    return 0


def shared_out(first: int, seeds: int, seconds: float, jobs: int) -> int:
    """All seeds by so many processes."""
    ends = time.monotonic() + seconds
    head = [sys.executable, "-m", "tests.dataflow.card", "--from", str(first), "--seeds", str(seeds)]

    def begun(seed: int) -> subprocess.Popen[str]:
        left = max(ends - time.monotonic(), 0.0)
        words = [*head, "--seconds", str(left), "--own", str(seed), str(jobs)]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    working = [begun(first + n) for n in range(min(jobs, seeds))]
    agree = wrong = left_out = 0
    while working:
        process = working.pop(0)
        try:
            told, _ = process.communicate(timeout=max(ends - time.monotonic(), 0.0) + 15.0)
        except subprocess.TimeoutExpired:
            process.kill()
            told, _ = process.communicate()
            print("a process did not end")
        lines = [line.partition(" ") for line in told.splitlines()]
        for seed, _, said in lines:
            agree += not said
            left_out += said == "-"
            wrong += said not in ("", "-")
            if said not in ("", "-"):
                print(f"seed {seed}: {said}", flush=True)
        if lines and process.returncode and time.monotonic() < ends:
            if not lines[-1][2]:
                print(f"seed {lines[-1][0]}: the process ended with {process.returncode}", flush=True)
                wrong += 1
            working.append(begun(int(lines[-1][0]) + jobs))
        elif process.returncode and not lines:
            print(f"a process ended with {process.returncode} before its first seed")
            wrong += 1
    print(f"{agree} agree, {wrong} wrong, {left_out} left out")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
