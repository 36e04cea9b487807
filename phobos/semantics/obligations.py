"""Everything a kernel needs to be true, once, each with its place, its reason and its state.

The checker reports the refuted and the doubtful, the plan decides those left to the launch, guards stand for
those left to the device, hover shows them, the reference runtime turns a broken one into its fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from phobos.diagnostic import Span
from phobos.semantics import ir
from phobos.semantics.conflicts import Conflict, aliases_of, meetings_of
from phobos.semantics.footprints import Footprint, footprints_of
from phobos.semantics.grid import NAMES, describe, grid_of, show
from phobos.semantics.levels import Level
from phobos.semantics.masks import PointBound, accesses_of, masks_of, points_of
from phobos.semantics.poly import Poly
from phobos.semantics.program import Program, Promise, fact
from phobos.semantics.uniformity import uniformity_of
from phobos.semantics.values import Values, statements_in, values_of
from phobos.semantics.walking import expressions_in, is_integer, subscript_parts, walk
from phobos.value import value

Kind = Literal[
    "one-dimensional-grid", "resident", "same-barriers", "barrier-tensor", "aligned", "no-overlap",
    "grid-at-most", "grid-constant", "extent-agrees", "index-fits", "positive-step", "nonzero-divisor", "uniform",
]
State = Literal["proved", "refuted", "launch", "device", "doubtful"]


@value
class Obligation:
    """`reason` is a sentence for the host's author ("every extent named N must be a multiple of 64").

    `subject` is what it is about: a `Promise`, `Tensor`, `CellCap`, `GridUse`, `GridConstant`, `Dim`, `Barrier`,
    `Access`, `Atomic`, `AssumeUniform`, a `Conflict`, or a pair of tensors.
    `bound` is the number that a "grid-at-most" or "aligned" obligation speaks of.
    `same_array_ok`: of a pair of tensors, that they may be one and the same array, only not shifted.
    """

    kind: Kind
    state: State
    span: Span
    calls: tuple[Span, ...]
    reason: str
    subject: object
    bound: Poly | None
    same_array_ok: bool = False


@fact
def obligations_of(program: Program) -> tuple[Obligation, ...]:
    """All obligations of a kernel, in the order of `Kind`, each group in the order of the text."""
    return tuple(one for part in _PARTS for one in part(program))


@fact
def launch_obligations_of(program: Program) -> tuple[Obligation, ...]:
    """Those of state "launch", in the same order. They ask for neither races nor uniformity, so they come quickly."""
    return tuple(one for part in _PARTS_OF_LAUNCH for one in part(program) if one.state == "launch")


def _barriers_in(program: Program) -> list[ir.Barrier]:
    unreachable = values_of(program).unreachable
    return [s for s in statements_in(program) if isinstance(s, ir.Barrier) and s not in unreachable]


def _attribute(program: Program, name: str) -> Span | None:
    attribute = program.flags.get(name)
    return None if attribute is None else Span(None, attribute.start, attribute.end)


def _grid_shape(program: Program) -> Iterator[Obligation]:
    barriers = _barriers_in(program)
    if not program.is_persistent and not barriers:
        return
    span = barriers[0].span if barriers else _attribute(program, "persistent") or program.named
    calls = barriers[0].calls if barriers else ()
    used = [axis for axis in (1, 2) if grid_of(program).axes[axis].read]
    if barriers and used:
        yield Obligation(
            "one-dimensional-grid", "refuted", span, calls,
            f"the kernel reads `ctx.block.{NAMES[used[0]]}`, and a grid with barriers has one dimension",
            barriers[0], None,
        )
    else:
        yield Obligation(
            "one-dimensional-grid", "launch", span, calls, "the grid must have one dimension",
            barriers[0] if barriers else None, None,
        )


def _residency(program: Program) -> Iterator[Obligation]:
    barriers = _barriers_in(program)
    if program.is_persistent:
        yield Obligation(
            "resident", "launch", _attribute(program, "persistent") or program.named, (),
            "all blocks of the grid must fit on the device at once", None, None,
        )
    elif barriers:
        yield Obligation(
            "resident", "refuted", barriers[0].span, barriers[0].calls,
            "blocks wait for one another, and nothing makes the grid co-resident: the kernel is not `@persistent`",
            barriers[0], None,
        )


def _barriers(program: Program) -> Iterator[Obligation]:
    uniformity = uniformity_of(program)
    apart: dict[ir.Barrier, bool] = {}
    for divergence in uniformity.divergences:
        for barrier in (divergence.barrier, *divergence.others):
            apart[barrier] = divergence.certain
    for barrier in _barriers_in(program):
        state: State = "proved"
        reason = "every block reaches this barrier alike"
        if barrier in apart:
            state = "refuted" if apart[barrier] else "doubtful"
            reason = "some blocks do not reach this barrier with the others"
        yield Obligation("same-barriers", state, barrier.span, barrier.calls, reason, barrier, None)


def _barrier_tensors(program: Program) -> Iterator[Obligation]:
    seen: set[str] = set()
    for barrier in _barriers_in(program):
        tensor = barrier.tensor
        if tensor.name in seen:
            continue
        seen.add(tensor.name)
        leading = tensor.extents[0] if tensor.extents else 0
        size = leading if isinstance(leading, int) else leading.value if isinstance(leading, ir.Constant) else None
        touched = next(iter(_touches(program, tensor)), None)
        state: State = "launch"
        reason = f"`{tensor.name}` must be i32, of at least 2 elements, zero before the first launch, and its own array"
        if tensor.dtype != "i32" or (size is not None and size < 2) or touched is not None:
            state = "refuted"
            if touched is not None:
                reason = f"`{tensor.name}` is the barrier's, and the kernel touches it itself"
        yield Obligation("barrier-tensor", state, tensor.span, (), reason, tensor, Poly.of(2))


def _touches(program: Program, tensor: ir.Tensor) -> Iterator[ir.Access | ir.Atomic]:
    for access in accesses_of(program):
        if access.base is tensor:
            yield access
    for statement in statements_in(program):
        if isinstance(statement, ir.Atomic) and statement.tensor is tensor:
            yield statement


def _promises(program: Program) -> Iterator[Obligation]:
    for promise in program.promises:
        constant = program.constants.get(promise.dim)
        fixed = dict(program.settings.sizes).get(promise.dim)
        known = constant.value if constant is not None else fixed
        state: State = "launch"
        if known is not None and promise.tile > 0:
            state = "proved" if known % promise.tile == 0 else "refuted"
        elif promise.dim not in program.dims:
            continue  # not a dimension of anything: the text is wrong, and has been told so
        yield Obligation(
            "aligned", state, promise.key, (), f"every extent named {promise.dim} must be a multiple of {promise.tile}",
            promise, Poly.of(promise.tile),
        )


def _overlaps(program: Program) -> Iterator[Obligation]:
    stored: dict[str, Footprint] = {}
    used: dict[str, Footprint] = {}
    for footprint in footprints_of(program):
        name = footprint.access.base.name
        used.setdefault(name, footprint)
        if footprint.kind != "load":
            stored.setdefault(name, footprint)
    alias = {
        frozenset((c.first.access.base.name, c.second.access.base.name))
        for c in aliases_of(program)
    }
    seen: set[frozenset[str]] = set()
    for name, footprint in stored.items():
        for other, theirs in used.items():
            pair = frozenset((name, other))
            if other == name or pair in seen:
                continue
            seen.add(pair)
            a, b = footprint.access.base, theirs.access.base
            if not isinstance(a, ir.Tensor) or not isinstance(b, ir.Tensor):
                continue
            alike = a.dtype == b.dtype and len(a.extents) == len(b.extents)
            fine = alike and pair not in alias and "atomic" not in (footprint.kind, theirs.kind)
            reason = f"`{name}` and `{other}` must not overlap in memory"
            if fine:
                reason += ", unless they are one array"
            yield Obligation(
                "no-overlap", "launch", footprint.access.span, footprint.access.calls, reason, (a, b), None, fine
            )


def _races(program: Program) -> Iterator[Obligation]:
    for conflict in meetings_of(program):
        yield Obligation(
            "no-overlap", "refuted" if conflict.certain else "doubtful",
            conflict.second.access.span, conflict.second.access.calls, _race(conflict), conflict, None,
        )


def _race(conflict: Conflict) -> str:
    name = conflict.first.access.base.name
    if conflict.kind == "unknown":
        return f"two blocks must not meet in a cell of `{name}` in one phase; {conflict.reason}"
    return f"two blocks meet in a cell of `{name}` in one phase"


def _limits(program: Program) -> Iterator[Obligation]:
    grid = grid_of(program)
    seen: set[object] = set()
    for cap in grid.caps:
        key = (cap.axis, cap.extent.key)
        if key in seen:
            continue
        seen.add(key)
        yield Obligation(
            "grid-at-most", "launch", cap.span, cap.calls,
            f"each block has one place of `{cap.tensor.name}`: at most {show(cap.extent)} blocks", cap, cap.extent,
        )
    if grid.persistent or not _trusts_grid(program):
        return
    values: Values = values_of(program)
    for axis in grid.axes:
        for use in axis.uses:
            most = values.knowledge.quotient(use.extent + use.divisor - 1, use.divisor)
            yield Obligation(
                "grid-at-most", "launch", use.span, use.calls,
                f"masks are left out because the grid has no more than {describe(use)} blocks", use, most,
            )


def _trusts_grid(program: Program) -> bool:
    return any(mask is not None and mask.uses_grid for masks in masks_of(program).values() for mask in masks)


def _constants(program: Program) -> Iterator[Obligation]:
    for constant in grid_of(program).constants:
        yield Obligation(
            "grid-constant", "launch", constant.span, (),
            f"`{constant.constant.name}` must equal the number of blocks launched", constant, Poly.atom("blocks", 0),
        )


def _extents(program: Program) -> Iterator[Obligation]:
    for dim in program.dims.values():
        places = [
            (tensor, axis)
            for tensor in program.tensors.values()
            for axis, extent in enumerate(tensor.extents)
            if isinstance(extent, ir.Dim) and extent.name == dim.name
        ]
        if len(places) > 1 or dim.name in program.params:
            names = ", ".join(f"`{tensor.name}` axis {axis}" for tensor, axis in places)
            also = f" and the parameter `{dim.name}`" if dim.name in program.params else ""
            yield Obligation(
                "extent-agrees", "launch", dim.span, (), f"{names}{also} must have one extent {dim.name}", dim, None
            )


def _indices(program: Program) -> Iterator[Obligation]:
    states: dict[str, State] = {"inside": "proved", "outside": "refuted", "unknown": "device"}
    for access, bounds in points_of(program).items():
        known = [bound for bound in bounds if bound is not None]
        if known:
            worst = max(known, key=_badness)
            yield Obligation(
                "index-fits", states[worst.state], access.span, access.calls,
                f"the index into `{access.base.name}` must be inside it: {worst.reason}", access, None,
            )
    values: Values = values_of(program)
    for statement in statements_in(program):
        if isinstance(statement, ir.Atomic):
            index, extent = values.poly(statement.index), values.extent(statement.tensor, 0)
            context = values.context(statement)
            inside = values.holds(index, context) and values.holds(extent - 1 - index, context)
            yield Obligation(
                "index-fits", "proved" if inside else "device", statement.span, statement.calls,
                f"the index into `{statement.tensor.name}` must be inside it", statement, None,
            )


def _numbers(program: Program) -> Iterator[Obligation]:
    """Steps and divisors that nothing proves sound; those that are proved need no word."""
    values: Values = values_of(program)
    for statement in statements_in(program):
        context = values.context(statement)
        if isinstance(statement, ir.For) and not values.holds(values.poly(statement.step) - 1, context):
            yield Obligation(
                "positive-step", "device", statement.step.span, statement.calls, "the step must be at least 1",
                statement, None,
            )
        for expression in _evaluated(statement):
            if isinstance(expression, ir.BinaryOp) and expression.op in ("/", "%") and is_integer(expression.type):
                divisor = values.poly(expression.right)
                if not values.holds(divisor - 1, context) and not values.holds(-divisor - 1, context):
                    yield Obligation(
                        "nonzero-divisor", "device", expression.span, statement.calls, "the divisor must not be 0",
                        expression, None,
                    )


def _evaluated(statement: ir.Statement) -> Iterator[ir.Expression]:
    for part in expressions_in(statement):
        yield from walk(part)
    if isinstance(statement, (ir.Store, ir.DefineView)):
        for part in subscript_parts(statement.access):
            yield from walk(part)


def _badness(bound: PointBound) -> int:
    return ("inside", "unknown", "outside").index(bound.state)


def _assumptions(program: Program) -> Iterator[Obligation]:
    for assumption in uniformity_of(program).assumptions:
        needed = assumption.level > Level.UNIFORM
        yield Obligation(
            "uniform", "device" if needed else "proved", assumption.statement.span, assumption.statement.calls,
            "the value must be the same for all blocks here", assumption.statement, None,
        )


def _kept(part: Callable[[Program], Iterable[Obligation]]) -> Callable[[Program], tuple[Obligation, ...]]:
    return fact(lambda program: tuple(part(program)))


_PARTS_OF_LAUNCH = _GRID, _RESIDENCY, _BARRIER_TENSORS, _PROMISES, _OVERLAPS, _LIMITS, _CONSTANTS, _EXTENTS = tuple(
    map(_kept, (_grid_shape, _residency, _barrier_tensors, _promises, _overlaps, _limits, _constants, _extents))
)
_PARTS = (
    _GRID, _RESIDENCY, _kept(_barriers), _BARRIER_TENSORS, _PROMISES, _OVERLAPS, _kept(_races), _LIMITS, _CONSTANTS,
    _EXTENTS, _kept(_indices), _kept(_numbers), _kept(_assumptions),
)  # fmt: skip

__all__ = ["Kind", "Obligation", "Promise", "State", "ir", "launch_obligations_of", "obligations_of"]
