"""The figures of a trace, and what they say: where the time of a launch goes.

A stretch between the same two barriers comes again in every round of a loop; its rounds are one row. Its imbalance is
the time that its rounds take, as each waits for its slowest block, by the time that they would take if all blocks
worked as long as the mean one: 1 where all work alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from phobos.runtime.tracing.words import named, time_of
from phobos.value import value

if TYPE_CHECKING:
    from phobos.runtime.reference.numbers import Array
    from phobos.runtime.tracing.trace import Trace, Unit

WORTH = 0.05  # of the whole time: less is not spoken of
ALIKE = 1.05  # an imbalance below this is none


@value
class Phase:
    """One stretch, in the trace's unit of time. `median`, `mean` and `longest` are of one block in one round.

    `slowest` is the block that worked most in it over all rounds, `slowest_by` so many times the median block, on
    multiprocessor `slowest_at`, if one is known. `last` is how many rounds waited for it. `wait` is the time that
    blocks waited at the barrier at its end, `barrier` what the barrier took after the last arrival: means of a block
    and round.
    """

    name: str
    line: int | None
    rounds: int
    median: float
    mean: float
    longest: int
    imbalance: float
    slowest: int
    slowest_by: float
    slowest_at: int | None
    last: int
    wait: float
    barrier: float
    lost_to_imbalance: float  # over all rounds, of the mean block


@value
class Residency:
    """How many blocks ran at once. `waves`: so many times as many, the last one with `last_wave` blocks."""

    at_once: int
    multiprocessors: int | None
    per_multiprocessor: tuple[int, int] | None  # the fewest and the most that ran at once on one
    waves: int
    last_wave: int


@value
class Summary:
    """`span` is from the first start to the last end, `tail` from the first end to the last. Shares are of the time of
    all blocks together: `waiting` at barriers, of which `barriers` is what the barriers take after the last arrival.
    `verdict` says what makes the launch slow, the worst first."""

    trace: Trace
    unit: Unit
    span: int
    starting: int  # from the first start to the last
    tail: int
    last_block: int
    waiting: float
    barriers: float
    phases: tuple[Phase, ...]
    residency: Residency
    verdict: tuple[str, ...]

    def text(self) -> str:
        from phobos.runtime.tracing.report import text

        return text(self)

    def __str__(self) -> str:
        return self.text()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        trace, held = self.trace, self.residency
        cost = trace.cost
        return {
            "kernel": trace.kernel,
            "filename": trace.path,
            "device": trace.device,
            "unit": self.unit,
            "resolution": trace.resolution,
            "blocks": trace.blocks,
            "barriers_crossed": trace.crossings,
            "span": self.span,
            "starting": self.starting,
            "tail": self.tail,
            "last_block": self.last_block,
            "waiting_share": self.waiting,
            "barrier_share": self.barriers,
            "phases": [{name: getattr(phase, name) for name in PHASE} for phase in self.phases],
            "residency": {
                "at_once": held.at_once,
                "multiprocessors": held.multiprocessors,
                "per_multiprocessor": None if held.per_multiprocessor is None else list(held.per_multiprocessor),
                "waves": held.waves,
                "last_wave": held.last_wave,
            },
            "tiles": tiles_of(trace),
            "verdict": list(self.verdict),
            "not_kept": list(trace.lost),
            "cost": None if cost is None else {
                "plain_ms": cost.plain_ms, "traced_ms": cost.traced_ms, "ratio": cost.ratio,
                "plain_registers": cost.plain_registers, "traced_registers": cost.traced_registers,
            },
            "plan": trace.plan.as_dict(),
        }  # fmt: skip


PHASE = (
    "name", "line", "rounds", "median", "mean", "longest", "imbalance", "slowest", "slowest_by", "slowest_at", "last",
    "wait", "barrier", "lost_to_imbalance",
)  # fmt: skip


def summarised(trace: Trace) -> Summary:
    """The figures of a trace, in its unit, and what they say."""
    blocks = trace.blocks
    span = int(trace.end.max()) if blocks else 0
    alive = float((trace.end - trace.start).sum()) if blocks else 0.0
    waited = float(trace.waits.sum())
    after_last = _after_last(trace)
    phases = tuple(_phase(trace, number, after_last) for number in dict.fromkeys(trace.order))
    return Summary(
        trace=trace,
        unit=trace.unit,
        span=span,
        starting=int(trace.start.max()) if blocks else 0,
        tail=int(trace.end.max() - trace.end.min()) if blocks else 0,
        last_block=int(trace.end.argmax()) if blocks else 0,
        waiting=waited / alive if alive else 0.0,
        barriers=float(after_last.sum()) * blocks / alive if alive else 0.0,
        phases=phases,
        residency=_residency(trace),
        verdict=_verdict(trace, phases, span, after_last),
    )


def _after_last(trace: Trace) -> Array:
    """Of each crossing, how long after the last arrival the mean block went on."""
    if not trace.blocks or not trace.crossings:
        return np.zeros(trace.crossings)
    took: Array = np.maximum(trace.left.mean(axis=0) - trace.arrived.max(axis=0), 0.0)
    return took


def _phase(trace: Trace, number: int, after_last: Array) -> Phase:
    stretch = trace.stretches[number]
    columns = np.asarray([k for k, one in enumerate(trace.order) if one == number])
    work = trace.work[:, columns]
    if not trace.blocks:
        return Phase(stretch.name, stretch.line, len(columns), 0, 0, 0, 1.0, 0, 1.0, None, 0, 0, 0, 0)
    at_barrier = columns[columns < trace.crossings]
    of_block = work.sum(axis=1)
    slowest = int(of_block.argmax())
    typical = float(np.median(of_block))
    ideal, taken = float(work.mean(axis=0).sum()), float(work.max(axis=0).sum())
    arrived = trace.arrived[:, at_barrier]
    return Phase(
        name=stretch.name,
        line=stretch.line,
        rounds=len(columns),
        median=float(np.median(work)),
        mean=float(work.mean()),
        longest=int(work.max()),
        imbalance=taken / ideal if ideal else 1.0,
        slowest=slowest,
        slowest_by=float(of_block[slowest]) / typical if typical else 1.0,
        slowest_at=None if trace.processor is None else int(trace.processor[slowest]),
        last=int((arrived[slowest] == arrived.max(axis=0)).sum()) if arrived.size else 0,
        wait=float(trace.waits[:, at_barrier].mean()) if at_barrier.size else 0.0,
        barrier=float(after_last[at_barrier].mean()) if at_barrier.size else 0.0,
        lost_to_imbalance=float((arrived.max(axis=0) - arrived.mean(axis=0)).sum()) if arrived.size else 0.0,
    )


def _residency(trace: Trace) -> Residency:
    if not trace.blocks:
        return Residency(0, None, None, 0, 0)
    at_once = running(trace.start, trace.end)
    count, per = None, None
    if trace.processor is not None:
        processors = np.unique(trace.processor)
        most = [int(trace.lanes[trace.processor == one].max()) + 1 for one in processors.tolist()]
        count, per = len(processors), (min(most), max(most))
    waves = -(-trace.blocks // at_once)
    return Residency(at_once, count, per, waves, trace.blocks - (waves - 1) * at_once)


def running(start: Array, end: Array) -> int:
    """The most that ran at once: one that ends when another starts does not run beside it."""
    at = np.concatenate([start, end])
    change = np.concatenate([np.ones(len(start), np.int64), -np.ones(len(end), np.int64)])
    order = np.lexsort((change, at))
    return max(int(np.cumsum(change[order]).max()), 1)


# --- what it says ---------------------------------------------------------------------------------------------


def _verdict(trace: Trace, phases: tuple[Phase, ...], span: int, after_last: Array) -> tuple[str, ...]:
    """What makes the launch slow, by how much of its time it takes."""
    if not trace.blocks or not span:
        return ()
    said: list[tuple[float, str]] = []

    def share(time: float) -> str:
        return f"{time_of(time, trace.unit)}, {time / span:.0%} of the launch"

    for phase in phases:
        if phase.lost_to_imbalance > WORTH * span and phase.imbalance > ALIKE:
            who = (
                f"{trace.noun}s wait for {named(trace, phase.slowest)}, which works {phase.slowest_by:.2f} times as "
                "long as the median one"
            )
            if 2 * phase.last < phase.rounds:
                who = (
                    f"{trace.noun}s wait for the last of each round, not for one and the same: it works "
                    f"{phase.imbalance:.2f} times as long as the mean one"
                )
            elif phase.rounds > 1:
                who += f", in {phase.last} of {phase.rounds} rounds"
            said.append((phase.lost_to_imbalance, f"{phase.name}: {who} ({share(phase.lost_to_imbalance)})"))
    barriers = float(after_last.sum())
    if barriers > WORTH * span:
        said.append((
            barriers,
            f"the barriers themselves: {trace.crossings} of {time_of(barriers / trace.crossings, trace.unit)} after "
            f"the last arrival ({share(barriers)})",
        ))  # fmt: skip
    held = _residency(trace)
    late = float(trace.end.max() - trace.end.mean())
    if held.waves > 1:
        idle = 1 - float((trace.end - trace.start).sum()) / (span * held.at_once)
        if idle > WORTH:
            said.append((
                idle * span,
                f"{trace.blocks} blocks go through in {held.waves} waves of {held.at_once}, the last of "
                f"{held.last_wave}: {idle:.0%} of the room is empty (other tiles or a persistent schedule may fill it: "
                "`phobos tune` tries them)",
            ))  # fmt: skip
    elif late > WORTH * span:
        last = int(trace.end.argmax())
        said.append((
            late,
            f"the tail: the last to end is {named(trace, last)}, the mean one has ended before "
            f"({share(late)})",
        ))  # fmt: skip
    early = float(trace.start.mean())
    if held.waves == 1 and early > WORTH * span:
        said.append((early, f"the start: the mean {trace.noun} starts late ({share(early)})"))
    said.sort(key=lambda one: -one[0])
    return tuple(text for _, text in said) or (
        f"nothing stands out: no stretch, barrier or tail costs more than {WORTH:.0%} of the launch",
    )


def tiles_of(trace: Trace) -> list[dict[str, Any]] | None:
    """Of each kernel whose blocks are run by workers: how many, and how long they took."""
    tiles = trace.tiles
    if tiles is None:
        return None
    made = []
    for number, name in enumerate(tiles.kernels):
        mine = np.flatnonzero(tiles.kernel == number)
        if not mine.size:
            continue
        took = tiles.ended[mine] - tiles.begun[mine]
        worst = mine[int(took.argmax())]
        made.append({
            "kernel": name, "count": int(mine.size), "median": float(np.median(took)), "longest": int(took.max()),
            "slowest": int(tiles.number[worst]), "worker": int(tiles.cta[worst]),
        })  # fmt: skip
    return made
