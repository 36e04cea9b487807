"""One variant judged, and the processes that survive it."""

from __future__ import annotations

import json
import os
import pickle
import time
from pathlib import Path
from typing import Any

import pytest

from phobos.runtime.kernel import kernel
from phobos.runtime.tuning.executor import Here, Lost, Processes
from phobos.runtime.tuning.judging import FEW, Row, Task, judge, row_of
from phobos.runtime.tuning.space import Variant
from tests.tune import planted
from tests.tune.support import SCALE, STAGED, problem_of, variants

PROBLEM = problem_of(SCALE, {"N": 100}, {"X": "iota", "Y": "zeros", "alpha": "3"}, repeat=4)


def tile(size: int) -> Variant:
    return Variant((("TILE", size),))


def test_a_right_variant_is_timed() -> None:
    row = judge(PROBLEM, Task(tile(8)))
    assert (row.status, row.why, row.repeats, row.grid) == ("ok", "", 4, (13, 1, 1))
    assert row.elapsed_ms is not None and row.least_ms is not None and 0 < row.least_ms <= row.elapsed_ms


def test_the_grid_of_a_variant_is_what_it_says() -> None:
    problem = problem_of(STAGED, {"N": 100}, {"X": "iota"}, repeat=1)
    rows = [judge(problem, Task(Variant((("TILE", 4),), per_sm=count))) for count in (None, 1, 3, 1000)]
    assert [row.grid for row in rows] == [(8, 1, 1), (1, 1, 1), (3, 1, 1), (25, 1, 1)]
    assert {row.status for row in rows} == {"ok"}


def test_a_wrong_variant_is_not_timed_and_its_first_wrong_cell_is_named() -> None:
    row = planted.judge(PROBLEM, Task(tile(planted.WRONG)))
    assert row.status == "wrong" and row.elapsed_ms is None
    assert row.why == "Y[99] is 298, the reference has 297 at N=100"


def test_arrays_of_full_size_are_made_once_and_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    from phobos.runtime.tuning import judging

    problem = problem_of(SCALE, {"N": 100}, {"X": "iota", "Y": "zeros", "alpha": "3"}, small={"N": 64}, repeat=2)
    made: list[dict[str, Any]] = []
    real = judging.arguments_at

    def counted(of: Any, program: Any, dims: Any) -> Any:
        arguments = real(of, program, dims)
        if dims == problem.dims:
            made.append(arguments)
        return arguments

    monkeypatch.setattr(judging, "arguments_at", counted)
    assert {judge(problem, Task(tile(size))).status for size in (4, 8, 16)} == {"ok"}
    assert len(made) == 1 and not made[0]["Y"].any()


COUNTED = """
@autotune(ROUNDS in [2, 3], TILE in [4])
kernel k(X: tensor<f32>[N], W: tensor<f32>[N]) {
  let at = ctx.block.x * TILE
  W[at :+ TILE] = f32(ROUNDS)
  X[at :+ TILE] = X[at :+ TILE] + 1.0
}
"""


def test_constants_that_change_what_is_computed_are_found_out() -> None:
    problem = problem_of(COUNTED, {"N": 20}, {"X": "zeros", "W": "zeros"}, repeat=1)
    first, other = (Variant((("ROUNDS", n), ("TILE", 4))) for n in (2, 3))
    assert judge(problem, Task(first)).status == "ok"
    row = judge(problem, Task(other))
    assert row.status == "another-result" and row.elapsed_ms is None
    assert row.why.startswith("W[0] is 3, the reference has 2 without tuning") and "--scratch" in row.why
    workspace = problem_of(COUNTED, {"N": 20}, {"X": "zeros", "W": "zeros"}, repeat=1, scratch=("W",))
    assert judge(workspace, Task(other)).status == "ok"


def test_what_cannot_be_launched_and_what_faults_are_rows() -> None:
    # TILE = 16 does not divide N, which is promised
    promised = SCALE.replace("kernel", "@aligned(N = TILE)\nkernel", 1)
    problem = problem_of(promised, {"N": 40}, {"X": "iota", "Y": "zeros", "alpha": "1"}, repeat=1)
    row = judge(problem, Task(tile(16)))
    assert row.status == "refused" and "N = 40 is not a whole number of TILE = 16" in row.why
    stuck = STAGED.replace("grid_barrier(BAR)", "if ctx.block.x < TILE / 8 || TILE == 4 { grid_barrier(BAR) }")
    problem = problem_of(stuck, {"N": 100}, {"X": "iota"}, repeat=1)
    row = judge(problem, Task(Variant((("TILE", 8),), per_sm=2)))
    assert row.status == "fault" and row.why.startswith("deadlock")


def test_a_clearly_slower_variant_is_dropped_after_a_few_repeats() -> None:
    problem = problem_of(SCALE, {"N": 100}, {"X": "iota", "Y": "zeros", "alpha": "3"}, repeat=20)
    assert planted.timed(problem, Task(tile(8), beat_ms=7.5)).repeats == 20
    row = planted.timed(problem, Task(tile(16), beat_ms=8.0))
    assert (row.status, row.repeats, row.elapsed_ms) == ("slower", FEW, 16.0)
    assert row.why == "dropped after 3 repeats: the quickest took 2.0 times the best's"
    assert planted.timed(problem, Task(tile(16))).status == "ok"


