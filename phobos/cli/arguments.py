"""The argument parser of every command: plain help with an example at its end, errors in one line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """`description` is the command's docstring, `example` what stands at the end of its help."""

    def __init__(self, command: str, description: str, example: str) -> None:
        lines = "\n".join("  " + line for line in example.strip().splitlines())
        super().__init__(
            prog=f"phobos {command}",
            description=description.strip(),
            epilog=f"example:\n{lines}" if lines else None,
            formatter_class=_Formatter,
            allow_abbrev=False,
        )
        self.add_argument("--no-color", action="store_true", help="no colours (also: NO_COLOR=1)")
        self.add_argument("--version", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)

    def error(self, message: str) -> NoReturn:
        from phobos.check.render.text import clean

        self.exit(2, f"{self.prog}: error: {clean(message)}\n{self.prog}: `{self.prog} --help` shows the options\n")

    def parse_args(self, args: list[str] | None = None, namespace: None = None) -> argparse.Namespace:  # type: ignore[override]
        if args and "--version" in args:
            from phobos import __version__

            print(f"phobos {__version__}")
            self.exit(0)
        return super().parse_args(args, namespace)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal. argparse makes one for every option that is added, and asks another module each time."""

    def __init__(self, prog: str, indent_increment: int = 2, max_help_position: int = 24, **more: Any) -> None:
        super().__init__(prog, indent_increment, max_help_position, **({"width": _width()} | more))


def _width() -> int:
    """Columns for text, as `shutil.get_terminal_size` finds them."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns) - 2
    try:
        found = os.get_terminal_size(sys.__stdout__.fileno()).columns if sys.__stdout__ else 0
    except (AttributeError, ValueError, OSError):
        found = 0
    return (found or 80) - 2


def positive(text: str) -> int:
    """An option's value that must be a whole number of at least 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return number


def add_schedule(to: argparse._ActionsContainer) -> None:
    """The two options that say in which order blocks run."""
    to.add_argument("--schedule", metavar="S", help="flat, xyz, persistent-blocked or persistent-interleaved")
    to.add_argument("--l2-group", type=positive, metavar="G", help="so many blocks along x run together (L2 cache)")


def assignment(text: str) -> tuple[str, int]:
    """`NAME=INT`."""
    name, equals, number = text.partition("=")
    name = name.strip()
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=INT")
    try:
        given = int(number.strip(), 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{number[:40]!r} in {text[:60]!r} is not an integer") from None
    if not -(1 << 63) <= given < 1 << 63:
        raise argparse.ArgumentTypeError(f"{number[:40]!r} in {text[:60]!r} does not fit in 64 bits")
    return name, given


class Once(argparse.Action):
    """Collects `NAME=...`; a name that was given before is refused, and none of the two values is taken silently."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        given = getattr(namespace, self.dest)
        for name, before in given:
            if name == values[0]:
                raise argparse.ArgumentError(self, f"{name} is given twice: {before} and {values[1]}")
        setattr(namespace, self.dest, [*given, values])


def add_set(to: argparse._ActionsContainer, what: str) -> None:
    """`--set`; `what` says what it gives a number."""
    to.add_argument("--set", action=Once, default=[], type=assignment, metavar="NAME=INT", help=what)


def named(text: str) -> tuple[str, str]:
    name, equals, given = text.partition("=")
    if not equals or not name.strip().isidentifier() or not given:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name.strip(), given


def device(text: str) -> str:
    if text in ("auto", "cpu", "cuda") or (text.startswith("cuda:") and text[5:].isdecimal()):
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is no device: auto, cpu, cuda or cuda:N")


def grid(text: str) -> tuple[int, ...]:
    """`()` is auto."""
    if text == "auto":
        return ()
    parts = text.split(",")
    if not 1 <= len(parts) <= 3 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is no grid: auto, N or X,Y,Z with numbers of at least 1")
    return tuple(int(part) for part in parts)


def seconds(text: str) -> float:
    from phobos.runtime.sizes import MOST_SECONDS

    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return seconds


def seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no seed: a whole number of at least 0")
    return int(text)


def kernel_name(text: str) -> str:
    """The name of a kernel, or of several, `K1+K2`."""
    if not all(name.isidentifier() for name in text.split("+")):
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a kernel, nor names with `+` between them")
    return text


def files_apart(files: Mapping[str, str], sources: Iterable[str] = ()) -> None:
    """Of options and the files they write. Raises InputError where two are one file, and one would be lost, or where
    one is among the `sources`, which hold kernels."""
    from phobos.errors import InputError

    seen: dict[str, str] = {}
    own = {os.path.realpath(source) for source in sources}
    for option, path in files.items():
        place = os.path.realpath(path)
        if place in own and os.path.isfile(place):
            raise InputError(f"{option} would write over {path}, where the kernels are: give another file")
        if place in seen and (os.path.isfile(place) or not os.path.exists(place)):
            raise InputError(f"{seen[place]} and {option} both write {path}: give each a file of its own")
        seen[place] = option


def add_arrays(parser: argparse._ActionsContainer) -> None:
    """`--arg`, as every command takes it that runs kernels; the values are `named`."""
    parser.add_argument(
        "--arg", action=Once, default=[], type=named, metavar="NAME=WHAT",
        help="zeros, ones, iota, random[:seed=N], normal[:seed=N], @file.npy, @file.npz:key or a number",
    )  # fmt: skip


def add_order(parser: argparse._ActionsContainer) -> None:
    """`--order`, of the commands that take a fusion."""
    from phobos.semantics.orders import ORDERS

    parser.add_argument(
        "--order", choices=ORDERS,
        help="of K1+K2, where nothing shows whether K2 must wait for K1: refuse (ask), a grid barrier, or none",
    )  # fmt: skip


def order_for(arguments: argparse.Namespace) -> str | None:
    """What `--order` says. Raises InputError where `--kernel` is no fusion."""
    from phobos.errors import InputError

    order: str | None = arguments.order
    if order is not None and "+" not in (arguments.kernel or ""):
        raise InputError("--order is for a fusion: --kernel K1+K2")
    return order


def use_colour(stream: object = None) -> bool:
    """Whether to paint what goes to `stream` (default stdout): a terminal, and nobody said no."""
    import os

    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    out = stream if stream is not None else sys.stdout
    return bool(getattr(out, "isatty", lambda: False)()) and os.environ.get("TERM") != "dumb"
