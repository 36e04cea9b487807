"""Shapes that earlier processes learnt, kept in the user's cache directory.

A command that meets only shapes it has met before does not import lark, which is a fifth of its time. What is kept
are the steps of pieces that parse; it is read when the first shape is wanted, and written at exit when some were new.
A file of another version, another grammar or another owner is not read; no place to write is no reason to fail.
"""

from __future__ import annotations

import atexit
import marshal
import os
import sys
from pathlib import Path
from typing import Any

from phobos.syntax import build
from phobos.syntax.shapes import Shape
from phobos.syntax.tokens import TERMINALS

__all__ = ["cache_file", "recall", "remember"]

GRAMMAR = Path(__file__).with_name("grammar.lark")

Key = tuple[str, str]
_Kept = dict[Key, tuple[int, tuple[tuple[str, tuple[int, ...]], ...]]]  # depth, and rule and values of each step

_FORMAT = 1
_MOST = 4_000
_LONGEST = 200  # tokens

_kept: _Kept | None = None
_added: _Kept = {}


def recall(key: Key) -> Shape | None:
    """The shape of a piece, if an earlier process learnt it."""
    global _kept
    if _kept is None:
        _kept = _read()
    found = _kept.get(key)
    if found is None:
        return None
    depth, steps = found
    count = len(key[1])
    return Shape(tuple((build.RULES[rule], values) for rule, values in steps), (), count, None, depth, (), ())


def remember(key: Key, shape: Shape) -> None:
    """Keep a shape for later processes, if it is one worth keeping."""
    if shape.failure is not None or shape.chained or shape.targets or not shape.steps:
        return
    if len(key[1]) > _LONGEST or len(_added) >= _MOST:
        return
    if not _added:
        atexit.register(_write)
    rules = _rules()
    _added[key] = shape.depth, tuple((rules[function], values) for function, values in shape.steps)


def _rules() -> dict[Any, str]:
    return {function: rule for rule, function in build.RULES.items()}


def _read() -> _Kept:
    file = cache_file("shapes")
    if file is None:
        return {}
    try:
        version, shapes = marshal.loads(file.read_bytes())
        if version == _version() and isinstance(shapes, dict):
            return shapes
    except (OSError, EOFError, ValueError, TypeError):  # there is none, or it is no such file
        pass
    return {}


def _write() -> None:
    """Add what is new to what is there by now, in one step: others read the old file or the new one."""
    file = cache_file("shapes")
    if file is None or not _added:
        return
    shapes = {**_read(), **_added}
    if len(shapes) > _MOST:
        shapes = dict(list(shapes.items())[-_MOST // 2 :])
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        content: Any = (_version(), shapes)
        temporary.write_bytes(marshal.dumps(content))
        temporary.chmod(0o600)
        temporary.replace(file)
    except OSError:
        temporary.unlink(missing_ok=True)


def _version() -> tuple[object, ...]:
    """All that a kept shape depends on."""
    return _FORMAT, sys.version, GRAMMAR.read_text(encoding="utf-8"), tuple(TERMINALS.items()), tuple(build.RULES)


def cache_file(kind: str) -> Path | None:
    """Where something is kept; None when there is no place that only this user can write to.

    What is read from there is trusted (a pickle can run code): a file that somebody else could have put there is not.
    """
    from platformdirs import user_cache_path  # only when something is parsed

    try:
        folder = user_cache_path("phobos-tools", appauthor=False)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = folder / f"syntax-{sys.version_info[0]}.{sys.version_info[1]}.{kind}"
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
