"""What there is to try of a kernel, and at which sizes a judge can afford to try it."""

from __future__ import annotations

import math

import pytest

from phobos.errors import InputError
from phobos.runtime.kernel import kernel
from phobos.runtime.tuning.problem import judged_at, shrunk
from phobos.runtime.tuning.space import Variant, sizes_its_grid, space, variant_of, with_grids, workers
from phobos.semantics.program import Program
from tests.tune.support import SCALE, STAGED, problem_of


def program_of(text: str, **constants: int) -> Program:
    return kernel(text).analysed(constants)[1].program


def labels(*variants: Variant) -> list[str]:
    return [variant.label for variant in variants]


GEMM = """
@autotune(BM in [32, 64], BN in [32, 128])
kernel gemm(A: tensor<f32>[M, K], B: tensor<f32>[K, N], C: tensor<f32>[M, N]) {
  let row = ctx.block.x * BM
  let column = ctx.block.y * BN
  var acc: tile<f32>[BM, BN] = 0.0
  for k in range(0, K, 16) {
    acc += dot(A[row :+ BM, k :+ 16], B[k :+ 16, column :+ BN])
  }
  C[row :+ BM, column :+ BN] = acc
}
"""


def test_the_space_is_the_product_of_the_constants_and_begins_with_what_runs_without_tuning() -> None:
    assert labels(*space(program_of(GEMM), {})) == [
        "BM=32 BN=32", "BM=32 BN=64", "BM=32 BN=128", "BM=64 BN=32", "BM=64 BN=64", "BM=64 BN=128",
    ]  # fmt: skip
    swapped = GEMM.replace("BM in [32, 64]", "BM in [64, 32, 16]")
    assert labels(*space(program_of(swapped), {}))[0] == "BM=64 BN=32"


def test_a_constant_that_the_caller_sets_is_held() -> None:
    assert labels(*space(program_of(GEMM, BM=64), {"BM": 64})) == ["BN=32", "BN=64", "BN=128"]


def test_a_constant_that_is_an_extent_is_held_because_another_value_is_another_problem() -> None:
    text = """
@autotune(C in [64, 128], T in [1, 2])
kernel rows(X: tensor<f32>[M, C], Y: tensor<f32>[M, C]) {
  let row = ctx.block.x * T
  Y[row :+ T, 0 :+ C] = X[row :+ T, 0 :+ C]
}
"""
    assert labels(*space(program_of(text), {})) == ["T=1", "T=2"]


def test_a_grid_constant_is_held_because_the_launch_binds_it() -> None:
    text = """
@persistent
@autotune(BLOCKS in [4, 16], T in [4, 8])
kernel k(X: tensor<f32>[N]) {
  for t in range(ctx.block.x * T, N, BLOCKS * T) { X[t :+ T] = X[t :+ T] + 1.0 }
}
"""
    assert labels(*space(program_of(text), {})) == ["T=4", "T=8"]
    assert sizes_its_grid(program_of(text))
    own = text.replace("range(ctx.block.x * T, N, BLOCKS * T) { X[t :+ T] = X[t :+ T] + 1.0 }",
                       "range(0, 4) { X[ctx.block.x + t * BLOCKS] = 1.0 }")  # fmt: skip
    assert not sizes_its_grid(program_of(own))


def test_schedules_and_groups_multiply_the_space() -> None:
    found = space(program_of(SCALE, TILE=8), {"TILE": 8}, (None, "persistent-blocked"), (1, 4))
    assert labels(*found) == ["as it is", "L2 group 4", "persistent-blocked", "persistent-blocked L2 group 4"]


