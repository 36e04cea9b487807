"""Proofs that two accesses keep apart, each sought once: what is asked is told in a text, and answers go by the text.

The text holds all that can bear on a proof and nothing else, with loops and places numbered as they appear. So the
same kernel after an edit elsewhere, and another kernel of the same form, find the answer there; and as the proof itself
goes by those numbers, it does not matter who asked first.
"""

from __future__ import annotations

from collections.abc import Sequence

from phobos.semantics.cells import Cells
from phobos.semantics.concrete import plain_atoms
from phobos.semantics.conditions import Condition, key_of, opaques, polys
from phobos.semantics.flow import Reach
from phobos.semantics.grid import has_one_axis
from phobos.semantics.knowledge import ROOT
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.signature import atom_told, polys_told, signature
from phobos.semantics.solve import remember
from phobos.semantics.tickets import tickets_of
from phobos.semantics.twoblocks import MOST_NODES, Pair, Shared
from phobos.semantics.values import Context, Values
from phobos.value import value

_answers: dict[str, bool] = {}
_sought = 0


def proofs_sought() -> int:
    """How many proofs were looked for so far, those that were known not counted."""
    return _sought


def forget() -> None:
    """Every answer, for who changes how they are found."""
    _answers.clear()


@value
class _Material:
    """What a proof needs of an access at a place: its cells and conditions told, their atoms, bounds of its loops."""

    axes: tuple[tuple[Poly, Poly], ...]
    context: Context
    told: str
    atoms: frozenset[Atom]
    bounds: tuple[tuple[Poly, frozenset[Atom]], ...]


class Proofs:
    """Proofs about one program; `shared` and `limits` as a `Pair` takes them."""

    def __init__(self, values: Values, shared: Shared, limits: Sequence[Poly]) -> None:
        self.values = values
        self._shared = shared
        self._limits = limits
        self._tickets = tickets_of(values.program)
        self._material: dict[tuple[int, int], _Material] = {}
        self._atoms_told: dict[Atom, str] = {}
        self._limits_told = f"{has_one_axis(values.program)}{polys_told(limits, self._atom_told)}"
        self._limit_atoms = frozenset([atom for limit in limits for atom in plain_atoms(limit)])

    def apart(
        self, a: Cells, b: Cells, axes: tuple[int, ...], *, alike_too: bool = False, nodes: int = MOST_NODES
    ) -> bool:
        """Whether no cell is proved to be touched by both: `Pair.disjoint`, of what was not asked before."""
        global _sought
        one, other = self._material_of(a), self._material_of(b)
        way_a, near_a = self._way_of(a.reach)
        way_b, near_b = self._way_of(b.reach)
        bounds_a, bounds_b = self._bearing(one, other, near_a, near_b)
        same = a.axes is b.axes and a.context is b.context
        asked = signature(
            f"{nodes} {axes} {alike_too} {same}", self._limits_told,
            one.told, polys_told(bounds_a, self._atom_told), way_a, "and",
            other.told, polys_told(bounds_b, self._atom_told), way_b,
        )  # fmt: skip
        known = _answers.get(asked.text) if asked is not None else None
        if known is None:
            _sought += 1
            pair = Pair(
                self.values,
                Cells(a.axes, a.extents, a.context, a.reach, bounds_a),
                Cells(b.axes, b.extents, b.context, b.reach, bounds_b),
                self._shared, self._limits, axes, asked,
            )  # fmt: skip
            known = pair.disjoint(alike_too, nodes)
            if asked is not None:
                remember(_answers, asked.text, known)
        return known

    def _material_of(self, cells: Cells) -> _Material:
        key = id(cells.axes), id(cells.context)
        known = self._material.get(key)
        if known is None:
            places = [side for axis in cells.axes for side in axis] + [*cells.extents]
            told = [polys_told(places, self._atom_told)]
            atoms = {atom for poly in places for atom in plain_atoms(poly)}
            bounds: list[tuple[Poly, frozenset[Atom]]] = []
            for at in cells.context.chain():
                if at.condition is None:
                    bounds += [(poly, plain_atoms(poly)) for poly in at.given]
                else:
                    told.append(self._condition_told(at.condition, at.loop_index))
                    atoms.update(atom for poly in polys(at.condition) for atom in plain_atoms(poly))
            known = _Material(cells.axes, cells.context, " ".join(told), frozenset(atoms), tuple(bounds))
            self._material[key] = known
        return known

    def _way_of(self, reach: Reach) -> tuple[str, frozenset[Atom]]:
        """A way as a proof looks at it, and the atoms that it speaks of."""
        told = [f"('round', {self.values.loops[loop].index}) {relation}" for loop, relation in reach.rounds]
        atoms: set[Atom] = set()
        for step in reach.way:
            if isinstance(step, Poly):
                told.append(polys_told((step,), self._atom_told))
                atoms.update(plain_atoms(step))
            else:
                told.append(self._condition_told(step, ROOT))
                atoms.update(atom for poly in polys(step) for atom in plain_atoms(poly))
        return " ".join(told), frozenset([("round", *a[1:]) if a[0] == "at" else a for a in atoms])

    def _bearing(self, a: _Material, b: _Material, *more: frozenset[Atom]) -> tuple[tuple[Poly, ...], tuple[Poly, ...]]:
        """The bounds on each side that share atoms with what is asked, directly or through one another."""
        wanted = self._limit_atoms.union(a.atoms, b.atoms, *more)
        sides = (*a.bounds, *b.bounds)
        near: set[int] = set()
        while True:
            found = [i for i, (_, atoms) in enumerate(sides) if i not in near and not wanted.isdisjoint(atoms)]
            if not found:
                break
            near.update(found)
            wanted = wanted.union(*(sides[i][1] for i in found))
        middle = len(a.bounds)
        return (
            tuple([poly for i, (poly, _) in enumerate(a.bounds) if i in near]),
            tuple([poly for i, (poly, _) in enumerate(b.bounds, middle) if i in near]),
        )

    def _condition_told(self, condition: Condition, home: int) -> str:
        shared = [self._shared(("condition", one.key, one.expression)) for one in opaques(condition)]
        flags = f"{shared}@('round', {home})" if shared else ""
        return f"{key_of(condition)}{flags}" + "".join([polys_told((p,), self._atom_told) for p in polys(condition)])

    def _atom_told(self, atom: Atom) -> str:
        known = self._atoms_told.get(atom)
        if known is None:
            known = self._atoms_told[atom] = atom_told(atom, self.values.knowledge, self._place_told)
        return known

    def _place_told(self, atom: Atom) -> str:
        """Of an atom that hangs on its place: whether blocks agree on it, the loop that changes it, and its counter."""
        ticket = self._tickets.get(atom)
        drawn = "" if ticket is None else f"#{ticket.counter}{ticket.ahead}:{ticket.apart}"
        return f"{self._shared(atom)}@('round', {self.values.knowledge.homes.get(atom, ROOT)}){drawn}"


__all__ = ["Proofs", "forget", "proofs_sought"]
