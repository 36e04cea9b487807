"""How much a value may differ from block to block: the lattice, its reasons, and the level of a value by its parts.

CONSTANT < UNIFORM < VARYING < LANE. What varies keeps a pointer to what made it vary, and a chain of reasons is what
those pointers are. Values that have a polynomial are judged by its atoms, so `p - p` is uniform and `range(p, p + 8)`
has uniform trips, however they were spelled.
"""

from __future__ import annotations

from enum import IntEnum

from phobos.diagnostic import Span
from phobos.semantics import ir
from phobos.semantics.conditions import Condition, opaques, polys
from phobos.semantics.knowledge import poly_of_key
from phobos.semantics.poly import Atom, Poly
from phobos.value import value


class Level(IntEnum):
    CONSTANT = 0
    UNIFORM = 1
    VARYING = 2
    LANE = 3


@value
class Origin:
    """What brought variation in. `kind`: "block", "load", "atomic", "thread", "assigned-under", "loop-exit".

    `certain`: index arithmetic alone tells two blocks apart (E); otherwise loaded data or the order of atomics (W).
    """

    kind: str
    span: Span
    calls: tuple[Span, ...]
    message: str  # "`p` is the block index", "`X` is written by other blocks in this phase", ...
    certain: bool


@value
class Variation:
    """A level with its reason: one step, and the step that it came from. `length` counts the steps.

    `reference`: the step only names a variable that holds the variation.
    """

    level: Level
    certain: bool
    origin: Origin | None
    because: Variation | None
    length: int
    reference: bool

    def chain(self) -> tuple[Origin, ...]:
        found: list[Origin] = []
        at: Variation | None = self
        while at is not None:
            if at.origin is not None:
                found.append(at.origin)
            at = at.because
        return tuple(found)


CONSTANT = Variation(Level.CONSTANT, False, None, None, 0, False)
UNIFORM = Variation(Level.UNIFORM, False, None, None, 0, False)


def join(a: Variation, b: Variation) -> Variation:
    """The higher level; of two equal ones the certain, then the one explained in fewer steps."""
    if a.level != b.level:
        return a if a.level > b.level else b
    if a.certain != b.certain:
        return a if a.certain else b
    return b if b.length < a.length else a


class Levels:
    """The levels that are known of the expressions, variables and atoms of a program."""

    def __init__(self, one_axis: bool) -> None:
        self.one_axis = one_axis
        self.variations: dict[object, Variation] = {}  # of expressions and variables
        self.atoms: dict[Atom, Level] = {}

    def level(self, what: ir.Expression | ir.Variable) -> Level:
        """Of an expression where it stands; of a variable over its life (the highest it takes)."""
        known = self.variations.get(what)
        return Level.CONSTANT if known is None else known.level

    def why(self, what: ir.Expression | ir.Variable) -> tuple[Origin, ...]:
        """The shortest chain from a varying value to its origin; empty when it does not vary."""
        known = self.variations.get(what)
        return () if known is None or known.level <= Level.UNIFORM else known.chain()

    def level_of_poly(self, poly: Poly) -> Level:
        """The level of a value, by its atoms."""
        level = Level.CONSTANT
        for atom in poly.atoms:
            level = max(level, self.level_of_atom(atom))
        return level

    def level_if_uniform(self, poly: Poly) -> Level | None:
        """`level_of_poly` of a value that does not vary; None, and early, where it does."""
        level = Level.CONSTANT
        for monomial in poly.terms:
            for atom in monomial:
                level = max(level, self.level_of_atom(atom))
                if level > Level.UNIFORM:
                    return None
        return level

    def level_of_atom(self, atom: Atom) -> Level:
        match atom[0]:
            case "block":
                return Level.UNIFORM if self.one_axis and atom[1] != 0 else Level.VARYING
            case "dim" | "param" | "blocks" | "round":
                return Level.UNIFORM
            case "const":
                return Level.CONSTANT
            case "thread":
                return Level.LANE
            case "div" | "min" | "max":
                return max(self.level_of_poly(poly_of_key(atom[1])), self.level_of_poly(poly_of_key(atom[2])))
            case "op":
                return max(self.level_of_poly(poly_of_key(atom[2])), self.level_of_poly(poly_of_key(atom[3])))
            case "wrap":
                return self.level_of_poly(poly_of_key(atom[2]))
            case "trips" if len(atom) == 4 and atom not in self.atoms:
                return max(Level.UNIFORM, *(self.level_of_poly(poly_of_key(key)) for key in atom[1:]))
        return self.atoms.get(atom, Level.VARYING)

    def level_of_condition(self, condition: Condition) -> Level:
        level = Level.CONSTANT
        for poly in polys(condition):
            level = max(level, self.level_of_poly(poly))
        for opaque in opaques(condition):
            level = max(level, self.level_of_opaque(opaque.key, opaque.expression))
        return level

    def level_of_opaque(self, key: tuple[object, ...], expression: ir.Expression | None) -> Level:
        if key[0] == "param":
            return Level.UNIFORM
        known = self.variations.get(key)
        if known is None and expression is not None:
            known = self.variations.get(expression)
        return Level.VARYING if known is None else known.level
