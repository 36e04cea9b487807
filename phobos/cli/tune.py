"""Try the constants, grids and schedules of a kernel, compare each with the reference, time it, and keep the fastest.

Later runs and Python calls on the same card use what was found, for sizes of the same class. A variant that crashes,
hangs or computes something wrong is a row of the table; what is interrupted goes on with the same command.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from phobos.cli.arguments import device, files_apart, grid, positive, seconds, seed, use_colour
from phobos.cli.launches import add_kernel, add_what, kernel_for, launches, names_given, names_of, option
from phobos.cli.output import document
from phobos.errors import CheckError, InputError

if TYPE_CHECKING:
    from phobos.runtime.tuning.search import Step
    from phobos.runtime.tuning.tuning import How, Tuning

EXAMPLE = """
phobos tune examples/staged.ph --set N=1048576
phobos tune gemm.ph --set M=4096 --set N=4096 --set K=4096 --budget 60 --plot gemm.svg
phobos tune gemm.ph --set M=4096 --set N=4096 --set K=4096 --cluster local       one worker a GPU
phobos tune gemm.ph --set BM=128 --device cpu --json        BM is held at 128
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_kernel(parser, "is the fusion")
    what = parser.add_argument_group("what it is tuned on")
    add_what(what, "an extent, or a constant that is held at this value")
    what.add_argument("--seed", type=seed, metavar="N", help="of arrays without their own")
    what.add_argument(
        "--scratch", action="append", default=[], metavar="NAME",
        help="a tensor that is workspace: what it ends up with may depend on the constants",
    )  # fmt: skip
    where = parser.add_argument_group("where and how")
    where.add_argument("--device", type=device, metavar="D", help="auto, cpu, cuda or cuda:N (default auto)")
    where.add_argument(
        "--cluster", metavar="C", help="try variants on workers: local, local:N, tcp://HOST:PORT or tls://HOST:PORT"
    )
    where.add_argument("--grid", type=grid, metavar="G", help="hold the grid: N or X,Y,Z")
    where.add_argument("--resident", type=positive, metavar="N", help="reference: how many blocks fit at once")
    where.add_argument("--schedule", type=_words, metavar="S[,S]", help="hold the schedule, or try these")
    where.add_argument(
        "--l2-group", type=_counts, metavar="G[,G]", help="hold the grouping for the L2 cache, or try these"
    )
    where.add_argument("--budget", type=seconds, metavar="S", help="stop after so many seconds")
    where.add_argument("--timeout", type=seconds, metavar="S", help="the most a launch may take (default 30)")
    where.add_argument("--repeat", type=positive, metavar="N", help="times each variant is timed (default 20)")
    where.add_argument("--jobs", type=positive, metavar="N", help="processes that compile (default: one a core)")
    where.add_argument("--fresh", action="store_true", help="measure again what an earlier run has measured")
    out = parser.add_argument_group("what it prints")
    out.add_argument("--json", action="store_true", help="one JSON object on stdout")
    out.add_argument("--plot", metavar="FILE", help="draw the times of all variants (SVG)")


def run(arguments: argparse.Namespace) -> int:
    from phobos.runtime.output import writable
    from phobos.runtime.tuning.tuning import How

    if arguments.plot:
        files_apart({"--plot": arguments.plot}, [arguments.file])
        writable(arguments.plot)
    how = How(
        grid=arguments.grid or None, resident=arguments.resident, schedules=arguments.schedule,
        l2_groups=arguments.l2_group, scratch=tuple(arguments.scratch), repeat=arguments.repeat or 20,
        timeout_s=30.0 if arguments.timeout is None else arguments.timeout, budget_s=arguments.budget,
        jobs=arguments.jobs, fresh=arguments.fresh,
    )  # fmt: skip
    try:
        tuning = tuned(arguments, how)
    except CheckError as error:
        return _forbidden(arguments, error)
    return _told(arguments, tuning)


