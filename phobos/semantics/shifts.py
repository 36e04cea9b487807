"""How numbers shift when the block that computes them is taken out of a shard and put into its place in the whole.

A shift is what is added to a number, in blocks and in extents. That of a variable is that of all it is ever given; a
condition is still where it is alike in shard and whole. It may ask whether a cell near the block exists: how near,
says how much of its neighbours' cells a shard needs beside its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from phobos.diagnostic import Span
from phobos.semantics import ir
from phobos.semantics.conditions import All, AnyOf, Compare, Condition, Opaque, Truth
from phobos.semantics.knowledge import poly_of_key
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program
from phobos.semantics.values import Context, Values, values_of
from phobos.semantics.walking import children_of, is_bool, is_integer
from phobos.value import value

FARTHEST = 1 << 20  # cells beyond its own that a block may ask for


@value
class Shift:
    """`blocks` times the block index, and `ends` times the extent, are in it; the rest is alike in shard and whole."""

    blocks: int
    ends: int

    @property
    def is_still(self) -> bool:
        return self.blocks == 0 and self.ends == 0


@value
class Loose:
    """A value that changes in no such simple way; `span` is where it began to."""

    reason: str
    span: Span
    calls: tuple[Span, ...]


STILL = Shift(0, 0)
State = Shift | Loose | None  # None: not met yet


class Shifts:
    """The shifts of one kernel's numbers along one extent: `block` is the index of the axis that walks it in steps of
    `tile` cells. `below` and `above` are the cells before and behind its own that a block was found to look at.
    """

    def __init__(
        self, program: Program, dim: ir.Dim, block: Atom, tile: int, statements: Sequence[ir.Statement]
    ) -> None:
        self.dim = dim
        self.values: Values = values_of(program)
        self.extent: Atom = ("dim", dim.name)
        self.block = block
        self.tile = tile
        self.statements = statements
        self.below = self.above = 0
        self.at: ir.Statement | None = None  # the statement whose expressions are looked at
        self._states: dict[ir.Variable, State] = {}
        self._settle()

    def _settle(self) -> None:
        """The shift of every variable: of all that is ever assigned to it."""
        changed = True
        while changed:
            changed = False
            for statement in self.statements:
                for variable, state in self._defined(statement):
                    old = self._states.get(variable)
                    new = state if old is None else old if state is None or _same(old, state) else self._mixed(variable)
                    if new is not None and (old is None or not _same(old, new)):
                        self._states[variable] = new
                        changed = True

    def _mixed(self, variable: ir.Variable) -> Loose:
        return Loose(self.moves(), variable.span, variable.calls)

    def moves(self) -> str:
        """What is to be said of a number that is not still."""
        return f"depends on where along `{self.dim.name}` the block is"

    def _defined(self, statement: ir.Statement) -> Iterator[tuple[ir.Variable, State]]:
        self.at = statement
        match statement:
            case ir.Define(variable=variable, value=initial):
                yield variable, STILL if initial is None else self.of(initial)
            case ir.DefineView(variable=variable):
                yield variable, STILL
            case ir.Assign(variable=variable, op=None, value=new):
                yield variable, self.of(new)
            case ir.Assign(variable=variable, op=op, value=new):
                yield variable, self._updated(variable, op in ("+", "-"), self.of(new))
            case ir.Store(access=access, value=new) if isinstance(access.base, ir.Variable):
                yield access.base, self.of(new)
            case ir.For(variable=variable, lo=lo):
                yield variable, self.of(lo)

    def _updated(self, variable: ir.Variable, adds: bool, by: State) -> State:
        """What `x op= e` makes of `x`: what it was, where `e` is still and is added, or all is still."""
        before = self._states.get(variable)
        if not isinstance(by, Shift):
            return by
        if by.is_still and (adds or before is None or self.is_still(before)):
            return before
        return self._mixed(variable)

    def is_still(self, state: State) -> bool:
        """Whether what has this shift is alike in shard and whole."""
        return isinstance(state, Shift) and state.is_still

    def of(self, expression: ir.Expression) -> State:
        """The shift of a value, where the statement `at` evaluates it; that of a tile is that of all its elements."""
        if is_bool(expression.type):
            return self._truth(expression)
        if is_integer(expression.type):
            known = self.of_poly(self.values.poly(expression))
            if known is not None:
                return known
        match expression:
            case ir.VariableRef(variable=variable):
                return self._states.get(variable)
            case ir.IntLiteral() | ir.FloatLiteral() | ir.BoolLiteral() | ir.ConstantRef() | ir.ParamRef():
                return STILL
            case ir.DimRef(dim=dim):
                return Shift(0, 1) if dim.name == self.dim.name else STILL
            case ir.BlockIndex(axis=axis):
                return Shift(1, 0) if self.block == ("block", axis) else STILL
            case ir.GridExtent(axis=axis):
                if self.block != ("block", axis):
                    return STILL
                return Loose("is how many blocks the whole grid has", expression.span, expression.calls)
            case ir.ThreadValue() | ir.Error() | ir.Unsupported() | ir.TensorRef():
                return Loose("is not known", expression.span, expression.calls)
            case ir.Load(access=access):
                # That the place is right is looked at where the load stands.
                return STILL if isinstance(access.base, ir.Tensor) else self._states.get(access.base)
            case ir.BinaryOp(op="+" | "-" as op, left=left, right=right) if is_integer(expression.type):
                a, b = self.of(left), self.of(right)
                if isinstance(a, Shift) and isinstance(b, Shift):
                    sign = 1 if op == "+" else -1
                    return Shift(a.blocks + sign * b.blocks, a.ends + sign * b.ends)
            case ir.Convert(operand=operand) if is_integer(expression.type) and is_integer(operand.type):
                if expression.type == operand.type:
                    return self.of(operand)
            case ir.BuiltinCall(name="gather", arguments=arguments) if isinstance(arguments[0], ir.TensorRef):
                return self.of(arguments[1])
        return self._still_parts(expression)

    def _still_parts(self, expression: ir.Expression) -> State:
        """A value made of parts that are alike in shard and whole is so itself."""
        states = [(part, self.of(part)) for part in children_of(expression)]
        for _, state in states:
            if isinstance(state, Loose):
                return state
        for part, state in states:
            if isinstance(state, Shift) and not state.is_still:
                return Loose(self.moves(), part.span, part.calls)
        return None if any(state is None for _, state in states) else STILL

    def of_poly(self, poly: Poly) -> Shift | None:
        """The shift of a polynomial; None where an atom is not known or is in it other than as a plain sum."""
        blocks = ends = 0
        for monomial, c in poly.terms.items():
            if self.block in monomial or self.extent in monomial:
                if len(monomial) != 1:
                    return None
                blocks, ends = (blocks + c, ends) if monomial[0] == self.block else (blocks, ends + c)
            elif not all(self._is_still_atom(atom) for atom in monomial):
                return None
        return Shift(blocks, ends)

    def _is_still_atom(self, atom: Atom) -> bool:
        match atom[0]:
            case "dim" | "param" | "const" | "block" | "round":
                return True  # of another extent or axis; all rounds are those of the whole (see `_check`)
            case "blocks":
                return ("block", atom[1]) != self.block
            case "div" | "mod" | "min" | "max":
                parts = [self.of_poly(poly_of_key(key)) for key in atom[1:]]
                return all(part is not None and part.is_still for part in parts)
        return False

    # --- conditions: whether a cell near the block exists ---------------------------------------------------

    def _truth(self, expression: ir.Expression) -> State:
        if isinstance(expression.type, ir.ScalarT):
            condition = self.values.conditions.get(expression)
            context = self.values.root if self.at is None else self.values.context(self.at)
            if condition is not None and self._asks(condition, expression, context):
                return STILL
        match expression:
            case ir.VariableRef(variable=variable):
                return self._states.get(variable)
            case ir.Load(access=access):
                return STILL if isinstance(access.base, ir.Tensor) else self._states.get(access.base)
        return self._still_parts(expression)

    def _asks(self, condition: Condition, whole: ir.Expression, context: Context) -> bool:
        match condition:
            case Truth():
                return True
            case Compare(op=op, poly=poly):
                return self._probe(poly, context) and (op == "ge" or self._probe(-poly, context))
            case All(parts=parts) | AnyOf(parts=parts):
                return all(self._asks(part, whole, context) for part in parts)
            case Opaque(expression=expression) if expression is not None and expression is not whole:
                return self.is_still(self._truth(expression))
        return False

    def _probe(self, poly: Poly, context: Context) -> bool:
        """Whether `poly >= 0` is alike in shard and whole, with enough of the neighbours' cells."""
        shift = self.of_poly(poly)
        if shift is None:
            return False
        if shift.is_still:
            return True
        rest = poly - Poly({(self.block,): shift.blocks}) - Poly({(self.extent,): shift.ends})
        if shift.ends == 0:
            if self.tile % shift.blocks:
                return False
            scale = abs(self.tile // shift.blocks)
            return self.reach_below((rest if shift.blocks > 0 else -rest - 1) * scale, context)
        if abs(shift.ends) == 1 and shift.blocks == -shift.ends * self.tile:
            return self.reach_above(-rest - 1 if shift.ends == 1 else rest, context)
        return False

    def reach_below(self, place: Poly, context: Context) -> bool:
        """Note that a block looks at the cell `place` from its own first one."""
        least = self.slack(place, context)
        if least is None:
            return False
        self.below = max(self.below, least)
        return True

    def reach_above(self, place: Poly, context: Context) -> bool:
        """The same of one behind its own cells; `place` counts from the first, too."""
        most = self.slack(self.tile - 1 - place, context)
        if most is None:
            return False
        self.above = max(self.above, most)
        return True

    def slack(self, goal: Poly, context: Context) -> int | None:
        """The least number of at least 0 that, added to `goal`, is proved to make it never negative."""
        constant = goal.constant
        if constant is not None:
            return max(0, -constant) if -constant <= FARTHEST else None
        holds = self.values.holds
        if holds(goal, context):
            return 0
        if not holds(goal + FARTHEST, context):
            return None
        low, high = 0, FARTHEST  # proved for `high`, not for `low`
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(goal + middle, context) else (middle, high)
        return high


def _same(a: State, b: State) -> bool:
    if isinstance(a, Shift) and isinstance(b, Shift):
        return (a.blocks, a.ends) == (b.blocks, b.ends)
    return isinstance(a, Loose) and isinstance(b, Loose)


__all__ = ["STILL", "Loose", "Shift", "Shifts", "State"]
