"""The forms a report can be printed in. `full` prints one diagnostic and is for everybody who has one."""

from __future__ import annotations

from importlib import import_module

from phobos.check.render.report import Listing, Report
from phobos.check.render.text import full

_HOMES = {
    "full": ("text", "render_full"),
    "concise": ("text", "render_concise"),
    "json": ("as_json", "render_json"),
    "json-lines": ("as_json", "render_json_lines"),
    "github": ("github", "render"),
    "gitlab": ("gitlab", "render"),
    "junit": ("junit", "render"),
    "sarif": ("sarif", "render"),
}
FORMATS = tuple(_HOMES)
FORMATS_WITH_NOTES = ("json", "json-lines", "sarif")  # these show notes unless told otherwise


def render(report: Report, form: str) -> str:
    """The report as text in one of `FORMATS`, ending in a line end."""
    home, name = _HOMES[form]
    text: str = getattr(import_module(f"phobos.check.render.{home}"), name)(report)
    return text


__all__ = ["FORMATS", "FORMATS_WITH_NOTES", "Listing", "Report", "full", "render"]
