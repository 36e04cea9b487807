"""Run a kernel: on a GPU where one answers, else in the reference runtime, which needs none and finds what goes wrong.

Sizes and arrays come from the file's own `// run:` header and from options, which win. The checker looks first.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from phobos.cli.arguments import (
    add_arrays,
    add_order,
    add_schedule,
    assignment,
    device,
    grid,
    named,
    order_for,
    positive,
    seconds,
    seed,
    use_colour,
)  # fmt: skip
from phobos.cli.output import document
from phobos.errors import InputError

if TYPE_CHECKING:
    from phobos.runtime.headers import Run
    from phobos.runtime.session import Report

EXAMPLE = """
phobos run examples/staged.ph
phobos run staged.ph --kernel staged --set N=1048576 --set M=1 --arg X=random:seed=7 --out X=x.npy
phobos run gemm.ph --arg A=@a.npy --arg B=@b.npy --arg C=zeros --arg alpha=1 --arg beta=0 --out C=c.npy --verify
phobos run gemm.ph --cluster local --shard M --arg A=@a.npy --arg B=@b.npy --arg C=zeros --out C=c.npy
phobos run hang.ph --device cpu --scheduler adversarial --seed 3 --detect races
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a .ph file")
    parser.add_argument("--kernel", metavar="K", help="which kernel, where the file has several; K1+K2 runs the fusion")
    add_order(parser)
    what = parser.add_argument_group("what it runs on")
    add_arrays(what)
    what.add_argument(
        "--set", action="append", default=[], type=assignment, metavar="NAME=INT", help="an extent or constant"
    )
    what.add_argument(
        "--out", action="append", default=[], type=named, metavar="NAME=FILE", help="save a tensor as .npy"
    )
    where = parser.add_argument_group("where and how")
    where.add_argument("--device", type=device, metavar="D", help="auto, cpu, cuda or cuda:N (default auto)")
    where.add_argument("--grid", type=grid, metavar="G", help="auto, N or X,Y,Z")
    where.add_argument("--resident", type=positive, metavar="N", help="how many blocks fit at once")
    add_schedule(where)
    where.add_argument("--no-keep", action="store_true", help="keep no data on chip across barriers")
    where.add_argument("--no-tuned", action="store_true", help="ignore what `phobos tune` found for this kernel")
    where.add_argument("--repeat", type=positive, metavar="N", help="run N times and give the median time")
    where.add_argument("--timeout", type=seconds, metavar="S", help="seconds, 0 for none (default: 30 on CUDA)")
    where.add_argument("--debug", action="store_true", help="CUDA: check every point access on the device")
    where.add_argument("--unchecked", action="store_true", help="launch on CUDA although the checker found errors")
    where.add_argument(
        "--cluster", metavar="C", help="run on workers: local, local:N, tcp://HOST:PORT or tls://HOST:PORT"
    )
    where.add_argument("--shard", type=_shard, metavar="DIM[=PARTS]", help="with --cluster: the extent that is cut")
    look = parser.add_argument_group("looking for faults")
    look.add_argument(
        "--scheduler", choices=("round-robin", "random", "adversarial"), help="reference runtime: which block runs next"
    )
    look.add_argument("--seed", type=seed, metavar="N", help="of the scheduler, and of arrays without their own")
    look.add_argument(
        "--detect", type=_detect, metavar="LIST",
        help="races,deadlock,uninitialised,bounds. The reference runtime always looks for all but races; on CUDA each "
        "must be asked for, and uninitialised is refused",
    )  # fmt: skip
    out = parser.add_argument_group("what it prints")
    out.add_argument("--plan", action="store_true", help="print the plan and stop")
    out.add_argument("--verify", action="store_true", help="run the reference too and compare; exit 1 on a mismatch")
    out.add_argument(
        "--json", action="store_true", help="one JSON object on stdout (a list where the file asks for several runs)"
    )


