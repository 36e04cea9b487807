"""Names of flat tiles that must be read anew: what stands for `let f = flat(t)` where `t` changes while `f` lives.

`f` is a view of `t`, and a copy is as good only while no cell of `t` changes between the name and its last use. Where
one may, `f` as a whole becomes `flat(t)` wherever it is used, which reads the cells of `t` there; before a statement
that subscripts `f`, or uses a view of it, `f` is filled again.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.lowering import walk
from phobos.semantics import ir
from phobos.semantics.program import Program
from phobos.value import replace


class Flats:
    """The names of one program. One that no change of its tile can reach before a use is left as it is."""

    def __init__(self, program: Program) -> None:
        self._calls: dict[ir.Variable, ir.BuiltinCall] = {}  # of each name, what it is a view of
        self._views: dict[ir.Variable, ir.Variable] = {}  # of each `let v = f[..]`, the name `f`
        self._anew: set[ir.Variable] = set()
        for statement in walk.statements(program.body):
            match statement:
                case ir.Define(variable=variable, value=ir.BuiltinCall(name="flat") as call) if variable.kind != "var":
                    source = _source(call)
                    self._calls[variable] = self._calls.get(source, call)  # one row, flat again, is that row
                case ir.DefineView(variable=variable, access=ir.Access(base=ir.Variable() as base)):
                    if base in self._calls:
                        self._views[variable] = base
        if self._calls:
            self._changed(program.body, set())
        self._kept = set(self._views.values())  # the names that need cells of their own
        for statement in walk.statements(program.body) if self._anew else ():
            self._kept |= self._subscripted(statement)

    # --- what changes before it is used ---------------------------------------------------------------------

    def _changed(self, block: ir.Block, stale: set[ir.Variable]) -> set[ir.Variable]:
        """The names whose tile may have changed since the name came, after a block that was entered with `stale`;
        those that are used meanwhile must be read anew."""
        for statement in block.statements:
            if isinstance(statement, (ir.For, ir.While)):
                stale = self._looped(statement, stale)
                continue
            self._use(statement, stale)
            match statement:
                case ir.Define(variable=variable):
                    stale = stale - {variable}
                case ir.Assign(variable=tile) | ir.Store(access=ir.Access(base=ir.Variable() as tile)):
                    stale = stale | {name for name, call in self._calls.items() if _source(call) is tile}
                case ir.If(then=then, otherwise=otherwise):
                    stale = self._changed(then, stale) | self._changed(otherwise, stale)
                case ir.Inline(body=body):
                    stale = stale | self._changed(body, stale)
        return stale

    def _looped(self, loop: ir.For | ir.While, stale: set[ir.Variable]) -> set[ir.Variable]:
        """After a loop, whose rounds meet what those before have left."""
        if isinstance(loop, ir.For):
            self._use(loop, stale)
        while True:
            inside = stale
            if isinstance(loop, ir.While):
                inside = self._changed(loop.prelude, stale)
                self._use(loop, inside)
            left = stale | self._changed(loop.body, inside)
            if left == stale:
                return stale
            stale = left

    def _use(self, statement: ir.Statement, stale: set[ir.Variable]) -> None:
        if stale:
            whole = {one.variable for one in _inside(statement) if isinstance(one, ir.VariableRef)}
            self._anew |= stale & (whole | self._subscripted(statement))

    def _subscripted(self, statement: ir.Statement) -> set[ir.Variable]:
        """The names of which a statement itself reads cells by subscripts, its own or those of a view."""
        found: set[ir.Variable] = set()
        for one in _inside(statement):
            match one:
                case ir.Load(access=ir.Access(base=ir.Variable() as base)) if base in self._calls:
                    found.add(base)
                case ir.VariableRef(variable=variable) if variable in self._views:
                    found.add(self._views[variable])
        return found

    # --- what stands for them -------------------------------------------------------------------------------

    def read_anew(self, statement: ir.Statement) -> list[ir.Statement]:
        """The statement with such names read where it evaluates, after what must run for it before."""
        if not self._anew:
            return [statement]
        found = self._subscripted(statement) & self._anew
        fills = tuple(
            ir.Assign(statement.span, statement.calls, name, None, replace(call))
            for name, call in self._calls.items()
            if name in found
        )
        match statement:
            case ir.While(prelude=prelude) if fills:  # its condition is evaluated in every round
                return [replace(statement, prelude=ir.Block((*prelude.statements, *fills)))]
            case ir.Define(variable=variable) if variable in self._anew:
                return [replace(statement, value=None)] if variable in self._kept else []
            case ir.Define(value=ir.Expression() as value) | ir.Assign(value=value) | ir.Store(value=value):
                return [*fills, replace(statement, value=self._instead(value))]
        return [*fills, statement]

    def _instead(self, expression: ir.Expression) -> ir.Expression:
        match expression:
            case ir.VariableRef(variable=variable) if variable in self._anew:
                return replace(self._calls[variable], span=expression.span, calls=expression.calls)
            case ir.BuiltinCall(name="flat", arguments=(ir.VariableRef(variable=variable),)):
                return self._instead(expression.arguments[0]) if variable in self._anew else expression
            case ir.BuiltinCall(arguments=arguments):
                return replace(expression, arguments=tuple(self._instead(one) for one in arguments))
            case ir.UnaryOp(operand=operand) | ir.Convert(operand=operand):
                return replace(expression, operand=self._instead(operand))
            case ir.BinaryOp(left=left, right=right) | ir.ShortCircuit(left=left, right=right):
                return replace(expression, left=self._instead(left), right=self._instead(right))
        return expression


def _source(call: ir.BuiltinCall) -> ir.Variable:
    (source,) = call.arguments
    assert isinstance(source, ir.VariableRef)
    return source.variable


def _inside(statement: ir.Statement) -> Iterator[ir.Expression]:
    for root in walk.expressions(statement):
        yield from walk.every(root)
