"""Where a fusion puts a grid barrier, where it needs none, and what it refuses or asks."""

from __future__ import annotations

import pytest

from phobos.semantics.fusion import Fusion, NotFusible, fused, requirements_of
from phobos.semantics.module import Module, analyse
from phobos.semantics.orders import Order
from tests.fusions import CHAIN

ELEMENTWISE = CHAIN + """kernel into_x(X: tensor<f32>[N], V: tensor<f32>[N]) {
    let p = ctx.block.x
    X[p * 32 :+ 32] = V[p * 32 :+ 32]
}
kernel into_y(Y: tensor<f32>[N], V: tensor<f32>[N]) {
    let p = ctx.block.x
    Y[p * 32 :+ 32] = V[p * 32 :+ 32]
}
"""

SPLIT = """
kernel even(H: tensor<f32>[M], X: tensor<f32>[N]) {
    let p = ctx.block.x
    H[2 * p] = X[p]
}
kernel odd(H: tensor<f32>[M], X: tensor<f32>[N]) {
    let p = ctx.block.x
    H[2 * p + 1] = X[p]
}
kernel top(G: tensor<f32>[2, N], X: tensor<f32>[N]) {
    for c in range(0, N) { G[0, c] = X[c] }
}
kernel bottom(G: tensor<f32>[2, N], X: tensor<f32>[N]) {
    for c in range(0, N) { G[1, c] = X[c] }
}
kernel low(S: tensor<f32>[256], X: tensor<f32>[N]) {
    let p = ctx.block.x
    if p < 2 { S[p * 64 :+ 64] = X[p * 64 :+ 64] }
}
kernel high(S: tensor<f32>[256], X: tensor<f32>[N]) {
    let p = ctx.block.x
    if p < 2 { S[128 + p * 64 :+ 64] = X[p * 64 :+ 64] }
}
kernel middle(S: tensor<f32>[256], X: tensor<f32>[N]) {
    let p = ctx.block.x
    if p < 2 { S[64 + p * 64 :+ 64] = X[p * 64 :+ 64] }
}
kernel behind_n(L: tensor<f32>[M], X: tensor<f32>[N]) {
    let p = ctx.block.x
    L[N + p] = 1.0
}
kernel below_n(L: tensor<f32>[M], Y: tensor<f32>[N]) {
    let p = ctx.block.x
    Y[p] = L[p]
}
kernel at_n(L: tensor<f32>[M], Y: tensor<f32>[N]) {
    let p = ctx.block.x
    Y[p] = L[p + 1]
}
"""

DATA = """
kernel fill(I: tensor<i32>[N], Y: tensor<f32>[N]) {
    let p = ctx.block.x
    Y[p * 64 :+ 64] = 0.0
}
kernel pick(I: tensor<i32>[N], Y: tensor<f32>[N], V: tensor<f32>[N]) {
    let p = ctx.block.x
    let i = I[p]
    V[p] = Y[i]
}
kernel after(V: tensor<f32>[N], Y: tensor<f32>[N]) {
    let p = ctx.block.x
    Y[p * 64 :+ 64] = V[p * 64 :+ 64]
}
kernel count(C: tensor<i32>[8], X: tensor<f32>[N]) {
    let p = ctx.block.x
    atomic_add(C, p % 8, 1)
    X[p * 64 :+ 64] = 0.0
}
kernel count_too(C: tensor<i32>[8], W: tensor<f32>[N]) {
    let p = ctx.block.x
    atomic_add(C, p % 8, 2)
    W[p * 64 :+ 64] = 0.0
}
kernel ticket(C: tensor<i32>[8], T: tensor<i32>[N]) {
    let p = ctx.block.x
    T[p] = atomic_add(C, 0, 1)
}
kernel read(C: tensor<i32>[8], U: tensor<i32>[8]) {
    let p = ctx.block.x
    U[p] = C[p]
}
"""


def fusion_of(text: str, names: str, order: Order = "ask") -> Fusion:
    program = fused(analyse("t.ph", text), names.split("+"), order).program
    return program.fusion  # type: ignore[attr-defined, no-any-return]


def phases(text: str, names: str, order: Order = "ask") -> list[list[str]]:
    found = fusion_of(text, names, order)
    return [[program.name for program in phase] for phase in found.members]


