"""Kernels that write down when each CTA is where: what is added to the text, and what a buffer holds afterwards."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy
import pytest

from phobos.codegen import nvrtc
from phobos.codegen.emitted import Emitted
from phobos.lowering.options import TRACE, Options
from phobos.runtime.compiling import spelled
from phobos.runtime.kernel import Kernels
from phobos.semantics.schedules import Form, Order
from tests.codegen import host
from tests.codegen.compare import arrays_for, read, unit_of
from tests.fusions import LAUNCHED

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120")
FILES = ("staged", "saxpy", "softmax", "gemm")
PERSISTENT = Form("persistent-interleaved", ((Order(1, 1),),))
needs_host = pytest.mark.skipif(host.COMPILER is None, reason="no C++ compiler (g++)")
needs_nvrtc = pytest.mark.skipif(nvrtc.location() is None, reason="no NVRTC (pip install 'phobos-tools[nvrtc]')")

EARLY = """
@launch(32)
@persistent
kernel early(X: tensor<f32>[N], n: i32, BAR: tensor<i32>[2]) {
  for r in range(0, n) {
    X[ctx.block.x] = X[ctx.block.x] + 1.0
    grid_barrier(BAR)
  }
  if ctx.block.x == 1 { return }
  X[ctx.block.x] = X[ctx.block.x] * 2.0
}
"""


def both(text: str, names: str, options: Options) -> tuple[Emitted, Emitted]:
    """As it always is, and traced."""
    module, unit = Kernels("t.ph", text)[names].analysed()
    return spelled(module, unit, options), spelled(module, unit, replace(options, instrument=TRACE))


def without_marks(text: str) -> str:
    """A traced text without what tracing adds."""
    text = re.sub(r",\n    unsigned long long\* trace_buffer\)", ")", text)
    text = re.sub(r"^// When a CTA is where.*?^\};\n\n?", "", text, flags=re.M | re.S)
    text = re.sub(r"^[^\n]*ph_multiprocessor\(\) \{.*?^\}\n\n?", "", text, flags=re.M | re.S)
    text = re.sub(r"^[^\n]*ph_now\(\) \{.*?^\}\n\n?", "", text, flags=re.M | re.S)
    text = re.sub(r"^ *(ph_trace trace|trace\.)[^\n]*\n", "", text, flags=re.M)
    return re.sub(r"^ *__syncthreads\(\);  // the last thread's end[^\n]*\n", "", text, flags=re.M)


@pytest.mark.parametrize("name", FILES)
def test_tracing_adds_lines_and_changes_none(name: str) -> None:
    """Nothing of it is there unless asked for, and what is there otherwise stands as it was, byte by byte."""
    text = read(f"examples/{name}.ph")
    kernel = Kernels("t.ph", text).names[0]
    for options in (Options(), Options(form=PERSISTENT)) if name == "saxpy" else (Options(),):
        plain, traced = both(text, kernel, options)
        assert "trace" not in plain.text.replace("// " + kernel, "") and "multiprocessor" not in plain.text
        assert "ph_trace trace(trace_buffer, " in traced.text
        clocked = re.sub(r"^[^\n]*ph_now\(\) \{.*?^\}\n\n?", "", plain.text, flags=re.M | re.S)
        assert re.sub(r"\s*\n", "\n", without_marks(traced.text)) == re.sub(r"\s*\n", "\n", clocked)
        arguments = [[(a.kind, a.name, a.ctype, a.box) for a in made.arguments] for made in (plain, traced)]
        assert arguments[1] == [*arguments[0], ("buffer", TRACE, "unsigned long long*", (0, 0))]
        assert plain.wide == traced.wide and plain.threads == traced.threads


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_compiles_everywhere(arch: str) -> None:
    texts = [both(read(f"examples/{name}.ph"), name, Options(arch=arch))[1] for name in FILES]
    texts += [both(LAUNCHED, "double+triple+add+both", Options(arch=arch))[1]]
    texts += [both(read("examples/saxpy.ph"), "saxpy", Options(arch=arch, form=PERSISTENT))[1], both(EARLY, "early",
              Options(arch=arch))[1]]  # fmt: skip
    for made in texts:
        assert nvrtc.compile_text(made.text, "t.cu", arch).log == "", "the compiler has something to say"


@needs_host
@pytest.mark.parametrize("room", [8, 2])
def test_each_cta_writes_its_start_its_barriers_and_its_end(room: int) -> None:
    """Also the one that returns early; what there is no room for is counted all the same."""
    blocks, rounds, stride = 3, 5, 4 + 3 * room
    plain, traced = both(EARLY, "early", Options())
    _, unit = unit_of(EARLY)
    arrays = arrays_for(unit.program, {"N": blocks}, {"X": 1.0})
    want = arrays_for(unit.program, {"N": blocks}, {"X": 1.0})
    buffer = numpy.zeros(16 + blocks * stride, numpy.uint64)
    buffer[:2] = room, blocks
    host.run(traced, arrays, {"N": blocks, "n": rounds}, (blocks, 1, 1), buffers={TRACE: buffer})
    host.run(plain, want, {"N": blocks, "n": rounds}, (blocks, 1, 1))
    assert arrays["X"].tolist() == want["X"].tolist() == [12.0, 6.0, 12.0]
    kept = buffer[16:].reshape(blocks, stride)
    assert (kept[:, 3] == rounds).all() and (kept[:, 2] == 0).all()
    intervals = kept[:, 4:].reshape(blocks, room, 3)[:, : min(room, rounds)]
    times = numpy.concatenate([kept[:, :1], intervals[:, :, :2].reshape(blocks, -1), kept[:, 1:2]], axis=1)
    assert (numpy.diff(times.astype(numpy.int64), axis=1) > 0).all(), "start, then each barrier from arrival, then end"
    assert {traced.sites[int(site)].what for site in intervals[:, :, 2].ravel()} == {"barrier"}
    left = intervals[:, :, 1].min(axis=0)
    assert (intervals[:, :, 0].max(axis=0) < left).all(), "nobody leaves before the last has come"
    assert not kept[:, 4:].reshape(blocks, room, 3)[:, rounds:].any()


@needs_host
def test_blocks_past_the_buffer_write_nothing() -> None:
    _, traced = both(EARLY, "early", Options())
    _, unit = unit_of(EARLY)
    arrays = arrays_for(unit.program, {"N": 3}, {"X": 1.0})
    buffer = numpy.zeros(16 + 3 * 7, numpy.uint64)
    buffer[:2] = 1, 2
    host.run(traced, arrays, {"N": 3, "n": 1}, (3, 1, 1), buffers={TRACE: buffer})
    assert buffer[16:30].any() and not buffer[30:].any()


def test_virtual_blocks_have_a_site_of_their_kernel() -> None:
    _, traced = both(LAUNCHED, "double+triple+add+both", Options())
    assert [(s.what, s.subject) for s in traced.sites if s.what in ("block", "phase")] == [
        ("block", "double"), ("block", "triple"), ("phase", "before `add`"), ("block", "add"),
        ("phase", "before `both`"), ("block", "both"),
    ]  # fmt: skip


@needs_nvrtc
@pytest.mark.parametrize("name", ["staged", "saxpy"])
def test_the_clock_is_read_when_all_threads_have_come(name: str) -> None:
    """Not when thread 0 has: between what a CTA stores and the time at which it comes or ends stands a CTA barrier."""
    made = both(read(f"examples/{name}.ph"), name, Options())[1]
    ptx = nvrtc.compile_text(made.text, "t.cu", "sm_90a").ptx
    body = ptx[ptx.index(f".entry {made.symbol}") :]
    events = re.findall(r"%globaltimer|bar(?:rier)?\.(?:cta\.)?(?:sync|red)|st\.global\.(?:v\d\.)?[fb]32", body)
    reads = [at for at, event in enumerate(events) if event.startswith("%global")]
    stores = [at for at, event in enumerate(events) if event.startswith("st.")]
    assert len(reads) >= 2 and stores
    for at in reads[1:]:
        assert events[at - 1].startswith("bar") or events[at - 1].startswith("%global"), events[: at + 1]
