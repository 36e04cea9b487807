"""lark's parse table for `grammar.lark`.

Building it takes a sixth of a second, reading it a hundredth. So it is kept in the user's cache directory, under a
digest of the grammar and the versions. Without a directory of our own to write to, it is built.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from copy import copy
from hashlib import sha256
from io import BytesIO
from typing import Any

import lark
from lark import Lark
from lark.exceptions import UnexpectedToken as Unexpected
from lark.lexer import Lexer
from lark.parsers.lalr_parser_state import ParserState

from phobos.syntax.memory import cache_file, grammar, replace_file

__all__ = ["STARTS", "Unexpected", "build", "kept", "probe"]

STARTS = [
    "attribute", "kernel_header", "function_header", "simple", "for_header", "while_header", "if_header",
]  # fmt: skip


class Given(Lexer):
    """The lexer that lark sees: it hands over the tokens it is given."""

    def __init__(self, configuration: object) -> None:
        pass

    def lex(self, tokens: Any, parser_state: Any = None) -> Iterator[Any]:
        return iter(tokens)


def build(starts: list[str], transformer: object = None) -> Lark:
    """A parser with these start rules, which makes lark's trees, or what `transformer` makes of them."""
    return Lark(
        grammar(), parser="lalr", lexer=Given, start=starts, transformer=transformer,
        keep_all_tokens=True, maybe_placeholders=False,
    )  # fmt: skip


def kept() -> Lark:
    """The parser of all pieces, from the cache if it is there."""
    file = cache_file("table")
    if file is None:
        return build(STARTS)
    key = _key()
    try:
        with open(file, "rb") as stream:
            if stream.readline() == key:
                return Lark.load(stream)
    except Exception:  # a broken pickle can raise anything, and is made anew
        pass
    parser = build(STARTS)
    content = BytesIO(key)
    content.seek(0, os.SEEK_END)
    parser.save(content)
    replace_file(file, content.getvalue())
    return parser


def _key() -> bytes:
    parts = (grammar(), *STARTS, lark.__version__, sys.version)
    return sha256("\0".join(parts).encode()).hexdigest().encode() + b"\n"


def probe(state: Any) -> Any:
    """A copy of a parser's state that makes nothing, to try tokens on."""
    silent = copy(state.parse_conf)
    silent.callbacks = {}
    return ParserState(silent, state.lexer, list(state.state_stack), [])
