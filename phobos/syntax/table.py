"""lark's parse table for `grammar.lark`: built once, then kept in the user's cache directory."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from pathlib import Path
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedToken as Unexpected
from lark.lexer import Lexer
from lark.parsers.lalr_parser_state import ParserState

STARTS = [
    "attribute", "kernel_header", "function_header", "simple", "for_header", "while_header", "if_header",
]  # fmt: skip

_lark: Lark | None = None


class Given(Lexer):
    """The lexer lark sees: the tokens it is given."""

    def __init__(self, configuration: object) -> None:
        pass

    def lex(self, tokens: Iterable[Any], *rest: object) -> Iterable[Any]:
        return tokens


def lark(transformer: object) -> Lark:
    """The parser of all pieces; the first call says who is told of reductions."""
    global _lark
    if _lark is None:
        _lark = load(STARTS, transformer)
    return _lark


def load(starts: list[str], transformer: object) -> Lark:
    grammar = (Path(__file__).parent / "grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar, parser="lalr", lexer=Given, start=starts, transformer=transformer, keep_all_tokens=True,
        maybe_placeholders=False,
    )  # fmt: skip


def probe(state: Any) -> Any:
    """A copy of a parser's state that makes nothing, to try tokens on."""
    silent = copy(state.parse_conf)
    silent.callbacks = {}
    return ParserState(silent, None, list(state.state_stack), [])


__all__ = ["STARTS", "Unexpected", "lark", "load", "probe"]