def test_grids_go_up_by_twos_and_no_two_launch_the_same() -> None:
    program, first = program_of(STAGED), Variant((("TILE", 4),))

    def grids(n: int, most: int, sms: int) -> list[int | None]:
        return [variant.per_sm for variant in with_grids(first, program, {"N": n}, most, sms)]

    assert grids(1 << 20, 8, 132) == [None, 1, 2, 4]
    assert grids(1 << 20, 6, 132) == [None, 1, 2, 4]
    assert grids(200 * 4, 8, 132) == [None, 1]  # 200 tiles: two on each would be as many as the plan gives
    assert grids(100 * 4, 8, 132) == [None]
    assert grids(1 << 20, 1, 132) == [None]
    assert workers(program, {"N": 200 * 4}, 2, 132) == 200
    assert [v.per_sm for v in with_grids(first, program_of(SCALE), {"N": 1 << 20}, 8, 132)] == [None]


def test_no_more_blocks_than_cells_for_their_results() -> None:
    text = """
@persistent
kernel k(P: tensor<f32>[S]) { P[ctx.block.x] = 1.0 }
"""
    assert workers(program_of(text), {"S": 3}, 8, 132) == 3


def test_a_variant_survives_being_kept() -> None:
    variant = Variant((("A", 1), ("B", 2)), "persistent-blocked", 4, 2)
    assert variant_of(variant.as_dict()).label == variant.label == "A=1 B=2 persistent-blocked L2 group 4 2/SM"
    for broken in ({}, {**variant.as_dict(), "constants": {"A": "1"}}, {**variant.as_dict(), "l2_group": None}):
        with pytest.raises((ValueError, KeyError, TypeError)):
            variant_of(broken)


@pytest.mark.parametrize("n", [1 << 20, (1 << 20) + 3, 12_345_678, 1_000_000, 100, 1])
def test_smaller_sizes_keep_every_remainder(n: int) -> None:
    programs = [program_of(GEMM, BM=bm, BN=bn) for bm in (32, 64) for bn in (32, 64, 128)]
    small = shrunk({"M": n, "N": 4096, "K": 4096}, programs, 1 << 16)
    for name, unit, whole in (("M", 64, n), ("N", 128, 4096), ("K", 16, 4096)):
        assert small[name] % unit == whole % unit and small[name] % 16 == whole % 16
        assert small[name] <= whole and (whole < unit or small[name] >= unit)
    assert math.prod(small.values()) < 1 << 26


def test_smaller_sizes_keep_promises_that_no_tile_shows() -> None:
    program = program_of("@aligned(N = 48)\nkernel k(X: tensor<f32>[N]) { let i = ctx.block.x\n X[i] = 1.0 }")
    small = shrunk({"N": 48 * 100_000}, [program], 1500)
    assert small["N"] % 48 == 0 and 48 <= small["N"] < 2000


def test_a_loop_over_tiles_goes_round_where_that_is_affordable() -> None:
    program = program_of(SCALE, TILE=64)
    assert shrunk({"N": 3 * 64}, [program], 4 * 64) == {"N": 2 * 64}
    assert shrunk({"N": 3 * 64}, [program], 3 * 64) == {"N": 64}


def test_what_is_affordable_is_left_as_it_is() -> None:
    program = program_of(SCALE)
    assert shrunk({"N": 1000}, [program]) == {"N": 1000}


PICK = """
kernel pick(T: tensor<f32>[S], I: tensor<i32>[N], Y: tensor<f32>[N]) {
  let i = ctx.block.x
  Y[i] = T[i64(I[i])]
}
"""


def test_where_smaller_sizes_break_the_kernel_the_whole_ones_are_taken() -> None:
    programs = [program_of(PICK)]
    dims = {"S": 70_000, "N": 40}
    assert shrunk(dims, programs)["S"] < 60_000

    def picked(index: int) -> dict[str, int]:
        names = {"T": "ones", "I": str(index), "Y": "zeros"}
        return judged_at(problem_of(PICK, dims, names), programs).small

    assert picked(5) == shrunk(dims, programs)
    assert picked(69_999) == dims
    with pytest.raises(InputError, match=r"`pick` cannot be tuned, as nothing can be compared.*out-of-bounds"):
        picked(70_000)
