"""Statements, views and copies, control flow, functions, and what happens once a block."""

from __future__ import annotations

import numpy as np

from tests.reference.support import run


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_a_view_reads_at_each_use_and_a_copy_does_not() -> None:
    text = """
kernel k(X: tensor<f32>[8], Y: tensor<f32>[3, 8]) {
  let view = X[0 :+ 8]
  var copy = X[0 :+ 8]
  let value = X[0]
  X[0 :+ 8] = 7.0
  for i in range(0, 8) { Y[0, i] = 0.0 }
  Y[1, 0] = value
  let later = view * 1.0
  for i in range(0, 8) {
    Y[0, i] = later[i]
    Y[2, i] = copy[i]
  }
}
"""
    x = np.arange(8, dtype=np.float32)
    _, y = run(text, x, np.zeros((3, 8), np.float32))
    assert (y[0] == 7).all() and y[1, 0] == 0 and np.array_equal(y[2], x)


def test_the_subscripts_of_a_view_are_evaluated_where_it_is_bound() -> None:
    text = """
kernel k(X: tensor<f32>[8], Y: tensor<f32>[2]) {
  var i = 2
  let view = X[i :+ 2]
  i = 6
  Y[0 :+ 2] = view
}
"""
    assert run(text, np.arange(8, dtype=np.float32), np.zeros(2, np.float32))[1].tolist() == [2, 3]


def test_an_overlapping_assignment_evaluates_its_right_side_first() -> None:
    text = """
kernel k(X: tensor<f32>[1, 8], Y: tensor<f32>[4, 4]) {
  X[0 :+ 1, 1 :+ 7] = X[0 :+ 1, 0 :+ 7]
  Y[:, :] = transpose(Y[:, :])
  var t = Y[:, :]
  t[0 :+ 3, :] = t[1 :+ 3, :]
  t += transpose(t)
  Y[:, :] = t
}
"""
    x, y = np.arange(8, dtype=np.float32)[None], np.arange(16, dtype=np.float32).reshape(4, 4)
    got_x, got_y = run(text, x, y)
    t = y.T.copy()
    t[:3] = t[1:].copy()
    assert got_x.tolist() == [[0, 0, 1, 2, 3, 4, 5, 6]] and np.array_equal(got_y, t + t.T)


