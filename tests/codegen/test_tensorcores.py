"""Products on tensor cores by warpgroups, and loops that fetch for them: what they compute, on the host.

The host knows descriptors, swizzles, tensor maps and the places that bulk copies report to by the manual's words, not
by the emitter's; copies and products of warpgroups happen there as late as they may.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

from phobos.codegen import nvrtc
from phobos.codegen.emitted import Emitted
from phobos.codegen.facts import facts_of
from phobos.lowering.decide import lower
from phobos.lowering.options import SHARED_BYTES, Options
from phobos.runtime.cuda import driver
from phobos.runtime.kernel import kernel
from phobos.value import replace
from tests.codegen.compare import agree, emitted, read, sixteens, unit_of
from tests.codegen.fake_device import FakeDriver, HostArray

KNOWN = Options(multiples=sixteens("K", "M", "N"))


def gemm(
    rows: int = 64,
    columns: int = 32,
    depth: int = 32,
    *,
    dtype: str = "f16",
    launch: str = "128",
    transposed: bool = False,
    flags: str = "@tensorcore @dynshared",
) -> str:
    right, product = "K, N], C", f"dot(A[r :+ {rows}, k :+ {depth}], B[k :+ {depth}, c :+ {columns}])"
    if transposed:
        right, product = "N, K], C", f"dot_t(A[r :+ {rows}, k :+ {depth}], B[c :+ {columns}, k :+ {depth}])"
    return f"""
        {flags}
        @launch({launch})
        kernel gemm(A: tensor<{dtype}>[M, K], B: tensor<{dtype}>[{right}: tensor<f32>[M, N]) {{
          let r = ctx.block.y * {rows}
          let c = ctx.block.x * {columns}
          var acc: tile<f32>[{rows}, {columns}] = 0.0
          for k in range(0, K, {depth}) {{
            acc += {product}
          }}
          C[r :+ {rows}, c :+ {columns}] = acc
        }}
        """


def body(made: Emitted) -> str:
    return made.text[made.text.index("__global__") :]


SHAPES: list[dict[str, Any]] = [
    {"rows": 128, "columns": 64, "depth": 64, "launch": "256"}, {"columns": 96, "dtype": "bf16"},
    {"columns": 48, "depth": 16}, {"columns": 64, "launch": "256"}, {"rows": 128, "depth": 128},
    {"depth": 64, "transposed": True}, {"transposed": True, "launch": "256"},
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_whole_tiles_come_by_bulk_copies_to_warpgroups(shape: dict[str, Any]) -> None:
    sizes = {"M": shape.get("rows", 64), "N": shape.get("columns", 32), "K": shape.get("depth", 32) * 5}
    loose = 3e-2 if shape.get("dtype") == "bf16" else 5e-3
    made = agree(gemm(**shape), sizes, options=KNOWN, orders=(0, 3), tolerance=loose)
    assert "ph_bulk_copy(" in body(made) and "ph_group_begin" in body(made)
    assert "ph_copy_async" not in body(made)


@pytest.mark.parametrize("transposed", [False, True])
def test_ragged_edges_read_as_zero(transposed: bool) -> None:
    sizes = {"M": 80, "N": 48, "K": 112}
    made = agree(gemm(transposed=transposed), sizes, options=KNOWN, orders=(0, 5), tolerance=5e-3)
    assert "ph_bulk_copy(" in body(made)
    made = agree(gemm(transposed=transposed), {"M": 70, "N": 40, "K": 69}, orders=(5,), tolerance=5e-3)
    assert "ph_bulk_copy(" not in body(made) and "ph_group_begin" in body(made)


def test_starts_before_and_behind_a_tensor_read_as_zero() -> None:
    text = gemm().replace("A[r :+ 64, k :+ 32]", "A[r - 32 :+ 64, k - 16 :+ 32]")
    assert text != gemm()
    made = agree(text, {"M": 64, "N": 32, "K": 96}, options=KNOWN, orders=(0,), tolerance=5e-3, grid=(1, 2, 1))
    assert "ph_bulk_copy(" in body(made)


WITHOUT: list[tuple[str, dict[str, Any], str]] = [
    ("an extent is 0", {"maps": False}, ""),
    ("does not begin at a multiple of 16", {"vectors": False}, ""),
    ("lie one after another", {"pitched": ("B",)}, ""),
    ("lie whole multiples of 16", {"multiples": (("M", 16), ("K", 4), ("N", 4))}, ""),
    ("sm_80 has no bulk copies", {"arch": "sm_80"}, ""),
    ("a product is not computed by warpgroups", {}, "launch"),
    ("also stores to `A`", {}, "store"),
]


@pytest.mark.parametrize(("reason", "changed", "what"), WITHOUT, ids=[reason for reason, _, _ in WITHOUT])
def test_the_reason_against_bulk_copies_is_told_and_the_copies_are_not_made(
    reason: str, changed: dict[str, Any], what: str
) -> None:
    text = gemm(launch="96" if what == "launch" else "128")
    if what == "store":
        text = text.replace("C[r :+ 64", "A[0 :+ 1, 0 :+ 16] = 0.0\nC[r :+ 64")
    _, unit = unit_of(text)
    options = replace(KNOWN, **changed)
    facts = facts_of(lower(unit.program, options), lambda span: 1)
    (rounds,) = facts["rounds"]
    assert rounds["copies"] == "by all threads" and reason in rounds["reason"]
    assert "ph_bulk_copy(" not in body(emitted(text, options=options))


AGAINST_GROUPS: list[tuple[str, str, str]] = [
    ("sm_80 has no instructions", gemm(), "sm_80"),
    ("96 threads are no whole number", gemm(launch="96"), "sm_90a"),
    ("its rows are 32", gemm(rows=32), "sm_90a"),
    ("its columns are 24", gemm(columns=24), "sm_90a"),
    ("cannot be shared out", gemm(rows=64, columns=48, launch="256"), "sm_90a"),
]


@pytest.mark.parametrize(("reason", "text", "arch"), AGAINST_GROUPS, ids=[r for r, _, _ in AGAINST_GROUPS])
def test_the_reason_against_warpgroups_is_told_and_each_warp_multiplies(reason: str, text: str, arch: str) -> None:
    _, unit = unit_of(text)
    options = replace(KNOWN, arch=arch)
    (product,) = facts_of(lower(unit.program, options), lambda span: 1)["products"]
    assert product["unit"] == "mma" and reason in product["reason"]
    assert "ph_group_begin" not in body(emitted(text, options=options))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("transposed", [False, True])
def test_by_warps_the_panels_are_read_as_they_lie(arch: str, transposed: bool) -> None:
    shape = gemm(32, 48, 48, launch="96", transposed=transposed)
    sizes = {"M": 40, "N": 56, "K": 48 * 4 + 8}
    for options in (Options(arch=arch), Options(arch=arch, multiples=sixteens("K", "N"))):
        rounded = {n: -(-x // 16) * 16 if n in dict(options.multiples) else x for n, x in sizes.items()}
        made = agree(shape, rounded, options=options, orders=(3,), tolerance=5e-3)
        assert "ph_fragment_4" in body(made)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_halves_that_lie_anywhere_are_fetched_in_bunches(arch: str) -> None:
    """Rows of an odd number of them: no copy past the registers is so small, so several loads are under way."""
    shape = gemm(32, 48, 48, launch="96")
    sizes = {"M": 37, "N": 53, "K": 48 * 3 + 5}
    made = agree(shape, sizes, options=Options(arch=arch), orders=(0, 3), tolerance=5e-3)
    assert "? *next : ph_f16{}" in body(made) and "= *next;" in body(made)


def test_stages_fill_the_room_that_the_kernel_asks_for() -> None:
    def rounds(text: str) -> list[dict[str, Any]]:
        found = facts_of(lower(unit_of(text)[1].program, KNOWN), lambda span: 1)["rounds"]
        assert isinstance(found, list)
        return found

    (wide,) = rounds(gemm(128, 256, 64, launch="256"))
    assert wide["stages"] == 4 and wide["stages"] * wide["stage_bytes"] <= SHARED_BYTES["sm_90a"]
    (two,) = rounds(gemm(128, 128, 64, launch="256, 2"))
    assert two["stages"] == 3, "two CTAs shall fit on a multiprocessor"
    assert rounds(gemm(128, 256, 64, launch="256", flags="@tensorcore")) == [], "no two stages fit in 48 KiB"
    (narrow,) = rounds(gemm(64, 64, 64, flags="@tensorcore"))
    assert narrow["stages"] * narrow["stage_bytes"] <= 48 * 1024


def test_a_block_that_computes_tile_after_tile_opens_its_places_anew() -> None:
    made = agree(
        """
        @tensorcore @dynshared
        @launch(128)
        kernel gemm(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N]) {
          for r in range(0, M, 64) {
            var acc: tile<f32>[64, 32] = 0.0
            for k in range(0, K, 32) {
              acc += dot(A[r :+ 64, k :+ 32], B[k :+ 32, 0 :+ 32])
            }
            C[r :+ 64, 0 :+ 32] = acc
          }
        }
        """,
        {"M": 192, "N": 32, "K": 32 * 7},
        grid=(1, 1, 1),
        orders=(0, 1, 3),
        options=KNOWN,
        tolerance=5e-3,
    )
    assert "ph_bulk_close" in body(made)


ATTENTION = """
    @tensorcore @pipeline @dynshared
    @launch({threads})
    kernel attention(Q: tensor<{dtype}>[L, 32], K: tensor<{dtype}>[L, 32], V: tensor<{dtype}>[L, 32],
        O: tensor<f32>[L, 32], scale: f32) {{
      let r = ctx.block.x * {rows}
      {query}
      var top: tile<f32>[{rows}, 1] = -3.0e38
      var den: tile<f32>[{rows}, 1] = 0.0
      var acc: tile<f32>[{rows}, 32] = 0.0
      for t in range(0, L, 64) {{
        var s: tile<f32>[{rows}, 64] = dot_t(q, K[t :+ 64, 0 :+ 32])
        s = where(iota(64) + t < L, s * scale, -3.0e38)
        let higher = tmax(top, rowmax(s))
        let p = exp(s - higher)
        let shrink = exp(top - higher)
        den = den * shrink + rowsum(p)
        acc = acc * shrink + dot({weights}, V[t :+ 64, 0 :+ 32])
        top = higher
      }}
      O[r :+ {rows}, 0 :+ 32] = acc / den
    }}
    """


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("query", ["let q = Q[r :+ 64, 0 :+ 32]", "var q = Q[r :+ 64, 0 :+ 32]"])
@pytest.mark.parametrize(("dtype", "weights"), [("f16", "p"), ("bf16", "bf16(p)")])
def test_attention_keeps_its_weights_in_registers(arch: str, query: str, dtype: str, weights: str) -> None:
    text = ATTENTION.format(threads=128, rows=64, dtype=dtype, query=query, weights=weights)
    made = agree(
        text, {"L": 200}, {"scale": 0.25}, options=Options(arch=arch), orders=(0, 3),
        tolerance=3e-2 if dtype == "bf16" else 2e-3,
    )  # fmt: skip
    facts = facts_of(lower(unit_of(text)[1].program, Options(arch=arch)), lambda span: 1)
    assert [product["left_in_registers"] for product in facts["products"]] == [False, True]
    assert {t["home"] for t in facts["tiles"] if t["name"] in ("s", "p", "acc")} == {"registers"}
    (rounds,) = facts["rounds"]
    in_place = arch == "sm_80" and query.startswith("var")  # by warps, a tile is read where it is
    assert (rounds["staged_once_bytes"] > 0) != in_place
    loop = body(made)[body(made).index("auto fetch = ") :]
    assert ("ph_bulk_copy(" in loop) == (arch == "sm_90a")


def plain_attention(change: tuple[str, str] = ("", ""), threads: str = "128", rows: int = 64) -> str:
    query = f"let q = Q[r :+ {rows}, 0 :+ 32]"
    text = ATTENTION.format(threads=threads, rows=rows, dtype="f16", query=query, weights="p")
    assert change[0] in text
    return text.replace(*change, 1) if change[0] else text


def rounds_facts(text: str) -> dict[str, Any]:
    (found,) = facts_of(lower(unit_of(text)[1].program, Options()), lambda span: 1)["rounds"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(("length", "threads", "rows"), [(64, "128", 64), (200, "128", 64), (448, "256", 128)])
def test_the_first_product_of_the_next_round_is_at_work_beside_the_last_one(
    length: int, threads: str, rows: int
) -> None:
    text = plain_attention(threads=threads, rows=rows)
    made = agree(text, {"L": length}, {"scale": 0.25}, options=Options(), orders=(0, 5), grid=(1, 1, 1), tolerance=2e-3)
    assert rounds_facts(text)["next_beside_last"]
    loop = body(made)[body(made).index("for (long long t_") :]
    between = loop[loop.rindex("ph_multiply_f16_64x64(") : loop.rindex("_held_turned(")]
    assert "ph_group_end" in between and "wait" not in between
    assert loop.index("ph_group_wait<1>") < loop.index("ph_exp") < loop.index("ph_group_wait<0>")


ALONE = [
    (("acc = acc *", "den = den * 1.5\n        acc = acc *"), "128", ""),
    (("top = higher", "top = higher\n        acc = acc * 0.5"), "128", "works on after its last product"),
    (("top = higher", "top = higher\n        den = den + rowsum(p)"), "128", ""),
    (("var s:", "den = den * 0.5\n        var s:"), "128", "computes before its first product"),
    (("dot_t(q, K[", "dot_t(K[t :+ 64, 0 :+ 32], K["), "128", ""),
    (("= dot_t(", "= 0.25\n        s += dot_t("), "128", "does not begin its own sums"),
    (("", ""), "128, 8", "need about 108 registers"),
]


@pytest.mark.parametrize(("change", "threads", "why"), ALONE, ids=[case[0][1] or case[1] for case in ALONE])
def test_what_keeps_two_rounds_apart_is_told(change: tuple[str, str], threads: str, why: str) -> None:
    text = plain_attention(change, threads)
    facts = rounds_facts(text)
    assert facts["next_beside_last"] == (why == "") and why in facts["reason_against_beside"]
    if not why:
        agree(text, {"L": 136}, {"scale": 0.25}, options=Options(), orders=(5,), tolerance=4e-3)


@pytest.mark.parametrize(
    ("threads", "rows", "largest", "sum_"), [("128", 64, 4, 4), ("256", 128, 4, 2), ("256, 2", 128, 2, 1)]
)
def test_few_warps_reduce_a_row_in_several_chains(threads: str, rows: int, largest: int, sum_: int) -> None:
    """Two rows of a thread; sixteen and eight instructions of a scheduler's warps shall be at work."""
    made = body(emitted(plain_attention(threads=threads, rows=rows)))
    first, second = re.findall(r"float part\[(\d+)\];", made)
    assert (int(first), int(second)) == (2 * largest, 2 * sum_)


