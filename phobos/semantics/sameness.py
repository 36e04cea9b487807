"""When two expressions are the same value: a key made of what they read and how, not of how they are spelled."""

from __future__ import annotations

from collections.abc import Callable

from phobos.semantics import ir
from phobos.semantics.concrete import plain_atoms
from phobos.semantics.conditions import key_of, opaques, polys
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program, fact
from phobos.semantics.values import Values, children_of, is_bool, is_integer, statements_in
from phobos.semantics.walking import blocks_of, statements_of
from phobos.value import value

COMMUTE = frozenset({"+", "*", "&", "|", "^", "==", "!="})


def value_key(expression: ir.Expression, values: Values) -> tuple[object, ...] | None:
    """Equal for two expressions that have one value in one block at one time; None where that is not known."""
    if is_integer(expression.type):
        return ("index", values.poly(expression).key)
    if is_bool(expression.type):
        return ("bool", key_of(values.condition(expression)))
    match expression:
        case ir.FloatLiteral(value=number):
            return ("float", number)
        case ir.ParamRef(param=param):
            return ("param", param.name)
        case ir.VariableRef(variable=variable):
            return ("variable", id(variable)) if variable.kind in ("let", "temp") else None
        case ir.Load(access=access):
            parts: list[object] = [access.base.name if isinstance(access.base, ir.Tensor) else id(access.base)]
            for sub in access.subs:
                if isinstance(sub, ir.PointSub):
                    parts.append(values.poly(sub.index).key)
                else:
                    parts.append((values.poly(sub.first).key, values.poly(sub.length).key))
            return ("load", *parts)
        case ir.Convert(operand=operand):
            inner = value_key(operand, values)
            dtype = getattr(expression.type, "dtype", "")
            return None if inner is None else ("convert", dtype, inner)
        case ir.UnaryOp(op=op) | ir.BinaryOp(op=op) | ir.ShortCircuit(op=op):
            keys = [value_key(child, values) for child in children_of(expression)]
            if any(key is None for key in keys):
                return None
            if op in COMMUTE:
                keys.sort(key=repr)
            return ("op", op, *keys)
        case ir.BuiltinCall(name=name):
            keys = [value_key(child, values) for child in children_of(expression)]
            return None if any(key is None for key in keys) else ("call", name, *keys)
    return None


ELEMENTWISE = frozenset({"exp", "log", "sqrt", "tanh", "round", "pow", "tmax", "tmin", "where", "argsel"})


@value
class Home:
    """The block that a statement stands in, and the statement which that block is part of (None: the kernel)."""

    block: ir.Block
    parent: ir.Statement | None


@fact
def homes_of(program: Program) -> dict[ir.Statement, Home]:
    """Where each statement stands."""
    homes = {statement: Home(program.body, None) for statement in program.body.statements}
    for parent in statements_in(program):
        for block in blocks_of(parent):
            homes.update((statement, Home(block, parent)) for statement in block.statements)
    return homes


