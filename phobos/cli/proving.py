"""`phobos check --prove`: to each error that a run can show, the launch that shows it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from phobos.check.project import write
from phobos.cli.progress import Progress
from phobos.diagnostic import Diagnostic
from phobos.syntax.lines import line_at
from phobos.value import replace

if TYPE_CHECKING:
    from phobos.cli.check import Checked
    from phobos.runtime.lanes import Panel

NOT_SHOWN = "no launch of up to 5 blocks and a few tiles showed it; that proves nothing"


def with_proofs(checked: list[Checked], plot: str | None = None) -> list[Checked]:
    """The findings with what a run says of them in their notes; `plot` is a file for pictures of those runs."""
    total = sum(_is_searched_for(d) for one in checked for d in one.shown)
    bar = Progress(total, "errors replayed")
    panels: list[Panel] = []
    proved = [replace(one, shown=tuple(_proved(one, bar, panels))) for one in checked]
    bar.end()
    if plot is not None:
        _draw(plot, panels)
    return proved


def _draw(path: str, panels: list[Panel]) -> None:
    from phobos.runtime.lanes import as_svg

    if not panels:
        print(f"phobos: nothing to draw, so {path} is not written: no run showed an error", file=sys.stderr)
        return
    write(path, as_svg(panels))


def _is_searched_for(diagnostic: Diagnostic) -> bool:
    from phobos.runtime.replay import FAMILY, PROVABLE

    provable = diagnostic.code.startswith(PROVABLE) and diagnostic.code in FAMILY
    return diagnostic.severity == "error" and provable


def _proved(one: Checked, bar: Progress, panels: list[Panel]) -> Iterator[Diagnostic]:
    from phobos.runtime.replay import prove

    for diagnostic in one.shown:
        if not _is_searched_for(diagnostic):
            yield diagnostic
            continue
        proof = prove(one.source.name, one.source.text, diagnostic)
        bar.step()
        if proof is not None:
            row = line_at(one.source.text, diagnostic.span.start)
            panels.append(proof.panel(f"{diagnostic.code} {diagnostic.name} at {one.source.name}:{row}"))
        yield replace(diagnostic, notes=(*diagnostic.notes, NOT_SHOWN if proof is None else proof.note))
