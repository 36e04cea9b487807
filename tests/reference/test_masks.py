"""Slices that run past an extent: masked reads are 0, masked stores skip; at every edge, of tensors and of tiles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phobos.runtime.reference.windows import window
from tests.reference.support import DTYPES, run


@pytest.mark.parametrize("n", [1, 7, 8, 9, 15, 16, 17, 64])
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "i8", "u8", "i32", "i64"])
def test_the_last_tile_of_a_vector(dtype: str, n: int) -> None:
    one = "1.0" if dtype in ("f16", "bf16", "f32", "f64") else "1"
    text = f"""
kernel k(X: tensor<{dtype}>[N], Y: tensor<{dtype}>[N]) {{
  let i = ctx.block.x * 8
  Y[i :+ 8] = X[i :+ 8] + {one}
}}
"""
    x = np.arange(n).astype(DTYPES[dtype])
    assert np.array_equal(run(text, x, x * 0)[1].astype(np.float64), np.arange(n) + 1)


@pytest.mark.parametrize("shift", [-20, -9, -8, -3, 0, 3, 8, 9, 40])
def test_starts_before_and_behind_the_tensor(shift: int) -> None:
    text = """
kernel k(X: tensor<f32>[N], Y: tensor<f32>[M, 8], Z: tensor<f32>[N], shift: i32) {
  let p = ctx.block.x
  Y[p :+ 1, :] = row(X, p * 8 + shift)
  Z[p * 8 + shift :+ 8] = 5.0
}

fn row(X: tensor<f32>[L], at: i64) -> tile<f32>[1, 8] {
  var t: tile<f32>[1, 8] = 0.0
  var v = X[at :+ 8]
  for i in range(0, 8) { t[0, i] = v[i] }
  return t
}
"""
    x = np.arange(1, 21, dtype=np.float32)
    _, y, z = run(text, x, np.full((3, 8), -1, np.float32), x * 0, shift, grid=3)
    padded = np.concatenate([np.zeros(100, np.float32), x, np.zeros(100, np.float32)])
    assert np.array_equal(y, np.stack([padded[100 + p * 8 + shift :][:8] for p in range(3)]))
    wanted = np.zeros(220, np.float32)
    for p in range(3):
        wanted[100 + p * 8 + shift :][:8] = 5
    assert np.array_equal(z, wanted[100:120])


@pytest.mark.parametrize(("m", "n"), [(1, 1), (7, 9), (8, 8), (9, 17), (3, 40), (33, 2)])
def test_both_axes_of_a_matrix_are_ragged(m: int, n: int) -> None:
    text = """
kernel k(X: tensor<f32>[M, N], Y: tensor<f32>[M, N]) {
  let i = ctx.block.x * 8
  let j = ctx.block.y * 16
  let v = X[i - 1 :+ 8, j + 1 :+ 16]
  Y[i :+ 8, j :+ 16] = v + X[i :+ 8, j :+ 16]
}
"""
    x = np.random.default_rng(0).integers(1, 9, (m, n)).astype(np.float32)
    padded = np.pad(x, ((1, 100), (0, 100)))
    wanted = x + padded[:m, 1 : n + 1]
    assert np.array_equal(run(text, x, x * 0)[1], wanted)


def test_any_tile_value_may_be_stored_to_a_masked_slice() -> None:
    text = """
kernel k(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  let i = ctx.block.x * 8
  let j = ctx.block.y * 8
  C[i :+ 8, j :+ 8] = dot(A[i :+ 8, 0 :+ 16], B[0 :+ 16, j :+ 8])
}
"""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((11, 13)).astype(np.float32), rng.standard_normal((13, 10)).astype(np.float32)
    c = run(text, a, b, np.zeros((11, 10), np.float32))[2]
    assert np.allclose(c, a.astype(np.float64) @ b, atol=1e-5)


def test_slices_of_tiles_are_masked_too() -> None:
    text = """
kernel k(Y: tensor<f32>[3, 4]) {
  var t: tile<f32>[1, 4] = 3.0
  Y[0 :+ 1, :] = t[0 :+ 1, 2 :+ 4]
  Y[1 :+ 1, :] = t[0 :+ 1, -1 :+ 4]
  t[0 :+ 1, 3 :+ 4] = 9.0
  Y[2 :+ 1, :] = t
}
"""
    assert run(text, np.zeros((3, 4), np.float32)).tolist() == [[3, 3, 0, 0], [0, 3, 3, 3], [3, 3, 3, 9]]


def test_masked_cells_of_a_store_keep_what_they_had() -> None:
    text = """
