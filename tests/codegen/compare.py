"""One kernel, once by the reference runtime and once as emitted text on the host: the same cells within tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import ml_dtypes
import numpy

from phobos.codegen.emitted import Emitted
from phobos.codegen.work import emit
from phobos.diagnostic import Span
from phobos.lowering.decide import DEFAULTS, lower
from phobos.lowering.options import Options
from phobos.runtime.reference.execute import Options as Execution
from phobos.runtime.reference.execute import execute
from phobos.semantics import ir
from phobos.semantics.grid import blocks_at
from phobos.semantics.module import Module, Unit, analyse
from phobos.semantics.program import Program, Settings
from tests.codegen import host

TYPES = {
    "f16": numpy.float16, "bf16": ml_dtypes.bfloat16, "f32": numpy.float32, "f64": numpy.float64,
    "i8": numpy.int8, "u8": numpy.uint8, "i32": numpy.int32, "i64": numpy.int64, "bool": numpy.bool_,
}  # fmt: skip
PLAIN = Settings()
TOLERANCES = {"f16": 4e-3, "bf16": 3e-2, "f32": 2e-5, "f64": 1e-5}


def unit_of(text: str, kernel: str | None = None, settings: Settings = PLAIN) -> tuple[Module, Unit]:
    module = analyse("test.ph", text, settings)
    unit = module.kernels[kernel] if kernel else next(iter(module.kernels.values()))
    problems = [p.message for p in unit.program.problems if p.severity == "error"]
    assert not problems, problems
    return module, unit


def emitted(text: str, kernel: str | None = None, options: Options = DEFAULTS, settings: Settings = PLAIN) -> Emitted:
    module, unit = unit_of(text, kernel, settings)

    def line_of(span: Span) -> int:
        return text.count("\n", 0, module.absolute(unit, span).start) + 1

    return emit(lower(unit.program, options), "test.ph", line_of)


def extents(program: Program, tensor: ir.Tensor, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(
        e if isinstance(e, int) else e.value if isinstance(e, ir.Constant) else sizes[e.name] for e in tensor.extents
    )


def arrays_for(
    program: Program, sizes: Mapping[str, int], given: Mapping[str, object], seed: int = 0
) -> dict[str, numpy.ndarray]:
    """Random arrays for every tensor that is not given; barrier tensors and those called zero are zero."""
    random = numpy.random.default_rng(seed)
    made: dict[str, numpy.ndarray] = {}
    for name, tensor in program.tensors.items():
        shape, kind = extents(program, tensor, sizes), TYPES[tensor.dtype]
        if name in given:
            made[name] = numpy.ascontiguousarray(numpy.broadcast_to(numpy.asarray(given[name], kind), shape)).copy()
        elif tensor.dtype == "i32" or name.startswith(("BAR", "NEXT", "ZERO")):
            made[name] = numpy.zeros(shape, kind)
        elif tensor.dtype in ("i8", "u8", "i64"):
            made[name] = random.integers(0, 10, shape).astype(kind)
        elif tensor.dtype == "bool":
            made[name] = random.integers(0, 2, shape).astype(kind)
        else:
            made[name] = (random.random(shape) * 2 - 1).astype(kind)
    return made


def agree(
    text: str,
    sizes: Mapping[str, int] | None = None,
    params: Mapping[str, float] | None = None,
    *,
    kernel: str | None = None,
    grid: tuple[int, int, int] | None = None,
    given: Mapping[str, object] | None = None,
    constants: Mapping[str, int] | None = None,
    orders: tuple[int, ...] = (0, 1, 7),
    options: Options = DEFAULTS,
    tolerance: float | None = None,
) -> Emitted:
    """Assert that the host run agrees with the reference, in several orders of threads; gives the emitted text."""
    sizes, params = dict(sizes or {}), dict(params or {})
    settings = Settings(constants=tuple((constants or {}).items()))
    _, unit = unit_of(text, kernel, settings)
    program = unit.program
    made = emitted(text, kernel, options, settings)
    grid = grid or blocks_at(program, {**sizes, **{k: v for k, v in params.items() if isinstance(v, int)}})
    expected = arrays_for(program, sizes, given or {})
    typed = {n: TYPES[p.dtype](params[n]) if p.dtype in TOLERANCES else params[n] for n, p in program.params.items()}
    execute(program, expected, typed, sizes, grid, Execution())
    for order in orders:
        arrays = arrays_for(program, sizes, given or {})
        host.run(made, arrays, {**sizes, **params}, grid, order=order)
        for name, want in expected.items():
            if any(s.what == "barrier" and s.subject == name for s in made.sites):
                continue
            got = arrays[name]
            allowed = tolerance or TOLERANCES.get(program.tensors[name].dtype, 0.0)
            a, b = got.astype(numpy.float64), want.astype(numpy.float64)
            numpy.testing.assert_allclose(a, b, rtol=allowed, atol=allowed, err_msg=f"{name}, thread order {order}")
    return made


def read(path: str) -> str:
    return (Path(__file__).resolve().parents[2] / path).read_text()
