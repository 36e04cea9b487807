"""The same kernels that tests/codegen runs on the host, feature by feature, on the card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy
import pytest

from phobos.codegen import cards
from phobos.codegen.emitted import Emitted
from phobos.lowering.decide import DEFAULTS
from phobos.lowering.options import Options
from phobos.runtime.cuda import driver, launch
from phobos.runtime.cuda.memory import DeviceArray
from phobos.runtime.kernel import kernel as kernel_of
from phobos.runtime.reference.execute import Options as Execution
from phobos.runtime.reference.execute import execute
from phobos.semantics.grid import blocks_at
from phobos.semantics.program import Settings
from tests.codegen import compare
from tests.codegen import test_language as on_host
from tests.codegen.test_language import *  # noqa: F403

pytestmark = pytest.mark.gpu


def agree_on_card(
    text: str,
    sizes: Mapping[str, int] | None = None,
    params: Mapping[str, float] | None = None,
    *,
    kernel: str | None = None,
    grid: tuple[int, int, int] | None = None,
    given: Mapping[str, object] | None = None,
    constants: Mapping[str, int] | None = None,
    orders: tuple[int, ...] = (),
    options: Options = DEFAULTS,
    tolerance: float | None = None,
) -> Emitted:
    sizes, params = dict(sizes or {}), dict(params or {})
    settings = Settings(constants=tuple((constants or {}).items()))
    _, unit = compare.unit_of(text, kernel, settings)
    program = unit.program
    grid = grid or blocks_at(program, {**sizes, **{k: v for k, v in params.items() if isinstance(v, int)}})
    expected = compare.arrays_for(program, sizes, given or {})
    typed = {
        n: compare.TYPES[p.dtype](params[n]) if p.dtype in compare.TOLERANCES else params[n]
        for n, p in program.params.items()
    }
    execute(program, expected, typed, sizes, grid, Execution())
    arrays = {n: DeviceArray(a, 0) for n, a in compare.arrays_for(program, sizes, given or {}).items()}
    made = kernel_of(text, kernel)
    where = grid[0] if program.is_persistent else grid
    made(**arrays, **params, constants=dict(constants or {}), grid=where, timeout=20.0, unchecked=True)
    launch.synchronize()
    for name, want in expected.items():
        allowed = tolerance or compare.TOLERANCES.get(program.tensors[name].dtype, 0.0)
        got = arrays[name].numpy()
        numpy.testing.assert_allclose(
            got.astype(numpy.float64), want.astype(numpy.float64), rtol=allowed, atol=allowed, err_msg=name
        )
    arch = cards.arch_of(*driver.capability(0))
    return compare.emitted(text, kernel, Options(arch=arch, vectors=options.vectors), settings)


@pytest.fixture(autouse=True)
def on_card(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(on_host, "agree", agree_on_card)
    yield
