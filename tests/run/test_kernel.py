"""The Python API: loading, calling, planning, grids; what is refused, and in which words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import phobos
from phobos.errors import CheckError, KernelFault, LaunchError
from phobos.runtime.binding import Bound, bind
from phobos.runtime.options import LaunchOptions
from phobos.runtime.placing import place
from phobos.value import replace

SAXPY = """
kernel saxpy(X: tensor<f32>[N], Y: tensor<f32>[N], alpha: f32) {
  let i = ctx.block.x * 64
  Y[i :+ 64] = X[i :+ 64] * alpha + Y[i :+ 64]
}
"""

STAGED = """
@persistent
@autotune(TILE in [32, 64])
kernel staged(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * TILE, N, ctx.blocks.x * TILE) {
    X[t :+ TILE] = X[t :+ TILE] + 1.0
  }
  grid_barrier(BAR)
}
"""


def ones(n: int) -> np.ndarray:
    return np.ones(n, np.float32)


def test_a_module_has_its_kernels_as_attributes(tmp_path: Path) -> None:
    path = tmp_path / "two.ph"
    path.write_text(SAXPY + STAGED)
    module = phobos.load(path)
    assert [kernel.name for kernel in module] == ["saxpy", "staged"] and module.staged is module["staged"]
    with pytest.raises(AttributeError, match="did you mean `saxpy`"):
        module.saxpi  # noqa: B018
    with pytest.raises(phobos.PhobosError, match="no such file"):
        phobos.load(tmp_path / "none.ph")


def test_calling_on_numpy_arrays_runs_the_reference_in_place() -> None:
    x, y = np.arange(100, dtype=np.float32), ones(100)
    phobos.kernel(SAXPY)(x, y, 2.0)
    assert np.array_equal(y, 2 * x + 1)
    phobos.kernel(SAXPY)(Y=y, X=x, alpha=np.float32(-2))
    assert (y == 1).all()
    phobos.kernel(SAXPY)(x, alpha=1, Y=y)
    assert np.array_equal(y, x + 1)


def test_the_barrier_tensor_may_be_given_named_or_left_out() -> None:
    kernel = phobos.kernel(STAGED)
    x = ones(100)
    kernel(x)
    kernel(x, np.zeros(2, np.int32))
    kernel(x, BAR=np.zeros(2, np.int32))
    kernel(X=x, BAR=None)
    assert (x == 5).all()


def test_the_grid_of_a_persistent_kernel() -> None:
    kernel = phobos.kernel(STAGED)
    assert kernel.plan(ones(1000)).grid == (8, 1, 1)
    assert kernel.plan(ones(1000), resident=100).grid == (32, 1, 1)  # ceil(1000 / 32) tiles
    assert kernel.plan(ones(1000), resident=100, constants={"TILE": 64}).grid == (16, 1, 1)
    assert kernel.plan(ones(1000), grid=3).grid == (3, 1, 1)
    assert "useful work" in str(kernel.plan(ones(40)))
    with pytest.raises(LaunchError, match="one dimension"):
        kernel.plan(ones(1000), grid=(2, 2))


GRID_CONSTANT = """
@persistent
@autotune(BLOCKS in [5], TILE in [16])
kernel k(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * TILE, N, BLOCKS * TILE) {
    X[t :+ TILE] = X[t :+ TILE] + 1.0
  }
  grid_barrier(BAR)
}
"""


@pytest.mark.parametrize(
    ("options", "grid"),
    [
        ({}, 8),
        ({"resident": 3}, 3),
        ({"grid": 4}, 4),
        ({"constants": {"BLOCKS": 6}}, 6),
        ({"grid": 4, "resident": 9}, 4),
    ],
)
def test_a_grid_constant_is_bound_to_the_grid(options: dict[str, object], grid: int) -> None:
    kernel = phobos.kernel(GRID_CONSTANT)
    x = ones(500)
    plan = kernel.plan(x, **options)  # type: ignore[arg-type]
    assert plan.grid == (grid, 1, 1) and plan.constants["BLOCKS"] == grid
    kernel.reference(x, **options, detect="races")  # type: ignore[arg-type]
    assert (x == 2).all()


@pytest.mark.parametrize(
    ("residents", "grid"), [({5: 264, 264: 132, 132: 132}, 132), ({5: 7, 7: 264, 264: 132, 132: 200, 200: 264}, 132)]
)
def test_a_grid_constant_whose_code_fits_fewer_blocks_than_it_says(residents: dict[int, int], grid: int) -> None:
    """Code for one count may use other registers than code for another: counts that go round end at one that fits."""
    kernel = phobos.kernel(GRID_CONSTANT)
    x = ones(10_000)

    def rebuilt(constants: dict[str, int]) -> Bound:
        module, unit = kernel.analysed(constants)
        return bind(module, unit, unit.program, (), {"X": x})

    bound = rebuilt({})
    placed = place(bound, None, lambda program: (residents[program.constants["BLOCKS"].value], "told"), rebuilt, {})
    assert placed.grid == (grid, 1, 1) and placed.bound.program.constants["BLOCKS"].value == grid
    assert placed.resident is not None and placed.resident >= grid


def test_a_grid_constant_that_contradicts_the_grid_is_refused() -> None:
    kernel = phobos.kernel(GRID_CONSTANT)
    with pytest.raises(LaunchError, match="BLOCKS"):
        kernel.plan(ones(8), grid=4, constants={"BLOCKS": 6})
    with pytest.raises(LaunchError) as caught:
        kernel.plan(ones(8), resident=4, constants={"BLOCKS": 6})
    assert caught.value.kind == "not-resident"


def test_a_grid_that_nothing_tells_must_be_given() -> None:
    kernel = phobos.kernel("kernel k(X: tensor<f32>[N]) {\n  if ctx.block.x == 3 { X[0] = 1.0 }\n}\n")
    x = np.zeros(4, np.float32)
    with pytest.raises(LaunchError, match="pass `grid=`"):
        kernel(x)
    kernel(x, grid=4)
    assert x[0] == 1


@pytest.mark.parametrize(
    ("arguments", "named", "said"),
    [
        ((ones(8),), {}, "needs `Y`, `alpha`"),
        ((ones(8), ones(8), 1.0, 2.0), {}, "4 arguments given by position"),
        ((ones(8), ones(8)), {"alpa": 1.0}, "no parameter `alpa`; did you mean `alpha`"),
        ((ones(8), ones(8), 1.0), {"gird": 3}, "no parameter `gird`; did you mean `grid`"),
        ((ones(8), ones(8), 1.0), {"X": ones(8)}, "by position, but saxpy(X, Y, alpha) takes 2 besides `X`, given by"),
        ((ones(8), ones(8), 2**2000), {}, "argument `alpha` is 1148130695274254524232833201"),
        ((ones(8), ones(8), 10**5000), {}, "argument `alpha` is of type int, the kernel declares f32"),
        ((ones(8), ones(9), 1.0), {}, "`N` is 8 by axis 0 of `X`, but axis 0 of `Y` is 9"),
        ((ones(8).astype(np.float64), ones(8), 1.0), {}, "argument `X` holds f64"),
        ((ones(8).reshape(2, 4), ones(8), 1.0), {}, "pass an array of rank 1"),
        ((ones(16)[::2], ones(8), 1.0), {}, "argument `X` is not row-major"),
        ((3.0, ones(8), 1.0), {}, "argument `X` is of type float"),
        ((ones(8), ones(8), "much"), {}, "argument `alpha` is 'much', the kernel declares f32"),
        ((ones(8), ones(8), ones(8)), {}, "argument `alpha` is an array"),
    ],
)
def test_arguments_that_do_not_fit(arguments: tuple[object, ...], named: dict[str, object], said: str) -> None:
    with pytest.raises(LaunchError) as caught:
        phobos.kernel(SAXPY)(*arguments, **named)
    assert said in str(caught.value) and caught.value.kind is None and caught.value.diagnostic is not None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"grid": 1.5}, "cannot have a grid of 1.5"),
        ({"grid": "4"}, "cannot have a grid of '4'"),
        ({"grid": (1, "2")}, "cannot have a grid of (1, '2')"),
        ({"constants": 3}, "`constants` is 3: give names and numbers"),
        ({"constants": {"BLOCK": "a"}}, "whole numbers are meant"),
        ({"timeout": -1}, "`timeout` is -1: give seconds, or 0"),
        ({"timeout": "soon"}, "`timeout` is 'soon'"),
        ({"stream": 3}, "`stream` is for arrays of a GPU"),
    ],
)
def test_options_that_cannot_be_meant(options: dict[str, object], said: str) -> None:
    y = ones(8)
    with pytest.raises(LaunchError) as caught:
        phobos.kernel(SAXPY)(ones(8), y, 1.0, **options)
    assert said in str(caught.value) and (y == 1).all()


def test_what_a_reference_run_and_a_compilation_cannot_mean() -> None:
    kernel = phobos.kernel(SAXPY)
    for call, said in (
        (lambda: kernel.reference(ones(8), ones(8), 1.0, scheduler="random", seed="3"), "`seed` is '3'"),
        (lambda: kernel.reference(ones(8), ones(8), 1.0, seed=-1), "`seed` is -1"),
        (lambda: kernel.reference(ones(8), ones(8), 1.0, step_limit="9"), "`step_limit` is '9'"),
        (lambda: kernel.reference(ones(8), ones(8), 10**400), "`alpha` is 1000"),
        (lambda: kernel.compile(target=None), "`target` is None"),
        (lambda: kernel.persistent_grid(device="cuda:0"), "`device` is 'cuda:0'"),
    ):
        with pytest.raises(LaunchError) as caught:
            call()
        assert said in str(caught.value)


def test_numbers_of_other_libraries_are_numbers() -> None:
    plan = phobos.kernel(SAXPY).plan(ones(8), ones(8), 1.0, grid=np.int64(3), timeout=np.float32(2.0))
    assert plan.grid == (3, 1, 1) and all(type(n) is int for n in plan.grid)


def test_what_is_raised_names_its_line() -> None:
    """A traceback shows the message alone, and whoever reads it wants to know where."""
    hang = phobos.kernel(
        "@persistent\nkernel hang(X: tensor<f32>[N], BAR: tensor<i32>[2]) {\n"
        "  for t in range(ctx.block.x * 8, N, ctx.blocks.x * 8) {\n    X[t :+ 8] = 1.0\n    grid_barrier(BAR)\n  }\n}\n"
    )
    with pytest.raises(phobos.KernelFault) as fault:
        hang(ones(24), grid=2)
    assert str(fault.value).startswith("<text>:5: deadlock: ") and "; line 3: " in str(fault.value)
    with pytest.raises(phobos.CheckError, match=r"`k` cannot run: <text>:2: PH101 `y` is not defined"):
        phobos.kernel("kernel k(X: tensor<f32>[N]) {\n  X[0] = y\n}\n")(ones(8))
    with pytest.raises(phobos.CheckError, match=r"`k` cannot run: <text>:2: PH001 .* \(and 1 more\)"):
        phobos.kernel("kernel k(X: tensor<f32>[N]) {\n  X[0] =\n  X[1] =\n}\n")(ones(8))
    with pytest.raises(phobos.InputError, match="no such file"):
        phobos.load("nowhere.ph")


def test_read_only_and_shared_arrays_are_refused_where_it_matters() -> None:
    kernel = phobos.kernel(SAXPY)
    x, frozen = ones(8), ones(8)
    frozen.flags.writeable = False
    kernel(frozen, x, 1.0)
    with pytest.raises(LaunchError, match="read-only"):
        kernel(x, frozen, 1.0)
    shift = phobos.kernel(
        "kernel s(X: tensor<f32>[N], Y: tensor<f32>[N]) {\n  let i = ctx.block.x * 8\n  Y[i :+ 8] = X[i + 1 :+ 8]\n}\n"
    )
    with pytest.raises(LaunchError, match="`Y` and `X` share memory"):
        shift(x, x)


def test_one_array_may_stand_for_two_tensors_where_every_block_keeps_to_its_own_cells() -> None:
    x = np.arange(100, dtype=np.float32)
    phobos.kernel(SAXPY)(x, x, 2.0)
    assert np.array_equal(x, 3 * np.arange(100))
    with pytest.raises(LaunchError, match="share memory"):
        phobos.kernel(SAXPY)(x[:50], x[1:51], 2.0)


def test_more_blocks_than_the_masks_allow_for() -> None:
    kernel = phobos.kernel(
        "@aligned(N = 8)\nkernel k(X: tensor<f32>[N]) {\n  X[ctx.block.x * 8 :+ 8] = X[ctx.block.x * 8 :+ 8] + 1.0\n}\n"
    )
    x = np.zeros(16, np.float32)
    kernel(x, grid=2)
    with pytest.raises(LaunchError) as caught:
        kernel(x, grid=3)
    assert caught.value.kind == "grid-too-large" and (x == 1).all()


def test_the_residency_of_a_configured_target(tmp_path: Path) -> None:
    (tmp_path / "phobos.toml").write_text('target = ["h200"]\n')
    (tmp_path / "k.ph").write_text(STAGED)
    plan = phobos.load(tmp_path / "k.ph").staged.plan(ones(100_000))
    assert plan.resident == 132 * 8 and plan.grid == (132 * 8, 1, 1) and "what h200 holds" in plan.grid_source


def test_integers_must_fit_their_parameter() -> None:
    kernel = phobos.kernel("kernel k(X: tensor<i64>[1], n: u8) {\n  X[0] = n\n}\n")
    x = np.zeros(1, np.int64)
    kernel(x, 255, grid=1)
    assert x[0] == 255
    for wrong in (256, -1, 1.5, True):
        with pytest.raises(LaunchError, match="argument `n`"):
            kernel(x, wrong, grid=1)


def test_a_parameter_named_like_an_extent_must_equal_it() -> None:
    kernel = phobos.kernel("kernel k(X: tensor<i64>[N], N: i32) {\n  X[ctx.block.x] = N\n}\n")
    x = np.zeros(4, np.int64)
    kernel(x, 4)
    assert (x == 4).all()
    with pytest.raises(LaunchError, match="named like an extent"):
        kernel(x, 5)


def test_constants_decide_static_extents() -> None:
    kernel = phobos.kernel(
        "@autotune(W in [8, 16])\nkernel k(X: tensor<f32>[M, W]) {\n  X[ctx.block.x :+ 1, 0 :+ W] = f32(W)\n}\n"
    )
    x = np.zeros((3, 16), np.float32)
    with pytest.raises(LaunchError, match=r"constants=\{'W': 16\}"):
        kernel(x)
    kernel(x, constants={"W": 16})
    assert (x == 16).all()
    with pytest.raises(LaunchError, match="no constant `V`"):
        kernel(x, constants={"V": 1})


def test_a_check_error_says_what_and_runs_nothing() -> None:
    x = ones(8)
    with pytest.raises(CheckError) as caught:
        phobos.kernel("kernel k(X: tensor<f32>[N]) {\n  X[0] = 2.0\n  X[1] = y\n}\n")(x, grid=1)
    assert [d.code for d in caught.value.diagnostics] == ["PH101"] and (x == 1).all()


def test_a_fault_is_an_exception_with_kind_blocks_and_place() -> None:
    kernel = phobos.kernel(
        "@persistent\nkernel k(X: tensor<f32>[N], B: tensor<i32>[2]) {\n  if ctx.block.x == 1 { grid_barrier(B) }\n}\n"
    )
    with pytest.raises(KernelFault) as caught:
        kernel(ones(4), grid=2)
    assert caught.value.kind == "deadlock" and caught.value.blocks == (0, 1) and caught.value.diagnostic is not None


def test_torch_like_arrays_are_taken_through_dlpack() -> None:
    class Foreign:
        def __init__(self, held: np.ndarray) -> None:
            self.held = held

        def __dlpack__(self, **options: object) -> object:
            return self.held.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.held.__dlpack_device__()

    x, y = ones(8), ones(8)
    phobos.kernel(SAXPY)(Foreign(x), Foreign(y), 2.0)
    assert (y == 3).all()


def test_a_parameter_called_like_an_option_is_given_by_position() -> None:
    made = phobos.kernel("kernel k(X: tensor<f32>[N], stream: f32) {\n  X[ctx.block.x] = stream\n}\n")
    x = ones(4)
    made(x, 2.0)
    assert (x == 2).all()
    with pytest.raises(LaunchError, match=r"needs `stream`; `stream=` is an option of the launch: give .* by position"):
        made(x, stream=3.0)


def test_a_barrier_without_a_tensor_is_nothing_to_run() -> None:
    """The name is a parameter's, and hidden: a finding of the second group, but there is no program behind it."""
    text = """
@persistent
kernel k(Z: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let BAR = 1
  grid_barrier(BAR)
  Z[ctx.block.x] = 1.0
}
"""
    made = phobos.kernel(text)
    arrays = {"Z": np.zeros(4, "f4"), "BAR": np.zeros(2, "i4")}
    for tried in (made, made.plan, made.reference, lambda **more: made.compile()):
        with pytest.raises(phobos.CheckError, match="PH206"):
            tried(**arrays)


