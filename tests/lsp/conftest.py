"""A server process for a test, ended whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.lsp.wire import Wire


@pytest.fixture
def start() -> Iterator[Callable[..., Wire]]:
    """Starts servers: `start(options, prelude=...)`."""
    wires: list[Wire] = []

    def begin(*options: str, **more: Any) -> Wire:
        wires.append(Wire(options, **more))
        return wires[-1]

    yield begin
    for wire in wires:
        wire.kill()