def test_compound_assignment_to_scalars_tiles_cells_and_slices() -> None:
    text = """
kernel k(X: tensor<f32>[8], Y: tensor<i32>[2]) {
  var s = 10
  s -= 3
  s *= 5
  s /= 2
  s %= 7
  Y[0] = s
  Y[1] += 4
  Y[1] *= 3
  var t = X[0 :+ 4]
  t += 1.0
  t *= t
  t[2] -= 0.5
  X[0 :+ 4] += t
  X[4 :+ 4] /= 2.0
}
"""
    x, y = run(text, np.arange(8, dtype=np.float32), np.array([0, 2], np.int32))
    t = (np.arange(4) + 1.0) ** 2
    t[2] -= 0.5
    assert y.tolist() == [35 // 2 % 7, 18] and x.tolist() == [*(np.arange(4) + t), 2.0, 2.5, 3.0, 3.5]


def test_the_subscripts_of_a_compound_assignment_are_evaluated_once() -> None:
    text = """
kernel k(C: tensor<i32>[1], X: tensor<f32>[4]) {
  X[i64(atomic_add(C, 0, 1))] += 5.0
}
"""
    c, x = run(text, np.zeros(1, np.int32), np.zeros(4, np.float32), grid=1)
    assert c[0] == 1 and x.tolist() == [5, 0, 0, 0]


def test_a_cell_changes_by_what_a_function_gives() -> None:
    """The cell is read before the function is called, and is an index beside its result."""
    text = """
fn twice(X: tensor<i32>[n], i: i64) -> i64 {
  X[0] = 100
  return 2 * i
}
kernel k(X: tensor<i32>[4], W: tensor<i64>[4], H: tensor<u8>[4]) {
  X[0] += twice(X, 3)
  X[1] = X[1] - twice(X, 4)
  W[2] *= twice(X, 5)
  H[3] += twice(X, 140)
  X[3] /= twice(X, 1)
}
"""
    x, w, h = run(text, np.array([1, 2, 3, 9], np.int32), np.full(4, 7), np.full(4, 7, np.uint8))
    assert x.tolist() == [100, -6, 3, 4] and w.tolist() == [7, 7, 70, 7] and h.tolist() == [7, 7, 7, 287 - 256]


def test_point_stores_happen_once_a_block() -> None:
    text = """
kernel k(X: tensor<f32>[N]) {
  let p = ctx.block.x
  X[p] = X[p] + 1.0
}
"""
    assert run(text, f32(1, 2, 3)).tolist() == [2, 3, 4]


def test_loops_with_steps_break_and_continue() -> None:
    text = """
kernel k(Y: tensor<i64>[N]) {
  let p = ctx.block.x
  var sum = 0
  for i in range(p, 20, 3) {
    if i == 9 { continue }
    if i > 15 { break }
    sum += i
  }
  for i in range(5, 2) { sum += 1000 }
  for<unroll 4> i in range(0, 4) { sum += 100 }
  Y[p] = sum
}
"""

    def wanted(p: int) -> int:
        total = 400
        for i in range(p, 20, 3):
            if i == 9:
                continue
            if i > 15:
                break
            total += i
        return total

    assert run(text, np.zeros(25, np.int64)).tolist() == [wanted(p) for p in range(25)]


def test_loop_bounds_are_evaluated_once() -> None:
    text = """
kernel k(Y: tensor<i64>[1]) {
  var n = 3
  var rounds = 0
  for i in range(0, n) {
    n = 10
    rounds += 1
  }
  Y[0] = rounds
}
"""
    assert run(text, np.zeros(1, np.int64))[0] == 3


def test_while_differs_from_block_to_block() -> None:
    text = """
kernel k(Y: tensor<i64>[N]) {
  let p = ctx.block.x
  var x = p + 1
  var steps = 0
  while x != 1 {
    if x % 2 == 0 { x = x / 2 } else { x = 3 * x + 1 }
    steps += 1
  }
  Y[p] = steps
}
"""

    def collatz(x: int) -> int:
        steps = 0
        while x != 1:
            x, steps = (x // 2 if x % 2 == 0 else 3 * x + 1), steps + 1
        return steps

    assert run(text, np.zeros(30, np.int64)).tolist() == [collatz(p + 1) for p in range(30)]


def test_branches_part_and_meet_again_with_their_tiles() -> None:
    text = """
kernel k(X: tensor<f32>[M, 4]) {
  let p = ctx.block.x
  var t = X[p :+ 1, :]
  var s = 1.0
  if p % 3 == 0 {
    t = t + 10.0
    s = 2.0
  } else if p % 3 == 1 {
    t[0 :+ 1, 1 :+ 2] = 0.0
  } else {
    return
  }
  X[p :+ 1, :] = t * s
}
"""
    x = np.arange(36, dtype=np.float32).reshape(9, 4)
    wanted = x.copy()
    wanted[0::3] = (wanted[0::3] + 10) * 2
    wanted[1::3, 1:3] = 0
    assert np.array_equal(run(text, x), wanted)


def test_blocks_that_part_do_not_share_a_tile_that_was_the_same_for_all() -> None:
    text = """
kernel k(X: tensor<f32>[M, 4]) {
  let p = ctx.block.x
  var t: tile<f32>[1, 4] = 1.0
  if p % 2 == 0 { t += 1.0 } else { t *= 3.0 }
  if p == 3 { t[0, 1] = 9.0 }
  X[p :+ 1, :] = t
}
"""
    wanted = np.array([[2.0] * 4, [3.0] * 4, [2.0] * 4, [3.0, 9.0, 3.0, 3.0]], np.float32)
    assert np.array_equal(run(text, np.zeros((4, 4), np.float32)), wanted)


def test_a_copy_of_indices_in_a_tile_of_i64_is_a_copy() -> None:
    """The two types have the same cells in memory."""
    text = """
kernel k(Y: tensor<i64>[4, 4]) {
  var t: tile<i64>[1, 4] = iota(4)
  t[0, 1] = 7
  var index = iota(4) * 1
  var s: tile<i64>[1, 4] = index
  s[0, 2] = 8
  index[0, 3] = 9
  Y[0 :+ 1, :] = t
  Y[1 :+ 1, :] = s
  Y[2 :+ 1, :] = index
  s = index
  s += 1
  Y[3 :+ 1, :] = index
}
"""
    wanted = [[0, 7, 2, 3], [0, 1, 8, 3], [0, 1, 2, 9], [0, 1, 2, 9]]
    assert run(text, np.zeros((4, 4), np.int64)).tolist() == wanted


def test_arithmetic_on_a_transposed_tile_leaves_the_tile_alone() -> None:
    text = """
kernel k(X: tensor<f32>[2, 3], Y: tensor<f32>[3, 2], Z: tensor<f32>[2, 3]) {
  var t = X[:, :]
  Y[:, :] = transpose(t) + 1.0
  Z[:, :] = t
}
"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    _, y, z = run(text, x, np.zeros((3, 2), np.float32), x * 0)
    assert np.array_equal(y, x.T + 1) and np.array_equal(z, x)


def test_short_circuits_stop_at_the_first_that_decides() -> None:
    text = """
kernel k(X: tensor<f32>[N], Y: tensor<i32>[M]) {
  let p = ctx.block.x
  if p < N && X[p] > 0.0 { Y[p] = 1 }
  if p >= N || X[p] > 2.0 { Y[p] += 2 }
}
"""
    y = run(text, f32(-1, 1, 3), np.zeros(5, np.int32), grid=5)[1]
    assert y.tolist() == [0, 1, 3, 2, 2]


def test_an_effect_in_a_short_circuit_happens_only_where_it_is_evaluated() -> None:
    text = """
kernel k(C: tensor<i32>[1], Y: tensor<i32>[N]) {
  let p = ctx.block.x
  if p % 2 == 0 && atomic_add(C, 0, 1) < 100 { Y[p] = 1 }
}
"""
    c, y = run(text, np.zeros(1, np.int32), np.zeros(6, np.int32), grid=6)
    assert c[0] == 3 and y.tolist() == [1, 0, 1, 0, 1, 0]


def test_functions_are_inlined_with_values_tensors_and_early_returns() -> None:
    text = """
fn clamp(x: i64, hi: i64) -> i64 {
  if x > hi { return hi }
  return x
}

fn scale(T: tensor<f32>[L], at: i64, by: f32) {
  if by == 0.0 { return }
  T[at] = T[at] * by
}

fn twice(t: tile<f32>[1, 4]) -> tile<f32>[1, 4] {
  var u = t
  u += t
  return u
}

kernel k(X: tensor<f32>[N], Y: tensor<f32>[M, 4]) {
  let p = ctx.block.x
  scale(X, clamp(p, N - 1), 3.0)
  scale(X, 0, 0.0)
  Y[p :+ 1, :] = twice(Y[p :+ 1, :])
}
"""
    x, y = run(text, f32(1, 2, 3), np.ones((3, 4), np.float32))
    assert x.tolist() == [3, 6, 9] and (y == 2).all()


def test_shadowing_and_scopes() -> None:
    text = """
kernel k(Y: tensor<i64>[3]) {
  let a = 1
  if true {
    let a = 2
    Y[0] = a
  }
  for a in range(7, 8) { Y[1] = a }
  Y[2] = a
}
"""
    assert run(text, np.zeros(3, np.int64)).tolist() == [2, 7, 1]


def test_tiles_declared_without_a_value_are_written_piece_by_piece() -> None:
    text = """
kernel k(X: tensor<f32>[M, 4]) {
  let p = ctx.block.x
  var t: tile<f32>[1, 4]
  t[0 :+ 1, 0 :+ 2] = 1.0
  t[0, 2] = f32(p)
  if p > 1 { t[0, 3] = 9.0 } else { t[0, 3] = 8.0 }
  X[p :+ 1, :] = t
}
"""
    wanted = [[1, 1, p, 9 if p > 1 else 8] for p in range(4)]
    assert run(text, np.zeros((4, 4), np.float32)).tolist() == wanted


def test_tile_points_and_slices_may_depend_on_the_block() -> None:
    text = """
kernel k(X: tensor<f32>[M, 8], Y: tensor<f32>[M, 4]) {
  let p = ctx.block.x
  var t = X[p :+ 1, :]
  t[0, p] = 100.0
  t[0 :+ 1, p + 1 :+ 2] = -1.0
  Y[p :+ 1, :] = t[0 :+ 1, p :+ 4]
}
"""
    x = np.arange(48, dtype=np.float32).reshape(6, 8)
    wanted = np.zeros((6, 4), np.float32)
    for p in range(6):
        t = np.concatenate([x[p], np.zeros(8, np.float32)])
        t[p] = 100
        t[p + 1 : min(p + 3, 8)] = -1
        wanted[p] = t[p : p + 4]
    assert np.array_equal(run(text, x, np.zeros((6, 4), np.float32))[1], wanted)


def test_broadcasts_of_rows_and_columns() -> None:
    text = """
kernel k(X: tensor<f32>[4, 8], R: tensor<f32>[1, 8], C: tensor<f32>[4, 1], Y: tensor<f32>[4, 8]) {
  Y[:, :] = (X[:, :] + R[:, :]) * C[:, :] + f32(ctx.block.x + 1)
}
"""
    rng = np.random.default_rng(0)
    x, r, c = (rng.integers(0, 9, shape).astype(np.float32) for shape in ((4, 8), (1, 8), (4, 1)))
    assert np.array_equal(run(text, x, r, c, x * 0, grid=1)[3], (x + r) * c + 1)


def test_rank_3_tensors() -> None:
    text = """
kernel k(X: tensor<f32>[A, B, C], Y: tensor<f32>[A, B, C]) {
  let a = ctx.block.x
  Y[a :+ 1, 0 :+ 4, 0 :+ 8] = X[a :+ 1, 0 :+ 4, 0 :+ 8] * 2.0
  Y[a, 0, 0] = -1.0
}
"""
    x = np.random.default_rng(0).standard_normal((3, 3, 5)).astype(np.float32)
    wanted = x * 2
    wanted[:, 0, 0] = -1
    assert np.array_equal(run(text, x, x * 0, grid=3)[1], wanted)


def test_a_three_dimensional_grid() -> None:
    text = """
kernel k(Y: tensor<i64>[A, B, C]) {
  Y[ctx.block.x, ctx.block.y, ctx.block.z] = ctx.block.x * 100 + ctx.block.y * 10 + ctx.block.z
}
"""
    y = run(text, np.zeros((3, 2, 4), np.int64))
    assert np.array_equal(y, np.fromfunction(lambda a, b, c: a * 100 + b * 10 + c, (3, 2, 4), dtype=np.int64))


def test_rows_of_a_matrix_may_be_apart_in_memory() -> None:
    import phobos

    text = """
kernel k(X: tensor<f32>[M, N]) {
  let p = ctx.block.x
  X[p :+ 1, 0 :+ 8] = X[p :+ 1, 0 :+ 8] + 1.0
  X[p, 0] = 50.0
}
"""
    backing = np.zeros((4, 16), np.float32)
    phobos.kernel(text).reference(backing[:, 3:9], grid=4)
    wanted = np.zeros((4, 16), np.float32)
    wanted[:, 3:9] = 1
    wanted[:, 3] = 50
    assert np.array_equal(backing, wanted)
