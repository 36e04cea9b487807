"""Tuning on a card: variants compiled ahead, judged, timed in graphs in a process of their own; the winner launched."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import phobos
from phobos.runtime.cuda import launch
from tests.tune.support import STAGED

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path / "cache"))


def test_a_kernel_is_tuned_on_its_arrays_and_then_launched_as_tuned() -> None:
    cupy = pytest.importorskip("cupy")
    text = STAGED.replace("TILE in [4, 8]", "TILE in [512, 2048]").replace("@persistent", "@launch(256)\n@persistent")
    kernel = phobos.kernel(text)
    x = cupy.arange(1 << 18, dtype=cupy.float32)
    tuning = kernel.tune(x, repeat=5, timeout=20.0)
    assert bool((x == cupy.arange(1 << 18, dtype=cupy.float32)).all())
    assert tuning.best is not None and {row.status for row in tuning.rows} <= {"ok", "slower"}, str(tuning)
    assert len({row.grid for row in tuning.rows}) >= 3 and all(row.registers for row in tuning.rows)
    plan = kernel.plan(x)
    assert plan.constants["TILE"] == dict(tuning.best.variant.constants)["TILE"] and plan.grid == tuning.best.grid
    assert "constants from tuning" in plan.notes[-1]
    kernel(x, timeout=10.0)
    launch.synchronize()
    assert np.allclose(x.get(), np.arange(1 << 18) * 0.25 + 1.5)


def test_the_command_and_a_run_after_it(tmp_path: Path) -> None:
    def phobos_(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "phobos", *words], capture_output=True, text=True, timeout=100, cwd=tmp_path
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    text = (ROOT / "examples/gemm.ph").read_text()
    (tmp_path / "gemm.ph").write_text(text[text.index("@launch") :])
    sizes = [word for name in "MNK" for word in ("--set", f"{name}=512")]
    sizes += [word for name in ("A=random", "B=normal", "C=zeros", "alpha=1", "beta=0") for word in ("--arg", name)]
    file = "gemm.ph"
    found = json.loads(phobos_("tune", file, *sizes, "--device", "cuda", "--repeat", "3", "--json",
                               "--l2-group", "1,4"))  # fmt: skip
    assert found["best"] is not None and found["left"] == 0
    assert {row["status"] for row in found["rows"]} <= {"ok", "slower"}
    tried = [row["variant"] for row in found["rows"]]
    assert {v["schedule"] for v in tried} == {None, "persistent-blocked", "persistent-interleaved"}
    assert {v["l2_group"] for v in tried} == {1, 4} and len({str(v["constants"]) for v in tried}) == 8
    ran = json.loads(phobos_("run", file, *sizes, "--device", "cuda", "--verify", "--json"))
    assert ran["plan"]["constants"] == found["best"]["variant"]["constants"]
    assert any("constants from tuning" in note for note in ran["plan"]["notes"]) and ran["verified"]["ok"]
