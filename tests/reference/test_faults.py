"""Each kind of fault: found by every scheduler that should, with lines, blocks, values; and not where all is well."""

from __future__ import annotations

import numpy as np
import pytest

import phobos
from phobos.errors import KernelFault, LaunchError
from tests.reference.support import fault, line_of, lines_of, run

SCHEDULERS = [None, "round-robin", "random", "adversarial"]


def zeros(n: int, dtype: object = np.float32) -> np.ndarray:
    return np.zeros(n, dtype)  # type: ignore[call-overload]


# --- deadlock -----------------------------------------------------------------------------------------------------

BOTH_ARMS = """
@persistent
kernel arms(X: tensor<f32>[N], Y: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  if p < 2 {
    X[p * 64 :+ 64] = X[p * 64 :+ 64] + 1.0
    grid_barrier(BAR)
  } else {
    Y[p * 64 :+ 64] = Y[p * 64 :+ 64] + 1.0
    grid_barrier(BAR)
  }
}
"""

SKIPPED_BY_ONE = """
@persistent
kernel skip(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  if ctx.block.x != 3 {
    grid_barrier(BAR)
  }
}
"""


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_two_arms_hold_two_barriers(scheduler: str | None) -> None:
    error = fault(BOTH_ARMS, zeros(512), zeros(512), grid=4, scheduler=scheduler)
    assert error.kind == "deadlock" and error.diagnostic is not None and error.diagnostic.code == "PH215"
    assert lines_of(BOTH_ARMS, error) == [7, 10, 5]
    assert "blocks 0 and 1" in str(error) and "blocks 2 and 3" in str(error)
    assert "hoist" in (error.diagnostic.help or "")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_one_block_skips_the_barrier(scheduler: str | None) -> None:
    error = fault(SKIPPED_BY_ONE, zeros(64), grid=4, scheduler=scheduler)
    assert error.kind == "deadlock" and lines_of(SKIPPED_BY_ONE, error) == [5, 4]
    assert error.diagnostic is not None and error.diagnostic.code == "PH203"
    assert "blocks 0-2 wait" in str(error) and "block 3 has left" in str(error)


def test_the_same_kernels_end_well_at_a_grid_where_blocks_agree() -> None:
    run(SKIPPED_BY_ONE, zeros(64), grid=3)
    run(BOTH_ARMS, zeros(512), zeros(512), grid=2)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_barrier_in_a_loop_with_differing_rounds(scheduler: str | None) -> None:
    text = """
@persistent
kernel sweep(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = X[t :+ 64] + 1.0
    grid_barrier(BAR)
  }
}
"""
    error = fault(text, zeros(320), grid=4, scheduler=scheduler)
    assert error.kind == "deadlock" and error.diagnostic is not None and error.diagnostic.code == "PH205"
    assert lines_of(text, error) == [6, 4]
    run(text, zeros(256), grid=4)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_an_early_return_before_the_barrier(scheduler: str | None) -> None:
    text = """
@persistent
kernel early(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  if ctx.block.x > 1 { return }
  grid_barrier(BAR)
}
"""
    error = fault(text, zeros(8), grid=4, scheduler=scheduler)
    assert error.diagnostic is not None and error.diagnostic.code == "PH204"
    assert lines_of(text, error)[0] == 5 and 4 in lines_of(text, error)


