"""What answers about a kernel ask of it, made in advance: while the user types on, or looks at what was just found."""

from __future__ import annotations

from collections.abc import Iterator

from phobos.ide.document import Document
from phobos.ide.names import names_of
from phobos.semantics.footprints import footprints_of
from phobos.semantics.grid import grid_of
from phobos.semantics.masks import masks_of
from phobos.semantics.obligations import launch_obligations_of
from phobos.semantics.program import Program, fact
from phobos.semantics.uniformity import uniformity_of
from phobos.semantics.values import values_of

_FACTS = (values_of, grid_of, uniformity_of, masks_of, footprints_of, launch_obligations_of)  # the next asks the former


@fact
def _laid(program: Program) -> list[bool]:
    """Empty until the groundwork of a program was done."""
    return []


def groundwork(document: Document) -> Iterator[None]:
    """In steps of some milliseconds, for each kernel and function of which it was not done yet."""
    for place in document.places():
        program = document.program(place)
        if program is None or _laid(program):
            continue
        names_of(place.item)
        for made in _FACTS:
            made(program)
            yield
        _laid(program).append(True)
