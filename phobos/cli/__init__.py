"""The command `phobos`: finds the command's module, parses its arguments, and turns errors into exit codes.

A command is a module of this package with `add_arguments(parser)`, `run(arguments) -> int`, a docstring that is
its help, and an `EXAMPLE`. It is imported only when it is called. Exit 0 is fine, 1 findings or a wrong result,
2 the command could not do its work.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from phobos import __version__
from phobos.cli.output import make_readable

# Every command with its line in `phobos --help`. One that has no module (yet) is neither listed nor known.
COMMANDS = {
    "check": "find hangs, races and broken promises in .ph files",
    "run": "run a kernel on a GPU or in the reference runtime",
    "fmt": "format .ph files",
    "rule": "explain a rule",
    "emit": "print what a kernel compiles to: CUDA, PTX, SASS, facts, contract",
    "occupancy": "show registers, shared memory and resident blocks for a list of cards",
    "tune": "try the @autotune space and keep the fastest",
    "trace": "show when each block is in which phase and where it waits",
    "bench": "run the project's benchmarks",
    "init": "set up a folder: configuration, sample kernel, job for CI",
    "lsp": "serve editors",
    "doctor": "say what works on this machine and mend what does not",
}
# What other tools call them.
_ELSEWHERE = {
    "explain": "rule", "format": "fmt", "lint": "check", "test": "run", "exec": "run", "compile": "emit",
    "build": "emit", "dump": "emit", "autotune": "tune", "profile": "trace", "benchmark": "bench", "new": "init",
    "server": "lsp", "serve": "lsp", "version": "--version", "help": "--help",
}  # fmt: skip
# What writing ends with on a disk that is full, and on a descriptor that is open for reading alone.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
_EXAMPLE = """example:
  phobos check kernels/        look for hangs and races
  phobos check --help          every option, with an example"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv` (default: the process's arguments) asks for; its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None or sys.stderr is None:  # closed by the caller (`>&-`), who wants the exit code alone
        _open_closed()
    make_readable()
    try:
        code = _dispatch(words)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader (`head`, `less`) has seen enough
        _abandon(sys.stdout)
        return 0
    except OSError as error:
        if error.errno == errno.ENOENT and not _has_place():
            complain("the current directory has been removed: go to one that is there")
            return 2
        if error.errno not in _NO_ROOM:
            raise
        _abandon(sys.stdout)
        complain(f"cannot write the output: {error.strerror}")
        return 2


def _dispatch(words: list[str]) -> int:
    command = next((word for word in words if not word.startswith("-")), None)
    first = words[0] if words else None
    if first in ("--version", "-V"):
        print(f"phobos {__version__}")
        return 0
    if command is None or first in ("-h", "--help"):
        wrong = first is not None and first not in ("-h", "--help", "--no-color")
        print(_usage(), end="", file=sys.stderr if wrong or not words else sys.stdout)
        if wrong:
            complain(f"unknown option {first}")
        return 2 if wrong or not words else 0
    before = words[: words.index(command)]
    if any(word != "--no-color" for word in before):
        complain(f"unknown option {next(word for word in before if word != '--no-color')}; options follow the command")
        return 2
    if not _has(command):
        complain(f"there is no command `{command}`{_near(command)}")
        return 2
    rest = words[words.index(command) + 1 :] + before
    return _run(command, rest)


def _run(command: str, words: list[str]) -> int:
    from importlib import import_module

    from phobos.cli.arguments import Parser
    from phobos.errors import PhobosError

    module = import_module(f"phobos.cli.{command}")
    parser = Parser(command, module.__doc__ or "", getattr(module, "EXAMPLE", ""))
    module.add_arguments(parser)
    try:
        arguments = parser.parse_args(words)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    if arguments.no_color:
        os.environ["NO_COLOR"] = "1"
    try:
        code: int = module.run(arguments)
        return code
    except PhobosError as error:
        complain(str(error))
        return 2
    except MemoryError:
        complain("this machine has not the memory that was asked for")
        return 2


def complain(message: str) -> None:
    """Say on stderr why the command cannot do its work. Where that takes nothing either, the exit code has to do.

    What a file name or a file holds can neither steer the terminal nor begin a line, where a CI server looks for
    commands to itself.
    """
    from phobos.check.render.text import clean

    sys.stdout.flush()
    shown = clean(message, keep_lines=True).replace("\n", "\n  | ")
    try:
        print(f"phobos: error: {shown}", file=sys.stderr, flush=True)
    except OSError:
        _abandon(sys.stderr)


def available() -> list[str]:
    """The commands that this installation has."""
    return [name for name in COMMANDS if _has(name)]


def _has(command: str) -> bool:
    from importlib.machinery import PathFinder

    return command in COMMANDS and PathFinder.find_spec(f"phobos.cli.{command}", __path__) is not None


def _usage() -> str:
    lines = [
        "usage: phobos COMMAND [options]",
        "",
        "Tools for persistent GPU kernels in Phobos: what hangs is said before it does.",
        "",
        "commands:",
        *(f"  {name:<10}{COMMANDS[name]}" for name in available()),
        "",
        "options:",
        "  -h, --help    this text; `phobos COMMAND --help` for a command",
        "  --version     the version",
        "  --no-color    no colours (also: NO_COLOR=1)",
        "",
        _EXAMPLE,
    ]
    return "\n".join(lines) + "\n"


def _near(command: str) -> str:
    from difflib import get_close_matches

    near = [_ELSEWHERE[command]] if command in _ELSEWHERE else get_close_matches(command, available(), 1)
    if near:
        return f"; did you mean `phobos {near[0]}`?"
    if command.endswith((".ph", "/")) or os.path.exists(command):
        return f"; did you mean `phobos check {command}`?"
    return "; `phobos --help` lists them"


def _has_place() -> bool:
    """Whether the directory in which we were started is still there."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _open_closed() -> None:
    """Python has no stream for a descriptor that is closed: what would be written there goes nowhere."""
    nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - as long as the process
    sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere


def _abandon(stream: TextIO) -> None:
    """Keep the interpreter from complaining about the closed pipe when it flushes at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
