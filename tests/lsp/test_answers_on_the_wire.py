"""Answers that are made as JSON, past the library's classes, are what those classes would have written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from lsprotocol import converters, types

from tests.lsp.editors import plain
from tests.lsp.wire import Wire

URI = "file:///code/answers.ph"
TEXT = """// One comment
// and another.
@launch(64)
@aligned(N = 64)
kernel k(X: tensor<f32>[N], s: f32) {
  // Ünï𝄞
  let p = ctx.block.x
  for t in range(p * 64, N, 64) {
    X[t :+ 64] = exp(X[t :+ 64]) * s
  }
}

fn twice(x: f32) -> f32 {
  return x + x
}
"""
RANGE = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
ASKED: list[tuple[str, dict[str, Any], Any]] = [
    ("completion", {"position": {"line": 8, "character": 17}}, types.CompletionResponse),
    ("completion", {"position": {"line": 2, "character": 1}}, types.CompletionResponse),
    ("documentSymbol", {}, types.DocumentSymbolResponse),
    ("foldingRange", {}, types.FoldingRangeResponse),
    ("semanticTokens/full", {}, types.SemanticTokensResponse),
    ("semanticTokens/full/delta", {"previousResultId": "none"}, types.SemanticTokensDeltaResponse),
]
BARE: dict[str, Any] = {}


@pytest.mark.parametrize("editor", ["neovim@0.11", "visual_studio_code", "emacs", "bare"])
def test_an_answer_reads_and_writes_as_the_protocol_has_it(start: Callable[..., Wire], editor: str) -> None:
    wire = start()
    wire.start(BARE if editor == "bare" else plain(editor))
    wire.open(URI, TEXT)
    converter = converters.get_converter()
    for method, params, kind in ASKED:
        result = wire.about(method, URI, **params)
        message = {"jsonrpc": "2.0", "id": 1, "result": result}
        assert converter.unstructure(converter.structure(message, kind)) == message, method
        assert result and (method != "completion" or len(result["items"]) > 5), method
