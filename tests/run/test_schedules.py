"""Schedules in the reference runtime: every kernel gives the bits of its flat run; what cannot be is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

import phobos
from phobos.errors import LaunchError
from phobos.runtime.given import arguments, constants_in
from phobos.runtime.headers import Run, runs_of
from phobos.runtime.kernel import Kernel, Kernels
from phobos.runtime.placing import has_barrier
from phobos.semantics.fusion import FusedProgram
from phobos.semantics.schedules import BLOCKED, FLAT, INTERLEAVED, XYZ

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*ROOT.glob("examples/*.ph"), *ROOT.glob("tests/corpus/*.ph")])


def runs() -> Iterator[tuple[Path, Kernel, Run]]:
    for path in FILES:
        text = path.read_text()
        for run in runs_of(str(path), text):
            if run.fault is None:
                yield path, Kernels(str(path), text).one(run.kernel), run


ALL = list(runs())


def ordinary(kernel: Kernel) -> bool:
    program = kernel.analysed()[1].program
    return not isinstance(program, FusedProgram) and not program.is_persistent and not has_barrier(program)


def waits(kernel: Kernel) -> bool:
    return not ordinary(kernel) and not isinstance(kernel.analysed()[1].program, FusedProgram)


def results(path: Path, kernel: Kernel, run: Run, **options: object) -> dict[str, bytes]:
    program = kernel.analysed()[1].program
    constants = constants_in(program, run.names)
    given = arguments(program, run.names, 0, {name: str(path.parent) for name in run.names}, constants)
    arrays = {name: numpy.array(array) for name, array in given.arrays.items()}
    kernel.reference(**arrays, **given.numbers, constants=constants, **options)  # type: ignore[arg-type]
    return {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize(
    ("path", "kernel", "run"), [one for one in ALL if ordinary(one[1])], ids=lambda one: getattr(one, "stem", "")
)
def test_every_schedule_gives_the_bits_of_the_flat_one(path: Path, kernel: Kernel, run: Run) -> None:
    flat = results(path, kernel, run)
    for schedule in (XYZ, BLOCKED, INTERLEAVED):
        for resident, group in ((1, None), (3, 2), (1000, 3)):
            got = results(path, kernel, run, schedule=schedule, l2_group=group, resident=resident)
            assert got == flat, (schedule, resident, group)
    got = results(path, kernel, run, schedule=INTERLEAVED, l2_group=2, resident=2, scheduler="random", seed=3)
    assert got == flat
    assert results(path, kernel, run, schedule="persistent_blocked", resident=2, detect="races") == flat


@pytest.mark.parametrize(
    ("path", "kernel", "run"), [one for one in ALL if not ordinary(one[1]) and not waits(one[1])]
)
def test_a_fusion_gives_the_bits_of_its_own_schedule_under_every_one(path: Path, kernel: Kernel, run: Run) -> None:
    flat = results(path, kernel, run)
    for schedule in (BLOCKED, INTERLEAVED):
        for resident, group in ((1, None), (3, 2), (1000, 3)):
            assert results(path, kernel, run, schedule=schedule, l2_group=group, resident=resident) == flat
    assert results(path, kernel, run, schedule=INTERLEAVED, resident=2, scheduler="random", seed=3) == flat
    assert results(path, kernel, run, schedule=BLOCKED, resident=2, detect="races") == flat


def test_there_are_kernels_to_try() -> None:
    assert sum(ordinary(kernel) for _, kernel, _ in ALL) >= 5


@pytest.mark.parametrize(("path", "kernel", "run"), [one for one in ALL if waits(one[1])][:4])
def test_a_kernel_whose_blocks_wait_is_not_scheduled(path: Path, kernel: Kernel, run: Run) -> None:
    for schedule in (BLOCKED, INTERLEAVED):
        said = rf"`{kernel.name}` cannot run under schedule '{schedule}', as it (is|has)"
        with pytest.raises(LaunchError, match=said):
            results(path, kernel, run, schedule=schedule)
    with pytest.raises(LaunchError, match="cannot be grouped for the L2 cache"):
        results(path, kernel, run, l2_group=4)


WHO = """
kernel who(A: tensor<i32>[X, Y], B: tensor<i32>[4]) {
  A[ctx.block.x, ctx.block.y] = i32(ctx.blocks.x * 100 + ctx.blocks.y)
  if ctx.block.x == 2 { B[1] = i32(ctx.block.y) }
}
"""


@pytest.mark.parametrize("resident", [1, 2, 5])
@pytest.mark.parametrize("schedule", [FLAT, XYZ, BLOCKED, INTERLEAVED])
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("scheduler", [None, "adversarial"])
def test_a_race_names_the_blocks_of_the_kernels_own_grid(
    schedule: str, resident: int, group: int, scheduler: str | None
) -> None:
    """Blocks (2, 0) and (2, 1) of a grid of 3 x 2: numbers 2 and 5, even where one worker runs both."""
    kernel = phobos.kernel(WHO)
    a, b = numpy.zeros((3, 2), numpy.int32), numpy.zeros(4, numpy.int32)
    how = {"schedule": schedule, "resident": resident, "l2_group": group, "scheduler": scheduler}
    with pytest.raises(phobos.KernelFault, match=r"blocks [25] and [25] store different values") as error:
        kernel.reference(a, b, detect="races", **how)  # type: ignore[arg-type]
    assert error.value.blocks == (2, 5)
    if scheduler is None:
        kernel.reference(a, b, **how)  # type: ignore[arg-type]
        assert (a == 302).all()


def test_a_fault_names_the_block_of_the_kernels_own_grid() -> None:
    kernel = phobos.kernel("kernel k(A: tensor<i32>[N]) { A[ctx.block.y + ctx.block.x * 4] = 1 }")
    for schedule in (FLAT, XYZ, BLOCKED, INTERLEAVED):
        with pytest.raises(phobos.KernelFault, match=r"block 2 accesses A\[8\]") as error:
            kernel.reference(numpy.zeros(8, numpy.int32), grid=(3, 1), schedule=schedule, resident=2, l2_group=2)
        assert error.value.blocks == (2,), schedule


def test_a_fault_names_the_number_of_a_block_in_two_dimensions() -> None:
    """Only (1, 2) of a grid of 2 x 3 is outside: number 1 + 2 * 2, wherever a schedule puts it."""
    kernel = phobos.kernel("kernel k(A: tensor<i32>[N]) { A[ctx.block.x * 2 + ctx.block.y] = 1 }")
    for schedule in (FLAT, XYZ, BLOCKED, INTERLEAVED):
        with pytest.raises(phobos.KernelFault, match=r"block 5 accesses A\[4\]") as error:
            kernel.reference(numpy.zeros(4, numpy.int32), grid=(2, 3), schedule=schedule, resident=2, l2_group=1)
        assert error.value.blocks == (5,), schedule


def test_the_plan_says_how_blocks_are_shared_out(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = phobos.kernel(WHO)
    arrays = numpy.zeros((5, 4), numpy.int32), numpy.zeros(4, numpy.int32)
    plan = kernel.plan(*arrays, schedule="persistent_interleaved", l2_group=2, resident=3)
    said = "persistent-interleaved: 3 workers run 20 tiles, at most 7 each, in bands of 2 along x"
    assert f"schedule   {said}\n" in str(plan)
    made = plan.as_dict()
    keys = ("grid", "schedule", "l2_group", "workers", "tiles", "rounds", "resident")
    assert [made[key] for key in keys] == [[5, 4, 1], "persistent-interleaved", 2, 3, 20, 7, 3]
    flat = kernel.plan(*arrays)
    assert (flat.schedule, flat.workers, flat.rounds, flat.l2_group) == ("flat", 20, 1, 1)
    assert "schedule" not in str(flat)
    most = kernel.plan(*arrays, schedule=BLOCKED, l2_group=8, resident=64)
    assert most.workers == 20 and most.notes == (
        "groups of 8 change nothing: the grid has 5 along x", "20 workers, one for each block; 64 could be resident",
    )  # fmt: skip


def test_unknown_schedules_are_refused() -> None:
    kernel = phobos.kernel(WHO)
    arrays = numpy.zeros((5, 4), numpy.int32), numpy.zeros(4, numpy.int32)
    with pytest.raises(LaunchError, match="no schedule is called 'balanced': choose flat, xyz, persistent-blocked"):
        kernel(*arrays, schedule="balanced")
    with pytest.raises(LaunchError, match="grouped by 0"):
        kernel.plan(*arrays, l2_group=0)


def test_nothing_to_do_is_done_by_nobody() -> None:
    kernel = phobos.kernel("kernel k(A: tensor<i32>[N]) { A[ctx.block.x * 4 :+ 4] = 1 }")
    for schedule in (FLAT, XYZ, BLOCKED, INTERLEAVED):
        empty = numpy.zeros(0, numpy.int32)
        kernel(empty, schedule=schedule)
        assert kernel.plan(empty, schedule=schedule).workers == 0
