"""The grid of a launch: how many blocks, why so many, and what forbids it. No device is asked here.

The reference runtime and the CUDA runtime differ only in the resident count, which the caller brings.
"""

from __future__ import annotations

from collections.abc import Callable

from phobos.diagnostic import plural
from phobos.runtime.binding import Bound
from phobos.runtime.faults import refusal
from phobos.runtime.plan import Check
from phobos.semantics import ir
from phobos.semantics.grid import (
    GridDisagrees,
    GridUnknown,
    GridUse,
    blocks_at,
    cap_at,
    evaluate,
    grid_of,
    persistent_blocks_at,
    useful_work_at,
)
from phobos.semantics.obligations import obligations_of
from phobos.semantics.program import Program
from phobos.semantics.values import statements_of
from phobos.value import value

Extents = tuple[int, int, int]
GridOption = int | tuple[int, ...] | None
ASKED = "as asked for"  # where a plan's grid is the caller's


@value
class Placement:
    """`bound` anew where a grid constant made another program of the kernel."""

    bound: Bound
    grid: Extents
    source: str
    resident: int | None
    checks: tuple[Check, ...]
    notes: tuple[str, ...]


def extents_of(bound: Bound, grid: GridOption) -> Extents | None:
    """A caller's grid as three extents; None is "find out". Raises LaunchError."""
    if grid is None:
        return None
    parts = grid if isinstance(grid, tuple) else (grid,)
    if not 1 <= len(parts) <= 3 or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in parts):
        raise refusal(
            bound.module, bound.unit, None, f"`{bound.program.name}` cannot have a grid of {grid!r}", None,
            help="give 1 to 3 whole numbers of at least 1, or leave `grid` out",
        )  # fmt: skip
    filled = (*parts, 1, 1)
    return filled[0], filled[1], filled[2]


def has_barrier(program: Program) -> bool:
    return any(isinstance(s, ir.Barrier) for s in statements_of(program.body))


def place(
    bound: Bound,
    grid: GridOption,
    resident: Callable[[Program], tuple[int, str]],
    rebuilt: Callable[[dict[str, int]], Bound],
    constants: dict[str, int],
) -> Placement:
    """Decide the grid.

    `resident(program)` says how many blocks fit at once and why; it is asked only of kernels for which that
    matters. `rebuilt(constants)` binds the arguments again at other constants; `constants` are the caller's.
    """
    asked = extents_of(bound, grid)
    program = bound.program
    barrier = has_barrier(program)
    if asked is not None and (program.is_persistent or barrier) and (asked[1], asked[2]) != (1, 1):
        why = "is `@persistent`" if program.is_persistent else "has a grid barrier"
        raise refusal(
            bound.module, bound.unit, None, f"`{program.name}` {why}, so its grid has one dimension, not "
            f"{asked[0]} x {asked[1]} x {asked[2]}", None, help="give the grid as one number",
        )  # fmt: skip
    if program.is_persistent:
        return _persistent(bound, asked, resident, rebuilt, constants)
    checks: list[Check] = []
    count: Extents
    if asked is not None:
        count, source = asked, ASKED
    else:
        try:
            count, source = blocks_at(program, bound.sizes), "inferred from the stored spans"
        except GridUnknown as error:
            raise refusal(
                bound.module, bound.unit, None, f"the grid of `{program.name}` must be given: {error}", None,
                help="pass `grid=` (on the command line `--grid N` or `--grid X,Y`)",
            ) from None  # fmt: skip
        except GridDisagrees as error:
            raise refusal(
                bound.module, bound.unit, None, f"the grid of `{program.name}` cannot be inferred: {error}", None,
                help="pass `grid=` (on the command line `--grid N` or `--grid X,Y`)",
            ) from None  # fmt: skip
    checks += _within_cells(bound, count)
    held: int | None = None
    why = ""
    if barrier:
        held, why = resident(program)
        checks.append(_fits(bound, count, held, why))
    return Placement(bound, count, source, held, tuple(checks), ())


