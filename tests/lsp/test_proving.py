"""What the child says that replays findings, and what becomes of it where it says something else."""

from __future__ import annotations

import asyncio
import logging
import sys

import pytest

from phobos.lsp import proving
from phobos.lsp.client import Settings
from phobos.syntax.lines import LineIndex


@pytest.mark.parametrize("said", ["", "Segmentation fault", "3", '["PH203"]', '[{"code": "PH203"}]'])
def test_a_child_that_gives_no_findings_is_told_of_in_the_log(
    said: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(proving, "command", lambda *words: [sys.executable, "-c", f"print({said!r})"])
    with caplog.at_level(logging.ERROR, "phobos.lsp"):
        assert asyncio.run(proving.prove("k.ph", "", LineIndex(""), Settings())) is None
    (record,) = caplog.records
    assert record.exc_info is None and f"gave no list of findings: {said}" in record.message