def tuned(arguments: argparse.Namespace, how: How) -> Tuning:
    """Set up what the command line asks for, and tune. Raises PhobosError; on Ctrl-C prints what there is."""
    import os

    from phobos.runtime import gate
    from phobos.runtime.device import chosen
    from phobos.runtime.given import arguments as made_of
    from phobos.runtime.given import constants_in, directories
    from phobos.runtime.tuning.tuning import tune
    from phobos.value import replace

    kernels, headers = launches(arguments)
    header = headers[0]
    kernel = kernel_for(arguments, kernels, header)
    where = option(arguments, header, arguments.device, "device", device) or "auto"
    if arguments.cluster is None:
        try:
            where, _ = chosen(where)
        except ValueError as error:
            raise InputError(str(error)) from None
    names = names_of(arguments, header)
    fixed = constants_in(kernel.analysed()[1].program, names)
    gate.demand(kernel.findings_at(fixed), kernel.name, kernel.text, on_device=True)
    module, unit = kernel.analysed(fixed)
    gate.demand_program(module, unit, kernel.name)
    number = option(arguments, header, arguments.seed, "seed", seed) or 0
    own = names_given(arguments)
    folders = directories(names, own, os.path.dirname(arguments.file) or ".")
    given = made_of(unit.program, names, number, folders, fixed, weak=names.keys() - own)
    bound = kernel.bound((), {**given.arrays, **given.numbers}, fixed)
    files = {name: array for name, array in given.arrays.items() if names[name].startswith("@")}
    texts = {name: text for name, text in names.items() if name not in files and name not in unit.program.constants}
    with _on(arguments.cluster, where, replace(how, seed=number)) as (where, how), _Bar() as bar:
        return tune(
            kernel, bound, texts, files, fixed, where, how, bar, lambda so_far: _interrupted(arguments, so_far, bar)
        )


@contextmanager
def _on(cluster: str | None, where: str, how: How) -> Iterator[tuple[str, How]]:
    """The device to tune on, and how: here, or on the workers of a cluster."""
    if cluster is None:
        yield where, how
        return
    from phobos.runtime.cluster.tuning import on_cluster

    with on_cluster(cluster, where, how) as (device, told, words):
        print(f"tuning on the cluster {words}", file=sys.stderr)
        yield device, told


def _interrupted(arguments: argparse.Namespace, tuning: Tuning, bar: _Bar) -> None:
    bar.end()
    _told(arguments, tuning)
    sys.stdout.flush()


def _told(arguments: argparse.Namespace, tuning: Tuning) -> int:
    from phobos.check.project import write
    from phobos.runtime.tuning.report import svg, text

    if arguments.json:
        document(json.dumps({**tuning.as_dict(), "findings": []}, indent=2, ensure_ascii=False) + "\n")
    else:
        print(text(tuning))
    if arguments.plot:
        write(arguments.plot, svg(tuning))
        if not arguments.json:
            print(f"drawn in {arguments.plot}")
    return 1 if tuning.broken or (tuning.best is None and not tuning.left) else 0


def _forbidden(arguments: argparse.Namespace, error: CheckError) -> int:
    """The checker forbids a launch: its findings, and nothing else."""
    from phobos.check.project import read
    from phobos.check.render import Listing, full
    from phobos.check.render.as_json import as_dict
    from phobos.syntax.lines import LineIndex

    text = read(arguments.file).text
    if arguments.json:
        listing = Listing(arguments.file, text, LineIndex(text), ())
        found = [as_dict(diagnostic, listing) for diagnostic in error.diagnostics]
        document(json.dumps({"filename": arguments.file, "rows": [], "best": None, "findings": found}, indent=2) + "\n")
        return 1
    for diagnostic in error.diagnostics:
        sys.stdout.write(full(diagnostic, text, arguments.file, use_colour()))
    print(f"nothing was tried: {error}")
    return 1


def _words(text: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    if not words:
        raise argparse.ArgumentTypeError("a schedule is needed")
    return words


def _counts(text: str) -> tuple[int, ...]:
    return tuple(positive(word) for word in text.split(","))


class _Bar:
    """What is being tried and the best so far, on stderr where it is a terminal."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._stage = ""

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def __call__(self, step: Step) -> None:
        if not sys.stderr.isatty():
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[now]}"),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
        if step.stage != self._stage:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._stage, self._task = step.stage, self._bar.add_task(step.stage, total=step.total, now="")
        self._bar.update(self._task, completed=step.number, total=step.total, now=_now(step))


def _now(step: Step) -> str:
    from rich.markup import escape

    from phobos.runtime.tuning.report import milliseconds

    best = f"; best {milliseconds(step.best.elapsed_ms)}: {step.best.variant.label}" if step.best is not None else ""
    return escape(step.label + best)
