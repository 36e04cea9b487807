"""Which `@autotune` constants are really the number of blocks.

In a persistent kernel a constant C that multiplies the block's own coefficient in a step (`range(b * T, N, C * T)`)
or beside a loop variable (`b + r * C`) must equal the launched grid. Found on polynomials, so that neither naming
nor the way of counting matters.
"""

from __future__ import annotations

from phobos.diagnostic import Span
from phobos.semantics import ir
from phobos.semantics.knowledge import divided
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program, fact
from phobos.semantics.values import Values, symbolic_values_of, walk
from phobos.value import value

BLOCK: Atom = ("block", 0)


@value
class GridConstant:
    """An `@autotune` constant that equals the launched grid (language.md 9).

    `stride_form`: `range(b * T, N, C * T)`: the launcher binds it to the resident count. Otherwise
    (`b + r * C`) its own value is the grid. `span` is where it is used so.
    """

    constant: ir.Constant
    stride_form: bool
    span: Span


def stride_of(poly: Poly, axis: int, rounds: Atom) -> Poly | None:
    """`S` where the value is `F * (b + S * round) + ...` for the block index `b` of an axis; None if it is not."""
    block: Atom = ("block", axis)
    if not poly.is_linear_in(block) or not poly.is_linear_in(rounds):
        return None
    factor, step = poly.coefficient(block), poly.coefficient(rounds)
    return divided(step, factor) if factor.terms and step.terms else None


@fact
def grid_constants_of(program: Program) -> tuple[GridConstant, ...]:
    """Each constant once, in the order of its first such use."""
    candidates = {c.name: c for c in program.constants.values() if c.attribute == "autotune"}
    if not program.is_persistent or not candidates:
        return ()
    values = symbolic_values_of(program)
    found: dict[str, GridConstant] = {}
    for loop in values.loops.values():
        if loop.value is None or loop.lo is None or BLOCK not in loop.lo.atoms:
            continue
        constant = _constant(stride_of(loop.value, 0, loop.variable), candidates)
        if constant is not None and constant.name not in found:
            place = loop.statement.step if isinstance(loop.statement, ir.For) else loop.statement.condition
            found[constant.name] = GridConstant(constant, True, _use(place, constant))
    for expression, poly in values.polys.items():
        if BLOCK not in poly.atoms or any(_starts_at_block(values, atom) for atom in poly.atoms):
            continue  # what walks from the block by its own step is not the block index: a pitch is no grid beside it
        for atom in poly.atoms:
            if values.loop_of(atom) is None:
                continue
            constant = _constant(stride_of(poly, 0, atom), candidates)
            if constant is not None and constant.name not in found:
                stride_form = _walks_from_block(values, atom)
                found[constant.name] = GridConstant(constant, stride_form, _use(expression, constant))
    return tuple(found.values())


def _starts_at_block(values: Values, atom: Atom) -> bool:
    loop = values.loop_of(atom)
    return loop is not None and loop.lo is not None and BLOCK in loop.lo.atoms


def _walks_from_block(values: Values, atom: Atom) -> bool:
    """A `while` that walks from the block is the `range` form in other words."""
    loop = values.loop_of(atom)
    return isinstance(getattr(loop, "statement", None), ir.While) and loop is not None and loop.lo is None


def _constant(stride: Poly | None, candidates: dict[str, ir.Constant]) -> ir.Constant | None:
    if stride is None or len(stride.terms) != 1:
        return None
    ((monomial, c),) = stride.terms.items()
    if c != 1 or len(monomial) != 1 or monomial[0][0] != "const":
        return None
    return candidates.get(str(monomial[0][1]))


def _use(expression: ir.Expression, constant: ir.Constant) -> Span:
    for inner in walk(expression):
        if isinstance(inner, ir.ConstantRef) and inner.constant.name == constant.name:
            return inner.span
    return expression.span
