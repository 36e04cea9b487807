"""Proofs: what follows, what does not, and that neither step ever proves a falsehood."""

from __future__ import annotations

import random

import pytest

from phobos.semantics.combine import follows
from phobos.semantics.concrete import number, truth
from phobos.semantics.conditions import FALSE, TRUE, all_of, any_of, compared, key_of, negation
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.solve import contradictory, never_negative, tightened

N, P, Q, G, R, S, T = (Poly.atom(name) for name in "NPQGRST")


def yes(atom: Atom) -> bool:
    return True


@pytest.mark.parametrize(
    ("goal", "given"),
    [
        (N * 2 + 3, []),
        (N - P, [N - P - 1]),
        (N - 3, [N - P, P - 4]),
        (G * T - P * T, [G - 1 - P]),
        (P - Q + G * (R - S) - 1, [G - 1 - Q, R - S - 1]),
        (G * R - R, [G - 1]),
        (N * 3 - 3, [N - 1]),
        (P * 64 - Q * 64 + G * R * 64 - G * S * 64 + T * 8 - N * 8 - 8, [G - 1 - Q, R - S - 1, T - N - 1]),
    ],
)
def test_what_follows(goal: Poly, given: list[Poly]) -> None:
    assert never_negative(goal, given, yes)
    assert follows(goal, given, yes) or not given


@pytest.mark.parametrize(
    ("goal", "given"),
    [
        (N - 1, []),
        (N - P, [P - N]),
        (N - P - 1, [N - P]),
        (G * T - P * T - 1, [G - 1 - P]),
        (P - Q + G * (R - S) - 1, [G - Q, R - S - 1]),
    ],
)
def test_what_does_not(goal: Poly, given: list[Poly]) -> None:
    assert not never_negative(goal, given, yes, 5000)
    assert not follows(goal, given, yes)


def test_an_atom_of_unknown_sign_is_not_multiplied_with() -> None:
    def sign(atom: Atom) -> bool:
        return atom != ("T",)

    assert not never_negative(G * T - P * T, [G - 1 - P], sign)
    assert not follows(G * T - P * T, [G - 1 - P], sign)
    assert never_negative(T * T, [], sign)


def test_divisibility_tightens() -> None:
    bound = tightened(N - P * 64 - 1, lambda atom: 64 if atom == ("N",) else 1)
    assert bound == N - P * 64 - 64
    assert tightened(N - P * 64 - 1, lambda atom: 1) == N - P * 64 - 1


def test_contradictions() -> None:
    assert contradictory([P - 5, Poly.of(3) - P], yes)
    assert not contradictory([P - 3, Poly.of(3) - P], yes)


def test_no_proof_of_what_some_numbers_refute() -> None:
    rng = random.Random(7)
    atoms = [("a",), ("b",), ("c",)]
    proved = 0

    def random_poly() -> Poly:
        terms = {(): rng.randint(-4, 4)}
        for _ in range(rng.randint(1, 3)):
            monomial = tuple(sorted(rng.choices(atoms, k=rng.choice([1, 1, 2])), key=repr))
            terms[monomial] = rng.randint(-3, 3)
        return Poly(terms)

    points = [{a: rng.randint(0, 6) for a in atoms} for _ in range(150)]
    for _ in range(1500):
        goal, given = random_poly(), [random_poly() for _ in range(3)]
        allowed = [at for at in points if all((number(g, at) or 0) >= 0 for g in given)]
        refuted = any((number(goal, at) or 0) < 0 for at in allowed)
        for answer in (never_negative(goal, given, yes), follows(goal, given, yes)):
            assert not (answer and refuted), (goal, given)
            proved += answer
    assert proved > 100  # the question was not always too hard


def test_conditions_have_one_form() -> None:
    less = compared("<", P, N)
    for same in (compared(">", N, P), negation(compared(">=", P, N)), compared("<=", P + 1, N)):
        assert key_of(same) == key_of(less)
    assert key_of(compared("==", P, N)) == key_of(compared("==", N, P))
    assert compared("<", P, P) is FALSE and compared("==", P + 1 - 1, P) is TRUE
    assert key_of(negation(negation(all_of(less, compared("==", P, N))))) == key_of(
        all_of(less, compared("==", P, N))
    )
    assert any_of(less, TRUE) is TRUE and all_of(less, FALSE) is FALSE


def test_conditions_at_numbers() -> None:
    condition = any_of(all_of(compared("<", P, N), compared("!=", P, Poly.of(0))), compared("==", G, Poly.of(9)))
    assert truth(condition, {("P",): 1, ("N",): 2, ("G",): 0}) is True
    assert truth(condition, {("P",): 0, ("N",): 2, ("G",): 0}) is False
    assert truth(condition, {("P",): 1, ("N",): 2}) is True
    assert truth(condition, {("P",): 0, ("N",): 2}) is None