def test_a_launch_is_known_again_by_all_of_its_options_but_the_stream() -> None:
    plain = LaunchOptions()
    for name in LaunchOptions.__annotations__:
        other = replace(plain, **{name: object()})
        assert (other.key != plain.key) == (name != "stream"), name


# --- what a caller may say --------------------------------------------------------------------------------------


STRIDED = """
@persistent
kernel strided(X: tensor<f32>[N]) {
  for t in range(ctx.block.x * 8, N, ctx.blocks.x * 8) { X[t :+ 8] = X[t :+ 8] + 1.0 }
}
"""


@pytest.mark.parametrize("grid", [3, np.int64(3), (3,), [3], np.array([3]), (np.int32(3), 1, 1)])
def test_a_grid_is_whole_numbers_of_any_library(grid: object) -> None:
    x, k = np.zeros(64, np.float32), phobos.kernel(STRIDED)
    assert k.plan(x, grid=grid).grid == (3, 1, 1)  # type: ignore[arg-type]
    k(x, grid=grid)  # type: ignore[arg-type]
    assert (x == 1).all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"resident": 0}, "`resident` is 0: give a whole number of at least 1"),
        ({"resident": "8"}, "`resident` is '8'"),
        ({"resident": 2.5}, "`resident` is 2.5"),
        ({"resident": True}, "`resident` is True"),
        ({"reserved_sms": -1}, "`reserved_sms` is -1: give a whole number of at least 0"),
        ({"timeout": float("inf")}, "`timeout` is inf: give seconds, or 0 for no limit"),
        ({"timeout": 1e30}, "`timeout` is 1e\\+30"),
        ({"timeout": True}, "`timeout` is True"),
        ({"constants": {"TILE": True}}, "`constants` is {'TILE': True}: names and whole numbers are meant"),
        ({"schedule": 3}, "`schedule` is 3"),
        ({"detect": 3}, "3 cannot be detected"),
        ({"detect": ("races", 3)}, r"\('races', 3\) cannot be detected"),
    ],
)
def test_what_no_option_can_be_is_refused_by_name(options: dict[str, object], said: str) -> None:
    x, k = np.zeros(64, np.float32), phobos.kernel(STRIDED)
    for launch in (k, k.plan):
        with pytest.raises(LaunchError, match=said):
            launch(x, **options)
    assert not x.any()


def test_a_plan_says_how_many_blocks_run_at_once_where_the_caller_does() -> None:
    x, k = np.zeros(64, np.float32), phobos.kernel("kernel k(X: tensor<f32>[N]) {\n  X[ctx.block.x] = 1.0\n}")
    assert k.plan(x).resident is None and k.plan(x, resident=3).resident == 3
    assert "3 blocks at once" in str(k.plan(x, resident=3))
