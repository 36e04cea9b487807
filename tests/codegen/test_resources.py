"""Cubins and cards: what is read from an ELF file, how many CTAs fit, what is kept on disk."""

from __future__ import annotations

import hashlib
import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from phobos.codegen import cache, cards, nvrtc
from phobos.codegen.resources import resources_of

TEXT = """
extern "C" __global__ void shares(float* a, int n) {
  __shared__ float s[300];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[1] = s[n];
}
extern "C" __global__ void spills(float* a, int n) {
  float t[64];
  for (int i = 0; i < 64; ++i) t[i] = a[i];
  t[n] = 3;
  for (int i = 0; i < 64; ++i) a[t[i] > 0 ? i : n] = t[(i * n) & 63];
}
"""

needs_nvrtc = pytest.mark.skipif(nvrtc.location() is None, reason="no NVRTC (pip install 'phobos-tools[nvrtc]')")


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_75", "sm_86", "sm_90a", "sm_120"])
def test_registers_local_and_shared_bytes_of_each_function(arch: str) -> None:
    cubin = nvrtc.compile_text(TEXT, "t.cu", arch).cubin
    shares, spills = resources_of(cubin, "shares"), resources_of(cubin, "spills")
    assert shares.static_shared_bytes == 1200 and shares.local_bytes == 0
    assert spills.static_shared_bytes == 0 and spills.local_bytes >= 256
    assert 0 < shares.registers < spills.registers + 64
    with pytest.raises(ValueError, match="no function `other`"):
        resources_of(cubin, "other")


@needs_nvrtc
def test_what_the_compiler_refuses_is_an_error_with_its_first_line() -> None:
    with pytest.raises(nvrtc.CompileError, match=r"`t.cu` for sm_90a: .*error") as error:
        nvrtc.compile_text("no such text", "t.cu", "sm_90a")
    assert "error" in error.value.log


# Figures that the driver of an H200 gave (cuOccupancyMaxActiveBlocksPerMultiprocessor).
@pytest.mark.parametrize(
    ("registers", "threads", "shared", "expected"),
    [(46, 32, 0, 32), (26, 256, 0, 8), (40, 128, 16, 12), (64, 256, 8704, 4)],
)
def test_occupancy_is_what_the_driver_says(registers: int, threads: int, shared: int, expected: int) -> None:
    limits = cards.target("h200").limits
    assert cards.occupancy(limits, registers=registers, threads=threads, shared_bytes=shared).ctas_per_sm == expected


