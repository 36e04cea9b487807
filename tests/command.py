"""`phobos` in the process of the tests: exit code and what it prints, without the second that a new Python takes.

For what a process of its own is not the point of. Each command has a test that starts it as a user does.
"""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

from phobos.cli import main

# Before a command that is sent SIGINT: who runs the tests in the background may ignore that, and a child inherits it.
HEARS_CTRL_C = ("env", "--default-signal=INT")


@dataclass(frozen=True)
class Done:
    """As `subprocess.CompletedProcess` has it."""

    returncode: int
    stdout: str
    stderr: str


def phobos(*words: str) -> Done:
    with io.BytesIO() as out, io.BytesIO() as err:
        # What a terminal would be is a pipe here, in UTF-8; documents go to the bytes below it.
        told, complained = (io.TextIOWrapper(to, "utf-8", newline="", write_through=True) for to in (out, err))
        with redirect_stdout(told), redirect_stderr(complained):
            code = main(words)
        return Done(code, out.getvalue().decode(), err.getvalue().decode())

