"""The CTAs of a trace over time as SVG: a row a CTA, a colour a stretch, grey where it waits.

A grid that goes through in waves has a row for each place where blocks are resident. Too many rows are not drawn: those
that stand out are kept, and others at equal distances, and the drawing says so.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from phobos.runtime.drawing import Drawing, colour
from phobos.runtime.tracing.sampling import chosen
from phobos.runtime.tracing.words import time_of

if TYPE_CHECKING:
    from phobos.runtime.tracing.trace import Trace

WIDTH, MARGIN, LABEL = 960, 16, 150
MOST_ROWS = 64
MOST_NAMES = 12  # in the legend
LINE, ROW, GAP = 18, 16, 3
PER_LINE = 118  # characters of a sentence
HAIR = 1.0  # pixels: narrower pieces are left out where they stand close


def svg(trace: Trace) -> str:
    """A trace as an SVG text: its blocks over time, and what its summary says first."""
    rows, note = _rows(trace)
    names = list(dict.fromkeys(trace.order))
    legend = _legend(trace, names)
    sentences = [line for said in trace.summary.verdict[:3] for line in textwrap.wrap(said, PER_LINE)]
    if note:
        sentences.append(note)
    row = ROW if len(rows) <= 40 else 10
    top = MARGIN + LINE * (2 + len(legend)) + GAP
    bottom = top + row * len(rows)
    height = bottom + LINE * (2 + len(sentences)) + MARGIN
    span = max(int(trace.end.max(initial=0)), 1)
    title = f"{trace.kernel} on {trace.device}: {trace.noun}s over time"
    out = Drawing(WIDTH, height, title, ".pale{opacity:.6}" + (".small{font-size:11px}" if row < ROW else ""))
    out.text(MARGIN, MARGIN + LINE - 4, title, "title")
    for number, entries in enumerate(legend):
        y = MARGIN + LINE * (number + 2) - 5
        for x, kind, name in entries:
            out.box(kind, x, y - 10, 12, 12)
            out.text(x + 17, y, name, "small")
    left, width = MARGIN + LABEL, WIDTH - 2 * MARGIN - LABEL
    scale = width / span
    for time in sorted({round(span * quarter / 4) for quarter in range(5)}):  # where it says, also of a few steps
        x = left + scale * time
        out.put("path", {"class": "line", "d": f"M{x:.1f} {top}V{bottom + 4}"})
        anchor = {0: "start", span: "end"}.get(time, "middle")
        out.text(round(x, 1), bottom + LINE, time_of(time, trace.unit), "small", **{"text-anchor": anchor})
    for place, (label, ctas) in enumerate(rows):
        y = top + row * place
        out.text(MARGIN, y + row // 2 + 4, label, "small")
        for turn, cta in enumerate(ctas):
            _cta(out, trace, cta, left, y + 1, scale, row - GAP, turn)
    for number, sentence in enumerate(sentences):
        out.text(MARGIN, bottom + LINE * (2 + number) + 4, sentence, "small")
    return out.document


def _rows(trace: Trace) -> tuple[list[tuple[str, list[int]]], str]:
    """Labels and the CTAs of each row; and what is left out."""
    keys = trace.lanes if trace.processor is None else trace.processor * (int(trace.lanes.max(initial=0)) + 1) + (
        trace.lanes
    )
    places, count = np.unique(keys, return_counts=True)
    if len(count) and count.max() > 1:  # several CTAs follow each other on one place
        most = max(min(MOST_ROWS, len(places)), 1)
        picked = places[np.unique(np.linspace(0, len(places) - 1, most).round().astype(int))]
        rows = []
        for key in picked.tolist():
            ctas = np.flatnonzero(keys == key)
            where = f"place {trace.lanes[ctas[0]]}"
            if trace.processor is not None:
                where = f"SM {trace.processor[ctas[0]]}, {where}"
            rows.append((where, ctas[np.argsort(trace.start[ctas])].tolist()))
        left = len(places) - len(rows)
        return rows, f"{len(rows)} of {len(places)} places are drawn, at equal distances" if left else ""
    shown = chosen(trace, MOST_ROWS)
    rows = []
    for cta in shown:
        where = "" if trace.processor is None else f", SM {trace.processor[cta]}"
        rows.append((f"{trace.noun} {cta}{where}", [cta]))
    left = trace.blocks - len(shown)
    note = f"{len(shown)} of {trace.blocks} {trace.noun}s are drawn: the slowest, and others at equal distances"
    return rows, note if left else ""


def _legend(trace: Trace, names: list[int]) -> list[list[tuple[float, str, str]]]:
    entries = [(colour(number), trace.stretches[number].name) for number in names[:MOST_NAMES]]
    if trace.tiles is not None:
        entries = [(colour(number), f"blocks of {name}") for number, name in enumerate(trace.tiles.kernels)]
        names = []
    if len(names) > MOST_NAMES:
        entries[-1] = ("dim", f"and {len(names) - MOST_NAMES + 1} more, in the same colours")
    if trace.crossings:
        entries.append(("wait", "waits"))
    if not trace.complete:
        entries.append(("weak", "not kept"))
    lines: list[list[tuple[float, str, str]]] = [[]]
    x = float(MARGIN)
    for kind, name in entries:
        width = 17 + 7.3 * len(name) + 18
        if x + width > WIDTH - MARGIN and lines[-1]:
            lines.append([])
            x = float(MARGIN)
        lines[-1].append((x, kind, name))
        x += width
    return lines


def _cta(
    out: Drawing, trace: Trace, cta: int, left: float, y: float, scale: float, height: float, turn: int
) -> None:  # fmt: skip
    """What is narrower than a hair is left out where it would touch, so that thousands of rounds stay a drawing. Every
    other CTA of a place is a little paler."""
    pieces: list[tuple[str, str, int, int]] = []
    now = int(trace.start[cta])
    for k, number in enumerate(trace.order):
        stretch = trace.stretches[number]
        until = int(trace.arrived[cta, k]) if k < trace.crossings else int(trace.end[cta])
        pieces.append((colour(number) + (" pale" if turn % 2 else ""), stretch.name, now, until))
        now = until
        if k < trace.crossings:
            now = int(trace.left[cta, k])
            pieces.append(("wait", f"waits, line {stretch.line}", until, now))
    if not trace.complete:
        pieces.append(("weak", "not kept", now, int(trace.end[cta])))
    if trace.tiles is not None:
        pieces = _with_tiles(trace, cta, pieces)
    drawn = 0.0
    for kind, name, begun, ended in pieces:
        x, width = left + begun * scale, (ended - begun) * scale
        if width < HAIR and x + width < drawn + HAIR:
            continue
        drawn = x + width
        said = f"{trace.noun} {cta}: {name}, {time_of(ended - begun, trace.unit)} from {time_of(begun, trace.unit)}"
        out.box(kind, x, y, max(width, HAIR), height, said)


def _with_tiles(trace: Trace, cta: int, pieces: list[tuple[str, str, int, int]]) -> list[tuple[str, str, int, int]]:
    """The virtual blocks of a worker instead of its work, every other one a little paler, and its waiting."""
    tiles = trace.tiles
    assert tiles is not None
    mine = np.flatnonzero(tiles.cta == cta)
    made = [piece for piece in pieces if piece[0] in ("wait", "weak")]
    for place, one in enumerate(mine.tolist()):
        name = f"{tiles.kernels[int(tiles.kernel[one])]} {tiles.number[one]}"
        kind = colour(int(tiles.kernel[one])) + (" pale" if place % 2 else "")
        made.append((kind, name, int(tiles.begun[one]), int(tiles.ended[one])))
    return sorted(made, key=lambda piece: piece[2])
