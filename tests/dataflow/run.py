"""`python -m tests.dataflow.run`: random kernels in numbers, the emitted text against the reference runtime.

python -m tests.dataflow.run --seeds 2000               # these, from 0 on
python -m tests.dataflow.run --from 5000 --seconds 600  # as far as ten minutes go
python -m tests.dataflow.run --show 137                 # one: its text, what is wrong with it, and the smallest like it

Prints a line for each seed that goes wrong, with the smallest kernel like it, and sums. It fails if any did.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter

from tests.codegen import host
from tests.dataflow.check import Made, differences, prepared, wrong_with
from tests.dataflow.generator import generate
from tests.dataflow.shrink import shrunk

DOZEN = 12


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10**9, help="how many")
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin nothing after that long")
    parser.add_argument("--shrink", type=float, default=60.0, help="seconds to make one smaller; 0: leave it")
    parser.add_argument("--show", type=int, metavar="SEED")
    options = parser.parse_args(arguments)
    if options.seeds == 10**9 and options.seconds == math.inf:
        options.seeds = 1000
    if options.show is not None:
        return show(options.show, options.shrink)
    wrong, sums = run(options.first, options.seeds, options.seconds, options.shrink)
    print(", ".join(f"{count} {what}" for what, count in sums.most_common()))
    return 1 if wrong else 0


def run(first: int, count: int, seconds: float = math.inf, shrink: float = 0.0) -> tuple[dict[int, str], Counter[str]]:
    """The seeds that go wrong with what is said of them, and sums by what became of all."""
    ends = time.monotonic() + seconds
    wrong: dict[int, str] = {}
    sums: Counter[str] = Counter()

    def tell(seed: int, said: str) -> None:
        wrong[seed] = said
        sums["wrong"] += 1
        print(f"seed {seed}: {said}", flush=True)
        if shrink:
            print(shrunk(generate(seed), said, shrink).text, flush=True)

    waiting: list[Made] = []

    def compared() -> None:
        for one, said in differences(waiting):
            if said:
                tell(one.sample.seed, said)
            else:
                sums["agree"] += 1
        waiting.clear()
        host._CACHE.mkdir(exist_ok=True)

    for seed in range(first, first + count):
        if time.monotonic() > ends:
            print(f"stopped before seed {seed}")
            break
        try:
            made = prepared(generate(seed))
        except Exception as error:
            tell(seed, f"raises {type(error).__name__}: {error}")
            continue
        if isinstance(made, str):
            sums[f"left out ({made.split(':')[0].split(' ')[0]})"] += 1
            continue
        waiting.append(made)
        if len(waiting) == DOZEN:
            compared()
    compared()
    return wrong, sums


def show(seed: int, seconds: float) -> int:
    sample = generate(seed)
    print(sample.text)
    said = wrong_with(sample)
    print(said or "nothing is wrong")
    if said and seconds:
        print(shrunk(sample, said, seconds).text)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