def test_a_barrier_in_a_function_names_the_call() -> None:
    text = """
fn meet(BAR: tensor<i32>[L]) {
  grid_barrier(BAR)
}

@persistent
kernel k(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  if ctx.block.x == 0 {
    meet(BAR)
  }
  X[ctx.block.x] = 1.0
}
"""
    error = fault(text, zeros(8), grid=2)
    assert error.kind == "deadlock" and lines_of(text, error)[0] == 3 and 9 in lines_of(text, error)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_waiting_for_a_flag_that_nobody_sets(scheduler: str | None) -> None:
    text = """
@persistent
kernel k(F: tensor<i32>[2], X: tensor<f32>[N]) {
  if ctx.block.x > 0 {
    while atomic_add(F, 0, 0) == 0 {
    }
  }
  X[ctx.block.x] = 1.0
}
"""
    error = fault(text, zeros(2, np.int32), zeros(4), grid=4, scheduler=scheduler)
    assert error.kind == "deadlock" and line_of(text, error) == 5 and error.blocks == (1, 2, 3)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_barrier_that_waits_for_a_block_that_waits_for_a_flag(scheduler: str | None) -> None:
    text = """
@persistent
kernel k(F: tensor<i32>[2], BAR: tensor<i32>[2]) {
  if ctx.block.x == 0 {
    while atomic_add(F, 0, 0) == 0 {
    }
  }
  grid_barrier(BAR)
  atomic_add(F, 0, 1)
}
"""
    error = fault(text, zeros(2, np.int32), grid=3, scheduler=scheduler)
    assert error.kind == "deadlock" and {5, 8} <= set(lines_of(text, error))


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_block_that_changes_cells_nobody_waits_for_is_a_deadlock_too(scheduler: str | None) -> None:
    text = """
@persistent
kernel k(F: tensor<i32>[4]) {
  while atomic_add(F, 0, 0) == 0 {
    atomic_add(F, 2, 1)
  }
}
"""
    error = fault(text, zeros(4, np.int32), grid=2, scheduler=scheduler)
    assert error.kind == "deadlock"


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_block_that_beats_for_another_is_none(scheduler: str | None) -> None:
    text = """
@persistent
kernel k(F: tensor<i32>[4], Y: tensor<i32>[2]) {
  if ctx.block.x == 0 {
    while atomic_add(F, 0, 0) == 0 {
      atomic_add(F, 2, 1)
    }
  } else {
    while atomic_add(F, 2, 0) < 20 {
    }
    atomic_add(F, 0, 1)
    Y[0] = 1
  }
}
"""
    f, y = zeros(4, np.int32), zeros(2, np.int32)
    phobos.kernel(text).reference(f, y, grid=2, scheduler=scheduler)
    assert y[0] == 1 and f[2] >= 20


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("scheduler", ["round-robin", "random", "adversarial"])
def test_two_blocks_that_both_change_cells_while_one_waits_for_the_other(scheduler: str, seed: int) -> None:
    text = """
@persistent
kernel k(F: tensor<i32>[4], Y: tensor<i32>[2]) {
  if ctx.block.x == 0 {
    while atomic_add(F, 0, 0) == 0 {
      atomic_add(F, 1, 1)
    }
  } else {
    while atomic_add(F, 1, 0) < 8 {
      atomic_add(F, 2, 1)
    }
    atomic_add(F, 0, 1)
    Y[0] = 1
  }
}
"""
    y = zeros(2, np.int32)
    phobos.kernel(text).reference(zeros(4, np.int32), y, grid=2, scheduler=scheduler, seed=seed)
    assert y[0] == 1


def test_a_while_that_never_changes_anything() -> None:
    text = """
kernel k(X: tensor<f32>[N]) {
  while true {
  }
}
"""
    for scheduler in SCHEDULERS:
        assert fault(text, zeros(4), grid=2, scheduler=scheduler).kind == "deadlock"


def test_blocks_that_never_started() -> None:
    text = """
kernel k(F: tensor<i32>[2], Y: tensor<i32>[N]) {
  if ctx.block.x < 2 {
    while atomic_add(F, 0, 0) < 2 {
    }
  } else {
    atomic_add(F, 0, 1)
  }
}
"""
    error = fault(text, zeros(2, np.int32), zeros(4, np.int32), grid=4, resident=2)
    assert error.kind == "deadlock" and "blocks 2 and 3 have never started" in str(error)
    run(text, zeros(2, np.int32), zeros(4, np.int32), grid=4)


