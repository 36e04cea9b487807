"""Every single step of the analyses is needed: without it, some kernel is blamed wrongly or gets away.

`STEPS` switches one step off each; `SHOWN` names for each a kernel, a seed of the generator or, where the first two
thousand never show it, a text, on which the whole analysis agrees with the reference runtime and the one without
that step does not. What happens is judged with every step in place: only the checker is broken. No second look is
taken: these kernels are known, and larger launches of each would be most of the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from phobos.semantics import (
    apart,
    between,
    conflicts,
    divergences,
    evaluator,
    expression_values,
    flow,
    grid,
    grid_constants,
    groups,
    ir,
    knowledge,
    levels,
    rehearsed_launch,
    traces,
    twoblocks,
    uniformity,
    witness,
)
from phobos.semantics import module as modules
from phobos.semantics.cells import Cells
from phobos.semantics.conditions import Truth
from phobos.semantics.expression_levels import Binding
from phobos.semantics.poly import Poly
from tests.truth import compare
from tests.truth.compare import Report, checked, told
from tests.truth.generator import Sample, generate
from tests.truth.judge import Verdict, judge

Patch = tuple[object, str, object]
analysis, walk, compared, pair = uniformity.Uniformity, flow._Walk, groups.Groups, twoblocks.Pair


# --- the steps, and what is left where one is not taken ------------------------------------------------


def _first_only(self, statement, variable, variation):
    if (statement, variable) not in self._heads:
        self._heads[statement, variable] = Binding(variation)
        self.changed = True


def _no_cause(self, statement, env, head, assigned, trips, breaks, whole=analysis._behind):
    unsplit = [uniformity._Left(left.statement, left.env, None) for left in breaks]
    whole(self, statement, env, head, assigned, None, unsplit)


def _no_next_round(self, statement, at, whole=walk._round):
    if at.rounds[-1][1] in (flow.NEXT, flow.LATER):
        return frozenset({"fall"})
    return whole(self, statement, at)


def _no_inlining(self, statement, env, splits, whole=analysis._statement):
    return (True, []) if isinstance(statement, ir.Inline) else whole(self, statement, env, splits)


def _leaves_lost(self, statement, env, splits, whole=analysis._loop):
    whole(self, statement, env, splits)
    return []


def _this_round_only(self, statement, env, splits, whole=analysis._loop):
    self._late.pop(statement, None)
    return whole(self, statement, env, splits)


def _apart_for_good(self, statement, env, splits, whole=analysis._if):
    falls, left = whole(self, statement, env, splits)
    decided = self.decides[statement]
    if decided.level > levels.Level.UNIFORM:
        split = divergences.Split("exit", statement, statement.keyword, statement.calls, decided, statement)
        left = [*left, split]
    return falls, left


def _boundless(self, group, reach, whole=compared.cells):
    cells = whole(self, group, reach)
    if cells is None:
        return None
    return Cells(cells.axes, tuple(Poly.of(1 << 40) for _ in cells.extents), cells.context, cells.reach)


def _unguarded(self, group, reach, whole=compared.cells):
    cells = whole(self, group, reach)
    if cells is None:
        return None
    at = cells.context
    while at is not None and at.condition is not None:
        at = at.parent
    return Cells(cells.axes, cells.extents, at or self.values.root, cells.reach)


def _bounds_vary(self, statement, env):
    variation = levels.CONSTANT
    for bound in (statement.lo, statement.hi, statement.step):
        variation = levels.join(variation, self.of(bound, env))
    return variation


def _through_barriers(self, statement, at, whole=walk._statement):
    if isinstance(statement, ir.Barrier):
        return frozenset({"fall"}), (at,)
    return whole(self, statement, at)


def _path_that_went_on(self, env, falls, exits):
    if not falls and exits:
        env.clear()
        env.update(exits[0].env)
    return falls or bool(exits)


def _all_alive(self, whole=evaluator.Evaluator.run):
    whole(self)
    self.unreachable.clear()


def _any_sign(goal, given, nonneg, budget=96):
    return bool(goal.terms)


def _right_side_only(*parts):
    return parts[-1] if parts else Truth(False)


def _as_arithmetic_says(self, settings, counts, data):
    return True


def _four_blocks(use, settings):
    return 4


STEPS: dict[str, tuple[Patch, ...]] = {
    "values come around a loop's back edge": ((analysis, "_join_head", _first_only),),
    "what is assigned under a varying condition varies": (
        (analysis, "_assigned_under", lambda self, variable, why, one, other: levels.join(one, other)),
    ),
    "what a loop assigns varies where blocks leave it at different rounds": ((analysis, "_behind", _no_cause),),
    "early exits join the path that went on": ((analysis, "_rejoin", _path_that_went_on),),
    "a phase wraps around a loop": ((walk, "_round", _no_next_round),),
    "a barrier ends a phase": ((walk, "_statement", _through_barriers),),
    "the gcd test": ((pair, "_never_meet", lambda self, gap, mine, theirs: False),),
    "negative coefficients": ((twoblocks, "never_negative", _any_sign),),
    "masks end a span at the extent": ((compared, "cells", _boundless),),
    "guards around an access": ((compared, "cells", _unguarded),),
    "functions are inlined": ((analysis, "_statement", _no_inlining),),
    "both sides of `&&`": ((expression_values, "all_of", _right_side_only),),
    "both sides of `||`": ((expression_values, "any_of", _right_side_only),),
    "exits in an inner loop leave the outer ones": ((analysis, "_loop", _leaves_lost),),
    "an exit in an earlier round skips this one": ((analysis, "_loop", _this_round_only),),
    "blocks meet again behind an `if`": ((analysis, "_if", _apart_for_good),),
    "a grid constant is the grid": ((grid_constants, "grid_constants_of", lambda program: ()),),
    "an inferred grid is bounded": (
        (conflicts, "sure_grid_facts", lambda program: ()),
        (witness, "agreed_count", _four_blocks),
    ),
    "no more blocks than cells": ((grid, "_caps", lambda program, values: ()),),
    "stores of one value": (
        (compared, "_stored", lambda self, statement: ("own", id(statement))),
        (compared, "are_one_number_by_cell", lambda self, a, b: False),
        (witness._Rehearsed, "happens", _as_arithmetic_says),
    ),
    "what is read is written in other rounds": ((compared, "_is_proved_steady", compared._is_steady),),
    "what two blocks have summed is compared": ((witness._Rehearsed, "happens", _as_arithmetic_says),),
    "what is stored and read back is one value": ((witness._Rehearsed, "happens", _as_arithmetic_says),),
    "who has left comes to no access": ((witness._Rehearsed, "happens", _as_arithmetic_says),),
    "launches show whether blocks part in the end": (
        (divergences, "parts_at", lambda program, example: False),
        (divergences, "parting_of", lambda program: traces.Parting(frozenset(), 0)),
    ),
    "atomics order what stands before and behind them": (
        (between.Between, "_ordered", lambda self, one, other, mine: None),
        (rehearsed_launch, "ordered", lambda *_: False),
    ),
    "promises": ((knowledge.Knowledge, "divisor_of_atom", lambda self, atom, promises=None: 1),),
    "bounds that vary together": ((analysis, "trips", _bounds_vary),),
    "what always holds decides no branch": (
        (divergences.Decisions, "settled", lambda self, statement, condition: False),
    ),
    "data loaded at different places differs": (
        (analysis, "_from_tensor", lambda self, tensor, subscripts, expression, access=None: levels.UNIFORM),
    ),
    "code that never runs": ((evaluator.Evaluator, "run", _all_alive),),
}

HEAD = "@persistent\nkernel k(X: tensor<f32>[N], Y: tensor<f32>[N], BAR: tensor<i32>[2]) {\n  let p = ctx.block.x\n"

SHOWN: dict[str, int | str] = {
    "values come around a loop's back edge": HEAD + """\
  var v: f32 = 0.0
  for r in range(0, 2) {
    if v > 0.5 {
      grid_barrier(BAR)
    }
    v = f32(p)
  }
}
""",
    "what is assigned under a varying condition varies": HEAD + """\
  var v: f32 = 0.0
  if p == 0 {
    v = 1.0
  }
  if v > 0.5 {
    grid_barrier(BAR)
  }
}
""",
    "what a loop assigns varies where blocks leave it at different rounds": HEAD + """\
  var v: f32 = 0.0
  for r in range(0, p) {
    v = v + 1.0
  }
  if v > 0.5 {
    grid_barrier(BAR)
  }
}
""",
    "early exits join the path that went on": HEAD + """\
  var v: f32 = 0.0
  for r in range(0, 1) {
    if p == 0 {
      continue
    }
    v = 1.0
  }
  if v > 0.5 {
    grid_barrier(BAR)
  }
}
""",
    "a phase wraps around a loop": HEAD + """\
  for r in range(0, 2) {
    Y[p * 2 :+ 2] = X[p * 2 + 1 :+ 2] + 1.0
    grid_barrier(BAR)
    X[p * 2 :+ 2] = Y[p * 2 :+ 2] * 0.5
  }
}
""",
    "a barrier ends a phase": HEAD + """\
  Y[p * 2 :+ 2] = X[p * 2 + 1 :+ 2] + 1.0
  grid_barrier(BAR)
  X[p * 2 :+ 2] = Y[p * 2 :+ 2] * 0.5
}
""",
    "the gcd test": HEAD + """\
  X[2 * p :+ 1] = Y[2 * p :+ 1]
  if X[1] > 0.5 {
    grid_barrier(BAR)
  }
}
""",
    "negative coefficients": HEAD + """\
  Y[p * 2 :+ 2] = X[(ctx.blocks.x - 1 - p) * 2 :+ 2] + 1.0
  X[p * 2 :+ 2] = Y[p * 2 :+ 2] * 0.5
}
""",
    "masks end a span at the extent": """\
