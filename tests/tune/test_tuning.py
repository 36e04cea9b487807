"""A kernel tuned: planted faults are rows, rows survive, winners are used by later launches and by nobody else."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phobos
from phobos.errors import CheckError, InputError, LaunchError
from phobos.runtime.kernel import Kernel
from phobos.runtime.options import LaunchOptions
from phobos.runtime.tuned import choice
from phobos.runtime.tuning import feeding, keeping
from phobos.runtime.tuning.executor import Here, Lost
from phobos.runtime.tuning.judging import MEASURED, Row, Task, judge, row_of
from phobos.runtime.tuning.keeping import Winner, winner_of
from phobos.runtime.tuning.reading import NOT_OURS
from phobos.runtime.tuning.search import Search, Step
from phobos.runtime.tuning.space import Variant
from phobos.runtime.tuning.tuning import How, Tuning, tune
from tests.tune import planted
from tests.tune.support import ROWS, SCALE, STAGED, problem_of, variants


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def x(n: int = 100) -> np.ndarray:
    return np.arange(n, dtype=np.float32)


def tuned(text: str, *arguments: Any, judged_by: Any = planted.timed, executor: Any = None, **more: Any) -> Tuning:
    """Tune in this process, with an engine whose times are known: `TILE` milliseconds."""
    kernel = phobos.kernel(text)
    report = more.pop("report", lambda step: None)
    fixed = more.pop("fixed", {})
    bound = kernel.bound(arguments, {}, fixed)
    arrays = {name: held.array for name, held in bound.tensors.items()}
    names = {name: repr(number) for name, number in bound.params.items()}
    how = How(executor=executor or Here(), judged_by=judged_by, **{"repeat": 4, **more})
    return tune(kernel, bound, names, arrays, fixed, "cpu", how, report)


def scaled(**more: Any) -> Tuning:
    return tuned(SCALE.replace("[4, 8, 16, 32, 64]", "[16, 4, 8, 64]"), x(), x(), 2.0, **more)


def told(tuning: Tuning) -> dict[str, str]:
    return {row.variant.label: row.status for row in tuning.rows}


# --- the search -------------------------------------------------------------------------------------------------


def test_the_fastest_wins_and_what_is_clearly_slower_is_dropped() -> None:
    tuning = scaled()
    assert [row.variant.label for row in tuning.rows] == ["TILE=4", "TILE=8", "TILE=16", "TILE=64"]
    assert told(tuning) == {"TILE=4": "ok", "TILE=8": "slower", "TILE=16": "ok", "TILE=64": "slower"}
    assert tuning.best is not None and tuning.best.variant.label == "TILE=4"
    assert tuning.untuned is not None and tuning.untuned.variant.label == "TILE=16" and tuning.speedup == 4.0


def test_a_crash_a_hang_and_a_wrong_result_are_rows_and_not_the_end() -> None:
    kernel = phobos.kernel(SCALE)
    bound = kernel.bound((x(), x(), 2.0), {}, {})
    arrays = {name: held.array for name, held in bound.tensors.items()}
    how = How(judged_by=planted.judge, repeat=2, timeout_s=2.0)
    tuning = tune(kernel, bound, {"alpha": "2.0"}, arrays, {}, "cpu", how)
    assert told(tuning) == {"TILE=4": "ok", "TILE=8": "wrong", "TILE=16": "crashed", "TILE=32": "hung",
                            "TILE=64": "crashed"}  # fmt: skip
    assert tuning.best is not None and tuning.best.variant.label == "TILE=4" and len(tuning.broken) == 4
    why = {row.variant.label: row.why for row in tuning.rows}
    assert why["TILE=16"] == "its process was killed by SIGSEGV" and why["TILE=64"] == "ZeroDivisionError: a defect"
    assert "Y[99] is 199, the reference has 198" in why["TILE=8"] and why["TILE=32"].startswith("no answer within 6 s")
    shown = str(tuning)
    assert "4 variants went wrong" in shown and "crashed: its process was killed by SIGSEGV" in shown


def test_the_grid_of_a_persistent_kernel_is_tried_too() -> None:
    tuning = tuned(STAGED, x(), resident=4)
    assert set(told(tuning)) == {f"TILE={t}{g}" for t in (4, 8) for g in ("", " 1/SM", " 2/SM")}
    assert {row.grid for row in tuning.rows} == {(1, 1, 1), (2, 1, 1), (4, 1, 1)}
    assert set(told(tuned(STAGED, x(), grid=(2,)))) == {"TILE=4", "TILE=8"}


def test_a_budget_ends_the_search_and_the_next_goes_on() -> None:
    tuning = scaled(budget_s=0.0)
    assert tuning.rows == () and tuning.left == 4 and tuning.best is None
    assert "no variant was timed" in str(tuning) and "the budget is spent: 4 variants not tried" in str(tuning)
    assert scaled().left == 0


class Interrupted(Here):
    """Ctrl-C after some results."""

    def __init__(self, after: int) -> None:
        self.after = after

    def map(self, *given: Any) -> Iterator[Any]:
        for number, found in enumerate(super().map(*given)):
            if number == self.after:
                raise KeyboardInterrupt
            yield found


def test_what_was_interrupted_is_told_and_gone_on_with(cache: Path) -> None:
    kernel = phobos.kernel(SCALE)
    bound = kernel.bound((x(), x(), 2.0), {}, {})
    seen: list[Tuning] = []
    arrays = {name: held.array for name, held in bound.tensors.items()}
    how = How(executor=Interrupted(2), judged_by=planted.timed, repeat=4)
    with pytest.raises(KeyboardInterrupt):
        tune(kernel, bound, {"alpha": "2.0"}, arrays, {}, "cpu", how, on_interrupt=seen.append)
    (so_far,) = seen
    assert told(so_far) == {"TILE=4": "ok", "TILE=8": "slower"} and so_far.left == 3 and so_far.interrupted
    assert so_far.kept is None and "interrupted: 3 variants not tried" in str(so_far)
    files = [path for path in cache.rglob("*") if path.is_file() and "tuned" in str(path)]
    assert len(files) == 1 and len(json.loads(files[0].read_text())["rows"]) == 2  # whole, and no winner yet

    tried: list[str] = []
    how = How(executor=Here(), judged_by=lambda p, t: (tried.append(t.variant.label), planted.timed(p, t))[1], repeat=4)
    on = tune(kernel, bound, {"alpha": "2.0"}, arrays, {}, "cpu", how)
    assert tried == ["TILE=16", "TILE=32", "TILE=64"] and on.from_disk == 2 and on.left == 0
    assert "2 rows of an earlier run taken from disk" in str(on)


def test_rows_belong_to_sizes_arguments_and_held_constants() -> None:
    assert scaled().from_disk == 0
    assert scaled().from_disk == 4
    text = SCALE.replace("[4, 8, 16, 32, 64]", "[16, 4, 8, 64]")
    assert tuned(text, x(), x(), 3.0).from_disk == 0
    assert tuned(text, x(96), x(96), 2.0).from_disk == 0
    assert tuned(text, x() + 1, x(), 2.0).from_disk == 0
    assert tuned(text.replace("* alpha", "* alpha + 1.0"), x(), x(), 2.0).from_disk == 0
    assert tuned(text.replace("let at", "// a comment\n  let at"), x(), x(), 2.0).from_disk == 4
    assert scaled(fresh=True).from_disk == 0 and scaled().from_disk == 4


def test_a_file_of_rows_that_was_damaged_is_begun_anew(cache: Path) -> None:
    scaled()
    (file,) = (cache / "tuned" / "rows").iterdir()
    some = '{"version": 1, "rows": [3, {"variant": {}}]}'
    for damage in ("", "{", "[]", "[" * 10**5, some, '{"version": 1, "rows": 3}'):
        file.write_text(damage)
        rows = keeping.Rows(file.stem, {})
        rows.read()
        assert rows.kept == {}
    assert scaled().from_disk == 0


@pytest.mark.parametrize(
    "damage",
    [
        {"elapsed_ms": "fast"}, {"elapsed_ms": None}, {"least_ms": True}, {"status": "fine"}, {"status": []},
        {"grid": 3}, {"grid": []}, {"grid": [1, "2"]}, {"repeats": 1.5}, {"why": None}, {"date": 3},
        {"registers": "64"}, {"variant": None}, {"variant": {}},
    ],
)  # fmt: skip
def test_a_row_that_was_damaged_is_none(damage: dict[str, Any]) -> None:
    row = Row(Variant((("TILE", 4),)), "ok", elapsed_ms=2.0, least_ms=1.0, repeats=3, grid=(4, 1, 1)).as_dict()
    assert row_of(row).as_dict() == row
    with pytest.raises(NOT_OURS):
        row_of({**row, **damage})


def test_progress_names_what_is_tried_and_the_best_so_far() -> None:
    steps: list[Step] = []
    scaled(report=steps.append)
    shown = [(s.stage, s.number, s.total, s.label, s.best and s.best.variant.label) for s in steps]
    assert shown[0] == ("trying", 1, 4, "TILE=16", None) and shown[-1] == ("trying", 4, 4, "TILE=64", "TILE=4")


def test_constants_that_change_the_result_never_win() -> None:
    text = "@autotune(TILE in [8, 4])\nkernel k(X: tensor<f32>[N]) { let i = ctx.block.x * 4\n X[i :+ 4] = f32(TILE) }"
    tuning = tuned(text, x())
    assert told(tuning) == {"TILE=8": "ok", "TILE=4": "another-result"}
    assert tuning.best is not None and tuning.best.variant.label == "TILE=8" and not tuning.broken


def test_a_kernel_that_the_checker_forbids_is_not_tuned() -> None:
    with pytest.raises(CheckError, match="PH20"):
        tuned(STAGED.replace("grid_barrier(BAR)", "if ctx.block.x == 0 { grid_barrier(BAR) }"), x())


def test_workspace_must_be_a_tensor_of_the_kernel() -> None:
    with pytest.raises(LaunchError, match="no tensor `Z`"):
        scaled(scratch=("Z",))


def test_variants_are_compiled_before_they_are_tried_and_refusals_are_rows() -> None:
    """The compilers are another executor; what they say of occupancy is the size of the grid's axis."""
    from phobos.runtime.tuning.ahead import Ahead

    class Compilers(Here):
        def map(self, function: Any, shared: Any, tasks: Any, limit_s: float) -> Iterator[Any]:
            for variant in tasks:
                tile = dict(variant.constants)["TILE"]
                yield variant, Ahead(tile, 32) if tile == 4 else Lost("crashed", "its process was killed by SIGKILL")

    problem = problem_of(STAGED, {"N": 100}, {"X": "iota"}, repeat=1)
    search = Search(problem, variants(phobos.kernel(STAGED)), {"N": 100}, judged_by=planted.timed)
    search.run(Here(), Compilers())
    assert {label: row.status for label, row in search.rows.items()} == {
        "TILE=4": "ok", "TILE=4 1/SM": "ok", "TILE=4 2/SM": "ok", "TILE=8": "crashed",
    }  # fmt: skip


