"""Phases and how their rounds relate."""

from __future__ import annotations

from phobos.semantics import ir
from phobos.semantics.flow import Flow, flow_of
from phobos.semantics.phases import phases_of
from phobos.semantics.values import statements_of

from .cases import line_in, program

HEAD = "kernel k(X: tensor<f32>[N], BAR: tensor<i32>[2], n: i32) {\n"


def lines(body: str) -> list[tuple[int | None, list[int]]]:
    """Per phase the line of the barrier it begins at and the lines of the stores in it."""
    text = HEAD + body + "\n}\n"
    shared = program(text)
    found = []
    for phase in phases_of(shared).phases:
        begins = line_in(text, phase.begins.span) if phase.begins is not None else None
        found.append((begins, sorted(line_in(text, s.span) for s in phase.statements if isinstance(s, ir.Store))))
    return found


def test_a_barrier_begins_a_phase() -> None:
    assert lines("X[0] = 1.0\ngrid_barrier(BAR)\nX[1] = 1.0") == [(None, [2]), (3, [4])]


def test_a_phase_wraps_around_its_loop() -> None:
    body = "for r in range(0, 4) {\nX[0] = 1.0\ngrid_barrier(BAR)\nX[1] = 1.0\n}\nX[2] = 1.0"
    assert lines(body) == [(None, [3]), (4, [3, 5, 7])]


def test_a_loop_that_may_not_run_lets_a_phase_pass() -> None:
    body = "X[0] = 1.0\nfor r in range(0, n) {\ngrid_barrier(BAR)\n}\nX[1] = 1.0"
    assert lines(body)[0] == (None, [2, 6])


def test_a_loop_that_runs_does_not() -> None:
    body = "X[0] = 1.0\nfor r in range(0, 3) {\ngrid_barrier(BAR)\n}\nX[1] = 1.0"
    assert lines(body)[0] == (None, [2])


def test_a_barrier_in_one_arm() -> None:
    body = "X[0] = 1.0\nif n == 1 {\ngrid_barrier(BAR)\n}\nX[1] = 1.0"
    assert lines(body) == [(None, [2, 6]), (4, [6])]


def test_barriers_in_both_arms_close_the_phase() -> None:
    body = "X[0] = 1.0\nif n == 1 {\ngrid_barrier(BAR)\n} else {\ngrid_barrier(BAR)\n}\nX[1] = 1.0"
    assert lines(body) == [(None, [2]), (4, [8]), (6, [8])]


def test_exits_lead_past_barriers() -> None:
    body = "for r in range(0, 4) {\nX[0] = 1.0\nif n == r {\nbreak\n}\ngrid_barrier(BAR)\n}\nX[1] = 1.0"
    assert lines(body)[0] == (None, [3, 9])
    body = "for r in range(0, 4) {\nX[0] = 1.0\nif n == r {\ncontinue\n}\ngrid_barrier(BAR)\n}\nX[1] = 1.0"
    assert lines(body)[0] == (None, [3, 9])
    body = "X[0] = 1.0\nif n == 1 {\nreturn\n}\ngrid_barrier(BAR)\nX[1] = 1.0"
    assert lines(body) == [(None, [2]), (6, [7])]


def test_functions_are_part_of_the_phase_and_return_from_themselves() -> None:
    text = """fn f(b: tensor<i32>[2], Y: tensor<f32>[M], n: i64) {
  if n == 1 {
    return
  }
  grid_barrier(b)
  Y[0] = 1.0
}
kernel k(X: tensor<f32>[N], BAR: tensor<i32>[2], n: i32) {
  f(BAR, X, n)
  X[1] = 1.0
}
"""
    shared = program(text)
    found = [sorted(line_in(text, s.span) for s in p.statements if isinstance(s, ir.Store)) for p in
             phases_of(shared).phases]
    assert found == [[10], [6, 10]]


def test_rounds_relate() -> None:
    shared = program(HEAD + "for r in range(0, 4) {\nX[0] = 1.0\ngrid_barrier(BAR)\nX[1] = 1.0\n}\n}\n")
    flow = flow_of(shared)
    first, second = (s for s in statements_of(shared.body) if isinstance(s, ir.Store))
    (barrier,) = flow.barriers
    relation = {s: [dict(w.rounds)[flow.loops[s][0]] for w in flow.reached(barrier)[s]] for s in (first, second)}
    assert relation == {first: ["next"], second: ["same"]}
    assert [way.wraps for way in flow.reached(barrier)[first]] == [True]
    assert [dict(w.rounds)[flow.loops[first][0]] for w in flow.reached(None)[first]] == ["first"]


def test_without_a_barrier_its_phases_are_one() -> None:
    shared = program(HEAD + "X[0] = 1.0\ngrid_barrier(BAR)\nX[1] = 1.0\n}\n")
    first, second = (s for s in statements_of(shared.body) if isinstance(s, ir.Store))
    (barrier,) = flow_of(shared).barriers
    assert not flow_of(shared).meet(first, second)
    assert Flow(shared, barrier).meet(first, second)


def test_dead_code_is_in_no_phase() -> None:
    assert lines("return\ngrid_barrier(BAR)\nX[0] = 1.0") == [(None, [])]
