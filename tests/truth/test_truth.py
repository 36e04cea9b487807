"""The checker agrees with the reference runtime on the first 200 random kernels, and the comparison has teeth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from phobos.diagnostic import Diagnostic, Span
from phobos.runtime import placing
from phobos.runtime.plan import Check
from tests.truth import results, run
from tests.truth.compare import Report, compare, told
from tests.truth.equivalent import EQUIVALENT
from tests.truth.generator import Sample, generate
from tests.truth.judge import judge, other_axis_works, second_look
from tests.truth.mutants import (
    AT_LAUNCH,
    BREAKS,
    FATES,
    ROOT,
    Fate,
    Mutant,
    all_mutants,
    judged,
    mutants_of,
    name_of,
    table,
    unexplained,
)
from tests.truth.results import Total, open_of

CHUNK = 25
HARD = ("misses", "false", "unexplained")


# --- the first seeds --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", range(0, 200, CHUNK))
def test_no_miss_and_no_false_error(first: int) -> None:
    known = {(seed, what) for seed, what, _ in results.read().open}
    news = [
        finding
        for seed in range(first, first + CHUNK)
        for finding in open_of(compare(seed))
        if finding[1] in HARD and finding[:2] not in known
    ]
    assert news == []


# --- teeth ------------------------------------------------------------------------------------------------------

FAILING = {"race", "deadlock", "uninitialised", "aligned-broken"}


def test_a_checker_that_says_nothing_misses_every_failing_kernel() -> None:
    failing = 0
    for seed in range(20):
        sample = generate(seed)
        verdict = judge(sample, [])
        report = told(sample, [], verdict)
        kinds = FAILING & set(verdict.failures)
        assert len(report.misses) == len(kinds), seed
        failing += bool(kinds)
    assert failing >= 5


def test_a_checker_that_calls_everything_a_race_is_wrong_about_every_kernel_that_never_fails() -> None:
    sound = 0
    for seed in range(20):
        sample = generate(seed)
        everything = [Diagnostic("PH501", "race-between-blocks", "error", "a race", Span(None, 0, 1))]
        verdict = judge(sample, [])
        report = told(sample, everything, verdict)
        assert bool(report.false) == (not verdict.failures), seed
        sound += not verdict.failures
    assert sound >= 3


def sample(text: str, sizes: dict[str, tuple[int, ...]], persistent: bool = True) -> Sample:
    return Sample(0, text, "k", persistent, False, "atomic_" in text, sizes, {}, {})


STRIDED = """@persistent
kernel k(X: tensor<f32>[N], Y: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 4, N, ctx.blocks.x * 4) {
    X[t :+ 4] = Y[t :+ 4] + 1.0
  }
  grid_barrier(BAR)
}
"""


def test_what_is_left_to_the_launch_is_refused_there_once_of_each_kind() -> None:
    verdict = judge(sample(STRIDED, {"N": (8,)}), [])
    assert verdict.failures == {} and verdict.complaints == []
    wanted = {"not-resident", "bad-barrier-tensor", "no-overlap", "one-dimensional-grid", "extent-agrees"}
    assert set(verdict.refused) == wanted


def test_a_launch_that_should_have_been_refused_is_a_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "_fits", lambda *_: Check("all blocks are resident", "believed", None))
    verdict = judge(sample(STRIDED, {"N": (8,)}), [])
    assert verdict.complaints == ["resident was not refused"]


def test_a_kernel_that_is_refused_everywhere_fails() -> None:
    verdict = judge(sample(STRIDED.replace("[2]", "[1]"), {"N": (8,)}), [])
    assert list(verdict.failures) == ["bad-barrier-tensor"] and verdict.runs == 0


def test_a_size_that_breaks_a_promise_is_outside_the_contract() -> None:
    verdict = judge(sample(STRIDED.replace("kernel", "@aligned(N = 4)\nkernel"), {"N": (7, 8)}), [])
    assert verdict.failures == {} and verdict.refused["aligned-broken"] == 6  # five grids, and the probe
    assert verdict.runs == 5


def test_a_constant_that_steps_over_the_grid_is_bound_to_each_grid() -> None:
    text = STRIDED.replace("kernel", "@autotune(G in [3])\nkernel").replace("ctx.blocks.x", "G")
    verdict = judge(sample(text, {"N": (8, 17)}), [])
    assert verdict.failures == {} and verdict.runs == 10 and verdict.varies is None


def test_work_left_out_shows_in_results_that_depend_on_the_grid() -> None:
    text = """@persistent