# --- winners ------------------------------------------------------------------------------------------------------


def winner(text: str = SCALE, n: int = 100, **more: Any) -> Tuning:
    """TILE = 64 is the fastest here, and not the default."""
    return tuned(text.replace("[4, 8, 16, 32, 64]", "[4, 64]"), x(n), x(n), 2.0, judged_by=largest, **more)


def largest(problem: Any, task: Task) -> Row:
    row = planted.timed(problem, Task(task.variant))
    return Row(task.variant, "ok", elapsed_ms=1000.0 - (row.elapsed_ms or 0.0), least_ms=1.0, repeats=1, grid=row.grid)


def kernel_of(text: str = SCALE) -> Kernel:
    return phobos.kernel(text.replace("[4, 8, 16, 32, 64]", "[4, 64]"))


def test_a_winner_is_used_by_later_launches_and_the_plan_says_so() -> None:
    before = kernel_of().plan(x(), x(), 2.0)
    assert before.constants == {"TILE": 4} and before.notes == ()
    tuning = winner()
    assert tuning.kept is not None and Path(tuning.kept).is_file()
    plan = kernel_of().plan(x(), x(), 2.0)
    assert plan.constants == {"TILE": 64} and plan.grid == (2, 1, 1)
    assert re.fullmatch(r"constants from tuning, \d{4}-\d\d-\d\d: TILE=64", *plan.notes)
    assert kernel_of().plan(x(), x(), 2.0, tuned=False).constants == {"TILE": 4}
    y = x()
    kernel_of()(x(), y, 3.0)
    assert np.array_equal(y, 3 * x())


