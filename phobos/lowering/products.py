"""How each product is computed: on which units, from where its operands are read, in how long steps of K.

Operands in global memory are staged in shared memory, a step of K at a time; tiles that are there already are
read in place. Each thread computes the part of the result that its layout owns. On tensor cores (mma.sync, pieces
of 16 x 8 x 16) operands are staged as f16, or as bf16 where both are.
"""

from __future__ import annotations

from phobos.language.scalars import scalar
from phobos.lowering import ops, walk
from phobos.lowering.layout import Layout
from phobos.lowering.layouts import Layouts
from phobos.lowering.tensorcores import BESIDE_ANOTHER, NOT_ASKED, Against, against
from phobos.semantics import ir
from phobos.semantics.program import Program
from phobos.value import value

STEP = 16  # of K, where it is that long
FRAGMENT_STEP, FRAGMENT_DEPTH = 32, 16  # of K on tensor cores, and of one instruction
TURN = 8  # K that a warp turns at once, beside four rows
PAD = 4  # elements after each staged row, against bank conflicts
FRAGMENT_PAD = 8


@value
class Operand:
    """`staged`: copied to shared memory step by step; else read where it is (`variable`)."""

    expression: ir.Expression
    staged: bool
    variable: ir.Variable | None
    dtype: str  # of its elements where they are


@value
class Product:
    """`dtype` is what operands are multiplied in, `total` what is accumulated: f32, f64 or i32.

    `unit` is "fma" or "mma"; `against` says why tensor cores are not used.
    """

    left: Operand
    right: Operand
    layout: Layout
    dtype: str
    total: str
    length: int | None  # K, None where only known when run
    step: int
    left_pitch: int
    right_pitch: int
    left_bytes: int
    right_bytes: int
    unit: str
    against: Against | None
    stages: int = 1  # buffers for the operands; more than one where its loop is pipelined
    turned: bool = False  # the left operand is staged with K down its columns: a thread's rows are neighbours

    @property
    def staged_bytes(self) -> int:
        return self.left_bytes + self.right_bytes

    @property
    def reason(self) -> str:
        return self.against.why if self.against is not None else ""


def against_tensor_cores(program: Program, body: ir.Block) -> dict[ir.Statement, Against | None]:
    """For each product by itself why it runs on the ordinary units; None where tensor cores would take it."""
    asked = "tensorcore" in program.flags
    return {dot: against(dot) if asked else NOT_ASKED for dot in walk.statements(body) if isinstance(dot, ops.Dot)}


def products_of(
    body: ir.Block,
    layouts: Layouts,
    shared: dict[ir.Variable, str],
    reasons: dict[ir.Statement, Against | None],
    arch: str,
) -> dict[ir.Statement, Product]:
    found: dict[ir.Statement, Product] = {}
    for statement in walk.statements(body):
        if isinstance(statement, ops.Dot):
            layout = layouts.of(statement)
            reason = reasons[statement]
            if layout.is_fragment and reason is None:
                found[statement] = _on_tensor_cores(statement, layout, shared, arch)
            else:
                found[statement] = _on_ordinary_units(statement, layout, shared, reason or BESIDE_ANOTHER)
    return found


def padded(products: dict[ir.Statement, Product]) -> frozenset[ir.Variable]:
    """The shared tiles that tensor-core products read in place: their rows must start in different banks."""
    return frozenset(
        operand.variable
        for product in products.values()
        if product.unit == "mma"
        for operand in (product.left, product.right)
        if operand.variable is not None
    )


def whole_rounds(dot: ops.Dot, product: Product, shared: dict[ir.Variable, str], arch: str) -> Product:
    """The same product with all of K staged at once, as a pipelined loop needs it."""
    assert product.length is not None
    if product.against is not None:
        return _on_ordinary_units(dot, product.layout, shared, product.against, product.length)
    return _on_tensor_cores(dot, product.layout, shared, arch, whole=True)


def _on_ordinary_units(
    dot: ops.Dot, layout: Layout, shared: dict[ir.Variable, str], reason: Against, longest: int = STEP
) -> Product:
    left, right = _operand(dot.left, shared), _operand(dot.right, shared)
    known = _length(dot)
    assert isinstance(dot.result.type, ir.TileT)
    dtype = {"f16": "f32", "bf16": "f32", "i8": "i32", "u8": "i32"}.get(dot.result.type.dtype, dot.result.type.dtype)
    step = STEP if known is None else min(known, longest)
    size = scalar(dtype).bytes
    turned = left.staged and right.staged and step % TURN == 0 and _is_even(layout)
    left_pitch = (layout.rows if turned else step) + PAD
    right_pitch = layout.columns + (PAD if dot.transposed or not turned else 0)
    left_cells = (step if turned else layout.rows) * left_pitch
    return Product(
        left, right, layout, dtype, dtype, known, step, left_pitch, right_pitch,
        _rounded(left.staged * left_cells * size), _rounded(right.staged * right_pitch * step * size),
        "fma", reason, turned=turned,
    )  # fmt: skip


def _is_even(layout: Layout) -> bool:
    """Every thread has whole groups of four rows and of four columns."""
    return layout.rows_exact and layout.columns_exact and layout.row_group == 4 and layout.vector == 4


def _on_tensor_cores(
    dot: ops.Dot, layout: Layout, shared: dict[ir.Variable, str], arch: str, whole: bool = False
) -> Product:
    left, right = _operand(dot.left, shared), _operand(dot.right, shared)
    both = {_read_as(dot.left), _read_as(dot.right)}
    dtype = "bf16" if both == {"bf16"} and arch != "sm_75" else "f16"
    left, right = (_in_place(operand, dtype) for operand in (left, right))
    known = _length(dot)
    step = FRAGMENT_STEP if known is None or known % FRAGMENT_STEP == 0 else FRAGMENT_DEPTH
    if known is not None and (whole or known == 2 * FRAGMENT_STEP):
        step = known
    if not left.staged and not right.staged:
        assert known is not None
        step = known
    left_pitch = step + FRAGMENT_PAD
    right_pitch = (step if dot.transposed else layout.columns) + FRAGMENT_PAD
    right_rows = layout.columns if dot.transposed else step
    return Product(
        left, right, layout, dtype, "f32", known, step, left_pitch, right_pitch,
        _rounded(left.staged * layout.rows * left_pitch * 2), _rounded(right.staged * right_rows * right_pitch * 2),
        "mma", None,
    )  # fmt: skip


def _in_place(operand: Operand, dtype: str) -> Operand:
    """A tile in shared memory is read in place where its cells are what the instruction takes."""
    if operand.variable is None or (operand.dtype == dtype and not isinstance(operand.expression, ir.Convert)):
        return operand
    return Operand(operand.expression, True, operand.variable, operand.dtype)


def _read_as(expression: ir.Expression) -> str:
    assert isinstance(expression.type, ir.TileT)
    return expression.type.dtype


def _length(dot: ops.Dot) -> int | None:
    assert isinstance(dot.left.type, ir.TileT)
    length = dot.left.type.shape[-1]
    return length if isinstance(length, int) else None


def _rounded(size: int) -> int:
    return -(-size // 16) * 16


def _operand(expression: ir.Expression, shared: dict[ir.Variable, str]) -> Operand:
    inner = expression
    while isinstance(inner, ir.Convert):
        inner = inner.operand
    assert isinstance(inner.type, ir.TileT)
    variable = inner.variable if isinstance(inner, ir.VariableRef) and inner.variable in shared else None
    return Operand(expression, variable is None, variable, inner.type.dtype)
