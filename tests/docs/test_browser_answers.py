"""What the page in the browser asks of the checker, asked here, where no browser has to start first."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

HOME = Path(__file__).parents[2] / "editors" / "browser" / "answers.py"
TEXT = "// \U0001f600\nkernel k(X: tensor<f32>[N]) {\n  X[program_id(0)] = 1.0\n}\n"


@pytest.fixture(scope="module")
def answers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("answers_of_the_page", HOME)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_notes_are_shown_where_they_are_asked_for_and_counted_where_not(answers: ModuleType) -> None:
    quiet, all_of_it = (json.loads(answers.check(TEXT, notes)) for notes in (False, True))
    assert quiet["findings"] == [] and "1 note hidden" in quiet["reports"]["concise"]
    (found,) = all_of_it["findings"]
    assert found["code"] == "PH601" and found["fixable"] and found["line"] == 3
    start, end = found["span"]  # in UTF-16 code units, of which the face before takes two
    assert TEXT.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le") == "program_id(0)"


def test_a_text_is_mended_and_put_in_order_or_the_reason_is_told(answers: ModuleType) -> None:
    assert json.loads(answers.fixed(TEXT)) == {"text": TEXT.replace("program_id(0)", "ctx.block.x"), "fixes": 1}
    assert json.loads(answers.formatted("kernel k( ){\n}")) == {"text": "kernel k() {}\n"}
    assert "kernel.ph:1:" in json.loads(answers.formatted("kernel ("))["problem"]
