"""One kernel, once by the reference runtime and once as emitted text on the host: the same cells within tolerance.

A `Case` is a kernel with its numbers, for all that run it: the host, a card, schedules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

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


def sixteens(*names: str) -> tuple[tuple[str, int], ...]:
    """Extents that are known to be multiples of 16, as options say it."""
    return tuple((name, 16) for name in sorted(names))


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


@dataclass(frozen=True)
class Case:
    """A kernel with its numbers; where none is said, the grid is the inferred one and the arrays are random."""

    text: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    params: Mapping[str, float] = field(default_factory=dict)
    kernel: str | None = None
    grid: tuple[int, int, int] | None = None
    given: Mapping[str, object] = field(default_factory=dict)
    constants: Mapping[str, int] = field(default_factory=dict)
    orders: tuple[int, ...] = (0, 1, 7)
    options: Options = DEFAULTS
    tolerance: float | None = None

    @property
    def settings(self) -> Settings:
        return Settings(constants=tuple(self.constants.items()))

    @cached_property
    def program(self) -> Program:
        return unit_of(self.text, self.kernel, self.settings)[1].program

    @property
    def numbers(self) -> dict[str, float]:
        return {**self.sizes, **self.params}

    @property
    def blocks(self) -> tuple[int, int, int]:
        return self.grid or blocks_at(self.program, {k: v for k, v in self.numbers.items() if isinstance(v, int)})

    def emitted(self) -> Emitted:
        return emitted(self.text, self.kernel, self.options, self.settings)

    def arrays(self) -> dict[str, numpy.ndarray]:
        """The arguments anew."""
        return arrays_for(self.program, self.sizes, self.given)

    def expected(self) -> dict[str, numpy.ndarray]:
        """The arrays as the reference runtime leaves them."""
        arrays = self.arrays()
        typed = {
            name: TYPES[param.dtype](self.params[name]) if param.dtype in TOLERANCES else self.params[name]
            for name, param in self.program.params.items()
        }
        execute(self.program, arrays, typed, dict(self.sizes), self.blocks, Execution())
        return arrays

    def near(self, name: str, got: numpy.ndarray, want: numpy.ndarray, how: str = "") -> None:
        dtype = self.program.tensors[name].dtype
        if dtype not in TOLERANCES:
            numpy.testing.assert_array_equal(got, want, err_msg=name + how)
            return
        allowed = self.tolerance or TOLERANCES[dtype]
        a, b = got.astype(numpy.float64), want.astype(numpy.float64)
        numpy.testing.assert_allclose(a, b, rtol=allowed, atol=allowed, err_msg=name + how)


def agree(*arguments: Any, **named: Any) -> Emitted:
    """Assert that the host run of a `Case` agrees with the reference, in several orders of threads; gives the emitted
    text."""
    case = Case(*arguments, **named)
    made, expected = case.emitted(), case.expected()
    for order in case.orders:
        arrays = case.arrays()
        host.run(made, arrays, case.numbers, case.blocks, order=order)
        for name, want in expected.items():
            if not any(s.what == "barrier" and s.subject == name for s in made.sites):
                case.near(name, arrays[name], want, f", thread order {order}")
    return made


def read(path: str) -> str:
    return (Path(__file__).resolve().parents[2] / path).read_text()
