"""Everything the semantics knows of a kernel, as readable text: the program, then each fact with its reason.

What `phobos emit --format facts` prints. Places are line numbers, which the caller makes of spans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from phobos.diagnostic import Span
from phobos.semantics import ir
from phobos.semantics.conflicts import conflicts_of
from phobos.semantics.fusion import FusedProgram, parts_of
from phobos.semantics.grid import NAMES, describe, grid_of
from phobos.semantics.grid import show as poly_text
from phobos.semantics.masks import masks_of
from phobos.semantics.obligations import obligations_of
from phobos.semantics.phases import phases_of
from phobos.semantics.program import Program
from phobos.semantics.show import access_text, show
from phobos.semantics.uniformity import uniformity_of

LineOf = Callable[[Span], int]


def report(program: Program, line_of: LineOf) -> str:
    """The typed program and its facts, a line ending after every line; of a fusion, those of each kernel."""
    if isinstance(program, FusedProgram):
        return "\n".join([_fusion(program, line_of), *(report(part, line_of) for part in parts_of(program))])
    sections: list[tuple[str, Iterator[str]]] = [
        ("masks", _masks(program, line_of)),
        ("grid", _grid(program, line_of)),
        ("phases", _phases(program, line_of)),
        ("divergence", _divergence(program, line_of)),
        ("conflicts", _conflicts(program, line_of)),
        ("needs", _needs(program, line_of)),
    ]
    text = [show(program)]
    for title, lines in sections:
        found = [f"  {line}\n" for line in lines]
        text.append(f"\n{title}\n{''.join(found) or '  none' + chr(10)}")
    return "".join(text)


def _fusion(program: FusedProgram, line_of: LineOf) -> str:
    lines = [f"fusion {program.name}"]
    for number, members in enumerate(program.fusion.members):
        waits, free = program.fusion.reasons(number, line_of)
        lines += [f"  barrier: {reason}" for reason in waits]
        lines.append(f"  phase {number + 1}: {', '.join(member.name for member in members)}")
        lines += [f"  no barrier: {reason}" for reason in free]
    return "\n".join(lines) + "\n"


def _masks(program: Program, line_of: LineOf) -> Iterator[str]:
    for access, masks in masks_of(program).items():
        for axis, mask in enumerate(masks):
            if mask is None:
                continue
            state = "outside" if mask.outside else "masked" if mask.needed else "whole"
            if mask.peeled is not None:
                state += f", whole in all rounds but the last of the loop in line {line_of(mask.peeled.keyword)}"
            yield f"line {line_of(access.span)} {access_text(access)} axis {axis} {state}: {mask.reason}"


def _grid(program: Program, line_of: LineOf) -> Iterator[str]:
    grid = grid_of(program)
    if grid.persistent:
        yield "persistent: as many blocks as are resident"
        for use in grid.rounds:
            yield f"work for {describe(use)} blocks (line {line_of(use.span)})"
        if not grid.useful_known:
            yield "how many blocks have work is not known"
    else:
        for name, axis in zip(NAMES, grid.axes, strict=True):
            if not axis.read:
                yield f"axis {name}: 1, its index is not read"
            elif not axis.uses:
                yield f"axis {name}: the caller must say: {axis.reason}"
            for use in axis.uses:
                yield f"axis {name}: {describe(use)} (line {line_of(use.span)})"
    for constant in grid.constants:
        how = "bound to the resident blocks" if constant.stride_form else "its own value"
        yield f"constant {constant.constant.name} is the grid: {how} (line {line_of(constant.span)})"
    for cap in grid.caps:
        yield f"at most {poly_text(cap.extent)} blocks: one cell of {cap.tensor.name} each (line {line_of(cap.span)})"


def _phases(program: Program, line_of: LineOf) -> Iterator[str]:
    for phase in phases_of(program).phases:
        begins = "the start" if phase.begins is None else _barrier(phase.begins, line_of)
        ends = ", ".join("the end" if end is None else _barrier(end, line_of) for end in phase.ends)
        lines = sorted({line_of(statement.span) for statement in phase.statements})
        yield f"{phase.index} from {begins} to {ends or 'nowhere'}: lines {_ranges(lines)}"


def _barrier(barrier: ir.Barrier, line_of: LineOf) -> str:
    through = "".join(f", called in line {line_of(call)}" for call in reversed(barrier.calls))
    return f"the barrier in line {line_of(barrier.span)}{through}"


def _ranges(lines: Iterable[int]) -> str:
    """`2-4, 7`"""
    parts: list[list[int]] = []
    for line in lines:
        if parts and line == parts[-1][1] + 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts) or "none"


def _divergence(program: Program, line_of: LineOf) -> Iterator[str]:
    for divergence in uniformity_of(program).divergences:
        sure = {"witness": "certain", "data": "by what is loaded", "none": "by numbers not found"}[divergence.ground]
        chain = "; ".join(f"{origin.message} (line {line_of(origin.span)})" for origin in divergence.chain)
        yield (
            f"{_barrier(divergence.barrier, line_of)}, {divergence.kind} of line {line_of(divergence.construct)}, "
            f"{sure}{': ' + chain if chain else ''}"
        )


def _conflicts(program: Program, line_of: LineOf) -> Iterator[str]:
    for conflict in conflicts_of(program):
        first, second = conflict.first.access, conflict.second.access
        sure = ", certain" if conflict.certain else ""
        yield (
            f"{conflict.kind}{sure}: {access_text(first)} (line {line_of(first.span)}) and {access_text(second)} "
            f"(line {line_of(second.span)}){': ' + conflict.reason if conflict.reason else ''}"
        )


def _needs(program: Program, line_of: LineOf) -> Iterator[str]:
    for obligation in obligations_of(program):
        where = f"line {line_of(obligation.span)}"
        yield f"{obligation.kind} {obligation.state} ({where}): {obligation.reason}"