class CellValues:
    """What a store puts in a cell, where that hangs on the cell alone: then it does not matter who stores it.

    A variable that grows on the way counts, too: where it begins in the block of the store, and all that changes it
    is run alike by everyone who comes through that block, with values that hang on the cell and on the round alone.

    `uniform(poly)` says that no block and no round changes a value; `steady(access, statement)` that what an
    access reads in a statement is written by nobody in its phase, `statement` None: in the whole kernel.
    """

    def __init__(
        self,
        program: Program,
        values: Values,
        uniform: Callable[[Poly], bool],
        steady: Callable[[ir.Access, ir.Statement | None], bool],
    ) -> None:
        self.program = program
        self.values = values
        self._uniform = uniform
        self._steady = steady
        self._definitions: dict[ir.Variable, ir.Define] = {}
        self._views: dict[ir.Variable, ir.Access] = {}
        self._changes: dict[ir.Variable, list[ir.Statement]] = {}
        self._way: ir.Block | None = None  # of the store that is looked at,
        self._rounds: set[Atom] = set()  # loops on the way to it,
        self._growing: set[ir.Variable] = set()  # and what grows there
        self._held: dict[ir.Variable, tuple[object, ...] | None] = {}  # by what is bound once, for that store
        self._numbers: dict[tuple[object, ...], int] = {}  # of the keys made of keys: a name used twice is told once
        for statement in statements_in(program):
            match statement:
                case ir.Define(variable=variable, value=value) if value is not None:
                    if variable in self._definitions:
                        self._changes.setdefault(variable, []).append(statement)
                    self._definitions[variable] = statement
                case ir.DefineView(variable=variable, access=access):
                    self._views[variable] = access
                case ir.Assign(variable=variable):
                    self._changes.setdefault(variable, []).append(statement)
                case ir.Store(access=access) if isinstance(access.base, ir.Variable):
                    self._changes.setdefault(access.base, []).append(statement)

    def key(self, store: ir.Store) -> tuple[object, ...] | None:
        """Equal for two stores that put one value in any cell that both reach; None where that is not known."""
        firsts: list[Poly] = []
        lengths: list[Poly] = []
        for sub in store.access.subs:
            if isinstance(sub, ir.PointSub):
                firsts.append(self.values.poly(sub.index))
                lengths.append(Poly.of(1))
            else:
                firsts.append(self.values.poly(sub.first))
                lengths.append(self.values.poly(sub.length))
        self._way = homes_of(self.program)[store].block
        self._rounds, self._growing, self._held = set(), set(), {}
        found = self._of(store.value, firsts, lengths, store)
        # What grows is one value at one place of the text: two stores of it are not told to be alike.
        return found if found is None or not self._growing else (*found, "at", id(store))

    def _of(
        self, expression: ir.Expression, firsts: list[Poly], lengths: list[Poly], at: ir.Statement | None
    ) -> tuple[object, ...] | None:
        if is_integer(expression.type):
            return self._index(self.values.poly(expression), firsts, lengths)
        match expression:
            case ir.FloatLiteral(value=number):
                return ("float", number)
            case ir.BoolLiteral(value=known):
                return ("truth", known)
            case ir.ParamRef(param=param):
                return ("param", param.name)
            case ir.Load(access=access):
                return self._load(access, firsts, lengths, at)
            case ir.VariableRef(variable=variable):
                view = self._views.get(variable)
                if view is not None:
                    return self._load(view, firsts, lengths, at)
                definition = self._definitions.get(variable)
                if definition is None or definition.value is None:
                    return None
                if variable in self._changes:
                    return ("grown", id(variable)) if self._grows(definition, firsts, lengths) else None
                if variable not in self._held:  # where one is not known, neither is the whole
                    self._held[variable] = self._of(definition.value, firsts, lengths, None)
                return self._held[variable]
            case ir.Convert(operand=operand):
                inner = self._of(operand, firsts, lengths, at)
                dtype = getattr(expression.type, "dtype", "")
                return None if inner is None else self._numbered(("convert", dtype, inner))
            case ir.UnaryOp(op=op) | ir.BinaryOp(op=op):
                return self._together(("op", op), expression, firsts, lengths, at)
            case ir.BuiltinCall(name=name) if name in ELEMENTWISE:
                return self._together(("call", name), expression, firsts, lengths, at)
        return None

    def _grows(self, definition: ir.Define, firsts: list[Poly], lengths: list[Poly]) -> bool:
        """Whether a variable is, at each step on the way to the store, one value for all who are at that step."""
        if definition.variable in self._growing:
            return True
        self._growing.add(definition.variable)
        steps = [definition, *self._changes[definition.variable]]
        return all(
            isinstance(step, (ir.Define, ir.Assign))
            and step.value is not None
            and self._in_step(step)
            and self._of(step.value, firsts, lengths, None) is not None
            for step in steps
        )

    def _in_step(self, statement: ir.Statement) -> bool:
        """Whether all who come through the block of the store come to a statement alike, and as often."""
        assert self._way is not None
        homes = homes_of(self.program)
        around: list[ir.Statement] = []
        while (home := homes[statement]).block is not self._way:
            if home.parent is None:
                return False
            around.append(statement := home.parent)
        if around and any(isinstance(one, (ir.Break, ir.Continue, ir.Leave)) for one in statements_of(self._way)):
            return False
        for parent in reversed(around):
            asked: tuple[Poly, ...] = ()
            if isinstance(parent, (ir.For, ir.While)):
                self._rounds.add(self.values.loop(parent).variable)
            if isinstance(parent, ir.For):
                asked = tuple(map(self.values.poly, (parent.lo, parent.hi, parent.step)))
            elif isinstance(parent, (ir.While, ir.If)):
                condition = self.values.condition(parent.condition)
                if opaques(condition):
                    return False
                asked = tuple(polys(condition))
            if not all(map(self._alike, asked)):
                return False
        return True

    def _alike(self, poly: Poly) -> bool:
        """Whether a number is the same for all who are at one step."""
        if self._uniform(poly):
            return True
        return all(atom in self._rounds or self._uniform(Poly({(atom,): 1})) for atom in plain_atoms(poly))

    def _together(
        self,
        head: tuple[object, ...],
        expression: ir.Expression,
        firsts: list[Poly],
        lengths: list[Poly],
        at: ir.Statement | None,
    ) -> tuple[object, ...] | None:
        parts = [self._of(child, firsts, lengths, at) for child in children_of(expression)]
        return None if any(part is None for part in parts) else self._numbered((*head, *parts))

    def _numbered(self, key: tuple[object, ...]) -> tuple[object, ...]:
        """A short key in place of one that holds others, equal where it is."""
        return "number", self._numbers.setdefault(key, len(self._numbers))

    def _index(self, poly: Poly, firsts: list[Poly], lengths: list[Poly]) -> tuple[object, ...] | None:
        if self._alike(poly):
            return ("index", poly.key)
        for axis, (first, length) in enumerate(zip(firsts, lengths)):
            if length.constant == 1 and self._alike(poly - first):
                return ("cell", axis, (poly - first).key)
        return None

    def _load(
        self, access: ir.Access, firsts: list[Poly], lengths: list[Poly], at: ir.Statement | None
    ) -> tuple[object, ...] | None:
        if not isinstance(access.base, ir.Tensor) or not self._steady(access, at):
            return None
        parts: list[object] = ["load", access.base.name]
        for axis, sub in enumerate(access.subs):
            if isinstance(sub, ir.PointSub):
                place = self._index(self.values.poly(sub.index), firsts, lengths)
                if place is None:
                    return None
                parts.append(place)
                continue
            first = Poly({}) if sub.whole else self.values.poly(sub.first)
            length = self.values.extent(access.base, axis) if sub.whole else self.values.poly(sub.length)
            parallel = len(access.subs) == len(firsts) and length == lengths[axis]
            if parallel and self._alike(first - firsts[axis]):
                parts.append(("along", (first - firsts[axis]).key))
                continue
            if length.constant == 1 and self._alike(first):
                parts.append(("one", first.key))
                continue
            return None
        return tuple(parts)
