"""The host program of docs/launching.md, run as it stands: what it asks of CuPy here; tests/cuda has its result."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy
import pytest

from phobos.codegen import nvrtc
from tests.codegen.launching import PROGRAM, folder_with_phobos


class Function:
    """A loaded kernel that writes down its launches instead of running them."""

    def __init__(self, cubin: bytes, symbol: str) -> None:
        self.cubin, self.symbol = cubin, symbol
        self.kernel = types.SimpleNamespace(ptr=1)
        self.launches: list[tuple[Any, ...]] = []

    def __call__(self, *words: Any, shared_mem: int) -> None:
        self.launches.append((*words, shared_mem))


@pytest.mark.skipif(nvrtc.location() is None, reason="no CUDA compiler library (NVRTC)")
def test_it_launches_what_the_contract_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    loaded: list[Function] = []

    class Module:
        def __init__(self, path: str) -> None:
            self.cubin = Path(path).read_bytes()

        def get_function(self, symbol: str) -> Function:
            loaded.append(Function(self.cubin, symbol))
            return loaded[-1]

    def fit(function: int, threads: int, shared: int) -> int:
        assert (function, threads, shared) == (1, 256, 0)
        return 2

    stand_in = types.SimpleNamespace(
        RawModule=Module,
        full=numpy.full,
        cuda=types.SimpleNamespace(
            driver=types.SimpleNamespace(occupancyMaxActiveBlocksPerMultiprocessor=fit),
            Device=lambda: types.SimpleNamespace(attributes={"MultiProcessorCount": 3}),
        ),
    )
    monkeypatch.setitem(sys.modules, "cupy", stand_in)  # type: ignore[arg-type]
    folder_with_phobos(monkeypatch, tmp_path)
    exec(PROGRAM, {})
    (function,) = loaded
    assert function.cubin[:4] == b"\x7fELF" and function.symbol == "phk_saxpy"
    ((grid, block, (x, y, alpha, n, blocks), shared),) = function.launches
    assert (grid, block, shared) == ((6,), (256,), 0)
    assert x is not y and x.dtype == y.dtype == numpy.float32
    assert (alpha, n, blocks) == (2.0, 10_000, 10)
    assert (alpha.dtype, n.dtype, blocks.dtype) == (numpy.float32, numpy.int64, numpy.uint32)
    assert capsys.readouterr().out == "6 workers, 10 blocks, sum 30000\n"


def test_it_is_short() -> None:
    assert len([line for line in PROGRAM.splitlines() if line.strip()]) <= 20
