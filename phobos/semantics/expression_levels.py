"""How much each expression may differ from block to block, where it stands.

What is loaded differs where blocks read other places or where some of them write meanwhile. Of an integer or a
condition the level by its meaning counts, where that is lower than the level by its parts. What `assume uniform` says
is believed until the next statement that does something.
"""

from __future__ import annotations

from phobos.semantics import ir
from phobos.semantics.conditions import opaques
from phobos.semantics.grid import NAMES, has_one_axis
from phobos.semantics.levels import CONSTANT, UNIFORM, Level, Levels, Origin, Variation, join
from phobos.semantics.poly import Atom, Poly
from phobos.semantics.program import Program
from phobos.semantics.steady import phase_writes_of
from phobos.semantics.values import Values, children_of, is_bool, is_integer, values_of
from phobos.value import value

_SAME_EVERYWHERE = frozenset({ir.IntLiteral, ir.FloatLiteral, ir.BoolLiteral, ir.ConstantRef, ir.Error})
_SAME_IN_A_LAUNCH = frozenset({ir.DimRef, ir.ParamRef, ir.GridExtent, ir.TensorRef})


@value
class Binding:
    """One assignment of a variable: two paths agree on a variable when they hold the same binding."""

    variation: Variation


Env = dict[ir.Variable, Binding]