def test_a_call_launches_what_was_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    from phobos.runtime import judge

    winner()
    seen: list[dict[str, int]] = []
    real = judge.judge

    def watched(prepared: Any, judging: Any) -> Any:
        seen.append(prepared.plan.constants)
        return real(prepared, judging)

    monkeypatch.setattr(judge, "judge", watched)
    kernel_of()(x(), x(), 2.0)
    kernel_of()(x(), x(), 2.0, tuned=False)
    kernel_of().reference(x(), x(), 2.0)  # the judge is nobody's to tune
    assert seen == [{"TILE": 64}, {"TILE": 4}, {"TILE": 4}]


@pytest.mark.parametrize(
    "n, used", [(100, True), (65, True), (127, True), (128, False), (112, False), (64, False), (129, False)]
)
def test_a_winner_is_for_its_class_of_sizes(n: int, used: bool) -> None:
    winner()
    assert kernel_of().plan(x(n), x(n), 2.0).constants == {"TILE": 64 if used else 4}


def test_what_the_caller_fixes_otherwise_is_left_alone() -> None:
    winner()
    kernel = kernel_of()

    def constants(**more: Any) -> dict[str, int]:
        return kernel.plan(x(), x(), 2.0, **more).constants

    assert constants(constants={"TILE": 4}) == {"TILE": 4}
    assert constants(constants={"TILE": 64}) == {"TILE": 64}
    assert constants(grid=30) == {"TILE": 4}
    assert constants(schedule="flat") == {"TILE": 4}
    assert constants(l2_group=4) == {"TILE": 4} and constants(l2_group=1) == {"TILE": 64}


