"""What both runtimes ask of the arguments before a launch, and before any device is asked how many blocks it holds:
promises of extents, arrays that do not overlap or may not be written, and barrier tensors."""

from __future__ import annotations

from phobos.errors import LaunchError
from phobos.runtime.binding import Bound, barrier_tensors
from phobos.runtime.faults import refusal
from phobos.runtime.plan import Check
from phobos.semantics import ir
from phobos.semantics.fusion import requirements_of
from phobos.semantics.obligations import Obligation
from phobos.semantics.program import Program
from phobos.semantics.values import statements_of


def met(bound: Bound, *, promises: bool = True) -> list[Check]:
    """Everything of this module, in the order of a launch. Raises LaunchError."""
    checks = aligned(bound) if promises else []
    checks += apart(bound)
    writeable(bound)
    return checks + barriers_brought(bound)


def stored_tensors(program: Program) -> list[str]:
    """The tensors that a kernel writes, in the order of its parameters, barrier tensors left out."""
    names = set()
    for statement in statements_of(program.body):
        if isinstance(statement, ir.Store) and isinstance(statement.access.base, ir.Tensor):
            names.add(statement.access.base.name)
        elif isinstance(statement, ir.Atomic):
            names.add(statement.tensor.name)
    return [name for name in program.tensors if name in names]


def aligned(bound: Bound) -> list[Check]:
    """Each `@aligned` promise against the real extents."""
    checks: list[Check] = []
    program = bound.program
    for promise in program.promises:
        extent = bound.dims.get(promise.dim)
        if extent is None and promise.dim in program.constants:
            extent = program.constants[promise.dim].value
        if extent is None or promise.tile <= 0:
            continue
        tile = f"{promise.constant.name} = {promise.tile}" if promise.constant is not None else str(promise.tile)
        if extent % promise.tile:
            low = extent // promise.tile * promise.tile
            raise refusal(
                bound.module, bound.unit, "aligned-broken", f"{promise.dim} = {extent} is not a whole number of {tile}",
                promise.key, label=f"promised here, {promise.dim} is {extent}",
                help=f"pad {promise.dim} to {low + promise.tile}, or take the promise out",
            )  # fmt: skip
        checks.append(
            Check(f"@aligned({promise.dim})", f"{extent} is a whole number of {tile}", bound.line(promise.key))
        )
    return checks


def apart(bound: Bound) -> list[Check]:
    """No two arguments may share memory where the kernel is safe only if they do not."""
    checks: list[Check] = []
    asked: dict[frozenset[str], Obligation] = {}  # of several kernels' the one that allows least
    for obligation in requirements_of(bound.program):
        if obligation.kind == "no-overlap" and isinstance(obligation.subject, tuple):
            names = frozenset(part.name for part in obligation.subject)
            if names not in asked or not obligation.same_array_ok:
                asked[names] = obligation
    for obligation in asked.values():
        assert isinstance(obligation.subject, tuple)
        first, second = (part.name for part in obligation.subject)
        if first not in bound.tensors or second not in bound.tensors:
            continue
        one, other = bound.tensors[first], bound.tensors[second]
        same = one.pointer == other.pointer and one.shape == other.shape and one.strides == other.strides
        if one.overlaps(other) and not (same and obligation.same_array_ok):
            raise refusal(
                bound.module, bound.unit, None, f"arguments `{first}` and `{second}` share memory: {obligation.reason}",
                obligation.span, help="pass separate arrays",
            )  # fmt: skip
        how = "one array, which is fine here" if same and one.overlaps(other) else "apart in memory"
        checks.append(Check(f"`{first}` and `{second}` do not overlap", how, bound.line(obligation.span)))
    return checks


def writeable(bound: Bound) -> None:
    """No tensor that the kernel stores to may be read-only. Raises LaunchError."""
    for name in stored_tensors(bound.program):
        held = bound.tensors.get(name)
        if held is not None and not held.writeable:
            raise refusal(
                bound.module, bound.unit, None, f"argument `{name}` is read-only, but the kernel stores to it",
                bound.program.tensors[name].span, help="pass an array that may be written, a copy say",
            )  # fmt: skip


def barriers_brought(bound: Bound) -> list[Check]:
    """Each barrier tensor: supplied by the runtime, or brought, and then i32 with its elements along the first axis, in
    memory that no other tensor has.

    Raises LaunchError. Whether the count of one that is brought is 0 only its memory tells.
    """
    checks: list[Check] = []
    barriers = barrier_tensors(bound.program)
    for name in sorted(barriers):
        held = bound.tensors.get(name)
        if held is None:
            checks.append(Check(f"barrier tensor `{name}`", "supplied by the runtime", None))
            continue
        if held.dtype != "i32" or not held.shape or held.shape[0] < 2 or any(n != 1 for n in held.shape[1:]):
            raise bad_barrier(
                bound, name, f"has shape {held.shape} of {held.dtype}, at least 2 elements of i32 are needed"
            )
        for other, array in bound.tensors.items():
            if other not in barriers and held.overlaps(array):
                raise bad_barrier(bound, name, f"shares memory with `{other}`, and must be an array of its own")
        line = bound.line(bound.program.tensors[name].span)
        checks.append(Check(f"barrier tensor `{name}`", f"i32, {held.shape[0]} elements, brought", line))
    return checks


def bad_barrier(bound: Bound, name: str, wrong: str) -> LaunchError:
    """The refusal of a barrier tensor; `wrong` goes on after its name."""
    return refusal(
        bound.module, bound.unit, "bad-barrier-tensor", f"barrier tensor `{name}` {wrong}",
        bound.program.tensors[name].span,
        help="leave it out and the runtime supplies one, or pass a zeroed i32 array of 2 elements",
    )  # fmt: skip