def run(arguments: argparse.Namespace) -> int:
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
    if not chosen:
        chosen = [Run(0, wanted, {}, {}, ())]
    code = 0
    printed: list[dict[str, Any]] = []
    for number, header in enumerate(chosen):
        report = _one(arguments, kernels, header, source.text)
        code = max(code, report.code)
        if arguments.json:
            printed.append(report.as_dict())
        else:
            if number:
                print()
            sys.stdout.write(report.text(use_colour()))
            sys.stdout.flush()
    if arguments.json:
        document(json.dumps(printed[0] if len(printed) == 1 else printed, indent=2, ensure_ascii=False) + "\n")
    return code


def _one(arguments: argparse.Namespace, kernels: Any, header: Run, text: str) -> Report:
    import os

    from phobos.errors import LaunchError
    from phobos.runtime.session import Request, perform

    options = header.options
    try:
        name = arguments.kernel or header.kernel
        order = arguments.order or options.get("order")
        kernel = kernels.one(name, order if "+" in (name or "") else None)
    except LaunchError as error:
        raise InputError(without_kernel(str(error), arguments.file, text)) from None
    names = dict(header.names)
    names.update((name, str(number)) for name, number in arguments.set)
    names.update(arguments.arg)
    at = f"{arguments.file}:{header.line}: "

    def option(given: Any, key: str, read: Any) -> Any:
        """The command line wins over the header."""
        if given is not None or key not in options:
            return given
        try:
            return read(options[key])
        except argparse.ArgumentTypeError as error:
            raise InputError(f"{at}{key}: {error}") from None

    request = Request(
        kernel=kernel,
        names=names,
        directory=os.path.dirname(arguments.file) or ".",
        command_line=frozenset(name for name, _ in arguments.arg),
        outputs=dict(arguments.out),
        device=option(arguments.device, "device", device) or "auto",
        grid=_no_auto(option(arguments.grid, "grid", grid)),
        resident=option(arguments.resident, "resident", positive),
        schedule=option(arguments.schedule, "schedule", str),
        l2_group=option(arguments.l2_group, "l2_group", positive),
        keep=not arguments.no_keep,
        repeat=arguments.repeat or 1,
        timeout=option(arguments.timeout, "timeout", seconds),
        debug=arguments.debug,
        unchecked=arguments.unchecked,
        scheduler=option(arguments.scheduler, "scheduler", _scheduler),
        seed=option(arguments.seed, "seed", seed) or 0,
        detect=option(arguments.detect, "detect", _detect) or (),
        plan_only=arguments.plan,
        verify=arguments.verify,
        tuned=not arguments.no_tuned,
        expectations=header.expectations,
        cluster=arguments.cluster,
        shard=arguments.shard,
    )
    return perform(request)


def without_kernel(message: str, path: str, text: str) -> str:
    """Why no kernel was found, with what to do about it."""
    if "holds no kernel" in message:
        if not text.strip():
            return f"{path}: is empty, a file with a kernel is needed"
        return f"{message} that can be read: `phobos check {path}` says why"
    return f"{message} (--kernel NAME)" if "say which" in message else message


# --- values of options ------------------------------------------------------------------------------------------


def _shard(text: str) -> tuple[str, int | None]:
    name, equals, parts = text.partition("=")
    if not name.isidentifier() or (equals and not (parts.isdigit() and int(parts) > 0)):
        raise argparse.ArgumentTypeError(f"{text!r} is not DIM or DIM=PARTS")
    return name, int(parts) if equals else None


def _no_auto(grid: tuple[int, ...] | None) -> tuple[int, ...] | None:
    return grid or None


def _scheduler(text: str) -> str:
    names = ("round-robin", "random", "adversarial")
    if text not in names:
        raise argparse.ArgumentTypeError(f"{text!r} is no scheduler: {', '.join(names)}")
    return text


def _detect(text: str) -> tuple[str, ...]:
    from phobos.errors import LaunchError
    from phobos.runtime.detections import words_of

    try:
        return words_of(text)
    except LaunchError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
