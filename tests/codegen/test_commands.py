"""`phobos emit`, `phobos occupancy`, `phobos doctor`: what they print, and what they say when they cannot."""

from __future__ import annotations

import ctypes.util
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import phobos
from phobos.cli import doctor, main
from phobos.codegen import nvrtc
from phobos.runtime import device
from phobos.runtime.cuda import driver

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STAGED = str(EXAMPLES / "staged.ph")
FUSED = str(EXAMPLES / "fused.ph")
needs_nvrtc = pytest.mark.skipif(nvrtc.location() is None, reason="no NVRTC (pip install 'phobos-tools[nvrtc]')")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path / "cache"))


def printed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(list(words)) == code
    captured = capsys.readouterr()
    return captured.out if code == 0 else captured.err


def test_emit_cuda_names_the_lines_of_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "emit", STAGED)
    assert f'#line 25 "{STAGED}"' in text and 'extern "C" __global__ void __launch_bounds__(256)' in text


@needs_nvrtc
@pytest.mark.parametrize(("options", "blocks"), [((), "8"), (("--set", "BLOCKS=3"), "3")])
def test_occupancy_has_the_grid_that_a_launch_would_have(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], blocks: str
) -> None:
    """Of a constant that is the grid: bound to what is resident in steps over it, and its own value in rounds."""
    corpus = EXAMPLES.parent / "tests" / "corpus" / "grid_constant.ph"
    strided, by_rounds = json.loads(printed(capsys, "occupancy", str(corpus), "--json", *options))
    assert (strided["grid"], by_rounds["grid"]) == (str(strided["resident"]), blocks)


def test_lines_are_those_of_the_text_whatever_ends_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "k.ph"
    file.write_bytes(Path(STAGED).read_bytes().replace(b"\n", b"\r"))
    assert f'#line 25 "{file}"' in printed(capsys, "emit", str(file))
    made = json.loads(printed(capsys, "emit", str(file), "--format", "contract"))
    assert [one["line"] for one in made["obligations"]] == [27, 20, 27, 22]


@pytest.mark.parametrize(("extent", "unit"), [(4096, 16), (1000, 4), (1001, None)])
def test_a_contract_says_what_extents_its_code_was_made_for(
    capsys: pytest.CaptureFixture[str], extent: int, unit: int | None
) -> None:
    file = str(EXAMPLES / "softmax.ph")
    made = json.loads(printed(capsys, "emit", file, "--format", "contract", "--set", f"N={extent}"))
    reasons = [one["reason"] for one in made["obligations"] if one["kind"] == "aligned"]
    assert reasons == ([f"this code is for extents N that are multiples of {unit}"] if unit else [])
    text = printed(capsys, "emit", file, "--set", f"N={extent}")
    assert (text != printed(capsys, "emit", file)) == (unit is not None)


