"""Products on the ordinary units, on whole and on ragged matrices: the emitted code, run on this machine."""

from __future__ import annotations

import re

import numpy
import pytest

from phobos.codegen import nvrtc
from phobos.lowering.layout import Layout
from phobos.lowering.options import Options
from phobos.runtime.compiling import build
from phobos.runtime.kernel import kernel
from tests.codegen import host
from tests.codegen.compare import sixteens
from tests.codegen.fake_device import FakeDriver, HostArray

pytestmark = pytest.mark.skipif(host.COMPILER is None, reason="no C++ compiler (g++)")

GEMM = """
{attribute}
@launch({threads})
kernel gemm(A: tensor<{dtype}>[M, K], B: tensor<{dtype}>[{b}], C: tensor<{total}>[M, N]) {{
  let row = ctx.block.y * {rows}
  let column = ctx.block.x * {columns}
  var acc: tile<{total}>[{rows}, {columns}] = 0
  for k in range(0, K, {step}) {{
    acc += {product}
  }}
  C[row :+ {rows}, column :+ {columns}] = acc
}}
"""
DOT = "dot(A[row :+ {rows}, k :+ {step}], B[k :+ {step}, column :+ {columns}])"
DOT_T = "dot_t(A[row :+ {rows}, k :+ {step}], B[column :+ {columns}, k :+ {step}])"


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return FakeDriver(monkeypatch)


def text(
    rows: int = 64, columns: int = 64, step: int = 16, threads: int = 256, dtype: str = "f32", total: str = "f32",
    transposed: bool = False, attribute: str = "",
) -> str:  # fmt: skip
    product = (DOT_T if transposed else DOT).format(rows=rows, columns=columns, step=step)
    return GEMM.format(
        rows=rows, columns=columns, step=step, threads=threads, dtype=dtype, total=total,
        b="N, K" if transposed else "K, N", product=product, attribute=attribute,
    )  # fmt: skip


def multiplied(source: str, shape: tuple[int, int, int], dtype: type, total: type, transposed: bool = False) -> None:
    m, n, k = shape
    random = numpy.random.default_rng(7)
    a, b = random.integers(-8, 8, (m, k)).astype(dtype), random.integers(-8, 8, (k, n)).astype(dtype)
    c = numpy.full((m, n), 77, total)
    want = (a.astype(numpy.int64) @ b.astype(numpy.int64)).astype(total)
    kernel(source)(HostArray(a), HostArray(numpy.ascontiguousarray(b.T) if transposed else b), HostArray(c))
    numpy.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("shape", [(64, 64, 160), (130, 68, 48), (65, 67, 33), (64, 64, 8), (3, 4, 1)])
@pytest.mark.parametrize("transposed", [False, True])
def test_whole_and_ragged_matrices(device: FakeDriver, shape: tuple[int, int, int], transposed: bool) -> None:
    multiplied(text(transposed=transposed), shape, numpy.float32, numpy.float32, transposed)


@pytest.mark.parametrize(
    ("dtype", "total", "kind", "sums"),
    [
        ("f64", "f64", numpy.float64, numpy.float64),
        ("f16", "f32", numpy.float16, numpy.float32),
        ("i8", "i32", numpy.int8, numpy.int32),
    ],
)
def test_other_element_types(device: FakeDriver, dtype: str, total: str, kind: type, sums: type) -> None:
    multiplied(text(dtype=dtype, total=total), (130, 68, 48), kind, sums)


@pytest.mark.parametrize(
    ("rows", "columns", "step", "threads", "attribute"),
    [
        (128, 64, 16, 128, "@dynshared"),
        (64, 128, 32, 128, "@dynshared\n@pipeline"),
        (64, 128, 8, 256, ""),
        (64, 64, 24, 256, "@pipeline"),
        (32, 32, 16, 64, ""),
        (16, 16, 16, 256, ""),
        (64, 64, 12, 256, ""),
    ],
)
def test_other_tiles(device: FakeDriver, rows: int, columns: int, step: int, threads: int, attribute: str) -> None:
    source = text(rows, columns, step, threads, attribute=attribute)
    multiplied(source, (rows + 5, columns * 2 + 3, step * 5 + 1), numpy.float32, numpy.float32)
    multiplied(source, (rows * 2, columns, step * 6), numpy.float32, numpy.float32)