@persistent
kernel k(X: tensor<f32>[8]) {
  let p = ctx.block.x
  X[p * 8 :+ 16] = f32(p)
}
""",
    "guards around an access": HEAD + """\
  if p == 0 {
    X[0] = Y[0] + f32(p)
  }
}
""",
    "functions are inlined": """\
fn sync(b: tensor<i32>[2]) {
  grid_barrier(b)
}
""" + HEAD + """\
  if p == 0 {
    sync(BAR)
  }
}
""",
    "both sides of `&&`": HEAD + """\
  if p == 0 && N > 2 {
    X[0] = Y[0] + f32(p)
  }
}
""",
    "both sides of `||`": HEAD + """\
  if p == 0 || N < 3 {
    grid_barrier(BAR)
  }
}
""",
    "exits in an inner loop leave the outer ones": HEAD + """\
  for r in range(0, 2) {
    if p == 1 {
      return
    }
  }
  grid_barrier(BAR)
}
""",
    "an exit in an earlier round skips this one": HEAD + """\
  for r in range(0, 3) {
    grid_barrier(BAR)
    if p == 0 {
      return
    }
  }
}
""",
    "blocks meet again behind an `if`": HEAD + """\
  if p == 0 {
    X[0] = 1.0
  }
  grid_barrier(BAR)
}
""",
    "a grid constant is the grid": """\