# --- blocks that wait for each other and are right -----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("scheduler", ["round-robin", "random", "adversarial"])
def test_chains_tickets_semaphores_and_flags_end_and_do_not_race(scheduler: str, seed: int) -> None:
    text = """
@persistent
kernel k(F: tensor<i32>[M], S: tensor<i32>[2], X: tensor<f32>[N], Y: tensor<f32>[1]) {
  let p = ctx.block.x
  // look-back: each block adds to what the one before it left
  if p > 0 {
    while atomic_add(F, p - 1, 0) == 0 {
    }
  }
  if p == 0 { X[0] = 1.0 } else { X[p] = X[p - 1] + 1.0 }
  atomic_add(F, p, 1)
  // semaphore: the last one to come reads all
  if atomic_add(S, 0, 1) == ctx.blocks.x - 1 {
    var sum = 0.0
    for i in range(0, N) { sum += X[i] }
    Y[0] = sum
    S[0] = 0
  }
}
"""
    x, y, s = zeros(5), zeros(1), zeros(2, np.int32)
    kernel = phobos.kernel(text)
    for detect in ("", "races"):
        x[:], y[:] = 0, 0
        f = zeros(5, np.int32)
        kernel.reference(f, s, x, y, grid=5, scheduler=scheduler, seed=seed, detect=detect)
        assert x.tolist() == [1, 2, 3, 4, 5] and y[0] == 15 and s[0] == 0


def test_a_ticket_kernel_runs_without_a_scheduler() -> None:
    text = """
@persistent
kernel drawn(X: tensor<f32>[N], NEXT: tensor<i32>[1]) {
  var i = i64(atomic_add(NEXT, 0, 1))
  while i * 64 < N {
    X[i * 64 :+ 64] = X[i * 64 :+ 64] * 2.0
    i = i64(atomic_add(NEXT, 0, 1))
  }
}
"""
    x = np.arange(1000, dtype=np.float32)
    for detect in ("", "races"):
        got = run(text, x, zeros(1, np.int32), grid=4, detect=detect)
        assert np.array_equal(got[0], 2 * x) and got[1][0] == 16 + 4


# --- races --------------------------------------------------------------------------------------------------------

OVERLAP = """
@persistent
kernel overlap(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  X[p * 64 :+ 128] = X[p * 64 :+ 128] + 1.0
  grid_barrier(BAR)
}
"""


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_spans_that_overlap_race_on_the_first_shared_cell(scheduler: str | None) -> None:
    error = fault(OVERLAP, np.arange(4096, dtype=np.float32), grid=4, scheduler=scheduler, detect="races")
    assert error.kind == "race" and line_of(OVERLAP, error) == 5
    assert error.blocks in ((0, 1), (1, 2), (2, 3)) and "X[" in str(error)


@pytest.mark.parametrize("scheduler", [None, "round-robin"])
def test_a_stretch_that_moves_within_its_tensor_moves_once_where_races_are_looked_for(scheduler: str | None) -> None:
    text = """
    kernel k(X: tensor<f32>[N]) {
      let p = ctx.block.x * 8
      X[p :+ 6] = X[p + 2 :+ 6]
    }
    """
    x = np.arange(16, dtype=np.float32)
    phobos.kernel(text).reference(x, grid=2, detect="races", scheduler=scheduler)
    assert x.tolist() == [2, 3, 4, 5, 6, 7, 6, 7, 10, 11, 12, 13, 14, 15, 14, 15]


def test_races_are_looked_for_only_where_asked() -> None:
    phobos.kernel(OVERLAP).reference(np.arange(4096, dtype=np.float32), grid=4)


def spans(step: int, length: int, rank: int) -> str:
    if rank == 1:
        return f"""
kernel k(X: tensor<f32>[N]) {{
  let i = ctx.block.x * {step}
  X[i :+ {length}] = X[i :+ {length}] + f32(ctx.block.x + 1)
}}
"""
    return f"""
kernel k(X: tensor<f32>[M, N]) {{
  let i = ctx.block.x * {step}
  let v = X[0 :+ 2, i :+ {length}]
  X[0 :+ 2, i :+ {length}] = v + f32(ctx.block.x + 1)
}}
"""


