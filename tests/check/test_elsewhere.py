"""Habits of other languages: the finding stays what it was, and its help says what is written here."""

from __future__ import annotations

import re

import pytest

from phobos.check import findings
from phobos.language import elsewhere
from phobos.language.attributes import ATTRIBUTES
from phobos.language.builtins import CORE
from phobos.language.members import MEMBERS
from phobos.language.scalars import SCALARS


@pytest.mark.parametrize(
    ("line", "code", "severity", "help"),
    [
        ("atomicAdd(X, 0, 1)", "PH107", "warning", "`atomic_add(t, i, v)`"),
        ("__syncthreads()", "PH107", "warning", "nothing of the kind is needed"),
        ("grid_sync(X)", "PH107", "warning", "`grid_barrier(BAR)`"),
        ("let _n = len(X)", "PH107", "warning", "`extent(X, 0)`"),
        ("var _t = zeros(64)", "PH107", "warning", "`var t: tile<f32>[R, C] = 0.0`"),
        ("X[0] = float(N)", "PH107", "error", "`f32(x)` converts"),
        ("if not (N > 3) { X[0] = 1.0 }", "PH107", "error", "`not` is written `!`"),
        ("X[0] = max(X[1], X[2])", "PH107", "error", "did you mean `tmax`?"),
        ("frobnicate(X)", "PH107", "warning", "known-functions"),
        ("X[blockIdx.x] = 1.0", "PH101", "error", "`blockIdx.x` is written `ctx.block.x`"),
        ("X[ctx.blockIdx.x] = 1.0", "PH101", "error", "did you mean `ctx.block`?"),
        ("pass", "PH101", "error", "an empty block is `{ }`"),
        ("let _n = X.shape[0]", "PH106", "error", "`extent(X, axis)`"),
        ("/* words */", "PH001", "error", "a comment begins with `//`"),
        ("y := 3", "PH001", "error", "a variable is declared"),
        ("let _a = X @ X", "PH001", "error", "`dot(a, b)`"),
        ("X[0] = N as f32", "PH001", "error", "`f32(x)`"),
        ("X[0] = \N{LEFT DOUBLE QUOTATION MARK}1", "PH001", "error", "there are no strings"),
    ],
)
def test_what_is_written_here_instead(line: str, code: str, severity: str, help: str) -> None:
    found = findings("k.ph", f"kernel k(X: tensor<f32>[N]) {{\n  {line}\n}}\n")
    first = next(d for d in found if d.code == code)
    assert first.severity == severity and help in (first.help or "")
    assert first.fix is None or "did you mean" in help


def test_what_stands_outside_of_kernels() -> None:
    for text, help in (
        ("/* words */\n", "a comment begins with `//`"),
        ("__global__ void k() {\n}\n", "a kernel begins with `kernel`"),
        ("kernel k(X: tensor<f32>[N]) -> f32 {\n  X[0] = 1.0\n}\n", "it stores into tensors"),
    ):
        assert help in (findings("k.ph", text)[0].help or ""), text


def test_advice_names_only_what_there_is() -> None:
    """Every call and attribute in the help exists, and no entry hides a name of the language."""
    known = {*CORE, *SCALARS, "if", "phobos"}
    for table in (elsewhere.FUNCTIONS, elsewhere.NAMES):
        for name, help in table.items():
            for code in re.findall(r"`([^`]*)`", help):
                assert set(re.findall(r"\b([a-z]\w*)\(", code)) <= known, help
                assert set(re.findall(r"@(\w+)", code)) <= ATTRIBUTES.keys(), help
            assert name not in known and name == name.lower().replace("_", ""), name
    assert set(elsewhere.MEMBERS.values()) <= MEMBERS.keys()
