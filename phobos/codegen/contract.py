"""The contract of a compiled kernel with whoever launches it, as plain data: for a launcher of one's own.

It holds all that this project's launcher goes by: the symbol and its arguments in order, threads, shared memory,
whether the launch is cooperative, where the grid comes from and how its blocks are shared out, the alignment of bases,
and every obligation that is not proved. `contract.schema.json` beside this file describes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phobos.codegen.emitted import Argument, Emitted
from phobos.codegen.resources import Resources
from phobos.diagnostic import Span
from phobos.lowering.options import Options
from phobos.semantics import ir
from phobos.semantics.fusion import FusedProgram, Fusion, requirements_of
from phobos.semantics.grid import describe, grid_of
from phobos.semantics.program import Program
from phobos.semantics.schedules import FLAT, XYZ, Form

VERSION = 1


def contract_of(
    program: Program, emitted: Emitted, resources: Resources | None, options: Options, line_of: Callable[[Span], int]
) -> dict[str, Any]:
    """The contract of one kernel at its constants, as compiled with `options`."""
    return {
        "version": VERSION,
        "kernel": program.name,
        "symbol": emitted.symbol,
        "arch": options.arch,
        "constants": {name: constant.value for name, constant in program.constants.items()},
        "threads": emitted.threads,
        "dynamic_shared_bytes": emitted.dynamic_shared_bytes,
        "static_shared_bytes": emitted.static_shared_bytes,
        "registers": None if resources is None else resources.registers,
        "local_bytes": None if resources is None else resources.local_bytes,
        "cooperative": emitted.cooperative,
        "arguments": [_argument(program, argument) for argument in emitted.arguments],
        "grid": _workers(program.fusion) if isinstance(program, FusedProgram) else _grid(program),
        "schedule": _schedule(program, options.form),
        "alignment_bytes": dict(sorted(emitted.wide.items())),
        "obligations": [
            {
                "kind": one.kind,
                "state": one.state,
                "reason": one.reason,
                "line": line_of(one.span),
            }
            for one in requirements_of(program)
        ] + [_multiple(program, name, unit, line_of) for name, unit in options.multiples],
    }


def _multiple(program: Program, name: str, unit: int, line_of: Callable[[Span], int]) -> dict[str, Any]:
    """What the code goes by besides, as it was made for an extent."""
    reason = f"this code is for extents {name} that are multiples of {unit}"
    return {"kind": "aligned", "state": "launch", "reason": reason, "line": line_of(program.dims[name].span)}


def _grid(program: Program) -> dict[str, Any]:
    grid = grid_of(program)
    return {
        "persistent": grid.persistent,
        "axes": [
            {"read": axis.read, "blocks": [describe(use) for use in axis.uses], "reason": axis.reason}
            for axis in grid.axes
        ],
        "constants": [constant.constant.name for constant in grid.constants],
    }


def _workers(fusion: Fusion) -> dict[str, Any]:
    """The grid of a fusion is one of workers; each kernel has its own grid of blocks, which its arguments are."""
    several = len(fusion.phases) > 1
    idle = {"read": False, "blocks": [], "reason": ""}
    number = "any number of workers that are resident at once" if several else "one for each block of all kernels"
    return {
        "persistent": several,
        "axes": [{"read": True, "blocks": [], "reason": number}, idle, idle],
        "constants": [],
        "phases": [
            [{"kernel": program.name, "axes": _grid(program)["axes"]} for program in phase] for phase in fusion.members
        ],
    }


def _schedule(program: Program, form: Form | None) -> dict[str, Any]:
    """What is to be launched: the blocks themselves, or workers that find their blocks by the `grid` arguments."""
    if isinstance(program, FusedProgram):
        form = form or program.fusion.form
    if form is None:
        return {"kind": FLAT, "l2_group": 1, "launch": "the grid"}
    launch = {
        XYZ: "the grid",
        FLAT: "as many blocks along x as the grid has in all",
    }.get(form.kind, "any number of workers along x")
    group = max(order.l2_group for phase in form.phases for order in phase)
    return {"kind": form.kind, "l2_group": group, "launch": launch}


def _argument(program: Program, argument: Argument) -> dict[str, Any]:
    kind, name = argument.kind, argument.name
    made: dict[str, Any] = {"kind": kind, "name": name, "ctype": argument.ctype}
    if kind == "tensor":
        tensor = program.tensors[name]
        made["dtype"] = tensor.dtype
        made["extents"] = [
            extent if isinstance(extent, int) else extent.value if isinstance(extent, ir.Constant) else extent.name
            for extent in tensor.extents
        ]
    elif kind == "scalar":
        made["dtype"] = program.params[name].dtype
    elif kind == "map":
        made["dtype"] = program.tensors[name].dtype
        made["box"] = list(argument.box)
        made["meaning"] = _MEANINGS[kind]
    else:
        made["meaning"] = _MEANINGS[kind]
    return made


_MEANINGS = {
    "dim": "the extent of that name",
    "pitch": "elements from one row of the tensor to the next",
    "grid": "blocks of the grid along that axis; the name is the kernel's place and the axis; see `schedule`",
    "map": "a CUtensorMap by value, aligned to 64 bytes: cuTensorMapEncodeTiled over the tensor of that name, rank 2, "
    "the columns first; the box is given as rows and columns; element strides 1, no interleave, swizzled by as many "
    "bytes as a row of the box has (128, 64 or 32), L2 promotion 128 bytes, zeros outside",
    "word": "address of the first barrier tensor, or of a zeroed 32-bit word in device memory; bit 0 asks to leave",
    "report": "address of zeroed memory that the device can write: 48 bytes and 4 more for each block, the number "
    "of those blocks in the 32-bit word at byte 40",
    "timeout": "nanoseconds after which a wait ends the grid; 0 for none",
    "groups": "address of zeroed device memory, 128 bytes for every 64 blocks; or 0, which is as good up to 768 blocks",
}