@pytest.mark.parametrize(("launch", "packed_first"), [("512", True), ("256, 2", True), ("256", False)])
def test_weights_are_rounded_whole_where_registers_are_scarce(launch: str, packed_first: bool) -> None:
    text = read("benchmarks/kernels/attention.ph").replace("D in [64, 128]", "D in [64]")
    text = text.replace("@launch(256)", f"@launch({launch})")
    text = text.replace("BM in [128]", "BM in [256]") if launch == "512" else text
    found = [product.packed_first for product in lower(unit_of(text)[1].program, KNOWN).products.values()]
    assert found == [False, packed_first]


def test_weights_that_a_warp_holds_only_in_part_go_through_shared_memory() -> None:
    """Two products of one tile, the second with its rows: eight warps over 32 rows cannot hold rows whole."""
    text = ATTENTION.format(threads=256, rows=32, dtype="f16", query="let q = Q[r :+ 32, 0 :+ 32]", weights="p")
    agree(text, {"L": 64}, {"scale": 0.25}, orders=(0, 3), tolerance=2e-3)
    facts = facts_of(lower(unit_of(text)[1].program, Options()), lambda span: 1)
    homes = {t["name"]: t["home"] for t in facts["tiles"]}
    held = [product["left_in_registers"] for product in facts["products"]]
    assert (homes["p"] == "registers") == held[1]


