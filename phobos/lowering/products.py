"""How each product is computed: on which units, from where its operands are read, in how long steps of K.

Operands in global memory are staged in shared memory, a step of K at a time; tiles that are there already are
read in place. Each thread computes the part of the result that its layout owns. On tensor cores operands are staged
as f16, or as bf16 where both are, in panels (`panels.py`); a left operand that its warp holds in registers stays there.
"""

from __future__ import annotations

from phobos.language.scalars import scalar
from phobos.lowering import ops, walk
from phobos.lowering.layout import FRAGMENT_LANES, Layout
from phobos.lowering.layouts import Layouts
from phobos.lowering.panels import Panels, panels
from phobos.lowering.tensorcores import (
    BESIDE_ANOTHER,
    NO_SPLIT,
    NOT_ASKED,
    Against,
    against,
    against_warpgroups,
    is_for_warpgroups,
)
from phobos.semantics import ir
from phobos.semantics.program import Program
from phobos.value import replace, value

STEP = 16  # of K, where it is that long
FRAGMENT_STEPS = (64, 32, 16)  # of K on tensor cores; the last is what one instruction takes
STEP_BYTES = 32 * 1024  # that a product by itself stages at most, where a shorter step helps
TURN = 8  # K that a warp turns at once, beside four rows
ASIDE_REGISTERS = 44  # of a thread, besides the tiles that products hold
PAD = 4  # elements after each staged row, against bank conflicts


@value
class Operand:
    """`staged`: copied to shared memory step by step; else read where it is: a `variable` in shared memory or, where
    `held`, in the registers of the threads that multiply it. `fetched`: its loop stages it, not the product."""

    expression: ir.Expression
    staged: bool
    variable: ir.Variable | None
    dtype: str  # of its elements where they are
    held: bool = False
    fetched: bool = False


@value
class Product:
    """`dtype` is what operands are multiplied in, `total` what is accumulated: f32, f64 or i32.

    `unit` is "fma", "mma" or "wgmma"; `against` says why tensor cores are not used, `against_groups` why they are
    used warp by warp. Staged operands lie in rows of a pitch; those of tensor cores in panels.
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
    left_panels: Panels | None = None
    right_panels: Panels | None = None
    against_groups: str = ""
    packed_first: bool = False  # a held left operand is rounded whole before the first instruction, not step by step

    @property
    def staged_bytes(self) -> int:
        return self.left_bytes + self.right_bytes

    @property
    def reason(self) -> str:
        """Why not the best unit there is."""
        return self.against.why if self.against is not None else self.against_groups


def against_tensor_cores(program: Program, body: ir.Block) -> dict[ir.Statement, Against | None]:
    """For each product by itself why it runs on the ordinary units; None where tensor cores would take it."""
    asked = "tensorcore" in program.flags
    return {dot: against(dot) if asked else NOT_ASKED for dot in walk.statements(body) if isinstance(dot, ops.Dot)}


def products_of(
    body: ir.Block,
    layouts: Layouts,
    shared: dict[ir.Variable, str],
    reasons: dict[ir.Statement, Against | None],
    threads: int,
    arch: str,
) -> dict[ir.Statement, Product]:
    found: dict[ir.Statement, Product] = {}
    for statement in walk.statements(body):
        if isinstance(statement, ops.Dot):
            layout = layouts.of(statement)
            reason = reasons[statement]
            if layout.is_fragment and reason is None:
                groups = against_warpgroups(statement, threads, arch)
                if not groups and not is_for_warpgroups(layout):
                    groups = NO_SPLIT
                found[statement] = _on_tensor_cores(statement, layout, shared, arch, groups)
            else:
                found[statement] = _on_ordinary_units(statement, layout, shared, reason or BESIDE_ANOTHER)
    return found


def in_registers(products: dict[ir.Statement, Product], registers: int) -> dict[ir.Statement, Product]:
    """The products of warpgroups whose left operand is held, as it suits a thread that may have so many registers.

    Step by step, instructions are at work while the next ones' operand is still computed. But then what is rounded
    already lives beside what is not yet and beside the sums, and where that is too much, some of it goes to memory.
    """
    found = dict(products)
    for statement, product in products.items():
        if product.unit == "wgmma" and product.left.held:
            held = product.layout.row_registers * (product.length or 0) // FRAGMENT_LANES
            needed = product.layout.registers + held + ASIDE_REGISTERS
            found[statement] = replace(product, packed_first=needed > registers)
    return found


def padded(products: dict[ir.Statement, Product]) -> frozenset[ir.Variable]:
    """The shared tiles that tensor-core products read in place: their rows must start in different banks."""
    return frozenset(
        operand.variable
        for product in products.values()
        if product.unit == "mma"
        for operand in (product.left, product.right)
        if operand.variable is not None and not operand.held and not operand.staged
    )


def whole_rounds(dot: ops.Dot, product: Product, shared: dict[ir.Variable, str], arch: str) -> Product:
    """The same product with all of K staged at once, as a pipelined loop needs it."""
    assert product.length is not None
    if product.against is not None:
        return _on_ordinary_units(dot, product.layout, shared, product.against, product.length)
    return _on_tensor_cores(dot, product.layout, shared, arch, product.against_groups, whole=True)


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
    exact = layout.rows_exact and layout.columns_exact and layout.rows > 1  # one row is the same in every thread
    return exact and layout.row_group == 4 and layout.vector == 4


def _on_tensor_cores(
    dot: ops.Dot, layout: Layout, shared: dict[ir.Variable, str], arch: str, groups: str, whole: bool = False
) -> Product:
    left, right = _operand(dot.left, shared), _operand(dot.right, shared)
    both = {_read_as(dot.left), _read_as(dot.right)}
    dtype = "bf16" if both == {"bf16"} and arch != "sm_75" else "f16"
    unit = "mma" if groups else "wgmma"
    left, right = (_in_place(operand, dtype, unit) for operand in (left, right))
    known = _length(dot)
    fitting = [n for n in FRAGMENT_STEPS if (layout.rows + layout.columns) * n * 2 <= STEP_BYTES]
    step = next((n for n in fitting if known is None or known % n == 0), FRAGMENT_STEPS[-1])
    if known is not None and (whole or left.held or not (left.staged or right.staged)):
        step = known
    on_left = panels(layout.rows, step, step)
    on_right = (
        panels(layout.columns, step, step) if dot.transposed else panels(step, layout.columns, layout.warp_columns)
    )
    return Product(
        left, right, layout, dtype, "f32", known, step, 0, 0,
        left.staged * on_left.bytes, right.staged * on_right.bytes, unit, None,
        left_panels=on_left, right_panels=on_right, against_groups=groups,
    )  # fmt: skip


def _in_place(operand: Operand, dtype: str, unit: str) -> Operand:
    """A tile in shared memory is read in place where its cells, and how they lie, are what the instruction takes."""
    same = operand.dtype == dtype and not isinstance(operand.expression, ir.Convert)
    if operand.variable is None or operand.held or (same and unit == "mma"):
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
    if isinstance(inner, ir.VariableRef) and inner.variable.kind != "view":
        held = inner.variable not in shared
        return Operand(expression, False, inner.variable, inner.type.dtype, held)
    return Operand(expression, True, None, inner.type.dtype)
