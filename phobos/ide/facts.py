"""Facts of a kernel as sentences: masks, phases, the grid, attributes, and what the host must guarantee.

Nothing is worked out here: every sentence words a fact that `phobos.semantics` computed.
"""

from __future__ import annotations

from phobos.check.walk import barriers_of, every
from phobos.diagnostic import plural
from phobos.ide.describe import AXES, row_of
from phobos.ide.document import Document, Place
from phobos.language.attributes import DEFAULT_THREADS, WARP
from phobos.language.search import points
from phobos.semantics import ir
from phobos.semantics.footprints import footprints_of
from phobos.semantics.grid import describe, grid_of, show
from phobos.semantics.masks import Mask, masks_of
from phobos.semantics.obligations import Obligation, launch_obligations_of
from phobos.semantics.phases import Phase, phases_of
from phobos.semantics.program import Program
from phobos.semantics.values import values_of
from phobos.syntax import tree

MOST_OBLIGATIONS = 8


# --- masks ----------------------------------------------------------------------------------------------


def access_of(program: Program, subscript: tree.Subscript) -> ir.Access | None:
    """The access that a subscript became."""
    match program.node_types.get(subscript):
        case ir.Access() as access:
            return access
        case ir.Load(access=access) | ir.Store(access=access) | ir.DefineView(access=access):
            return access
        case _:
            pass
    for access in masks_of(program):
        span = access.span
        if (span.start, span.end) == (subscript.start, subscript.end) and not access.calls:
            return access
    return None


def mask_lines(document: Document, place: Place, program: Program, subscript: tree.Subscript) -> list[str]:
    """One line an axis of a sliced access: masked or not, and why."""
    access = access_of(program, subscript)
    if access is None or access.is_point:
        return []
    masks = masks_of(program).get(access, ())
    lines = []
    for axis, mask in enumerate(masks):
        if mask is not None:
            lines.append(f"- axis {axis}: {mask_text(document, place, mask)}")
    return ["Masks:", *lines] if lines else []


def mask_text(document: Document, place: Place, mask: Mask) -> str:
    if mask.outside:
        return f"wholly outside: {mask.reason}"
    if not mask.needed:
        return f"no mask: {mask.reason}"
    text = f"masked: {mask.reason}"
    if mask.peeled is not None:
        row = row_of(document, place, mask.peeled.span.owner, mask.peeled.span.start)
        text += f"; only in the last round of the loop on line {row}" if row is not None else "; in the last round only"
    return text


# --- phases ---------------------------------------------------------------------------------------------


def barrier_sections(document: Document, place: Place, program: Program, call: tree.Call) -> list[str]:
    """What other blocks may have written before a barrier, and what is read after it."""
    barriers = [b for b in barriers_of(program) if b.span.start <= call.start < b.span.end and not b.calls]
    made = program.node_types.get(call)
    if isinstance(made, ir.Barrier):
        barriers = [made]
    if not barriers:
        return []
    barrier = barriers[0]
    phases = phases_of(program)
    ending = [phase for phase in phases.phases if barrier in phase.ends]
    beginning = [phase for phase in phases.phases if phase.begins is barrier]
    lines = []
    for word, group in (("Ends", ending), ("Begins", beginning)):
        if group:
            numbers = " and ".join(str(phase.index + 1) for phase in group)
            lines.append(f"{word} phase{'s' * (len(group) > 1)} {numbers} of {len(phases.phases)}.")
    wrote = _touched(document, place, program, ending, ("store", "atomic"))
    reads = _touched(document, place, program, beginning, ("load", "atomic"))
    lines.append("Written before it: " + (", ".join(wrote.values()) or "nothing") + ".")
    lines.append("Read after it: " + (", ".join(reads.values()) or "nothing") + ".")
    both = sorted(set(wrote) & set(reads))
    if both:
        lines.append("So it orders " + ", ".join(f"`{name}`" for name in both) + " between blocks.")
    lines += _on_chip_lines(document, place, program, barrier)
    return ["\n".join(f"- {line}" for line in lines)]


def _on_chip_lines(document: Document, place: Place, program: Program, barrier: ir.Barrier) -> list[str]:
    """What may stay on chip over a barrier, and why another tensor goes through memory."""
    from phobos.lowering.on_chip import on_chip_of

    if program.problems:
        return []
    found = on_chip_of(program)
    lines = [
        f"`{kept.tensor.name}` may stay on chip across it, in {kept.registers} registers a thread for each tile."
        for kept in found.kept
        if barrier in kept.stretch.barriers
    ]
    for one in found.refused:
        row = row_of(document, place, one.span.owner, one.span.start)
        at = "" if row is None else f" (line {row})"
        lines.append(f"`{one.tensor.name}` goes through memory: {one.why}{at}.")
    return lines


