"""Show what a kernel needs and how many of its blocks a card holds: registers, spills, shared memory, limiter, grid.

Compiled for each target with NVRTC; no GPU is needed. Where that cannot be done, its row says why. Exit 2: no row has
figures.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from phobos.check.render.text import clean
from phobos.cli.arguments import add_order, add_schedule, add_set, kernel_name, order_for
from phobos.cli.launches import demand_names, one_of
from phobos.errors import CheckError, InputError, LaunchError

if TYPE_CHECKING:
    from phobos.codegen.cards import Target
    from phobos.runtime.kernel import Kernel
    from phobos.semantics.program import Program

EXAMPLE = """
phobos occupancy examples/staged.ph
phobos occupancy gemm.ph --kernel gemm --target h200,a100,rtx4090 --set BM=128
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from textwrap import fill

    from phobos.codegen.cards import CARDS, LIMITS

    known = fill(f"Cards: {', '.join(CARDS)}. Architectures: {', '.join(LIMITS)}.", 100)
    parser.description = f"{parser.description}\n\n{known}"
    parser.add_argument("file", metavar="FILE", help="a .ph file")
    parser.add_argument(
        "--kernel", type=kernel_name, metavar="K", help="one kernel, or K1+K2 for a fusion (default: all of the file)"
    )
    add_order(parser)
    parser.add_argument(
        "--target", metavar="T[,T...]", help="cards or architectures (default: the configured, else h200)"
    )
    add_set(parser, "a constant or an extent")
    add_schedule(parser)
    parser.add_argument("--json", action="store_true", help="a list of objects on stdout")


def run(arguments: argparse.Namespace) -> int:
    from phobos.codegen import cards
    from phobos.runtime.kernel import load

    kernels = load(arguments.file)
    chosen = (
        [one_of(kernels, arguments.file, arguments.kernel, order_for(arguments))] if arguments.kernel else list(kernels)
    )
    if not chosen:
        raise InputError(f"{arguments.file} holds no kernel")
    names = arguments.target.split(",") if arguments.target else _configured(arguments.file)
    try:
        targets = [cards.target(name) for name in names]
    except cards.UnknownTarget as error:
        raise InputError(str(error)) from None
    given, asked = dict(arguments.set), (arguments.schedule, arguments.l2_group)
    demand_names(chosen, given)
    rows = [_row(kernel, target, given, asked) for kernel in chosen for target in targets]
    if arguments.json:
        print(json.dumps(rows, indent=2))
    else:
        _print(rows)
    if any("refused" not in row for row in rows):
        return 0
    from phobos.cli import complain

    complain(f"nothing of {arguments.file} could be compiled")
    return 2


def _configured(path: str) -> list[str]:
    from phobos.check.configuration import of_file
    from phobos.codegen.cards import DEFAULT_TARGET

    return list(of_file(path).target) or [DEFAULT_TARGET]


def _row(
    kernel: Kernel, target: Target, given: dict[str, int], asked: tuple[str | None, int | None]
) -> dict[str, Any]:
    from phobos.lowering.options import Options
    from phobos.runtime import gate
    from phobos.runtime.compiling import build
    from phobos.runtime.scheduling import form_by_text, schedule_for

    schedule = schedule_for(*asked)
    module, unit = kernel.analysed()
    program = unit.program
    constants = {name: number for name, number in given.items() if name in program.constants}
    sizes = {name: number for name, number in given.items() if name not in program.constants}
    module, unit = kernel.analysed(constants)
    program = unit.program
    row: dict[str, Any] = {
        "kernel": kernel.name,
        "target": target.name,
        "constants": {name: constant.value for name, constant in program.constants.items()},
        "threads": program.launch.threads,
    }
    try:
        gate.demand_program(module, unit, kernel.name)
        form = form_by_text(program, schedule, asked[0] is not None)
        made = build(module, unit, Options(arch=target.arch, form=form))
    except (CheckError, LaunchError) as error:
        return {**row, "refused": str(error)}
    held = made.occupancy(target.limits)
    resident = None if target.multiprocessors is None else held.ctas_per_sm * target.multiprocessors
    return {
        **row,
        "registers": made.registers,
        "spilled_bytes": made.local_bytes,
        "shared_bytes": made.shared_bytes,
        "ctas_per_sm": held.ctas_per_sm,
        "limiter": held.limiter,
        "resident": resident,
        "schedule": schedule.kind,
        "grid": _grid(program, sizes, resident),
    }


def _grid(program: Program, sizes: dict[str, int], resident: int | None) -> str:
    from phobos.semantics.fusion import FusedProgram, largest_phase_at
    from phobos.semantics.grid import GridDisagrees, GridUnknown, blocks_at, persistent_blocks_at

    numbers = {**{name: constant.value for name, constant in program.constants.items()}, **sizes}
    if program.is_persistent:
        return "resident" if resident is None else str(persistent_blocks_at(program, numbers, resident))
    needs_room = isinstance(program, FusedProgram) and len(program.fusion.phases) > 1
    try:
        if not isinstance(program, FusedProgram):
            return " x ".join(str(n) for n in blocks_at(program, numbers))
        most = largest_phase_at(program, numbers)
    except (GridUnknown, GridDisagrees, KeyError):
        return str(resident) if needs_room and resident is not None else "by the launch"
    return str(min(most, resident) if needs_room and resident is not None else most)


def _print(rows: list[dict[str, Any]]) -> None:
    head = ["kernel", "target", "threads", "registers", "spills", "shared", "CTAs/SM", "limited by", "resident", "grid"]
    lines = [head]
    for row in rows:
        if "refused" in row:
            lines.append([row["kernel"], row["target"], str(row["threads"]), row["refused"]])
            continue
        lines.append([
            row["kernel"], row["target"], str(row["threads"]), str(row["registers"]), str(row["spilled_bytes"]),
            str(row["shared_bytes"]), str(row["ctas_per_sm"]), row["limiter"], str(row["resident"] or "-"), row["grid"],
        ])  # fmt: skip
    lines = [[clean(cell) for cell in line] for line in lines]
    widths = [max(len(line[i]) for line in lines if len(line) == len(head)) for i in range(len(head))]
    for line in lines:
        if len(line) == len(head):
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        else:
            start = "  ".join(cell.ljust(width) for cell, width in zip(line[:3], widths, strict=False))
            print(f"{start}  {line[3]}")