def test_held_constants_are_part_of_what_a_winner_is_for() -> None:
    text = SCALE.replace("(TILE in", "(K in [1, 2], TILE in").replace("* alpha", "* alpha * f32(K)")
    winner(text, fixed={"K": 2})
    kernel = kernel_of(text)
    assert kernel.plan(x(), x(), 2.0).constants == {"K": 1, "TILE": 4}
    assert kernel.plan(x(), x(), 2.0, constants={"K": 2}).constants == {"K": 2, "TILE": 64}


def test_a_grid_that_was_tuned_is_counted_anew_for_the_sizes_of_a_launch() -> None:
    def slow_but_two(problem: Any, task: Task) -> Row:
        return Row(task.variant, "ok", elapsed_ms=1.0 if task.variant.per_sm == 2 else 2.0, repeats=1)

    tuning = tuned(STAGED, x(), judged_by=slow_but_two)
    assert tuning.best is not None and tuning.best.variant.label == "TILE=4 2/SM"
    plan = phobos.kernel(STAGED).plan(x(130))
    assert plan.grid == (8, 1, 1)  # 130 is of another class
    plan = phobos.kernel(STAGED).plan(x(99))
    assert plan.grid == (2, 1, 1) and plan.notes[0].endswith("TILE=4 2/SM") and plan.grid_source == "as tuned"
    assert phobos.kernel(STAGED).plan(x(99), grid=3).grid_source == "as asked for"