@needs_nvrtc
def test_emit_ptx_and_cubin_for_a_target(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert ".target sm_80" in printed(capsys, "emit", STAGED, "--format", "ptx", "--target", "a100")
    cubin = tmp_path / "staged.cubin"
    printed(capsys, "emit", STAGED, "--format", "cubin", "--target", "sm_90", "-o", str(cubin))
    assert cubin.read_bytes()[:4] == b"\x7fELF" and [p.name for p in tmp_path.iterdir() if ".part" in p.name] == []


@pytest.mark.parametrize("name", ["staged", "saxpy", "gemm", "normalise", "softmax"])
def test_contracts_follow_their_schema(capsys: pytest.CaptureFixture[str], name: str) -> None:
    schema = json.loads(files("phobos.codegen").joinpath("contract.schema.json").read_text())
    made = json.loads(printed(capsys, "emit", str(EXAMPLES / f"{name}.ph"), "--format", "contract"))
    jsonschema.validate(made, schema)
    assert made["kernel"] == name and made["cooperative"] == (name in ("staged", "normalise"))
    kinds = [argument["kind"] for argument in made["arguments"]]
    order = ["tensor", "scalar", "dim", "pitch", "grid", "word", "report", "timeout", "groups"]
    assert kinds == sorted(kinds, key=order.index)


@pytest.mark.parametrize(
    ("options", "schedule", "axes"),
    [
        ((), {"kind": "flat", "l2_group": 1, "launch": "the grid"}, []),
        (("--schedule", "xyz", "--l2-group", "4"), {"kind": "xyz", "l2_group": 4, "launch": "the grid"}, ["x", "y"]),
        (
            ("--l2-group", "8"),
            {"kind": "flat", "l2_group": 8, "launch": "as many blocks along x as the grid has in all"}, ["x", "y"],
        ),
        (
            ("--schedule", "persistent_blocked"),
            {"kind": "persistent-blocked", "l2_group": 1, "launch": "any number of workers along x"}, ["x", "y"],
        ),
    ],
)  # fmt: skip
def test_a_contract_says_what_is_launched_under_a_schedule(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], schedule: dict[str, object], axes: list[str]
) -> None:
    schema = json.loads(files("phobos.codegen").joinpath("contract.schema.json").read_text())
    words = ("emit", str(EXAMPLES / "gemm.ph"), *options)
    made = json.loads(printed(capsys, *words, "--format", "contract"))
    jsonschema.validate(made, schema)
    assert made["schedule"] == schedule
    assert [a["name"] for a in made["arguments"] if a["kind"] == "grid"] == [f"0 {axis}" for axis in axes]
    text = printed(capsys, *words, "--format", "cuda")
    assert ("for (unsigned id" in text) == schedule["kind"].startswith("persistent")  # type: ignore[attr-defined]


def test_what_cannot_be_scheduled_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    said = printed(capsys, "emit", STAGED, "--schedule", "persistent-blocked", code=2)
    assert "`staged` cannot run under schedule 'persistent-blocked', as it is `@persistent`" in said
    assert "choose flat, xyz" in printed(capsys, "emit", STAGED, "--schedule", "spiral", code=2)


