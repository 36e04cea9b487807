"""Every kernel we have compiles with NVRTC for every architecture; what its PTX must and must not hold."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from phobos.codegen import cards, nvrtc
from phobos.codegen.emitted import Emitted
from phobos.codegen.shadows import shadowed
from phobos.lowering.options import RACES, Options
from phobos.runtime import compiling
from phobos.runtime.conditions import stored_tensors
from phobos.runtime.kernel import Kernels
from tests.codegen.compare import emitted, read, sixteens

ROOT = Path(__file__).resolve().parents[2]
ARCHS = ("sm_75", "sm_80", "sm_86", "sm_90a", "sm_100", "sm_120")
EXAMPLES = sorted(ROOT.glob("examples/*.ph"))
FILES = [*EXAMPLES, *sorted(ROOT.glob("tests/corpus/*.ph"))]

pytestmark = pytest.mark.skipif(nvrtc.location() is None, reason="no NVRTC (pip install 'phobos-tools[nvrtc]')")

TENSOR = """
@tensorcore
@launch(128)
kernel product(A: tensor<bf16>[M, K], B: tensor<bf16>[K, N], C: tensor<f32>[M, N]) {
  let r = ctx.block.x * 64
  var acc: tile<f32>[64, 64] = 0.0
  for k in range(0, K, 32) {
    acc += dot(A[r :+ 64, k :+ 32], B[k :+ 32, 0 :+ 64])
  }
  C[r :+ 64, 0 :+ 64] = acc
}
"""


def ptx_of(made: Emitted, arch: str = "sm_90a") -> str:
    return nvrtc.compile_text(made.text, "test.cu", arch).ptx


@pytest.mark.parametrize("number", range(len(FILES)), ids=[path.stem for path in FILES])
def test_compiles(number: int) -> None:
    """One architecture for each file, every one in turn; `test_compiles_everywhere` crosses some with all."""
    path, arch = FILES[number], ARCHS[number % len(ARCHS)]
    for kernel in Kernels(str(path), path.read_text()):
        module, unit = kernel.analysed()
        made = compiling.build(module, unit, Options(arch=arch, multiples=sixteens(*unit.program.dims)))
        assert 0 < made.registers <= 255
        assert made.occupancy(cards.LIMITS[arch]).ctas_per_sm >= 1


@pytest.mark.parametrize("number", range(0, len(FILES), 4), ids=[path.stem for path in FILES[::4]])
def test_compiles_where_races_are_looked_for(number: int) -> None:
    """A quarter of the files, on every architecture in turn. What is written otherwise does not know of shadows."""
    path, arch = FILES[number], ARCHS[number // 4 % len(ARCHS)]
    for kernel in Kernels(str(path), path.read_text()):
        module, unit = kernel.analysed()
        options = Options(arch=arch, multiples=sixteens(*unit.program.dims))
        made = compiling.spelled(module, unit, replace(options, instrument=RACES))
        assert nvrtc.compile_text(made.text, "test.cu", arch).log == ""
        stored = {argument.name for argument in made.arguments if argument.kind == "shadow"}
        assert stored == shadowed([unit.program]) <= set(stored_tensors(unit.program))
        plain = compiling.spelled(module, unit, options)
        assert not re.search(r"ph_races|_seen\(|_shadow", plain.text)


@pytest.mark.parametrize("arch", ARCHS)
def test_compiles_everywhere(arch: str) -> None:
    texts = [read(f"examples/{name}.ph") for name in ("saxpy", "staged", "softmax")]
    for text in (*texts, TENSOR):
        made = nvrtc.compile_text(emitted(text, options=Options(arch=arch)).text, "test.cu", arch)
        assert made.log == "", "the compiler has something to say"


def test_the_barrier_releases_before_it_arrives_and_acquires_before_it_leaves() -> None:
    """One CTA barrier, the arrival, the polls, one CTA barrier; and none of the kernel's own accesses in between."""
    ptx = ptx_of(emitted(read("examples/staged.ph")))
    body = ptx[ptx.index(".entry phk_staged") :]
    arrivals = [m.start() for m in re.finditer(r"atom\.add\.acq_rel\.gpu", body)]
    assert len(arrivals) == 3, "one word, or a group's word and then the word that all watch"
    arrive = arrivals[0]
    before = max(m.start() for m in re.finditer(r"bar(rier)?\.sync", body[:arrive]))
    poll = body.index("ld.acquire.gpu", arrivals[-1])
    after = re.search(r"bar(rier)?\.(cta\.)?red", body[poll:])
    assert after is not None
    inside = body[before : poll + after.start()]
    assert not re.search(r"\b(ld|st)\.global(\.v\d)?\.(f32|b32|u32)\b", inside), "data crosses the barrier"


LAST = """
@persistent
kernel last(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  X[ctx.block.x] = 1.0
  grid_barrier(BAR)
}
"""


@pytest.mark.parametrize("arch", ARCHS)
def test_the_vote_of_a_barrier_that_ends_a_kernel_is_read(arch: str) -> None:
    """The assembler encodes a vote that nobody reads as an instruction that the card does not know."""
    ptx = ptx_of(emitted(LAST, options=Options(arch=arch)), arch)
    votes = re.findall(r"red\.or\.pred\s+(%p\d+)", ptx)
    assert votes and all(ptx.count(f"{vote};") + ptx.count(f"{vote},") + ptx.count(f"@{vote} ") > 1 for vote in votes)