kernel k(X: tensor<f32>[5]) {
  X[3 :+ 4] = 1.0
  X[-2 :+ 3] = 2.0
}
"""
    assert run(text, np.full(5, 7, np.float32), grid=1).tolist() == [2, 7, 7, 1, 1]


def test_whole_axes_and_ranges() -> None:
    text = """
kernel k(X: tensor<f32>[4, 8], Y: tensor<f32>[4, 8]) {
  Y[:, :] = X[:, :]
  Y[1:3, 2:6] = -X[1:3, 2:6]
  Y[3:, :2] = 0.0
}
"""
    x = np.arange(1, 33, dtype=np.float32).reshape(4, 8)
    wanted = x.copy()
    wanted[1:3, 2:6] *= -1
    wanted[3:, :2] = 0
    assert np.array_equal(run(text, x, x * 0)[1], wanted)


def test_runtime_lengths_on_both_sides_of_an_elementwise_statement() -> None:
    text = """
kernel k(X: tensor<f32>[M, N], Y: tensor<f32>[M, N]) {
  let p = ctx.block.x
  Y[p :+ 1, :] = X[p :+ 1, :] * 2.0
}
"""
    x = np.random.default_rng(0).standard_normal((5, 13)).astype(np.float32)
    assert np.array_equal(run(text, x, x * 0)[1], x * 2)


def test_tensors_of_no_extent() -> None:
    text = """
kernel k(X: tensor<f32>[N], Y: tensor<f32>[4]) {
  Y[0 :+ 4] = X[0 :+ 4] + 1.0
}
"""
    assert run(text, np.zeros(0, np.float32), np.zeros(4, np.float32), grid=1)[1].tolist() == [1, 1, 1, 1]


def test_a_grid_of_no_blocks_runs_nothing() -> None:
    text = """
kernel k(X: tensor<f32>[N]) {
  X[ctx.block.x * 8 :+ 8] = 1.0
}
"""
    assert run(text, np.zeros(0, np.float32)).shape == (0,)


# --- the geometry by itself ---------------------------------------------------------------------------------------


@given(
    extents=st.lists(st.integers(0, 6), min_size=1, max_size=3),
    data=st.data(),
    size=st.integers(1, 6),
)
@settings(max_examples=150)
def test_a_window_reads_and_writes_what_a_loop_over_cells_would(
    extents: list[int], data: st.DataObject, size: int
) -> None:
    rank = len(extents)
    lengths = tuple(data.draw(st.integers(0, 5)) for _ in range(rank))
    starts: list[object] = []
    for _ in range(rank):
        kind = data.draw(st.sampled_from(["one", "steps", "any"]))
        if kind == "one" or size == 1:
            starts.append(data.draw(st.integers(-4, 8)))
        elif kind == "steps":
            first, step = data.draw(st.integers(-4, 6)), data.draw(st.integers(-3, 4))
            starts.append(first + step * np.arange(size))
        else:
            starts.append(np.array([data.draw(st.integers(-4, 8)) for _ in range(size)]))
    cells = np.arange(1, int(np.prod(extents)) + 1, dtype=np.int64).reshape(extents)
    where = window(extents, starts, lengths, size)
    read = np.broadcast_to(where.read(cells), (size, *lengths))
    values = -np.arange(1, size * int(np.prod(lengths)) + 1).reshape(size, *lengths)
    written, wanted = cells.copy(), cells.copy()
    where.write(written, values)
    for lane in range(size):
        for spot in np.ndindex(*lengths):
            at = tuple((int(s[lane]) if isinstance(s, np.ndarray) else s) + o for s, o in zip(starts, spot))
            inside = all(0 <= i < n for i, n in zip(at, extents))
            assert read[(lane, *spot)] == (cells[at] if inside else 0)
            if inside:
                wanted[at] = values[(lane, *spot)]
    overlapping = (
        len({tuple(int(s[lane]) if isinstance(s, np.ndarray) else s for s in starts) for lane in range(size)}) < size
    )
    if not overlapping:
        touched = written != cells
        assert np.array_equal(touched, wanted != cells)
