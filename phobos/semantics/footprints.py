"""Which cells of which tensor a block reads and writes: every access of a kernel as an affine set.

Per axis `first + [0, length)`, first a polynomial of block index, loop variables and extents. What two blocks do to one
another with them is for `conflicts` to say.
"""

from __future__ import annotations

from typing import Literal

from phobos.semantics import ir
from phobos.semantics.cells import axes_of, cell_of
from phobos.semantics.conditions import polys
from phobos.semantics.grid import grid_of
from phobos.semantics.poly import Poly
from phobos.semantics.program import Program, fact
from phobos.semantics.values import (
    Context,
    expressions_in,
    statements_in,
    symbolic_values_of,
    values_of,
    walk,
    written_tensors,
)
from phobos.semantics.walking import loads_of
from phobos.value import value


@value
class Footprint:
    """One access: kind, and per axis (first, length) as polynomials, None where not affine.

    A view is read where it is used: `access` stands there, and `evaluated` at its `let`.
    """

    statement: ir.Statement
    access: ir.Access
    kind: Literal["load", "store", "atomic"]
    axes: tuple[tuple[Poly, Poly] | None, ...]
    evaluated: ir.Access


@fact
def footprints_of(program: Program) -> tuple[Footprint, ...]:
    """Every access to a tensor that is no barrier's, in the order of the text; a view at each of its uses."""
    values = values_of(program)
    barriers = {s.tensor.name for s in statements_in(program) if isinstance(s, ir.Barrier)}
    views: dict[ir.Variable, ir.Access] = {}
    found: list[Footprint] = []

    def note(
        statement: ir.Statement,
        access: ir.Access,
        kind: Literal["load", "store", "atomic"],
        use: ir.Expression | None = None,
    ) -> None:
        if isinstance(access.base, ir.Tensor) and access.base.name not in barriers:
            at = access if use is None else ir.Access(use.span, use.calls, access.base, access.subs)
            found.append(Footprint(statement, at, kind, axes_of(values, access), access))

    for statement, loads in loads_of(program).items():
        if statement in values.unreachable:
            continue
        for access in loads:
            note(statement, access, "load")
        for root in expressions_in(statement):
            for expression in walk(root):
                if isinstance(expression, ir.VariableRef) and expression.variable in views:
                    note(statement, views[expression.variable], "load", expression)
                elif isinstance(expression, ir.TensorRef):
                    note(statement, _whole(expression), "load")
        match statement:
            case ir.DefineView(variable=variable, access=access):
                views[variable] = access
            case ir.Store(access=access, op=op):
                if op is not None:
                    note(statement, access, "load")
                note(statement, access, "store")
            case ir.Atomic():
                note(statement, cell_of(statement), "atomic")
    return tuple(found)


def _whole(reference: ir.TensorRef) -> ir.Access:
    zero = ir.IntLiteral(reference.span, reference.calls, ir.ScalarT("index"), 0)
    subs = tuple(ir.SliceSub(zero, zero, None, True) for _ in reference.tensor.extents)
    return ir.Access(reference.span, reference.calls, reference.tensor, subs)


@fact
def depends_on_constants(program: Program) -> bool:
    """Whether accesses to a written tensor mix tiles of a constant with tiles of another size, or a condition that all
    blocks decide alike asks for a constant: code that the defaults never reach is then reached by others.

    Where every term of an axis grows with the same constants, other values of them change no verdict.
    """
    if not any(len(constant.choices) > 1 for constant in program.constants.values()):
        return False
    if any(len(one.constant.choices) > 1 for one in grid_of(program).constants if not one.stride_form):
        return True  # the grid is another with each of them
    values = symbolic_values_of(program)
    if any(_asks_for_a_constant(at) for at in set(values.contexts.values())):
        return True
    written = written_tensors(program)
    sizes: dict[tuple[str, int], set[tuple[object, ...]]] = {}
    for footprint in footprints_of(program):
        name = footprint.access.base.name
        if name not in written:
            continue
        for axis, pair in enumerate(axes_of(values, footprint.evaluated)):
            first, length = pair
            scales = sizes.setdefault((name, axis), set())
            for monomial in (*first.terms, *length.terms):
                if monomial or monomial in length.terms:
                    scales.add(tuple(atom for atom in monomial if atom[0] == "const"))
    return any(len(scales) > 1 for scales in sizes.values())


def _asks_for_a_constant(at: Context) -> bool:
    asked = () if at.condition is None else polys(at.condition)
    return any(poly.mentions("const") and not poly.mentions("block") for poly in asked)


__all__ = ["Footprint", "depends_on_constants", "footprints_of"]
