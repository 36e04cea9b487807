"""Every program keeps the promises of `semantics/ir.py`, and any text whatever makes one."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from phobos.semantics.module import analyse
from phobos.semantics.show import show

from .build_cases import cases
from .invariants import hold

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "tests" / "corpus").glob("*.ph"), *(ROOT / "examples").glob("*.ph")])
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")


def test_small_kernels_keep_the_promises() -> None:
    for case in cases():
        for unit in analyse("case.ph", case.text).units:
            hold(unit.program)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_real_kernels_keep_the_promises(path: Path) -> None:
    module = analyse(path.name, path.read_text(encoding="utf-8"))
    for unit in module.units:
        hold(unit.program)
        assert [problem.message for problem in unit.problems if problem.severity != "info"] == []


@pytest.mark.parametrize("seed", range(4))
def test_text_with_broken_tokens_makes_programs_that_keep_them(seed: int) -> None:
    rng = random.Random(seed)
    texts = [case.text for case in cases()] + [path.read_text(encoding="utf-8") for path in FILES]
    pool = [token for text in texts for token in _TOKEN.findall(text)]
    for _ in range(120):
        tokens = _TOKEN.findall(rng.choice(texts))
        for _ in range(rng.choice((1, 1, 2, 4))):
            at = rng.randrange(len(tokens))
            match rng.randrange(3):
                case 0:
                    del tokens[at : at + 1]
                case 1:
                    tokens[at] = rng.choice(pool)
                case 2:
                    tokens.insert(at, rng.choice(pool))
        text = "".join(tokens)
        module = analyse("broken.ph", text)
        for unit in module.units:
            hold(unit.program)
            show(unit.program)
            for problem in unit.problems:
                for place in (problem.span, *(related.span for related in problem.related)):
                    span = module.absolute(unit, place)
                    assert 0 <= span.start <= span.end <= len(text)