def refusal(text: str, names: str, order: Order = "ask") -> NotFusible:
    with pytest.raises(NotFusible) as caught:
        fused(analyse("t.ph", text), names.split("+"), order)
    return caught.value


# --- where a barrier stands ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("double+triple", [["double", "triple"]]),  # both only read X
        ("double+add", [["double"], ["add"]]),  # write, then read
        ("double+into_x", [["double"], ["into_x"]]),  # read, then write
        ("double+into_y", [["double"], ["into_y"]]),  # write, then write
        ("double+double", [["double"], ["double"]]),
        ("double+triple+add+both", [["double", "triple"], ["add"], ["both"]]),
        ("double+add+triple+both", [["double", "triple"], ["add"], ["both"]]),  # triple need not wait for add
        ("add+double", [["add"], ["double"]]),
        ("triple+both+double", [["triple", "double"], ["both"]]),
    ],
)
def test_barriers_of_elementwise_kernels(names: str, expected: list[list[str]]) -> None:
    assert phases(ELEMENTWISE, names) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("even+odd", 1),
        ("even+even", 2),
        ("top+bottom", 1),
        ("top+top", 2),
        ("low+high", 1),
        ("low+middle", 2),
        ("low+middle+high", 3),
        ("behind_n+below_n", 1),  # each kernel has as many blocks as its own text says
        ("below_n+behind_n", 1),
        ("behind_n+at_n", 2),
    ],
)
def test_cells_are_compared_not_tensors(names: str, expected: int) -> None:
    assert len(phases(SPLIT, names)) == expected


def test_a_barrier_says_which_accesses_need_it() -> None:
    found = fusion_of(ELEMENTWISE, "double+triple+add+both")
    told = [
        (b.earlier, b.later, b.relation.first.does, b.relation.first.tensor, b.relation.second.does)
        for b in found.barriers
        if b.relation.first is not None and b.relation.second is not None
    ]
    assert told == [(0, 2, "writes", "Y", "reads"), (2, 3, "writes", "Z", "reads")]
    first = found.barriers[0].relation
    assert first.first is not None and first.second is not None
    assert ELEMENTWISE[first.first.span.start : first.first.span.end] == "Y[p * 64 :+ 64]"
    assert ELEMENTWISE[first.second.span.start : first.second.span.end] == "Y[p * 128 :+ 128]"
    assert [(t.first, t.second, t.relation.reason) for t in found.together] == [(0, 1, "both only read `X`")]


def test_an_example_comes_with_a_barrier() -> None:
    meeting = fusion_of(ELEMENTWISE, "double+add").barriers[0].relation.meeting
    assert meeting is not None
    (size,) = [n for name, n in meeting.sizes if name == "N"]
    assert size > meeting.cell[0] >= 0
    one, other = meeting.blocks
    assert one[0] * 64 <= meeting.cell[0] < one[0] * 64 + 64
    assert other[0] * 128 <= meeting.cell[0] < other[0] * 128 + 128


def test_additions_commute_unless_their_result_is_used() -> None:
    assert len(phases(DATA, "count+count_too")) == 1
    assert len(phases(DATA, "count+ticket")) == 2
    assert len(phases(DATA, "count+read")) == 2


@pytest.mark.parametrize(("order", "expected"), [("barrier", 2), ("independent", 1)])
def test_what_nobody_knows_is_asked(order: Order, expected: int) -> None:
    (problem,) = refusal(DATA, "fill+pick").problems
    assert problem.code == "PH506"
    assert "`pick` must wait for `fill`" in problem.message and "loaded data" in problem.message
    assert DATA[problem.span.start : problem.span.end] == "Y[i]"
    assert [DATA[r.span.start : r.span.end] for r in problem.related] == ["Y[p * 64 :+ 64]"]
    assert problem.help is not None and 'order="barrier"' in problem.help and 'order="independent"' in problem.help
    assert len(phases(DATA, "fill+pick", order)) == expected


def test_an_answer_changes_nothing_that_is_known() -> None:
    assert phases(ELEMENTWISE, "double+add", "independent") == [["double"], ["add"]]
    assert phases(ELEMENTWISE, "double+triple", "barrier") == [["double", "triple"]]


