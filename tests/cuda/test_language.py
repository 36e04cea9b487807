"""The same kernels that tests/codegen runs on the host, feature by feature, on the card."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from phobos.codegen import cards
from phobos.codegen.emitted import Emitted
from phobos.lowering.options import Options
from phobos.runtime.cuda import driver
from tests.codegen import compare, test_flat, test_language, test_numbers
from tests.codegen.test_flat import *  # noqa: F403
from tests.codegen.test_language import *  # noqa: F403
from tests.codegen.test_numbers import *  # noqa: F403
from tests.cuda.conftest import launched

pytestmark = pytest.mark.gpu


def agree_on_card(*arguments: Any, **named: Any) -> Emitted:
    case = compare.Case(*arguments, **named)
    got = launched(case)
    for name, want in case.expected().items():
        case.near(name, got[name], want)
    arch = cards.arch_of(*driver.capability(0))
    return replace(case, options=Options(arch=arch, vectors=case.options.vectors)).emitted()


@pytest.fixture(autouse=True)
def on_card(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for on_host in (test_flat, test_language, test_numbers):
        monkeypatch.setattr(on_host, "agree", agree_on_card)
    yield