def placed(limits: cards.Limits, registers: int, warps: int, shared: int) -> int:
    """CTAs put on an empty multiprocessor one by one: each partition gives registers to a warp in pieces of 256, and
    shared memory goes in units, with what the system keeps for a CTA."""
    of_a_warp = -(-registers * 32 // 256) * 256
    rooms = [limits.registers // 4 // of_a_warp] * 4
    threads, units = limits.threads, limits.shared_bytes // limits.shared_unit_bytes
    of_a_cta = -(-(shared + limits.reserved_bytes_per_cta) // limits.shared_unit_bytes) if shared else 0
    count = 0
    while count < limits.ctas and threads >= 32 * warps and units >= of_a_cta and sum(rooms) >= warps:
        for _ in range(warps):
            rooms[rooms.index(max(rooms))] -= 1
        threads, units, count = threads - 32 * warps, units - of_a_cta, count + 1
    return count


@pytest.mark.parametrize("arch", cards.LIMITS)
def test_occupancy_is_what_can_be_placed(arch: str) -> None:
    limits = cards.LIMITS[arch]
    for registers, warps, shared in itertools.product(range(8, 256, 8), (1, 2, 3, 4, 6, 8), (0, 1, 8448, 33_792)):
        got = cards.occupancy(limits, registers=registers, threads=32 * warps, shared_bytes=shared).ctas_per_sm
        assert got == placed(limits, registers, warps, shared), (registers, warps, shared)


def test_occupancy_names_its_limiter() -> None:
    limits = cards.target("a100").limits

    def limiter(registers: int, threads: int, shared: int) -> str:
        return cards.occupancy(limits, registers=registers, threads=threads, shared_bytes=shared).limiter

    assert limiter(255, 256, 0) == "registers"
    assert limiter(16, 1024, 0) == "threads"
    assert limiter(16, 32, 0) == "CTAs per multiprocessor"
    assert limiter(16, 64, 100 * 1024) == "shared memory"
    assert cards.occupancy(limits, registers=16, threads=64, shared_bytes=164 * 1024).ctas_per_sm == 0
    assert cards.occupancy(limits, registers=255, threads=1024, shared_bytes=0).ctas_per_sm == 0


def test_targets_by_card_and_by_architecture() -> None:
    assert cards.target("H200").arch == cards.target("sm_90").arch == "sm_90a"
    assert cards.target("sm_80").multiprocessors is None
    with pytest.raises(cards.UnknownTarget, match=r"`h201`.*h200"):
        cards.target("h201")


@needs_nvrtc
def test_a_cubin_is_kept_by_content_and_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path))
    made = cache.compiled(TEXT, "t.cu", "sm_90a")
    count = 0
    compile_text = nvrtc.compile_text

    def counted(*arguments: object) -> nvrtc.Compiled:
        nonlocal count
        count += 1
        return compile_text(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(nvrtc, "compile_text", counted)
    again = cache.compiled(TEXT, "t.cu", "sm_90a")
    assert count == 0 and again.cubin == made.cubin and again.ptx == made.ptx
    for other in ((TEXT + " ", "sm_90a", ()), (TEXT, "sm_80", ()), (TEXT, "sm_90a", ("--maxrregcount=40",))):
        cache.compiled(other[0], "t.cu", other[1], other[2])
    assert count == 3 and cache.kept().files == 4
    for file in (tmp_path / "cubins").iterdir():  # a file that was cut short is made anew
        file.write_bytes(file.read_bytes()[:-5])
    assert cache.compiled(TEXT, "t.cu", "sm_90a").cubin and count == 4
    assert (tmp_path / "cubins").stat().st_mode & 0o077 == 0


@needs_nvrtc
def test_the_cache_is_bounded_and_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path))
    cache.compiled(TEXT, "t.cu", "sm_90a")
    limit = cache.kept().bytes * 5 // 2
    monkeypatch.setattr(cache, "MOST_BYTES", limit)
    monkeypatch.setattr(cache, "LOOKS", "0123456789abcdef")
    for i in range(1, 4):
        cache.compiled(TEXT + " " * i, "t.cu", "sm_90a")
    kept = cache.kept()
    assert kept.files == 2 and kept.bytes <= limit
    assert cache.clear() == kept.files and cache.kept().files == 0


def test_a_full_cache_of_small_files_is_looked_through_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path))
    monkeypatch.setattr(cache, "MOST_FILES", 40)
    looks: list[int] = []
    files = cache._files

    def counted() -> list[tuple[str, int, float]]:
        looks.append(1)
        return files()

    monkeypatch.setattr(cache, "_files", counted)
    names = [hashlib.sha256(b"%d" % number).hexdigest() for number in range(399)]
    for at, name in enumerate(names):
        cache.keep_verdict(name, ["PH504"])
        os.utime(tmp_path / "cubins" / name, (at, at))  # clocks of file systems are coarse
    assert len(looks) == sum(name[0] == "0" for name in names) == 33
    looked = max(at for at, name in enumerate(names) if name[0] == "0")
    left = [name for name in names if cache.verdict(name) is not None]
    assert left == names[looked - 39 :]  # 40 at the last look, and what came after


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path / "file"))
    if nvrtc.location() is not None:
        assert cache.compiled(TEXT, "t.cu", "sm_90a").cubin
    assert cache.kept().files == 0


