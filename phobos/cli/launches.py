"""Options that describe a launch, and what they ask for: one description for every command that runs kernels.

Sizes, arrays and options come from the file's own `// run:` headers and from the command line, which wins.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from phobos.cli.arguments import (
    add_arrays,
    add_order,
    add_schedule,
    add_set,
    device,
    grid,
    kernel_name,
    order_for,
    positive,
    seconds,
    seed,
)
from phobos.errors import InputError

if TYPE_CHECKING:
    from phobos.runtime.headers import Run
    from phobos.runtime.kernel import Kernel, Kernels
    from phobos.runtime.session import Request

Group = argparse._ActionsContainer
SCHEDULERS = ("round-robin", "random", "adversarial")


def add_kernel(parser: argparse.ArgumentParser, fusion: str) -> None:
    """Which kernel; `fusion` says what becomes of several."""
    parser.add_argument("file", metavar="FILE", help="a .ph file; its `// run:` header supplies sizes and arrays")
    parser.add_argument(
        "--kernel", type=kernel_name, metavar="K", help=f"which kernel, where the file has several; K1+K2 {fusion}"
    )
    add_order(parser)


def add_what(to: Group, of_set: str = "an extent or constant") -> None:
    add_arrays(to)
    add_set(to, of_set)


def add_where(to: Group) -> None:
    to.add_argument("--device", type=device, metavar="D", help="auto, cpu, cuda or cuda:N (default auto)")
    to.add_argument("--grid", type=grid, metavar="G", help="auto, N or X,Y,Z")
    to.add_argument("--resident", type=positive, metavar="N", help="how many blocks fit at once")
    add_schedule(to)
    to.add_argument("--no-keep", action="store_true", help="keep no data on chip across barriers")
    to.add_argument("--no-tuned", action="store_true", help="ignore what `phobos tune` found for this kernel")
    to.add_argument("--timeout", type=seconds, metavar="S", help="seconds, 0 for none (default: 30 on CUDA)")
    to.add_argument("--unchecked", action="store_true", help="launch on CUDA although the checker found errors")


def add_chance(to: Group) -> None:
    """In which order blocks run in the reference runtime, and the seed of that and of arrays."""
    to.add_argument("--scheduler", choices=SCHEDULERS, help="reference runtime: which block runs next")
    to.add_argument("--seed", type=seed, metavar="N", help="of the scheduler, and of arrays without their own")


def launches(arguments: argparse.Namespace) -> tuple[Kernels, list[Run]]:
    """The kernels of the file, and the runs that it and the command line ask for: at least one."""
    from phobos.check.project import read
    from phobos.runtime.headers import Run, runs_of
    from phobos.runtime.kernel import Kernels

    source = read(arguments.file)
    headers = runs_of(arguments.file, source.text)
    kernels = Kernels(arguments.file, source.text)
    wanted = arguments.kernel
    if wanted is not None or not any("+" in (h.kernel or "") for h in headers):
        order_for(arguments)
    chosen: list[Run] = [h for h in headers if wanted is None or h.kernel in (None, wanted)]
    return kernels, chosen or [Run(0, wanted, {}, {}, ())]


def option(arguments: argparse.Namespace, header: Run, given: Any, key: str, read: Any) -> Any:
    """The value of an option: the command line wins over the header. Raises InputError for a bad one of a header."""
    if given is not None or key not in header.options:
        return given
    try:
        return read(header.options[key])
    except argparse.ArgumentTypeError as error:
        raise InputError(f"{arguments.file}:{header.line}: {key}: {error}") from None


# Options that no refusal of a launch is about, except in words that begin with them.
_BLAMELESS = ("file", "no_color", "json", "plan", "memory", "plot", "out", "repeat", "debug")


def _files_written(arguments: argparse.Namespace) -> list[str]:
    out = getattr(arguments, "out", None) or []
    return [f"{path}:" for _, path in out] if isinstance(out, list) else []


@contextmanager
def said_by(arguments: argparse.Namespace, header: Run) -> Iterator[None]:
    """Puts the header's line in front of what cannot be made of it, where the command line says nothing of its own."""
    from phobos.errors import LaunchError

    try:
        yield
    except (InputError, LaunchError) as error:
        given = {key: value for key, value in vars(arguments).items() if value not in (None, False, [])}
        said = {key: value for key, value in given.items() if key not in _BLAMELESS}
        own = any(value != "cpu" for value in said.values()) or str(error).startswith(
            ("--", *_files_written(arguments))
        )
        placed = getattr(error, "diagnostic", None) is not None or str(error).startswith(f"{arguments.file}:")
        if not header.line or own or placed:
            raise
        raise InputError(f"{arguments.file}:{header.line}: {error}") from None


