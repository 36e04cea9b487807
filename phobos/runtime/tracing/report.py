"""What is said of a trace: for a kernel author who wants to know what makes a launch slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phobos.diagnostic import plural
from phobos.runtime.sizes import short_duration
from phobos.runtime.tracing.summary import tiles_of
from phobos.runtime.tracing.words import named, time_of

if TYPE_CHECKING:
    from phobos.runtime.tracing.summary import Residency, Summary
    from phobos.runtime.tracing.trace import Trace


def text(summary: Summary) -> str:
    """Everything, ending without a line end."""
    trace, held = summary.trace, summary.residency
    unit = summary.unit
    if not trace.blocks:
        return f"{trace.kernel} on {trace.device}: nothing was launched, as its grid has no blocks at these sizes"
    crossed = f", {plural(trace.crossings, 'barrier')} crossed" if trace.crossings else ""
    out = [
        f"{trace.kernel} on {trace.device}: {plural(trace.blocks, trace.noun)}{crossed}, "
        f"{time_of(summary.span, unit)} from the first start to the last end"
    ]
    out += [f"  {word:<11}{said}" for word, said in _rows(summary, held)]
    out += ["", *_table(summary), ""]
    out.append("what takes time, the most first:" if len(summary.verdict) > 1 else "what takes time:")
    out += [f"  {line}" for line in summary.verdict]
    out += [f"not kept: {line}" for line in trace.lost]
    return "\n".join(out)


def _rows(summary: Summary, held: Residency) -> list[tuple[str, str]]:
    trace, unit = summary.trace, summary.unit
    where = ""
    if held.per_multiprocessor is not None:
        low, high = held.per_multiprocessor
        where = f", {low if low == high else f'{low} to {high}'} on each of {held.multiprocessors} multiprocessors"
    waves = "one wave" if held.waves == 1 else f"{held.waves} waves, the last of {plural(held.last_wave, trace.noun)}"
    rows = [("resident", f"{held.at_once} of {plural(trace.blocks, trace.noun)} at once{where}: {waves}")]
    if trace.crossings:
        themselves = f", {summary.barriers:.1%} after the last has come" if unit == "ns" else ""
        rows.append(("waiting", f"{summary.waiting:.1%} of the time of all blocks is spent at barriers{themselves}"))
    last = f" ({named(trace, summary.last_block)})" if summary.tail else ""
    rows.append((
        "tail",
        f"{time_of(summary.tail, unit)} from the first end to the last{last}; {time_of(summary.starting, unit)} from "
        "the first start to the last",
    ))  # fmt: skip
    if trace.tiles is not None:
        rows += [("tiles", said) for said in _tiles_said(trace)]
    if trace.cost is not None:
        cost = trace.cost
        rows.append((
            "cost",
            f"{cost.ratio:.2f} times the kernel without a trace ({short_duration(cost.traced_ms)}, "
            f"{short_duration(cost.plain_ms)}), {cost.traced_registers} registers a thread, {cost.plain_registers} "
            "without",
        ))  # fmt: skip
        rows.append(("clock", f"times are multiples of {trace.resolution} ns, as measured on this card"))
    else:
        rows.append(("clock", "steps: operations on at most as many elements as a block has threads"))
    return rows


def _table(summary: Summary) -> list[str]:
    unit, trace = summary.unit, summary.trace
    lines = [["from, to", "rounds", "median", "longest", "max/mean", "slowest", "waits"]]
    for phase in summary.phases:
        slowest = f"{trace.noun} {phase.slowest}" + ("" if phase.slowest_at is None else f" (SM {phase.slowest_at})")
        lines.append([
            phase.name, str(phase.rounds), time_of(phase.median, unit), time_of(phase.longest, unit),
            f"{phase.imbalance:.2f}", slowest if phase.imbalance > 1.005 else "-",
            "-" if phase.line is None else time_of(phase.wait, unit),
        ])  # fmt: skip
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return [
        "  ".join(c.ljust(w) if i in (0, 5) else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))).rstrip()
        for line in lines
    ]


def _tiles_said(trace: Trace) -> list[str]:
    said = []
    for one in tiles_of(trace) or ():
        said.append(
            f"{plural(one['count'], 'block')} of `{one['kernel']}` on the workers, median "
            f"{time_of(one['median'], trace.unit)}, longest {time_of(one['longest'], trace.unit)} "
            f"(block {one['slowest']} on worker {one['worker']})"
        )
    return said