KNOWN = """
fn twice(x: f32) -> f32 {
  return x * 2.0
}

@persistent
@autotune(TILE in [256, 512])
kernel known(X: tensor<f32>[N], BAR: tensor<i32>[2], a: i64) {
  for t in range(ctx.block.x * TILE, N, ctx.blocks.x * TILE) {
    X[t :+ TILE] = X[t :+ TILE] * 0.5
  }
  grid_barrier(BAR)
  X[a] = twice(1.0)
}
"""


def test_a_known_kernel_is_neither_lowered_nor_spelled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from phobos.codegen.emitted import to_bytes
    from phobos.lowering.options import Options
    from phobos.runtime import compiling
    from phobos.runtime.kernel import Kernels

    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path))
    spelled = compiling.spelled
    calls: list[int] = []

    def counted(*arguments: Any) -> Any:
        calls.append(1)
        return spelled(*arguments)

    monkeypatch.setattr(compiling, "spelled", counted)

    def made(text: str = KNOWN, path: str = "a.ph", options: Options = Options(), **constants: int) -> Any:  # noqa: B008
        return compiling.build(*Kernels(path, text)["known"].analysed(constants), options)

    first, again = made(), made()
    assert calls == [1]
    assert to_bytes(first.emitted) == to_bytes(again.emitted) and first.cubin == again.cubin
    assert (first.ptx, first.registers, first.constants) == (again.ptx, again.registers, again.constants)
    others = [
        made("// a line more\n" + KNOWN), made(KNOWN.replace("0.5", "0.25")), made(path="b.ph"), made(TILE=512),
        made(options=Options(debug=True)), made(options=Options(multiples=(("N", 16),))),
        made(options=Options(guards=True)), made(options=Options(vectors=False)), made(options=Options(arch="sm_80")),
    ]  # fmt: skip
    assert len(calls) == 1 + len(others)


SHARING = """
import sys
from phobos.codegen import cache
number = int(sys.argv[1])
for turn in range(60):
    for key in ("same", "other", f"own{number}"):
        name = cache.verdict_key([key])
        found = cache.verdict(name)
        assert found is None or (len(set(found)) == 1 and len(found) == 20000), (key, found and len(found))
        cache.keep_verdict(name, [f"PH{number}"] * 20000)
        found = cache.verdict(name)
        assert found is not None and len(set(found)) == 1 and len(found) == 20000, key
"""


@pytest.mark.parametrize("room", ["syntax", "language", "semantics", "lowering", "codegen", "check"])
def test_every_file_of_the_rooms_that_spell_a_kernel_counts(room: str) -> None:
    """In whatever folder of the room: an edit there makes another text, or another verdict."""
    package = Path(cache.__file__).parents[1]
    known = {line.split(":")[0] for line in cache.package().splitlines()}
    assert known >= {f"/{file.relative_to(package).as_posix()}" for file in (package / room).rglob("*.py")}


def test_many_processes_share_the_cache_and_none_reads_half_a_file(tmp_path: Path) -> None:
    own = {**os.environ, "PHOBOS_CACHE": str(tmp_path)}
    running = [subprocess.Popen([sys.executable, "-c", SHARING, str(n)], env=own) for n in range(4)]
    assert [process.wait(timeout=300) for process in running] == [0] * 4
    assert len(list((tmp_path / "cubins").iterdir())) == 2 + 4  # and nothing half written


def test_another_compiler_makes_another_cubin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path))
    cache.compiled(TEXT, "t.cu", "sm_90a")
    moved = tmp_path / "libnvrtc.so.another"
    moved.write_bytes(b"")
    monkeypatch.setattr(nvrtc, "location", lambda: str(moved))
    cache.compiled(TEXT, "t.cu", "sm_90a")
    monkeypatch.setattr(nvrtc, "FLAGS", (*nvrtc.FLAGS, "--use_fast_math"))
    cache.compiled(TEXT, "t.cu", "sm_90a")
    assert cache.kept().files == 3
