"""The Python API: modules of kernels, and a kernel that can be called, planned, compiled and judged.

Calling a kernel on NumPy arrays runs the reference runtime, on arrays of a GPU the CUDA runtime, which is
imported then and not before. Arrays are written in place.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from phobos.errors import CheckError, LaunchError
from phobos.runtime import gate
from phobos.runtime.binding import Bound, bind
from phobos.runtime.options import Chosen, LaunchOptions, asked, chosen_constants, time_limit, whole, whole_grid
from phobos.runtime.placing import GridOption
from phobos.runtime.plan import Plan

if TYPE_CHECKING:
    from phobos.diagnostic import Diagnostic
    from phobos.runtime.cuda.again import Again
    from phobos.runtime.cuda.preparing import Ready
    from phobos.runtime.judge import Prepared, Verdict
    from phobos.runtime.tracing.trace import Trace
    from phobos.runtime.tuning.tuning import Tuning
    from phobos.semantics.module import Module, Unit


def load(path: str | os.PathLike[str]) -> Kernels:
    """The kernels of a `.ph` file. Raises InputError where it cannot be read."""
    from phobos.check.project import read

    name = os.fspath(path)
    return Kernels(name, read(name).text)


def kernel(text: str, name: str | None = None) -> Kernel:
    """The kernel in a source text; `name` says which, where it holds several. Raises LaunchError."""
    return Kernels("<text>", text).one(name)


def fuse(*kernels: Kernel, order: str = "ask") -> Kernel:
    """Several kernels of one file as one launch: `fuse(k1, k2)(...)`.

    Parameters of one name are one argument. Where a later kernel needs what an earlier one does, a grid barrier stands
    between them, and only there. Where that is not known, `order` is asked for: "barrier" puts one, "independent" takes
    your word that none is needed. Raises CheckError where the kernels cannot be one launch, LaunchError for what are
    none of one file.
    """
    if not kernels:
        raise LaunchError("there is nothing to fuse: give the kernels, `fuse(k1, k2)`")
    for one in kernels:
        if not isinstance(one, Kernel):
            raise LaunchError(f"{one!r} is no kernel and cannot be fused: give kernels of `phobos.load`")
    first = kernels[0]
    for one in kernels[1:]:
        if one.path != first.path or (one.text != first.text and not one.path.startswith("<")):
            raise LaunchError(
                f"`{first.name}` of {first.path} and `{one.name}` of {one.path} are not of one file: "
                "put the kernels into one, and load that once"
            )
    text = _one_text(tuple(dict.fromkeys(one.text for one in kernels)))
    made = Kernel(first.path, text, "+".join(one.name for one in kernels), order)
    made.analysed()
    return made


def synchronize(device: int | None = None) -> None:
    """Wait for every launch on GPUs, or for those on one, and raise KernelFault where a kernel was stopped: by its time
    limit, by a guard, by a race that was looked for. PyTorch and CuPy wait, too, but know nothing of that.

    In the reference runtime a call has ended when it returns. Raises LaunchError where there is no such device.
    """
    from phobos.runtime.cuda import driver, launch

    number = whole("device", device, 0)
    if number is not None and number >= driver.device_count():
        raise LaunchError(f"there is no CUDA device {number}: {driver.device_count()} answer")
    launch.synchronize(number)


def _one_text(texts: tuple[str, ...]) -> str:
    """Texts that are no files, one behind the other. Raises LaunchError where two of them define one name."""
    if len(texts) == 1:
        return texts[0]
    from phobos.semantics.module import analyse

    seen: set[str] = set()
    for text in texts:
        module = analyse("<text>", text)
        names = {*module.kernels, *module.functions}
        for name in sorted(names & seen):
            raise LaunchError(f"two of the texts define `{name}`: give one of them another name")
        seen |= names
    return "\n\n".join(texts)


class Kernels:
    """The kernels of one file, as attributes and by `[name]`; `["a+b"]` is a fusion."""

    def __init__(self, path: str, text: str) -> None:
        from phobos.semantics.module import analyse

        self._path = path
        self._text = text
        self._module = analyse(path, text)
        self._kernels: dict[str, Kernel] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._module.kernels)

    def __iter__(self) -> Iterator[Kernel]:
        return iter([self[name] for name in self.names])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.names]

    def __getitem__(self, name: str) -> Kernel:
        for part in name.split("+"):
            if part not in self._module.kernels:
                raise KeyError(self._unknown(part))
        if name not in self._kernels:
            self._kernels[name] = Kernel(self._path, self._text, name)
        return self._kernels[name]

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._module.kernels:
            raise AttributeError(self._unknown(name))
        return self[name]

    def one(self, name: str | None = None, order: str | None = None) -> Kernel:
        """The kernel called `name`, or the only one; `a+b` is a fusion (see `fuse` for `order`). Raises LaunchError."""
        if name is not None:
            try:
                found = self[name]
            except KeyError as error:
                raise LaunchError(error.args[0]) from None
            return found if order is None else Kernel(self._path, self._text, name, order)
        if len(self.names) == 1:
            return self[self.names[0]]
        if not self.names:
            raise LaunchError(f"{self._path} holds no kernel")
        raise LaunchError(f"{self._path} holds several kernels ({', '.join(self.names)}): say which")

    def _unknown(self, name: str) -> str:
        from phobos.language.near import nearest

        near = nearest(name, self.names)
        known = f"did you mean `{near}`?" if near else f"it holds {', '.join(self.names) or 'none'}"
        return f"{self._path} has no kernel `{name}`: {known}"

    def __repr__(self) -> str:
        return f"<kernels of {self._path}: {', '.join(self.names)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Kernels, (self._path, self._text)


class Kernel:
    """One kernel of a file. `k(x, ...)` launches it; keyword arguments that are no option name parameters.

    One called `a+b` is the fusion of several, and `order` what to do where nobody knows whether they need one.
    """

    def __init__(self, path: str, text: str, name: str, order: str = "ask") -> None:
        self.path = path
        self.text = text
        self.name = name
        self.order = order
        self._found: dict[Chosen, tuple[list[Diagnostic], tuple[str, ...]]] = {}  # with their codes
        self._passed: dict[Chosen, tuple[str, ...] | None] = {}  # codes of findings that are known from before
        self._key: str | None = None
        self._again: Again | None = None  # what it was launched with on a GPU

    def __repr__(self) -> str:
        return f"<kernel {self.name} of {self.path}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process: what was launched here is of no use there."""
        return Kernel, (self.path, self.text, self.name, self.order)

    # --- what it is -----------------------------------------------------------------------------------------

    def analysed(self, constants: Mapping[str, int] | None = None) -> tuple[Module, Unit]:
        """The file and this kernel in it, at a choice of constants.

        Raises LaunchError for an unknown constant, CheckError for kernels that cannot be one launch.
        """
        chosen = chosen_constants(constants)
        module = self._read(chosen)
        unit = self._fused(module) if "+" in self.name else module.kernels[self.name]
        for name, _ in chosen:
            if name not in unit.program.constants:
                known = ", ".join(unit.program.constants) or "none"
                raise LaunchError(f"`{self.name}` has no constant `{name}` (it has {known})")
        return module, unit

    def _read(self, constants: Chosen = ()) -> Module:
        from phobos.semantics.module import analyse
        from phobos.semantics.program import Settings

        return analyse(self.path, self.text, Settings(constants=constants))

    def _fused(self, module: Module) -> Unit:
        from phobos.semantics.fusion import NotFusible, fused
        from phobos.semantics.orders import order_called

        try:
            order = order_called(self.order)
        except ValueError as error:
            raise LaunchError(str(error)) from None
        names = self.name.split("+")
        for name in names:
            gate.demand_program(module, module.kernels[name], self.name)
        try:
            return fused(module, names, order)
        except NotFusible as error:
            from phobos.check.fusing import against, said_of

            found = against(error)
            raise CheckError(said_of(self.name, found), found) from None

    @property
    def key(self) -> str:
        """Names this kernel by its words, and those of the functions it inlines: what tuning finds is kept by it."""
        if self._key is None:
            from phobos.runtime.tuning.keeping import kernel_key

            self._key = kernel_key(self.analysed()[0], self.name, self.order)
        return self._key

    @property
    def findings(self) -> list[Diagnostic]:
        """What the checker says of this kernel."""
        return self.findings_at()

    def findings_at(self, constants: Mapping[str, int] | None = None) -> list[Diagnostic]:
        """What the checker says of this kernel at a choice of constants."""
        chosen = self._unlike_defaults(constants)
        if chosen not in self._found:
            module, _ = self.analysed()
            found = gate.findings(module, self.name, chosen)
            codes = gate.codes(module, self.name, found, chosen)
            gate.keep(self.path, self.text, self.name, found, codes, chosen)
            self._found[chosen] = found, codes
        return self._found[chosen][0]

    def codes_at(self, constants: Mapping[str, int] | None = None) -> tuple[str, ...]:
        """The codes of the findings, and then of what is silenced. Where they are known from an earlier process nothing
        is checked again."""
        chosen = self._unlike_defaults(constants)
        if chosen not in self._found:
            if chosen not in self._passed:
                self._passed[chosen] = gate.passed(self.path, self.text, self.name, chosen)
            known = self._passed[chosen]
            if known is not None:
                return known
            self.findings_at(constants)
        return self._found[chosen][1]

    def _unlike_defaults(self, constants: Mapping[str, int] | None) -> Chosen:
        """The constants that are others than without a choice."""
        settled = chosen_constants(constants)
        if not settled:
            return ()
        module = self._read()
        parts = [module.kernels[name].program.constants for name in self.name.split("+")]
        usual = {name: constant.value for part in parts for name, constant in part.items()}
        return tuple((name, number) for name, number in settled if usual.get(name) != number)

    def demand(
        self, module: Module, unit: Unit, *, on_device: bool, constants: Mapping[str, int] | None = None
    ) -> None:  # fmt: skip
        """Raises CheckError where something forbids a run there, at the constants of `unit`. `constants` are those of
        the caller; `unit` may have more, which stand for the grid."""
        self.codes_at(constants)
        known = self._unlike_defaults(constants) not in self._found  # nothing that was found stands against it
        found = [] if known else self.findings_at(constants)
        gate.demand_program(module, unit, self.name, found)
        if on_device:
            gate.demand(found, self.name, self.text, on_device=True)

    def demand_launch(self, constants: Mapping[str, int] | None = None) -> None:
        """Raises CheckError where something forbids a launch on a GPU at a choice of constants."""
        module, unit = self.analysed(constants)
        self.demand(module, unit, on_device=True, constants=constants)

    def bound(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any], constants: Mapping[str, int],
        chosen: Mapping[str, int] | None = None,
    ) -> Bound:  # fmt: skip
        """Arguments matched to parameters at these constants, of which the caller's are `chosen` where the others stand
        for the grid. Raises CheckError, LaunchError."""
        module, unit = self.analysed(constants)
        self.demand(module, unit, on_device=False, constants=constants if chosen is None else chosen)
        return bind(module, unit, unit.program, arguments, named)

    # --- running it -----------------------------------------------------------------------------------------

    def __call__(
        self,
        *arguments: Any,
        constants: Mapping[str, int] | None = None,
        grid: GridOption = None,
        schedule: str | None = None,
        l2_group: int | None = None,
        stream: Any = None,
        timeout: float | None = None,
        unchecked: bool = False,
        debug: bool = False,
        resident: int | None = None,
        keep: bool = True,
        reserved_sms: int = 0,
        host_checks: bool = True,
        tuned: bool = True,
        detect: str | tuple[str, ...] = (),
        **named: Any,
    ) -> None:
        """Launch on the device of the arrays, which are written in place; on a GPU without waiting for its end
        (`synchronize`). Raises CheckError, LaunchError, and KernelFault for what an earlier launch left.

        `constants` choose among `@autotune` names; `grid` is blocks, a number or up to three; `schedule` one of flat,
        xyz, persistent-blocked and persistent-interleaved; `l2_group` so many blocks along x run together. `stream` is
        a stream of any library or its handle, by default the arrays' current one. `timeout` is in seconds, 0 for none.
        `unchecked` launches in spite of the checker, `host_checks=False` leaves `@aligned` to the kernel, `debug` looks
        at every point access. `resident` bounds the workers of a schedule, `reserved_sms` leaves so many
        multiprocessors to others, `keep=False` keeps nothing on chip across barriers.

        What `phobos tune` found for this kernel, card and class of sizes is used where the arguments fix nothing
        otherwise; `tuned=False` ignores it.

        `detect="races"` looks for races; on a GPU the launch then waits for its end, needs 32 bytes for each cell that
        it may store to, and leaves out what would bypass the search. It raises KernelFault where two blocks race.
        """
        options = asked(
            constants, grid, resident, schedule, l2_group, stream, timeout, unchecked, debug, keep, reserved_sms,
            host_checks, tuned, detect,
        )  # fmt: skip
        if self._again is not None and self._again.launch(arguments, named, options):
            return
        from phobos.runtime import tuned as tuning

        bound = self.bound(arguments, named, dict(options.constants))
        if bound.device == "cpu":
            if stream is not None:
                raise LaunchError("`stream` is for arrays of a GPU, and these are on the host: leave it out")
            prepared, _ = tuning.attempt(self, bound, options, lambda o: self._prepared(bound, arguments, named, o))
            self._judged(prepared, options.detect)
            return
        from phobos.runtime.cuda.again import Again
        from phobos.runtime.cuda.launch import launched
        from phobos.runtime.cuda.streams import library_of

        def launch(chosen: LaunchOptions) -> Ready:
            there = self._at(bound, arguments, named, chosen)
            if not unchecked:
                self.demand(there.module, there.unit, on_device=True, constants=dict(chosen.constants))
            return launched(self, there, chosen)

        ready, _ = tuning.attempt(self, bound, options, launch)
        if self._again is None:
            self._again = Again()
        self._again.remember(arguments, named, options, ready, library_of(bound))

    def plan(
        self, *arguments: Any, constants: Mapping[str, int] | None = None, grid: GridOption = None,
        schedule: str | None = None, l2_group: int | None = None, stream: Any = None, timeout: float | None = None,
        unchecked: bool = False, debug: bool = False, resident: int | None = None, keep: bool = True,
        reserved_sms: int = 0, host_checks: bool = True, tuned: bool = True, detect: str | tuple[str, ...] = (),
        **named: Any,
    ) -> Plan:  # fmt: skip
        """Everything that a launch with these very arguments would decide; nothing is launched, and no finding of the
        checker that forbids a launch on a GPU forbids its plan. Raises CheckError, LaunchError."""
        from phobos.runtime import tuned as tuning

        options = asked(
            constants, grid, resident, schedule, l2_group, stream, timeout, unchecked, debug, keep, reserved_sms,
            host_checks, tuned, detect,
        )  # fmt: skip
        bound = self.bound(arguments, named, dict(options.constants))
        if bound.device == "cpu":
            ready, source = tuning.attempt(self, bound, options, lambda o: self._prepared(bound, arguments, named, o))
            return tuning.noted(ready.plan, source)
        from phobos.runtime.cuda.launch import plan

        made, source = tuning.attempt(
            self, bound, options, lambda o: plan(self, self._at(bound, arguments, named, o), o)
        )
        return tuning.noted(made, source)

    def reference(
        self, *arguments: Any, detect: str | tuple[str, ...] = (), scheduler: str | None = None, seed: int = 0,
        resident: int | None = None, grid: GridOption = None, constants: Mapping[str, int] | None = None,
        schedule: str | None = None, l2_group: int | None = None, timeout: float | None = None,
        step_limit: int | None = None, **named: Any,
    ) -> Verdict:  # fmt: skip
        """Run in the reference runtime, on NumPy arrays, in place. Raises CheckError, LaunchError, KernelFault.

        `detect="races"` looks for races too; every other fault is always looked for. `scheduler` ("round-robin",
        "random", "adversarial") runs each block as a coroutine; without it blocks run in batches.
        """
        options = asked(constants, grid, resident, schedule, l2_group, None, timeout)
        bound = self.bound(arguments, named, dict(options.constants))
        if bound.device != "cpu":
            raise LaunchError(f"the reference runtime computes on NumPy arrays, these are on {bound.device}: copy them")
        return self._judged(self._prepared(bound, arguments, named, options), detect, scheduler, seed, step_limit)

    def _at(
        self, bound: Bound, arguments: tuple[Any, ...], named: Mapping[str, Any], options: LaunchOptions
    ) -> Bound:
        """The arguments at the constants of `options`; `bound` where those are the ones it has."""
        own = bound.program.constants
        if all(own[name].value == number for name, number in options.constants if name in own):
            return bound
        return self.bound(arguments, named, dict(options.constants))

    def _prepared(
        self, bound: Bound, arguments: tuple[Any, ...], named: Mapping[str, Any], options: LaunchOptions
    ) -> Prepared:
        from phobos.runtime.judge import prepare

        return prepare(self, self._at(bound, arguments, named, options), arguments, named, options)

    def _judged(
        self, prepared: Prepared, detect: str | tuple[str, ...] = (), scheduler: str | None = None, seed: int = 0,
        step_limit: int | None = None,
    ) -> Verdict:  # fmt: skip
        from phobos.runtime.judge import Judging, judge

        return judge(prepared, Judging(detect, scheduler, seed, step_limit))

    def tune(
        self, *arguments: Any, constants: Mapping[str, int] | None = None, grid: GridOption = None,
        schedule: str | None = None, l2_group: int | None = None, resident: int | None = None,
        budget: float | None = None, repeat: int = 20, timeout: float = 30.0, jobs: int | None = None,
        scratch: Sequence[str] = (), fresh: bool = False, **named: Any,
    ) -> Tuning:  # fmt: skip
        """Try constants, schedules and grids with copies of these arguments, each judged before it is timed, and keep
        the fastest for later launches. `print` the result, or look at its `rows` and `best`.

        `budget` bounds the whole, in seconds; what was not tried then is tried by the next call. `timeout` bounds one
        launch. `scratch` names tensors that are workspace: what they end up with may depend on the constants. What is
        fixed here (`constants`, `grid`, `schedule`, `l2_group`) is not tried otherwise. Raises CheckError, LaunchError,
        and InputError where the kernel as it is cannot be judged.
        """
        from phobos.runtime.tuning.python import tuned_on

        found = tuned_on(
            self, arguments, named, dict(chosen_constants(constants)), grid=whole_grid(grid), schedule=schedule,
            l2_group=l2_group, resident=whole("resident", resident), budget_s=time_limit(budget, "budget"),
            repeat=whole("repeat", repeat), timeout_s=time_limit(timeout), jobs=whole("jobs", jobs),
            scratch=(scratch,) if isinstance(scratch, str) else tuple(scratch), fresh=fresh,
        )  # fmt: skip
        self._again = None  # what was launched before was decided before
        return found

    def trace(
        self, *arguments: Any, constants: Mapping[str, int] | None = None, grid: GridOption = None,
        schedule: str | None = None, l2_group: int | None = None, resident: int | None = None,
        timeout: float | None = None, unchecked: bool = False, keep: bool = True, reserved_sms: int = 0,
        tuned: bool = True, scheduler: str | None = None, seed: int = 0, **named: Any,
    ) -> Trace:  # fmt: skip
        """Launch with copies of these arguments and say when each block was where: `print` the result, `save` it for
        Perfetto, `plot` it, or look at its `summary`.

        On arrays of a GPU times are nanoseconds of its clock, and the result says what tracing costs; on NumPy arrays
        they are steps of the reference runtime. `scheduler` and `seed` are for that. Raises CheckError, LaunchError,
        KernelFault.
        """
        from phobos.runtime.judge import Judging
        from phobos.runtime.tracing.run import called

        options = asked(
            constants, grid, resident, schedule, l2_group, None, timeout, unchecked, keep=keep,
            reserved_sms=reserved_sms, tuned=tuned,
        )  # fmt: skip
        return called(self, arguments, named, options, Judging((), scheduler, seed))

    def map(
        self, client: Any, arrays: Mapping[str, Any], *, shard: str, parts: int | None = None,
        constants: Mapping[str, int] | None = None, device: str = "auto", timeout: float | None = None,
        unchecked: bool = False, debug: bool = False, **numbers: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """The kernel on shards of its arrays, on the workers of `client` (a `distributed.Client`).

        `arrays` are NumPy arrays, maps of `.npy` files or dask arrays (with NumPy or CuPy chunks), by tensor name;
        they stay as they are. `shard` is the extent that is cut, into `parts` (two a worker, if None). `device` is
        "auto" (a worker's GPU where it has one), "cpu" or "cuda". Gives dask arrays of what the kernel writes, which
        are computed when they are asked for. Raises CheckError, LaunchError where the kernel cannot be cut there.
        """
        from phobos.runtime.cluster.connect import Cluster
        from phobos.runtime.cluster.running import PARTS
        from phobos.runtime.cluster.shards import demand_alike, sharded

        workers = Cluster(client, "", "").workers()
        demand_alike(workers, device)
        options = asked(constants, timeout=timeout, unchecked=unchecked, debug=debug)
        count = PARTS * len(workers) if parts is None else parts
        return sharded(self, arrays, numbers, shard, count, options, device).arrays

    # --- without arguments ----------------------------------------------------------------------------------

    def compile(self, target: str = "sm_90a", constants: Mapping[str, int] | None = None) -> Any:
        """Compile for a target with NVRTC, no GPU needed: cubin, PTX, registers, shared bytes."""
        module, unit = self.analysed(constants)
        self.demand(module, unit, on_device=False, constants=constants)
        from phobos.runtime.compiling import compiled

        return compiled(module, unit, target)

    def persistent_grid(self, constants: Mapping[str, int] | None = None, device: int | None = None) -> int:
        """How many blocks of this kernel a GPU holds at once; by default the one that is current in this thread."""
        module, unit = self.analysed(constants)
        self.demand(module, unit, on_device=False, constants=constants)
        from phobos.runtime.cuda import driver
        from phobos.runtime.cuda.preparing import resident_blocks

        current = driver.current_device() if device is None else whole("device", device, 0)
        return resident_blocks(self, unit.program, current or 0)
