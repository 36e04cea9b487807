"""The host program of docs/launching.md, run as it stands: what it asks of the driver, and on a card its result."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from phobos.codegen import nvrtc

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = re.findall(r"```python\n(.*?)```", (ROOT / "docs/launching.md").read_text(), re.S)


class Driver:
    """Says yes to all, and writes down what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[Any, ...]]] = []
        self.values: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        def call(*words: Any) -> int:
            self.asked.append((name, words))
            if name == "cuOccupancyMaxActiveBlocksPerMultiprocessor":
                words[0]._obj.value = 5
            if name == "cuMemAlloc_v2":
                words[0]._obj.value = 0x1000 * len(self.asked)
            if name == "cuLaunchKernel":
                kinds = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_float, ctypes.c_longlong, ctypes.c_uint)
                self.values = [kind.from_address(at).value for kind, at in zip(kinds, words[9], strict=True)]
            return 0

        return call


def phobos_of_this_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    run = subprocess.run

    def instead(words: list[str], **how: Any) -> Any:
        return run([sys.executable, "-m", *words], **how)

    monkeypatch.setattr(subprocess, "run", instead)
    monkeypatch.chdir(ROOT)


@pytest.mark.skipif(nvrtc.location() is None, reason="no CUDA compiler library (NVRTC)")
def test_it_launches_what_the_contract_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    driver = Driver()
    phobos_of_this_checkout(monkeypatch)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    exec(PROGRAM[0], {})
    asked = dict(driver.asked)
    assert asked["cuModuleLoadData"][1][:4] == b"\x7fELF"
    assert asked["cuModuleGetFunction"][2] == b"phk_saxpy"
    assert asked["cuLaunchKernel"][1:9] == (5, 1, 1, 256, 1, 1, 0, None)
    x, y, alpha, n, blocks = driver.values
    assert x != y and (alpha, n, blocks) == (2.0, 10_000, 10)
    assert capsys.readouterr().out == "5 workers, 10 blocks, sum 0\n"


@pytest.mark.gpu
def test_on_a_card_it_computes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    phobos_of_this_checkout(monkeypatch)
    exec(PROGRAM[0], {})
    said = capsys.readouterr().out
    assert said.endswith(" workers, 10 blocks, sum 50000\n") and int(said.split()[0]) >= 1


def test_it_is_short() -> None:
    assert len(PROGRAM) == 1 and len([line for line in PROGRAM[0].splitlines() if line.strip()]) <= 40
