"""What all drawings have in common: one palette, for light pages and dark ones, and SVG that is well-formed.

Shapes say what they are by their class, and `STYLE` says how that looks; a drawing brings its own rules besides. Each
colour can be told from its neighbours and from the page in both schemes, which a page's reader chooses.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
SERIES = 6  # colours, in order: `c0` to `c5`
MONO = "ui-monospace,Menlo,Consolas,monospace"
STYLE = (
    f"text{{font:13px {MONO};fill:#1f2328}}"
    ".title{font-weight:bold;font-size:14px}.small{font-size:12px;fill:#59636e}"
    ".page{fill:#fff}.in{fill:#fff}.line{stroke:#d1d9e0;fill:none}"
    ".c0{fill:#2f6fb0}.c1{fill:#2f855a}.c2{fill:#8250df}.c3{fill:#b35900}.c4{fill:#0f7b83}.c5{fill:#bf3989}"
    ".wait{fill:#c6ccd3}.good{fill:#1a7f37}.weak{fill:#9db7d5}.bad{fill:#c01c28}.dim{fill:#59636e}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}.page{fill:#0d1117}.line{stroke:#3d444d}"
    ".in{fill:#0d1117}"
    ".c0{fill:#6cb6ff}.c1{fill:#57c98a}.c2{fill:#b392f0}.c3{fill:#f0a35e}.c4{fill:#4fc8d1}.c5{fill:#f27ec0}"
    ".wait{fill:#4a525b}.good{fill:#3fb950}.weak{fill:#47617f}.bad{fill:#ff7b72}.dim{fill:#9198a1}}"
)


class Drawing:
    """An SVG document in the making, in pixels."""

    def __init__(self, width: int, height: int, title: str, rules: str = "") -> None:
        self.root = ElementTree.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg", "width": str(width), "height": str(height),
                "viewBox": f"0 0 {width} {height}", "role": "img",
            },
        )  # fmt: skip
        self.put("title", {}, title)
        self.put("style", {}, STYLE + rules)
        self.put("rect", {"class": "page", "width": width, "height": height})

    def put(self, name: str, attributes: dict[str, object], text: str = "", said: str = "") -> None:
        """An element with its text; `said` is what a reader sees who points at it."""
        one = ElementTree.SubElement(self.root, name, {key: str(held) for key, held in attributes.items()})
        if text:
            one.text = NOT_XML.sub("\ufffd", text)
        if said:
            ElementTree.SubElement(one, "title").text = NOT_XML.sub("\ufffd", said)

    def text(self, x: float, y: float, text: str, kind: str = "", **more: object) -> None:
        self.put("text", {**({"class": kind} if kind else {}), "x": x, "y": y, **more}, text)

    def box(self, kind: str, x: float, y: float, width: float, height: float, said: str = "") -> None:
        at = {"x": _short(x), "y": _short(y), "width": _short(width), "height": _short(height)}
        self.put("rect", {"class": kind, **at}, said=said)

    @property
    def document(self) -> str:
        ElementTree.indent(self.root)
        return ElementTree.tostring(self.root, encoding="unicode", xml_declaration=False) + "\n"


def colour(number: int) -> str:
    """The class of a series."""
    return f"c{number % SERIES}"


def _short(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
