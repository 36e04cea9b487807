"""`phobos check --watch`: looks at the files' times several times a second and checks again what changed."""

from __future__ import annotations

import argparse
import os
import sys
import time

from phobos.check.configuration import forget
from phobos.check.project import find
from phobos.errors import InputError

PAUSE_S = 0.25


def watch(arguments: argparse.Namespace) -> int:
    """Check, print, wait for a change, until Ctrl-C."""
    from phobos.cli import complain
    from phobos.cli.check import check_once

    before: dict[str, tuple[int, int]] | None = None
    while True:
        now = _state(arguments.paths or ["."], [one for one in (arguments.config, arguments.baseline) if one])
        if now != before:
            before = now
            forget()
            if sys.stdout.isatty():
                sys.stdout.write("\x1b[2J\x1b[H")
            try:
                check_once(arguments)
            except InputError as error:
                complain(str(error))
            print(f"[{time.strftime('%H:%M:%S')}] waiting for changes; Ctrl-C ends", flush=True)
        time.sleep(PAUSE_S)


def _state(paths: list[str], besides: list[str]) -> dict[str, tuple[int, int]]:
    """When each file, and each file of settings that may count for it, was last written, and how long it is."""
    state: dict[str, tuple[int, int]] = {}
    try:
        names = find(paths)
    except InputError:
        names = []
    directories = {os.path.dirname(os.path.abspath(name)) for name in names}
    directories |= {os.path.abspath(path) for path in paths if os.path.isdir(path)}
    for directory in directories:
        while True:
            names += [os.path.join(directory, name) for name in ("phobos.toml", "pyproject.toml", ".gitignore")]
            parent = os.path.dirname(directory)
            if parent == directory:
                break
            directory = parent
    for name in (*names, *besides):
        try:
            status = os.stat(name)
        except OSError:
            continue
        state[name] = (status.st_mtime_ns, status.st_size)
    return state