def names_of(arguments: argparse.Namespace, header: Run) -> dict[str, str]:
    """Extents, constants and parameters, as written in the header and on the command line, which wins."""
    numbers = {name: str(number) for name, number in arguments.set}
    return {**header.names, **numbers, **dict(arguments.arg)}


def names_given(arguments: argparse.Namespace) -> frozenset[str]:
    """Those of them that the command line gives itself."""
    return frozenset(name for name, _ in (*arguments.arg, *arguments.set))


def _changed(arguments: argparse.Namespace, header: Run) -> tuple[str, ...]:
    """What the command line gives otherwise than the header; what only it gives, the header leaves open."""
    own = names_given(arguments)
    names = names_of(arguments, header)
    changed = [name for name in names if name in own and header.names.get(name, names[name]) != names[name]]
    drawn = any(text.startswith(("random", "normal")) for text in names.values())
    if drawn and arguments.seed is not None and header.options.get("seed", "0") != str(arguments.seed):
        changed.append("--seed")
    return tuple(changed)


def request(arguments: argparse.Namespace, kernels: Kernels, header: Run) -> Request:
    """What is asked for, once, with nothing else to be done: no expectations, no files, no faults looked for."""
    import os

    from phobos.runtime.session import Request

    kernel = kernel_for(arguments, kernels, header)

    def of(key: str, read: Any) -> Any:
        return option(arguments, header, getattr(arguments, key), key, read)

    return Request(
        kernel=kernel,
        names=names_of(arguments, header),
        directory=os.path.dirname(arguments.file) or ".",
        command_line=names_given(arguments),
        outputs={},
        device=of("device", device) or "auto",
        grid=of("grid", grid) or None,
        resident=of("resident", positive),
        schedule=of("schedule", str),
        l2_group=of("l2_group", positive),
        keep=not arguments.no_keep,
        repeat=1,
        timeout=of("timeout", seconds),
        debug=False,
        unchecked=arguments.unchecked,
        scheduler=of("scheduler", _scheduler),
        seed=of("seed", seed) or 0,
        detect=(),
        plan_only=False,
        verify=False,
        tuned=not arguments.no_tuned,
        expectations=(),
        changed=_changed(arguments, header),
    )


def demand_names(kernels: Sequence[Kernel], given: Mapping[str, int]) -> None:
    """Raises InputError where `--set` names what none of them has, or gives an extent that cannot be."""
    from phobos.language.near import nearest

    programs = [kernel.analysed()[1].program for kernel in kernels]
    known = {name for program in programs for name in (*program.constants, *program.dims, *program.params)}
    for name, number in given.items():
        if name not in known:
            which = f"`{kernels[0].name}` has" if len(kernels) == 1 else "the kernels have"
            near = nearest(name, known)
            hint = f"; did you mean `{near}`?" if near else ""
            raise InputError(f"--set {name}: {which} no constant, extent or parameter of that name{hint}")
        if number < 0 and any(name in program.dims for program in programs):
            raise InputError(f"--set {name}: an extent cannot be {number}")


def one_of(kernels: Kernels, path: str, name: str | None, order: str | None) -> Kernel:
    """The kernel, or the fusion, of that name, or the only one. Raises InputError."""
    from phobos.check.project import read
    from phobos.errors import LaunchError

    try:
        return kernels.one(name, order)
    except LaunchError as error:
        raise InputError(_without_kernel(str(error), path, read(path).text)) from None


def kernel_for(arguments: argparse.Namespace, kernels: Kernels, header: Run) -> Kernel:
    """The kernel, or the fusion, that the command line asks for, else the header. Raises InputError."""
    name = arguments.kernel or header.kernel
    order = arguments.order or header.options.get("order")
    return one_of(kernels, arguments.file, name, order if "+" in (name or "") else None)


def _without_kernel(message: str, path: str, text: str) -> str:
    """Why no kernel was found, with what to do about it."""
    if "holds no kernel" in message:
        if not text.strip():
            return f"{path}: is empty, a file with a kernel is needed"
        return f"{message} that can be read: `phobos check {path}` says why"
    return f"{message} (--kernel NAME)" if "say which" in message else message


def _scheduler(text: str) -> str:
    if text not in SCHEDULERS:
        raise argparse.ArgumentTypeError(f"{text!r} is no scheduler: {', '.join(SCHEDULERS)}")
    return text