class ExpressionLevels(Levels):
    """Levels of expressions, given what variables hold. Who walks the statements says where it is (`at`).

    `changed`: what this walk found may change what the next one finds. `learnt`: it knows more than it began with.
    """

    def __init__(self, program: Program) -> None:
        super().__init__(has_one_axis(program))
        self.values: Values = values_of(program)
        self.at: ir.Statement | None = None
        self.views: dict[ir.Variable, ir.Access] = {}
        self.believed: set[object] = set()
        self.assumed: dict[ir.AssumeUniform, Level] = {}  # what each would be, were it not assumed
        self.changed = self.learnt = False
        self._assumed_atoms: set[Atom] = set()
        self._writes = phase_writes_of(program)

    def bind(self, env: Env, variable: ir.Variable, variation: Variation) -> None:
        """From here on the variable holds a value of that level."""
        env[variable] = Binding(variation)
        known = self.variations.get(variable)
        if known is None or variation.level > known.level:
            self.variations[variable] = variation

    def of(self, expression: ir.Expression, env: Env) -> Variation:
        """The level of an expression where the walk is; kept for `level` and `why`."""
        variation = self._raw(expression, env)
        if self.believed and variation.level > Level.UNIFORM:
            value_of = self.values.polys.get(expression)
            if value_of is not None and ("poly", value_of.key) in self.believed:
                variation = UNIFORM
        if is_integer(expression.type):
            poly = self.values.polys.get(expression)
            if poly is not None:
                self._note_atom(poly, variation, expression)
                if variation.level > Level.UNIFORM:
                    level = self.level_if_uniform(poly)
                    if level is not None:
                        variation = UNIFORM if level == Level.UNIFORM else CONSTANT
        elif is_bool(expression.type) and variation.level > Level.UNIFORM:
            condition = self.values.conditions.get(expression)
            if condition is not None:
                for opaque in opaques(condition):
                    if opaque.expression is None or opaque.expression is expression:
                        self.variations.setdefault(opaque.key, variation)
                if self.level_of_condition(condition) <= Level.UNIFORM:
                    variation = UNIFORM
        self.variations[expression] = variation
        return variation

    def trips(self, statement: ir.For, env: Env) -> Variation:
        """How much blocks differ in the number of rounds."""
        variation = CONSTANT
        for bound in (statement.lo, statement.hi, statement.step):
            variation = join(variation, self.of(bound, env))
        if variation.level <= Level.UNIFORM:
            return variation
        loop = self.values.loops.get(statement)
        if loop is None or loop.lo is None or loop.hi is None or loop.step is None:
            return variation
        if (
            self.level_of_poly(loop.hi - loop.lo) <= Level.UNIFORM and self.level_of_poly(loop.step) <= Level.UNIFORM
        ) or (loop.trips is not None and self.level_of_poly(loop.trips) <= Level.UNIFORM):
            return UNIFORM
        return variation

    def walked(self, statement: ir.For, env: Env) -> Variation:
        """The loop variable: rounds are counted alike by all blocks that are still in the loop."""
        variation = self.of(statement.lo, env)
        variation = join(variation, self.of(statement.step, env))
        loop = self.values.loops.get(statement)
        known = loop is not None and loop.value is not None and self.level_of_poly(loop.value) <= Level.UNIFORM
        if known and variation.level > Level.UNIFORM:
            return UNIFORM
        return join(variation, UNIFORM)

    def subscripts(self, access: ir.Access, env: Env) -> Variation:
        """How much the place differs that is read or written."""
        variation = CONSTANT
        for sub in access.subs:
            if isinstance(sub, ir.PointSub):
                variation = join(variation, self.of(sub.index, env))
            else:
                variation = join(variation, self.of(sub.first, env))
                variation = join(variation, self.of(sub.length, env))
        return variation

    def assume(self, statement: ir.AssumeUniform, assumed: ir.Expression, env: Env) -> None:
        """Believe an `assume uniform`, and note what it is worth."""
        before = self.of(assumed, env)
        # Later passes believe it already; the first one saw what it is worth.
        self.assumed[statement] = max(before.level, self.assumed.get(statement, before.level))
        if isinstance(assumed, ir.VariableRef) and assumed.variable not in self.views:
            self.bind(env, assumed.variable, UNIFORM)
            self.variations[assumed.variable] = before
            poly = self.values.polys.get(assumed)
            if poly is not None and len(poly.terms) == 1:
                ((monomial, c),) = poly.terms.items()
                if c == 1 and len(monomial) == 1 and monomial[0][0] != "block":
                    self.learnt = self.learnt or monomial[0] not in self._assumed_atoms
                    self.atoms[monomial[0]] = Level.UNIFORM
                    self._assumed_atoms.add(monomial[0])
        poly = self.values.polys.get(assumed)
        if poly is not None:
            self.believed.add(("poly", poly.key))
        if isinstance(assumed, ir.Load):
            self.believed.add(("load", self._load_key(assumed.access)))

    def _note_atom(self, poly: Poly, variation: Variation, expression: ir.Expression) -> None:
        """An atom that stands for just this value has its level."""
        if len(poly.terms) != 1:
            return
        ((monomial, c),) = poly.terms.items()
        if c != 1 or len(monomial) != 1 or monomial[0][0] not in ("var", "load", "unsigned", "atomic", "expr"):
            return
        if not isinstance(expression, (ir.VariableRef, ir.Load)) and monomial[0][0] != "expr":
            return
        atom = monomial[0]
        if atom in self._assumed_atoms:
            return
        known = self.atoms.get(atom)
        if known is None or known < variation.level:
            self.atoms[atom] = variation.level
            self.changed = self.changed or known is not None
            self.learnt = True

    def _raw(self, expression: ir.Expression, env: Env) -> Variation:
        kind = type(expression)
        if kind in _SAME_EVERYWHERE:
            return CONSTANT
        if kind in _SAME_IN_A_LAUNCH:
            return UNIFORM
        match expression:
            case ir.VariableRef(variable=variable):
                return self._reference(expression, variable, env)
            case ir.BlockIndex(axis=axis):
                if self.one_axis and axis != 0:
                    return UNIFORM
                origin = Origin(
                    "block", expression.span, expression.calls, f"`ctx.block.{NAMES[axis]}` is the block index", True
                )
                return Variation(Level.VARYING, True, origin, None, 1, False)
            case ir.ThreadValue(name=name):
                origin = Origin(
                    "thread", expression.span, expression.calls, f"`{name}` differs from thread to thread", True
                )
                return Variation(Level.LANE, True, origin, None, 1, False)
            case ir.Load(access=access):
                return self._loaded(expression, access, env)
            case ir.BuiltinCall(name="iota"):
                for argument in expression.arguments:
                    self.of(argument, env)
                return CONSTANT
            case ir.BuiltinCall(name="gather", arguments=(ir.TensorRef(tensor=tensor), index)):
                return self._from_tensor(tensor, self.of(index, env), expression)
        variation = CONSTANT
        for child in children_of(expression):
            variation = join(variation, self.of(child, env))
        return variation

    def _reference(self, expression: ir.VariableRef, variable: ir.Variable, env: Env) -> Variation:
        binding = env.get(variable)
        if binding is None:
            return CONSTANT
        variation = binding.variation
        access = self.views.get(variable)
        if access is not None:
            variation = (
                self._from_tensor(access.base, variation, expression, access)
                if isinstance(access.base, ir.Tensor)
                else join(variation, env[access.base].variation if access.base in env else CONSTANT)
            )
        if variation.level <= Level.UNIFORM or not variable.name:
            return variation
        root = variation
        if root.reference and root.because is not None:
            root = root.because
        first = root.origin
        if first is None or first.span == expression.span:
            return variation
        origin = Origin(first.kind, expression.span, expression.calls, _says(variable.name, first), root.certain)
        return Variation(root.level, root.certain, origin, root, root.length + 1, True)

    def _loaded(self, expression: ir.Load, access: ir.Access, env: Env) -> Variation:
        subscripts = self.subscripts(access, env)
        if isinstance(access.base, ir.Variable):
            held = env.get(access.base)
            return join(subscripts, CONSTANT if held is None else held.variation)
        if ("load", self._load_key(access)) in self.believed:
            return UNIFORM
        return self._from_tensor(access.base, subscripts, expression, access)

    def _load_key(self, access: ir.Access) -> tuple[object, ...]:
        parts: list[object] = [access.base.name]
        for sub in access.subs:
            if isinstance(sub, ir.PointSub):
                parts.append(self.values.poly(sub.index).key)
            else:
                parts.append((self.values.poly(sub.first).key, self.values.poly(sub.length).key))
        return tuple(parts)

    def _from_tensor(
        self, tensor: ir.Tensor, subscripts: Variation, expression: ir.Expression, access: ir.Access | None = None
    ) -> Variation:
        if subscripts.level > Level.UNIFORM:
            where = Origin(
                "load",
                expression.span,
                expression.calls,
                f"`{tensor.name}` is read at a place that differs between blocks",
                False,
            )
            return Variation(subscripts.level, False, where, subscripts, subscripts.length + 1, False)
        if self.at is not None and self._writes.reach(self.at, tensor, access):
            where = Origin(
                "load",
                expression.span,
                expression.calls,
                f"`{tensor.name}` is written by blocks in this phase",
                False,
            )
            return Variation(Level.VARYING, False, where, None, 1, False)
        return UNIFORM


def _says(name: str, origin: Origin) -> str:
    match origin.kind:
        case "block":
            return f"`{name}` depends on the block index"
        case "load":
            return f"`{name}` depends on data that blocks may see differently"
        case "atomic":
            return f"`{name}` depends on the result of an atomic"
        case "thread":
            return f"`{name}` depends on the thread"
    return f"`{name}` may differ between blocks"
