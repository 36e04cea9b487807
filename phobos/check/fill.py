"""What stands in the columns of a tile that a load past a tensor's end has filled with zeros.

Follows a tile from its load through elementwise operations to a reduction over its columns. Where `where` or
anything else not understood is on the way nothing is claimed.
"""

from __future__ import annotations

from typing import Literal

from phobos.check.walk import every
from phobos.semantics import ir
from phobos.semantics.masks import masks_of
from phobos.semantics.program import Program, fact
from phobos.value import value

Value = Literal["zero", "nonzero", "unknown", "handled"]


@value
class Filled:
    """`access` is the load that can run past the end of its columns; `value` what the filled cells have become.

    "handled": the kernel itself chose what stands there, by `where`. "unknown": something that depends on data.
    """

    access: ir.Access
    value: Value


class Fills:
    def __init__(self, program: Program) -> None:
        self.masks = masks_of(program)
        self.known: dict[ir.Variable, Filled | None] = {}
        self.sources: dict[ir.Variable, list[ir.Expression | ir.Access]] = {}
        for define in every(program, ir.Define):
            if define.value is not None:
                self.sources.setdefault(define.variable, []).append(define.value)
        for view in every(program, ir.DefineView):
            self.sources.setdefault(view.variable, []).append(view.access)
        changed: set[object] = {assign.variable for assign in every(program, ir.Assign)}
        changed |= {store.access.base for store in every(program, ir.Store)}
        self.changed = changed

    def of(self, expression: ir.Expression) -> Filled | None:
        """What the filled columns of a tile hold; None where it has none."""
        match expression:
            case ir.Load(access=access):
                return self._loaded(access)
            case ir.VariableRef(variable=variable):
                return self._variable(variable)
            case ir.Convert(operand=operand):
                return self.of(operand)
            case ir.UnaryOp(operand=operand, op=op):
                inner = self.of(operand)
                return inner if inner is None or op == "-" else Filled(inner.access, "unknown")
            case ir.BinaryOp(op=op, left=left, right=right):
                return self._binary(op, left, right)
            case ir.BuiltinCall(name=name, arguments=arguments):
                return self._call(name, arguments)
        return None

    def _loaded(self, access: ir.Access) -> Filled | None:
        masks = self.masks.get(access)
        if masks is None or len(masks) != 2 or masks[1] is None or not masks[1].needed:
            return None
        return Filled(access, "zero")

    def _variable(self, variable: ir.Variable) -> Filled | None:
        if variable not in self.known:
            self.known[variable] = None
            sources = self.sources.get(variable, [])
            if variable not in self.changed and len(sources) == 1:
                (source,) = sources
                found = self._loaded(source) if isinstance(source, ir.Access) else self.of(source)
                self.known[variable] = found
        return self.known[variable]

    def _binary(self, op: str, left: ir.Expression, right: ir.Expression) -> Filled | None:
        a, b = self.of(left), self.of(right)
        filled = a or b
        if filled is None:
            return None
        if any(part is not None and part.value == "handled" for part in (a, b)):
            return Filled(filled.access, "handled")
        x = a.value if a is not None else _constant(left)
        y = b.value if b is not None else _constant(right)
        return Filled(filled.access, _combined(op, x, y))

    def _call(self, name: str, arguments: tuple[ir.Expression, ...]) -> Filled | None:
        parts = [found for argument in arguments if (found := self.of(argument)) is not None]
        if not parts or name in ("rowsum", "rowmax", "rowargmax", "dot", "dot_t", "transpose", "cumsum", "flat"):
            return None  # the columns are gone, or elsewhere
        access = parts[0].access
        if name == "where" or any(part.value == "handled" for part in parts):
            return Filled(access, "handled")
        if name == "exp":
            return Filled(access, "nonzero")
        if name in ("sqrt", "tanh", "round") or name in ("f16", "bf16", "f32", "f64"):
            return Filled(access, parts[0].value)
        return Filled(access, "unknown")


def _constant(expression: ir.Expression) -> Value:
    while isinstance(expression, ir.Convert):
        expression = expression.operand
    if isinstance(expression, (ir.FloatLiteral, ir.IntLiteral)):
        return "zero" if expression.value == 0 else "nonzero"
    return "unknown"


def _combined(op: str, x: Value, y: Value) -> Value:
    if op in ("+", "-"):
        return y if x == "zero" else x if y == "zero" else "unknown"
    if op == "*":
        return "zero" if "zero" in (x, y) else "nonzero" if x == y == "nonzero" else "unknown"
    if op == "/":
        return (
            "nonzero"
            if y == "zero"
            else "zero"
            if x == "zero" and y == "nonzero"
            else x
            if y == "nonzero"
            else "unknown"
        )
    return "unknown"


@fact
def fills_of(program: Program) -> Fills:
    return Fills(program)