@pytest.mark.skipif(nvrtc.location() is None, reason="no NVRTC (pip install 'phobos-tools[nvrtc]')")
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_89", "sm_90a", "sm_100", "sm_120"])
@pytest.mark.parametrize("name", ["gemm", "attention"])
def test_the_benchmarks_kernels_compile_for_every_architecture(arch: str, name: str) -> None:
    text = read(f"benchmarks/kernels/{name}.ph")
    known = Options(arch=arch, multiples=sixteens("K", "M", "N", "R"))
    if arch == "sm_75" and name == "gemm":
        text = text.replace("BN in [256]", "BN in [128]")
    made = nvrtc.compile_text(emitted(text, options=known).text, "test.cu", arch)
    assert made.log == "", "the compiler has something to say"
    if arch == "sm_90a":
        assert "wgmma.mma_async" in made.ptx and "cp.async.bulk.tensor" in made.ptx
    elif arch != "sm_75":
        assert "mma.sync" in made.ptx and "cp.async.cg" in made.ptx


# --- launches ------------------------------------------------------------------------------------------------


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    if nvrtc.location() is None:
        pytest.skip("no NVRTC (pip install 'phobos-tools[nvrtc]')")
    yield FakeDriver(monkeypatch)


def arrays(m: int, k: int, n: int) -> tuple[numpy.ndarray, ...]:
    random = numpy.random.default_rng(3)
    a, b = ((random.random(shape) - 0.5).astype(numpy.float16) for shape in ((m, k), (k, n)))
    return a, b, numpy.full((m, n), 7.0, numpy.float32)


