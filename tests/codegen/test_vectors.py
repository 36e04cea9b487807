"""How many elements of a row one instruction may move: where a row starts, how long rows are, and what is promised."""

from __future__ import annotations

import re

import pytest

from phobos.language.scalars import scalar
from phobos.lowering.decide import specialised
from phobos.lowering.options import Options
from phobos.lowering.vectors import elements_per_access
from phobos.semantics import ir
from phobos.semantics.module import analyse
from phobos.semantics.multiples import multiples_of
from phobos.semantics.values import values_of
from phobos.semantics.walking import statements_of
from tests.codegen import host
from tests.codegen.compare import Case, agree, emitted


@pytest.mark.parametrize(
    ("place", "tensor", "promise", "width"),
    [
        ("0 :+ 1, 0 :+ 64", "f32>[M, N]", "", 4),  # row 0 starts at the base, whatever the length of rows
        ("p :+ 1, 0 :+ 64", "f32>[M, N]", "", 1),
        ("p * 4 :+ 1, 0 :+ 64", "f32>[M, N]", "", 4),
        ("p * 2 :+ 1, 0 :+ 64", "f32>[M, N]", "", 2),
        ("0 :+ 4, 0 :+ 64", "f32>[M, N]", "", 1),  # and these rows do not
        ("0 :+ 4, 0 :+ 64", "f32>[M, N]", "@aligned(N = 64)", 4),
        ("0 :+ 4, 0 :+ 64", "f32>[M, N]", "@aligned(N = 2)", 2),
        ("p :+ 1, 0 :+ 64", "f32>[M, 64]", "", 4),
        ("p :+ 1, 0 :+ 64", "f32>[M, 66]", "", 2),
        ("p * 2 :+ 1, 0 :+ 64", "f32>[M, 66]", "", 4),
        ("0 :+ 1, 2 :+ 64", "f32>[M, N]", "", 2),
        ("0 :+ 1, 0 :+ 62", "f32>[M, N]", "", 2),
        ("0 :+ 1, 0 :+ 64", "f16>[M, N]", "", 8),
        ("0 :+ 1, 0 :+ 64", "f64>[M, N]", "", 2),
        ("p :+ 1, 0 :+ 1, 0 :+ 64", "f32>[M, 3, 64]", "", 4),
        ("p :+ 1, 0 :+ 1, 0 :+ 64", "f32>[M, N, 64]", "", 4),
        ("p :+ 1, 0 :+ 1, 0 :+ 64", "f32>[M, 64, N]", "", 4),
        ("p :+ 1, 0 :+ 1, 0 :+ 64", "f32>[M, 3, N]", "", 1),
    ],
)
def test_a_row_is_moved_in_pieces_that_divide_where_it_starts(
    place: str, tensor: str, promise: str, width: int
) -> None:
    text = f"{promise}\nkernel k(Y: tensor<{tensor}) {{\n  let p = ctx.block.x\n  Y[{place}] = 1.0\n}}\n"
    unit = analyse("k.ph", text).kernels["k"]
    assert [one.code for one in unit.problems if one.severity == "error"] == []
    (access,) = [s.access for s in unit.program.body.statements if isinstance(s, ir.Store)]
    assert elements_per_access(access, values_of(unit.program)) == width


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ({"N": 4096, "K": 32}, {"K": 16, "N": 16}),
        ({"N": 1000, "K": 1000}, {"K": 8, "N": 8}),
        ({"N": 1004, "K": 1004}, {"K": 4, "N": 4}),
        ({"N": 1001, "K": 1006}, {"K": 2}),
        ({"N": 0, "M": 1000, "R": 2002}, {"N": 16, "R": 2}),  # M is the length of no row
        ({"N": 8}, {"N": 8}),
    ],
)
def test_what_is_worth_knowing_of_an_extent(sizes: dict[str, int], found: dict[str, int]) -> None:
    text = """
    kernel k(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N], V: tensor<f32>[M],
        D: tensor<f64>[M, R]) {
      A[0, 0] = 1.0
    }
    """
    assert dict(multiples_of(analyse("k.ph", text).kernels["k"].program, sizes)) == found


@pytest.mark.skipif(host.COMPILER is None, reason="no C++ compiler (g++)")
@pytest.mark.parametrize(
    ("dtype", "unit"),
    [("f16", 8), ("bf16", 4), ("f16", 2), ("f32", 4), ("f32", 2), ("f64", 2), ("i8", 16), ("i8", 4), ("i32", 4)],
)
@pytest.mark.parametrize("count", [1, 3, 13])
def test_rows_of_whole_pieces_are_moved_in_pieces_up_to_a_ragged_end(dtype: str, unit: int, count: int) -> None:
    text = f"""
        @launch(64)
        kernel k(X: tensor<{dtype}>[M, N], Y: tensor<{dtype}>[M, N]) {{
          let r = ctx.block.x * 4
          for c in range(0, N, 96) {{
            Y[r :+ 4, c :+ 96] = X[r :+ 4, c :+ 96] + X[r :+ 4, c + {unit} :+ 96]
          }}
        }}
        """
    case = Case(text, {"M": 7, "N": unit * count})
    known = multiples_of(case.program, case.sizes)
    assert dict(known)["N"] == unit
    values = values_of(specialised(case.program, known))
    stores = [s for s in statements_of(case.program.body) if isinstance(s, ir.Store)]
    assert {elements_per_access(s.access, values) for s in stores} == {unit}
    made = agree(text, case.sizes, options=Options(multiples=known), orders=(0,))
    assert set(made.wide.values()) == {min(unit, 8) * scalar(dtype).bytes}


@pytest.mark.parametrize(("tile", "width"), [(4096, 4), (1024, 4), (512, 2), (256, 1), (64, 2), (32, 1)])
def test_a_short_row_that_is_reduced_is_shared_out_to_more_threads(tile: int, width: int) -> None:
    """Wide pieces would leave threads that hold what others hold; but a row stays within one warp where it can."""
    made = emitted(
        f"""
        @launch(256)
        kernel k(X: tensor<f32>[M, N], Y: tensor<f32>[M, N]) {{
          let b = ctx.block.x
          for t in range(0, N, {tile}) {{
            let x = X[b :+ 1, t :+ {tile}] * 2.0
            Y[b :+ 1, t :+ {tile}] = x - rowmax(x)
          }}
        }}
        """,
        options=Options(multiples=(("N", 16),)),
    ).text
    found = {int(n) for n in re.findall(r"ph_load<(\d)>\(", made)} or {1}
    assert found == {width}
