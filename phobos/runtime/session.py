"""One run as the command line asks for it: gate, arguments, plan, run, expectations; and what is said of it.

Knows nothing of option parsing. `perform` never raises for what a kernel does; it raises InputError and
LaunchError (without a kind) for what cannot be run at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

from phobos.diagnostic import Diagnostic, plural
from phobos.errors import CheckError, InputError, KernelFault, LaunchError
from phobos.runtime import gate
from phobos.runtime.detections import Search
from phobos.runtime.device import chosen
from phobos.runtime.expect import Judged, judge_fault, judge_output, of_own_arguments
from phobos.runtime.faults import confirmed, said_of
from phobos.runtime.given import Arguments, arguments, constants_in, directories
from phobos.runtime.headers import Expectation
from phobos.runtime.kernel import Kernel
from phobos.runtime.options import LaunchOptions
from phobos.runtime.output import Summary, bytes_moved, save, summary, writable
from phobos.runtime.plan import Plan
from phobos.runtime.progress import Progress
from phobos.runtime.report import Report, Stop
from phobos.runtime.tuned import Choice, attempt, noted
from phobos.syntax.lines import line_at
from phobos.value import replace, value

if TYPE_CHECKING:
    from phobos.runtime.binding import Bound
    from phobos.runtime.cluster.running import Run as ClusterRun
    from phobos.semantics.program import Program

T = TypeVar("T")

TEXTUAL = ("PH201", "PH202", "PH206", "PH207", "PH209", "PH216", "PH301", "PH302", "PH307")
"""Findings that break a rule of the text, and that no run can show or fail to show."""

TIMEOUT_S = 30.0  # on a GPU, from the command line


@value
class Request:
    """What to run and how. `names` maps extents, constants and parameters to texts (see `given`).

    `command_line` are the names that stand on the command line: their files are relative to the working directory, and
    have a say over extents of a header, whose own files are relative to `directory`.
    """

    kernel: Kernel
    names: dict[str, str]
    directory: str
    command_line: frozenset[str]
    outputs: dict[str, str]
    device: str
    grid: tuple[int, ...] | None
    resident: int | None
    schedule: str | None
    l2_group: int | None
    keep: bool
    repeat: int
    timeout: float | None
    debug: bool
    unchecked: bool
    scheduler: str | None
    seed: int
    detect: tuple[str, ...]
    plan_only: bool
    verify: bool
    tuned: bool
    expectations: tuple[Expectation, ...]
    cluster: str | None = None
    shard: tuple[str, int | None] | None = None  # the extent, and in how many parts
    changed: tuple[str, ...] = ()  # what the command line gives otherwise than the header, whose results are expected


@value
class _Done:
    plan: Plan
    bound: Bound
    arrays: dict[str, Any]
    elapsed_ms: float
    batched: tuple[int, int] | None
    search: Search | None = None


def perform(request: Request) -> Report:
    """Run a request, on workers where it names some. Raises InputError, and LaunchError without a kind."""
    if request.cluster is None and request.shard is None:
        return _perform(request, None)
    _for_shards(request)
    from phobos.runtime.cluster.connect import cluster
    from phobos.runtime.cluster.running import Run

    with cluster(request.cluster or "") as found:
        return _perform(request, Run(found, request.device))


def _for_shards(request: Request) -> None:
    """Refuse what shards cannot do. Raises InputError."""
    if request.cluster is None:
        raise InputError("--shard needs workers: --cluster local, or the address of a scheduler")
    if request.shard is None:
        raise InputError("--cluster needs to know how to share the work: --shard DIM, or --shard DIM=PARTS")
    asked = {
        "--grid": request.grid, "--resident": request.resident, "--l2-group": request.l2_group,
        "--schedule": None if request.schedule == "flat" else request.schedule, "--scheduler": request.scheduler,
        "--detect": request.detect or None,
    }  # fmt: skip
    for option, given in asked.items():
        if given is not None:
            raise InputError(f"{option} is for a run in one process, not for shards: leave it or --shard out")
    if any(e.kind == "fault" for e in request.expectations):
        raise InputError("this run expects a fault, which is looked for in one process: leave --shard out")


def _perform(request: Request, shared: ClusterRun | None) -> Report:
    kernel = request.kernel
    fault_wanted = next((e for e in request.expectations if e.kind == "fault"), None)
    for path in request.outputs.values():
        writable(path)
    if shared is not None:
        device, why = f"cluster {shared.cluster.address}", shared.words
    elif fault_wanted is not None and request.device != "cpu":
        device, why = "cpu", "reference runtime: a fault is expected"
    else:
        try:
            device, why = chosen(request.device)
        except ValueError as error:
            raise InputError(str(error)) from None
    on_gpu = device != "cpu" if shared is None else shared.on_gpu

    def report(**parts: Any) -> Report:
        filled: dict[str, Any] = {
            "kernel": kernel, "device": device, "why_device": why, "plan": None, "findings": (), "outputs": {},
            "saved": (), "elapsed_ms": None, "bytes_moved": 0, "repeat": request.repeat, "batched": None, "fault": None,
            "verdicts": (), "judged": (), "verified": None, "search": None, "code": 0,
        }  # fmt: skip
        filled.update(parts)
        return Report(**filled)

    try:
        program, given, options = launch_of(request, on_gpu, mapped=shared is not None)
    except CheckError as error:
        return report(findings=error.diagnostics, code=1)
    for name in request.outputs:
        if name not in program.tensors:
            raise InputError(f"--out {name}: `{kernel.name}` has no tensor `{name}`")
    detect = request.detect
    if fault_wanted is not None and fault_wanted.wanted == "race" and "races" not in detect:
        detect = (*detect, "races")
    options = replace(
        options, tuned=options.tuned and not _exact(request) and shared is None,
        detect=detect if on_gpu and shared is None else (),
    )  # fmt: skip
    runner = _Runner(request, kernel, given, options, detect)
    try:
        if request.plan_only:
            return report(plan=runner.plan(device) if shared is None else runner.plan_of(shared), code=0)
        done = runner.done(device) if shared is None else runner.on_cluster(shared)
    except LaunchError as error:
        if error.kind is None:
            raise
        return _faulted(report, runner, Stop(error.kind, error.diagnostic, said_of(error), ()))
    except KernelFault as error:
        fault = Stop(error.kind, error.diagnostic, said_of(error), error.blocks)
        return _faulted(report, runner, fault)
    return _finished(report, runner, done, given, on_gpu, detect)


def launch_of(request: Request, on_gpu: bool, mapped: bool = False) -> tuple[Program, Arguments, LaunchOptions]:
    """The kernel at the constants asked for, its arguments, and how it is launched, after the checker has looked.

    Raises CheckError where the launch is forbidden, InputError and LaunchError for what cannot be made of the request.
    """
    kernel = request.kernel
    gate.demand(kernel.findings, kernel.name, kernel.text, on_device=False)
    constants = constants_in(kernel.analysed()[1].program, request.names)
    found = kernel.findings_at(constants)
    gate.demand(found, kernel.name, kernel.text, on_device=on_gpu and not request.unchecked)
    module, unit = kernel.analysed(constants)
    gate.demand_program(module, unit, kernel.name)
    where = directories(request.names, request.command_line, request.directory)
    given = arguments(
        unit.program, request.names, request.seed, where, constants, weak=request.names.keys() - request.command_line,
        mapped=mapped,
    )  # fmt: skip
    options = LaunchOptions(
        tuple(sorted(constants.items())), request.grid, request.resident, request.schedule, request.l2_group, None,
        request.timeout, request.unchecked, request.debug, request.keep, tuned=request.tuned,
    )  # fmt: skip
    return unit.program, given, options


def watched(options: LaunchOptions) -> LaunchOptions:
    """On a GPU a run from the command line has a time limit unless told otherwise."""
    given = options.timeout
    if given is None or (given == 0 and options.unchecked):
        return replace(options, timeout=TIMEOUT_S)
    return options


def _exact(request: Request) -> bool:
    """Whether something is expected that other constants or another grid may change although they are right."""
    return any(expectation.kind != "cell" for expectation in request.expectations)


class _Runner:
    """Runs a request; `made` is the plan, as soon as there is one."""

    def __init__(
        self, request: Request, kernel: Kernel, given: Arguments, options: LaunchOptions, detect: tuple[str, ...]
    ) -> None:
        self.request = request
        self.kernel = kernel
        self.given = given
        self.options = options
        self.detect = detect
        self.made: Plan | None = None
        self.tuned: Choice | None = None

    @property
    def findings(self) -> list[Diagnostic]:
        """What the checker says of the kernel as it was run."""
        return self.kernel.findings_at(dict(self.options.constants))

    def named(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        return {**arrays, **self.given.numbers}

    def plan(self, device: str) -> Plan:
        made = self._attempt(device, lambda: self._planned(device))
        return noted(made, self.tuned)

    def done(self, device: str) -> _Done:
        """Run. What was tuned is used where it fits; where that is refused, the run is as it is without."""
        done = self._attempt(device, self.on_cpu if device == "cpu" else lambda: self.on_gpu(device))
        return replace(done, plan=noted(done.plan, self.tuned))

    def _attempt(self, device: str, work: Callable[[], T]) -> T:
        """`work` with `options` as tuned, if anything was; `tuned` says so."""

        def at(options: LaunchOptions) -> T:
            self.options = options
            return work()

        bound = self.kernel.bound((), self.named(self.given.arrays), dict(self.options.constants))
        made, self.tuned = attempt(self.kernel, replace(bound, device=device), self.options, at)
        return made

    def _planned(self, device: str) -> Plan:
        named = self.named(self.given.arrays)
        bound = self.kernel.bound((), named, dict(self.options.constants))
        if device == "cpu":
            from phobos.runtime.judge import prepare

            return prepare(self.kernel, bound, (), named, self.options).plan
        from phobos.runtime.cuda.host import plan

        return self.explained(plan(self.kernel, bound, self.watched(), device))

    def on_cpu(self) -> _Done:
        from phobos.runtime.judge import Judging, judge, prepare

        request = self.request
        times: list[float] = []
        arrays = self.given.arrays
        for again in range(request.repeat):
            if request.repeat > 1:
                arrays = {name: held.copy() for name, held in self.given.arrays.items()}
            elif request.verify:
                arrays = {name: held.copy() for name, held in arrays.items()}
            named = self.named(arrays)
            bound = self.kernel.bound((), named, dict(self.options.constants))
            prepared = prepare(self.kernel, bound, (), named, self.options)
            self.made = prepared.plan
            with Progress(f"{self.kernel.name} {again + 1}/{request.repeat}") as progress:
                verdict = judge(prepared, Judging(self.detect, request.scheduler, request.seed, None, progress))
            times.append(verdict.elapsed_ms)
        return _Done(
            prepared.plan, prepared.placement.bound, prepared.arrays, median(times),
            (verdict.batched, verdict.block_phases),
        )  # fmt: skip

    def on_gpu(self, device: str) -> _Done:
        """The arrays go to the device and come back: `cuda.host.run` gives `plan`, `arrays`, `elapsed_ms` (a list)."""
        from phobos.runtime.cuda.host import run

        if not self.options.unchecked:
            self.kernel.demand_launch(dict(self.options.constants))  # those that were tuned, too
        arrays = {name: held.copy() for name, held in self.given.arrays.items()}
        bound = self.kernel.bound((), self.named(arrays), dict(self.options.constants))
        options = self.watched()
        result = run(self.kernel, bound, options, device, self.request.repeat, self._planned_as)
        self.made = self.explained(result.plan)
        search = None
        if "races" in options.detect:
            from phobos.runtime.cuda.detection import missed, shadow_bytes

            plain = run(self.kernel, bound, replace(options, detect=()), device, self.request.repeat)
            search = Search(
                median(result.elapsed_ms), median(plain.elapsed_ms), shadow_bytes(bound), missed(bound)
            )  # fmt: skip
        return _Done(self.made, bound, result.arrays, median(result.elapsed_ms), None, search)

    def _planned_as(self, plan: Plan) -> None:
        self.made = self.explained(plan)

    def plan_of(self, shared: ClusterRun) -> Plan:
        assert self.request.shard is not None
        return shared.plan(
            self.kernel, self.given.arrays, self.given.numbers, self.request.shard, self.watched_on(shared)
        )[0]  # fmt: skip

    def on_cluster(self, shared: ClusterRun) -> _Done:
        assert self.request.shard is not None
        ran = shared.run(
            self.kernel, self.given.arrays, self.given.numbers, self.request.shard, self.watched_on(shared),
            self.request.repeat, Progress,
        )  # fmt: skip
        self.made = ran.plan
        return _Done(ran.plan, ran.bound, {**self.given.arrays, **ran.arrays}, ran.elapsed_ms, None)

    def watched_on(self, shared: ClusterRun) -> LaunchOptions:
        return self.watched() if shared.on_gpu else self.options

    def watched(self) -> LaunchOptions:
        return watched(self.options)

    def explained(self, plan: Plan) -> Plan:
        if plan.timeout_s is None or self.options.timeout:
            return plan
        why = "of an unchecked launch, which has one always" if self.options.unchecked else "of this command"
        return replace(plan, timeout_source=f"the default {why}")


def _faulted(report: Callable[..., Report], runner: _Runner, fault: Stop) -> Report:
    request = runner.request
    hit = confirmed(fault.kind, fault.place, runner.findings)
    verdicts = [] if hit is None else [f"confirms {hit.code} (line {_line(request.kernel, hit)})"]
    wanted = next((e for e in request.expectations if e.kind == "fault"), None)
    judged = () if wanted is None else (judge_fault(wanted, fault.kind),)
    code = 0 if judged and judged[0].met else 1
    return report(plan=runner.made, fault=fault, verdicts=tuple(verdicts), judged=judged, code=code)


def _finished(
    report: Callable[..., Report], runner: _Runner, done: _Done, given: Arguments, on_gpu: bool,
    detect: tuple[str, ...],
) -> Report:  # fmt: skip
    from phobos.runtime.conditions import stored_tensors

    request, options = runner.request, runner.options
    program = done.bound.program
    outputs: dict[str, Summary] = {}
    for name in stored_tensors(program):
        if name in given.arrays:
            outputs[name] = summary(done.arrays[name], program.tensors[name].dtype)
    judged: list[Judged] = []
    compare_anyway = False
    for expectation in request.expectations:
        if expectation.kind == "fault":
            judged.append(judge_fault(expectation, None))
        else:
            one = judge_output(request.kernel.path, expectation, done.bound, done.arrays, on_gpu=on_gpu)
            compare_anyway = compare_anyway or one.met is None
            judged.append(of_own_arguments(one, request.changed))
    verified = None
    if request.verify or compare_anyway:
        verified = _verify(request, done, given, options, on_gpu)
    saved = []
    for name, path in request.outputs.items():
        save(path, done.arrays[name])
        saved.append((name, path))
    verdicts = [] if on_gpu else _disproved(request.kernel, runner.findings, detect)
    code = 1 if any(one.met is False for one in judged) or (verified is not None and not verified[1]) else 0
    return report(
        plan=done.plan, outputs=outputs, saved=tuple(saved), elapsed_ms=done.elapsed_ms,
        bytes_moved=bytes_moved(done.bound), batched=done.batched, verdicts=tuple(verdicts), judged=tuple(judged),
        verified=verified, search=done.search, code=code,
    )  # fmt: skip


def _disproved(kernel: Kernel, found: list[Diagnostic], detect: tuple[str, ...]) -> list[str]:
    """What the checker is sure of and this run has not shown."""
    said = []
    for finding in gate.doubtful(found):
        place = f"{finding.code} (line {_line(kernel, finding)})"
        if finding.code in TEXTUAL:
            said.append(f"{place} stands, whatever a run shows: it is about the text")
        elif finding.code.startswith("PH5") and "races" not in detect and finding.code != "PH508":
            said.append(f"{place} was not looked for: --detect races does")
        else:
            said.append(f"{place} did not occur at this grid and size")
    return said


def _verify(request: Request, done: _Done, given: Arguments, options: LaunchOptions, on_gpu: bool) -> tuple[str, bool]:
    """A GPU's result against the reference; the reference's against its own other path, cell by cell."""
    from phobos.runtime.conditions import stored_tensors
    from phobos.runtime.judge import Judging, judge, prepare
    from phobos.runtime.tolerance import Tolerance, compare, tolerance_of

    arrays = {name: held.copy() for name, held in given.arrays.items()}
    named = {**arrays, **given.numbers}
    constants = done.plan.constants if on_gpu else dict(options.constants)
    grid = done.plan.grid if on_gpu and 0 not in done.plan.grid else options.grid
    if done.bound.program.is_persistent and grid is not None:
        grid = grid[:1] if isinstance(grid, tuple) else grid
    again = LaunchOptions(tuple(sorted(constants.items())), grid, options.resident, None, None, None, options.timeout)
    bound = request.kernel.bound((), named, dict(constants))
    prepared = prepare(request.kernel, bound, (), named, again)
    path = "round-robin" if not on_gpu and request.scheduler is None else None
    judge(prepared, Judging((), path, request.seed))
    program = bound.program
    worst: list[str] = []
    for name in stored_tensors(program):
        if name not in given.arrays:
            continue
        tolerance = tolerance_of(bound, name, on_gpu=True) if on_gpu else Tolerance(0.0, 0.0, "exact")
        difference = compare(done.arrays[name], prepared.arrays[name], tolerance)
        if difference is not None:
            cell = f"{name}[{', '.join(map(str, difference.index))}]"
            by = "" if math.isnan(difference.largest) else f" by up to {difference.largest:.3g}"
            return (
                f"MISMATCH: {cell} is {difference.got:.9g}, the reference has {difference.wanted:.9g} "
                f"({plural(difference.cells, 'cell')} off{by}; allowed: {tolerance.why})",
                False,
            )
        worst.append(name)
    what = "the reference runtime" if on_gpu else "one block at a time, bit by bit"
    return f"verified {', '.join(worst) or 'nothing'}: agrees with {what}", True


def _line(kernel: Kernel, diagnostic: Diagnostic) -> int:
    return line_at(kernel.text, diagnostic.span.start)