def _persistent(
    bound: Bound,
    asked: Extents | None,
    resident: Callable[[Program], tuple[int, str]],
    rebuilt: Callable[[dict[str, int]], Bound],
    constants: dict[str, int],
) -> Placement:
    program = bound.program
    known = grid_of(program)
    notes: list[str] = []
    for constant in known.constants:
        name, value_ = constant.constant.name, constant.constant.value
        if not constant.stride_form:
            if asked is not None and asked[0] != value_:
                raise refusal(
                    bound.module, bound.unit, None,
                    f"`{name}` = {value_} is the grid of this kernel (`b + r * {name}`), "
                    "but the "
                    f"grid asked for is {asked[0]}", constant.span, help=f"set the constant: {name}={asked[0]}",
                )  # fmt: skip
            asked, source = (value_, 1, 1), f"the grid constant {name}"
            held, why = resident(program)
            checks = [_fits(bound, asked, held, why), *_within_cells(bound, asked)]
            return Placement(bound, asked, source, held, tuple(checks), tuple(notes))
        wanted = constants.get(name)
        if wanted is not None and asked is not None and wanted != asked[0]:
            raise refusal(
                bound.module, bound.unit, None, f"`{name}` = {wanted} steps over the grid, "
                f"but the grid asked for is {asked[0]}",
                constant.span, help="give one of the two; the other follows",
            )  # fmt: skip
        if wanted is not None:
            asked = (wanted, 1, 1)
        given = asked is not None
        # Compile, ask, specialise, ask again, until the constant is the resident count. Where the counts go round, the
        # least of them is taken: as many as come after it, and so as many as it says, are resident in the code for it.
        tried: list[int] = []
        while True:
            held, why = resident(bound.program)
            count = asked[0] if asked is not None else persistent_blocks_at(bound.program, bound.sizes, held)
            if bound.program.constants[name].value == count:
                break
            if asked is None and count in tried:
                count = min(tried[tried.index(count) :])
                asked = (count, 1, 1)
            tried.append(count)
            bound = rebuilt({**constants, name: count})
        notes.append(f"{name} = {count}, the grid")
        asked = (count, 1, 1)
        checks = [_fits(bound, asked, held, why), *_within_cells(bound, asked)]
        source = ASKED if given else _source(bound, count, held, why)
        return Placement(bound, asked, f"{source}; {name} is bound to it", held, tuple(checks), tuple(notes))
    held, why = resident(program)
    if asked is not None:
        checks = [_fits(bound, asked, held, why), *_within_cells(bound, asked)]
        return Placement(bound, asked, ASKED, held, tuple(checks), ())
    count = persistent_blocks_at(program, bound.sizes, held)
    source = _source(bound, count, held, why)
    return Placement(bound, (count, 1, 1), source, held, tuple(_within_cells(bound, (count, 1, 1))), ())


def _source(bound: Bound, count: int, held: int, why: str) -> str:
    """Where the number of blocks of a persistent grid comes from that nobody asked for."""
    cap = cap_at(bound.program, bound.sizes)
    if count >= held:
        return f"resident blocks: {why}"
    by = "the useful work"
    if cap is not None and count != useful_work_at(bound.program, bound.sizes):
        by = f"a cell of `{cap[1].tensor.name}` for each block"
    return f"{by}; {held} could be resident ({why})"


def _fits(bound: Bound, grid: Extents, held: int, why: str) -> Check:
    """A grid whose blocks wait for each other must be resident as a whole."""
    count = grid[0] * grid[1] * grid[2]
    program = bound.program
    if count > held:
        raise refusal(
            bound.module, bound.unit, "not-resident",
            f"a grid of {plural(count, 'block')} is not resident: {held} fit at once ({why})",
            None, label=f"{plural(count, 'block')} of {program.launch.threads} threads",
            help=f"launch at most {plural(held, 'block')} and let each take several tiles, in steps of `ctx.blocks.x`",
        )  # fmt: skip
    return Check("all blocks are resident", f"{count} of at most {held} ({why})", None)


def _within_cells(bound: Bound, grid: Extents) -> list[Check]:
    """Blocks that each own one cell must not be more than the cells."""
    checks: list[Check] = []
    seen: set[tuple[str, int, int]] = set()
    for cap in grid_of(bound.program).caps:
        extent = evaluate(cap.extent, bound.sizes)
        key = (cap.tensor.name, cap.axis_of_tensor, cap.axis)
        if extent is None or key in seen:
            continue
        seen.add(key)
        count = grid[cap.axis]
        if count > extent:
            axis = f"axis {cap.axis_of_tensor} of " if len(cap.tensor.extents) > 1 else ""
            raise refusal(
                bound.module, bound.unit, "grid-too-large",
                f"{plural(count, 'block')}, but {axis}`{cap.tensor.name}` has {plural(extent, 'cell')} for their "
                "results", cap.span,
                label="each block owns the cell of its own index here",
                help=f"launch at most {plural(extent, 'block')}, or give `{cap.tensor.name}` a cell for each",
            )  # fmt: skip
        checks.append(
            Check(f"a cell of `{cap.tensor.name}` for each block", f"{count} of {extent}", bound.line(cap.span))
        )
    return checks + _within_masks(bound, grid)


def _within_masks(bound: Bound, grid: Extents) -> list[Check]:
    """Where a mask is proved unnecessary from the number of blocks, there may not be more of them."""
    program = bound.program
    axes = grid_of(program).axes
    for obligation in obligations_of(program):
        use = obligation.subject
        if obligation.kind != "grid-at-most" or obligation.bound is None or not isinstance(use, GridUse):
            continue
        most = evaluate(obligation.bound, bound.sizes)
        for number, axis in enumerate(axes):
            if most is None or use not in axis.uses or grid[number] <= most:
                continue
            raise refusal(
                bound.module, bound.unit, "grid-too-large",
                f"{plural(grid[number], 'block')} on axis {'xyz'[number]}, but {obligation.reason}, which is {most} "
                "here",
                obligation.span, help=f"launch at most {plural(most, 'block')} on that axis",
            )  # fmt: skip
    return []
