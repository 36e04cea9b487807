"""The blocks of a launch over time, one lane a block: how a hang or a race is drawn, in the terminal and as SVG."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Literal

from phobos.runtime.drawing import Drawing, colour
from phobos.value import value

State = Literal["works", "waits", "left", "collides"]

BARS: dict[State, str] = {
    "works": "|====", "waits": "|======|............", "left": "|====>", "collides": "|===!",
}  # fmt: skip


@value
class Lane:
    """What became of one block: it works on, waits for ever, has left, or made the access that collides."""

    block: int
    state: State
    said: str  # where, and what happened there; "" where nothing is to be said


@value
class Panel:
    """One launch: what it shows, in a word and in a sentence, its lanes, and the command that shows it again."""

    title: str
    message: str
    lanes: tuple[Lane, ...]
    command: str


def as_text(lanes: Sequence[Lane]) -> tuple[str, ...]:
    """A row a block: `=` works, `.` waits for ever, `>` has left, `!` the access that collides."""
    width = len(str(max((lane.block for lane in lanes), default=0)))
    return tuple(f"  block {lane.block:>{width}} {BARS[lane.state]:<22}{lane.said}".rstrip() for lane in lanes)


# --- SVG, in pixels ---------------------------------------------------------------------------------------

WIDTH, MARGIN, LINE, ROW = 860, 18, 18, 24
LABEL, BAR, SAID = 70, 14, 400  # width of a label, height of a bar, where what is said begins
PER_LINE = 108  # characters of a sentence
WORKED: dict[State, int] = {"works": 90, "waits": 130, "left": 90, "collides": 75}
WAITED = 160
RULES = (
    ".waits{fill:none;stroke:#b35900;stroke-dasharray:3 3}.collides{fill:none;stroke:#c01c28;stroke-width:3}"
    "@media(prefers-color-scheme:dark){.waits{stroke:#f0a35e}.collides{stroke:#ff7b72}}"
)


def as_svg(panels: Sequence[Panel]) -> str:
    """A whole SVG document, the panels one below the other."""
    heights = [_height(panel) for panel in panels]
    out = Drawing(WIDTH, sum(heights) + MARGIN, "; ".join(panel.title for panel in panels), RULES)
    top = 0
    for panel, tall in zip(panels, heights, strict=True):
        _panel(out, panel, top)
        top += tall
    return out.document


def _height(panel: Panel) -> int:
    sentences = len(_wrapped(panel.message)) + len(_wrapped(panel.command))
    return 2 * MARGIN + LINE * (1 + sentences) + ROW * len(panel.lanes)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, PER_LINE) or [""]


def _panel(out: Drawing, panel: Panel, top: int) -> None:
    y = top + MARGIN + LINE
    out.text(MARGIN, y, panel.title, "title")
    for line in _wrapped(panel.message):
        y += LINE
        out.text(MARGIN, y, line)
    y += MARGIN // 2
    for lane in panel.lanes:
        _lane(out, lane, y)
        y += ROW
    for line in _wrapped(panel.command):
        y += LINE
        out.text(MARGIN, y, line, "small")


def _lane(out: Drawing, lane: Lane, top: int) -> None:
    middle, start = top + ROW // 2, MARGIN + LABEL
    end = start + WORKED[lane.state]
    out.text(MARGIN, middle + 5, f"block {lane.block}")
    out.box(f"{colour(0)} works", start, middle - BAR // 2, end - start, BAR)
    for name, attributes in _ending(lane.state, end, middle):
        out.put(name, {"class": "dim left" if lane.state == "left" else lane.state, **attributes})
    out.text(SAID, middle + 5, lane.said)


def _ending(state: State, x: int, y: int) -> Iterator[tuple[str, dict[str, object]]]:
    half = BAR // 2
    match state:
        case "waits":
            yield "rect", {"x": x, "y": y - half, "width": WAITED, "height": BAR}
        case "left":
            yield "path", {"d": f"M{x} {y - half}L{x + BAR} {y}L{x} {y + half}Z"}
        case "collides":
            near, far = x + 4, x + 4 + BAR
            yield "path", {"d": f"M{near} {y - half}L{far} {y + half}M{near} {y + half}L{far} {y - half}"}


__all__ = ["Lane", "Panel", "State", "as_svg", "as_text"]
