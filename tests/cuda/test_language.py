"""The same kernels that tests/codegen runs on the host, feature by feature, on the card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy
import pytest

from phobos.codegen import cards
from phobos.codegen.emitted import Emitted
from phobos.lowering.decide import DEFAULTS
from phobos.lowering.options import Options
from phobos.runtime.cuda import driver
from phobos.runtime.reference.execute import Options as Execution
from phobos.runtime.reference.execute import execute
from tests.codegen import compare
from tests.codegen import test_language as on_host
from tests.codegen.test_language import *  # noqa: F403
from tests.cuda.conftest import case_of

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
    case = case_of(text, sizes, params, kernel, grid, given, constants)
    expected = case.arrays()
    typed = {
        n: compare.TYPES[p.dtype](case.params[n]) if p.dtype in compare.TOLERANCES else case.params[n]
        for n, p in case.program.params.items()
    }
    execute(case.program, expected, typed, case.sizes, case.grid, Execution())
    got = case.launched()
    for name, want in expected.items():
        allowed = tolerance or compare.TOLERANCES.get(case.program.tensors[name].dtype, 0.0)
        numpy.testing.assert_allclose(
            got[name].astype(numpy.float64), want.astype(numpy.float64), rtol=allowed, atol=allowed, err_msg=name
        )
    arch = cards.arch_of(*driver.capability(0))
    return compare.emitted(text, kernel, Options(arch=arch, vectors=options.vectors), case.settings)


@pytest.fixture(autouse=True)
def on_card(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(on_host, "agree", agree_on_card)
    yield
