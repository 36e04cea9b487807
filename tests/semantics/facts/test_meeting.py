"""Numbers at which two blocks meet: what is found holds, and finding them changes no verdict."""

from __future__ import annotations

import pytest

from phobos.semantics.conflicts import conflicts_of
from phobos.semantics.knowledge import Knowledge
from phobos.semantics.meeting import Numbers
from phobos.semantics.poly import Poly
from phobos.semantics.twoblocks import Pair
from tests.semantics.facts.cases import Case, cases, program

PROMISED = "@autotune(T in [64])\n@aligned(N = T)\nkernel k(A: tensor<f32>[N], B: tensor<f32>[N]) { A[0] = B[0] }"
N, P, Q, S = Poly.atom("dim", "N"), Poly.atom("block", 0), Poly.atom("round", 0), Poly.atom("param", "s")
HALF = Poly.atom("div", N.key, Poly.of(2).key)


def exist(*polys: Poly, nonzero: Poly | None = None) -> bool:
    numbers = Numbers(Knowledge(program(PROMISED)))
    numbers.want(polys)
    numbers.want([] if nonzero is None else [nonzero], nonzero=True)
    return numbers.exist([])


@pytest.mark.parametrize(
    ("yes", "no"),
    [
        ([Q - P - 1, P - 2], [P - Q - 1, Q - P - 1]),
        ([-S - 1], [-Q - 1]),  # a parameter may be negative, a round not
        ([128 - N, N - 100], [127 - N, N - 65]),  # a promised extent is a multiple
        ([HALF - 32, 64 - N, N - 1], [HALF - 33, 64 - N]),  # a quotient is what its operands make it
    ],
)
def test_what_can_be(yes: list[Poly], no: list[Poly]) -> None:
    assert exist(*yes)
    assert not exist(*no)


def test_what_must_not_be_zero() -> None:
    assert exist(S * -1, S + 1, nonzero=S)
    assert not exist(S * -1, S, nonzero=S)


@pytest.mark.parametrize("case", cases("conflicts.md"), ids=lambda case: case.name)
def test_a_meeting_only_saves_a_search_for_a_proof(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> list[tuple[object, ...]]:
        kernel = program(case.text)
        kernel._facts.clear()  # a program is kept from one test to the next, with what is known of it
        return [(c.kind, c.first.access.span, c.second.access.span, c.certain) for c in conflicts_of(kernel)]

    quick = told()
    monkeypatch.setattr(Pair, "_meet", lambda pair: False)
    assert quick == told()
