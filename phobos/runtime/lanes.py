"""The blocks of a launch over time, one lane a block: how a hang or a race is drawn, in the terminal and as SVG."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Literal
from xml.etree import ElementTree

from phobos.value import value

State = Literal["works", "waits", "left", "collides"]

BARS: dict[State, str] = {
    "works": "|====", "waits": "|======|............", "left": "|====>", "collides": "|===!",
}  # fmt: skip
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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
STYLE = (
    "text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#1f2328}.title{font-weight:bold;font-size:14px}"
    ".small{font-size:12px;fill:#59636e}.works{fill:#2f6fb0}.waits{fill:none;stroke:#b35900;stroke-dasharray:3 3}"
    ".left{fill:#59636e}.collides{fill:none;stroke:#c01c28;stroke-width:3}"
)


def as_svg(panels: Sequence[Panel]) -> str:
    """A whole SVG document, the panels one below the other."""
    heights = [_height(panel) for panel in panels]
    height = sum(heights) + MARGIN
    root = ElementTree.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg", "width": str(WIDTH), "height": str(height),
            "viewBox": f"0 0 {WIDTH} {height}", "role": "img",
        },
    )  # fmt: skip
    _put(root, "title", {}, "; ".join(panel.title for panel in panels))
    _put(root, "style", {}, STYLE)
    _put(root, "rect", {"width": WIDTH, "height": height, "fill": "#ffffff"})
    top = 0
    for panel, tall in zip(panels, heights, strict=True):
        _panel(root, panel, top)
        top += tall
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _height(panel: Panel) -> int:
    sentences = len(_wrapped(panel.message)) + len(_wrapped(panel.command))
    return 2 * MARGIN + LINE * (1 + sentences) + ROW * len(panel.lanes)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, PER_LINE) or [""]


def _panel(root: ElementTree.Element, panel: Panel, top: int) -> None:
    y = top + MARGIN + LINE
    _put(root, "text", {"class": "title", "x": MARGIN, "y": y}, panel.title)
    for line in _wrapped(panel.message):
        y += LINE
        _put(root, "text", {"x": MARGIN, "y": y}, line)
    y += MARGIN // 2
    for lane in panel.lanes:
        _lane(root, lane, y)
        y += ROW
    for line in _wrapped(panel.command):
        y += LINE
        _put(root, "text", {"class": "small", "x": MARGIN, "y": y}, line)


def _lane(root: ElementTree.Element, lane: Lane, top: int) -> None:
    middle, start = top + ROW // 2, MARGIN + LABEL
    end = start + WORKED[lane.state]
    _put(root, "text", {"x": MARGIN, "y": middle + 5}, f"block {lane.block}")
    _put(root, "rect", {
        "class": "works", "x": start, "y": middle - BAR // 2, "width": end - start, "height": BAR,
    })  # fmt: skip
    for name, attributes in _ending(lane.state, end, middle):
        _put(root, name, {"class": lane.state, **attributes})
    _put(root, "text", {"x": SAID, "y": middle + 5}, lane.said)


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


def _put(parent: ElementTree.Element, name: str, attributes: dict[str, object], text: str = "") -> None:
    one = ElementTree.SubElement(parent, name, {key: str(held) for key, held in attributes.items()})
    if text:
        one.text = NOT_XML.sub("\ufffd", text)


__all__ = ["Lane", "Panel", "State", "as_svg", "as_text"]
