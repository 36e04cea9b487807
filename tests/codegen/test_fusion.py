"""Fusions on a device that is this machine: the bits of their kernels one after another, and code for every card."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import numpy
import pytest

import phobos
from phobos.cli import main
from phobos.codegen import nvrtc
from phobos.errors import KernelFault, LaunchError
from phobos.runtime.cuda import launch as cuda_launch
from phobos.runtime.kernel import Kernels
from tests.codegen import host
from tests.codegen.fake_device import FakeDriver, HostArray
from tests.fusions import LAUNCHED, MATRICES, SOFTMAX_64, TILES, copies, fusion_of, one_after_another

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120")
needs_host = pytest.mark.skipif(host.COMPILER is None, reason="no C++ compiler (g++)")
needs_nvrtc = pytest.mark.skipif(nvrtc.location() is None, reason="no NVRTC (pip install 'phobos-tools[nvrtc]')")


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return FakeDriver(monkeypatch)


def ran(kernel: phobos.Kernel, arrays: dict[str, numpy.ndarray], **how: Any) -> dict[str, numpy.ndarray]:
    program = kernel.analysed()[1].program
    numbers = {name: how.pop(name) for name in program.params}
    kernel(**{name: HostArray(arrays[name]) for name in program.tensors}, **numbers, **how)
    cuda_launch.synchronize()
    return arrays


def random(*shape: int, seed: int = 0) -> numpy.ndarray:
    return numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32)


def alike(got: dict[str, numpy.ndarray], want: dict[str, numpy.ndarray]) -> None:
    for name, array in want.items():
        assert got[name].tobytes() == array.tobytes(), name


def chain_arrays(n: int) -> dict[str, numpy.ndarray]:
    made = {name: numpy.full(n, 7, numpy.float32) for name in "XYZWR"}
    made["X"] = random(n)
    return made


@needs_host
@needs_nvrtc
@pytest.mark.parametrize("n", [1, 250, 1000])
def test_four_kernels_and_two_barriers(device: FakeDriver, n: int) -> None:
    names = "double+triple+add+both"
    given = chain_arrays(n)
    want = one_after_another(ran, LAUNCHED, names, copies(given), a=1.5)
    kernel = fusion_of(LAUNCHED, names)
    for how in (
        {},
        {"grid": 1},
        {"grid": 3},
        {"schedule": "persistent-blocked"},
        {"schedule": "persistent_blocked", "grid": 2},
    ):
        for device.order in (0, 7):
            device.launches.clear()
            if how.get("grid", 1) > -(-n // 32) + -(-n // 64):
                continue
            alike(ran(kernel, copies(given), a=1.5, **how), want)
            ((symbol, grid, cooperative),) = device.launches
            assert symbol == "phk_double_triple_add_both" and cooperative
            assert grid == (how.get("grid", min(8, -(-n // 32) + -(-n // 64))), 1, 1)


@needs_host
@needs_nvrtc
def test_kernels_that_share_ids_need_no_barrier(device: FakeDriver) -> None:
    given = chain_arrays(1000)
    want = one_after_another(ran, LAUNCHED, "double+triple", copies(given))
    kernel = fusion_of(LAUNCHED, "double+triple")
    alike(ran(kernel, copies(given)), want)
    assert device.launches[-1] == ("phk_double_triple", (16 + 32, 1, 1), False)
    for schedule in ("persistent-interleaved", "persistent-blocked"):
        alike(ran(kernel, copies(given), schedule=schedule), want)
        assert device.launches[-1] == ("phk_double_triple", (8, 1, 1), False)


@needs_host
@needs_nvrtc
@pytest.mark.parametrize("schedule", ["persistent-interleaved", "persistent-blocked"])
def test_softmax_over_three_kernels(device: FakeDriver, schedule: str) -> None:
    x = random(11, 200)
    given = {"X": x, "M": random(11, 1), "S": random(11, 1), "Y": random(11, 200)}
    want = one_after_another(ran, SOFTMAX_64, "largest+total+divide", copies(given))
    alike(ran(fusion_of(SOFTMAX_64, "largest+total+divide"), copies(given), schedule=schedule), want)
    assert device.launches[-1][1:] == ((8, 1, 1), True)


@needs_host
@needs_nvrtc
@pytest.mark.parametrize("grid", [1, 5, 8])
def test_kernels_take_turns_in_shared_memory(device: FakeDriver, grid: int) -> None:
    given = {"A": random(40, 56), "T": random(56, 40), "C": random(56, 56), "S": random(40, 1)}
    want = one_after_another(ran, MATRICES, "turn+product+rows", copies(given))
    kernel = fusion_of(MATRICES, "turn+product+rows")
    program = kernel.analysed()[1].program
    assert [[p.name for p in phase] for phase in program.fusion.members] == [["turn", "rows"], ["product"]]
    for device.order in (0, 1, 7):
        alike(ran(kernel, copies(given), grid=grid), want)


@needs_host
@needs_nvrtc
@pytest.mark.parametrize(("p", "q"), [(132, 132), (1000, 50), (3, 20)])
@pytest.mark.parametrize("schedule", ["persistent-interleaved", "persistent-blocked"])
def test_two_phases_are_shared_out_each_by_itself(device: FakeDriver, p: int, q: int, schedule: str) -> None:
    given = {"A": numpy.zeros(p, numpy.int32), "B": numpy.zeros(q, numpy.int32)}
    kernel = fusion_of(TILES, "first+second", "barrier")  # which cells `second` reads, `% P` hides
    got = ran(kernel, copies(given), schedule=schedule)
    a = numpy.arange(p, dtype=numpy.int32) * 3 + 1
    numpy.testing.assert_array_equal(got["A"], a)
    numpy.testing.assert_array_equal(got["B"], a[numpy.arange(q) * 7 % p] + numpy.arange(q))
    assert device.launches[-1] == ("phk_first_second", (8, 1, 1), True)


@needs_host
@needs_nvrtc
def test_the_barrier_word_is_ready_for_the_next_launch(device: FakeDriver) -> None:
    """Odd and even numbers of barriers, launch after launch."""
    for names, barriers in (("double+add", 1), ("double+triple+add+both", 2)):
        kernel = fusion_of(LAUNCHED, names)
        assert len(kernel.analysed()[1].program.fusion.phases) == barriers + 1
        given = chain_arrays(500)
        want = one_after_another(ran, LAUNCHED, names, copies(given), a=2.0)
        for _ in range(3):
            alike(ran(kernel, copies(given), a=2.0), want)


@needs_host
@needs_nvrtc
def test_the_plan_and_what_a_card_refuses(device: FakeDriver) -> None:
    kernel = fusion_of(LAUNCHED, "double+add")
    arrays = {name: HostArray(array) for name, array in chain_arrays(2000).items() if name in "XYZ"}
    plan = kernel.plan(**arrays, a=1.0, reserved_sms=1)
    assert plan.grid == (6, 1, 1) and plan.resident == 6 and plan.schedule == "persistent-interleaved"
    assert "before phase 2: `add` reads `Y` (line 10), which `double` writes (line 5)" in str(plan)
    assert kernel.plan(**arrays, a=1.0, resident=3).grid == (3, 1, 1)
    with pytest.raises(LaunchError, match="9 workers is not resident: 8 fit at once"):
        kernel(**arrays, a=1.0, grid=9)
    with pytest.raises(LaunchError, match="has no grid barrier, but these kernels need 1"):
        kernel(**arrays, a=1.0, schedule="flat")
    assert device.launches == []


@needs_host
@needs_nvrtc
def test_a_worker_that_never_comes_is_named_at_the_barrier_between_kernels(device: FakeDriver) -> None:
    text = (
        LAUNCHED
        + """
