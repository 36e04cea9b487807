"""What stays on chip across barriers and what does not, in the text and in what it computes on this machine."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy
import pytest

from phobos.codegen.facts import facts_of
from phobos.codegen.work import emit
from phobos.diagnostic import Span
from phobos.lowering.decide import lower
from phobos.lowering.on_chip import on_chip_of, rounds_at
from phobos.lowering.options import Options
from phobos.runtime.kernel import Kernel, Kernels
from phobos.runtime.plan import Plan
from phobos.value import value
from tests.codegen import host
from tests.codegen.fake_device import FakeDriver, HostArray

HEAD = "@launch(256)\n@persistent\n"
WALK = "for t in range(ctx.block.x * 1024, N, ctx.blocks.x * 1024)"


@value
class Case:
    """`stays` - the tensors that may stay; `why` - of the others, a part of the reason. `flat` - X has one row.
    `exact` - the reference agrees bit for bit."""

    text: str
    stays: list[str]
    why: dict[str, str]
    flat: bool = False
    exact: bool = True


def stages(parameters: str, body: str, after: str = "", stage: str = "grid_barrier(BAR)", before: str = "") -> str:
    return f"""{HEAD}kernel k({parameters}, BAR: tensor<i32>[2], count: i64) {{
  {before}
  for stage in range(0, count) {{
    {body}
    {stage}
  }}
  {after}
}}
"""


X, XY = "X: tensor<f32>[N]", "X: tensor<f32>[N], Y: tensor<f32>[N]"
SCALED = f"{WALK} {{ X[t :+ 1024] = X[t :+ 1024] * 0.5 + 1.0 }}"
TILES = "takes the same tile"
OTHERS = "another block touches"

KERNELS: dict[str, Case] = {
    "staged": Case(stages(X, SCALED), ["X"], {}),
    "several": Case(
        stages(
            "X: tensor<f32>[N], A: tensor<f32>[N], B: tensor<f32>[N]",
            f"{WALK} {{\n let a = A[t :+ 1024]\n X[t :+ 1024] = X[t :+ 1024] * a + B[t :+ 1024]\n}}",
        ),
        ["X", "A", "B"],
        {},
        exact=False,
    ),
    "ping-pong": Case(
        stages(
            XY,
            f"{WALK} {{ Y[t :+ 1024] = X[t :+ 1024] + X[t + 1 :+ 1024] }}\n"
            f"grid_barrier(BAR)\n{WALK} {{ X[t :+ 1024] = Y[t :+ 1024] + Y[t + 1 :+ 1024] }}",
        ),
        [],
        {"X": TILES, "Y": TILES},
    ),
    "one side of a ping-pong": Case(
        stages(
            XY,
            f"{WALK} {{ Y[t :+ 1024] = X[t :+ 1024] + 1.0 }}\n"
            f"grid_barrier(BAR)\n{WALK} {{ X[t :+ 1024] = Y[t + 1 :+ 1024] * 0.5 }}",
        ),
        ["X"],
        {"Y": TILES},
    ),
    "partial sums": Case(
        f"""{HEAD}kernel k(X: tensor<f32>[1, N], PART: tensor<f32>[1, 2048], BAR: tensor<i32>[2]) {{
  let p = ctx.block.x
  var sum: tile<f32>[1, 1] = 0.0
  for t in range(p * 1024, N, ctx.blocks.x * 1024) {{
    let x = X[0 :+ 1, t :+ 1024]
    sum += rowsum(x * x)
  }}
  PART[0 :+ 1, p :+ 1] = sum
  grid_barrier(BAR)
  let total = rowsum(where(iota(2048) < ctx.blocks.x, PART[0 :+ 1, 0 :+ 2048], 0.0))
  for t in range(p * 1024, N, ctx.blocks.x * 1024) {{
    X[0 :+ 1, t :+ 1024] = X[0 :+ 1, t :+ 1024] / sqrt(total)
  }}
}}
""",
        ["X"],
        {"PART": TILES},
        flat=True,
        exact=False,
    ),
    "a neighbour reads behind the last barrier": Case(
        stages(XY, SCALED, f"{WALK} {{ Y[t :+ 1024] = X[t + 1 :+ 1024] }}"), [], {"X": OTHERS}
    ),
    "a neighbour reads behind one barrier more": Case(
        stages(XY, SCALED, f"grid_barrier(BAR)\n{WALK} {{ Y[t :+ 1024] = X[t + 1 :+ 1024] }}"), ["X"], {}
    ),
    "a neighbour stores in front of the first barrier": Case(
        stages(
            XY,
            f"grid_barrier(BAR)\n{SCALED}",
            before=f"{WALK} {{ X[t + 1 :+ 1024] = Y[t :+ 1024] }}",
        ),
        [],
        {"X": OTHERS},
    ),
    "cells past the end read as 0 again": Case(
        stages(
            "X: tensor<f32>[1, N], PART: tensor<f32>[1, 2048]",
            f"{WALK} {{\n X[0 :+ 1, t :+ 1024] += 1.0\n sum += rowsum(X[0 :+ 1, t :+ 1024])\n}}",
            before="var sum: tile<f32>[1, 1] = 0.0",
            after="PART[0 :+ 1, ctx.block.x :+ 1] = sum",
        ),
        ["X"],
        {},
        flat=True,
        exact=False,
    ),
    "only some stages": Case(stages(X, f"if stage % 2 == 0 {{\n{WALK} {{ X[t :+ 1024] += 1.0 }}\n}}"), ["X"], {}),
    "a loop that the stages leave": Case(
        stages(X, SCALED, stage="grid_barrier(BAR)\nif stage > 2 { break }"), ["X"], {}
    ),
    "a return inside": Case(
        stages(X, SCALED, stage="grid_barrier(BAR)\nif stage > 2 { return }"), [], {"X": "`return`"}
    ),
    "tiles that move with the stage": Case(
        stages(X, f"{WALK} {{ X[t + stage :+ 1024] = 1.0 }}"), [], {"X": "another one behind the barrier"}
    ),
}


def kernel_of(name: str) -> Kernel:
    return Kernels("<text>", KERNELS[name].text).one()


def stays(plan: Plan) -> list[str]:
    return [m[1] for note in plan.notes if (m := re.match(r"`(\w+)` stays on chip", note))]


@pytest.mark.parametrize("name", KERNELS)
def test_what_may_stay_and_why_the_rest_may_not(name: str) -> None:
    case = KERNELS[name]
    found = on_chip_of(kernel_of(name).analysed()[1].program)
    assert [kept.tensor.name for kept in found.kept] == case.stays
    reasons = {refusal.tensor.name: refusal.why for refusal in found.refused}
    assert set(reasons) == set(case.why)
    for tensor, part in case.why.items():
        assert re.search(part, reasons[tensor]), reasons[tensor]


def test_the_stages_neither_load_nor_store() -> None:
    program = kernel_of("staged").analysed()[1].program
    options = Options(keep=(("X", 4),))
    text = emit(lower(program, options), "k.ph", lambda span: 1).text
    head, _, rest = text[text.index('extern "C"') :].partition("for (long long stage")
    stage, _, tail = rest.partition("ph_grid_barrier")
    assert not re.search(r"\bX_1\b", stage)
    assert len(re.findall(r"float X_\d+\[4\];", head)) == 4  # sixteen registers
    assert len(re.findall(r"ph_load<4>", head)) == 4 and len(re.findall(r"ph_store<4>", tail)) == 4
    plain = emit(lower(program, replace(options, keep=())), "k.ph", lambda span: 1).text
    assert re.search(r"\bX_1\b", plain.partition("for (long long stage")[2].partition("ph_grid_barrier")[0])


def test_facts_tell_what_may_stay_and_why_not() -> None:
    program = kernel_of("one side of a ping-pong").analysed()[1].program
    text = KERNELS["one side of a ping-pong"].text

    def line_of(span: Span) -> int:
        return text.count("\n", 0, span.start) + 1

    x, y = facts_of(lower(program), line_of)["on_chip"]
    assert (x["tensor"], x["may_stay"], x["registers_per_tile"], x["stored"]) == ("X", True, 4, True)
    assert "no other block touches" in x["reason"] and "around the 2 barriers" in x["reason"]
    assert y == {
        "tensor": "Y",
        "may_stay": False,
        "lines": [8],
        "reason": "not every access takes the same tile of a round",
    }


def test_rounds_are_those_of_the_block_that_walks_furthest() -> None:
    (kept,) = on_chip_of(kernel_of("staged").analysed()[1].program).kept
    assert kept.registers == 4
    assert rounds_at(kept, {"N": 1 << 20, "count": 1}, 264) == 4
    assert rounds_at(kept, {"N": 1025, "count": 1}, 1) == 2
    assert rounds_at(kept, {"N": 0, "count": 1}, 8) == 0
    assert rounds_at(kept, {}, 8) is None


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return FakeDriver(monkeypatch)


@pytest.mark.skipif(host.COMPILER is None, reason="no C++ compiler (g++)")
@pytest.mark.parametrize("name", KERNELS)
def test_on_chip_and_through_memory_agree_with_the_reference(device: FakeDriver, name: str) -> None:
    case, made = KERNELS[name], kernel_of(name)
    random = numpy.random.default_rng(3)
    n = 7000
    given = {
        tensor: random.random((n,), numpy.float32) for tensor in ("X", "Y", "A", "B") if f"{tensor}: ten" in case.text
    }
    if case.flat:
        given = {"X": given["X"].reshape(1, n), "PART": random.random((1, 2048), numpy.float32)}
    count = {"count": 4} if "count: i64" in case.text else {}
    want = {key: array.copy() for key, array in given.items()}
    made.reference(**want, **count, grid=3)
    for keep in (True, False):
        got = {key: array.copy() for key, array in given.items()}
        held = {key: HostArray(array) for key, array in got.items()}
        plan = made.plan(**held, **count, grid=3, keep=keep)
        assert stays(plan) == (case.stays if keep else []), plan
        made(**held, **count, grid=3, keep=keep)
        for key, array in got.items():
            if case.exact:
                numpy.testing.assert_array_equal(array, want[key], err_msg=f"{key}, keep={keep}")
            else:
                numpy.testing.assert_allclose(array, want[key], rtol=2e-5)


def test_too_much_for_the_registers_goes_through_memory(device: FakeDriver) -> None:
    x = HostArray(numpy.ones(1 << 20, numpy.float32))
    plan = kernel_of("staged").plan(x, count=1, grid=8)
    assert "`X` goes through memory at every barrier: a block has 128 tiles of it" in str(plan)


def test_one_array_for_two_tensors_goes_through_memory(device: FakeDriver) -> None:
    array = numpy.ones(2048, numpy.float32)
    plan = kernel_of("several").plan(HostArray(array), HostArray(array), HostArray(array.copy()), count=1, grid=2)
    assert "`X` and `A` share memory" in str(plan)
    assert stays(plan) == ["B"]
