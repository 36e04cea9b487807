"""Random edits and orders of messages: after each the server answers as a fresh one that only saw the last text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phobos.syntax.lines import LineIndex
from tests.lsp.editors import plain
from tests.lsp.wire import Wire

PIECES = (
    "kernel k(X: tensor<f32>[N], BAR: tensor<i32>[2]) {\n", "}\n", "  let p = ctx.block.x\n", "@persistent\n", "{", "(",
    "  if p == 0 {\n", "    grid_barrier(BAR)\n", "  X[p :+ 8] = 1.0\n", "fn f(x: f32) -> f32 {\n  return x\n}\n", "𝛼",
    "@autotune(T in [64])\n", "// phobos: ignore[PH203]\n", "\r\n", "\u2028", "X[f(p)] = ", "ß", " ", "\t", "\x0c", "",
    "for t in range(p * T, N, ctx.blocks.x * T) {\n", "let", ";", "]",
)  # fmt: skip
URIS = ("file:///code/r/a.ph", "file:///c%3A/r/b.ph")

texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@st.composite
def edits(draw: st.DrawFn) -> tuple[Any, ...]:
    """(kind, document, ...): an edit by fractions of the text, or a message in between."""
    uri = draw(st.sampled_from(URIS))
    kind = draw(st.sampled_from(("edit", "edit", "edit", "replace", "open", "close", "save", "ask", "cancel")))
    match kind:
        case "edit":
            return kind, uri, draw(st.floats(0, 1)), draw(st.integers(0, 20)), draw(st.sampled_from(PIECES))
        case "replace" | "open":
            return kind, uri, draw(texts)
        case "ask":
            return kind, uri, draw(st.sampled_from(("hover", "completion", "definition", "signatureHelp")))
        case _:
            return kind, uri


class Mirror:
    """What each open document must hold, and the messages that make the server hold it."""

    def __init__(self, wire: Wire, encoding: str) -> None:
        self.wire = wire
        self.encoding = encoding
        self.texts: dict[str, str] = {}
        self.version = 0

    def do(self, step: tuple[Any, ...]) -> None:
        kind, uri = step[:2]
        self.version += 1
        match kind:
            case "open":
                self.texts[uri] = step[2]
                self.wire.open(uri, step[2], self.version)
            case "close":
                self.texts.pop(uri, None)
                self.wire.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
            case "save":
                self.wire.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
            case "cancel":
                self.wire.notify("$/cancelRequest", {"id": self.version})
            case "ask":
                self.wire.at(step[2], uri, self.version % 5, self.version % 9)
            case "replace":
                self.texts[uri] = step[2]
                self.wire.change(uri, self.version, {"text": step[2]})
            case "edit":
                self.edit(uri, *step[2:])

    def edit(self, uri: str, where: float, length: int, content: str) -> None:
        text = self.texts.get(uri, "")
        lines = LineIndex(text)
        start = _between_characters(text, int(where * len(text)))
        end = _between_characters(text, min(len(text), start + length))
        place = [lines.position(offset, self.encoding) for offset in (start, end)]  # type: ignore[arg-type]
        first, last = ({"line": row, "character": column} for row, column in place)
        self.wire.change(uri, self.version, {"range": {"start": first, "end": last}, "text": content})
        self.texts[uri] = text[:start] + content + text[end:]


def _between_characters(text: str, offset: int) -> int:
    """An offset that a client can name: inside `\\r\\n` there is no position."""
    return offset - 1 if 0 < offset < len(text) and text[offset - 1 : offset + 1] == "\r\n" else offset


def answers(wire: Wire, uri: str) -> list[str]:
    """Everything that depends on the whole text, without numbers that count requests."""
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 10**5, "character": 0}}
    found = [
        wire.about("diagnostic", uri)["items"],
        wire.about("documentSymbol", uri),
        wire.about("foldingRange", uri),
        (wire.about("semanticTokens/full", uri) or {}).get("data"),
        wire.about("inlayHint", uri, range=whole),
        wire.about("documentLink", uri),
        wire.at("completion", uri, 2, 3),
        wire.at("hover", uri, 1, 7),
    ]
    return [json.dumps(one, sort_keys=True) for one in found]


@pytest.fixture(scope="module", params=["vscode", "neovim"])
def servers(request: pytest.FixtureRequest) -> Iterator[tuple[Wire, Wire, str]]:
    """The one that lives through everything, and the one that only ever opens a text and closes it."""
    pair = (Wire(), Wire())
    for wire in pair:
        wire.answer = lambda asked: [{}] if asked["method"] == "workspace/configuration" else None
        wire.start(plain(request.param))
    yield *pair, "utf-16" if request.param == "vscode" else "utf-8"
    for wire in pair:
        wire.kill()


@settings(max_examples=25)
@given(st.lists(edits(), min_size=1, max_size=14))
def test_any_order_of_edits_is_the_last_text(servers: tuple[Wire, Wire, str], steps: list[tuple[Any, ...]]) -> None:
    living, fresh, encoding = servers
    mirror = Mirror(living, encoding)
    try:
        for step in steps:
            mirror.do(step)
        for uri, text in mirror.texts.items():
            fresh.open(uri, text)
            assert answers(living, uri) == answers(fresh, uri), text
            fresh.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    finally:
        for uri in URIS:
            living.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


@settings(max_examples=25)
@given(st.lists(edits(), min_size=1, max_size=8))
def test_a_delta_of_tokens_is_the_difference(servers: tuple[Wire, Wire, str], steps: list[tuple[Any, ...]]) -> None:
    living, _, encoding = servers
    mirror = Mirror(living, encoding)
    uri = URIS[0]
    mirror.do(("open", uri, "kernel k(X: tensor<f32>[N]) {\n  let p = ctx.block.x\n  X[p] = 1.0\n}\n"))
    try:
        known = living.about("semanticTokens/full", uri)
        data = known["data"]
        for step in steps:
            if step[1] != uri or step[0] == "close":
                continue
            mirror.do(step)
            answer = living.about("semanticTokens/full/delta", uri, previousResultId=known["resultId"])
            if "edits" in answer:
                for edit in answer["edits"]:
                    data[edit["start"] : edit["start"] + edit["deleteCount"]] = edit.get("data") or []
            else:
                data = answer["data"]
            known = living.about("semanticTokens/full", uri)
            assert data == known["data"]
    finally:
        living.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