def test_nothing_is_read_through_the_read_only_path() -> None:
    for name in ("saxpy", "staged", "softmax", "normalise"):
        assert "ld.global.nc" not in ptx_of(emitted(read(f"examples/{name}.ph")))


@pytest.mark.parametrize(
    ("name", "multiples"), [("saxpy", ()), ("staged", ()), ("softmax", (("N", 16),)), ("softmax", (("N", 4),))]
)
def test_elementwise_code_is_wide_and_shares_nothing(name: str, multiples: tuple[tuple[str, int], ...]) -> None:
    made = emitted(read(f"examples/{name}.ph"), options=Options(multiples=multiples))
    ptx = ptx_of(made)
    assert "ld.global.v4" in ptx and "st.global.v4" in ptx
    if name == "softmax":
        return  # its row sums cross warps
    assert not re.search(r"\b(ld|st)\.shared", ptx)
    if name == "saxpy":
        assert "bar.sync" not in ptx and "barrier.sync" not in ptx


def test_a_promise_takes_the_masked_copy_of_the_loop_away() -> None:
    text = """
    @persistent
    kernel k(X: tensor<f32>[N]) {
      for t in range(ctx.block.x * 1024, N, ctx.blocks.x * 1024) {
        X[t :+ 1024] = X[t :+ 1024] * 0.5
      }
    }
    """
    plain, promised = emitted(text).text, emitted(text.replace("@persistent", "@persistent\n@aligned(N = 1024)")).text
    bodies = [one[one.index("__global__") :] for one in (plain, promised)]
    assert "else {" in bodies[0] and "else {" not in bodies[1]
    ptx = nvrtc.compile_text(promised, "test.cu", "sm_90a").ptx
    assert not re.search(r"\b(ld|st)\.global\.(f32|b32|u32)\b", ptx), "an access that is not 16 bytes wide"


def test_launch_numbers_become_bounds() -> None:
    text = """
    @launch(128, 4, 32)
    kernel k(X: tensor<f32>[N]) {
      X[ctx.block.x * 128 :+ 128] = 1.0
    }
    """
    module, unit = Kernels("<text>", text)["k"].analysed()
    made = compiling.build(module, unit, Options())
    assert "__launch_bounds__(128, 4)" in made.cuda
    assert made.registers <= 32 and ".minnctapersm 4" in made.ptx


def test_names_and_paths_cannot_break_out() -> None:
    from phobos.codegen.spelling import Names, file_literal

    names = Names()
    for wish in ("float", "int", "asm", "ph_grid_barrier", "x; }", "Ünïcode", "", "9"):
        made = names.fresh(wish)
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*_\d+", made), made
    assert file_literal('a"\n#include "b\\c.ph') == '"a__#include _b_c.ph"'
    text = "kernel float(int: tensor<f32>[N], asm: f32) {\n  let tid = asm * 2.0\n  int[0 :+ 32] = tid\n}"
    module, unit = Kernels('x"\n#error .ph', text)["float"].analysed()
    assert compiling.build(module, unit, Options()).registers > 0


def test_shared_memory_over_the_limit_is_refused_by_its_largest_part() -> None:
    from phobos.errors import LaunchError

    text = """
    kernel big(X: tensor<f32>[128, 128], Y: tensor<f32>[128, 128]) {
      var t: tile<f32>[128, 128] = X[0 :+ 128, 0 :+ 128]
      Y[0 :+ 128, 0 :+ 128] = transpose(t)
    }
    """
    module, unit = Kernels("<text>", text)["big"].analysed()
    with pytest.raises(LaunchError, match=r"49152 are the most .* without `@dynshared`.*`t`|49152"):
        compiling.build(module, unit, Options())


def test_what_is_not_executed_is_refused_by_name() -> None:
    from phobos.errors import LaunchError

    for name, why in (("gelu", "is known by name, and is not"), ("frobnicate", "is no function of this file")):
        text = f"kernel k(X: tensor<f32>[N]) {{\n  X[0 :+ 32] = {name}(X[0 :+ 32])\n}}"
        kernel = Kernels("<text>", text)["k"]
        module, unit = kernel.analysed()
        with pytest.raises(LaunchError, match=f"`{name}` {why}"):
            compiling.spelled(module, unit, Options())
        said = "not executed here" if name == "gelu" else "no function of this file"
        with pytest.raises(LaunchError, match=rf"`{name}\(..\)` cannot run: .*{said}"):
            kernel(numpy.zeros(64, numpy.float32), grid=1)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_which_products_are_contracted_is_said_in_the_text(dtype: str) -> None:
    """The compiler would decide by the code around: a loop over blocks would give other bits than one block."""
    text = f"""
    @launch(64)
    kernel k(X: tensor<{dtype}>[N], Y: tensor<{dtype}>[N], a: {dtype}) {{
      let s = ctx.block.x * 64
      let x = X[s :+ 64]
      let p = x * x
      Y[s :+ 64] = x * a + p - x * p
      Y[s :+ 64] += x * a
    }}
    """
    made = emitted(text)
    name = "fma" if dtype == "f64" else "fmaf"
    assert made.text.count(f"{name}(") == 2 * 3
    ptx = nvrtc.compile_text(made.text, "test.cu", "sm_90a").ptx
    assert f"fma.rn.{dtype}" in ptx
    assert f"mul.{dtype}" not in ptx and f"add.{dtype}" not in ptx  # those could still be contracted
