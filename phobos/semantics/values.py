"""What every index value is, as a polynomial, and the range it can have.

A `let` is what it was bound to; a `for` variable is its start plus its step times the round; a `var` that a loop
changes by the same amount each round likewise; anything else a loop changes is an atom of its own in each round.
So a loop that counts from 0 and one that starts at the block give the same polynomials. A grid constant is the
grid's extent. `evaluator` finds all this out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from phobos.semantics import ir
from phobos.semantics.concrete import plain_atoms
from phobos.semantics.conditions import Condition, Opaque
from phobos.semantics.knowledge import ROOT, Knowledge
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program, Promise, fact
from phobos.semantics.walking import (
    blocks_of,
    children_of,
    expressions_in,
    is_bool,
    is_integer,
    statements_in,
    statements_of,
    subscript_parts,
    walk,
    written_tensors,
)
from phobos.value import value


@value
class LoopFact:
    """One `for` or `while`, counted.

    `variable` is the atom of the round, 0 in the first. A `for` variable is `value` = `lo + step * round`, runs
    while it is below `hi`, and `step` is at least 1 wherever the body runs. A `while` whose condition bounds
    something that grows by `step` each round reads the same way; of any other `while`, `lo`, `hi`, `step` and
    `value` are None. `trips` is the number of rounds where it has a polynomial form.
    """

    statement: ir.For | ir.While
    variable: Atom
    lo: Poly | None
    hi: Poly | None
    step: Poly | None
    value: Poly | None
    trips: Poly | None
    index: int
    parent: int


@value
class Context:
    """What holds at a place: a chain, innermost first, of the loops and conditions it stands under.

    `given` are polynomials that are never negative there. `loop` is set for a loop, `condition` for a guard
    (with the statement it comes from, and whether it is its negation: an exit taken before leaves it).
    """

    parent: Context | None
    loop: LoopFact | None
    loop_index: int
    condition: Condition | None
    source: ir.Statement | ir.Expression | None
    given: tuple[Poly, ...]
    depth: int

    def chain(self) -> Iterator[Context]:
        """From the innermost outwards."""
        at: Context | None = self
        while at is not None:
            yield at
            at = at.parent


MOST_GIVEN = 64  # of the guards at a place; the outermost of a longer chain are not looked at


class Values:
    """`poly` of every index expression of a program, and what is known about each atom."""

    def __init__(self, program: Program, knowledge: Knowledge) -> None:
        self.program = program
        self.knowledge = knowledge
        self.polys: dict[ir.Expression, Poly] = {}
        self.conditions: dict[ir.Expression, Condition] = {}
        self.contexts: dict[object, Context] = {}
        self.loops: dict[ir.For | ir.While, LoopFact] = {}
        self.by_atom: dict[Atom, LoopFact] = {}
        self.unreachable: set[ir.Statement] = set()
        self.once: set[ir.For | ir.While] = set()  # loops that no round leads to another of
        self.merged: dict[Atom, tuple[Poly, ...]] = {}  # what a value is that comes to a place on several ways
        self.atomics: dict[Atom, ir.Atomic] = {}
        self.loads: dict[Atom, ir.Load] = {}
        self.limits: dict[Atom, str] = {}  # values that were not looked into, and what limit says so
        self.root = Context(None, None, ROOT, None, None, (), 0)

    def poly(self, expression: ir.Expression) -> Poly:
        """The value of an index expression at the place where it stands."""
        known = self.polys.get(expression)
        return Poly.atom("unknown", id(expression)) if known is None else known

    def condition(self, expression: ir.Expression) -> Condition:
        """The value of a bool scalar at the place where it stands."""
        known = self.conditions.get(expression)
        return Opaque(("unknown", id(expression)), True, expression) if known is None else known

    def context(self, place: ir.Statement | ir.Access) -> Context:
        """What holds where a statement starts, or where an access is evaluated."""
        return self.contexts.get(place, self.root)

    def why_opaque(self, polys: Iterable[Poly]) -> str:
        """Why one of these has no closed form, to be said of what holds it."""
        limit = next((self.limits[atom] for poly in polys for atom in plain_atoms(poly) if atom in self.limits), None)
        return limit or "changes in a way that has no closed form"

    def loop(self, statement: ir.For | ir.While) -> LoopFact:
        return self.loops[statement]

    def loop_of(self, atom: Atom) -> LoopFact | None:
        """The loop whose round an atom is."""
        return self.by_atom.get(atom)

    def extent(self, base: ir.Tensor | ir.Variable, axis: int) -> Poly:
        """The number of cells of one axis of a tensor or a tile variable."""
        if isinstance(base, ir.Tensor):
            return self.extent_of(base.extents[axis])
        length = base.type.shape[axis] if isinstance(base.type, ir.TileT) else 0
        return length if isinstance(length, Poly) else Poly.of(length)

    def extent_of(self, extent: int | ir.Dim | ir.Constant) -> Poly:
        if isinstance(extent, int):
            return Poly.of(extent)
        if isinstance(extent, ir.Dim):
            return self.knowledge.dim(extent.name)
        return self.constant(extent)

    def constant(self, constant: ir.Constant) -> Poly:
        raise NotImplementedError

    def given(self, context: Context) -> list[Poly]:
        """Polynomials that are never negative at a place, the nearest first."""
        found: list[Poly] = []
        for at in context.chain():
            found.extend(at.given)
            if len(found) >= MOST_GIVEN:
                break
        return found

    def holds(self, goal: Poly, context: Context, promises: Sequence[Promise] | None = None) -> bool:
        """Whether `goal >= 0` is proved at a place. `promises` are those to believe (None: all)."""
        return self.knowledge.never_negative(goal, self.given(context), promises)

    def at_least(self, poly: Poly) -> int | None:
        """The largest known lower bound over everything the program allows (extents are >= 0, ids in their grid)."""
        total = 0
        for monomial, c in poly.terms.items():
            if not monomial:
                total += c
                continue
            if c < 0 or not all(self.knowledge.nonneg(atom) for atom in monomial):
                break
            if all(atom[0] == "blocks" for atom in monomial):
                total += c
        else:
            return total
        constant = poly.terms.get((), 0)
        return constant if self.knowledge.never_negative(poly - constant, ()) else None

    def divisor(self, poly: Poly) -> int:
        """A number that divides it always, promises of `@aligned` included; 0 when it is always 0."""
        return self.knowledge.divisor(poly)


def evaluated(program: Program, constants: Mapping[str, Poly]) -> Values:
    """The values with some constants left as atoms."""
    from phobos.semantics.evaluator import Evaluator  # which is made of what this file defines

    evaluator = Evaluator(program, Knowledge(program), constants, written_tensors(program))
    evaluator.run()
    return evaluator


@fact
def symbolic_values_of(program: Program) -> Values:
    """The values with every `@autotune` constant as an atom ("const", name): what the text says for any choice."""
    if not program.constants:
        return values_of(program)
    return evaluated(program, {name: Poly.atom("const", name) for name in program.constants})


@fact
def values_of(program: Program) -> Values:
    """The values of a program at its constants, a grid constant being the extent of the grid."""
    from phobos.semantics.grid_constants import grid_constants_of  # which asks for the symbolic values

    bound = {one.constant.name: Poly.atom("blocks", 0) for one in grid_constants_of(program)}
    return evaluated(program, bound)


__all__ = [
    "Context",
    "LoopFact",
    "Values",
    "blocks_of",
    "children_of",
    "expressions_in",
    "is_bool",
    "is_integer",
    "statements_in",
    "statements_of",
    "subscript_parts",
    "symbolic_values_of",
    "values_of",
    "walk",
    "written_tensors",
]
