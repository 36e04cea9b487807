"""`textDocument/semanticTokens/full`, `/full/delta` and `/range`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from lsprotocol import types

from phobos.ide.coloring import MODIFIERS, TYPES, Token, tokens
from phobos.lsp.convert import Converter, Ready, converter
from phobos.lsp.server import Server
from phobos.lsp.session import Opened

LEGEND = types.SemanticTokensLegend(token_types=list(TYPES), token_modifiers=list(MODIFIERS))
_TYPE = {name: number for number, name in enumerate(TYPES)}
_MODIFIER = {name: 1 << number for number, name in enumerate(MODIFIERS)}


def register(server: Server) -> None:
    session = server.session
    count = 0

    def all_of(document: Opened) -> tuple[str, list[int]]:
        """The tokens of the whole document under a new result id, kept for the next delta."""
        nonlocal count
        count += 1
        data = encode(converter(session, document), tokens(session.analysed(document)))
        document.tokens = (str(count), data)
        return document.tokens

    @server.serve(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, LEGEND)
    def full(params: types.SemanticTokensParams) -> Ready | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        result_id, data = all_of(document)
        return Ready({"resultId": result_id, "data": data})

    @server.serve(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL_DELTA)
    def delta(params: types.SemanticTokensDeltaParams) -> Ready | types.SemanticTokensDelta | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        before = document.tokens
        result_id, data = all_of(document)
        if before is None or before[0] != params.previous_result_id:
            return Ready({"resultId": result_id, "data": data})
        return types.SemanticTokensDelta(edits=difference(before[1], data), result_id=result_id)

    @server.serve(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE)
    def ranged(params: types.SemanticTokensRangeParams) -> types.SemanticTokens | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        to = converter(session, document)
        found = tokens(session.analysed(document), to.offsets(params.range))
        return types.SemanticTokens(data=encode(to, found))


def encode(to: Converter, found: Iterable[Token]) -> list[int]:
    """Five numbers a token: lines and columns are differences from the token before."""
    data: list[int] = []
    line = column = row = 0
    lines, encoding = to.lines, to.encoding
    starts = lines.starts
    code_points = encoding == "utf-32" or lines.text.isascii()
    for token in found:  # in order, each within a line: one walk over the lines serves all
        while row + 1 < len(starts) and starts[row + 1] <= token.start:
            row += 1
        if code_points:
            start, length = token.start - starts[row], token.length
        else:
            start = lines.position(token.start, encoding)[1]
            length = lines.position(token.start + token.length, encoding)[1] - start
        since = start - column if row == line else start
        data += (row - line, since, length, _TYPE[token.type], _bits(token.modifiers))
        line, column = row, start
    return data


@cache
def _bits(modifiers: tuple[str, ...]) -> int:
    return sum(_MODIFIER[modifier] for modifier in modifiers)


def difference(before: list[int], after: list[int]) -> list[types.SemanticTokensEdit]:
    """One edit from the first number that differs to the last."""
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and before[start] == after[start]:
        start += 1
    end = 0
    while end < shorter - start and before[-1 - end] == after[-1 - end]:
        end += 1
    deleted = len(before) - end - start
    inserted = after[start : len(after) - end]
    if not deleted and not inserted:
        return []
    return [types.SemanticTokensEdit(start=start, delete_count=deleted, data=inserted)]
