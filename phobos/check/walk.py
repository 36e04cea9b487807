"""Ways through a typed program that several rules take: its statements in order, what each reads and touches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from phobos.diagnostic import Related, Span
from phobos.semantics import ir
from phobos.semantics.program import Program, fact
from phobos.semantics.walking import all_evaluated
from phobos.semantics.walking import blocks_of as blocks
from phobos.semantics.walking import inside as inside
from phobos.semantics.walking import subscripts as subscripts
from phobos.value import value

S = TypeVar("S", bound=ir.Statement)


@value
class Place:
    """A statement and the statements it stands in, outermost first."""

    statement: ir.Statement
    inside: tuple[ir.Statement, ...]


@fact
def places_of(program: Program) -> tuple[Place, ...]:
    """Every statement, in the order of the text."""
    out: list[Place] = []

    def visit(block: ir.Block, inside: tuple[ir.Statement, ...]) -> None:
        for statement in block.statements:
            out.append(Place(statement, inside))
            for inner in blocks(statement):
                visit(inner, (*inside, statement))

    if program.body is not None:
        visit(program.body, ())
    return tuple(out)


def every(program: Program, kind: type[S]) -> Iterator[S]:
    """Every statement of a kind."""
    for place in places_of(program):
        if isinstance(place.statement, kind):
            yield place.statement


def all_expressions(program: Program) -> Iterator[ir.Expression]:
    """Every expression of a program, in the order of the text."""
    for inner in all_evaluated(program).values():
        yield from inner


@fact
def barriers_of(program: Program) -> tuple[ir.Barrier, ...]:
    """Every barrier call, after inlining."""
    return tuple(every(program, ir.Barrier))


@fact
def accesses_of(program: Program) -> dict[ir.Statement, tuple[tuple[ir.Access, bool], ...]]:
    """Each access a statement makes itself, and whether it is stored to. A view reads where it is used."""
    found: dict[ir.Statement, tuple[tuple[ir.Access, bool], ...]] = {}
    for statement, evaluated in all_evaluated(program).items():
        own: tuple[tuple[ir.Access, bool], ...] = ()
        if isinstance(statement, (ir.Store, ir.DefineView)):
            own = ((statement.access, isinstance(statement, ir.Store)),)
        found[statement] = (*own, *[(one.access, False) for one in evaluated if isinstance(one, ir.Load)])
    return found


def called_from(calls: Iterable[Span]) -> tuple[Related, ...]:
    """The call chain that leads to a place in a function, innermost call first."""
    return tuple(Related(span, "which is called here") for span in reversed(tuple(calls)))


def same_place(left: Span, right: Span) -> bool:
    return left.owner == right.owner and left.start == right.start and left.end == right.end


def unique(spans: Iterable[tuple[Span, str]]) -> tuple[Related, ...]:
    """Related places, each place once."""
    seen: set[tuple[str | None, int, int]] = set()
    out: list[Related] = []
    for span, message in spans:
        key = (span.owner, span.start, span.end)
        if key not in seen:
            seen.add(key)
            out.append(Related(span, message))
    return tuple(out)


def covering(first: Span, last: Span, otherwise: Span | None = None) -> Span:
    """From the beginning of one span to the end of another; where they lie in different texts, `otherwise`."""
    if first.owner != last.owner:
        return otherwise or first
    if last.end < first.start:
        return otherwise or first
    return Span(first.owner, first.start, max(first.end, last.end))


__all__ = [
    "Place",
    "accesses_of",
    "all_evaluated",
    "all_expressions",
    "barriers_of",
    "blocks",
    "called_from",
    "covering",
    "every",
    "inside",
    "places_of",
    "same_place",
    "subscripts",
    "unique",
]