def _touched(
    document: Document, place: Place, program: Program, phases: list[Phase], kinds: tuple[str, ...]
) -> dict[str, str]:
    """By tensor, its name with the lines where it is touched in some of these phases."""
    inside = {statement for phase in phases for statement in phase.statements}
    rows: dict[str, set[int]] = {}
    for footprint in footprints_of(program):
        base = footprint.access.base
        if footprint.kind in kinds and isinstance(base, ir.Tensor) and footprint.statement in inside:
            row = row_of(document, place, footprint.access.span.owner, footprint.access.span.start)
            rows.setdefault(base.name, set()).update(() if row is None else (row,))
    return {
        name: f"`{name}`" + (f" (line {', '.join(map(str, sorted(lines)))})" if lines else "")
        for name, lines in sorted(rows.items())
    }


# --- the grid -------------------------------------------------------------------------------------------


def grid_lines(document: Document, place: Place, program: Program) -> list[str]:
    """How many blocks a launch has, in words."""
    if program.owner is not None:
        return []
    grid = grid_of(program)
    threads = program.launch.threads
    if not grid.persistent:
        axes = [axis_text(program, axis) for axis in range(3)]
        while len(axes) > 1 and axes[-1] == "1":
            axes.pop()
        blocks = f"{' x '.join(axes)} block{'s' * (axes != ['1'])}"
        lines = [f"Grid: {blocks} of {threads} threads."]
        lines += [
            f"The caller must pass the grid of axis {AXES[i]}: {axis.reason}"
            for i, axis in enumerate(grid.axes)
            if axis.read and not axis.uses
        ]
        return lines
    lines = [f"Grid: persistent, as many blocks of {threads} threads as the card holds at once, on one axis."]
    if grid.rounds and grid.useful_known:
        work = ", ".join(sorted({describe(use) for use in grid.rounds}))
        lines.append(f"No more than have work: {work}.")
    for constant in grid.constants:
        if constant.stride_form:
            lines.append(f"`{constant.constant.name}` is bound to the number of blocks by the launcher.")
        else:
            lines.append(f"The grid is exactly `{constant.constant.name}` = {constant.constant.value} blocks.")
    for cap in grid.caps:
        lines.append(f"At most {show(cap.extent)} blocks: each owns one cell of `{cap.tensor.name}`.")
    return lines


def axis_text(program: Program, axis: int) -> str:
    """`ceil(N / 64)`, `1`, or `?` where the caller must say."""
    found = grid_of(program).axes[axis]
    if not found.read:
        return "1"
    return describe(found.uses[0]) if found.uses else "?"


def axis_lines(document: Document, place: Place, program: Program, axis: int) -> list[str]:
    if program.owner is not None:
        return []
    grid = grid_of(program)
    if grid.persistent:
        if axis:
            return ["This kernel is persistent: its grid has one dimension, so the index here is 0 and the extent 1."]
        return grid_lines(document, place, program)
    text = axis_text(program, axis)
    if text == "?":
        return [f"The caller must pass this axis of the grid: {grid.axes[axis].reason}"]
    rows = sorted(
        {row for use in grid.axes[axis].uses if (row := row_of(document, place, use.span.owner, use.span.start))}
    )
    said = f" (said on line {', '.join(map(str, rows))})" if rows else ""
    return [f"This axis has {text} block{'s' * (text != '1')}{said}."]


# --- names ----------------------------------------------------------------------------------------------


def constant_lines(program: Program, constant: ir.Constant) -> list[str]:
    shown = ", ".join(str(choice) for choice in constant.choices[:12])
    more = f", … ({len(constant.choices)} in all)" if len(constant.choices) > 12 else ""
    lines = [f"Constant of `@{constant.attribute}`: one of {shown}{more}; {constant.value} unless chosen otherwise."]
    if program.owner is None:
        for bound in grid_of(program).constants:
            if bound.constant is constant:
                how = "the launcher binds it to" if bound.stride_form else "it is"
                lines.append(f"A grid constant: {how} the number of blocks.")
    return lines


def dimension_line(document: Document, place: Place, program: Program, dim: ir.Dim) -> str:
    bound = "bound at launch" if program.owner is None else "that of the argument"
    text = f"Extent: axis {dim.axis} of `{dim.tensor}`, {bound}."
    for promise in program.promises:
        if promise.dim == dim.name:
            text += f" Promised by `@aligned` to be a whole multiple of {promise.tile}."
    return text


def loop_line(document: Document, place: Place, program: Program, variable: ir.Variable) -> str:
    for loop in every(program, ir.For):
        if loop.variable is variable:
            fact = values_of(program).loop(loop)
            if fact.lo is None or fact.hi is None:
                return ""
            step = f", step `{show(fact.step)}`" if fact.step is not None and fact.step.constant != 1 else ""
            text = f"From `{show(fact.lo)}` below `{show(fact.hi)}`{step}."
            return "" if "?" in text else text  # a bound without a spelling
    return ""


# --- what the host must guarantee -------------------------------------------------------------------------