kernel k(X: tensor<f32>[N]) {
  X[ctx.block.x * 4 :+ 4] = 1.0
}
"""
    assert "against grid=" in (judge(sample(text, {"N": (16,)}), []).varies or "")


def test_a_kernel_with_a_barrier_is_run_on_one_axis_where_two_are_refused() -> None:
    """Its stored spans infer a grid that no launch takes; a grid given as one number is taken, and races."""
    text = """@autotune(T in [4])
kernel k(X: tensor<f32>[N], Y: tensor<f32>[N], BAR: tensor<i32>[3, 1]) {
  let p = ctx.block.x
  let q = ctx.block.y
  grid_barrier(BAR)
  X[q] = X[p % N] + 1.0
  grid_barrier(BAR)
  let o1 = p * T
  Y[o1 :+ T] = exp(X[o1 :+ T])
}
"""
    both = Sample(0, text, "k", False, True, False, {"N": (4, 5)}, {}, {"X": "random:seed=1"})
    assert judge(both).failures.keys() == {"race"}


def test_whether_a_second_axis_would_do_work_is_seen_by_giving_the_kernel_one() -> None:
    text = "@persistent\nkernel k(X: tensor<f32>[N]) {\n  X[ctx.block.y] = 1.0\n}\n"
    works = sample(text, {"N": (4,)})
    idle = sample(text.replace("ctx.block.y", "ctx.block.y * 0"), {"N": (4,)})
    assert judge(works, []).varies is None, "its own launches never show it"
    assert other_axis_works(works) is True and other_axis_works(idle) is False
    blamed = [Diagnostic("PH218", "persistent-reads-other-axis", "error", "left out", Span(None, 0, 1))]
    assert told(works, blamed, judge(works, [])).false == []
    assert len(told(idle, blamed, judge(idle, [])).false) == 1


def test_whether_many_blocks_along_a_second_axis_would_do_work_is_seen_too() -> None:
    text = """@persistent
kernel k(X: tensor<f32>[N]) {
  if ctx.block.y < 2 {
    X[0] = 1.0
  } else {
    X[1] = 1.0
  }
}
"""
    works = sample(text, {"N": (4,)})
    assert other_axis_works(works) is True
    assert other_axis_works(replace(works, text=text.replace("X[1]", "X[0]"))) is False


def test_before_an_error_is_called_false_each_number_of_blocks_has_cells_for_them() -> None:
    """A launch is refused that has more blocks than cells, and some races need as many as there are."""
    slots = """@persistent
kernel k(P: tensor<f32>[S], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  P[p] = 1.0
  if p == 30 {
    grid_barrier(BAR)
  }
}
"""
    assert second_look(sample(slots, {"S": (5, 8)}), []) is True
    assert second_look(sample(slots.replace("p == 30", "p < 0"), {"S": (5, 8)}), []) is False
    last = """@persistent
kernel k(X: tensor<f32>[N]) {
  for r in range(0, N / 4) {
    X[N - 1 - ctx.block.x] = X[0]
  }
}
"""
    assert second_look(sample(last, {"N": (7, 15)}), []) is True
    assert second_look(sample(last.replace("= X[0]", "= 1.0"), {"N": (7, 15)}), []) is False


def test_a_broken_assumption_neither_hides_a_race_in_the_second_look_nor_stands_for_one() -> None:
    text = """@persistent