def test_a_winner_that_breaks_a_promise_at_these_sizes_is_not_used_and_the_plan_says_why() -> None:
    text = SCALE.replace("kernel", "@aligned(N = TILE)\nkernel", 1)
    assert winner(text, n=192).best is not None
    plan = kernel_of(text).plan(x(208), x(208), 2.0)
    assert plan.constants == {"TILE": 4}
    assert "not used: " in plan.notes[0] and "N = 208 is not a whole number of TILE = 64" in plan.notes[0]
    y = x(208)
    kernel_of(text)(x(208), y, 2.0)
    assert np.array_equal(y, 2 * x(208))


def test_a_launch_that_is_refused_either_way_is_refused() -> None:
    text = SCALE.replace("kernel", "@aligned(N = 4)\nkernel", 1)
    winner(text)
    with pytest.raises(LaunchError, match="N = 101 is not a whole number of 4"):
        kernel_of(text)(x(101), x(101), 2.0)


def test_another_card_another_winner(monkeypatch: pytest.MonkeyPatch) -> None:
    winner()
    monkeypatch.setattr(keeping, "card", lambda device: "another card")
    assert kernel_of().plan(x(), x(), 2.0).constants == {"TILE": 4}


def test_a_new_winner_takes_the_place_of_its_class_and_leaves_the_others() -> None:
    winner()
    winner(n=1000)
    winner()
    key = kernel_of().key
    kept = keeping.winners(key, keeping.card("cpu"))
    assert sorted(w.sizes["N"] for w in kept) == [100, 1000]


def test_a_damaged_file_of_winners_is_no_winner(cache: Path) -> None:
    path = winner().kept
    assert path is not None
    some = json.dumps({"version": 1, "card": keeping.card("cpu"), "winners": [{}, 3]})
    for damage in ("", "{", "[]", "[" * 10**5, '{"version": 1}', some, some.replace("[{}, 3]", "7")):
        Path(path).write_text(damage)
        assert kernel_of().plan(x(), x(), 2.0).constants == {"TILE": 4}
        assert keeping.kept().winners == 0


@pytest.mark.parametrize(
    "damage",
    [
        {"constants": {"TILE": "64"}}, {"constants": {"TILE": True}}, {"l2_group": None},
        {"constants": []}, {"ctas_per_sm": "2"}, {"schedule": 3}, {"sizes": {"N": 1e400}}, {"held": {"A": 1e400}},
        {"grid": "100"}, {"grid": [0.5]}, {"elapsed_ms": "1"}, {"untuned_ms": []}, {"date": None},
    ],
)  # fmt: skip
def test_a_winner_that_was_damaged_is_none(damage: dict[str, Any]) -> None:
    one = Winner(Variant((("TILE", 64),)), {}, None, {"N": 100}, 1.0, 2.0, "2026-11-30").as_dict()
    assert winner_of(one).as_dict() == one
    broken = {**one, **damage, "variant": {**one["variant"], **damage}}
    with pytest.raises(NOT_OURS):
        winner_of(broken)


def test_a_winner_of_constants_that_the_kernel_has_not_is_not_used() -> None:
    path = winner().kept
    assert path is not None
    Path(path).write_text(Path(path).read_text().replace("TILE", "NONE"))
    assert kernel_of().plan(x(), x(), 2.0).constants == {"TILE": 4}


