"""`phobos check --prove`: to each error that a run can show, the launch that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from phobos.cli.progress import Progress
from phobos.diagnostic import Diagnostic

if TYPE_CHECKING:
    from phobos.cli.check import Checked

NOT_SHOWN = "no launch of up to 5 blocks and a few tiles showed it; that proves nothing"


def with_proofs(checked: list[Checked]) -> list[Checked]:
    """The findings with what a run says of them in their notes."""
    total = sum(_is_searched_for(d) for one in checked for d in one.shown)
    bar = Progress(total, "errors replayed")
    proved = [replace(one, shown=tuple(_proved(one, bar))) for one in checked]
    bar.end()
    return proved


def _is_searched_for(diagnostic: Diagnostic) -> bool:
    from phobos.runtime.replay import FAMILY, PROVABLE

    provable = diagnostic.code.startswith(PROVABLE) and diagnostic.code in FAMILY
    return diagnostic.severity == "error" and provable


def _proved(one: Checked, bar: Progress) -> Iterator[Diagnostic]:
    from phobos.runtime.replay import prove

    for diagnostic in one.shown:
        if not _is_searched_for(diagnostic):
            yield diagnostic
            continue
        proof = prove(one.source.name, one.source.text, diagnostic)
        bar.step()
        yield replace(diagnostic, notes=(*diagnostic.notes, NOT_SHOWN if proof is None else proof.note))
