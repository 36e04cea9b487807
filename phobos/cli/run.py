"""Run a kernel: on a GPU where one answers, else in the reference runtime, which needs none and finds what goes wrong.

Sizes and arrays come from the file's own `// run:` header and from options, which win. The checker looks first.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from phobos.cli.arguments import Once, files_apart, named, positive, use_colour
from phobos.cli.launches import add_chance, add_kernel, add_what, add_where, launches, option, request, said_by
from phobos.cli.output import document
from phobos.errors import InputError
from phobos.value import replace

if TYPE_CHECKING:
    from phobos.runtime.headers import Run
    from phobos.runtime.kernel import Kernels
    from phobos.runtime.report import Report

EXAMPLE = """
phobos run examples/staged.ph
phobos run staged.ph --kernel staged --set N=1048576 --set M=1 --arg X=random:seed=7 --out X=x.npy
phobos run gemm.ph --arg A=@a.npy --arg B=@b.npy --arg C=zeros --arg alpha=1 --arg beta=0 --out C=c.npy --verify
phobos run gemm.ph --cluster local --shard M --arg A=@a.npy --arg B=@b.npy --arg C=zeros --out C=c.npy
phobos run hang.ph --device cpu --scheduler adversarial --seed 3 --detect races
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_kernel(parser, "runs the fusion")
    what = parser.add_argument_group("what it runs on")
    add_what(what)
    what.add_argument(
        "--out", action=Once, default=[], type=named, metavar="NAME=FILE", help="save a tensor as .npy"
    )
    where = parser.add_argument_group("where and how")
    add_where(where)
    where.add_argument("--repeat", type=positive, metavar="N", help="run N times and give the median time")
    where.add_argument("--debug", action="store_true", help="CUDA: check every point access on the device")
    where.add_argument(
        "--cluster", metavar="C", help="run on workers: local, local:N, tcp://HOST:PORT or tls://HOST:PORT"
    )
    where.add_argument("--shard", type=_shard, metavar="DIM[=PARTS]", help="with --cluster: the extent that is cut")
    look = parser.add_argument_group("looking for faults")
    add_chance(look)
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
    _outputs(arguments)
    kernels, headers = launches(arguments)
    code = 0
    printed: list[dict[str, Any]] = []
    for number, header in enumerate(headers):
        with said_by(arguments, header):
            report = _one(arguments, kernels, header)
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


def _outputs(arguments: argparse.Namespace) -> None:
    """Raises InputError where a file would not be what its name says."""
    for name, path in arguments.out:
        if path.endswith(".npz"):
            raise InputError(f"--out {name}={path}: a tensor is saved as .npy, which holds one array")
    files_apart({f"--out {name}": path for name, path in arguments.out}, [arguments.file])


def _one(arguments: argparse.Namespace, kernels: Kernels, header: Run) -> Report:
    from phobos.runtime.session import perform

    return perform(
        replace(
            request(arguments, kernels, header),
            outputs=dict(arguments.out),
            repeat=arguments.repeat or 1,
            debug=arguments.debug,
            detect=option(arguments, header, arguments.detect, "detect", _detect) or (),
            plan_only=arguments.plan,
            verify=arguments.verify,
            expectations=header.expectations,
            cluster=arguments.cluster,
            shard=arguments.shard,
        )
    )


# --- values of options ------------------------------------------------------------------------------------------


def _shard(text: str) -> tuple[str, int | None]:
    name, equals, parts = text.partition("=")
    if not name.isidentifier() or (equals and not (parts.isdecimal() and int(parts) > 0)):
        raise argparse.ArgumentTypeError(f"{text!r} is not DIM or DIM=PARTS")
    return name, int(parts) if equals else None


def _detect(text: str) -> tuple[str, ...]:
    from phobos.errors import LaunchError
    from phobos.runtime.detections import words_of

    try:
        return words_of(text)
    except LaunchError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