def test_arrays_that_are_given_are_cut_for_the_judge_and_left_alone() -> None:
    import numpy as np

    x = np.arange(1000, dtype=np.float32)
    problem = problem_of(SCALE, {"N": 1000}, {"Y": "zeros", "alpha": "2"}, repeat=1)
    problem = type(problem)(
        **{n: getattr(problem, n) for n in type(problem)._value_types} | {"arrays": {"X": x}, "small": {"N": 104}}
    )
    assert judge(problem, Task(tile(8))).status == "ok"
    assert judge(pickle.loads(pickle.dumps(problem)), pickle.loads(pickle.dumps(Task(tile(8))))).status == "ok"
    assert np.array_equal(x, np.arange(1000, dtype=np.float32))


def test_a_row_survives_being_kept() -> None:
    row = judge(PROBLEM, Task(tile(8)))
    assert row_of(json.loads(json.dumps(row.as_dict()))).as_dict() == row.as_dict()
    with pytest.raises((ValueError, KeyError, TypeError)):
        row_of({"variant": 3})


# --- processes --------------------------------------------------------------------------------------------------


def all_of(executor: Any, function: Any, tasks: list[Any], limit_s: float = 30.0) -> dict[str, Any]:
    return {str(t): result for t, result in executor.map(function, "shared", iter(tasks), limit_s)}


def echo(shared: str, task: Any) -> Any:
    print("what a library prints is no message")
    return shared, task


def by_name(shared: str, task: str) -> Any:
    match task:
        case "signal":
            import signal

            os.kill(os.getpid(), signal.SIGSEGV)
        case "exit":
            os._exit(3)
        case "sleep":
            time.sleep(1000)
        case "raise":
            raise ValueError("what was wrong")
    return os.getpid()


def test_results_come_back_and_one_process_serves_many_tasks() -> None:
    found = all_of(Processes(1), by_name, ["a", "b", "c"])
    assert len(set(found.values())) == 1 and os.getpid() not in found.values()
    assert all_of(Processes(1), echo, [1, 2]) == {"1": ("shared", 1), "2": ("shared", 2)}
    assert all_of(Here(), echo, [1]) == {"1": ("shared", 1)}


def test_every_way_to_be_lost_is_a_result_and_the_next_task_is_served() -> None:
    found = all_of(Processes(1), by_name, ["signal", "exit", "sleep", "raise", "well"], limit_s=1.0)
    assert isinstance(found.pop("well"), int)
    assert {task: (lost.kind, lost.why) for task, lost in found.items()} == {
        "signal": ("crashed", "its process was killed by SIGSEGV"),
        "exit": ("crashed", "its process ended with exit code 3"),
        "sleep": ("hung", "no answer within 1 s, so it was ended"),
        "raise": ("failed", "ValueError: what was wrong"),
    }


def test_two_processes_work_side_by_side() -> None:
    assert len(set(all_of(Processes(2), by_name, ["a", "b"]).values())) == 2


def test_the_next_task_is_asked_for_after_the_result_before_it_was_seen() -> None:
    seen: list[int] = []

    def tasks() -> Any:
        for number in range(3):
            assert seen == list(range(number))
            yield number

    for task, _ in Processes(1).map(echo, "shared", tasks(), 30.0):
        seen.append(task)
    assert seen == [0, 1, 2]


def test_a_closed_executor_leaves_no_process_behind(tmp_path: Path) -> None:
    executor = Processes(1)
    for _, pid in executor.map(by_name, "shared", iter(["a", "b"]), 30.0):
        executor.close()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        break


def test_a_process_whose_master_is_gone_ends_in_the_middle_of_its_task(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "from tests.tune.test_judging import *\n"
        "import threading\n"
        "for task, pid in Processes(1).map(by_name, 's', iter(['a', 'sleep']), 60.0):\n"
        "    print(pid, flush=True)\n"
    )
    root = Path(__file__).resolve().parents[2]
    master = subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, text=True)
    assert master.stdout is not None
    pid = int(master.stdout.readline())
    master.kill()
    master.wait()
    master.stdout.close()
    until = time.monotonic() + 10
    while time.monotonic() < until and Path(f"/proc/{pid}").exists() and _is_alive(pid):
        time.sleep(0.05)
    assert not _is_alive(pid)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_lost_is_a_value_that_travels() -> None:
    lost = pickle.loads(pickle.dumps(Lost("hung", "x")))
    assert (lost.kind, lost.why) == ("hung", "x") and isinstance(lost, Lost)
    assert isinstance(pickle.loads(pickle.dumps(judge(PROBLEM, Task(tile(4))))), Row)


def test_every_variant_of_a_kernel_is_judged_in_a_process() -> None:
    tasks = iter([Task(variant) for variant in variants(kernel(SCALE))])
    found = {task.variant.label: row for task, row in Processes(1).map(planted.judge, PROBLEM, tasks, 4.0)}
    told = {label: getattr(row, "status", None) or row.kind for label, row in found.items()}
    assert told == {"TILE=4": "ok", "TILE=8": "wrong", "TILE=16": "crashed", "TILE=32": "hung", "TILE=64": "failed"}