@launch(32)
kernel endless(X: tensor<f32>[N], V: tensor<f32>[N]) {
    let p = ctx.block.x
    var n = 1
    while n > 0 { n = n + 2 - 1 }
    V[p * 64 :+ 64] = X[p * 64 :+ 64]
}
@launch(32)
kernel then(V: tensor<f32>[N], W: tensor<f32>[N]) {
    let p = ctx.block.x
    W[p * 64 :+ 64] = V[p * 64 :+ 64]
}
"""
    )
    kernel = fusion_of(text, "endless+then")
    arrays = {name: HostArray(random(64)) for name in "XVW"}
    kernel(**arrays, timeout=0.001, unchecked=True)
    with pytest.raises(KernelFault, match="timeout") as caught:
        cuda_launch.synchronize()
    assert caught.value.diagnostic is not None and caught.value.diagnostic.span.owner == "t.ph"


# --- code without a device ----------------------------------------------------------------------------------


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(
    ("text", "names"),
    [(LAUNCHED, "double+triple+add+both"), (SOFTMAX_64, "largest+total+divide"), (MATRICES, "turn+product+rows")],
)
def test_code_for_every_card(text: str, names: str, arch: str) -> None:
    made = fusion_of(text, names).compile(arch)
    assert made.arch == arch and made.cubin[:4] == b"\x7fELF" and made.emitted.cooperative
    parts = [Kernels("t.ph", text)[name].compile(arch) for name in names.split("+")]
    assert made.shared_bytes == max(part.shared_bytes for part in parts)
    assert made.local_bytes == 0


@needs_nvrtc
def test_launch_bounds_are_those_of_all() -> None:
    text = fusion_of(MATRICES, "turn+product+rows").compile().cuda
    assert "__launch_bounds__(64, 2)" in text


def file_of(tmp_path: Path, text: str) -> str:
    file = tmp_path / "t.ph"
    file.write_text(text)
    return str(file)


@needs_nvrtc
@pytest.mark.parametrize("form", ["cuda", "ptx", "cubin", "facts", "contract"])
def test_emit(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], form: str) -> None:
    file = file_of(tmp_path, LAUNCHED)
    assert main(["emit", file, "--kernel", "double+triple+add+both", "--format", form]) == 0
    out = capsysbinary.readouterr().out
    match form:
        case "cuda":
            assert out.count(b"ph_grid_barrier(state, state.word") == 2
            for line in (5, 10, 16, 21):
                assert f'#line {line} "{file}"'.encode() in out
        case "ptx":
            assert b".entry phk_double_triple_add_both" in out
        case "cubin":
            assert out[:4] == b"\x7fELF"
        case "facts":
            text = out.decode()
            assert "`add` reads `Y` (line 10), which `double` writes (line 5)" in text
            assert text.count("lowering for sm_90a") == 4
        case "contract":
            made = json.loads(out)
            schema = json.loads(files("phobos.codegen").joinpath("contract.schema.json").read_text())
            jsonschema.validate(made, schema)
            assert made["cooperative"] and [a["name"] for a in made["arguments"][:5]] == ["X", "Y", "W", "Z", "a"]
            assert [[k["kernel"] for k in phase] for phase in made["grid"]["phases"]] == [
                ["double", "triple"], ["add"], ["both"]
            ]  # fmt: skip


@needs_nvrtc
def test_occupancy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = file_of(tmp_path, LAUNCHED)
    words = ["occupancy", file, "--kernel", "double+triple+add+both", "--target", "h200,t4", "--set", "N=64000"]
    assert main([*words, "--json"]) == 0
    h200, t4 = json.loads(capsys.readouterr().out)
    assert h200["kernel"] == "double+triple+add+both" and h200["threads"] == 32
    assert h200["resident"] == h200["ctas_per_sm"] * 132
    assert h200["grid"] == str(min(h200["resident"], 3000)) and t4["target"] == "t4"
    assert main(words) == 0 and "double+triple+add+both" in capsys.readouterr().out
    assert main(["occupancy", file, "--kernel", "double+triple", "--set", "N=64000", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["grid"] == "3000"


def test_what_cannot_be_fused_is_said_by_every_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = file_of(tmp_path, LAUNCHED + "kernel wide(X: tensor<f32>[N]) { X[ctx.block.x] = 0.0 }\n")
    for command in ("emit", "occupancy"):
        assert main([command, file, "--kernel", "double+wide"]) == 2
        said = capsys.readouterr().err
        assert "`double+wide` cannot be one launch: PH401 `double` runs on 32 threads and `wide` on 256" in said
    assert main(["emit", file, "--kernel", "double+nix"]) == 2
    assert "has no kernel `nix`" in capsys.readouterr().err


@needs_host
@needs_nvrtc
def test_rows_may_be_apart_and_bases_between(device: FakeDriver) -> None:
    wide = {"X": random(11, 300), "M": random(11, 1), "S": random(11, 1), "Y": random(11, 256)}
    given = {"X": wide["X"][:, 3:203], "M": wide["M"], "S": wide["S"], "Y": wide["Y"][:, :200]}
    dense = {name: numpy.array(array) for name, array in given.items()}
    want = one_after_another(ran, SOFTMAX_64, "largest+total+divide", dense)
    ran(fusion_of(SOFTMAX_64, "largest+total+divide"), given)
    for name, array in want.items():
        numpy.testing.assert_allclose(given[name], array, rtol=1e-6)
    assert not device.functions[-1].wide


GUARDED = """
@launch(32)
@aligned(N = 64)
kernel first(X: tensor<f32>[N], Y: tensor<f32>[N]) {
    let p = ctx.block.x
    Y[p * 64 :+ 64] = X[p * 64 :+ 64] * 2.0
}
@launch(32)
kernel second(Y: tensor<f32>[N], Z: tensor<f32>[N], at: i32) {
    let p = ctx.block.x
    Z[p * 64 :+ 64] = Y[p * 64 :+ 64]
    if p == 1 { Z[at] = 5.0 }
}
"""


@needs_host
@needs_nvrtc
@pytest.mark.parametrize("grid", [None, 1])
def test_a_guard_in_any_kernel_stops_them_all(device: FakeDriver, grid: int | None) -> None:
    kernel = fusion_of(GUARDED, "first+second")
    x, y, z = (HostArray(random(200)) for _ in range(3))
    with pytest.raises(LaunchError, match="N = 200 is not a whole number of 64"):
        kernel(x, y, z, 0)
    kernel(x, y, z, 0, host_checks=False, grid=grid)
    with pytest.raises(KernelFault, match="N = 200 is not a whole number of 64"):
        cuda_launch.synchronize()
    x, y, z = (HostArray(random(256)) for _ in range(3))
    kernel(x, y, z, 256, debug=True, grid=grid)
    with pytest.raises(KernelFault, match="index 256 is outside `Z`, which has 256") as caught:
        cuda_launch.synchronize()
    assert caught.value.diagnostic is not None
    span = caught.value.diagnostic.span
    assert GUARDED[span.start : span.end] == "Z[at]"
    kernel(x, y, z, 127, debug=True, grid=grid)  # in the tile of the block that stores it
    cuda_launch.synchronize()
    assert z.array[127] == 5 and (y.array == x.array * 2).all()
    assert (numpy.delete(z.array, 127) == numpy.delete(y.array, 127)).all()