def test_where_nothing_can_be_kept_tuning_works_and_says_nothing_was(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path / "file"))
    tuning = winner()
    assert tuning.best is not None and tuning.kept is None and "kept:" not in str(tuning)
    assert f"not kept, so that nothing uses it: {tmp_path / 'file' / 'tuned'} cannot be written to" in str(tuning)


def test_words_and_functions_make_the_key_not_blanks_and_comments() -> None:
    text = (
        "fn f(x: f32) -> f32 { return x + 1.0 }\nkernel k(X: tensor<f32>[N]) { let i = ctx.block.x\n X[i] = f(X[i]) }"
    )

    def key(changed: str) -> str:
        return phobos.kernel(changed, "k").key

    assert key(text) == key(text.replace("{ let", "{ // so\n\n  let")) == key("// a file\n\n" + text)
    assert (
        key(text)
        == key(text.replace("block.x\n", "block.x  // so\n\n  "))
        == key(text.replace("block.x\n", "block.x;"))
    )
    assert key(text) == key("fn g(x: f32) -> f32 { return x }\n" + text)
    assert key(text) != key(text.replace("x + 1.0", "x + 2.0"))
    assert key(text) != key(text.replace("X[i] = f", "X[i] = 1.0 * f"))


def test_no_folder_is_looked_into_where_nothing_was_tuned(cache: Path) -> None:
    kernel = kernel_of()
    assert choice(kernel, kernel.bound((x(), x(), 2.0), {}, {}), LaunchOptions()) is None
    assert not (cache / "tuned").exists()


def test_size_classes() -> None:
    assert keeping.size_class({"N": 1 << 20, "M": 1}) == "M = 1; N in (2^19, 2^20], x16"
    assert keeping.size_class({"N": (1 << 20) + 1}) == "N in (2^20, 2^21]"
    assert keeping.size_class({"N": 0}) == "N = 0, x16" and keeping.size_class({}) == ""


# --- Python -------------------------------------------------------------------------------------------------------


def test_tune_from_python_in_processes_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = phobos.kernel(STAGED)
    a = x()
    tuning = kernel.tune(a, resident=2, repeat=2, timeout=20.0)
    assert np.array_equal(a, x())  # copies were tuned on
    assert tuning.best is not None and set(told(tuning).values()) <= {"ok", "slower"}
    assert len(tuning.rows) == 4 and tuning.left == 0
    assert "best: TILE=" in str(tuning) and tuning.as_dict()["best"]["elapsed_ms"] > 0
    assert kernel.plan(a).notes
    out = capsys.readouterr()
    assert out.out == out.err == ""


def test_tune_from_python_refuses_what_it_cannot_do() -> None:
    kernel = phobos.kernel(SCALE)
    with pytest.raises(LaunchError, match="needs `alpha`"):
        kernel.tune(x(), x())
    broken = phobos.kernel(
        "kernel k(X: tensor<f32>[N], I: tensor<i32>[N]) { let i = ctx.block.x\n X[i] = X[i64(I[i])] }"
    )
    with pytest.raises(InputError, match="nothing can be compared"):
        broken.tune(x(), np.full(100, 100, np.int32))
    for options, said in (
        ({"repeat": 0}, "`repeat` is 0"), ({"jobs": "two"}, "`jobs` is 'two'"), ({"budget": -1}, "`budget` is -1"),
        ({"timeout": 0}, "must be ended some time"), ({"timeout": None}, "must be ended some time"),
        ({"scratch": "PART"}, "has no tensor `PART`"), ({"schedule": 3}, "no schedule is called 3"),
    ):  # fmt: skip
        with pytest.raises(LaunchError, match=said):
            kernel.tune(x(), x(), 2.0, **options)


