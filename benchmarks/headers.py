"""Products by NVIDIA's header libraries beside ours: cuBLASDx under NVRTC, CUTLASS under nvcc; what compiling takes.

The headers come from the wheels `nvidia-mathdx` and `nvidia-cutlass`, and are no dependency of ours. What is compiled
is kept in `--built`, so that it can be compiled on one machine and timed on another.
Usage: python benchmarks/headers.py --built DIR [--mathdx DIR --cutlass DIR --cuda DIR] [--compile] [--json FILE]
(`--mathdx`: the folder with include/cublasdx.hpp; `--cutlass`: with include/cutlass; `--cuda`: a toolkit's root)."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

from figures import Figure

from phobos.codegen import nvrtc, resources
from phobos.lowering.options import Options
from phobos.runtime.compiling import spelled
from phobos.runtime.kernel import kernel

HERE = Path(__file__).parent
N = 4096
# Tiles of each library for these products; the dictionaries are the macros of the sources.
DX = [
    ("f16", {"TYPE": "half", "BM": 128, "BN": 128, "BK": 32, "STAGES": 4, "THREADS": 256}),
    ("f16", {"TYPE": "half", "BM": 128, "BN": 256, "BK": 32, "STAGES": 4, "THREADS": 256}),
    ("f16", {"TYPE": "half", "BM": 128, "BN": 256, "BK": 64, "STAGES": 3, "THREADS": 256}),
    ("f32", {"TYPE": "float", "BM": 128, "BN": 256, "BK": 16, "STAGES": 3, "THREADS": 256}),
]
CUTLASS = [
    ("f32", {"BM": 128, "BN": 128, "BK": 8, "WM": 64, "WN": 64, "STAGES": 4, "SWIZZLE": 4}),
    ("f16", {"HALF": 1, "BM": 128, "BN": 256, "BK": 64, "CLUSTER_M": 2, "CLUSTER_N": 1, "SWIZZLE": 8}),
]
OURS = {"f32": ("gemm_f32.ph", {"BM": 128, "BN": 256, "BK": 16}), "f16": ("gemm.ph", {"BM": 128, "BN": 256, "BK": 64})}


def name_of(library: str, kind: str, macros: dict[str, Any]) -> str:
    tile = " x ".join(str(macros[key]) for key in ("BM", "BN", "BK"))
    more = [f"{macros[key]} {key.lower()}" for key in ("STAGES", "THREADS") if key in macros]
    return ", ".join([f"{library} {kind}", tile, *more])


def _kept(folder: Path, name: str, ending: str) -> tuple[Path, Path]:
    stem = re.sub(r"[^a-z0-9]+", "_", name.lower())
    return folder / f"{stem}{ending}", folder / f"{stem}.json"


def by_nvrtc(words: argparse.Namespace, kind: str, macros: dict[str, Any]) -> tuple[Path, dict[str, Any]]:
    """The cubin of a cuBLASDx kernel, and what compiling it took."""
    path, note = _kept(words.built, name_of("cuBLASDx", kind, macros), ".cubin")
    if not path.is_file():
        head = "#include <cuda_fp16.h>\n" + "".join(f"#define {key} {value}\n" for key, value in macros.items())
        text = head + "#define TOTAL float\n" + (HERE / "opponents" / "cublasdx_gemm.cu").read_text()
        folders = [
            words.mathdx / "include", words.mathdx / "external" / "cutlass" / "include",
            words.cuda / "include", words.cuda / "include" / "cccl",
        ]  # fmt: skip
        start = time.process_time()
        made = nvrtc.compile_text(
            text, "gemm.cu", "sm_90a", ["-std=c++17", "-default-device", *(f"-I{folder}" for folder in folders)]
        )
        seconds = time.process_time() - start
        path.write_bytes(made.cubin)
        found = resources.resources_of(made.cubin, "gemm")
        note.write_text(json.dumps({"seconds": seconds, "registers": found.registers, "local": found.local_bytes}))
    return path, json.loads(note.read_text())


def by_nvcc(words: argparse.Namespace, kind: str, macros: dict[str, Any]) -> tuple[Path, dict[str, Any]]:
    """The shared library of a CUTLASS kernel with the host code that makes its arguments, and what it took."""
    path, note = _kept(words.built, name_of("CUTLASS", kind, macros), ".so")
    if not path.is_file():
        before = os.times()
        done = subprocess.run(
            [
                str(words.cuda / "bin" / "nvcc"), "-std=c++17", "-O3", "-gencode=arch=compute_90a,code=sm_90a",
                "--expt-relaxed-constexpr", "-Xcompiler", "-fPIC", "-shared", "-Xptxas", "-v",
                f"-I{words.cutlass / 'include'}", f"-I{words.cutlass / 'tools' / 'util' / 'include'}",
                f"-I{words.cuda / 'include' / 'cccl'}", f"-L{words.cuda / 'lib'}",
                *(f"-D{key}={value}" for key, value in macros.items()),
                str(HERE / "opponents" / "cutlass_gemm.cu"), "-o", str(path),
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        after = os.times()
        seconds = after.children_user + after.children_system - before.children_user - before.children_system
        registers = max(int(n) for n in re.findall(r"Used (\d+) registers", done.stdout + done.stderr))
        note.write_text(json.dumps({"seconds": seconds, "registers": registers, "local": 0}))
    return path, json.loads(note.read_text())


def ours_compiled(kind: str) -> dict[str, Any]:
    """The same for ours, text and cubin."""
    file, tile = OURS[kind]
    module, unit = kernel((HERE / "kernels" / file).read_text()).analysed(tile)
    start = time.process_time()
    text = spelled(module, unit, Options(multiples=("K", "M", "N"))).text
    made = nvrtc.compile_text(text, file, "sm_90a")
    seconds = time.process_time() - start
    found = resources.resources_of(made.cubin, "phk_gemm")
    return {"seconds": seconds, "registers": found.registers, "local": found.local_bytes}


def compiled(words: argparse.Namespace) -> list[tuple[str, str, Path, dict[str, Any], dict[str, Any]]]:
    """All of them; without the headers, those that are built already."""
    found = []
    for library, kinds, ending, headers, make in (
        ("cuBLASDx", DX, ".cubin", words.mathdx, by_nvrtc),
        ("CUTLASS", CUTLASS, ".so", words.cutlass, by_nvcc),
    ):
        for kind, macros in kinds:
            if headers is None and not _kept(words.built, name_of(library, kind, macros), ending)[0].is_file():
                print(f"{name_of(library, kind, macros)}: not built, and its headers are not given", flush=True)
                continue
            found.append((library, kind, *make(words, kind, macros), macros))
    return found


def timed(found: list[tuple[str, str, Path, dict[str, Any], dict[str, Any]]]) -> list[Figure]:
    """TFLOP/s at 4096^3, each checked first."""
    import cupy
    import numpy
    from gpu_common import micros

    figures = []
    for kind in ("f32", "f16"):
        dtype = numpy.float32 if kind == "f32" else numpy.float16
        a, b = ((cupy.random.rand(N, N, dtype=numpy.float32) - 0.5).astype(dtype) for _ in range(2))
        c = cupy.zeros((N, N), dtype)
        want = a[-256:].astype(numpy.float32) @ b.astype(numpy.float32)

        def rate(name: str, work: Any, c: Any = c, want: Any = want, kind: str = kind) -> float:
            c.fill(numpy.nan)
            work()
            error = float(cupy.abs(c[-256:].astype(numpy.float32) - want).max() / cupy.abs(want).max())
            assert error < (1e-5 if kind == "f32" else 3e-3), f"{name} is wrong by {error}"
            return 2 * N**3 / micros(work, repeat=8, warm=2, inner=5, captured=False) / 1e6

        file, tile = OURS[kind]
        made = kernel((HERE / "kernels" / file).read_text())
        mine = rate("ours", lambda m=made, t=tile, g=(a, b, c): m(*g, constants=t))
        library = rate("cuBLAS", lambda g=(a, b, c): cupy.matmul(g[0], g[1], out=g[2]))
        figures += [Figure(f"{kind} 4096^3, ours", mine, "TFLOP/s", mine / library, "cuBLAS")]
        figures += [Figure(f"{kind} 4096^3, cuBLAS", library, "TFLOP/s")]
        for name, of, path, note, macros in found:
            if of != kind:
                continue
            label = name_of(name, kind, macros)
            if name == "CUTLASS":
                run = ctypes.CDLL(str(path)).run
                run.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int] * 3 + [ctypes.c_void_p]

                def work(run: Any = run, g: Any = (a, b, c)) -> None:
                    status = run(*(one.data.ptr for one in g), N, N, N, cupy.cuda.get_current_stream().ptr)
                    assert status == 0, f"CUTLASS says {status}"

            else:
                function = cupy.RawModule(path=str(path)).get_function("gemm")
                size = 4 if kind == "f32" else 2
                shared = (macros["BM"] + macros["BN"]) * macros["BK"] * size * macros["STAGES"]
                shared = min(shared + 8192 * macros["STAGES"], 227 * 1024)  # its layouts may pad
                function.max_dynamic_shared_size_bytes = shared

                def work(f: Any = function, m: Any = macros, s: int = shared, g: Any = (a, b, c)) -> None:
                    size = tuple(map(numpy.int32, (N, N, N)))
                    f((N // m["BN"], N // m["BM"]), (m["THREADS"],), (*g, *size), shared_mem=s)

            reached = rate(label, work)
            figures.append(Figure(label, reached, "TFLOP/s", reached / library, "cuBLAS"))
            print(f"{label}: {reached:.1f} TFLOP/s; {note}", flush=True)
    return figures


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("built", "mathdx", "cutlass", "cuda"):
        words.add_argument(f"--{name}", type=Path, required=name == "built")
    words.add_argument("--compile", action="store_true")
    words.add_argument("--json")
    given = words.parse_args()
    given.built.mkdir(parents=True, exist_ok=True)
    found = compiled(given)
    figures = [
        Figure(f"compiling {name_of(library, kind, macros)}", note["seconds"], "s of processor time")
        for library, kind, _, note, macros in found
    ]
    for kind in OURS:
        figures.append(Figure(f"compiling ours, {kind}", ours_compiled(kind)["seconds"], "s of processor time"))
    if given.compile:
        from figures import finish

        finish("Header libraries", figures)
        return
    from gpu_common import finish as finish_on_gpu

    finish_on_gpu("Header libraries", [], {}, [*figures, *timed(found)])


if __name__ == "__main__":
    main()