kernel k(X: tensor<f32>[N], P: tensor<f32>[S]) {
  let p = ctx.block.x
  let same = f32(p / 8)
  // phobos: assume uniform(same)
  if same > 0.1 {
    P[p] = same
  }
  if p > 7 {
    X[0] = f32(p)
  }
}
"""
    assert second_look(sample(text, {"N": (4,), "S": (5, 8)}), []) is True
    assert second_look(sample(text.replace("X[0]", "X[p]"), {"N": (4,), "S": (5, 8)}), []) is False


# --- sums -------------------------------------------------------------------------------------------------------


def test_a_run_in_which_something_hardly_ever_happens_is_too_tame() -> None:
    total = Total()
    for seed in range(40):
        total.add(Report(seed, failing=("race",), refused=results.Counter({"not-resident": 1})))
    tame = total.tame()
    assert "fault deadlock: 0" in tame and "rule PH203: 0" in tame
    assert not any(line.startswith(("fault race", "fault not-resident", "fault timeout", "rule PH1")) for line in tame)
    total.counts["fault deadlock"] = 1
    assert "fault deadlock: 0" not in total.tame()


def test_sums_and_open_findings_survive_the_file(tmp_path: Path) -> None:
    total = Total(next_seed=7, mutants="| broken |\n|---|\n| all |")
    total.add(Report(5, failing=("race",), misses=["race at\nN=4"], doubts=("PH203",), runs=3))
    total.add(Report(6, skipped="PH104"))
    total.write(tmp_path / "RESULTS.md")
    assert results.read(tmp_path / "RESULTS.md") == total
    assert results.read(tmp_path / "none.md") == Total()


def test_a_run_goes_on_where_its_file_ends_and_stops_in_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sums.md"

    def go(*more: str) -> None:
        run.main(["--file", str(path), "--from", "3", "--seeds", "2", *more])

    go("--jobs", "1")
    assert results.read(path).next_seed == 5
    go("--jobs", "2")
    kept = results.read(path)
    assert kept.next_seed == 7 and kept.counts["kernels"] == 4
    for jobs in ("1", "2"):
        go("--jobs", jobs, "--seconds", "0")
        assert results.read(path) == kept
    assert "seeds 5..6" in capsys.readouterr().out


def sums_of(path: Path, first: int, reports: list[Report], mutants: str = "") -> Path:
    total = Total(first, first=first, mutants=mutants)
    for report in reports:
        total.add(report)
        total.next_seed = report.seed + 1
    total.write(path)
    return path


def test_runs_elsewhere_are_added_in_the_order_of_their_seeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[tuple[int, str, str]]] = []

    def still(listed: list[tuple[int, str, str]], jobs: int) -> list[tuple[int, str, str]]:
        asked.append(listed)
        return listed[1:]  # the first is mended meanwhile

    monkeypatch.setattr(run, "still_open", still)
    path = sums_of(tmp_path / "sums.md", 0, [Report(0, runs=1), Report(1, failing=("race",), runs=2)], "| all |")
    second = sums_of(tmp_path / "b.md", 2, [Report(2, misses=["race"], runs=4), Report(3, gave_up=True, runs=8)], "no")
    third = sums_of(tmp_path / "a.md", 4, [Report(4, skipped="PH104"), Report(5, false=["PH501"], runs=16)])
    assert run.main(["--file", str(path), "--merge", str(third), str(second)]) == 0
    kept = results.read(path)
    assert (kept.first, kept.next_seed, kept.mutants) == (0, 6, "| all |")
    assert (kept.counts["kernels"], kept.counts["runs"], kept.counts["skipped"]) == (6, 31, 1)
    assert (kept.counts["failing"], kept.counts["never"], kept.counts["gave up, never"]) == (1, 4, 1)
    assert asked == [[(2, "misses", "race"), (5, "false", "PH501")]] and kept.open == [(5, "false", "PH501")]
    assert capsys.readouterr().out == "6 kernels, next seed 6, open: 1\n"


@pytest.mark.parametrize("first, end", [(4, 3), (1, 2)], ids=["left out", "twice"])
def test_a_run_that_leaves_seeds_out_or_has_some_twice_is_not_added(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], first: int, end: int
) -> None:
    path = sums_of(tmp_path / "sums.md", 0, [Report(0), Report(1)])
    was = path.read_text("utf-8")
    follows = sums_of(tmp_path / "a.md", 2, [Report(2)])
    other = sums_of(tmp_path / "b.md", first, [Report(first)])
    assert run.main(["--file", str(path), "--merge", str(follows), str(other)]) == 2
    assert path.read_text("utf-8") == was, "all of them or none"
    assert f"a run from seed {first} does not follow one that ends before {end}" in capsys.readouterr().out


# --- mutants ----------------------------------------------------------------------------------------------------


def test_every_good_kernel_is_broken_in_every_way_that_it_has() -> None:
    every = list(all_mutants())
    assert {mutant.how for mutant in every} == set(BREAKS)
    assert len({mutant.path for mutant in every}) >= 45
    assert not any(mutant.path.endswith("hang.ph") for mutant in every)
    assert every == list(all_mutants())


def test_who_notices() -> None:
    def fate(how: str, path: str) -> set[tuple[str, bool]]:
        made = [mutant for mutant in mutants_of(ROOT / path) if mutant.how == how]
        assert made
        return {(judged(mutant).by, bool(judged(mutant).missed)) for mutant in made}

    assert fate("drop a barrier", "tests/corpus/softmax_two_phase.ph") == {("checker", False)}
    assert fate("drop a barrier", "tests/corpus/histogram.ph") <= {("reference", False), ("result", False)}
    assert fate("put a barrier under a condition", "examples/normalise.ph") == {("checker", False)}
    assert fate("shrink the barrier tensor", "examples/normalise.ph") == {("checker", False)}
    assert fate("shift an index", "examples/saxpy.ph") <= {("checker", False), ("result", False)}


def test_a_mutant_that_changes_nothing_survives_and_refusals_and_results_are_told_apart() -> None:
    path = "examples/saxpy.ph"
    text = (ROOT / path).read_text("utf-8")
    assert judged(Mutant(path, "shift an index", 1, text)).by == "survived"
    wrong = text.replace("* alpha", "* alpha * 2.0")
    assert judged(Mutant(path, "shift an index", 1, wrong)).by == "result"
    refused = text.replace("kernel saxpy(", "@aligned(N = 7)\nkernel saxpy(")
    fate = judged(Mutant(path, "break a promise", 1, refused))
    assert fate.by == "launch" and fate.said.startswith(AT_LAUNCH)


def test_survivors_are_named_with_a_reason_or_counted_against_the_run() -> None:
    every = {name_of(mutant): mutant for mutant in all_mutants()}
    assert EQUIVALENT.keys() <= every.keys()
    named = next(mutant for name, mutant in every.items() if name in EQUIVALENT)
    other = next(mutant for name, mutant in every.items() if name not in EQUIVALENT)
    lives, dies = Fate("survived", "", False, ""), Fate("result", "X", False, "")
    assert unexplained([named, other], [lives, dies]) == []
    assert unexplained([named], [dies]) == [f"noticed, though called equivalent: {name_of(named)}"]
    assert unexplained([other], [lives]) == [f"survived, and nobody says why: {name_of(other)}"]


def test_the_table_counts_each_mutant_once() -> None:
    made = list(mutants_of(ROOT / "examples/saxpy.ph"))
    text = table(made, [judged(mutant) for mutant in made])
    whole = next(line for line in text.splitlines() if line.startswith("| **all**"))
    numbers = [int(cell) for cell in whole.split("|")[2:-1]]
    assert numbers[0] == len(made) == sum(numbers[1:4]) + sum(numbers[5:])
    assert len(FATES) == 5