def test_what_other_kernels_order_already_is_not_asked() -> None:
    # `pick` waits for V's reader of before by what is known, and for `fill` in passing.
    text = (
        DATA
        + """
kernel chain(Y: tensor<f32>[N], I: tensor<i32>[N]) {
    let p = ctx.block.x
    let y = Y[p]
    if y > 0.0 { I[p] = 1 }
}
"""
    )
    assert phases(text, "fill+chain+pick") == [["fill"], ["chain"], ["pick"]]


def test_tensors_that_no_barrier_orders_must_lie_apart() -> None:
    module = analyse("t.ph", ELEMENTWISE)
    side = {frozenset(t.name for t in o.subject) for o in overlaps(module, "double+triple")}  # type: ignore[attr-defined]
    assert frozenset({"Y", "W"}) in side and frozenset({"Y", "X"}) in side
    program = fused(module, ["double", "add"]).program
    assert program.fusion.overlaps == ()  # type: ignore[attr-defined]
    assert {o.kind for o in requirements_of(program)} >= {"no-overlap", "extent-agrees"}


def overlaps(module: Module, names: str) -> tuple[object, ...]:
    return fused(module, names.split("+")).program.fusion.overlaps  # type: ignore[attr-defined, no-any-return]


# --- meaning, not shape -------------------------------------------------------------------------------------

VARIANTS = [
    ("let p = ctx.block.x", "let tile_number = ctx.block.x\n    let p = tile_number"),
    ("let p = ctx.block.x", "let p = program_id(0)"),
    ("p * 64 :+ 64", "64 * p : 64 * p + 64"),
    ("p * 128 :+ 128", "p * 2 * 64 :+ 2 * 64"),
]


@pytest.mark.parametrize(("old", "new"), VARIANTS)
@pytest.mark.parametrize("names", ["double+triple", "double+add", "double+triple+add+both", "triple+into_x"])
def test_spelling_changes_nothing(old: str, new: str, names: str) -> None:
    assert phases(ELEMENTWISE.replace(old, new), names) == phases(ELEMENTWISE, names)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("H[2 * p + 1]", "H[at(p)]"),
        ("H[2 * p + 1]", "H[1 + p + p]"),
        ("128 + p * 64", "(p + 2) * 64"),
        ("if p < 2 {", "let here = p < 2\n    if here {"),
        ("if p < 2 {", "if p >= 2 { return }\n    if true {"),
    ],
)
@pytest.mark.parametrize("names", ["even+odd", "low+high", "low+middle", "low+middle+high"])
def test_spelling_of_subscripts_changes_nothing(old: str, new: str, names: str) -> None:
    text = SPLIT.replace(old, new) + "\nfn at(q: i32) -> i32 {\n    let twice = q * 2\n    return twice + 1\n}\n"
    assert phases(text, names) == phases(SPLIT, names)


def test_a_kernel_moved_in_its_file_is_told_at_its_new_place() -> None:
    moved = "// a line\n\n" + ELEMENTWISE
    before, after = (fusion_of(text, "double+add").barriers[0].relation for text in (ELEMENTWISE, moved))
    assert before.second is not None and after.second is not None
    assert moved[after.second.span.start : after.second.span.end] == "Y[p * 128 :+ 128]"
    assert after.second.span.start == before.second.span.start + len("// a line\n\n")


# --- what is refused ----------------------------------------------------------------------------------------