def test_a_launch_takes_the_maps_of_its_own_arrays(device: FakeDriver) -> None:
    made = kernel(gemm())
    for m, k, n in ((64, 96, 32), (80, 64, 48)):
        for _ in range(2):
            a, b, c = arrays(m, k, n)
            made(*(HostArray(x) for x in (a, b, c)))
            numpy.testing.assert_allclose(c, a.astype(float) @ b.astype(float), rtol=5e-3, atol=5e-3)
    a, b, c = arrays(64, 96, 32)
    plan = made.plan(*(HostArray(x) for x in (a, b, c)))
    assert any("`A` and `B`" in check.outcome for check in plan.checks if check.obligation == "bulk copies")


@pytest.mark.parametrize("schedule", ["flat", "persistent-interleaved"])
def test_maps_go_to_the_function_of_a_virtual_block(device: FakeDriver, schedule: str) -> None:
    made = kernel(gemm())
    a, b, c = arrays(192, 96, 80)
    made(*(HostArray(x) for x in (a, b, c)), schedule=schedule, l2_group=2)
    numpy.testing.assert_allclose(c, a.astype(float) @ b.astype(float), rtol=5e-3, atol=5e-3)
    assert "const ph_map& " in device.functions[-1].text and "ph_bulk_copy(" in device.functions[-1].text


def test_extents_that_no_map_can_hold_are_copied_by_all_threads(device: FakeDriver) -> None:
    made = kernel(gemm())
    a, b, c = arrays(64, 0, 32)
    made(*(HostArray(x) for x in (a, b, c)))
    assert not c.any(), "a sum over nothing"
    assert driver.MOST_MAPPED + 2**17 == 2**31
