"""Products by NVIDIA's header libraries beside ours: cuBLASDx under NVRTC, CUTLASS under nvcc; what compiling takes.

The headers come from the wheels `nvidia-mathdx` and `nvidia-cutlass`, nvcc and its own from NVIDIA's wheels for CUDA
13 or from a toolkit, and none is a dependency of ours: what is missing is said, with the command that brings it. What
is compiled is kept (`--built`, by default beside the cubins of this user), so that it can be compiled on one machine
and timed on another.
Usage: python benchmarks/headers.py [--built DIR] [--mathdx DIR --cutlass DIR --cuda DIR] [--compile | --no-compile]
(`--mathdx`: the folder with include/cublasdx.hpp; `--cutlass`: with include/cutlass; `--cuda`: a toolkit's root)."""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from figures import Figure, cannot, machine

from phobos.codegen import cache, nvrtc, resources
from phobos.files import put
from phobos.lowering.options import Options
from phobos.runtime.compiling import spelled
from phobos.runtime.kernel import kernel

HERE = Path(__file__).parent
OPPONENTS = HERE / "opponents"
ARCH, CAPABILITY = "sm_90a", (9, 0)  # clusters, bulk copies and wgmma: what these tiles are for
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


@dataclass(frozen=True)
class Note:
    """What compiling took: processor seconds on `processor`, by `compiler`; registers a thread; whose headers."""

    seconds: float
    registers: int
    compiler: str
    processor: str
    headers: str


@dataclass(frozen=True)
class Product:
    """One kernel of a library, for one kind of element (`f32` or `f16`). `macros` are those of its source."""

    library: str
    kind: str
    macros: dict[str, Any]
    source: Path
    ending: str

    @property
    def name(self) -> str:
        tile = " x ".join(str(self.macros[key]) for key in ("BM", "BN", "BK"))
        more = [f"{self.macros[key]} {key.lower()}" for key in ("STAGES", "THREADS") if key in self.macros]
        return ", ".join([f"{self.library} {self.kind}", tile, *more])

    def files(self, folder: Path) -> tuple[Path, Path]:
        """Where the compiled kernel and its note are kept; another source is another file."""
        digest = hashlib.sha256(self.source.read_bytes()).hexdigest()[:8]
        stem = re.sub(r"[^a-z0-9]+", "_", self.name.lower())
        return folder / f"{stem}_{digest}{self.ending}", folder / f"{stem}_{digest}.json"


PRODUCTS = [
    *(Product("cuBLASDx", kind, macros, OPPONENTS / "cublasdx_gemm.cu", ".cubin") for kind, macros in DX),
    *(Product("CUTLASS", kind, macros, OPPONENTS / "cutlass_gemm.cu", ".so") for kind, macros in CUTLASS),
]


# --- what is there to compile with ------------------------------------------------------------------------------


def installed(*parts: str) -> Iterator[Path]:
    """Folders of this name among the installed packages, which these wheels share without an `__init__`."""
    for entry in sys.path:
        folder = Path(entry or ".").joinpath(*parts)
        if folder.is_dir():
            yield folder


def holding(file: str, *folders: Path | None) -> Path | None:
    return next((folder for folder in folders if folder is not None and (folder / file).exists()), None)


@dataclass(frozen=True)
class Given:
    """Where headers and the compiler are, None where they are not."""

    mathdx: Path | None
    cutlass: Path | None
    cuda: Path | None  # with headers
    nvcc: Path | None

    def lack(self, library: str) -> str:
        """What to install before this library can be compiled; empty if nothing."""
        if library == "cuBLASDx":
            needed = {"nvidia-mathdx": self.mathdx, "nvidia-cuda-runtime nvidia-cuda-cccl": self.cuda}
        else:
            wheels = "nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-runtime nvidia-cuda-cccl"
            needed = {"nvidia-cutlass": self.cutlass, wheels: self.nvcc and self.cuda}
        missing = [name for name, found in needed.items() if found is None]
        return f"pip install --no-deps {' '.join(missing)}" if missing else ""


def found(words: argparse.Namespace) -> Given:
    nvcc = shutil.which("nvcc")
    toolkit = Path(nvcc).resolve().parent.parent if nvcc else None
    wheels = [*installed("nvidia", "cu13")]
    cuda = holding("include/cuda_fp16.h", words.cuda, *wheels, toolkit)
    compiler = holding("bin/nvcc", words.cuda, *wheels, toolkit)
    return Given(
        holding("include/cublasdx.hpp", words.mathdx, *installed("nvidia", "mathdx")),
        holding("include/cutlass", words.cutlass, *installed("cutlass_library", "source")),
        cuda, None if compiler is None else compiler / "bin" / "nvcc",
    )  # fmt: skip


