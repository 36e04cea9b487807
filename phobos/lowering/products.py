"""How each product is computed: on which units, from where its operands are read, in how long steps of K.

Operands in global memory are staged in shared memory, a step of K at a time; tiles that are there already are
read in place. Each thread computes the part of the result that its layout owns.
"""

from __future__ import annotations

from phobos.language.scalars import scalar
from phobos.lowering import ops, walk
from phobos.lowering.layout import Layout
from phobos.lowering.layouts import Layouts
from phobos.semantics import ir
from phobos.semantics.program import Program
from phobos.value import value

STEP = 16  # of K, where it is that long
PAD = 4  # elements after each staged row, against bank conflicts


@value
class Operand:
    """`staged`: copied to shared memory step by step; else read where it is (`variable`)."""

    expression: ir.Expression
    staged: bool
    variable: ir.Variable | None
    dtype: str  # of its elements where they are


@value
class Product:
    """`dtype` is what is multiplied and accumulated in: f32, f64 or i32.

    `unit` is "fma" or "mma"; `reason` says why tensor cores are not used where `@tensorcore` asks for them.
    """

    left: Operand
    right: Operand
    layout: Layout
    dtype: str
    length: int | None  # K, None where only known when run
    step: int
    left_pitch: int
    right_pitch: int
    staged_bytes: int
    unit: str
    reason: str


def products_of(
    program: Program, body: ir.Block, layouts: Layouts, shared: dict[ir.Variable, str], arch: str
) -> dict[ir.Statement, Product]:
    return {
        statement: _product(program, statement, layouts.of(statement), shared, arch)
        for statement in walk.statements(body)
        if isinstance(statement, ops.Dot)
    }


def _product(program: Program, dot: ops.Dot, layout: Layout, shared: dict[ir.Variable, str], arch: str) -> Product:
    left, right = _operand(dot.left, shared), _operand(dot.right, shared)
    assert isinstance(dot.result.type, ir.TileT) and isinstance(dot.left.type, ir.TileT)
    length = dot.left.type.shape[-1]
    known = length if isinstance(length, int) else None
    dtype = {"f16": "f32", "bf16": "f32", "i8": "i32", "u8": "i32"}.get(dot.result.type.dtype, dot.result.type.dtype)
    step = STEP if known is None else min(known, STEP)
    size = scalar(dtype).bytes
    left_pitch, right_pitch = layout.rows + PAD, layout.columns + PAD
    staged = (left.staged * left_pitch + right.staged * right_pitch) * step * size
    return Product(left, right, layout, dtype, known, step, left_pitch, right_pitch, staged, "fma", "")


def _operand(expression: ir.Expression, shared: dict[ir.Variable, str]) -> Operand:
    inner = expression
    while isinstance(inner, ir.Convert):
        inner = inner.operand
    assert isinstance(inner.type, ir.TileT)
    variable = inner.variable if isinstance(inner, ir.VariableRef) and inner.variable in shared else None
    return Operand(expression, variable is None, variable, inner.type.dtype)
