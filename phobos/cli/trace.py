"""Show when each block of a launch is in which phase, how long it waits at barriers, and what makes the launch slow.

The kernel runs on copies of its arrays, after the checker has looked. On a GPU it runs with marks in its code, and
without them to say what they cost. Without a GPU the reference runtime counts steps instead of time.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from phobos.cli.arguments import files_apart, positive, use_colour
from phobos.cli.launches import add_chance, add_kernel, add_what, add_where, launches, request, said_by
from phobos.cli.output import document
from phobos.errors import CheckError, KernelFault, LaunchError

if TYPE_CHECKING:
    from phobos.diagnostic import Diagnostic
    from phobos.runtime.kernel import Kernel
    from phobos.runtime.tracing.trace import Trace

EXAMPLE = """
phobos trace examples/staged.ph
phobos trace examples/staged.ph --set N=1048576 --out staged.json        open it in ui.perfetto.dev or chrome://tracing
phobos trace gemm.ph --set M=512 --set N=512 --set K=512 --schedule persistent-interleaved --plot gemm.svg
phobos trace examples/softmax.ph --device cpu --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_kernel(parser, "traces the fusion")
    add_what(parser.add_argument_group("what it runs on"))
    where = parser.add_argument_group("where and how")
    add_where(where)
    add_chance(where)
    where.add_argument(
        "--memory", type=positive, metavar="MIB", help="CUDA: device memory for what is written down (default 32)"
    )
    out = parser.add_argument_group("what comes out, besides the summary")
    out.add_argument("--out", metavar="FILE", help="write the trace as JSON, for Perfetto or chrome://tracing")
    out.add_argument("--plot", metavar="FILE", help="draw the blocks over time (SVG)")
    out.add_argument("--json", action="store_true", help="the summary as one JSON object on stdout")


def run(arguments: argparse.Namespace) -> int:
    from phobos.runtime.output import writable
    from phobos.runtime.tracing.run import ROOM, asked

    files = {f"--{name}": path for name, path in (("out", arguments.out), ("plot", arguments.plot)) if path}
    files_apart(files, [arguments.file])
    for path in files.values():
        writable(path)
    kernels, headers = launches(arguments)
    with said_by(arguments, headers[0]):
        wanted = request(arguments, kernels, headers[0])
    try:
        with said_by(arguments, headers[0]):
            made = asked(wanted, ROOM if arguments.memory is None else arguments.memory << 20)
    except CheckError as error:
        return _refused(arguments, wanted.kernel, list(error.diagnostics), "nothing has run")
    except (LaunchError, KernelFault) as error:
        if error.kind is None or error.diagnostic is None:
            raise
        return _refused(arguments, wanted.kernel, [error.diagnostic], "there is no trace")
    return _told(arguments, made)


def _told(arguments: argparse.Namespace, made: Trace) -> int:
    if arguments.out:
        made.save(arguments.out)
    if arguments.plot:
        made.plot(arguments.plot)
    if arguments.json:
        document(json.dumps(made.as_dict(), indent=2, ensure_ascii=False) + "\n")
        return 0
    print(made)
    if arguments.out:
        print(f"trace in {arguments.out}: open it in ui.perfetto.dev or chrome://tracing")
    if arguments.plot:
        print(f"drawn in {arguments.plot}")
    return 0


def _refused(arguments: argparse.Namespace, kernel: Kernel, found: list[Diagnostic], so: str) -> int:
    """The checker forbids the launch, or it went wrong: what was found, and nothing else."""
    from phobos.check.render import Listing, full
    from phobos.check.render.as_json import as_dict
    from phobos.syntax.lines import LineIndex

    if arguments.json:
        listing = Listing(kernel.path, kernel.text, LineIndex(kernel.text), ())
        findings = [as_dict(diagnostic, listing) for diagnostic in found]
        document(json.dumps({"kernel": kernel.name, "filename": kernel.path, "findings": findings}, indent=2) + "\n")
        return 1
    for diagnostic in found:
        sys.stdout.write(full(diagnostic, kernel.text, kernel.path, use_colour()))
    print(so)
    return 1
