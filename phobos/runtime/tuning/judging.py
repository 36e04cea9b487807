"""One variant judged: run at small sizes and compared with the reference runtime, and only then timed.

`judge(problem, task)` takes and gives values that can be pickled, so that it can be called in any process on any
machine that has this package and the device. It never raises for what a kernel does: that is what a row is for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from statistics import median
from time import perf_counter, strftime
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from phobos.errors import CheckError, KernelFault, LaunchError
from phobos.runtime.faults import said_of
from phobos.runtime.kernel import Kernel
from phobos.runtime.options import LaunchOptions
from phobos.runtime.plan import Plan
from phobos.runtime.tuning.applying import applied
from phobos.runtime.tuning.problem import Problem, arguments_at
from phobos.runtime.tuning.reading import extents, field
from phobos.runtime.tuning.space import Variant, variant_of
from phobos.value import value

if TYPE_CHECKING:
    from phobos.runtime.binding import Bound

Lent = Mapping[str, tuple[bytes, bytes]]

FEW = 3  # repeats after which a variant that is clearly slower is dropped
SLOWER = 1.3  # times the best: clearly slower

Status = Literal["ok", "slower", "wrong", "another-result", "fault", "refused", "crashed", "hung"]
MEASURED: tuple[Status, ...] = ("ok", "slower")
BROKEN: tuple[Status, ...] = ("wrong", "fault", "crashed", "hung")  # something is wrong with a kernel or with us


@value
class Task:
    """A variant to judge. `beat_ms`: a variant that is clearly slower than this is dropped after a few repeats.

    `lent` is what was compiled for it elsewhere, as `cache.lend` takes it.
    """

    variant: Variant
    beat_ms: float | None = None
    lent: Lent | None = None


@value
class Row:
    """What became of a variant. `elapsed_ms` is the median of `repeats` and `least_ms` the least, where it was timed.

    "slower" was dropped after a few repeats; "wrong" differs from the reference; "another-result" agrees with the
    reference at its own constants but not with that of the constants without tuning; "refused" cannot be launched;
    "crashed" and "hung" took their process with them. `why` says it in words.
    """

    variant: Variant
    status: Status
    why: str = ""
    elapsed_ms: float | None = None
    least_ms: float | None = None
    repeats: int = 0
    grid: tuple[int, int, int] | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    ctas_per_sm: int | None = None
    date: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {
            "variant": self.variant.as_dict(), "status": self.status, "why": self.why, "elapsed_ms": self.elapsed_ms,
            "least_ms": self.least_ms, "repeats": self.repeats,
            "grid": None if self.grid is None else list(self.grid), "registers": self.registers,
            "shared_bytes": self.shared_bytes, "ctas_per_sm": self.ctas_per_sm, "date": self.date,
        }  # fmt: skip


def row_of(kept: Mapping[str, Any]) -> Row:
    """The inverse of `as_dict`. Raises what is `NOT_OURS` where it is none."""
    status, blocks = field(kept, "status", str), extents(kept, "grid")
    elapsed_ms, least_ms = (field(kept, name, float, int, None) for name in ("elapsed_ms", "least_ms"))
    if status not in get_args(Status) or (elapsed_ms is None or least_ms is None) == (status in MEASURED):
        raise ValueError(f"{status}, {elapsed_ms} ms")
    grid = None
    if blocks is not None:
        x, y, z = blocks
        grid = x, y, z
    registers, shared, per_sm = (field(kept, n, int, None) for n in ("registers", "shared_bytes", "ctas_per_sm"))
    return Row(
        variant_of(kept["variant"]), status, field(kept, "why", str), elapsed_ms, least_ms,
        field(kept, "repeats", int), grid, registers, shared, per_sm,
        field(kept, "date", str),
    )  # fmt: skip


class Engine(Protocol):
    """A runtime as the judge needs it. `bound` are host arrays; what is run works on copies."""

    def run(self, kernel: Kernel, bound: Bound, options: LaunchOptions) -> tuple[Plan, dict[str, Any]]:
        """The plan, and the arrays as one launch leaves them."""

    def times(self, kernel: Kernel, bound: Bound, options: LaunchOptions, repeat: int) -> Iterator[tuple[Plan, float]]:
        """`repeat` times in milliseconds, each with the plan."""


def engine_of(device: str) -> Engine:
    """What runs variants on "cpu" or "cuda:N"."""
    if device == "cpu":
        from phobos.runtime.tuning.on_reference import Reference

        return Reference()
    from phobos.runtime.tuning.on_device import Device

    return Device(device)


def judge(problem: Problem, task: Task, engine: Engine | None = None) -> Row:
    """Judge a variant and time it, on the problem's device."""
    variant = task.variant

    def row(status: Status, why: str = "", **parts: Any) -> Row:
        return Row(variant, status, why, date=strftime("%Y-%m-%d"), **parts)

    chosen = engine if engine is not None else engine_of(problem.device)
    if task.lent:
        from phobos.codegen import cache

        cache.lend(task.lent)
    try:
        kernel = problem.made()
        if problem.device != "cpu":
            kernel.demand_launch(problem.constants(variant))
        plan, arrays, bound = _launched(chosen, problem, kernel, variant, problem.small)
        wrong = _against(problem, variant, plan, arrays, bound)
        if wrong is not None:
            return row(*wrong, grid=plan.grid)
        return _timed(chosen, problem, kernel, task, row)
    except CheckError as error:
        return row("refused", str(error))
    except LaunchError as error:
        return row("refused", said_of(error))
    except KernelFault as fault:
        return row("fault", said_of(fault))