def wheel(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return name


# --- compiling --------------------------------------------------------------------------------------------------


def by_nvrtc(given: Given, product: Product, path: Path) -> Note:
    """A cuBLASDx kernel into a cubin."""
    assert given.mathdx is not None and given.cuda is not None
    head = "#include <cuda_fp16.h>\n" + "".join(f"#define {key} {value}\n" for key, value in product.macros.items())
    text = head + "#define TOTAL float\n" + product.source.read_text()
    folders = [
        given.mathdx / "include", given.mathdx / "external" / "cutlass" / "include",
        given.cuda / "include", given.cuda / "include" / "cccl",
    ]  # fmt: skip
    start = time.process_time()
    made = nvrtc.compile_text(
        text, "gemm.cu", ARCH, ["-std=c++17", "-default-device", *(f"-I{folder}" for folder in folders)]
    )
    seconds = time.process_time() - start
    put(str(path), lambda stream: stream.write(made.cubin))
    registers = resources.resources_of(made.cubin, "gemm").registers
    return Note(seconds, registers, _nvrtc(), machine()["processor"], wheel("nvidia-mathdx"))


def by_nvcc(given: Given, product: Product, path: Path) -> Note:
    """A CUTLASS kernel, with the host code that makes its arguments, into a shared library."""
    assert given.cutlass is not None and given.nvcc is not None and given.cuda is not None
    before = os.times()
    unfinished = path.with_suffix(".unfinished.so")
    done = subprocess.run(
        [
            str(given.nvcc), "-std=c++17", "-O3", "-gencode=arch=compute_90a,code=sm_90a",
            "--expt-relaxed-constexpr", "-Xcompiler", "-fPIC", "-shared", "-Xptxas", "-v",
            f"-I{given.cutlass / 'include'}", f"-I{given.cutlass / 'tools' / 'util' / 'include'}",
            f"-I{given.cuda / 'include'}", f"-I{given.cuda / 'include' / 'cccl'}", f"-L{given.cuda / 'lib'}",
            *(f"-D{key}={value}" for key, value in product.macros.items()),
            str(product.source), "-o", str(unfinished),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    if done.returncode:
        raise SystemExit(said)
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    unfinished.replace(path)
    registers = max(int(n) for n in re.findall(r"Used (\d+) registers", said))
    release = subprocess.run([str(given.nvcc), "--version"], capture_output=True, text=True, check=True).stdout
    number = re.search(r"release ([\d.]+)", release)
    compiler = f"nvcc {number[1]}" if number else "nvcc"
    return Note(seconds, registers, compiler, machine()["processor"], wheel("nvidia-cutlass"))


def ours_compiled(kind: str) -> Note:
    """The same for ours, text and cubin."""
    file, tile = OURS[kind]
    module, unit = kernel((HERE / "kernels" / file).read_text()).analysed(tile)
    start = time.process_time()
    text = spelled(module, unit, Options(multiples=(("K", 16), ("M", 16), ("N", 16)))).text
    made = nvrtc.compile_text(text, file, ARCH)
    seconds = time.process_time() - start
    registers = resources.resources_of(made.cubin, "phk_gemm").registers
    return Note(seconds, registers, _nvrtc(), machine()["processor"], "")


def _nvrtc() -> str:
    return "NVRTC {}.{}".format(*nvrtc.version())


def compiled(folder: Path, given: Given, wanted: bool) -> tuple[list[tuple[Product, Path, Note]], list[str]]:
    """The products that are kept in `folder`, or can be compiled into it where that is `wanted`; and of each library
    that is left out why."""
    makers: dict[str, Callable[[Given, Product, Path], Note]] = {"cuBLASDx": by_nvrtc, "CUTLASS": by_nvcc}
    there, why = [], {}
    for product in PRODUCTS:
        path, note = product.files(folder)
        if not (path.is_file() and note.is_file()):
            lack = given.lack(product.library)
            if lack or not wanted:
                why[product.library] = f"{product.library} is not compiled" + (f" ({lack})" if lack else "")
                continue
            print(f"compiling {product.name}", flush=True)
            made = makers[product.library](given, product, path)
            note.write_text(json.dumps(asdict(made)) + "\n", encoding="utf-8")
        there.append((product, path, Note(**json.loads(note.read_text(encoding="utf-8")))))
    return there, list(why.values())


# --- timing -----------------------------------------------------------------------------------------------------


def timed(there: list[tuple[Product, Path, Note]]) -> Iterator[tuple[str, str, float, float]]:
    """Kind, name, TFLOP/s at 4096^3 and what part of cuBLAS that is; each checked first."""
    import cupy
    import numpy
    from gpu_common import micros

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
        library = rate("cuBLAS", lambda g=(a, b, c): cupy.matmul(g[0], g[1], out=g[2]))
        yield kind, "cuBLAS", library, 1.0
        mine = rate("ours", lambda m=made, t=tile, g=(a, b, c): m(*g, constants=t))
        yield kind, "ours", mine, mine / library
        for product, path, _ in there:
            if product.kind == kind:
                reached = rate(product.name, launcher(product, path, a, b, c))
                yield kind, product.name, reached, reached / library


def launcher(product: Product, path: Path, a: Any, b: Any, c: Any) -> Callable[[], None]:
    """C = A B by this kernel, on the current stream."""
    import cupy
    import numpy

    if product.ending == ".so":
        run = ctypes.CDLL(str(path)).run
        run.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int] * 3 + [ctypes.c_void_p]

        def by_its_host_code() -> None:
            status = run(*(one.data.ptr for one in (a, b, c)), N, N, N, cupy.cuda.get_current_stream().ptr)
            assert status == 0, f"{product.name} says {status}"

        return by_its_host_code
    macros = product.macros
    function = cupy.RawModule(path=str(path)).get_function("gemm")
    size = 4 if product.kind == "f32" else 2
    shared = (macros["BM"] + macros["BN"]) * macros["BK"] * size * macros["STAGES"]
    shared = min(shared + 8192 * macros["STAGES"], 227 * 1024)  # its layouts may pad
    function.max_dynamic_shared_size_bytes = shared

    def by_a_launch() -> None:
        extents = tuple(map(numpy.int32, (N, N, N)))
        grid = (N // macros["BN"], N // macros["BM"])
        function(grid, (macros["THREADS"],), (a, b, c, *extents), shared_mem=shared)

    return by_a_launch


def shown(
    rates: list[tuple[str, str, float, float]], notes: dict[str, Note], left_out: list[str]
) -> tuple[list[Figure], list[str]]:
    """Figures, and the table that readers get. `notes` are by name, ours under `ours f32` and `ours f16`."""
    from gpu_common import table

    figures, rows = [], []
    for kind, name, rate, part in rates:
        label = name if name.startswith(("cuBLASDx", "CUTLASS")) else f"{name} {kind}"
        figures.append(Figure(f"{label}, {N}^3", rate, "TFLOP/s", part, "cuBLAS"))
        note = notes.get(label)
        cells: list[object] = ["", "", ""] if note is None else [note.registers, note.seconds, _by(note)]
        rows.append([label, rate, part, *cells])
    figures += [Figure(f"compiling {name}", note.seconds, "s of processor time") for name, note in notes.items()]
    head = [f"C = A B, {N}^3", "TFLOP/s", "of cuBLAS", "registers", "to compile, s", "by"]
    made = table("Every result checked; processor seconds to compile", head, rows)
    return figures, [made, *(f"Left out: {why}.\n" for why in left_out)]


def _by(note: Note) -> str:
    return ", ".join(filter(None, [note.compiler, note.headers, note.processor]))


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("built", "mathdx", "cutlass", "cuda"):
        words.add_argument(f"--{name}", type=Path)
    words.add_argument("--compile", action="store_true", help="compile, and time nothing")
    words.add_argument("--no-compile", action="store_true", help="time what is kept")
    words.add_argument("--json")
    asked = words.parse_args()
    if not asked.compile:
        from phobos.runtime.cuda import driver

        try:
            if driver.capability(0) != CAPABILITY:
                return cannot(f"these kernels are for {ARCH}, and this card is {driver.device_name(0)}")
        except driver.DriverError as error:
            return cannot(str(error))
    folder = asked.built or cache.root() / "bench" / "headers"
    folder.mkdir(parents=True, exist_ok=True)
    there, left_out = compiled(folder, found(asked), not asked.no_compile)
    if not there:
        return cannot("; ".join(left_out))
    notes = {product.name: note for product, _, note in there}
    notes.update((f"ours {kind}", ours_compiled(kind)) for kind in OURS)
    if asked.compile:
        from figures import finish

        finish("Header libraries", [Figure(name, note.seconds, "s of processor time") for name, note in notes.items()])
        return None
    from gpu_common import finish as finish_on_gpu

    figures, tables = shown(list(timed(there)), notes, left_out)
    finish_on_gpu("Header libraries", tables, {}, figures)
    return None


if __name__ == "__main__":
    main()