def test_a_fusion_is_tuned_like_a_kernel_and_apart_from_its_parts() -> None:
    text = SCALE.replace("[4, 8, 16, 32, 64]", "[8, 4]")
    text += """
kernel twice(Y: tensor<f32>[N], Z: tensor<f32>[N]) {
  let i = ctx.block.x * 8
  Z[i :+ 8] = Y[i :+ 8] * 2.0
}
"""
    kernels = phobos.runtime.kernel.Kernels("<text>", text)
    fused = phobos.fuse(kernels.scale, kernels.twice)
    tuning = fused.tune(x(), x(), 2.0, x(), repeat=2, timeout=20.0)
    assert {row.status for row in tuning.rows} <= {"ok", "slower"} and tuning.best is not None
    assert set(told(tuning)) == {
        f"TILE={tile}{grid}" for tile in (8, 4) for grid in ("", " 1/SM", " 2/SM", " 4/SM")
    }  # fmt: skip
    assert "from tuning" in fused.plan(x(), x(), 2.0, x()).notes[-1]
    assert not any("tuning" in note for note in kernels.scale.plan(x(), x(), 2.0).notes)


def test_schedules_and_bands_are_tried_and_the_workers_of_persistent_ones() -> None:
    a = np.arange(20 * 40, dtype=np.float32).reshape(20, 40)
    by_constants: list[str] = []

    def judged_by(problem: Any, task: Task) -> Row:
        by_constants.append(task.variant.label)
        fast = task.variant.schedule == "persistent-blocked" and task.variant.per_sm == 2
        row = judge(problem, task)
        status = "ok" if row.status in MEASURED else row.status  # its real time may have been called slow
        return Row(task.variant, status, row.why, 1.0 if fast else 9.0, 1.0, 1, row.grid)

    schedules = ("flat", "persistent-blocked", "xyz")
    tuning = tuned(
        ROWS, a, a.copy(), judged_by=judged_by, schedules=schedules, l2_groups=(1, 3, 7), fixed={"T": 4}, resident=4
    )
    assert {row.status for row in tuning.rows} == {"ok"}, str(tuning)
    flat = {f"flat{band}" for band in ("", " L2 group 3", " L2 group 7")}
    assert set(told(tuning)) == flat | {name.replace("flat", "xyz") for name in flat} | {
        name.replace("flat", "persistent-blocked") + grid for name in flat for grid in ("", " 1/SM", " 2/SM")
    }
    assert tuning.best is not None and tuning.best.variant.per_sm == 2
    # at T = 8 the grid is 5 x 3: in bands of 7 nothing would change
    wide = tuned(ROWS, a, a.copy(), judged_by=judged_by, schedules=("flat",), l2_groups=(1, 3, 7), fixed={"T": 8})
    assert set(told(wide)) == {"flat", "flat L2 group 3"}

    plan = phobos.kernel(ROWS).plan(a, a.copy(), constants={"T": 4})
    assert (plan.schedule, plan.workers) == ("persistent-blocked", 2) and "2/SM" in plan.notes[-1]
    y = np.zeros_like(a)
    phobos.kernel(ROWS)(a, y, constants={"T": 4})
    assert np.array_equal(y, 2 * a)
    assert phobos.kernel(ROWS).plan(a, y, constants={"T": 4}, schedule="flat").schedule == "flat"


@pytest.mark.parametrize(
    ("refused", "then"), [(None, ["T=4 xyz", "T=8 xyz"]), (4, ["T=8 xyz", "T=4 xyz"]), (8, ["T=4 xyz", "T=8 xyz"])]
)
def test_constants_that_were_never_tried_go_before_schedules_and_then_the_best_ones(
    refused: int | None, then: list[str]
) -> None:
    order: list[str] = []

    def judged_by(problem: Any, task: Task) -> Row:
        order.append(task.variant.label)
        tile = dict(task.variant.constants)["T"]
        if tile == refused:
            return Row(task.variant, "refused")
        return Row(task.variant, "ok", elapsed_ms=float(tile), least_ms=1.0, repeats=1)

    a = np.zeros((16, 16), np.float32)
    text = ROWS.replace("[4, 8]", "[8, 4]")
    tuned(text, a, a.copy(), judged_by=judged_by, schedules=("flat", "xyz"), resident=2)
    assert order == ["T=8 flat", "T=4 flat", *then]


