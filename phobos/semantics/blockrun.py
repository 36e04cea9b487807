"""What one block stores or passes, at numbers: statements run one by one, elements of tensors standing for themselves.

Two blocks whose stored values come out equal here store one value whatever the tensors hold. None wherever that is
not known: a branch that hangs on data, a tile, too many steps.
"""

from __future__ import annotations

from phobos.semantics import ir
from phobos.semantics.concrete import Assignment, number, truth
from phobos.semantics.poly import Atom
from phobos.semantics.values import Values, blocks_of, children_of, is_bool, is_integer, statements_of

MOST_STEPS = 600
Value = tuple[object, ...]
FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
INDEX_OPS = frozenset({"+", "-", "*"})


class _Unknown(Exception):
    pass


class _Reached(Exception):
    pass


def stored_by_block(values: Values, expression: ir.Expression, at: Assignment) -> Value | None:
    """What the statement that stores `expression` stores, in the rounds and the block that `at` names."""
    run = _Run(values, expression, dict(at))
    try:
        run.block(values.program.body)
    except _Reached:
        return run.found
    except _Unknown:
        return None
    return None


def barriers_passed(values: Values, at: Assignment) -> tuple[ir.Barrier, ...] | None:
    """The barriers that the block passes, in order; None where that is not known."""
    run = _Run(values, None, dict(at))
    try:
        run.block(values.program.body)
    except _Unknown:
        return None
    return tuple(run.passed)


class _Run:
    def __init__(self, values: Values, wanted: ir.Expression | None, at: dict[Atom, int]) -> None:
        self.values = values
        self.wanted = wanted
        self.asked = dict(at)
        self.at = at
        self.env: dict[ir.Variable, Value | None] = {}
        self.steps = MOST_STEPS
        self.found: Value | None = None
        self.passed: list[ir.Barrier] = []

    def block(self, block: ir.Block) -> str:
        """How control leaves the block: fall, break, continue, leave or kernel."""
        for statement in block.statements:
            self.steps -= 1
            if self.steps < 0:
                raise _Unknown
            how = self._statement(statement)
            if how != "fall":
                return how
        return "fall"

    def _statement(self, statement: ir.Statement) -> str:
        match statement:
            case ir.Define(variable=variable, value=value):
                self.env[variable] = None if value is None else self.value(value)
            case ir.Assign(variable=variable, op=op, value=value):
                new = self.value(value)
                old = self.env.get(variable)
                self.env[variable] = new if op is None else _joined(op, old, new)
            case ir.Store(access=access, value=value):
                if value is self.wanted and self._here(access):
                    self.found = self.value(value)
                    raise _Reached
            case ir.Barrier():
                self.passed.append(statement)
            case ir.Atomic(result=result) if result is not None:
                self.env[result] = None
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                return self.block(then if self._holds(condition, statement) else otherwise)
            case ir.For() | ir.While():
                return self._loop(statement)
            case ir.Inline(body=body):
                how = self.block(body)
                return "fall" if how == "leave" else how
            case ir.Break():
                return "break"
            case ir.Continue():
                return "continue"
            case ir.Leave(leaves_kernel=leaves_kernel):
                return "kernel" if leaves_kernel else "leave"
        return "fall"

    def _here(self, access: ir.Access) -> bool:
        """Whether the loops around are in the rounds that were asked for."""
        loops = [place.loop for place in self.values.context(access).chain() if place.loop is not None]
        return all(self.asked.get(loop.variable, 0) == self.at.get(loop.variable) for loop in loops)

    def _loop(self, statement: ir.For | ir.While) -> str:
        loop = self.values.loops.get(statement)
        if loop is None:
            raise _Unknown
        current = step = 0
        end = 1
        if isinstance(statement, ir.For):
            current, end, step = (self._index(one) for one in (statement.lo, statement.hi, statement.step))
            if step <= 0:
                raise _Unknown
        round_ = 0
        while current < end:
            self.at[loop.variable] = round_
            if isinstance(statement, ir.For):
                self.env[statement.variable] = ("number", current)
            else:
                self.block(statement.prelude)
                if not self._holds(statement.condition, statement):
                    break
            how = self.block(statement.body)
            if how not in ("fall", "continue"):
                if how == "break":
                    break
                return how
            round_ += 1
            current += step
            self.steps -= 1
            if self.steps < 0:
                raise _Unknown
        self.at.pop(loop.variable, None)
        return "fall"

    def _index(self, expression: ir.Expression) -> int:
        value = self.value(expression)
        if value is None or value[0] != "number" or not isinstance(value[1], int):
            raise _Unknown
        return value[1]

    def _holds(self, condition: ir.Expression, statement: ir.Statement) -> bool:
        value = self.value(condition)
        if value is not None and value[0] == "bool":
            return bool(value[1])
        if isinstance(statement, ir.If) and not self._matters(statement):
            return False
        raise _Unknown

    def _matters(self, statement: ir.If) -> bool:
        """Whether an arm changes what is known, where control goes, or what is passed."""
        for block in blocks_of(statement):
            for inner in statements_of(block):
                if isinstance(inner, (ir.Assign, ir.Barrier, ir.Break, ir.Continue, ir.Leave)):
                    return True
                if isinstance(inner, ir.Store) and inner.value is self.wanted:
                    return True
        return False

    def value(self, expression: ir.Expression) -> Value | None:
        """The value of a scalar; equal for two blocks only if it is one value."""
        if not isinstance(expression.type, ir.ScalarT):
            return None
        if is_integer(expression.type):
            poly = self.values.polys.get(expression)
            known = None if poly is None else number(poly, self.at)
            if known is not None:
                return ("number", known)
        elif is_bool(expression.type):
            holds = truth(self.values.condition(expression), self.at)
            if holds is not None:
                return ("bool", holds)
        match expression:
            case ir.VariableRef(variable=variable):
                return self.env.get(variable)
            case ir.FloatLiteral(value=literal):
                return ("float", literal)
            case ir.BoolLiteral(value=literal):
                return ("bool", literal)
            case ir.ParamRef(param=param):
                return ("param", param.name)
            case ir.Load(access=access) if isinstance(access.base, ir.Tensor) and access.is_point:
                cell = [self.value(sub.index) for sub in access.subs if isinstance(sub, ir.PointSub)]
                if any(one is None or one[0] != "number" for one in cell):
                    return None
                return ("cell", access.base.name, *cell)
            case ir.BinaryOp(op=op, left=left, right=right):
                return _joined(op, self.value(left), self.value(right))
            case ir.Convert(operand=operand):
                inner = self.value(operand)
                whole = inner[1] if inner is not None and inner[0] == "number" else None
                if isinstance(whole, int) and abs(whole) < 256 and expression.type.dtype in FLOATS:
                    return ("float", float(whole))  # which every float holds exactly
                return None if inner is None else ("convert", expression.type.dtype, inner)
            case ir.UnaryOp() | ir.BuiltinCall():
                parts = [self.value(child) for child in children_of(expression)]
                head = getattr(expression, "op", None) or getattr(expression, "name", "")
                return None if any(part is None for part in parts) else ("apply", head, *parts)
        return None


def _joined(op: str, left: Value | None, right: Value | None) -> Value | None:
    if left is None or right is None:
        return None
    if left[0] == right[0] == "number" and op in INDEX_OPS:
        a, b = left[1], right[1]
        assert isinstance(a, int) and isinstance(b, int)
        return ("number", a + b if op == "+" else a - b if op == "-" else a * b)
    return ("op", op, left, right)


__all__ = ["barriers_passed", "stored_by_block"]
