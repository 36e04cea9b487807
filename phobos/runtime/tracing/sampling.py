"""Which CTAs are shown where there are too many for all: those that stand out, and an even choice of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from phobos.runtime.tracing.trace import Trace


def chosen(trace: Trace, most: int) -> list[int]:
    """At most `most` CTAs, ascending: all where there is room, else the slowest of each phase, the last to end, the
    first, and others at equal distances."""
    count = trace.blocks
    if count <= most:
        return list(range(count))
    summary = trace.summary
    out = list(dict.fromkeys([summary.last_block, *(phase.slowest for phase in summary.phases), 0, count - 1]))[:most]
    even = np.linspace(0, count - 1, most).round().astype(int).tolist()
    seen = set(out)
    for cta in even:
        if len(out) == most:
            break
        if cta not in seen:
            seen.add(cta)
            out.append(cta)
    return sorted(out)
