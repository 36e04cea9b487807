"""A verdict belongs to the meaning: rewriting a kernel that does the same changes no code and no blamed line.

Every rewriting keeps the lines where they are, so that codes and rows of errors and warnings must stay equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from phobos.check import findings
from phobos.syntax.lines import LineIndex
from tests.check.markdown import Case, cases, configured

FOLDER = Path(__file__).parent
CASES = [case for name in ("barriers.md", "races.md", "promises.md") for case in cases(FOLDER / name)]
OPERAND = r"(?:ctx\.blocks?\.x|[A-Za-z_]\w*(?![\w(\[.])|\d+(?![\w.]))"
OPENING = re.compile(r"(^|\s)(kernel \w+\((?:[^()]|\n)*\) \{)((?: *//.*)?\n)")

Rewriting = Callable[[str], str]


def commuted(text: str) -> str:
    """`a * b` as `b * a`."""
    return re.sub(rf"(?<![*/%] )(?<![\w.])({OPERAND}) \* ({OPERAND})", r"\2 * \1", text)


def distributed(text: str) -> str:
    """`p * 64` as `(p * 32 + p * 32)`."""
    return re.sub(rf"(?<![*/%] )(?<![\w.])({OPERAND}) \* 64\b(?! [*/%])", r"(\1 * 32 + \1 * 32)", text)


def named(text: str) -> str:
    """The block index under a name of its own."""
    if "ctx.block.x" not in text:
        return text
    body = OPENING.sub(lambda m: f"{m[1]}{m[2]} let me_ = ctx_block_x_{m[3]}", text)
    in_functions = re.sub(r"(?ms)^fn .*?^\}", lambda m: m[0].replace("ctx.block.x", "ctx_keep_"), body)
    named_ = in_functions.replace("ctx.block.x", "me_")
    return named_.replace("ctx_block_x_", "ctx.block.x").replace("ctx_keep_", "ctx.block.x")


def inlined(text: str) -> str:
    """A `let p = ctx.block.x` put in at its uses; the `let` stays."""
    if not re.search(r"let p = ctx\.block\.x\b(?! *[*%+/-])", text):
        return text
    out: list[str] = []
    for line in text.split("\n"):
        out.append(line if "let p = " in line else re.sub(r"\bp\b(?!:)", "(ctx.block.x)", line))
    return "\n".join(out)


def in_a_function(text: str) -> str:
    """The block index from a function at the end of the file."""
    if "ctx.block.x" not in text:
        return text
    return text.replace("ctx.block.x", "me_()") + "fn me_() -> i64 { return ctx.block.x }\n"


def renamed(text: str) -> str:
    """Tensors and dimensions under other names."""
    return re.sub(r"\b(X|Y|A|B|N)\b", r"\1q", text)


def with_a_dead_branch(text: str) -> str:
    """A branch that is never taken at the beginning."""
    return OPENING.sub(r"\1\2 if 1 > 2 { }\3", text)


REWRITINGS: tuple[Rewriting, ...] = (commuted, distributed, named, inlined, in_a_function, renamed, with_a_dead_branch)
ASIDE = {"PH112", "PH113"}  # what the rewriting itself adds: a name without use, a dead branch


def verdict(case: Case, text: str) -> list[tuple[str, str, int]]:
    lines = LineIndex(text)
    return sorted(
        (d.code, d.severity, lines.line_of(d.span.start))
        for d in findings("case.ph", text, configured(case))
        if d.severity != "info" and d.code not in ASIDE
    )


@pytest.mark.parametrize("rewrite", REWRITINGS, ids=[rewrite.__name__ for rewrite in REWRITINGS])
def test_codes_and_lines_do_not_change(rewrite: Rewriting) -> None:
    wrong: list[str] = []
    changed = 0
    for case in CASES:
        text = rewrite(case.text)
        if text == case.text or case.toml:  # a configuration names things too
            continue
        changed += 1
        before, after = verdict(case, case.text), verdict(case, text)
        if before != after:
            wrong.append(f"{case.where} {case.name}: {before} became {after}\n{text}")
    assert changed >= 10
    assert not wrong, f"{len(wrong)} of {changed}\n" + "\n".join(wrong[:5])
