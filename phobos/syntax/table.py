"""lark's parse table for `grammar.lark`.

Building it takes a sixth of a second, reading it a hundredth. So lark keeps it in the user's cache directory, under
a digest of grammar, options and versions that it checks. Without a directory of our own to write to, it is built.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedToken as Unexpected
from lark.lexer import Lexer
from lark.parsers.lalr_parser_state import ParserState

__all__ = ["GRAMMAR", "STARTS", "Unexpected", "cache_file", "load", "probe"]

STARTS = [
    "attribute", "kernel_header", "function_header", "simple", "for_header", "while_header", "if_header",
]  # fmt: skip

GRAMMAR = Path(__file__).with_name("grammar.lark")


class Given(Lexer):
    """The lexer that lark sees: it hands over the tokens it is given."""

    def __init__(self, configuration: object) -> None:
        pass

    def lex(self, tokens: Any, parser_state: Any = None) -> Iterator[Any]:
        return iter(tokens)


def load(starts: list[str], transformer: object, cache: Path | None) -> Lark:
    """A parser with these start rules that tells `transformer` of every reduction."""
    return Lark(
        GRAMMAR.read_text(encoding="utf-8"), parser="lalr", lexer=Given, start=starts, transformer=transformer,
        keep_all_tokens=True, maybe_placeholders=False, cache=str(cache) if cache else False,
    )  # fmt: skip


def cache_file() -> Path | None:
    """Where the table is kept; None when there is no place that only this user can write to.

    The file is a pickle, which can run code when it is read: one that somebody else could have put there is not.
    """
    from platformdirs import user_cache_path

    try:
        folder = user_cache_path("phobos-tools", appauthor=False)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = folder / f"syntax-{sys.version_info[0]}.{sys.version_info[1]}.table"
        if file.exists():
            return file if _only_ours(file) and _only_ours(folder) else None
        return file if _only_ours(folder) and os.access(folder, os.W_OK) else None
    except (OSError, RuntimeError):  # RuntimeError: there is no home directory
        return None


def _only_ours(path: Path) -> bool:
    if sys.platform == "win32":  # the cache directory is the user's own there
        return True
    status = path.stat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def probe(state: Any) -> Any:
    """A copy of a parser's state that makes nothing, to try tokens on."""
    silent = copy(state.parse_conf)
    silent.callbacks = {}
    return ParserState(silent, state.lexer, list(state.state_stack), [])
