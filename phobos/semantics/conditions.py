"""Boolean values of a program in one normal form: comparisons of polynomials, `and`, `or`, and the opaque.

`a < b`, `b > a`, `!(a >= b)` and `0 < b - a` are one condition. A condition that no polynomial can say (a float
comparison, a loaded flag) is `Opaque` and keyed by the place that computed it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Union

from phobos.semantics import ir
from phobos.semantics.poly import Poly
from phobos.value import value

MOST_COMPARISONS = 64  # in one condition: a larger one is opaque


@value
class Truth:
    value: bool


@value
class Compare:
    """`poly >= 0`, `poly == 0` or `poly != 0`."""

    op: str  # ge eq ne
    poly: Poly


@value
class All:
    """`size` counts the comparisons in it."""

    parts: tuple[Condition, ...]
    size: int


@value
class AnyOf:
    parts: tuple[Condition, ...]
    size: int


@value
class Opaque:
    """`key` is the same for two conditions that are the same value; `expression` is None where values merge."""

    key: tuple[object, ...]
    positive: bool
    expression: ir.Expression | None


Condition = Union[Truth, Compare, All, AnyOf, Opaque]

TRUE = Truth(True)
FALSE = Truth(False)


def at_least_zero(poly: Poly) -> Condition:
    constant = poly.constant
    if constant is not None:
        return TRUE if constant >= 0 else FALSE
    return Compare("ge", poly)


def compared(op: str, left: Poly, right: Poly) -> Condition:
    """The condition `left op right` of two integers."""
    match op:
        case "<":
            return at_least_zero(right - left - 1)
        case "<=":
            return at_least_zero(right - left)
        case ">":
            return at_least_zero(left - right - 1)
        case ">=":
            return at_least_zero(left - right)
    difference = left - right
    constant = difference.constant
    if constant is not None:
        return TRUE if (constant == 0) == (op == "==") else FALSE
    negated = -difference
    if repr(negated.key) < repr(difference.key):
        difference = negated
    return Compare("eq" if op == "==" else "ne", difference)


def negation(condition: Condition) -> Condition:
    match condition:
        case Truth(value=known):
            return FALSE if known else TRUE
        case Compare(op="ge", poly=poly):
            return at_least_zero(-poly - 1)
        case Compare(op=op, poly=poly):
            return Compare("ne" if op == "eq" else "eq", poly)
        case All(parts=parts):
            return any_of(*(negation(part) for part in parts))
        case AnyOf(parts=parts):
            return all_of(*(negation(part) for part in parts))
        case Opaque(key=key, positive=positive, expression=expression):
            return Opaque(key, not positive, expression)
    raise AssertionError(condition)


def all_of(*conditions: Condition) -> Condition:
    parts: list[Condition] = []
    for condition in conditions:
        if isinstance(condition, Truth):
            if not condition.value:
                return FALSE
        elif isinstance(condition, All):
            parts.extend(condition.parts)
        else:
            parts.append(condition)
    return parts[0] if len(parts) == 1 else All(tuple(parts), _size(parts)) if parts else TRUE


def any_of(*conditions: Condition) -> Condition:
    parts: list[Condition] = []
    for condition in conditions:
        if isinstance(condition, Truth):
            if condition.value:
                return TRUE
        elif isinstance(condition, AnyOf):
            parts.extend(condition.parts)
        else:
            parts.append(condition)
    return parts[0] if len(parts) == 1 else AnyOf(tuple(parts), _size(parts)) if parts else FALSE


def too_large(condition: Condition) -> bool:
    """Whether a condition is not to be looked into: what holds it twice would have no end."""
    return isinstance(condition, (All, AnyOf)) and condition.size > MOST_COMPARISONS


def _size(parts: Iterable[Condition]) -> int:
    return sum(part.size if isinstance(part, (All, AnyOf)) else 1 for part in parts)


def key_of(condition: Condition) -> tuple[object, ...]:
    """Equal for two conditions of one form."""
    match condition:
        case Truth(value=known):
            return ("truth", known)
        case Compare(op=op, poly=poly):
            return (op, poly.key)
        case All(parts=parts):
            return ("all", *(key_of(part) for part in parts))
        case AnyOf(parts=parts):
            return ("any", *(key_of(part) for part in parts))
        case Opaque(key=key, positive=positive):
            return ("opaque", key, positive)
    raise AssertionError(condition)


def consequences(condition: Condition) -> tuple[Poly, ...]:
    """Polynomials that are never negative where the condition holds."""
    match condition:
        case Compare(op="ge", poly=poly):
            return (poly,)
        case Compare(op="eq", poly=poly):
            return (poly, -poly)
        case All(parts=parts):
            return tuple(poly for part in parts for poly in consequences(part))
        case Truth(value=False):
            return (Poly.of(-1),)
    return ()


def differences(condition: Condition) -> tuple[Poly, ...]:
    """Polynomials that are never zero where the condition holds."""
    match condition:
        case Compare(op="ne", poly=poly):
            return (poly,)
        case All(parts=parts):
            return tuple(poly for part in parts for poly in differences(part))
    return ()


def opaques(condition: Condition) -> tuple[Opaque, ...]:
    """Every opaque condition in it."""
    match condition:
        case Opaque():
            return (condition,)
        case All(parts=parts) | AnyOf(parts=parts):
            return tuple(found for part in parts for found in opaques(part))
    return ()


def polys(condition: Condition) -> tuple[Poly, ...]:
    """Every polynomial in it."""
    match condition:
        case Compare(poly=poly):
            return (poly,)
        case All(parts=parts) | AnyOf(parts=parts):
            return tuple(found for part in parts for found in polys(part))
    return ()
