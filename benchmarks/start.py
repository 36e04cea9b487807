"""How long `phobos check FILE` takes as a whole process, and where the time goes; and `phobos run` beside it.

Usage: python benchmarks/start.py [FILE] [--rounds N] [--json FILE]. The budget is 250 ms on two shared cores. The
fastest of some rounds is what the program needs; the median is what the machine makes of it. Where others use the
machine too, the processor time is the better figure.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from figures import Figure, finish

ROOT = Path(__file__).resolve().parent.parent
BUDGET_MS = 250
PARTS = """
import sys, time
at = time.perf_counter()
parts = {}
def lap(name):
    global at
    now = time.perf_counter()
    parts[name] = (now - at) * 1000
    at = now
import phobos.cli; lap("command line")
import phobos.syntax; lap("syntax")
import phobos.semantics.module; lap("building programs")
import phobos.semantics.conflicts, phobos.semantics.masks, phobos.semantics.obligations; lap("facts")
import phobos.check, phobos.cli.check, phobos.cli.arguments, phobos.check.render.text; lap("checker, renderer")
from phobos.check.engine import checks; checks(); lap("rules")
text = open(sys.argv[1], encoding="utf-8").read()
from phobos.syntax import parse; parse(text); lap("parse the file")
from phobos.semantics.module import analyse; analyse("x.ph", text); lap("build its programs")
from phobos.check import findings; findings("x.ph", text); lap("check it")
import json; print(json.dumps([parts, "lark" in sys.modules]))
"""


def whole_ms(command: list[str]) -> tuple[float, float]:
    """Wall time and processor time of a command."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall * 1000, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", default="examples/staged.ph")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    python = sys.executable
    check = [python, "-m", "phobos", "check", arguments.file]
    whole_ms(check)  # writes byte code and the parse table
    timed = [whole_ms(check) for _ in range(arguments.rounds)]
    whole, processor = [wall for wall, _ in timed], min(cpu for _, cpu in timed)
    bare = min(whole_ms([python, "-c", "pass"])[0] for _ in range(arguments.rounds))
    rounds: list[dict[str, float]] = []
    for _ in range(arguments.rounds):
        shown = subprocess.run([python, "-c", PARTS, arguments.file], cwd=ROOT, capture_output=True, check=True).stdout
        one, new_shapes = json.loads(shown)
        rounds.append(one)
    parts = {name: min(one[name] for one in rounds) for name in rounds[0]}
    run = [python, "-m", "phobos", "run", arguments.file, "--device", "cpu"]
    whole_ms(run)
    ran = [whole_ms(run)[0] for _ in range(max(arguments.rounds // 3, 1))]
    print(f"phobos check {arguments.file}: {min(whole):.0f} ms fastest, {statistics.median(whole):.0f} ms median "
          f"of {arguments.rounds}, {processor:.0f} ms of processor time (budget {BUDGET_MS} ms)")  # fmt: skip
    if new_shapes:
        print("  (the file holds shapes of statements that are new to the cache, so lark was loaded)")
    for name, ms in {"python itself": bare, **parts}.items():
        print(f"  {name:<22}{ms:7.1f} ms")
    finish("Start", [
        Figure("phobos check, the fastest", min(whole), "ms", target=BUDGET_MS),
        Figure("phobos check, the median", statistics.median(whole), "ms", target=BUDGET_MS),
        Figure("phobos check, processor time", processor, "ms"),
        Figure("python itself", bare, "ms"),
        Figure("phobos run on the reference runtime, the fastest", min(ran), "ms"),
    ])  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
