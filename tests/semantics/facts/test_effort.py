"""How much is asked, counted: proofs that are sought, searches that are made. Times are in benchmarks/, none here."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from phobos.check import Configuration, findings
from phobos.semantics import (
    apart,
    build_initialised,
    build_views,
    conflicts,
    ir,
    meeting,
    rehearsal,
    rehearsed_launch,
    solve,
    steady,
    walking,
    witness,
)  # fmt: skip
from phobos.semantics import module as modules
from phobos.semantics.conditions import too_large
from phobos.semantics.flow import MOST_FRESH, MOST_STEPS, Flow
from phobos.semantics.groups import Groups
from phobos.semantics.poly import MOST_NESTED, Poly, too_deep
from phobos.semantics.uniformity import uniformity_of

ROOT = Path(__file__).parents[3]
SWEEP = """
@persistent
kernel {name}(X: tensor<f32>[N], Y: tensor<f32>[N], BAR: tensor<i32>[2]) {{
  let p = ctx.block.x
  for t in range(p * 64, N, ctx.blocks.x * 64) {{
    Y[t :+ 64] = X[t :+ 64] * {factor}.0
  }}
  grid_barrier(BAR)
  for t in range(p * 64, N, ctx.blocks.x * 64) {{
    X[t :+ 64] = Y[t :+ 64] + Y[t + 64 :+ 64]
  }}
}}
"""


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many terms the goal of each search for a proof has, from an empty memory on."""
    modules._programs.clear()
    apart.forget()
    solve._known.clear()
    meeting._known.clear()
    made: list[int] = []
    whole = solve._search

    def counted(goal: solve.Terms, *rest: object) -> bool:
        made.append(len(goal))
        return whole(goal, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(solve, "_search", counted)
    return made


def sought(text: str) -> int:
    before = apart.proofs_sought()
    findings("effort.ph", text)
    return apart.proofs_sought() - before


def test_a_kernel_of_a_form_that_was_checked_before_asks_nothing_new(searches: list[int]) -> None:
    assert sought(SWEEP.format(name="first", factor=2)) > 3
    made = len(searches)
    twenty = "".join(SWEEP.format(name=f"k{n}", factor=n) for n in range(20))
    assert sought(twenty) == 0
    assert len(searches) == made


def test_an_edit_that_moves_no_access_asks_nothing_new(searches: list[int]) -> None:
    text = (ROOT / "tests/corpus/softmax_two_phase.ph").read_text()
    sought(text)
    made = len(searches)
    assert sought(text.replace("1.0 /", "2.0 /").replace("0.0", "0.5")) == 0
    assert len(searches) == made


def test_what_bounds_another_loop_is_no_part_of_a_question(searches: list[int]) -> None:
    def rounds(count: int) -> str:
        return SWEEP.format(name="k", factor=2).replace(
            "  let p", f"  for s in range(0, {count}) {{\n    Y[ctx.block.x] = f32(s)\n  }}\n  let p"
        )

    assert sought(rounds(5)) >= 3
    assert sought(rounds(7)) == 0


@pytest.mark.parametrize(
    ("kernel", "most"),
    [("examples/gemm.ph", 60), ("examples/softmax.ph", 120), ("tests/corpus/jacobi_parity.ph", 900)],
)
def test_searches_for_a_kernel_are_few(searches: list[int], kernel: str, most: int) -> None:
    sought((ROOT / kernel).read_text())
    assert len(searches) <= most


def test_what_keeps_apart_whatever_holds_around_it_is_one_question_under_many_conditions(searches: list[int]) -> None:
    """Six hundred rounds that are skipped: each pair of stores behind them was a question of its own, 10 s of them."""
    skip = "if r == {0} {{\ncontinue\n}}\n"
    stores = "".join(f"X[p] = {n}.0\n{skip.format(n + 100)}" for n in range(30))
    loop = f"for r in range(0, n) {{\n{''.join(map(skip.format, range(40)))}{stores}}}\n"
    head = "@persistent\nkernel k(X: tensor<f32>[N], n: i32) {\nlet p = ctx.block.x\n"
    assert sought(f"{head}{loop}}}\n") < 30 * 31 // 2 // 10


def test_numbers_that_refute_a_goal_end_the_search(searches: list[int]) -> None:
    """`N - 8p - 40` where `p < G`: nothing relates N to G, and no depth of search needs to find that out."""
    p, grid, n = (Poly.atom("param", name) for name in ("p", "g", "n"))
    given = [grid - 1 - p, grid - 1, p, n - 8]
    assert not solve.never_negative(n - p * 8 - 40, given, lambda atom: True)
    assert len(searches) <= 2


def different(count: int) -> str:
    lines = "".join(f"  Y[p * 8 + {n * 4096} :+ 8] = X[p * 8 + {n * 3} :+ 8]\n" for n in range(count))
    return f"@persistent\nkernel k(X: tensor<f32>[N], Y: tensor<f32>[N]) {{\n  let p = ctx.block.x\n{lines}}}\n"


def test_accesses_that_all_differ_are_compared_up_to_a_limit_that_says_so(searches: list[int]) -> None:
    asked = sought(different(60))
    assert conflicts.MOST_CONFLICTS <= asked <= conflicts.MOST_CONFLICTS + 10
    told = [note for one in findings("effort.ph", different(60)) for note in one.notes]
    assert any(f"more than {conflicts.MOST_CONFLICTS} pairs" in note for note in told), told


@pytest.mark.parametrize("line", ["X[0] = 1.0 + X[1]", "X[{n}] = 1.0 + X[{n} + 1]"])
def test_reads_beside_writes_of_one_tensor_are_compared_once_a_meaning(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred such lines took seven seconds: each read was held against each write, equal or not."""
    made: list[int] = []
    whole = steady.Pair.disjoint

    def counted(pair: steady.Pair, *rest: object, **more: object) -> bool:
        made.append(1)
        return whole(pair, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(steady.Pair, "disjoint", counted)
    body = "".join(f"  {line.format(n=n)}\n" for n in range(60))
    program = next(
        iter(modules.analyse("e.ph", f"kernel k(X: tensor<f32>[N]) {{\n  let p = ctx.block.x\n{body}}}\n").units)
    )
    uniformity_of(program.program)
    assert len(made) <= 2 * 60


def test_searches_grow_with_the_statements(searches: list[int]) -> None:
    counts = []
    for size in (40, 80, 160):
        before = len(searches)
        findings("effort.ph", different(size))
        counts.append(len(searches) - before)
    assert counts[2] - counts[1] <= 3 * (counts[1] - counts[0] + 40)


@pytest.mark.parametrize(
    "statement", ["v = v / 3 + v / 5 + 1", "v = v * v", "v = v * 3 / 7 + v % 11", "v = (v ^ 5) + (v & 3)"]
)
@pytest.mark.parametrize("first", ["ctx.block.x + N", "3", "T", "ctx.block.x * 5"])
def test_values_do_not_grow_without_end(searches: list[int], statement: str, first: str) -> None:
    body = f"  {statement}\n" * 60
    text = f"@autotune(T in [3, 5])\nkernel k(X: tensor<f32>[N]) {{\n  var v = {first}\n{body}  X[v] = 1.0\n}}\n"
    findings("effort.ph", text)
    (unit,) = modules.analyse("effort.ph", text).units
    from phobos.semantics.values import values_of

    polys = values_of(unit.program).polys.values()
    assert all(len(poly.text) < 100_000 for poly in polys)
    assert too_deep(*(Poly.atom("div", Poly.atom("dim", str(n)).key, ()) for n in range(MOST_NESTED + 1)))


GUARDED = """
@persistent
kernel k(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  var c = FIRST
STATEMENTS  if c {
    grid_barrier(BAR)
  }
}
"""


@pytest.mark.parametrize(
    "statement",
    ["(c || p < {i}) && (c || p > {i} + 9)", "c == (p < {i})", "!(c && !(c || p < {i}))", "c != (p == {i})"],
)
@pytest.mark.parametrize("first", ["p < N", "X[p] > 0.5"])
def test_conditions_do_not_grow_without_end(searches: list[int], statement: str, first: str) -> None:
    statements = "".join(f"  c = {statement.format(i=i)}\n" for i in range(60))
    text = GUARDED.replace("FIRST", first).replace("STATEMENTS", statements)
    findings("effort.ph", text)
    (unit,) = modules.analyse("effort.ph", text).units
    from phobos.semantics.values import values_of

    assert not any(map(too_large, values_of(unit.program).conditions.values()))


LONG_LAUNCHES = """
@persistent
kernel k(X: tensor<f32>[N], Y: tensor<f32>[N], W: tensor<f32>[H, N], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  for r in range(0, H) {
    for c in range(p, N, ctx.blocks.x) {
      W[r :+ 1, c :+ 1] = W[H - 1 - r :+ 1, c :+ 1] * 0.5
    }
    if p < 4294967296 {
      grid_barrier(BAR)
    }
  }
  Y[p * 4 :+ 4] = X[p * 4 :+ 4] * 0.5
}
"""


def test_the_launches_that_are_rehearsed_have_an_end_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seventy of them, each as long as one may be, took seven seconds for twelve lines."""
    spent: list[int] = []
    whole = rehearsed_launch.Launch.run

    def counted(launch: rehearsed_launch.Launch, last_first: bool = False) -> rehearsed_launch.Seen:
        seen = whole(launch, last_first)
        spent.append(seen.spent)
        return seen

    monkeypatch.setattr(rehearsed_launch.Launch, "run", counted)
    findings("effort.ph", LONG_LAUNCHES)
    assert len(spent) > 10 and sum(spent) <= rehearsal.MOST_TOGETHER + rehearsed_launch.MOST_WORK


def kinds(of: type) -> list[type]:
    return [kind for made in of.__subclasses__() for kind in (made, *kinds(made)) if kind.__module__ == ir.__name__]


def test_walks_look_into_all_that_has_something_inside() -> None:
    inner = ("Expression", "Access")
    holding = {k for k in kinds(ir.Expression) if any(name in told for told in fields_of(k).values() for name in inner)}
    assert {*kinds(ir.Expression)} - holding == walking.LEAVES
    assert {kind for kind in kinds(ir.Statement) if "Block" in fields_of(kind).values()} == walking.NESTS


def fields_of(kind: type) -> dict[str, str]:
    return {name: str(told) for name, told in kind._value_types.items()}  # type: ignore[attr-defined]


def test_numbers_are_tried_up_to_a_limit_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of loops ten deep took minutes: three of each, for every block, at every setting, for every pair."""
    monkeypatch.setattr(witness, "MOST_TRIED", 300)
    modules._programs.clear()
    loops = "".join(f"for i{n} in range(0, N, {n + 2}) {{\n" for n in range(10))
    body = "".join(f"X[i{n} * p + i9] = X[i{n} * i1 + {n}]\n" for n in range(9))
    text = f"@persistent\nkernel k(X: tensor<f32>[N]) {{\nlet p = ctx.block.x\n{loops}{body}{'}' * 10}\n}}\n"
    (unit,) = modules.analyse("effort.ph", text).units
    reasons = {one.reason for one in conflicts.meetings_of(unit.program)}
    assert any("more than 300 places would have to be looked at" in reason for reason in reasons), reasons
    modules._programs.clear()


@pytest.mark.parametrize(
    ("text", "constants"),
    [
        ("let t = (ctx.block.x + 1) * 8\n  X[t :+ 8] = X[t + G :+ 8] * 0.5", (("G", 2**62),)),
        ("for a in range(0, 0) {\n for b in range(0, 4611686018427387904) {\n Y[b + a] = 1.0\n }\n }", ()),
        ("for b in range(0, 4611686018427387904) {\n Y[b] = 1.0\n }", ()),
    ],
)
def test_a_grid_or_a_loop_as_large_as_a_number_can_be_is_not_written_down(
    text: str, constants: tuple[tuple[str, int], ...]
) -> None:
    """Every block of a grid of 2^31, which a constant had set, was put into a list: 100 GiB."""
    kernel = f"@persistent\n@autotune(G in [2])\nkernel k(X: tensor<f32>[N], Y: tensor<f32>[8]) {{\n  {text}\n}}\n"
    assert findings("effort.ph", kernel, Configuration(constants=constants))
    grid = "for r in range(0, (N + G * 8 - 1) / (G * 8)) {\n X[(r * G + ctx.block.x) * 8 :+ 8] = X[r :+ 8]\n }"
    assert findings("effort.ph", kernel.replace(text, grid), Configuration(constants=(("G", 2**62),)))


def test_ways_into_one_phase_are_bounded_however_deep_loops_nest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each loop around three barriers made four times as many: ten deep, a check took a quarter of an hour."""
    looked_at: list[object] = []
    whole = Groups.loops_of

    def counted(self: Groups, start: object) -> object:
        looked_at.append(start)
        assert len(looked_at) < 200_000
        return whole(self, start)  # type: ignore[arg-type]

    monkeypatch.setattr(Groups, "loops_of", counted)
    depth = 10
    head = "".join(f"for i{n} in range(p * 4 + {n}, N, ctx.blocks.x * 4) {{\n" for n in range(depth))
    stores = ("X[i9 :+ 4] = Y[i0 :+ 4]", "Y[i9 :+ 4] = X[i1 :+ 4]", "X[i2 :+ 4] = Y[i9 :+ 4]")
    body = "".join(f"{store}\ngrid_barrier(BAR)\n" for store in stores)
    kernel = (
        "@persistent\nkernel k(X: tensor<f32>[N], Y: tensor<f32>[N], BAR: tensor<i32>[2]) {\nlet p = ctx.block.x\n"
        + head + body + "}\n" * depth + "}\n"
    )  # fmt: skip
    assert "PH205" in {one.code for one in findings("effort.ph", kernel)}
    assert looked_at


NEST = """
kernel k(X: tensor<f32>[N], Y: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  var t: tile<f32>[64]
LOOPS  if X[i0] > 0.0 {
    t = 0.0
  }
  let v = X[p * 64 :+ 64]
  X[p * 64 :+ 64] = v + t
  Y[p * 64 :+ 64] = v
ENDS}
"""


def nest(depth: int) -> str:
    loops = "".join(f"for i{n} in range(0, {n + 3}) {{\n" for n in range(depth))
    return NEST.replace("LOOPS", loops).replace("ENDS", "}\n" * depth)


@pytest.mark.parametrize(("walk", "method"), [(build_views._Views, "statement"), (build_initialised._Reads, "block")])
def test_a_nest_of_loops_is_walked_as_often_as_it_is_deep(
    walk: type, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each loop around a `let` view, or around a tile without a value, doubled the walks: 2^depth."""
    modules._programs.clear()
    made: list[int] = []
    whole = getattr(walk, method)

    def counted(self: object, *given: object) -> object:
        made.append(1)
        return whole(self, *given)

    monkeypatch.setattr(walk, method, counted)
    found = {(one.code, one.severity) for one in findings("effort.ph", nest(16))}
    assert {("PH111", "warning"), ("PH110", "warning")} <= found
    assert 16 < len(made) <= 16 * 30


def flow_in(text: str) -> Flow:
    (unit,) = modules.analyse("effort.ph", text).units
    return Flow(unit.program)


def most_ways(flow: Flow) -> int:
    return max(len(ways) for start in flow.starts for ways in flow.reached(start).values())


def test_ways_do_not_multiply_with_every_loop_around_a_barrier() -> None:
    """First round or any: each loop around a barrier had both, of which only the firsts were counted."""
    barriers = nest(12).replace("  let v", "  grid_barrier(BAR)\n  let v")
    assert most_ways(flow_in(barriers)) <= 12 * 2 ** (MOST_FRESH + 1)


def test_a_way_does_not_grow_with_every_barrier_that_it_goes_past() -> None:
    """Two hundred branches with a barrier took eight seconds: each statement behind them was told by all before it."""
    branches = "".join(f"  if N > {n} {{\n    grid_barrier(BAR)\n  }}\n" for n in range(60))
    flow = flow_in(f"@persistent\nkernel k(X: tensor<f32>[N], BAR: tensor<i32>[2]) {{\n{branches}  X[0] = 1.0\n}}\n")
    ways = [one.way for start in flow.starts for reached in flow.reached(start).values() for one in reached]
    assert max(map(len, ways)) == MOST_STEPS
    assert len({id(step) for way in ways for step in way}) == 60


def test_tensors_that_may_be_one_are_compared_up_to_a_limit(
    searches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three hundred tensors took twelve seconds. Those that were not compared must not overlap."""
    monkeypatch.setattr(conflicts, "MOST_ALIASES", 20)
    names = [f"T{n}" for n in range(10)]
    stores = "".join(f"  {name}[ctx.block.x] = 1.0\n" for name in names)
    text = f"kernel k({', '.join(f'{name}: tensor<f32>[N{name}]' for name in names)}) {{\n{stores}}}\n"
    (unit,) = modules.analyse("effort.ph", text).units
    assert len(conflicts.aliases_of(unit.program)) == 10 * 9 // 2 - 20


def test_a_cell_that_one_block_alone_touches_is_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eighty views read around eighty stores took five seconds: each touch of each cell was held against each."""
    modules._programs.clear()
    asked: Counter[rehearsed_launch.Launch] = Counter()
    whole = rehearsed_launch.Launch._raced

    def counted(self: rehearsed_launch.Launch, *given: object) -> object:
        asked[self] += 1
        return whole(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(rehearsed_launch.Launch, "_raced", counted)
    body = "".join(f"let v{n} = X[p * 8 + {n} :+ 8]\nX[p * 8 :+ 8] = v{n}\n" for n in range(20))
    found = findings("e.ph", f"@persistent\nkernel k(X: tensor<f32>[N]) {{\nlet p = ctx.block.x\n{body}}}\n")
    assert "PH501" in {one.code for one in found}
    assert asked and max(asked.values()) <= 20 * 20