def test_the_left_operand_is_turned_and_read_in_fours() -> None:
    """The next k's registers are read while this one is multiplied, whole rows at a time."""
    from phobos.codegen.work import emit
    from phobos.lowering.decide import lower

    program = kernel(text(128, 128)).analysed()[1].program
    lowered = lower(program, Options(multiples=sixteens("M", "N", "K")))
    (product,) = lowered.products.values()
    assert product.turned and product.layout.patch == 4 and product.stages == 2
    written = emit(lowered, "gemm.ph", lambda span: 1).text
    assert "a[2][8], b[2][8]" in written
    # Copies lie at numbers from where a thread's first one goes, and one number says which of them are inside.
    assert "ph_copy_async<1>(left_to + 16, left_from + 16LL * K_1, 16 < left_rows);" in written
    assert "ph_copy_async<4>(right_to + 1024, right_from + 8LL * N_1, 8 < right_rows);" in written


@pytest.mark.skipif(nvrtc.location() is None, reason="no NVRTC")
@pytest.mark.parametrize("extents", [(), sixteens("M", "N", "K")])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_round_has_no_branch(extents: tuple[tuple[str, int], ...], transposed: bool) -> None:
    """All products of a round, its reads and its copies are one block of code, whole or ragged."""
    module, unit = kernel(text(128, 128, transposed=transposed)).analysed()
    ptx = build(module, unit, Options(multiples=extents)).ptx
    rounds = max(re.split(r"^\$L__BB\w+:$", ptx, flags=re.MULTILINE), key=lambda one: one.count("fma.rn.f32"))
    assert rounds.count("fma.rn.f32") == 16 * 64 and rounds.count("bra") == 1
    assert len(re.findall(r"cp\.async\.c[ag]\.", rounds)) == 8 + (8 if transposed or not extents else 2)


def test_rows_before_the_first_are_zero_in_a_pipelined_product(device: FakeDriver) -> None:
    """Where rows may lie before the tensor one number does not say which are inside: the step is fetched at once."""
    source = text(64, 64).replace("A[row :+ 64", "A[row - 3 :+ 64")
    random = numpy.random.default_rng(3)
    a, b = (random.integers(-8, 8, (70, 70)).astype(numpy.float32) for _ in range(2))
    c = numpy.full((70, 70), 77, numpy.float32)
    kernel(source)(HostArray(a), HostArray(b), HostArray(c))
    numpy.testing.assert_array_equal(c, numpy.vstack([numpy.zeros((3, 70)), a[:-3]]) @ b)


def test_lanes_of_a_patch_share_cells_with_a_neighbour() -> None:
    """A 16-byte read of shared memory is served to half a warp at once where each lane reads what the lane beside it,
    or the one two further, reads too; so must it be of both operands, and every place must have one thread."""
    from phobos.codegen.elementwise import place_definition, place_names

    for layout in (Layout(128, 256, 256, 16, 4, 4, patch=4), Layout(128, 128, 128, 8, 4, 4, patch=4)):
        down, along = place_names(layout)
        text = place_definition(layout).removeprefix("const int ").replace("/", "//")
        written = dict(one.split(" = ") for one in text.rstrip(";").split(", "))
        places = [tuple(eval(written[name], {"tid": tid}) for name in (down, along)) for tid in range(layout.threads)]
        assert sorted(places) == [(d, a) for d in range(layout.downs) for a in range(layout.across)]
        for axis in (0, 1):
            assert all(
                all(places[t][axis] == places[t ^ 1][axis] for t in range(first, first + 16))
                or all(places[t][axis] == places[t ^ 2][axis] for t in range(first, first + 16))
                for first in range(0, layout.threads, 16)
            )


@pytest.mark.skipif(nvrtc.location() is None, reason="no NVRTC")
def test_many_results_are_stored_sixteen_bytes_at_a_time() -> None:
    """With 64 and more results a thread NVRTC used to split the stores into single cells."""
    module, unit = kernel(text(128, 128)).analysed()
    made = build(module, unit, Options(multiples=sixteens("M", "N", "K")))
    assert made.ptx.count("st.global.v4.f32") == 2 * 16 and "st.global.f32" not in made.ptx


def test_sums_over_rows_keep_plain_layouts() -> None:
    """A row that is reduced is held by neighbouring lanes, so warps are no patches there."""
    source = """
kernel scores(A: tensor<f32>[64, 64], B: tensor<f32>[64, 64], C: tensor<f32>[64, 1]) {
  let product = dot(A[0 :+ 64, 0 :+ 64], B[0 :+ 64, 0 :+ 64])
  C[0 :+ 64, 0 :+ 1] = rowsum(product)
}
"""
    from phobos.lowering.decide import lower

    lowered = lower(kernel(source).analysed()[1].program)
    assert all(layout.patch == 0 for layout in lowered.layouts.all())