def test_a_schedule_that_no_variant_can_have_is_refused() -> None:
    with pytest.raises(LaunchError, match="no schedule is called 'fast'"):
        scaled(schedules=("fast",))
    with pytest.raises(LaunchError, match="cannot run under any of the schedules"):
        tuned(STAGED, x(), schedules=("persistent-blocked",))


class Compilers(Here):
    """Compilers that write down what they are asked for, in a thread of their own, and do `before` each."""

    def __init__(self, done: list[str], before: Callable[[int], None] = lambda number: None) -> None:
        self.done = done
        self.before = before

    def map(self, function: Any, shared: Any, tasks: Any, limit_s: float) -> Iterator[Any]:
        from phobos.runtime.tuning.ahead import Ahead

        for number, variant in enumerate(tasks):
            self.before(number)
            self.done.append(f"compile {variant.label}")
            yield variant, Ahead(1, 32)


def searched(compilers: Compilers, tried: Callable[[], None] = lambda: None) -> None:
    from phobos.runtime.tuning.space import space

    def judged_by(problem: Any, task: Task) -> Row:
        compilers.done.append(f"try {task.variant.label}")
        tried()
        return Row(task.variant, "ok", elapsed_ms=float(dict(task.variant.constants)["T"]), least_ms=1.0, repeats=1)

    kernel = phobos.kernel(ROWS.replace("[4, 8]", "[8, 4]"))
    problem = problem_of(kernel.text, {"M": 16, "N": 16}, {"X": "iota", "Y": "zeros"}, repeat=1)
    every = space(kernel.analysed()[1].program, {}, (None, "xyz", "persistent-blocked"))
    Search(problem, every, {"M": 16, "N": 16}, judged_by=judged_by).run(Here(), compilers)


def test_variants_are_tried_while_others_are_compiled() -> None:
    one_is_tried = threading.Event()

    def waits(number: int) -> None:
        if number == 1:
            assert one_is_tried.wait(30), "nothing is tried before all are compiled"

    done: list[str] = []
    searched(Compilers(done, waits), one_is_tried.set)
    assert len(done) == 12 and done.index("try T=8") < done.index("compile T=4")


def test_a_budget_is_not_spent_on_compiling_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One variant of each choice of constants is compiled before any other, and none far ahead of those tried."""
    monkeypatch.setattr(feeding, "MOST_AHEAD", 1)
    done: list[str] = []
    searched(Compilers(done))
    compiled = [word for word in done if word.startswith("compile")]
    assert compiled[:2] == ["compile T=8", "compile T=4"] and len(compiled) == 6 and len(done) == 12
    for count in range(1, len(done)):
        ahead = sum(1 if word.startswith("compile") else -1 for word in done[:count])
        assert ahead <= 2, done


def test_a_defect_of_the_compilers_is_no_silence() -> None:
    def fails(number: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        searched(Compilers([], fails))


def test_two_tunings_that_end_at_once_both_keep_their_winner(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = keeping._write

    def keep(size: int) -> None:
        keeping.keep_winner("k" * 32, "k", "card", Winner(Variant(), {}, None, {"N": size}, 1.0, None, "2026-11-30"))

    other = threading.Thread(target=keep, args=(64,))

    def interrupted(path: Path, what: dict[str, Any]) -> bool:
        """The other one comes when the winners are read and not yet written; it has to wait, or is done with it."""
        if other.ident is None:
            other.start()
            other.join(0.2)
        return whole(path, what)

    monkeypatch.setattr(keeping, "_write", interrupted)
    keep(4096)
    other.join()
    assert {winner.sizes["N"] for winner in keeping.winners("k" * 32, "card")} == {64, 4096}