def test_facts_say_where_tiles_live_and_why(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "k.ph"
    file.write_text(
        "kernel k(X: tensor<f32>[64, 64], Y: tensor<f32>[64, 64]) {\n"
        "  var t: tile<f32>[64, 64] = X[0 :+ 64, 0 :+ 64]\n"
        "  var u = t * 2.0\n"
        "  Y[0 :+ 64, 0 :+ 64] = transpose(t) + u\n"
        "}\n"
    )
    text = printed(capsys, "emit", str(file), "--format", "facts")
    made = json.loads(text.split("lowering for sm_90a\n")[1])
    homes = {tile["name"]: tile for tile in made["tiles"]}
    assert homes["t"]["home"] == "shared" and "transpose" in homes["t"]["reason"]
    assert homes["u"]["home"] == "registers" and homes["u"]["layout"]["registers"] == 16
    assert made["waits"] and all(wait["line"] in (3, 4) for wait in made["waits"])


@needs_nvrtc
def test_occupancy_is_a_table_over_targets_and_constants(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "occupancy", STAGED, "--target", "h200,t4", "--set", "N=65536")
    head, h200, t4 = text.splitlines()
    assert head.split()[:3] == ["kernel", "target", "threads"]
    assert h200.split()[1:3] == ["h200", "256"] and h200.split()[-1] == "64"  # 64 tiles, fewer than are resident
    assert t4.split()[1] == "t4"
    rows = json.loads(printed(capsys, "occupancy", STAGED, "--set", "TILE=4096", "--json"))
    assert rows[0]["constants"]["TILE"] == 4096 and rows[0]["resident"] == rows[0]["ctas_per_sm"] * 132


@needs_nvrtc
def test_what_does_not_parse_is_named_and_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.ph"
    broken.write_text("kernel k(X: tensor<f32>[N]) {\n  X[0] =\n}\n")
    said = f"`k` cannot run: {broken}:2: PH001 expected an expression"
    assert said in printed(capsys, "emit", str(broken), code=2)
    assert main(["occupancy", str(broken)]) == 2 and said in capsys.readouterr().out
    assert main(["occupancy", str(broken), "--json"]) == 2
    assert said in json.loads(capsys.readouterr().out)[0]["refused"]
    broken.write_text(broken.read_text() + Path(STAGED).read_text(encoding="utf-8"))
    text = printed(capsys, "occupancy", str(broken))
    assert said in text and "staged" in text, "the one does not keep the other from being shown"
    known = printed(capsys, "occupancy", "--help")
    assert all(card in known for card in ("rtxpro6000", "sm_121"))


@needs_nvrtc
def test_a_compiled_kernel_is_short_to_look_at() -> None:
    made = phobos.load(STAGED).staged.compile("sm_90a", {"TILE": 2048})
    assert repr(made).startswith("<staged for sm_90a, TILE=2048, STAGES=8: ") and len(repr(made)) < 120


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("emit", "no_such.ph"), "no_such.ph"),
        (("emit", STAGED, "--kernel", "stagd"), "did you mean `staged`"),
        (("emit", STAGED, "--target", "h300"), "unknown target `h300`"),
        (("emit", STAGED, "--set", "TILES=4"), "no constant, extent or parameter"),
        (("emit", STAGED, "-o", "/no/such/folder/x.cu"), "cannot be written"),
        (("occupancy", STAGED, "--target", "x"), "unknown target `x`"),
        (("occupancy", STAGED, "--set", "Q=1"), "no constant, extent or parameter"),
        (("occupancy", FUSED, "--set", "Q=1"), "the kernels have no constant, extent or parameter of that name"),
        (("emit", STAGED, "--set", "N=-1"), "--set N: an extent cannot be -1"),
        (("occupancy", STAGED, "--set", "N=-1"), "--set N: an extent cannot be -1"),
        (("emit", STAGED, "--set", "TIEL=4"), "did you mean `TILE`?"),
        (("emit", FUSED), "say which (--kernel NAME)"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    error = printed(capsys, *words, code=2)
    assert said in error and "Traceback" not in error


def test_doctor_says_what_works(capsys: pytest.CaptureFixture[str]) -> None:
    assert "kernels run without a GPU" in printed(capsys, "doctor")
    made = json.loads(printed(capsys, "doctor", "--json"))
    assert {check["part"] for check in made["checks"]} >= {"phobos", "reference", "compiler", "GPU", "CuPy", "cache"}
    assert all(check["state"] in ("works", "absent", "broken") for check in made["checks"])


class Driver:
    """A driver library that starts with a status, and whose every other answer is an error."""

    def __init__(self, start: int) -> None:
        self.start = start

    def cuGetErrorString(self, status: int, text: Any) -> int:
        text._obj.value = b"made up"
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:
        return 3

    cuDriverGetVersion = cuDeviceGetCount


@pytest.mark.parametrize("start", [803, 0])
def test_doctor_says_what_is_wrong_with_a_driver(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, start: int
) -> None:
    """One that did not start was no problem, and one that failed later was the end of the doctor."""
    library = Driver(start)
    monkeypatch.setattr(driver, "_opened", lambda: (library, start))
    monkeypatch.setattr(driver, "library", lambda: None if start else library)
    driver.device_count.cache_clear()
    checks = {check["part"]: check for check in json.loads(printed(capsys, "doctor", "--json"))["checks"]}
    driver.device_count.cache_clear()
    assert checks["GPU"]["state"] == "broken" and "nvidia-smi" in checks["GPU"]["mend"]
    said = {803: "does not start: made up (803)", 0: "cuDeviceGetCount: made up (3)"}
    assert said[start] in checks["GPU"]["said"]


@needs_nvrtc
def test_doctor_names_the_extra_that_fits_the_driver(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "version", lambda: (12, 2))
    monkeypatch.setattr(nvrtc, "version", lambda: (13, 0))
    monkeypatch.setattr(doctor, "_version", lambda name: "14.2" if name == "cupy-cuda13x" else None)
    checks = {check["part"]: check for check in json.loads(printed(capsys, "doctor", "--json"))["checks"]}
    for part in ("compiler", "CuPy"):
        assert checks[part]["state"] == "broken" and "gpu12" in checks[part]["mend"], checks[part]
    assert "drivers of CUDA 13, and this one is for CUDA 12.2" in checks["compiler"]["said"]
    monkeypatch.setattr(nvrtc, "version", lambda: (12, 9))
    checks = {check["part"]: check for check in json.loads(printed(capsys, "doctor", "--json"))["checks"]}
    assert checks["compiler"]["state"] == "works"


def test_a_library_that_is_no_compiler_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    nvrtc._library.cache_clear()
    monkeypatch.setattr(nvrtc, "location", lambda: ctypes.util.find_library("c"))
    with pytest.raises(nvrtc.CompilerMissing, match="is no NVRTC"):
        nvrtc.version()
    nvrtc._library.cache_clear()


def test_a_card_that_is_too_old_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "driver", lambda: (1, "An old card answers"))
    monkeypatch.setattr(nvrtc, "location", lambda: "here")
    for capability, chosen in (((7, 0), "cpu"), ((7, 5), "cuda:0")):
        monkeypatch.setattr(driver, "capability", lambda number, found=capability: found)
        where, why = device.chosen("auto")
        assert where == chosen and ("need sm_75" in why) == (chosen == "cpu")


