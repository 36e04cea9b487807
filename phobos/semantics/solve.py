"""Proofs about polynomials: is this one never negative, given that those are not?

Knows integers, nothing of programs. A proof writes the goal as a sum of given polynomials, each times something
that is never negative, plus terms that are never negative themselves. Products of atoms count as unknowns of
their own, so `T * (G - 1 - p)` follows from `G - 1 - p` wherever `T` is never negative. Sound and incomplete:
"no" means that no proof was found within the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from marshal import dumps
from math import gcd
from typing import TypeVar

from phobos.semantics.poly import Atom, Poly

Term = tuple[int, ...]  # a monomial over numbered atoms
Terms = dict[Term, int]
Sign = Callable[[Atom], bool]
Q = TypeVar("Q")

DEPTHS = (1, 2, 4, 6)
BUDGET = 96
REPAIRS = 20  # of numbers that may show that there is no proof
MOST_KNOWN = 8192  # answers that are kept, of about a kilobyte each
_known: dict[bytes, bool] = {}


def at_least_one(nonzero: Iterable[Poly], nonneg: Sign) -> list[Poly]:
    """What follows of polynomials that are never zero, where their terms show the sign: never negative, less 1."""
    return [signed - 1 for poly in nonzero for signed in (poly, -poly) if evident(signed, nonneg)]


def never_negative(goal: Poly, given: Iterable[Poly], nonneg: Sign, budget: int = BUDGET) -> bool:
    """Whether `goal >= 0` follows. `nonneg(atom)` says that an atom is never negative."""
    if evident(goal, nonneg):
        return True
    usable = relevant(goal, given)
    if not usable:
        return False
    numbered = _Numbered(nonneg)
    terms = _primitive(numbered.terms(goal))
    constraints = [numbered.terms(g) for g in usable]
    # A question is what it is once its atoms are numbers: the next kernel, or this one after an edit, asks it again.
    question = numbers_of(terms, constraints, numbered.signs.nonneg, budget)
    known = _known.get(question)
    if known is None:
        known = remember(_known, question, _found(terms, constraints, numbered.signs, budget))
    return known


def evident(goal: Poly, nonneg: Sign) -> bool:
    """Whether no term of the goal can be negative."""
    return all(c > 0 and all(nonneg(a) or m.count(a) % 2 == 0 for a in m) for m, c in goal.terms.items())


def _found(goal: Terms, given: list[Terms], signs: Signs, budget: int) -> bool:
    left = [budget, 0]
    for depth in DEPTHS:  # short proofs first: a wrong turn near the top must not eat the whole budget
        left[1] = 0
        if _search(goal, given, signs, depth, left, set()):
            return True
        if left[0] <= 0 or not left[1]:
            break  # everything was tried: a longer proof there is none
        if depth == DEPTHS[0] and _counterexample([_refusal(goal), *given], signs):
            break
    return False


def _refusal(goal: Terms) -> Terms:
    """What is never negative exactly where the goal is not."""
    refusal = {m: -c for m, c in goal.items()}
    refusal[()] = refusal.get((), 0) - 1
    return refusal


def _counterexample(wanted: list[Terms], signs: Signs) -> bool:
    """Whether numbers for the atoms come up at which nothing wanted is negative. None found says nothing."""
    numbers = [0] * len(signs.nonneg)
    forms = [[*terms.items()] for terms in wanted]
    for step in range(REPAIRS):
        for form in forms:
            value = 0
            for monomial, c in form:
                for n in monomial:
                    c *= numbers[n]
                value += c
            if value < 0:
                break
        else:
            return True
        up: list[tuple[int, int]] = []
        down: list[tuple[int, int]] = []
        for monomial, c in form:
            for n in monomial:
                slope = c
                for other in monomial:
                    if other != n:
                        slope *= numbers[other]
                if slope > 0:
                    up.append((n, numbers[n] - value // slope))
                elif slope < 0 and (numbers[n] > 0 or not signs.nonneg[n]):
                    least = numbers[n] - value // slope - 1
                    down.append((n, max(0, least) if signs.nonneg[n] else least))
                elif c > 0 and numbers[n] < 1:
                    up.append((n, 1))
        moves = up if up and step % 4 < 3 else down or up
        if not moves:
            return False
        n, numbers[n] = moves[step % len(moves)]
    return False


def numbers_of(goal: Terms, given: list[Terms], nonneg: list[bool], budget: int = 0) -> bytes:
    """All that an answer hangs on, the order of terms included, in few bytes: equal only for equal questions."""
    return dumps((*goal.items(), budget, *nonneg, *(tuple(terms.items()) for terms in given)), 2)


def remember(known: dict[Q, bool], question: Q, answer: bool) -> bool:
    """Keep an answer with those known, and only so many of them."""
    if len(known) >= MOST_KNOWN:
        for old in [*known][: MOST_KNOWN // 4]:  # the oldest
            known.pop(old, None)  # another thread may have taken it
    known[question] = answer
    return answer


class _Numbered:
    """Atoms as small numbers for the length of one search: an opaque atom holds whole polynomials, and hashing one
    in every step of a proof costs more than the proof. A monomial is a sorted tuple of numbers."""

    def __init__(self, nonneg: Sign) -> None:
        self.nonneg = nonneg
        self.numbers: dict[Atom, int] = {}
        self.signs = Signs()

    def terms(self, poly: Poly) -> Terms:
        numbers, out = self.numbers, {}
        for monomial, coefficient in poly.terms.items():
            row = []
            for atom in monomial:
                number = numbers.get(atom)
                if number is None:
                    number = numbers[atom] = len(numbers)
                    self.signs.nonneg.append(self.nonneg(atom))
                row.append(number)
            row.sort()
            out[tuple(row)] = coefficient
        return out


class Signs(dict[Term, bool]):
    """Whether a monomial is never negative, found out when first asked."""

    def __init__(self) -> None:
        super().__init__()
        self.nonneg: list[bool] = []

    def __missing__(self, monomial: Term) -> bool:
        known = self[monomial] = all(self.nonneg[n] or monomial.count(n) % 2 == 0 for n in monomial)
        return known


def contradictory(given: Sequence[Poly], nonneg: Sign, budget: int = BUDGET) -> bool:
    """Whether the given polynomials cannot all be non-negative at once."""
    for index, one in enumerate(given):
        others = [*given[:index], *given[index + 1 :]]
        if never_negative(-one - 1, others, nonneg, budget):
            return True
    return False


def relevant(goal: Poly, given: Iterable[Poly], most: int = 24) -> list[Poly]:
    """Those of `given` that share atoms with the goal, directly or through one another."""
    rest = [(g, g.atoms) for g in given]
    wanted = set(goal.atoms)
    picked: list[Poly] = []
    while rest and len(picked) < most:
        near = [pair for pair in rest if not pair[1].isdisjoint(wanted)] if wanted else rest
        if not near:
            break
        rest = [pair for pair in rest if pair[1].isdisjoint(wanted)] if wanted else []
        for g, atoms in near:
            picked.append(g)
            wanted |= atoms
    return picked[:most]


def tightened(constraint: Poly, divisor: Callable[[Atom], int]) -> Poly:
    """`constraint >= 0` as strong as integers allow: what its other terms are a multiple of rounds its constant."""
    constant = constraint.terms.get((), 0)
    if not constant:
        return constraint
    step = 0
    for monomial, c in constraint.terms.items():
        if monomial:
            for atom in monomial:
                c *= divisor(atom)
            step = gcd(step, c)
            if step == 1:
                return constraint
    if step > 1 and constant % step:
        return constraint - constant % step
    return constraint


def _primitive(terms: Terms) -> Terms:
    content = 0
    for c in terms.values():
        content = gcd(content, c)
        if content == 1:
            return terms
    return {m: c // content for m, c in terms.items()} if content > 1 else terms


def _search(
    goal: Terms,
    given: list[Terms],
    signs: Signs,
    depth: int,
    budget: list[int],
    seen: set[frozenset[tuple[Term, int]]],
) -> bool:
    """Whether the goal is proved in so many steps. `budget`: what is left of it, and 1 once depth cut something off."""
    bad = [(m, c) for m, c in goal.items() if c < 0 or not signs[m]]
    if not bad:
        return True
    if depth == 0 or budget[0] <= 0:
        return False
    mark = frozenset(goal.items())
    if mark in seen:
        return False
    seen.add(mark)
    # The term of the highest degree first: what cancels it may leave the lower ones repaired.
    bad.sort(key=lambda term: -len(term[0]))
    tried = 0
    for monomial, coefficient in bad:
        options = _options(monomial, coefficient, given, signs)
        if not options:
            if monomial and not any(_has_opposite(monomial, coefficient, g) for g in given):
                return False  # nothing given can ever bring the opposite of this term in
            continue
        budget[0] -= len(options)
        rests: list[tuple[int, int, int, Terms]] = []
        for constraint, a, quotient in options:
            rest = _cancelled(goal, coefficient, constraint, a, quotient)
            worse = sum(1 for m, c in rest.items() if c < 0 or not signs[m])
            if worse == 0:
                return True
            rests.append((worse, len(rest), len(rests), rest))
        if depth == 1:
            budget[1] = 1
        else:
            rests.sort(key=lambda option: option[:3])
            for *_, rest in rests:
                if _search(rest, given, signs, depth - 1, budget, seen):
                    return True
        tried += 1
        if tried == 2:
            return False
    return False


def _cancelled(goal: Terms, coefficient: int, constraint: Terms, a: int, quotient: Term) -> Terms:
    """The goal less that multiple of the constraint which cancels one term."""
    k, scale = abs(coefficient), abs(a)
    common = gcd(k, scale)
    k, scale = k // common, scale // common
    rest = {m: c * scale for m, c in goal.items()} if scale != 1 else dict(goal)
    for m, c in constraint.items():
        target = tuple(sorted(m + quotient)) if quotient else m
        value = rest.get(target, 0) - k * c
        if value:
            rest[target] = value
        else:
            rest.pop(target, None)
    return _primitive(rest)


def _has_opposite(monomial: Term, coefficient: int, constraint: Terms) -> bool:
    """Whether subtracting a multiple of the constraint could add the opposite of the term."""
    return any(
        (c > 0) == (coefficient > 0) and quotient_of(monomial, m) is not None for m, c in constraint.items()
    )


def _options(
    monomial: Term, coefficient: int, given: list[Terms], signs: Signs
) -> list[tuple[Terms, int, Term]]:
    found: list[tuple[int, int, Terms, int, Term]] = []
    for index, constraint in enumerate(given):
        for m, a in constraint.items():
            if (a > 0) != (coefficient > 0) or (not m and len(monomial) > 1):
                continue
            quotient = quotient_of(monomial, m)
            if quotient is not None and signs[quotient]:
                found.append((len(quotient), index, constraint, a, quotient))
    found.sort(key=lambda option: (option[0], len(option[2]), option[1]))
    return [(constraint, a, quotient) for _, _, constraint, a, quotient in found]


def quotient_of(monomial: Term, divisor: Term) -> Term | None:
    if not divisor:
        return monomial
    if len(divisor) > len(monomial):
        return None
    if divisor == monomial:
        return ()
    rest = list(monomial)
    for atom in divisor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)
