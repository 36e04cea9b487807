"""Runs a program: all blocks of a phase in batches while they agree, one at a time where they do not.

In a batch the group of blocks that is furthest behind in the instruction list runs first, so that groups that
parted at a branch or left a loop at different rounds meet again and go on as one. A `while` whose blocks may
wait for each other is for the schedulers: each block then is a coroutine of its own until the next barrier.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from phobos.runtime.reference.code import ATOMIC, BARRIER, BRANCH, END, JUMP, ROUND, RUN, Code, side_by_side
from phobos.runtime.reference.compiling import code_of
from phobos.runtime.reference.deadlocks import explain
from phobos.runtime.reference.faults import Fault, Site
from phobos.runtime.reference.group import Group, Split, merge
from phobos.runtime.reference.machine import Buffer, Detector, Machine
from phobos.runtime.reference.memory import batch_size
from phobos.runtime.reference.numbers import Array, Value
from phobos.runtime.reference.races import Clocks, Phases
from phobos.runtime.reference.schedulers import Scheduler, scheduler_of
from phobos.runtime.reference.spinning import Change, Log, Watch, overlap, state_of
from phobos.runtime.reference.starts import AsThereIsRoom, OnWorkers, Starts
from phobos.runtime.reference.steps import Steps
from phobos.semantics import ir
from phobos.semantics.program import Program
from phobos.semantics.schedules import Work
from phobos.value import value

STEP_LIMIT = 5_000_000  # and never fewer than `STEPS_A_BLOCK` for each block
STEPS_A_BLOCK = 20_000
_NEVER = 1 << 62


@value
class Options:
    """How to run.

    `scheduler` None: in batches where blocks agree. `resident`: how many blocks of an ordinary grid run at
    once (None: all). `step_limit` counts instructions, those of a batch once. `batch` is the most blocks a batch may
    have (None: by their size in memory).
    `progress` is called with (blocks that have ended, blocks in all). `counting` is told how long each block takes.
    """

    races: bool = False
    scheduler: str | None = None
    seed: int = 0
    resident: int | None = None
    timeout_s: float | None = None
    step_limit: int | None = None
    batch: int | None = None
    progress: Callable[[int, int], None] | None = None
    counting: Steps | None = None


@value
class Outcome:
    """What a run did. A block-phase is one block between two barriers."""

    phases: int
    block_phases: int
    batched: int
    steps: int


def execute(
    program: Program,
    tensors: Mapping[str, Array],
    params: Mapping[str, Value],
    dims: Mapping[str, int],
    grid: tuple[int, int, int],
    options: Options,
) -> Outcome:
    """Run `program` on arrays, in place. Raises `Fault`, `NotExecutable`, and `races.TooLarge`.

    Arrays have the tensors' dtypes and extents; everything that a launch must check has been checked.
    """
    return execute_phases((((program, grid),),), tensors, params, dims, options)


def execute_phases(
    phases: Sequence[Sequence[tuple[Program, tuple[int, int, int]]]],
    tensors: Mapping[str, Array],
    params: Mapping[str, Value],
    dims: Mapping[str, int],
    options: Options,
    work: Work | None = None,
) -> Outcome:
    """Run kernels, each with its grid: those of one phase side by side, and all of it done before the next begins.

    Otherwise as `execute`. The blocks of a phase are numbered through, those of its first kernel first. `work` says
    which workers run them; without it each block is its own.
    """
    started_at = perf_counter()
    total = Outcome(0, 0, 0, 0)
    with np.errstate(all="ignore"), _one_blas_thread():
        for number, phase in enumerate(phases):
            code, starts = side_by_side([code_of(program) for program, _ in phase])
            buffers: dict[str, Buffer] = {}
            machines: list[Machine] = []
            first = 0
            for (program, grid), start in zip(phase, starts, strict=True):
                for name, tensor in program.tensors.items():
                    if name in tensors:
                        buffers.setdefault(name, Buffer(name, tensor.dtype, tensors[name]))
                machines.append(Machine(program, code, grid, dims, params, buffers, start, first))
                first += machines[-1].blocks
            for machine in machines:
                machine.buffers = buffers
            if options.counting is not None:
                options.counting.begin(machines)
            try:
                order = None
                if work is not None and work.is_persistent:
                    order = OnWorkers(machines, work, number, code.has_atomic)
                done = _Run(machines, options, order, started_at, total.steps).all()
            except Fault as fault:
                raise _told_apart(fault, machines) from None
            total = Outcome(
                total.phases + done.phases, total.block_phases + done.block_phases, total.batched + done.batched,
                done.steps,
            )  # fmt: skip
    return total


def _told_apart(fault: Fault, machines: Sequence[Machine]) -> Fault:
    """Whose the blocks of a fault are, where several kernels have some."""
    if len(machines) > 1 and fault.blocks:
        whose = []
        for machine in machines:
            last = machine.first + machine.blocks - 1
            if machine.blocks:
                blocks = f"blocks {machine.first} to {last} are" if machine.blocks > 1 else f"block {last} is"
                whose.append(f"{blocks} of `{machine.program.name}`")
        fault.notes = (*fault.notes, ", ".join(whose))
    return fault


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _one_blas_thread() -> AbstractContextManager[Any]:
    """Products of blocks are small: threads would wait for each other at every one, on a busy machine for very long."""
    limited: AbstractContextManager[Any] = _blas().limit(limits=1)
    return limited


class _Run:
    def __init__(
        self, machines: Sequence[Machine], options: Options, starts: Starts | None, started_at: float, steps: int
    ) -> None:
        self.machines = machines
        self.code: Code = machines[0].code
        self.blocks = sum(machine.blocks for machine in machines)
        self.buffers = machines[0].buffers
        self.options = options
        self.steps = steps
        self.step_limit = options.step_limit or max(STEP_LIMIT, STEPS_A_BLOCK * self.blocks) + steps
        self.deadline = None if not options.timeout_s else started_at + options.timeout_s
        self.left: list[tuple[Array, ir.Statement | None]] = []
        self.ended = 0
        self.block_phases = self.batched = self.phases = 0
        self.log = Log()
        self.stuck: dict[int, tuple[Group, ir.While]] = {}
        self.woken = False  # a block has left `stuck` since the scheduler last looked
        self.woken = False  # a block that was stuck no longer is
        self.looping: dict[int, tuple[Group, ir.While, list[Change]]] = {}
        name = options.scheduler
        if options.races:
            tracked = [b for b in self.buffers.values() if b.name in self.code.stored]
            for buffer in tracked:
                buffer.tracked = True
            detector: Detector
            if self.code.has_atomic:
                detector = Clocks(tracked, self.blocks)
                name = name or "round-robin"
            else:
                detector = Phases(tracked)
            for machine in machines:
                machine.detector = detector
        waits = self.code.has_while and any(
            isinstance(i.statement, ir.While) and i.statement not in self.code.local_whiles
            for i in self.code.instructions
        )
        if waits and (starts is not None or (options.resident or self.blocks) < self.blocks):
            name = name or "round-robin"  # a block may wait for one that has not started
        self.scheduler: Scheduler | None = None
        if name is not None:
            self.scheduler = scheduler_of(name, options.seed, self.blocks)
        self.starts: Starts = starts or AsThereIsRoom(machines, options.resident or self.blocks)
        self.chunk = options.batch or min(map(batch_size, machines))

    # --- phases ---------------------------------------------------------------------------------------------

    def all(self) -> Outcome:
        standing: list[Group] = []
        while True:
            self.phases += 1
            parked = self.phase(standing)
            if not parked:
                break
            self.release(parked)
            standing = parked if not any(group.solo for group in parked) else self.gather(parked)
        return Outcome(self.phases, self.block_phases, self.batched, self.steps)

    def phase(self, standing: list[Group]) -> list[Group]:
        """All blocks to the next barrier or their end; gives those at a barrier."""
        if self.scheduler is not None:
            return self.solo(self.scheduler, [], standing)
        parked: list[Group] = []
        behind = list(reversed(standing))
        while True:
            if behind:
                group = behind.pop()
            else:
                fresh = self.starts.together(self.chunk)
                if fresh is None:
                    break
                machine, ids = fresh
                group = Group(machine, ids, machine.start)
            rest = self.batch([group], parked)
            if rest:  # these may wait for blocks that have not run yet: one at a time from here
                return self.solo(scheduler_of("round-robin", 0, 1), parked, rest + behind)
        self.judge(parked, ())
        return parked

    def release(self, parked: list[Group]) -> None:
        if self.options.counting is not None:
            self.options.counting.met(parked)
        for group in parked:
            group.pc += 1
            group.rounds = 0
            group.spin = None
            group.limit = 1
        detector = self.machines[0].detector
        if detector is not None:
            detector.barrier()

    def gather(self, parked: list[Group]) -> list[Group]:
        """After a phase of single blocks: groups again, unless a scheduler was asked for."""
        if self.scheduler is not None:
            return parked
        parked.sort(key=lambda group: int(group.ids[0]))
        groups: list[Group] = []
        run: list[Group] = []
        count = 0
        for group in parked:
            if run and count + group.size > self.chunk:
                groups.append(merge(run))
                run, count = [], 0
            run.append(group)
            count += group.size
        groups.append(merge(run))
        for group in groups:
            group.solo = False
        return groups

    def judge(self, parked: Sequence[Group], unstarted: Sequence[int]) -> None:
        """Whether the blocks at barriers are all there are, and at one place; else it is a deadlock."""
        if not parked and not self.stuck and not self.looping:
            return
        places = {group.pc for group in parked}
        if len(places) == 1 and not self.ended and not self.stuck and not self.looping and not unstarted:
            return
        waiting: dict[int, list[int]] = {}
        for group in parked:
            waiting.setdefault(group.pc, []).extend(int(n) for n in group.ids)
        spinning: dict[ir.While, list[int]] = {}
        for block, (_, loop) in self.stuck.items():
            spinning.setdefault(loop, []).append(block)
        for block, (_, loop, _) in self.looping.items():
            if block not in self.stuck:
                spinning.setdefault(loop, []).append(block)
        gone: dict[ir.Statement | None, list[int]] = {}
        for ids, statement in self.left:
            gone.setdefault(statement, []).extend(int(n) for n in ids)
        raise explain(
            self.code.program,
            {at: sorted(ids) for at, ids in waiting.items()},
            self.code.barriers,
            [(sorted(ids), statement) for statement, ids in gone.items()],
            spinning,
            unstarted,
        )

    def over(self, group: Group, statement: ir.Statement | None) -> None:
        self.ended += group.size
        self.left.append((group.ids, statement if isinstance(statement, ir.Leave) else None))
        self.count(group)
        if self.options.counting is not None:
            self.options.counting.ended(group)
        if self.options.progress is not None:
            self.options.progress(self.ended, self.blocks)

    def count(self, group: Group) -> None:
        self.block_phases += group.size
        if not group.solo:
            self.batched += group.size

    # --- in batches -----------------------------------------------------------------------------------------

    def batch(self, groups: list[Group], parked: list[Group]) -> list[Group]:
        """Run groups to a barrier (added to `parked`) or their end; gives those that must go on one at a time."""
        instructions = self.code.instructions
        while groups:
            groups.sort(key=lambda group: group.pc)
            level = groups[0].pc
            here = [group for group in groups if group.pc == level]
            groups = groups[len(here) :]
            group = merge(here)
            horizon = groups[0].pc if groups else _NEVER
            try:
                self.advance(group, horizon)
            except Split as split:
                groups.extend(self.parted(group, split))
                continue
            if group.pc >= horizon:
                groups.append(group)
                continue
            instruction = instructions[group.pc]
            if instruction.kind == END:
                self.over(group, instruction.statement)
            elif instruction.kind == BARRIER:
                self.count(group)
                parked.append(group)
            else:
                loop = instruction.statement
                assert isinstance(loop, ir.While)
                rest = self.round_of_batch(group, loop, instruction.target)
                groups.append(group)
                if rest:
                    return groups
        return []

    def round_of_batch(self, group: Group, loop: ir.While, target: int) -> bool:
        """The end of a `while` round of a group; whether it now needs a scheduler."""
        if loop in self.code.local_whiles:
            state = state_of(group)
            if group.checkpoint == state:
                self.looping.update((int(n), (group, loop, [])) for n in group.ids)
                self.judge((), ())
            if group.rounds >= group.limit:
                group.checkpoint, group.limit, group.rounds = state, group.limit * 2, 0
            group.rounds += 1
            group.pc = target
            return False
        group.pc = target
        group.rounds += 1
        return loop not in self.code.barrier_whiles or group.rounds > 1

    def parted(self, group: Group, split: Split) -> list[Group]:
        """The group taken apart, each part one instruction further."""
        instruction = self.code.instructions[group.pc]
        moved: list[Group] = []
        for part in group.split(split.keys):
            try:
                if instruction.kind == BRANCH:
                    assert instruction.action is not None
                    taken = part.decide(instruction.action(part))
                    part.pc = part.pc + 1 if taken else instruction.target
                else:
                    assert instruction.action is not None
                    instruction.action(part)
                    part.pc += 1
                moved.append(part)
            except Split as again:
                moved.extend(self.parted(part, again))
        return moved

    # --- instructions ---------------------------------------------------------------------------------------

    def advance(self, group: Group, horizon: int) -> None:
        """Run to a barrier, an end, the end of a `while` round or `horizon`; `group.pc` says where it stopped."""
        instructions = self.code.instructions
        pc = group.pc
        steps = self.steps
        while pc < horizon:
            group.pc = pc
            instruction = instructions[pc]
            kind = instruction.kind
            steps += 1
            if not steps & 63:
                self.steps = steps
                self.check_limits(group)
            if kind in (RUN, ATOMIC):
                instruction.action(group)  # type: ignore[misc]
                pc += 1
            elif kind == BRANCH:
                condition = instruction.action(group)  # type: ignore[misc]
                if condition is True:
                    pc += 1
                elif condition is False:
                    pc = instruction.target
                else:
                    pc = pc + 1 if group.decide(condition) else instruction.target
            elif kind == JUMP:
                pc = instruction.target
            else:
                break
        group.pc = pc
        self.steps = steps

    def turn(self, group: Group) -> None:
        """One turn of a single block: like `advance`, but it also stops before each atomic but the first."""
        instructions = self.code.instructions
        pc = group.pc
        steps = self.steps
        moved = False
        while True:
            group.pc = pc
            instruction = instructions[pc]
            kind = instruction.kind
            steps += 1
            if not steps & 255:
                self.steps = steps
                self.check_limits(group)
            if kind == RUN:
                instruction.action(group)  # type: ignore[misc]
                pc += 1
            elif kind == BRANCH:
                pc = pc + 1 if instruction.action(group) else instruction.target  # type: ignore[misc]
            elif kind == JUMP:
                pc = instruction.target
            elif kind == ATOMIC and not moved:
                instruction.action(group)  # type: ignore[misc]
                pc += 1
            else:
                break
            moved = True
        self.steps = steps

    def check_limits(self, group: Group) -> None:
        what = None
        if self.deadline is not None and perf_counter() > self.deadline:
            what = f"the run did not end within {self.options.timeout_s:g} s"
        elif self.steps > self.step_limit:
            what = f"the run did not end within {self.step_limit:,} steps, the limit of the reference runtime"
        if what is None:
            return
        statement = self.code.instructions[group.pc].statement
        site = None
        if statement is not None:
            keyword = statement.keyword if isinstance(statement, (ir.For, ir.While, ir.If)) else statement.span
            site = Site(keyword, statement.calls, f"block {int(group.ids[0])} was here")
        raise Fault(
            "timeout",
            what,
            site,
            blocks=(int(group.ids[0]),),
            help="look for a loop that does not end, or give more time",
        )

    # --- one at a time --------------------------------------------------------------------------------------

    def solo(self, scheduler: Scheduler, parked: list[Group], standing: list[Group]) -> list[Group]:
        """Blocks as coroutines until each is at a barrier or over."""
        watching = self.code.has_while
        self.log.clear()
        self.stuck.clear()
        self.looping.clear()
        live: dict[int, Group] = {}
        for group in standing:
            for single in group.singles():
                live[int(single.ids[0])] = single
        waiting = sum(group.size for group in parked)
        for machine in self.machines:
            machine.watching = watching
            machine.changed = self.change

        def start() -> Sequence[int]:
            begun = self.starts.more(len(live) + waiting)
            for block in begun:
                owner = next(m for m in self.machines if block < m.first + m.blocks)
                live[block] = Group(owner, np.asarray([block], np.int64), owner.start)
            return begun

        start()
        for group in live.values():
            group.solo = True
            if watching and group.spin is None:
                group.spin = Watch()
        runnable = sorted(live)
        instructions = self.code.instructions
        try:
            while runnable:
                block = scheduler.pick(runnable)
                group = live[block]
                self.turn(group)
                if self.woken:  # before anything is concluded from who is left to run
                    self.woken = False
                    runnable = sorted(set(live) - set(self.stuck))
                instruction = instructions[group.pc]
                if instruction.kind == END:
                    self.over(group, instruction.statement)
                    self.looping.pop(block, None)
                    del live[block]
                    runnable.remove(block)
                    self.starts.ended(block)
                    for new in start():
                        live[new].solo = True
                        if watching:
                            live[new].spin = Watch()
                        insort(runnable, new)
                elif instruction.kind == BARRIER:
                    self.count(group)
                    del live[block]
                    runnable.remove(block)
                    parked.append(group)
                    waiting += 1
                    self.looping.pop(block, None)
                elif instruction.kind == ROUND:
                    loop = instruction.statement
                    assert isinstance(loop, ir.While)
                    self.round_of_one(group, block, loop, runnable)
                    group.pc = instruction.target
        finally:
            for machine in self.machines:
                machine.watching = False
        self.judge(parked, self.starts.left())
        return parked

    def round_of_one(self, group: Group, block: int, loop: ir.While, runnable: list[int]) -> None:
        changes = group.spin.round(group, self.log)
        self.looping.pop(block, None)
        if changes is None:
            return
        if not changes:
            self.stuck[block] = (group, loop)
            runnable.remove(block)
            return
        self.looping[block] = (group, loop, changes)  # none of the changes is of a cell that it reads itself
        if all(other in self.looping for other in runnable):
            watches = [held[0].spin for held in self.stuck.values()] + [held[0].spin for held in self.looping.values()]
            if not any(watch.sees(made) for _, _, made in self.looping.values() for watch in watches):
                runnable.clear()

    def change(self, group: Group, buffer: Buffer, piece: Any) -> None:
        """Memory is about to change: blocks that go round in vain and read it have a reason to look again."""
        self.log.add(Change(int(group.ids[0]), buffer, piece))
        for block in list(self.stuck):
            other = self.stuck[block][0]
            if other is not group and any(b is buffer and overlap(b, p, piece) for b, p in other.spin.reads):
                del self.stuck[block]
                self.woken = True
                other.spin.forget()
                self.looping.clear()