@pytest.mark.parametrize("scheduler", [None, "round-robin"])
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize(("step", "length", "races"), [(8, 8, False), (8, 9, True), (7, 8, True), (9, 8, False)])
def test_one_shared_cell_is_a_race_and_none_is_none(
    step: int, length: int, races: bool, rank: int, scheduler: str | None
) -> None:
    x = zeros(30) if rank == 1 else np.zeros((2, 30), np.float32)
    text = spans(step, length, rank)
    if races:
        error = fault(text, x, grid=4, detect="races", scheduler=scheduler)
        assert error.kind == "race" and error.blocks[1] == error.blocks[0] + 1
        assert f"{step * error.blocks[1]}]" in str(error)
    else:
        phobos.kernel(text).reference(x, grid=4, detect="races", scheduler=scheduler)


@pytest.mark.parametrize("scheduler", [None, "round-robin"])
def test_interleaved_columns_of_one_row_are_clean(scheduler: str | None) -> None:
    text = """
kernel k(X: tensor<f32>[M, N]) {
  let p = ctx.block.x
  for c in range(p, N, ctx.blocks.x) {
    X[0 :+ 2, c :+ 1] = X[0 :+ 2, c :+ 1] + f32(p + 1)
  }
}
"""
    phobos.kernel(text).reference(np.zeros((2, 13), np.float32), grid=4, detect="races", scheduler=scheduler)


@pytest.mark.parametrize("scheduler", [None, "round-robin"])
def test_a_masked_cell_is_touched_by_nobody(scheduler: str | None) -> None:
    text = """
kernel k(X: tensor<f32>[N]) {
  if ctx.block.x == 0 { X[2 :+ 8] = 1.0 } else { X[4 + ctx.block.x * 4 :+ 8] = 2.0 }
}
"""
    phobos.kernel(text).reference(zeros(8), grid=2, detect="races", scheduler=scheduler)
    assert fault(text, zeros(9), grid=2, detect="races", scheduler=scheduler).kind == "race"


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_equal_stores_are_no_race_and_different_ones_are(scheduler: str | None) -> None:
    text = """
kernel k(X: tensor<f32>[N], v: f32) {
  X[0] = 1.0
  X[1 :+ 4] = 2.0
  if ctx.block.x > 0 { X[6] = v * f32(ctx.block.x) }
}
"""
    phobos.kernel(text).reference(zeros(8), 0.0, grid=4, detect="races", scheduler=scheduler)
    error = fault(text, zeros(8), 1.0, grid=4, detect="races", scheduler=scheduler)
    assert (
        error.kind == "race" and line_of(text, error) == 5 and "X[6]" in str(error) and "different values" in str(error)
    )


def test_a_block_that_stores_two_values_where_another_stores_one_of_them() -> None:
    text = """
kernel k(X: tensor<f32>[N]) {
  if ctx.block.x == 0 {
    X[0] = 5.0
    X[0] = 6.0
  }
  if ctx.block.x == 1 { X[0] = 6.0 }
}
"""
    for scheduler in (None, "round-robin"):
        assert fault(text, zeros(2), grid=2, detect="races", scheduler=scheduler).kind == "race"


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_barrier_orders_and_its_absence_does_not(scheduler: str | None) -> None:
    text = """
@persistent
kernel k(X: tensor<f32>[N], Y: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  X[p] = f32(p)
  grid_barrier(BAR)
  Y[p] = X[(p + 1) % ctx.blocks.x]
}
"""
    y = zeros(4)
    phobos.kernel(text).reference(zeros(4), y, grid=4, detect="races", scheduler=scheduler)
    assert y.tolist() == [1, 2, 3, 0]
    without = text.replace("  grid_barrier(BAR)\n", "")
    error = fault(without, zeros(4), zeros(4), zeros(2, np.int32), grid=4, detect="races", scheduler=scheduler)
    assert error.kind == "race" and lines_of(without, error) == [6, 5]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_cell_that_one_block_stores_and_all_read(scheduler: str | None) -> None:
    text = """
kernel k(X: tensor<f32>[N], Y: tensor<f32>[M]) {
  let p = ctx.block.x
  if p == 0 { X[0] = 1.0 }
  Y[p] = X[0]
}
"""
    error = fault(text, zeros(4), zeros(3), grid=3, detect="races", scheduler=scheduler)
    assert error.kind == "race" and set(lines_of(text, error)) == {4, 5}