def options_of(problem: Problem, variant: Variant, bound: Bound) -> LaunchOptions:
    """How a variant is launched with these arguments."""
    options = LaunchOptions(grid=problem.grid, resident=problem.resident, timeout=problem.timeout_s)
    constants = problem.constants(variant)
    return applied(options, variant, constants, bound.program, bound.sizes, problem.multiprocessors)


def bound_at(problem: Problem, kernel: Kernel, variant: Variant, dims: Mapping[str, int]) -> Bound:
    """The arguments, made anew, at the constants of a variant. Raises CheckError, LaunchError."""
    constants = problem.constants(variant)
    program = kernel.analysed(constants)[1].program
    return kernel.bound((), arguments_at(problem, program, dims), constants)


_made: dict[str, tuple[Problem, Any]] = {}  # in this process, of the last problem


def _once(name: str, problem: Problem, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What is made once of a problem; what was made of the one before has gone by then."""
    known = _made.get(name)
    if known is None or known[0] is not problem:
        _made.pop(name, None)
        known = _made[name] = problem, make()
    return known[1]


def _bound_whole(problem: Problem, kernel: Kernel, variant: Variant) -> Bound:
    """At full size, where making the arrays takes longer than timing: the same for all variants, as constants that are
    extents are held. An engine works on copies of them.
    """
    constants = problem.constants(variant)
    program = kernel.analysed(constants)[1].program
    given = _once("arguments", problem, lambda: arguments_at(problem, program, problem.dims))
    return kernel.bound((), given, constants)


def _launched(
    engine: Engine, problem: Problem, kernel: Kernel, variant: Variant, dims: Mapping[str, int]
) -> tuple[Plan, dict[str, Any], Bound]:
    bound = bound_at(problem, kernel, variant, dims)
    plan, arrays = engine.run(kernel, bound, options_of(problem, variant, bound))
    return plan, arrays, bound


def _timed(engine: Engine, problem: Problem, kernel: Kernel, task: Task, row: Callable[..., Row]) -> Row:
    bound = _bound_whole(problem, kernel, task.variant)
    options = options_of(problem, task.variant, bound)
    times: list[float] = []
    status: Status = "ok"
    why = ""
    begun = perf_counter()
    for made, elapsed_ms in engine.times(kernel, bound, options, problem.repeat):
        plan = made
        times.append(elapsed_ms)
        if len(times) < FEW:
            continue
        if task.beat_ms is not None and min(times) > SLOWER * task.beat_ms and len(times) < problem.repeat:
            ratio, after = min(times) / task.beat_ms, f"dropped after {len(times)} repeats"
            status, why = "slower", f"{after}: the quickest took {ratio:.1f} times the best's"
            break
        if perf_counter() - begun > problem.seconds:
            break
    return row(
        status, why, elapsed_ms=median(times), least_ms=min(times), repeats=len(times), grid=plan.grid,
        registers=plan.registers, shared_bytes=plan.shared_bytes, ctas_per_sm=plan.ctas_per_sm,
    )  # fmt: skip


# --- against the reference ------------------------------------------------------------------------------------


def referee(
    problem: Problem, variant: Variant, dims: Mapping[str, int], grid: tuple[int, ...] | None, *, seconds: float
) -> tuple[dict[str, Any], Bound]:
    """The arrays as the reference runtime leaves them. Raises KernelFault, LaunchError.

    The judge of the reference itself runs one block after another, which is another way through it than that which
    is timed.
    """
    from phobos.runtime.judge import Judging, prepare
    from phobos.runtime.judge import judge as run

    kernel = problem.made()
    bound = bound_at(problem, kernel, variant, dims)
    # Of a persistent kernel the number of blocks is part of what it computes; that of others follows from the text.
    grid = grid[:1] if grid is not None and bound.program.is_persistent else problem.grid
    named = {**{name: held.array for name, held in bound.tensors.items()}, **bound.params}
    constants = tuple(sorted(problem.constants(variant).items()))
    options = LaunchOptions(constants, grid, problem.resident, timeout=seconds)
    prepared = prepare(kernel, bound, (), named, options)
    run(prepared, Judging((), "round-robin" if problem.device == "cpu" else None))
    return prepared.arrays, prepared.placement.bound


def _as_it_is(problem: Problem) -> dict[str, Any]:
    """What the kernel computes without tuning."""
    return _once(
        "untuned", problem, lambda: referee(problem, problem.base, problem.small, None, seconds=problem.timeout_s)[0]
    )


def _against(
    problem: Problem, variant: Variant, plan: Plan, arrays: dict[str, Any], bound: Bound
) -> tuple[Status, str] | None:
    """What is wrong with a result, or None."""
    from phobos.runtime.conditions import stored_tensors

    stored = [name for name in stored_tensors(bound.program) if name in bound.tensors]
    wanted, _ = referee(problem, variant, problem.small, plan.grid, seconds=problem.timeout_s)
    on_gpu = problem.device != "cpu"
    said = _differs(bound, stored, arrays, wanted, on_gpu)
    if said is not None:
        return "wrong", f"{said} at {_sizes(problem)}"
    lasting = [name for name in stored if name not in problem.scratch]
    said = _differs(bound, lasting, arrays, _as_it_is(problem), on_gpu)
    if said is not None:
        return "another-result", (
            f"{said} without tuning: these constants change what is computed (hold them with --set; what is only "
            "workspace is named with --scratch)"
        )
    return None


def _differs(bound: Bound, names: list[str], got: dict[str, Any], wanted: dict[str, Any], on_gpu: bool) -> str | None:
    from phobos.runtime.tolerance import compare, tolerance_of

    for name in names:
        difference = compare(got[name], wanted[name], tolerance_of(bound, name, on_gpu=on_gpu))
        if difference is not None:
            cell = f"{name}[{', '.join(map(str, difference.index))}]"
            return f"{cell} is {difference.got:.9g}, the reference has {difference.wanted:.9g}"
    return None


def _sizes(problem: Problem) -> str:
    return ", ".join(f"{name}={extent}" for name, extent in problem.small.items()) or "its only size"
