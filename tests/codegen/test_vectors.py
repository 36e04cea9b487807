"""How many elements of a row one instruction may move: where a row starts, how long rows are, and what is promised."""

from __future__ import annotations

import pytest

from phobos.lowering.vectors import elements_per_access
from phobos.semantics import ir
from phobos.semantics.module import analyse
from phobos.semantics.values import values_of


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
