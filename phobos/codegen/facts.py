"""What was found out and decided about a kernel, as plain data: layouts, homes of tiles, masks, products, waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phobos.diagnostic import Span
from phobos.lowering import ops, walk
from phobos.lowering.decide import Lowered
from phobos.lowering.layout import Layout
from phobos.lowering.on_chip import on_chip_of
from phobos.lowering.vectors import elements_per_access
from phobos.semantics import ir
from phobos.semantics.program import Program


def facts_of(lowered: Lowered, line_of: Callable[[Span], int]) -> dict[str, Any]:
    """Every decision with its line and its reason."""
    program = lowered.program
    return {
        "kernel": program.name,
        "threads": program.launch.threads,
        "constants": {name: constant.value for name, constant in program.constants.items()},
        "tiles": [_tile(lowered, variable, line_of) for variable in _tiles(lowered)],
        "accesses": [_access(lowered, access, line_of) for access in lowered.masks],
        "products": [
            {
                "line": line_of(statement.span),
                "unit": product.unit,
                "reason": product.reason,
                "k": product.length,
                "step": product.step,
                "staged_bytes": product.staged_bytes,
                "left_in_registers": product.left.held,
                "layout": _layout(product.layout),
            }
            for statement, product in lowered.products.items()
        ],
        "rounds": [
            {
                "line": line_of(loop.span),
                "stages": rounds.stages,
                "stage_bytes": rounds.stage_bytes,
                "staged_once_bytes": rounds.once_bytes,
                "rounds_ahead": rounds.ahead,
                "next_beside_last": rounds.beside is not None,
                "reason_against_beside": rounds.against_beside,
                "copies": "bulk" if rounds.bulk else "by all threads",
                "reason": rounds.against_bulk,
            }
            for loop, rounds in lowered.rounds.items()
        ],
        "waits": [
            {"line": line_of(statement.span), "reason": statement.reason}
            for statement in walk.statements(lowered.body)
            if isinstance(statement, ops.Sync)
        ],
        "shared_bytes": lowered.shared.bytes,
        "on_chip": _on_chip(program, line_of),
    }


def _on_chip(program: Program, line_of: Callable[[Span], int]) -> list[dict[str, Any]]:
    """What may stay on chip across barriers, where a launch has few enough tiles a block; and why the rest may not."""
    found = on_chip_of(program)
    stays = [
        {
            "tensor": kept.tensor.name,
            "may_stay": True,
            "lines": sorted({line_of(access.span) for access in kept.accesses}),
            "registers_per_tile": kept.registers,
            "stored": kept.stored,
            "reason": kept.proof,
        }
        for kept in found.kept
    ]
    return stays + [
        {"tensor": one.tensor.name, "may_stay": False, "lines": [line_of(one.span)], "reason": one.why}
        for one in found.refused
    ]


def _tiles(lowered: Lowered) -> list[ir.Variable]:
    found: dict[ir.Variable, None] = {}
    for statement in walk.statements(lowered.body):
        match statement:
            case ir.Define(variable=variable) if walk.is_tile(variable.type):
                found[variable] = None
            case ops.Reduce(result=variable) | ops.Dot(result=variable):
                found[variable] = None
    return list(found)


def _tile(lowered: Lowered, variable: ir.Variable, line_of: Callable[[Span], int]) -> dict[str, Any]:
    assert isinstance(variable.type, ir.TileT)
    place = lowered.shared.places.get(variable)
    made: dict[str, Any] = {
        "name": variable.name,
        "line": line_of(variable.span),
        "dtype": variable.type.dtype,
        "shape": [int(n) if isinstance(n, int) else str(n) for n in variable.type.shape],
        "home": "registers" if place is None else "shared",
    }
    if place is None:
        made["layout"] = _layout(lowered.layouts.of(variable))
    else:
        made["reason"] = lowered.homes.get(variable, "")
        made["offset"], made["bytes"] = place.offset, place.bytes
    return made


def _layout(layout: Layout) -> dict[str, int]:
    return {
        "threads_along_a_row": layout.across,
        "rows_together": layout.row_group,
        "vector": layout.vector,
        "registers": layout.registers,
    }


def _access(lowered: Lowered, access: ir.Access, line_of: Callable[[Span], int]) -> dict[str, Any]:
    masks = lowered.masks[access]
    return {
        "line": line_of(access.span),
        "base": access.base.name,
        "elements_per_access": 1 if access.is_point else elements_per_access(access, lowered.values),
        "masks": [None if mask is None else {"needed": mask.needed, "reason": mask.reason} for mask in masks],
    }
