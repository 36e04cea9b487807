"""A kernel that was let pass is not checked again by the next process; anything that could change that is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

GOOD = "kernel k(X: tensor<f32>[N]) { X[ctx.block.x * 64 :+ 64] = 1.0 }\n"
RACE = "kernel k(X: tensor<f32>[N]) { X[0 :+ 64] = f32(ctx.block.x) }\n"
PROGRAM = """
import sys, numpy, phobos
from phobos.errors import CheckError
kernel = phobos.load(sys.argv[1]).k
module, unit = kernel.analysed()
try:
    kernel.demand(module, unit, on_device=True)
    said = "passes"
except CheckError as error:
    said = "refused " + error.diagnostics[0].code
rules = "phobos.check.rules.ph501_race_between_blocks" in sys.modules
print(said, ",".join(kernel.codes_at()), "checked" if rules else "known")
"""


@pytest.fixture
def start(tmp_path: Path):  # type: ignore[no-untyped-def]
    def run(text: str) -> str:
        (tmp_path / "k.ph").write_text(text)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path / "k.ph")], capture_output=True, text=True, check=True,
            env={**os.environ, "PHOBOS_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}, timeout=120,
        )  # fmt: skip
        return done.stdout.strip()

    return run


def test_a_kernel_that_passed_is_known_to_the_next_process(start) -> None:  # type: ignore[no-untyped-def]
    assert start(GOOD) == "passes  checked"
    assert start(GOOD) == "passes  known"
    assert start(GOOD.replace("64", "32")) == "passes  checked"


def test_a_kernel_that_did_not_pass_is_never_known(start) -> None:  # type: ignore[no-untyped-def]
    for _ in range(2):
        assert start(RACE).startswith("refused PH5") and start(RACE).endswith(" checked")


def test_a_configuration_that_changes_is_looked_at(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    ignored = '[tool.phobos]\nignore = ["PH5"]\n'
    (tmp_path / "pyproject.toml").write_text(ignored)
    assert start(RACE) == "passes PH409,PH502 checked"
    assert start(RACE) == "passes PH409,PH502 known"
    (tmp_path / "pyproject.toml").write_text("[tool.phobos]\n")
    assert start(RACE).startswith("refused PH5")
    (tmp_path / "pyproject.toml").write_text(ignored)
    (tmp_path / "phobos.toml").write_text("")
    assert start(RACE).startswith("refused PH5")


def test_what_is_kept_and_damaged_is_not_believed(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert start(GOOD) == "passes  checked"
    (kept,) = list((tmp_path / "cache" / "cubins").iterdir())
    data = bytearray(kept.read_bytes())
    data[-1] ^= 1
    kept.write_bytes(bytes(data))
    assert start(GOOD) == "passes  checked"
    assert start(GOOD) == "passes  known"