def test_a_race_through_a_view_is_at_the_place_of_the_read() -> None:
    text = """
kernel k(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let p = ctx.block.x
  let all = X[0 :+ 8]
  X[p] = f32(p + 1)
  if p == 1 { Y[0 :+ 8] = all }
}
"""
    error = fault(text, zeros(8), zeros(8), grid=4, detect="races", scheduler="round-robin")
    assert error.kind == "race" and lines_of(text, error)[:2] == [5, 4]


def test_gathers_race_too() -> None:
    text = """
kernel k(T: tensor<f32>[N], I: tensor<i32>[1, 4], Y: tensor<f32>[M, 4]) {
  let p = ctx.block.x
  T[p] = 1.0
  Y[p :+ 1, :] = gather(T, I[:, :])
}
"""
    index = np.array([[2, 2, 1, 0]], np.int32)
    for scheduler in (None, "round-robin"):
        error = fault(text, zeros(4), index, np.zeros((2, 4), np.float32), grid=2, detect="races", scheduler=scheduler)
        assert error.kind == "race"


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_an_atomic_and_a_plain_store_to_one_cell_race(scheduler: str | None) -> None:
    text = """
@persistent
kernel k(C: tensor<i32>[2]) {
  if ctx.block.x == 0 { C[0] = 0 } else { atomic_add(C, 0, 1) }
}
"""
    assert fault(text, zeros(2, np.int32), grid=2, detect="races", scheduler=scheduler).kind == "race"


def test_a_flag_on_another_cell_orders_nothing() -> None:
    text = """
@persistent
kernel k(F: tensor<i32>[4], X: tensor<f32>[1], Y: tensor<f32>[1]) {
  if ctx.block.x == 0 {
    X[0] = 1.0
    atomic_add(F, 0, 1)
  } else {
    atomic_add(F, 1, 0)
    Y[0] = X[0]
  }
}
"""
    for scheduler in SCHEDULERS:
        error = fault(text, zeros(4, np.int32), zeros(1), zeros(1), grid=2, detect="races", scheduler=scheduler)
        assert error.kind == "race"


# --- planted races, and the scheduler that finds them --------------------------------------------------------------

NEEDS_ONE_LAST = """
@persistent
kernel k(C: tensor<i32>[2], X: tensor<f32>[2], who: i32) {
  let before = atomic_add(C, 0, 1)
  if ctx.block.x == who && before == ctx.blocks.x - 1 {
    X[0] = 1.0
  }
  if ctx.block.x == 0 { X[0] = 2.0 }
}
"""


@pytest.mark.parametrize("who", [1, 4, 6])
def test_the_adversary_lets_any_named_block_come_last_within_20_schedules(who: int) -> None:
    kernel = phobos.kernel(NEEDS_ONE_LAST)
    found = []
    for seed in range(20):
        try:
            kernel.reference(
                zeros(2, np.int32), zeros(2), who, grid=7, scheduler="adversarial", seed=seed, detect="races"
            )
        except KernelFault as error:
            found.append((seed, str(error)))
    assert found
    again = fault(NEEDS_ONE_LAST, zeros(2, np.int32), zeros(2), who, grid=7, scheduler="adversarial", seed=found[0][0],
                  detect="races")  # fmt: skip
    assert str(again) == found[0][1]


NEEDS_ALTERNATION = """
@persistent
kernel k(C: tensor<i32>[2], X: tensor<f32>[2]) {
  let p = ctx.block.x
  if p == 1 || p == 3 {
    let a = atomic_add(C, 0, 1)
    let b = atomic_add(C, 0, 1)
    let c = atomic_add(C, 0, 1)
    if b == a + 2 && c == b + 2 {
      X[0] = f32(p)
    }
  }
}
"""


