"""Index expressions as polynomials while the program is being built: constant folding, lengths, equal extents.

A `let` is what it was bound to. A `var` is what it was last set to on a straight line, and a name of its own
where a loop or a branch may have changed it. Division and remainder fold where both sides are numbers, or where
every term divides; otherwise they are atoms keyed by their operands.
"""

from __future__ import annotations

from typing import cast

from phobos.language.scalars import INTEGERS, wrap
from phobos.semantics import ir
from phobos.semantics.build_context import Build
from phobos.semantics.poly import Monomial, Poly, too_deep, too_long

ZERO = Poly.of(0)
ONE = Poly.of(1)
MOST_TERMS = 64
"""A polynomial of more terms than this is taken as an atom, so that products of sums cannot grow without end."""


def of_key(key: object) -> Poly:
    return Poly(dict(cast("tuple[tuple[Monomial, int], ...]", key)))


def quotient(left: Poly, right: Poly) -> Poly:
    """`left / right`, truncated toward zero."""
    a, b = left.constant, right.constant
    if b == 1:
        return left
    if b is not None and b != 0:
        if a is not None:
            return Poly.of(truncated(a, b))
        if all(c % b == 0 for c in left.terms.values()):
            return Poly({m: c // b for m, c in left.terms.items()})
    return Poly.atom("div", left.key, right.key)


def remainder(left: Poly, right: Poly) -> Poly:
    """`left % right`, with the sign of `left`."""
    a, b = left.constant, right.constant
    if b is not None and b != 0:
        if a is not None:
            return Poly.of(a - truncated(a, b) * b)
        if all(c % b == 0 for c in left.terms.values()):
            return ZERO
    return Poly.atom("mod", left.key, right.key)


def truncated(a: int, b: int) -> int:
    whole = abs(a) // abs(b)
    return whole if (a < 0) == (b < 0) else -whole


def poly_of(b: Build, expression: ir.Expression) -> Poly:
    match expression:
        case ir.IntLiteral(value=literal):
            return Poly.of(literal)
        case ir.ConstantRef(constant=constant):
            return Poly.atom("const", constant.name)
        case ir.DimRef(dim=dim):
            return Poly.atom("dim", dim.name)
        case ir.ParamRef(param=param):
            return Poly.atom("param", param.name)
        case ir.BlockIndex(axis=axis):
            return Poly.atom("block", axis)
        case ir.GridExtent(axis=axis):
            return Poly.atom("blocks", axis)
        case ir.VariableRef(variable=variable):
            known = b.known.get(variable)
            if known is None:
                known = b.known[variable] = unknown(b, variable)
            return known
        case ir.UnaryOp(op=op, operand=operand):
            inner = b.poly(operand)
            if op == "-":
                return -inner
            number = inner.constant
            if op == "~" and number is not None:
                return Poly.of(~number)
        case ir.BinaryOp(op=op, left=left, right=right) if isinstance(expression.type, ir.ScalarT):
            return _binary(b, op, b.poly(left), b.poly(right))
        case ir.Convert(operand=operand):
            source, target = operand.type, expression.type
            if (
                isinstance(source, ir.ScalarT)
                and isinstance(target, ir.ScalarT)
                and source.dtype in INTEGERS
                and target.dtype in INTEGERS
            ):
                inner = b.poly(operand)
                if target.dtype in ("index", "i64") or target.dtype == source.dtype:
                    return inner
                number = inner.constant
                if number is not None:
                    return Poly.of(wrap(number, target.dtype))
                if not too_deep(inner):
                    return Poly.atom("wrap", target.dtype, inner.key)
    return Poly.atom("value", b.fresh())


def unknown(b: Build, variable: ir.Variable) -> Poly:
    """A name for what a variable is now."""
    return Poly.atom("loop" if variable.kind == "loop" else "var", b.fresh(), variable.name)


def _binary(b: Build, op: str, left: Poly, right: Poly) -> Poly:
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            if len(left.terms) * len(right.terms) <= MOST_TERMS and not too_long(left, right):
                return left * right
        case _ if too_deep(left, right):
            pass
        case "/":
            return quotient(left, right)
        case "%":
            return remainder(left, right)
        case _:
            x, y = left.constant, right.constant
            if x is not None and y is not None:
                folded = bits(op, x, y)
                if folded is not None:
                    return Poly.of(folded)
            if op in ("&", "|", "^", "<<", ">>"):
                return Poly.atom(op, left.key, right.key)
    return Poly.atom("value", b.fresh())


def bits(op: str, x: int, y: int) -> int | None:
    """A bitwise operation on 64-bit integers; None where it has no value (a shift out of range)."""
    match op:
        case "&":
            return x & y
        case "|":
            return x | y
        case "^":
            return x ^ y
        case "<<" if 0 <= y < 64:
            return wrap(x << y, "i64")
        case ">>" if 0 <= y < 64:
            return x >> y
    return None


def truth(b: Build, expression: ir.Expression, *, constants: bool) -> bool | None:
    """What a condition always is. With `constants` the numbers of this program count, else only what no choice of
    constants can change."""
    match expression:
        case ir.BoolLiteral(value=known):
            return known
        case ir.UnaryOp(op="!", operand=operand):
            inner = truth(b, operand, constants=constants)
            return None if inner is None else not inner
        case ir.ShortCircuit(op=op, left=left, right=right):
            deciding = op == "||"
            first, second = truth(b, left, constants=constants), truth(b, right, constants=constants)
            if first is deciding or second is deciding:
                return deciding
            return None if first is None or second is None else not deciding
        case ir.BinaryOp(op=op, left=left, right=right) if op in COMPARE and _index_like(left) and _index_like(right):
            difference = b.poly(left) - b.poly(right)
            number = (b.at_constants(difference) if constants else difference).constant
            return None if number is None else COMPARE[op](number)
        case ir.VariableRef(variable=variable):
            return b.truths.get(variable)
    return None


def _index_like(expression: ir.Expression) -> bool:
    return isinstance(expression.type, ir.ScalarT) and expression.type.dtype in INTEGERS


COMPARE = {
    "==": lambda d: d == 0,
    "!=": lambda d: d != 0,
    "<": lambda d: d < 0,
    "<=": lambda d: d <= 0,
    ">": lambda d: d > 0,
    ">=": lambda d: d >= 0,
}
