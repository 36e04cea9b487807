"""Every schedule of the emitted text on the host gives the bits that the flat one gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy
import pytest

from phobos.codegen.emitted import Emitted
from phobos.codegen.work import emit
from phobos.diagnostic import Span
from phobos.lowering.decide import DEFAULTS, lower
from phobos.lowering.options import Options
from phobos.semantics.program import Settings
from phobos.semantics.schedules import BLOCKED, FLAT, INTERLEAVED, XYZ, Schedule, Work, form_of, share_out
from tests.codegen import compare, host
from tests.codegen import test_language as language
from tests.codegen.test_language import *  # noqa: F403

pytestmark = pytest.mark.skipif(host.COMPILER is None, reason="no C++ compiler (g++)")

SCHEDULES = (
    (Schedule(BLOCKED, 1), 1), (Schedule(INTERLEAVED, 1), 2), (Schedule(BLOCKED, 2), 3), (Schedule(INTERLEAVED, 3), 4),
    (Schedule(FLAT, 2), None), (Schedule(XYZ, 2), None),
)  # fmt: skip
"""With the number of workers that fit."""


def emitted(text: str, kernel: str | None, options: Options, settings: Settings, work: Work) -> Emitted:
    module, unit = compare.unit_of(text, kernel, settings)

    def line_of(span: Span) -> int:
        return text.count("\n", 0, module.absolute(unit, span).start) + 1

    return emit(lower(unit.program, replace(options, form=form_of(work))), "test.ph", line_of)


def alike(*arguments: Any, schedules: tuple[tuple[Schedule, int | None], ...] = SCHEDULES, **named: Any) -> Emitted:
    """Assert that schedules give a `Case` the bits of the flat one; gives the last text."""
    case = compare.Case(*arguments, **{"orders": (0, 7), **named})
    made = case.emitted()
    if case.program.is_persistent or any(site.what == "barrier" for site in made.sites):
        return made
    expected = case.arrays()
    host.run(made, expected, case.numbers, case.blocks)
    for schedule, resident in schedules:
        work = share_out(schedule, [[case.blocks]], resident)
        if form_of(work) is None:
            continue
        made = emitted(case.text, case.kernel, case.options, case.settings, work)
        for order in case.orders[:2]:
            arrays = case.arrays()
            host.run(made, arrays, case.numbers, case.blocks, order=order, work=work)
            for name, want in expected.items():
                assert arrays[name].tobytes() == want.tobytes(), (name, str(schedule), resident, order)
    return made


_turns = cycle(range(4))


@pytest.fixture(autouse=True)
def on_schedules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The kernels of `test_language`, each under one of the persistent schedules in turn: compiling takes long."""

    def one(*arguments: Any, **named: Any) -> Emitted:
        return alike(*arguments, **named, schedules=(SCHEDULES[next(_turns)],))

    monkeypatch.setattr(language, "agree", one)
    yield


TILES = """
@launch(64)
kernel k(X: tensor<f32>[M, N], Y: tensor<f32>[M, N], WHO: tensor<i32>[GX, GY, GZ]) {
  let r = ctx.block.x * 3
  let c = ctx.block.y * 5
  if (ctx.block.x + ctx.block.y) % 4 == 3 { return }
  var t: tile<f32>[3, 5] = X[r :+ 3, c :+ 5]
  t = transpose(transpose(t) * 2.0)
  if ctx.block.y == 1 { return }
  Y[r :+ 3, c :+ 5] += t + rowsum(t)
  WHO[ctx.block.x, ctx.block.y, ctx.block.z] = i32(ctx.blocks.x * 100 + ctx.blocks.y * 10 + ctx.blocks.z)
}
"""


@pytest.mark.parametrize("grid", [(5, 4, 1), (4, 3, 2), (7, 1, 1), (1, 1, 1), (1, 6, 1)])
def test_blocks_keep_their_coordinates_and_end_by_themselves(grid: tuple[int, int, int]) -> None:
    nx, ny, nz = grid
    sizes = {"M": 3 * nx - 1, "N": 5 * ny - 2, "GX": nx, "GY": ny, "GZ": nz}
    made = alike(TILES, sizes, grid=grid)
    arrays = compare.arrays_for(compare.unit_of(TILES)[1].program, sizes, {})
    before = arrays["Y"].copy()
    host.run(compare.emitted(TILES), arrays, sizes, grid)
    ran = arrays["WHO"] != 0
    assert set(arrays["WHO"][ran]) == {nx * 100 + ny * 10 + nz}
    x, y = numpy.indices((nx, ny))
    assert (ran[:, :, 0] == (((x + y) % 4 != 3) & (y != 1))).all()
    assert (arrays["Y"] != before).any()
    assert made.static_shared_bytes > 0


def test_no_blocks_are_no_work() -> None:
    work = share_out(Schedule(INTERLEAVED, 1), [[(4, 0, 1)]], 8)
    assert work.workers == 0
    # More workers than blocks, as a launcher of one's own may have them: those without work end.
    text = "kernel k(X: tensor<i32>[N]) { X[ctx.block.x] = i32(ctx.block.x) + 1 }"
    for kind in (BLOCKED, INTERLEAVED):
        for total in (0, 1, 3, 9):
            work = Work(kind, share_out(Schedule(kind, 1), [[(total, 1, 1)]], 8).phases, (8, 1, 1))
            made = emitted(text, None, DEFAULTS, Settings(), work)
            arrays = {"X": numpy.zeros(12, numpy.int32)}
            host.run(made, arrays, {"N": 12}, (total, 1, 1), work=work)
            assert arrays["X"].tolist() == [n + 1 for n in range(total)] + [0] * (12 - total)


def test_threads_wait_between_blocks_where_they_must_and_only_there() -> None:
    turned = """
    @launch(64)
    kernel k(X: tensor<f32>[N, 8], Y: tensor<f32>[8, N]) {
      var t: tile<f32>[8, 8] = X[ctx.block.x * 8 :+ 8, 0 :+ 8]
      Y[0 :+ 8, ctx.block.x * 8 :+ 8] = transpose(t)
    }
    """
    early = """
    @launch(64)
    kernel k(X: tensor<f32>[N, 8], Y: tensor<f32>[8, N]) {
      var t: tile<f32>[8, 8] = X[ctx.block.x * 8 :+ 8, 0 :+ 8]
      if ctx.block.x % 2 == 1 {
        Y[0 :+ 8, ctx.block.x * 8 :+ 8] = transpose(t)
        return
      }
      Y[0 :+ 8, ctx.block.x * 8 :+ 8] = X[0 :+ 8, 0 :+ 8]
    }
    """
    own = """
    @launch(64)
    kernel k(X: tensor<f32>[N, 8], Y: tensor<f32>[N, 8]) {
      let x = X[ctx.block.x * 8 :+ 8, 0 :+ 8]
      Y[ctx.block.x * 8 :+ 8, 0 :+ 8] = x * 2.0
    }
    """
    for text, fenced in ((turned, True), (early, True), (own, False)):
        made = alike(text, {"N": 37}, schedules=((Schedule(INTERLEAVED, 1), 2), (Schedule(BLOCKED, 1), 1)))
        loop = made.text[made.text.index("for (unsigned id") :]
        assert ("__syncthreads();  // " in loop) == fenced, loop
