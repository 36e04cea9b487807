"""Launches made to be refused: each obligation that a kernel leaves to the launch, broken once and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from phobos.diagnostic import Span
from phobos.runtime.judge import Prepared
from phobos.runtime.placing import has_barrier
from phobos.semantics import ir
from phobos.semantics.grid import CellCap, evaluate
from phobos.semantics.obligations import Obligation, obligations_of
from phobos.semantics.program import Program, Promise


@dataclass
class Probe:
    """A launch that breaks `obligation` and must be refused as `kind` at one of `spans` (none: at the kernel)."""

    obligation: str
    kind: str | None
    spans: tuple[Span, ...]
    named: dict[str, Any]
    grid: Any
    resident: int | None = None


def probes(accepted: Prepared, named: Mapping[str, Any]) -> Iterator[Probe]:
    """`accepted` is a launch of `named` that nothing forbids; each probe differs from it in one thing."""
    program = accepted.placement.bound.program
    grid = accepted.placement.grid
    asked = grid[0] if grid[1:] == (1, 1) else grid
    for obligation in obligations_of(program):
        if obligation.state != "launch":
            continue
        match obligation.kind:
            case "resident":
                blocks = grid[0] * grid[1] * grid[2]
                yield Probe("resident", "not-resident", (), dict(named), asked, blocks - 1)
            case "one-dimensional-grid":
                yield Probe("one-dimensional-grid", None, (), dict(named), (grid[0], 2))
            case "barrier-tensor" if isinstance(obligation.subject, ir.Tensor):
                name = obligation.subject.name
                used = {**named, name: np.full_like(named[name], 7)}
                yield Probe("barrier-tensor", "bad-barrier-tensor", (obligation.span,), used, asked)
            case "aligned" if isinstance(obligation.subject, Promise) and obligation.subject.tile > 1:
                dim = obligation.subject.dim
                keys = tuple(promise.key for promise in program.promises if promise.dim == dim)
                yield Probe("aligned", "aligned-broken", keys, _longer(program, named, dim, 1), asked)
            case "no-overlap":
                yield from _shared(obligation, named, asked)
            case "grid-at-most" if isinstance(obligation.subject, CellCap):
                yield from _too_many(obligation, accepted, named)
            case "extent-agrees" if isinstance(obligation.subject, ir.Dim):
                yield from _disagreeing(program, obligation.subject.name, named, asked)


def _longer(program: Program, named: Mapping[str, Any], dim: str, by: int) -> dict[str, Any]:
    """The same arguments with every extent of that name a little larger."""
    changed = dict(named)
    for name, tensor in program.tensors.items():
        if name in named and any(isinstance(e, ir.Dim) and e.name == dim for e in tensor.extents):
            grown = [
                number + by * (isinstance(extent, ir.Dim) and extent.name == dim)
                for extent, number in zip(tensor.extents, named[name].shape)
            ]
            changed[name] = np.zeros(grown, named[name].dtype)
    if dim in program.params:
        changed[dim] = named[dim] + by
    return changed


def _shared(obligation: Obligation, named: Mapping[str, Any], asked: Any) -> Iterator[Probe]:
    """Two arrays one element apart in one piece of memory."""
    assert isinstance(obligation.subject, tuple)
    first, second = (tensor.name for tensor in obligation.subject)
    one, other = named[first], named[second]
    if one.dtype != other.dtype or min(one.size, other.size) < 2:
        return
    room = np.zeros(max(one.size, other.size) + 1, one.dtype)
    used = {**named, first: room[: one.size].reshape(one.shape), second: room[1 : 1 + other.size].reshape(other.shape)}
    yield Probe("no-overlap", None, (obligation.span,), used, asked)


def _too_many(obligation: Obligation, accepted: Prepared, named: Mapping[str, Any]) -> Iterator[Probe]:
    program = accepted.placement.bound.program
    cap = obligation.subject
    assert isinstance(cap, CellCap)
    most = evaluate(cap.extent, accepted.placement.bound.sizes)
    caps = [o for o in obligations_of(program) if o.kind == "grid-at-most"]
    if most is None or len(caps) > 1 or (accepted.placement.bound.program.constants and program.is_persistent):
        return  # another one might speak first, or the grid is a constant's
    grid = list(accepted.placement.grid)
    if cap.axis and (has_barrier(program) or program.is_persistent):
        return  # refused for its dimensions first
    grid[cap.axis] = most + 1
    asked = grid[0] if grid[1:] == [1, 1] else tuple(grid)
    yield Probe("grid-at-most", "grid-too-large", (obligation.span,), dict(named), asked)


def _disagreeing(program: Program, dim: str, named: Mapping[str, Any], asked: Any) -> Iterator[Probe]:
    larger = _longer(program, named, dim, 1)
    last = [name for name in program.tensors if name in named and larger[name] is not named[name]]
    if len(last) > 1:
        yield Probe("extent-agrees", None, (), {**named, last[-1]: larger[last[-1]]}, asked)
