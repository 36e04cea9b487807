"""The complete step of a proof: is there any sum of the given polynomials, each times a product of atoms, that does it?

A linear program over the monomials: weights that are never negative such that the goal, less the weighted sum, has
only terms that are never negative. Solved in floating point by the criss-cross method and then checked exactly, so
that a rounding error can lose a proof and never make one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from phobos.semantics.poly import Monomial, Poly, product_of
from phobos.semantics.solve import Sign, relevant

MOST_COLUMNS = 90
MOST_PIVOTS = 120
DEGREE = 3
TINY = 1e-9

Terms = dict[Monomial, int]
Signed = Callable[[Monomial], bool]


def follows(goal: Poly, given: Sequence[Poly], nonneg: Sign) -> bool:
    """Whether `goal >= 0` is a combination of the given, as `solve.never_negative` means it."""
    signs: dict[Monomial, bool] = {}

    def signed(monomial: Monomial) -> bool:
        known = signs.get(monomial)
        if known is None:
            known = all(nonneg(atom) or monomial.count(atom) % 2 == 0 for atom in monomial)
            signs[monomial] = known
        return known

    columns = _products(goal.terms, [one.terms for one in relevant(goal, given)], signed)
    if not columns:
        return False
    rows: dict[Monomial, None] = dict.fromkeys(goal.terms)
    for column in columns:
        rows.update(dict.fromkeys(column))
    # A term of unknown sign must vanish: one row each way.
    equations: list[tuple[Monomial, int]] = []
    for monomial in rows:
        equations.append((monomial, 1))
        if not signed(monomial):
            equations.append((monomial, -1))
    table = [[float(way * column.get(monomial, 0)) for column in columns] for monomial, way in equations]
    rest = [float(way * goal.terms.get(monomial, 0)) for monomial, way in equations]
    weights = _feasible(table, rest)
    return weights is not None and _checked(goal.terms, columns, weights, signed)


def _products(goal: Terms, given: Sequence[Terms], signed: Signed) -> list[Terms]:
    """The given, each times every product that brings one of its terms onto a term in question."""
    wanted: list[Monomial] = list(goal)
    found: dict[tuple[int, Monomial], Terms] = {}
    for _ in range(2):
        fresh: dict[Monomial, None] = {}
        for index, terms in enumerate(given):
            for term in terms:
                for monomial in wanted:
                    factor = _over(monomial, term)
                    if factor is None or len(factor) > DEGREE or (index, factor) in found or not signed(factor):
                        continue
                    product = {product_of(m, factor): c for m, c in terms.items()} if factor else dict(terms)
                    found[index, factor] = product
                    fresh.update(dict.fromkeys(product))
                    if len(found) >= MOST_COLUMNS:
                        return list(found.values())
        wanted = [monomial for monomial in fresh if monomial not in goal and len(monomial) <= DEGREE]
    return list(found.values())


def _over(monomial: Monomial, term: Monomial) -> Monomial | None:
    if not term:
        return monomial
    if len(term) > len(monomial):
        return None
    rest = list(monomial)
    for atom in term:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def _feasible(table: list[list[float]], rest: list[float]) -> list[float] | None:
    """Weights >= 0 with `table @ weights <= rest`, or None."""
    height, width = len(table), len(table[0])
    basis = [width + row for row in range(height)]  # slack variables first
    outside = list(range(width))
    for _ in range(MOST_PIVOTS):
        row = min((r for r in range(height) if rest[r] < -TINY), key=lambda r: basis[r], default=-1)
        if row < 0:
            weights = [0.0] * width
            for r, variable in enumerate(basis):
                if variable < width:
                    weights[variable] = rest[r]
            return weights
        line = table[row]
        column = min((c for c in range(width) if line[c] < -TINY), key=lambda c: outside[c], default=-1)
        if column < 0:
            return None
        pivot = line[column]
        basis[row], outside[column] = outside[column], basis[row]
        for c in range(width):
            line[c] /= pivot
        line[column] = 1.0 / pivot
        rest[row] /= pivot
        for r in range(height):
            if r != row:
                other = table[r]
                factor = other[column]
                if factor:
                    for c in range(width):
                        if line[c] and c != column:
                            other[c] -= factor * line[c]
                    other[column] = -factor / pivot
                    rest[r] -= factor * rest[row]
    return None


def _checked(goal: Terms, columns: list[Terms], weights: list[float], signed: Signed) -> bool:
    """Whether the weights, as simple fractions, leave only terms that are never negative."""
    from fractions import Fraction  # decimal comes with it: only for those who get this far

    left: dict[Monomial, Fraction] = {m: Fraction(c) for m, c in goal.items()}
    for column, weight in zip(columns, weights):
        if weight > TINY:
            exact = Fraction(weight).limit_denominator(1 << 20)
            for monomial, c in column.items():
                left[monomial] = left.get(monomial, Fraction(0)) - exact * c
    return all(c == 0 or (c > 0 and signed(m)) for m, c in left.items())
