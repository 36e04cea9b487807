"""Some of the random kernels of tests/dataflow on a card: `python -m tests.dataflow.card` runs more."""

from __future__ import annotations

import pytest

from tests.dataflow.card import wrong_on_card
from tests.dataflow.generator import generate

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("seed", range(500_000, 500_024))
def test_seeds_agree_on_the_card(seed: int) -> None:
    assert not wrong_on_card(generate(seed))