CLASHES = """
kernel base(X: tensor<f32>[N], Y: tensor<f32>[N], a: f32) {
    let p = ctx.block.x
    Y[p * 64 :+ 64] = X[p * 64 :+ 64] * a
}
kernel halves(X: tensor<f16>[N], Z: tensor<f16>[N]) {
    let p = ctx.block.x
    Z[p * 64 :+ 64] = X[p * 64 :+ 64]
}
kernel other_symbol(X: tensor<f32>[K], Z: tensor<f32>[K]) {
    let p = ctx.block.x
    Z[p * 64 :+ 64] = X[p * 64 :+ 64]
}
kernel matrix(X: tensor<f32>[N, N], Z: tensor<f32>[N]) {
    let p = ctx.block.x
    Z[p] = X[p, p]
}
kernel scalar(X: f32, Z: tensor<f32>[N]) {
    let p = ctx.block.x
    Z[p] = X
}
kernel double_a(Z: tensor<f32>[N], a: f64) {
    let p = ctx.block.x
    if a > 0.0 { Z[p] = 1.0 }
}
kernel with_n(Z: tensor<f32>[M], N: i32) {
    let p = ctx.block.x
    if p < N { Z[p] = 1.0 }
}
@autotune(N in [64, 128])
kernel constant_n(Z: tensor<f32>[M]) {
    let p = ctx.block.x
    Z[p * N :+ N] = 0.0
}
@autotune(T in [64, 128])
kernel tile(Z: tensor<f32>[M]) {
    let p = ctx.block.x
    Z[p * T :+ T] = 0.0
}
@autotune(T in [32, 128])
kernel tile_too(W: tensor<f32>[M]) {
    let p = ctx.block.x
    W[p * T :+ T] = 0.0
}
@launch(128)
kernel narrow(W: tensor<f32>[M]) {
    let p = ctx.block.x
    W[p * 64 :+ 64] = 0.0
}
@persistent
kernel stays(W: tensor<f32>[M]) {
    for t in range(ctx.block.x * 64, M, ctx.blocks.x * 64) { W[t :+ 64] = 0.0 }
}
kernel meets(bar: tensor<i32>[2], W: tensor<f32>[M]) {
    let p = ctx.block.x
    W[p * 64 :+ 64] = 0.0
    grid_barrier(bar)
}
kernel waits(F: tensor<i32>[M], W: tensor<f32>[M]) {
    let p = ctx.block.x
    while atomic_add(F, p, 0) == 0 { }
    W[p * 64 :+ 64] = 0.0
    atomic_add(F, p + 1, 1)
}
"""


@pytest.mark.parametrize(
    ("names", "code", "here", "there", "said"),
    [
        ("base+halves", "PH104", "X", "X", "`X` is not one tensor in `base` and `halves`"),
        ("base+other_symbol", "PH105", "X", "X", "`X` is not one tensor in `base` and `other_symbol`"),
        ("base+matrix", "PH105", "X", "X", "`X` is not one tensor in `base` and `matrix`"),
        ("base+scalar", "PH104", "X", "X", "`X` is not one thing in `base` and `scalar`"),
        ("base+double_a", "PH104", "a", "a", "`a` is not one parameter in `base` and `double_a`"),
        ("base+constant_n", "PH104", "N", "N", "`N` is not one thing in `base` and `constant_n`"),
        ("tile+tile_too", "PH403", "T", "T", "`T` is not one constant in `tile` and `tile_too`"),
        ("base+narrow", "PH401", "@launch(128)", "base", "`base` runs on 256 threads and `narrow` on 128"),
        ("base+stays", "PH407", "@persistent", None, "`stays` is `@persistent` and cannot be fused"),
        ("base+meets", "PH201", "grid_barrier(bar)", None, "`meets` holds a `grid_barrier` and cannot be fused"),
        ("base+waits", "PH508", "atomic_add(F, p, 0)", None, "`waits` waits for another block and cannot be fused"),
    ],
)
def test_refusals_name_both_places(names: str, code: str, here: str, there: str | None, said: str) -> None:
    problem = refusal(CLASHES, names).problems[0]
    assert problem.code == code and problem.severity == "error"
    assert problem.message.startswith(said)
    assert CLASHES[problem.span.start : problem.span.end].startswith(here)
    if there is not None:
        assert CLASHES[problem.related[0].span.start : problem.related[0].span.end].startswith(there)
    assert problem.help


def test_an_extent_and_a_parameter_of_one_name_are_one_number() -> None:
    program = fused(analyse("t.ph", CLASHES), ["base", "with_n"]).program
    assert set(program.dims) == {"N", "M"} and "N" in program.params


def test_the_parameters_of_all_each_once_in_order() -> None:
    program = fused(analyse("t.ph", ELEMENTWISE), ["double", "triple", "both"]).program
    assert [parameter.name for parameter in program.parameters] == ["X", "Y", "W", "Z", "R"]
    assert program.name == "double+triple+both"


def test_a_fusion_is_made_once_until_its_text_changes() -> None:
    first = fused(analyse("t.ph", ELEMENTWISE), ["double", "add"]).program
    assert fused(analyse("t.ph", ELEMENTWISE), ["double", "add"]).program is first
    changed = ELEMENTWISE.replace("* 2.0", "* 4.0")
    assert fused(analyse("t.ph", changed), ["double", "add"]).program is not first