def host_section(program: Program, about: ir.Tensor | ir.Dim | ir.ScalarParam | None = None) -> str:
    """The obligations that are left to the launch: of the whole kernel, or those that concern one parameter."""
    if program.owner is not None:
        return ""
    left = [o for o in launch_obligations_of(program) if about is None or _concerns(o, about)]
    reasons = list(dict.fromkeys(o.reason for o in left))
    if not reasons:
        return ""
    lines = [f"- {reason}" for reason in reasons[:MOST_OBLIGATIONS]]
    if len(reasons) > MOST_OBLIGATIONS:
        lines.append(f"- … and {len(reasons) - MOST_OBLIGATIONS} more: `phobos emit --format contract` lists them")
    return "\n".join(["**The host must guarantee:**", *lines])


def _concerns(obligation: Obligation, about: ir.Tensor | ir.Dim | ir.ScalarParam) -> bool:
    subject = obligation.subject
    parts = subject if isinstance(subject, tuple) else (subject,)
    for part in parts:
        if part is about:
            return True
        if isinstance(about, ir.Dim) and getattr(part, "dim", None) in (about, about.name):
            return True
        if isinstance(about, ir.Tensor) and (
            getattr(part, "tensor", None) is about or getattr(part, "base", None) is about
        ):
            return True
    return False


# --- attributes -----------------------------------------------------------------------------------------


def attribute_lines(document: Document, place: Place, program: Program, attribute: tree.Attribute) -> list[str]:
    """What an attribute does to this kernel."""
    match attribute.name.text:
        case "persistent":
            lines = grid_lines(document, place, program)
            rows = sorted(
                {row for b in barriers_of(program) if (row := row_of(document, place, b.span.owner, b.span.start))}
            )
            if rows:
                lines.append(f"Its blocks wait for each other on line {', '.join(map(str, rows))}.")
            else:
                lines.append("No `grid_barrier` in this kernel.")
            return lines
        case "launch":
            launch = program.launch
            lines = [f"{launch.threads} threads a block, {launch.threads // WARP} warps."]
            if launch.threads == DEFAULT_THREADS:
                lines.append("That is also what a kernel without `@launch` has.")
            if launch.max_registers is not None:
                lines.append(f"At most {launch.max_registers} registers a thread.")
            return lines
        case "autotune" | "cluster":
            names = [a.name.text for a in attribute.arguments if isinstance(a, tree.SearchArg)]
            constants = [program.constants[name] for name in names if name in program.constants]
            lines = [
                f"`{c.name}` is {c.value} unless chosen otherwise, of {', '.join(map(str, c.choices[:10]))}"
                + ("…" if len(c.choices) > 10 else "")
                + "."
                for c in constants
            ]
            space = points({c.name: c.choices for c in program.constants.values()})
            lines.append(f"The whole space of this kernel has {plural(space, 'point')}.")
            return lines
        case "aligned":
            return [_promise_line(program, dim) for dim in sorted({p.dim for p in program.promises})]
        case "dynshared":
            return [f"Its tiles take {_most_shared(program)} bytes of shared memory where they take the most."]
        case "tensorcore":
            return tensorcore_lines(document, place, program)
        case "pipeline":
            return pipeline_lines(document, place, program)
        case _:
            return []


def _promise_line(program: Program, dim: str) -> str:
    tile = next(p.tile for p in program.promises if p.dim == dim)
    unmasked = sum(
        any(mask is not None and not mask.needed and any(p.dim == dim for p in mask.promises) for mask in masks)
        for masks in masks_of(program).values()
    )
    kept = "no mask goes thanks to it"
    if unmasked:
        kept = f"{unmasked} access{'es need' if unmasked > 1 else ' needs'} no mask thanks to it"
    return f"`{dim}` is a whole multiple of {tile}: {kept}."


def _most_shared(program: Program) -> int:
    from phobos.check.rules.ph402_shared_memory_exceeded import most_live

    return most_live(program).bytes


# What the lowering decides because of an attribute, asked where the rules and the emitter ask.


def tensorcore_lines(document: Document, place: Place, program: Program) -> list[str]:
    from phobos.lowering.decide import decisions_of

    lines = []
    for dot, product in decisions_of(program).products.items():
        row = row_of(document, place, dot.span.owner, dot.span.start)
        how = "runs on tensor cores" if product.against is None else f"runs on the ordinary units: {product.reason}"
        lines.append(f"The product on line {row} {how}.")
    return lines or ["No product in this kernel."]


def pipeline_lines(document: Document, place: Place, program: Program) -> list[str]:
    from phobos.lowering.decide import decisions_of

    found = decisions_of(program).pipelines
    if not found.loops:
        return [f"No loop is double-buffered: {found.summary}."]
    rows = sorted({row_of(document, place, loop.span.owner, loop.span.start) or 0 for loop in found.loops})
    return [f"The loop on line {', '.join(map(str, rows))} is double-buffered."]
