"""One random kernel by the reference runtime and as emitted text on this machine: what differs, in a sentence.

Kernels are compiled by the dozen into one library, and run in a child process: one that touches memory that is not its
own ends the child, not the run. Around each array lie cells that nobody may touch.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import re
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy

from phobos.codegen.emitted import Emitted
from phobos.codegen.work import emit
from phobos.lowering.decide import lower
from phobos.lowering.on_chip import on_chip_of, rounds_at
from phobos.lowering.options import Options
from phobos.lowering.support import missing
from phobos.runtime.reference.execute import Options as Execution
from phobos.runtime.reference.execute import execute
from phobos.runtime.reference.faults import Fault
from phobos.semantics.grid import evaluate, grid_of
from phobos.semantics.masks import masks_of
from phobos.semantics.module import analyse
from phobos.semantics.multiples import multiples_of
from phobos.semantics.program import Program
from phobos.semantics.schedules import BLOCKED, INTERLEAVED, Schedule, Work, form_of, share_out
from tests.codegen import compare, host
from tests.dataflow.sample import Sample

TRAPS = ("-DALIGNED", "-fsanitize=alignment,bounds,shift,float-cast-overflow", "-fsanitize-undefined-trap-on-error")
ORDERS = (0, 1, 7)
TOLERANCES = {"f16": 1e-3, "bf16": 8e-3, "f32": 1e-5, "f64": 1e-6}
ROUGH = 2e-3  # what is approximate on any device
STOPPED = "the machine stops it: memory that is not its own, an address of no such access, an index outside"
SLOW_SECONDS = 20.0
MARGIN = 64  # cells before and behind an array
Arrays = dict[str, numpy.ndarray]


@dataclass
class Made:
    """A kernel that can be compared: what it starts from, what the reference leaves, and what is emitted."""

    sample: Sample
    program: Program
    want: Arrays
    emitted: Emitted
    work: Work | None


def arrays_of(sample: Sample, program: Program) -> Arrays:
    return {
        name: sample.array(name, tensor.dtype, compare.extents(program, tensor, sample.sizes))
        for name, tensor in program.tensors.items()
    }


def program_of(sample: Sample) -> Program | str:
    """The program, or why there is none."""
    module = analyse("test.ph", sample.text)
    if "k" not in module.kernels:
        return "no kernel"
    program = module.kernels["k"].program
    wrong = [p for p in program.problems if p.severity == "error"]
    return f"{wrong[0].code} {wrong[0].message}" if wrong else program


def most_blocks(sample: Sample, program: Program) -> int:
    """The launch refuses more where masks are left out for it (obligations say so; asking all of them takes long)."""
    if not any(mask is not None and mask.uses_grid for masks in masks_of(program).values() for mask in masks):
        return sample.grid
    grid = grid_of(program)
    found = [evaluate(cap.extent, sample.sizes) for cap in grid.caps]
    for use in grid.axes[0].uses:
        extent, tile = evaluate(use.extent, sample.sizes), evaluate(use.divisor, sample.sizes)
        found.append(-(-extent // tile) if extent is not None and tile else None)
    return min((most for most in found if most is not None), default=sample.grid)


def params_of(sample: Sample, program: Program) -> dict[str, object]:
    return {
        name: compare.TYPES[p.dtype](sample.params[name]) if p.dtype in TOLERANCES else sample.params[name]
        for name, p in program.params.items()
    }


def wanted(sample: Sample, program: Program) -> Arrays | str:
    """What the reference leaves, or the fault. It must leave the same whether it looks for races or not."""
    found: list[Arrays] = []
    for races in (True, False):
        arrays = arrays_of(sample, program)
        options = Execution(races=races, timeout_s=20.0)
        try:
            execute(program, arrays, params_of(sample, program), dict(sample.sizes), (sample.grid, 1, 1), options)  # type: ignore[arg-type]
        except Fault as fault:
            return f"{fault.kind}: {fault.message}"
        found.append(arrays)
    said = unlike(program, found[1], found[0])
    if said:
        raise AssertionError(f"the reference, where it does not look for races, leaves otherwise: {said}")
    return found[0]


def judged(sample: Sample) -> tuple[Program, Arrays] | str:
    """What the reference leaves, or why nothing can be compared: the kernel is wrong, or what it gives is left open."""
    program = program_of(sample)
    if isinstance(program, str):
        return program
    lacking = missing(program)
    if lacking:
        return f"unsupported: {lacking[0].what}"
    if sample.grid > most_blocks(sample, program):
        return "more-blocks: masks are left out because the grid is smaller"
    want = wanted(sample, program)
    return want if isinstance(want, str) else (program, want)


def prepared(sample: Sample) -> Made | str:
    """What to compare, or why that cannot be."""
    found = judged(sample)
    if isinstance(found, str):
        return found
    program, want = found
    work = None
    if sample.workers and not program.is_persistent:
        kind = BLOCKED if sample.seed % 2 else INTERLEAVED
        work = share_out(Schedule(kind, 1), [[(sample.grid, 1, 1)]], sample.workers)
        work = None if form_of(work) is None else work
    multiples = multiples_of(program, sample.sizes) if sample.specialised else ()
    keep: tuple[tuple[str, int], ...] = ()
    if program.is_persistent and sample.seed % 4:
        numbers = {**sample.sizes, **{n: int(v) for n, v in sample.params.items()}}
        rounds = {kept.tensor.name: rounds_at(kept, numbers, sample.grid) for kept in on_chip_of(program).kept}
        keep = tuple((name, count) for name, count in rounds.items() if count is not None and 0 < count <= 8)
    options = Options(
        arch=sample.arch, vectors=sample.vectors, multiples=multiples, keep=keep, form=form_of(work) if work else None
    )
    return Made(sample, program, want, emit(lower(program, options), "test.ph", lambda span: 1), work)


# --- compiled together -------------------------------------------------------------------------------------


def library(many: Sequence[Made]) -> ctypes.CDLL:
    """The kernels of a dozen, `run_kernel_3` the fourth."""
    parts = ['#include "host.h"\n']
    for number, one in enumerate(many):
        text = host.host_text(one.emitted).replace('#include "host.h"\n', "", 1)
        text = re.sub(r"\brun_kernel\b", f"run_kernel_{number}", text)
        text = re.sub(rf"\b{re.escape(one.emitted.symbol)}\b", f"kernel_{number}", text)
        parts.append(f"namespace n{number} {{\n{text}\n}}\n")
    return host.library("".join(parts), "-O0", "-fno-strict-aliasing", "-fwrapv", *TRAPS)


class One:
    """A kernel of a library, as `host.run` asks for one."""

    def __init__(self, whole: ctypes.CDLL, number: int) -> None:
        self.run_kernel = getattr(whole, f"run_kernel_{number}")


def fenced(array: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """A copy with cells around it that nobody may touch; (all, copy)."""
    size = array.itemsize
    around = numpy.frombuffer(bytearray(b"\x5a" * (array.nbytes + 2 * MARGIN * size + 16)), numpy.uint8).copy()
    start = MARGIN * size
    start += -(around.ctypes.data + start) % 16
    inside = around[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    inside[...] = array
    return around, inside


def difference(one: Made, whole: ctypes.CDLL, number: int, order: int) -> str:
    """What a run in that order of threads leaves otherwise than the reference; "" for nothing."""
    held = {name: fenced(array) for name, array in arrays_of(one.sample, one.program).items()}
    arrays = {name: inside for name, (_, inside) in held.items()}
    kept = host.build
    host.build = lambda emitted: One(whole, number)  # type: ignore[assignment,return-value]
    try:
        numbers = {**one.sample.sizes, **one.sample.params}
        host.run(one.emitted, arrays, numbers, (one.sample.grid, 1, 1), order=order, work=one.work, limit=4_000_000)
    except host.Stuck:
        return "it does not end"
    finally:
        host.build = kept
    for name, (around, inside) in held.items():
        first = inside.ctypes.data - around.ctypes.data
        if (around[:first] != 0x5A).any() or (around[first + inside.nbytes :] != 0x5A).any():
            return f"{name}: stored outside"
    return unlike(one.program, arrays, one.want)


def unlike(program: Program, got: Mapping[str, numpy.ndarray], wanted: Mapping[str, numpy.ndarray]) -> str:
    """The first tensor whose cells are not what is wanted, with its first such cell."""
    for name, want in wanted.items():
        if name == "BAR":
            continue
        dtype = program.tensors[name].dtype
        allowed = ROUGH if name == "APX" else TOLERANCES.get(dtype, 0.0)
        with numpy.errstate(all="ignore"):
            if allowed:
                a, b = got[name].astype(numpy.float64), want.astype(numpy.float64)
                wrong = ~numpy.isclose(a, b, rtol=allowed, atol=allowed, equal_nan=True)
            else:
                wrong = got[name] != want
        if wrong.any():
            at = tuple(int(i) for i in numpy.argwhere(wrong)[0])
            return f"{name}{list(at)} is {got[name][at]}, not {want[at]} ({int(wrong.sum())} cells)"
    return ""


def differences(many: Sequence[Made]) -> Iterator[tuple[Made, str]]:
    """What each of them does wrong in some order of threads; "" for nothing."""
    try:
        whole = library(many)
    except AssertionError as error:
        if len(many) == 1:
            yield many[0], "it does not compile: " + str(error)[:600]
            return
        for one in many:
            yield from differences([one])
        return
    start = 0
    while start < len(many):
        for said in _in_child(many, whole, start):
            yield many[start], said
            start += 1


def _in_child(many: Sequence[Made], whole: ctypes.CDLL, start: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "said"
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException), path.open("wb", buffering=0) as file:
                for number in range(start, len(many)):
                    signal.setitimer(signal.ITIMER_VIRTUAL, SLOW_SECONDS)
                    found = ""
                    for order in ORDERS:
                        try:
                            found = difference(many[number], whole, number, order)
                        except Exception as error:
                            found = f"running it raises {type(error).__name__}: {error}"
                        if found:
                            found += f", thread order {order}"
                            break
                    pickle.dump(found, file)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        said: list[str] = []
        with path.open("rb") as file, contextlib.suppress(EOFError):
            while True:
                said.append(pickle.load(file))
        if start + len(said) < len(many):  # the child ended at the next one
            slow = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGVTALRM
            said.append("" if slow else STOPPED)  # too much work for fibers: what does not end is told by its rounds
        return said


def wrong_with(sample: Sample) -> str:
    """Of one kernel alone; "" where nothing is wrong or it cannot be compared."""
    try:
        made = prepared(sample)
    except Exception as error:  # what the passes or the emitter do not survive
        return f"raises {type(error).__name__}: {error}"
    return "" if isinstance(made, str) else next(differences([made]))[1]


def kind_of(said: str) -> str:
    """What two differences of one kernel have in common, for the shrinker."""
    for word in ("does not compile", "does not end", "the machine stops", "stored outside", "raises"):
        if word in said:
            return word
    return "differs" if said else ""


def smaller(sample: Sample, text: str) -> Sample:
    return replace(sample, text=text)
