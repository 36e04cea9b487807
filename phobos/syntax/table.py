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
from pathlib import Path
from typing import Any

import lark
from lark import Lark
from lark.exceptions import UnexpectedToken as Unexpected
from lark.lexer import Lexer
from lark.parsers.lalr_parser_state import ParserState

__all__ = ["GRAMMAR", "STARTS", "Unexpected", "build", "cache_file", "kept", "probe"]

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


def build(starts: list[str], transformer: object = None) -> Lark:
    """A parser with these start rules, which makes lark's trees, or what `transformer` makes of them."""
    return Lark(
        GRAMMAR.read_text(encoding="utf-8"), parser="lalr", lexer=Given, start=starts, transformer=transformer,
        keep_all_tokens=True, maybe_placeholders=False,
    )  # fmt: skip


def kept() -> Lark:
    """The parser of all pieces, from the cache if it is there."""
    file = cache_file()
    if file is None:
        return build(STARTS)
    key = _key()
    try:
        with file.open("rb") as stream:
            if stream.readline() == key:
                return Lark.load(stream)
    except Exception:  # a broken pickle can raise anything, and is made anew
        pass
    parser = build(STARTS)
    _keep(parser, file, key)
    return parser


def _key() -> bytes:
    parts = (GRAMMAR.read_text(encoding="utf-8"), *STARTS, lark.__version__, sys.version)
    return sha256("\0".join(parts).encode()).hexdigest().encode() + b"\n"


def _keep(parser: Lark, file: Path, key: bytes) -> None:
    """Put the table in its place at once: another process reads the old one or the new one."""
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as stream:
            stream.write(key)
            parser.save(stream)
        temporary.chmod(0o600)
        temporary.replace(file)
    except OSError:
        temporary.unlink(missing_ok=True)


def cache_file() -> Path | None:
    """Where the table is kept; None when there is no place that only this user can write to.

    The file is a pickle, which can run code when it is read: one that somebody else could have put there is not.
    """
    from platformdirs import user_cache_path  # only when something is parsed

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
