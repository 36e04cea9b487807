"""Tickets: answers of a counter that no two atomics are given.

Where a cell is only ever added to, and never less than nothing, what an `atomic_add` of at least one finds there is
found by no other: two blocks that go by their answers go different ways, whatever the counter began with. A variable
holds a ticket where all that it may have been bound to are answers of one counter, each as far ahead.
"""

from __future__ import annotations

from phobos.semantics import ir
from phobos.semantics.concrete import plain_atoms
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program, fact
from phobos.semantics.values import Values, statements_of, values_of
from phobos.value import value

FIXED = frozenset({"dim", "param", "const", "blocks"})  # kinds of atoms that all blocks see alike, at any time


@value
class Ticket:
    """An answer of `counter`, plus `ahead`. Any two answers lie at least `apart` from one another."""

    counter: tuple[object, ...]
    ahead: int
    apart: int


@fact
def tickets_of(program: Program) -> dict[Atom, Ticket]:
    """The values that hold a ticket."""
    values = values_of(program)
    known = _drawn(program, values)
    if known:
        for atom in values.merged:
            held = _held(atom, values, known)
            if held is not None:
                known[atom] = held
    return known


def _drawn(program: Program, values: Values) -> dict[Atom, Ticket]:
    """The answers themselves."""
    stored = {s.access.base for s in statements_of(program.body) if isinstance(s, ir.Store)}
    least: dict[ir.Tensor, int | None] = {}  # that anybody adds; None: it may be less than nothing
    for statement in statements_of(program.body):
        if isinstance(statement, ir.Atomic) and statement not in values.unreachable:
            added = _added(statement, values)
            lowest = least.get(statement.tensor, added)
            least[statement.tensor] = None if added is None or lowest is None else min(added, lowest)
    found: dict[Atom, Ticket] = {}
    for atom, atomic in values.atomics.items():
        added, index = _added(atomic, values), values.poly(atomic.index)
        counts = atomic.tensor not in stored and least.get(atomic.tensor) is not None
        if counts and added and all(part[0] in FIXED for part in plain_atoms(index)):
            found[atom] = Ticket((atomic.tensor.name, index.key), 0, added)
    return found


def _added(atomic: ir.Atomic, values: Values) -> int | None:
    """The least that an atomic adds, None where it may take away or put something else there."""
    least = values.at_least(values.poly(atomic.operands[0])) if atomic.kind == "add" else None
    return None if least is None or least < 0 else least


def _held(atom: Atom, values: Values, drawn: dict[Atom, Ticket]) -> Ticket | None:
    """What a variable holds whose value comes to a place on several ways."""
    found: Ticket | None = None
    seen: set[tuple[Atom, int]] = set()
    stack = [(atom, 0)]
    while stack:
        one = stack.pop()
        if one in seen:
            continue
        seen.add(one)
        at, ahead = one
        ticket = drawn.get(at)
        if ticket is not None:
            ticket = Ticket(ticket.counter, ticket.ahead + ahead, ticket.apart)
            if found is not None and (found.counter, found.ahead) != (ticket.counter, ticket.ahead):
                return None
            found = ticket if found is None or ticket.apart < found.apart else found
            continue
        sources = values.merged.get(at)
        if sources is None or len(seen) > len(values.merged) + len(drawn):
            return None
        for source in sources:
            name, more = _plain(source)
            if name is None:
                return None
            stack.append((name, ahead + more))
    return found


def _plain(poly: Poly) -> tuple[Atom | None, int]:
    """A value that is an atom and a number more."""
    more = poly.terms.get((), 0)
    rest = [(monomial, c) for monomial, c in poly.terms.items() if monomial]
    if len(rest) != 1 or rest[0][1] != 1 or len(rest[0][0]) != 1:
        return None, 0
    return rest[0][0][0], more


__all__ = ["Ticket", "tickets_of"]
