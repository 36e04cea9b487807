"""When two questions about polynomials are one: a text in which loops and places are numbered as they appear.

Twenty loops of the same form, and the same kernel after an edit elsewhere, ask the same things about different round
atoms; with this text each is answered once. `Signature.canonical` gives an atom the name that it has in the text, so
that what is worked out is the same whoever asked first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from phobos.semantics.knowledge import Knowledge
from phobos.semantics.poly import Atom, Poly
from phobos.value import value

NUMBERED = re.compile(
    r"\('(?:(round|at|trips)|(var|expr|atomic|bool|left|load|unsigned))', (?:'cell', )?(\d+)(?:, (\d+))?"
)
LOOPS = frozenset({"round", "at", "trips"})
PLACES = frozenset({"var", "expr", "atomic", "bool", "left", "load", "unsigned"})
PLACED = frozenset({*PLACES, "trips", "thread"})
PLAIN = frozenset({"block", "blocks", "round", "at"})  # kinds of atoms of which the same is known everywhere


@value
class Signature:
    """`text` is the question; `numbers` gives each loop and each place in it the number that it has there."""

    text: str
    numbers: dict[tuple[bool, int], int]

    def loop(self, index: int) -> int:
        """A loop by the number that it has in this question."""
        return self.numbers.get((True, index), index)

    def canonical(self, atom: Atom) -> Atom:
        """An atom by the numbers of this question."""
        return self._renumbered(atom)

    def _renumbered(self, part: tuple[object, ...]) -> tuple[object, ...]:
        kind = part[0] if part else None
        is_loop, is_place = kind in LOOPS, kind in PLACES
        renumbered: list[object] = []
        for one in part:
            if isinstance(one, tuple):
                one = self._renumbered(one)
            elif isinstance(one, int) and (is_loop or is_place):
                one = self.numbers.get((is_loop, one), one)
            renumbered.append(one)
        return tuple(renumbered)


def signature(*parts: str) -> Signature | None:
    """The parts, which `polys_told` and such wrote, as one question; None where one tells only of here."""
    text = " ".join(parts)
    if "'unknown'" in text:
        return None
    numbers: dict[tuple[bool, int], int] = {}

    def number(match: re.Match[str]) -> str:
        loop, place, first, second = match.groups()
        is_loop = loop is not None
        told = f"({loop or place} {numbers.setdefault((is_loop, int(first)), len(numbers))}"
        return told if second is None else f"{told} {numbers.setdefault((is_loop, int(second)), len(numbers))}"

    return Signature(NUMBERED.sub(number, text), numbers)


def polys_told(polys: Iterable[Poly], said: Callable[[Atom], str] | None = None) -> str:
    """Polynomials in their order, with what is `said` of each atom where that is not the same everywhere."""
    if said is None:
        return f"[{'; '.join([poly.text for poly in polys])}]"
    known = [*polys]
    return f"[{'; '.join([poly.text for poly in known])}]" + "".join(
        [said(atom) for poly in known for monomial, _ in poly.key for atom in monomial if atom[0] not in PLAIN]
    )


def atom_told(atom: Atom, knowledge: Knowledge, of_place: Callable[[Atom], str]) -> str:
    """All that is known of an atom and of those inside it; `of_place` tells of one that hangs on its place."""
    kind = atom[0]
    if kind in PLAIN:
        return ""
    if kind == "dim":
        return f"%{knowledge.divisor_of_atom(atom)}"
    said = f"={knowledge.program.constants[str(atom[1])].value}" if kind == "const" else ""
    said += "+" if knowledge.nonneg(atom) else "-"
    if atom in knowledge.bounded:
        said += repr(knowledge.bounded[atom])
    if kind in PLACED:
        said += of_place(atom)
    for key in atom[1:]:
        if isinstance(key, tuple):
            said += "".join([atom_told(inner, knowledge, of_place) for monomial, _ in key for inner in monomial])
    return said