@persistent
@autotune(C in [2])
kernel k(X: tensor<f32>[N]) {
  let p = ctx.block.x
  for t in range(p * 2, N, C * 2) {
    X[t :+ 2] = X[t :+ 2] + 1.0
  }
  for t in range(p * 2, N, ctx.blocks.x * 2) {
    X[t :+ 2] = X[t :+ 2] * 0.5
  }
}
""",
    "an inferred grid is bounded": """\
kernel k(X: tensor<f32>[8], Y: tensor<f32>[2]) {
  let p = ctx.block.x
  X[p * 4 :+ 4] = 1.0
  Y[p % 2] = f32(p)
}
""",
    "no more blocks than cells": """\
@persistent
kernel k(P: tensor<f32>[S], Y: tensor<f32>[S]) {
  let p = ctx.block.x
  P[p] = 1.0
  Y[p % S] = f32(p)
}
""",
    "stores of one value": HEAD + """\
  X[p :+ 2] = 1.0
}
""",
    "what is read is written in other rounds": HEAD + """\
  for round in range(0, 3) {
    for t in range(p * 2, N, 2) {
      Y[t :+ 2] = X[t :+ 2] * 0.5
    }
    grid_barrier(BAR)
    X[p * 2 :+ 2] = Y[p * 2 + 2 :+ 2] + 1.0
    grid_barrier(BAR)
  }
  if p == 0 {
    X[0] = X[0] + 1.0
  }
}
""",
    "what two blocks have summed is compared": """\
@persistent
@autotune(N in [8])
kernel k(X: tensor<f32>[N], P: tensor<f32>[S]) {
  let p = ctx.block.x
  var total: f32 = 0.0
  for t in range(p * 4, N, 8) {
    total += X[0]
  }
  P[p / 2] = total
}
""",
    "what is stored and read back is one value": """\
