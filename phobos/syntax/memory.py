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
from typing import Any

from phobos.files import only_ours
from phobos.syntax import build
from phobos.syntax.shapes import Shape
from phobos.syntax.tokens import TERMINALS

__all__ = ["cache_file", "grammar", "recall", "remember", "replace_file"]

_GRAMMAR = os.path.join(os.path.dirname(__file__), "grammar.lark")

Key = tuple[str, str]
_Kept = dict[Key, tuple[int, tuple[tuple[str, tuple[int, ...]], ...]]]  # depth, and rule and values of each step

_FORMAT = 1
_MOST = 400  # reading 1 200 cost 18 ms of a start; what is common in a project is far less
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
        with open(file, "rb") as stream:
            version, shapes = marshal.load(stream)
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
    content: Any = (_version(), shapes)
    replace_file(file, marshal.dumps(content))


def _version() -> tuple[object, ...]:
    """All that a kept shape depends on."""
    return _FORMAT, sys.version, grammar(), tuple(TERMINALS.items()), tuple(build.RULES)


def grammar() -> str:
    """The text of `grammar.lark`."""
    with open(_GRAMMAR, encoding="utf-8") as stream:
        return stream.read()


def cache_file(kind: str) -> str | None:
    """Where something is kept; None when there is no place that only this user can write to.

    What is read from there is trusted (a pickle can run code): a file that somebody else could have put there is not.
    """
    try:
        folder = cache_folder()
        os.makedirs(folder, mode=0o700, exist_ok=True)
        file = os.path.join(folder, f"syntax-{sys.version_info[0]}.{sys.version_info[1]}.{kind}")
        if os.path.exists(file):
            return file if only_ours(file) and only_ours(folder) else None
        return file if only_ours(folder) and os.access(folder, os.W_OK) else None
    except (OSError, RuntimeError):  # RuntimeError: there is no home directory
        return None


def cache_folder() -> str:
    """The project's folder for what can be made again, as platformdirs has it."""
    if sys.platform in ("linux", "emscripten"):  # platformdirs costs as much time as half of all our modules
        base = os.environ.get("XDG_CACHE_HOME", "").strip()
        return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.cache"), "phobos-tools")
    from platformdirs import user_cache_dir

    return user_cache_dir("phobos-tools", appauthor=False)


def replace_file(file: str, content: bytes) -> None:
    """Put a file in its place in one step: others read the old one or the new one. Failing is no harm."""
    temporary = f"{file}.{os.getpid()}"
    try:
        with open(temporary, "wb") as stream:
            stream.write(content)
        os.chmod(temporary, 0o600)
        os.replace(temporary, file)
    except OSError:
        if os.path.exists(temporary):
            os.unlink(temporary)