def test_the_adversary_lets_two_blocks_alternate_twice_within_20_schedules() -> None:
    kernel = phobos.kernel(NEEDS_ALTERNATION)
    found = 0
    for seed in range(20):
        try:
            kernel.reference(zeros(2, np.int32), zeros(2), grid=5, scheduler="adversarial", seed=seed, detect="races")
        except KernelFault:
            found += 1
    assert found > 0


# --- uninitialised, bounds, steps, division --------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", [None, "round-robin"])
def test_reading_a_tile_cell_that_nobody_wrote(scheduler: str | None) -> None:
    text = """
kernel k(X: tensor<f32>[M, 4], n: i32) {
  let p = ctx.block.x
  var t: tile<f32>[1, 4]
  for i in range(0, n + p) { t[0, i] = 1.0 }
  X[p :+ 1, :] = t
}
"""
    error = fault(text, np.zeros((3, 4), np.float32), 2, grid=2, scheduler=scheduler)
    assert error.kind == "uninitialised" and lines_of(text, error) == [6, 4]
    assert error.blocks == (0,) and "t[0, 2]" in str(error)
    phobos.kernel(text).reference(np.zeros((3, 4), np.float32), 4, grid=1, scheduler=scheduler)


def test_reading_the_written_part_of_a_tile_is_fine() -> None:
    text = """
kernel k(X: tensor<f32>[1, 4], n: i32) {
  var t: tile<f32>[1, 8]
  t[0 :+ 1, 0 :+ 4] = 1.0
  if n > 0 { X[:, :] = t[0 :+ 1, n :+ 4] } else { X[:, :] = t[0 :+ 1, 0 :+ 4] }
}
"""
    phobos.kernel(text).reference(np.zeros((1, 4), np.float32), 0)
    error = fault(text, np.zeros((1, 4), np.float32), 2)
    assert error.kind == "uninitialised" and "t[0, 4]" in str(error)


@pytest.mark.parametrize("scheduler", [None, "round-robin"])
@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("X[p + n] = 1.0", "X[4]"),
        ("Y[0] = X[p + n]", "X[4]"),
        ("Y[0] = X[p - n]", "X[-2]"),
        ("t[0, p + n] = 1.0", "t[0, 4]"),
        ("Y[0] = t[0, p + n]", "t[0, 4]"),
        ("atomic_add(C, p + n, 1)", "C[4]"),
        ("X[0 :+ 1] = transpose(gather(X, iota(1) + (p + n)))[0, 0]", "X[4]"),
    ],
)
def test_points_outside(statement: str, place: str, scheduler: str | None) -> None:
    if "gather" in statement:
        statement = "Z[:, :] = gather(X, iota(1) + (p + n))"
    text = f"""
kernel k(X: tensor<f32>[N], Y: tensor<f32>[1], C: tensor<i32>[N], Z: tensor<f32>[1, 1], n: i32) {{
  let p = ctx.block.x
  var t: tile<f32>[1, 4] = 0.0
  {statement}
  Y[0] = t[0, 0]
}}
"""
    wanted = 2 if "- n" not in statement else 3
    grid = 3
    arguments = (zeros(4), zeros(1), zeros(4, np.int32), np.zeros((1, 1), np.float32))
    error = fault(text, *arguments, wanted if "- n" not in statement else 2, grid=grid, scheduler=scheduler)
    assert error.kind == "out-of-bounds" and line_of(text, error) == 5
    assert place in str(error)
    block = 2 if "- n" not in statement else 0
    assert error.blocks == (block,)


def test_steps_that_are_not_positive() -> None:
    text = """
kernel k(X: tensor<f32>[N], n: i32) {
  for i in range(0, 4, n - ctx.block.x) { X[ctx.block.x] = 1.0 }
}
"""
    error = fault(text, zeros(8), 2, grid=4)
    assert error.kind == "bad-step" and error.blocks == (2,) and line_of(text, error) == 3