@persistent
kernel k(X: tensor<f32>[N], P: tensor<f32>[S], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  P[p] = f32(p)
  grid_barrier(BAR)
  X[p] = P[0]
  if p == 0 {
    X[N - 1] = X[0]
  }
}
""",
    "who has left comes to no access": HEAD
    + """\
  for s in range(0, p + 1) {
    if s != 1 {
      return
    }
    X[0] += 1.0
  }
}
""",
    "launches show whether blocks part in the end": HEAD
    + """\
  for s in range(0, p + 1) {
    if X[N - 1] > 0.2 {
      return
    }
  }
  grid_barrier(BAR)
}
""",
    "atomics order what stands before and behind them": """\
@persistent
kernel k(P: tensor<f32>[S], X: tensor<f32>[N], C: tensor<i32>[K]) {
  let p = ctx.block.x
  P[p :+ 1] = f32(p)
  atomic_add(C, 0, 1)
  while i64(atomic_add(C, 0, 0)) < ctx.blocks.x {
  }
  X[p :+ 1] = P[0 :+ 1]
}
""",
    "promises": """\
@persistent
@aligned(N = 4)
kernel k(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let p = ctx.block.x
  Y[4 * p :+ 2] = X[N - 2 - 4 * p :+ 2]
  X[4 * p :+ 2] = f32(p)
}
""",
    "bounds that vary together": HEAD + """\
  for t in range(p, p + 2) {
    grid_barrier(BAR)
  }
}
""",
    "what always holds decides no branch": """\
@persistent
kernel k(P: tensor<f32>[S], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  P[p] = 1.0
  if p < S {
    grid_barrier(BAR)
  }
}
""",
    "data loaded at different places differs": HEAD + """\
  if X[p % N] > 0.4 {
    grid_barrier(BAR)
  }
}
""",
    "code that never runs": HEAD + """\
  for r in range(0, 0) {
    if p == 0 {
      grid_barrier(BAR)
    }
  }
}
""",
}


# --- the test -----------------------------------------------------------------------------------------


@contextmanager
def without(step: str) -> Iterator[None]:
    """One step switched off; facts that were found with it, or without it, are not kept."""
    kept = [(where, name, getattr(where, name)) for where, name, _ in STEPS[step]]
    _forget()
    try:
        for where, name, broken in STEPS[step]:
            setattr(where, name, broken)
        yield
    finally:
        for where, name, whole in kept:
            setattr(where, name, whole)
        _forget()


def _forget() -> None:
    modules._programs.clear()
    apart.forget()


def sample_of(shown: int | str) -> Sample:
    if isinstance(shown, int):
        return generate(shown)
    named = set(re.findall(r"(\w+): tensor", shown))
    sizes = {"N": (4, 8) if "aligned" in shown else (2, 4, 7), "S": (5, 8), "K": (2,)}
    fills = {name: "random:seed=1" if name in "XY" else "zeros" for name in named}
    used = {name: numbers for name, numbers in sizes.items() if f"[{name}]" in shown}
    return Sample(-1, shown, "k", "@persistent" in shown, False, "atomic" in shown, used, {}, fills)


_happened: dict[int | str, Verdict] = {}


@pytest.fixture(autouse=True)
def no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "second_look", lambda sample, found: False)


def report_on(shown: int | str, step: str | None = None) -> Report:
    """Compare as the truth run does, with the checker broken if a step is given, and never the judge."""
    sample = sample_of(shown)
    _forget()
    whole = checked(sample)
    if shown not in _happened:
        _happened[shown] = judge(sample, whole)
    if step is None:
        return told(sample, whole, _happened[shown])
    with without(step):
        broken = checked(sample)
    return told(sample, broken, _happened[shown])


def wrong(report: Report) -> list[str]:
    return [*report.misses, *report.false, *report.doubts]


@pytest.mark.parametrize("step", STEPS)
def test_without_this_step_a_verdict_is_wrong(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = report_on(SHOWN[step])
    assert not whole.skipped and whole.runs, "it is run"
    assert not wrong(whole), "the whole analysis is right"
    # Before an error is called false more launches are looked at. One that a broken step makes up is not found in many
    # orders of blocks either, and where they wait for each other that takes the longest of all here.
    monkeypatch.setattr("tests.truth.judge.SEEDS", 4)
    broken = report_on(SHOWN[step], step)
    assert wrong(broken) or (broken.gave_up and not whole.gave_up), "this step is not missed"


def test_every_step_has_a_kernel_that_shows_it() -> None:
    assert SHOWN.keys() == STEPS.keys()
    assert len(STEPS) >= 15
