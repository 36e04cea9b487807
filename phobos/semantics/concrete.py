"""Polynomials and conditions at numbers: what a witness is made of.

An assignment gives each plain atom its number; division truncates toward zero as the language does. None means
that something in it has no number.
"""

from __future__ import annotations

from collections.abc import Mapping

from phobos.semantics.conditions import All, AnyOf, Compare, Condition, Opaque, Truth
from phobos.semantics.knowledge import poly_of_key
from phobos.semantics.poly import Atom, Poly

Assignment = Mapping[Atom, int]


def number(poly: Poly, at: Assignment) -> int | None:
    """The value of a polynomial."""
    total = 0
    for monomial, c in poly.terms.items():
        for atom in monomial:
            known = at.get(atom)
            if known is None:
                known = _opaque(atom, at)
                if known is None:
                    return None
            c *= known
        total += c
    return total


def _opaque(atom: Atom, at: Assignment) -> int | None:
    if atom[0] == "trips" and len(atom) == 4:
        lo, hi, step = (number(poly_of_key(key), at) for key in atom[1:])
        return None if lo is None or hi is None or not step or step < 0 else max(0, -(-(hi - lo) // step))
    if atom[0] not in ("div", "min", "max"):
        return None
    a, b = number(poly_of_key(atom[1]), at), number(poly_of_key(atom[2]), at)
    if a is None or b is None:
        return None
    match atom[0]:
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
    if b == 0:
        return None
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def truth(condition: Condition, at: Assignment, opaque: Mapping[tuple[object, ...], bool] = {}) -> bool | None:
    """Whether a condition holds; `opaque` gives what no polynomial can say, by key."""
    match condition:
        case Truth(value=known):
            return known
        case Compare(op=op, poly=poly):
            value = number(poly, at)
            if value is None:
                return None
            return value >= 0 if op == "ge" else (value == 0) == (op == "eq")
        case Opaque(key=key, positive=positive):
            known_ = opaque.get(key)
            return None if known_ is None else known_ == positive
        case All(parts=parts):
            unknown = False
            for part in parts:
                one = truth(part, at, opaque)
                if one is False:
                    return False
                unknown = unknown or one is None
            return None if unknown else True
        case AnyOf(parts=parts):
            unknown = False
            for part in parts:
                one = truth(part, at, opaque)
                if one is True:
                    return True
                unknown = unknown or one is None
            return None if unknown else False
    raise AssertionError(condition)


def plain_atoms(poly: Poly) -> frozenset[Atom]:
    """The atoms that need a number: those of dividends, divisors and extremes instead of the operation."""
    found: set[Atom] = set()
    stack = list(poly.atoms)
    while stack:
        atom = stack.pop()
        if atom[0] in ("div", "min", "max") or (atom[0] == "trips" and len(atom) == 4):
            stack.extend(inner for key in atom[1:] for inner in poly_of_key(key).atoms)
        else:
            found.add(atom)
    return frozenset(found)
