"""The complete step of a proof: is there any sum of the given polynomials, each times a product of atoms, that does it?

A linear program over the monomials: weights that are never negative such that the goal, less the weighted sum, has
only terms that are never negative. Solved in floating point by the criss-cross method and then checked exactly, so
that a rounding error can lose a proof and never make one.
"""

from __future__ import annotations

from collections.abc import Sequence

from phobos.semantics.poly import Atom, Poly, order_of
from phobos.semantics.solve import Sign, Signs, Term, Terms, numbers_of, quotient_of, relevant, remember

MOST_COLUMNS = 90
MOST_PIVOTS = 120
DEGREE = 3
TINY = 1e-9

Row = dict[int, float]  # what is not 0 of a line of the table
_known: dict[bytes, bool] = {}


def follows(goal: Poly, given: Sequence[Poly], nonneg: Sign) -> bool:
    """Whether `goal >= 0` is a combination of the given, as `solve.never_negative` means it."""
    usable = relevant(goal, given)
    atoms = sorted({atom for poly in (goal, *usable) for atom in poly.atoms}, key=order_of)
    numbers = {atom: number for number, atom in enumerate(atoms)}
    signs = Signs()
    signs.nonneg += map(nonneg, atoms)
    wanted = _numbered(goal, numbers)
    constraints = [_numbered(one, numbers) for one in usable]
    question = numbers_of(wanted, constraints, signs.nonneg)
    known = _known.get(question)
    if known is None:
        known = remember(_known, question, _combined(wanted, constraints, signs))
    return known


def _numbered(poly: Poly, numbers: dict[Atom, int]) -> Terms:
    return {tuple([numbers[atom] for atom in monomial]): c for monomial, c in poly.terms.items()}


def _combined(goal: Terms, given: list[Terms], signs: Signs) -> bool:
    columns = _products(goal, given, signs)
    if not columns:
        return False
    rows: dict[Term, Row] = {monomial: {} for monomial in goal}
    for number, column in enumerate(columns):
        for monomial, c in column.items():
            rows.setdefault(monomial, {})[number] = float(c)
    table: list[Row] = []
    rest: list[float] = []
    for monomial, row in rows.items():
        table.append(row)
        rest.append(float(goal.get(monomial, 0)))
        if not signs[monomial]:  # a term of unknown sign must vanish: one row each way
            table.append({number: -c for number, c in row.items()})
            rest.append(-rest[-1])
    weights = _feasible(table, rest, len(columns))
    return weights is not None and _checked(goal, columns, weights, signs)


def _products(goal: Terms, given: Sequence[Terms], signs: Signs) -> list[Terms]:
    """The given, each times every product that brings one of its terms onto a term in question."""
    wanted: list[Term] = list(goal)
    found: dict[tuple[int, Term], Terms] = {}
    for _ in range(2):
        fresh: dict[Term, None] = {}
        for index, terms in enumerate(given):
            for term in terms:
                for monomial in wanted:
                    factor = quotient_of(monomial, term)
                    if factor is None or len(factor) > DEGREE or (index, factor) in found or not signs[factor]:
                        continue
                    product = {tuple(sorted(m + factor)): c for m, c in terms.items()} if factor else dict(terms)
                    found[index, factor] = product
                    fresh.update(dict.fromkeys(product))
                    if len(found) >= MOST_COLUMNS:
                        return list(found.values())
        wanted = [monomial for monomial in fresh if monomial not in goal and len(monomial) <= DEGREE]
    return list(found.values())


def _feasible(table: list[Row], rest: list[float], width: int) -> list[float] | None:
    """Weights >= 0 with `table @ weights <= rest`, or None."""
    height = len(table)
    basis = [width + row for row in range(height)]  # slack variables first
    outside = list(range(width))
    for _ in range(MOST_PIVOTS):
        row = min((r for r in range(height) if rest[r] < -TINY), key=basis.__getitem__, default=-1)
        if row < 0:
            weights = [0.0] * width
            for r, variable in enumerate(basis):
                if variable < width:
                    weights[variable] = rest[r]
            return weights
        line = table[row]
        column = min((c for c, x in line.items() if x < -TINY), key=outside.__getitem__, default=-1)
        if column < 0:
            return None
        pivot = line.pop(column)
        basis[row], outside[column] = outside[column], basis[row]
        for c in line:
            line[c] /= pivot
        rest[row] /= pivot
        for r, other in enumerate(table):
            factor = other.get(column)
            if factor and r != row:
                for c, x in line.items():
                    value = other.get(c, 0.0) - factor * x
                    if value:
                        other[c] = value
                    else:
                        other.pop(c, None)
                other[column] = -factor / pivot
                rest[r] -= factor * rest[row]
        line[column] = 1.0 / pivot
    return None


def _checked(goal: Terms, columns: list[Terms], weights: list[float], signs: Signs) -> bool:
    """Whether the weights, as simple fractions, leave only terms that are never negative."""
    from fractions import Fraction  # decimal comes with it: only for those who get this far

    left: dict[Term, Fraction] = {m: Fraction(c) for m, c in goal.items()}
    for column, weight in zip(columns, weights):
        if weight > TINY:
            exact = Fraction(weight).limit_denominator(1 << 20)
            for monomial, c in column.items():
                left[monomial] = left.get(monomial, Fraction(0)) - exact * c
    return all(c == 0 or (c > 0 and signs[m]) for m, c in left.items())