@needs_nvrtc
def test_doctor_clears_the_cache(capsys: pytest.CaptureFixture[str]) -> None:
    printed(capsys, "emit", STAGED, "--format", "ptx")
    checks = json.loads(printed(capsys, "doctor", "--json"))["checks"]
    assert next(check for check in checks if check["part"] == "cache")["files"] == 2, "the text and its cubin"
    assert "2 files removed" in printed(capsys, "doctor", "--clear-cache")


def test_doctor_says_where_nothing_can_be_kept_and_clears_what_it_can(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "cache" / "cubins"
    kept.mkdir(parents=True)
    (kept / "one").touch()
    (tmp_path / "cache" / "tuned").touch()
    checks = {check["part"]: check for check in json.loads(printed(capsys, "doctor", "--json"))["checks"]}
    assert checks["cache"]["state"] == "works" and checks["tuning"]["state"] == "broken"
    assert "cannot be written to" in checks["tuning"]["said"] and "PHOBOS_CACHE" in checks["tuning"]["mend"]
    with monkeypatch.context() as unable:
        unable.setattr(Path, "unlink", refused)
        assert "0 files removed" in printed(capsys, "doctor", "--clear-cache")
    assert "1 file removed" in printed(capsys, "doctor", "--clear-cache") and not list(kept.iterdir())


def refused(*_: object) -> None:
    raise PermissionError(13, "Permission denied")


@needs_nvrtc
def test_what_was_generated_can_be_kept(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHOBOS_DUMP", str(tmp_path / "dump"))
    printed(capsys, "emit", STAGED, "--format", "ptx")
    kept = sorted(path.name for path in (tmp_path / "dump").iterdir())
    assert kept == ["staged.sm_90a.cu", "staged.sm_90a.cubin", "staged.sm_90a.ptx"]


@needs_nvrtc
def test_what_is_generated_in_several_ways_is_kept_in_files_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each choice of constants took the place of the one before, so that what was kept was seldom what ran."""
    folder = tmp_path / "dump"
    monkeypatch.setenv("PHOBOS_DUMP", str(folder))
    made = phobos.load(STAGED).staged
    texts = [made.compile(constants={"TILE": tile}).cuda for tile in (1024, 4096, 1024)]
    kept = [(folder / f"staged.sm_90a.{name}").read_text() for name in ("cu", "2.cu")]
    assert kept == texts[:2] and texts[0] != texts[1]
    assert len(list(folder.iterdir())) == 6
    assert (folder / "staged.sm_90a.2.cubin").read_bytes() == made.compile(constants={"TILE": 4096}).cubin


@needs_nvrtc
def test_where_nothing_can_be_kept_the_reason_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    for folder, said in (("file", "File exists"), ("file/deeper", "Not a directory")):
        monkeypatch.setenv("PHOBOS_DUMP", str(tmp_path / folder))
        assert said in printed(capsys, "emit", STAGED, "--format", "ptx", code=2)
    (tmp_path / "full" / "staged.sm_90a.cu").mkdir(parents=True)
    monkeypatch.setenv("PHOBOS_DUMP", str(tmp_path / "full"))
    assert "staged.sm_90a.cu: cannot be written" in printed(capsys, "occupancy", STAGED, code=2)