@pytest.mark.parametrize("change", ["= A[p :+ 1, :] {op}", "{op}="])
@pytest.mark.parametrize("op", ["/", "%"])
def test_division_by_nought(op: str, change: str) -> None:
    text = f"""
kernel k(A: tensor<i32>[M, 4], Y: tensor<i64>[M], n: i32) {{
  let p = ctx.block.x
  Y[p] = 100 {op} (p - n)
  A[p :+ 1, :] {change.format(op=op)} (A[p :+ 1, :] - 5)
}}
"""
    a = np.full((3, 4), 9, np.int32)
    error = fault(text, a, zeros(3, np.int64), 1, grid=3)
    assert error.kind == "division-by-zero" and error.blocks == (1,) and line_of(text, error) == 4
    a[2, 3] = 5
    error = fault(text, a, zeros(3, np.int64), 7, grid=3)
    assert error.kind == "division-by-zero" and error.blocks == (2,) and line_of(text, error) == 5
    assert "[0, 3]" in str(error)


# --- promises, barrier tensors, residency, cells ----------------------------------------------------------------------


def test_a_broken_promise() -> None:
    text = """
@aligned(N = 64)
kernel k(X: tensor<f32>[N]) {
  X[ctx.block.x * 64 :+ 64] = 1.0
}
"""
    error = fault(text, zeros(100))
    assert error.kind == "aligned-broken" and line_of(text, error) == 2 and "N = 100" in str(error)
    run(text, zeros(128))


def test_an_assumption_that_does_not_hold() -> None:
    text = """
@persistent
kernel k(X: tensor<i32>[N], BAR: tensor<i32>[2]) {
  let n = X[ctx.block.x]
  // phobos: assume uniform(n)
  if n > 0 {
    grid_barrier(BAR)
  }
}
"""
    for scheduler in SCHEDULERS:
        error = fault(text, np.array([1, 1, 2, 1], np.int32), grid=4, scheduler=scheduler)
        assert error.kind == "assumption-broken" and 2 in error.blocks and line_of(text, error) in (5, 6)
        phobos.kernel(text).reference(np.ones(4, np.int32), grid=4, scheduler=scheduler)


STAGED = """
@persistent
kernel k(X: tensor<f32>[N], BAR: tensor<i32>[L]) {
  for t in range(ctx.block.x * 8, N, ctx.blocks.x * 8) { X[t :+ 8] = 1.0 }
  grid_barrier(BAR)
}
"""


@pytest.mark.parametrize("bar", [np.zeros(1, np.int32), np.array([3, 0], np.int32), np.zeros(2, np.int64)])
def test_bad_barrier_tensors(bar: np.ndarray) -> None:
    error = fault(STAGED, zeros(64), bar, grid=2)
    assert isinstance(error, LaunchError) and error.kind == "bad-barrier-tensor" and line_of(STAGED, error) == 3


def test_good_barrier_tensors() -> None:
    for bar in (np.zeros(2, np.int32), np.zeros(9, np.int32), np.array([0, 7], np.int32)):
        run(STAGED, zeros(64), bar, grid=2)
    run(STAGED, zeros(64), grid=2)


def test_a_grid_larger_than_the_residency() -> None:
    error = fault(STAGED, zeros(64), grid=5, resident=4)
    assert error.kind == "not-resident" and "5 blocks" in str(error) and "4" in str(error)
    run(STAGED, zeros(64), grid=4, resident=4)


def test_ordinary_grids_run_in_waves() -> None:
    text = """
kernel k(X: tensor<f32>[N]) {
  X[ctx.block.x * 8 :+ 8] = f32(ctx.block.x)
}
"""
    assert run(text, zeros(64), resident=2)[-1] == 7


def test_more_blocks_than_cells() -> None:
    text = """
@persistent
kernel k(X: tensor<f32>[N], P: tensor<f32>[1, M], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  P[0 :+ 1, p :+ 1] = f32(p)
  grid_barrier(BAR)
  X[0] = P[0, 0]
}
"""
    error = fault(text, zeros(4), np.zeros((1, 3), np.float32), grid=4)
    assert error.kind == "grid-too-large" and line_of(text, error) == 5
    assert phobos.kernel(text).plan(zeros(4), np.zeros((1, 3), np.float32)).grid == (3, 1, 1)


# --- limits -----------------------------------------------------------------------------------------------------------

