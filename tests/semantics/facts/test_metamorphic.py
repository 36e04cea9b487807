"""A verdict belongs to the meaning: every spelling of one kernel gives the same facts."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from phobos.semantics import ir
from phobos.semantics.conflicts import conflicts_of
from phobos.semantics.grid import describe, grid_of
from phobos.semantics.masks import masks_of, points_of
from phobos.semantics.module import analyse
from phobos.semantics.program import Program
from phobos.semantics.uniformity import uniformity_of

from .cases import cases, program

Summary = dict[str, object]


def summary(shared: Program) -> Summary:
    """What the facts say, without places or names."""
    grid = grid_of(shared)
    return {
        "divergences": sorted((d.kind, d.certain, len(d.others)) for d in uniformity_of(shared).divergences),
        "conflicts": sorted({(c.kind, c.certain, c.first.access.base.name) for c in conflicts_of(shared)}),
        "masks": sorted(
            (_of(a), axis, m.needed, bool(m.promises), m.peeled is not None or m.needed is False)
            for a, masks in masks_of(shared).items()
            for axis, m in enumerate(masks)
            if m is not None
        ),
        "points": sorted(
            (_of(a), axis, b.state) for a, bs in points_of(shared).items() for axis, b in enumerate(bs) if b
        ),
        "grid": [sorted({describe(use) for use in axis.uses}) for axis in grid.axes],
        "rounds": sorted(describe(use) for use in grid.rounds),
        "useful": grid.useful_known,
        "caps": sorted((cap.tensor.name, cap.axis) for cap in grid.caps),
    }


def _of(access: ir.Access) -> str:
    return access.base.name if isinstance(access.base, ir.Tensor) else "tile"


STARTS = {
    "product": ("", "p * 64"),
    "commuted": ("", "64 * p"),
    "distributed": ("", "(p + 1) * 64 - 64"),
    "sum": ("", "p * 32 + p * 32"),
    "named": ("let start = p * 64", "start"),
    "function": ("let start = times(p)", "start"),
    "shifted": ("", "(p << 6)"),
}
STEPS = {
    "product": ("", "ctx.blocks.x * 64"),
    "named": ("let all = ctx.blocks.x\nlet step = 64 * all", "step"),
    "distributed": ("", "ctx.blocks.x * 60 + 4 * ctx.blocks.x"),
}
BODIES = {
    "good": "X[t :+ 64] = X[t :+ 64] + 1.0",
    "neighbour": "X[t :+ 64] = Y[t :+ 64]\nY[t :+ 64] = X[t + 64 :+ 64]",
    "barrier": "X[t :+ 64] = 1.0\ngrid_barrier(BAR)",
    "exit": "if t > n {\nbreak\n}\ngrid_barrier(BAR)",
    "overlap": "X[t :+ 65] = Y[t :+ 65]",
}


def walk(start: str, step: str, body: str, form: str) -> str:
    before, first = STARTS[start]
    named, by = STEPS[step]
    lines = ["let p = ctx.block.x", before, named]
    match form:
        case "for":
            lines += [f"for t in range({first}, N, {by}) {{", body, "}"]
        case "while":
            lines += [f"var t = {first}", "while t < N {", body, f"t += {by}", "}"]
        case "if":
            lines += [f"for t in range({first}, N, {by}) {{", "if t < N {", body, "}", "}"]
        case "inlined":
            lines += [f"for t in range({first}, N, {by}) {{", "let here = t", re.sub(r"\bt\b", "here", body), "}"]
    return (
        "fn times(a: i64) -> i64 {\n  return a * 64\n}\n@persistent\n@aligned(N = 64)\n"
        "kernel k(X: tensor<f32>[N], Y: tensor<f32>[N], BAR: tensor<i32>[2], n: i32) {\n"
        + "\n".join(line for line in lines if line)
        + "\n}\n"
    )


@pytest.mark.parametrize("body", BODIES)
def test_spellings_of_a_strided_walk(body: str) -> None:
    wanted = summary(program(walk("product", "product", BODIES[body], "for")))
    assert wanted["divergences"] or wanted["conflicts"] or body == "good"
    for start, step in product(STARTS, STEPS):
        assert summary(program(walk(start, step, BODIES[body], "for"))) == wanted, (start, step)
    for form in ("if", "inlined", *(["while"] if body != "exit" else [])):
        assert summary(program(walk("named", "product", BODIES[body], form))) == wanted, form


COUNTED = """@persistent
kernel k(X: tensor<f32>[N], Y: tensor<f32>[N]) {{
  let p = ctx.block.x
{0}
}}
"""


def test_counting_from_the_block_or_from_0() -> None:
    blocks = "for t in range(p * 64, N, ctx.blocks.x * 64) {\nX[t :+ 64] = Y[t :+ 64]\nY[t :+ 64] = X[t + 1 :+ 64]\n}"
    zero = (
        "for r in range(0, N / 64 + 1) {\nlet t = (r * ctx.blocks.x + p) * 64\nif t < N {\n"
        "X[t :+ 64] = Y[t :+ 64]\nY[t :+ 64] = X[t + 1 :+ 64]\n}\n}"
    )
    one, other = (summary(program(COUNTED.format(text))) for text in (blocks, zero))
    for what in ("divergences", "conflicts", "rounds", "useful", "caps", "grid"):
        assert one[what] == other[what], what


def renamed(text: str) -> str:
    """Every local name of a text replaced by another, in an order that turns the alphabet round."""
    found = dict.fromkeys(re.findall(r"\b(?:let|var|for)\s+([A-Za-z_]\w*)", text))
    for index, name in enumerate(found):
        fresh = f"z{97 - index}{name[::-1]}"
        text = re.sub(rf"(?<![\w.@]){name}\b(?!\s*[=:]\s*\d*\))", fresh, text)
    return text


def with_dead_branch(text: str) -> str:
    return re.sub(r"^(kernel [^{]*\{)$", r"\1\n  if 1 > 2 {\n    let unused_name = 3\n  }", text, flags=re.MULTILINE)


ALL = [(case.name, case.text) for file in ("uniformity.md", "conflicts.md", "masks.md") for case in cases(file)]
ALL += [(path.stem, path.read_text()) for path in sorted(Path("tests/corpus").glob("*.ph"))]


@pytest.mark.parametrize(("name", "text"), ALL, ids=[name for name, _ in ALL])
def test_names_and_dead_code_mean_nothing(name: str, text: str) -> None:
    text = re.sub(r"//(?! phobos).*", "", text)
    before = [summary(unit.program) for unit in analyse("a.ph", text).kernels.values()]
    for rewritten in (renamed(text), with_dead_branch(text)):
        units = analyse("b.ph", rewritten).kernels.values()
        assert not [p.message for u in units for p in u.program.problems if p.code in ("PH001", "PH101")]
        assert [summary(unit.program) for unit in units] == before