ENDLESS = """
kernel k(X: tensor<i64>[1]) {
  var n = 0
  while true {
    n += 1
  }
  X[0] = n
}
"""


@pytest.mark.parametrize("scheduler", [None, "round-robin"])
def test_a_step_limit_and_a_time_limit_end_even_that(scheduler: str | None) -> None:
    error = fault(ENDLESS, zeros(1, np.int64), grid=1, scheduler=scheduler, step_limit=5000)
    assert error.kind == "timeout" and line_of(ENDLESS, error) in (4, 5)
    error = fault(ENDLESS, zeros(1, np.int64), grid=1, scheduler=scheduler, timeout=0.05)
    assert error.kind == "timeout" and "0.05 s" in str(error)


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("X[ctx.thread.x] = 1.0", "ctx.thread.x"),
        ("X[0 :+ 8] = gelu(X[0 :+ 8])", "gelu"),
    ],
)
def test_what_is_not_executed_is_refused_by_name(body: str, named: str) -> None:
    text = f"""
kernel k(X: tensor<f32>[N]) {{
  {body}
}}
"""
    error = fault(text, zeros(8), grid=1)
    assert isinstance(error, LaunchError) and error.kind is None
    assert named in str(error) and line_of(text, error) == 3


def test_a_filled_cell_is_a_nought_like_any_other() -> None:
    text = """
kernel k(A: tensor<i32>[N], B: tensor<i32>[N]) {
  A[ctx.block.x * 8 :+ 8] = A[ctx.block.x * 8 :+ 8] / B[ctx.block.x * 8 :+ 8]
}
"""
    ones = np.ones(16, np.int32)
    run(text, ones, ones)
    assert fault(text, ones[:15], ones[:15]).kind == "division-by-zero"


def test_a_step_of_nought_is_a_fault_even_where_the_range_is_empty() -> None:
    text = """
kernel k(X: tensor<f32>[N], n: i32) {
  for i in range(4, 4, n) { X[ctx.block.x] = 1.0 }
}
"""
    assert fault(text, zeros(4), 0, grid=1).kind == "bad-step"


def test_race_detection_that_would_not_fit_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from phobos.runtime.reference import races

    monkeypatch.setattr(races, "CLOCK_BYTES", 1000)
    text = """
@persistent
kernel k(C: tensor<i32>[2], X: tensor<f32>[N]) {
  atomic_add(C, 0, 1)
  X[ctx.block.x] = 1.0
}
"""
    error = fault(text, zeros(2, np.int32), zeros(1000), grid=4, detect="races")
    assert error.kind is None and "take a smaller grid or size" in str(error)


@pytest.mark.parametrize(
    "body",
    ["X[8 : 9223372036854775807] = 1.0", "var t: tile<f32>[1, T] = 0.5", "let v = X[0 :+ T] * 2.0\n  X[0 :+ T] = v"],
)
def test_what_no_block_can_hold_is_refused_before_it_is_made(body: str) -> None:
    text = f"@autotune(T in [4294967296])\nkernel k(X: tensor<f32>[N]) {{\n  {body}\n}}\n"
    with pytest.raises(LaunchError, match="over the 4,294,967,296 of the reference runtime"):
        phobos.kernel(text).reference(np.zeros(16, np.float32), grid=1)


def test_memory_that_is_not_there_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("phobos.runtime.judge.execute_phases", short)
    with pytest.raises(LaunchError, match="needs more memory than there is here"):
        phobos.kernel("kernel k(X: tensor<f32>[N]) {\n  X[0] = 1.0\n}\n").reference(np.zeros(16, np.float32), grid=1)


def test_a_barrier_in_what_an_unknown_function_makes_is_refused() -> None:
    text = "@persistent\nkernel k(X: tensor<f32>[N]) {\n  let b = made()\n  grid_barrier(b)\n  X[0] = 1.0\n}\n"
    with pytest.raises(LaunchError, match="`k` cannot run: this is not known to be one of its tensors") as caught:
        phobos.kernel(text).reference(np.zeros(16, np.float32), grid=1)
    assert line_of(text, caught.value) == 4
