"""What `semantics/ir.py` promises of every program, as a check that raises where a promise is broken."""

from __future__ import annotations

from phobos.semantics import ir, shapes
from phobos.semantics.program import Program

COMPARE = frozenset(("<", "<=", ">", ">=", "==", "!=", "&&", "||"))


class Broken(Exception):
    pass


def hold(program: Program) -> None:
    """Raises Broken with the place where a promise does not hold."""
    _Check(program).block(program.body, set())


class _Check:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.bound: set[ir.Variable] = set()
        self.functions: list[str] = []

    def need(self, right: bool, what: str, at: object) -> None:
        if not right:
            raise Broken(f"{what}: {at}")

    # --- statements -------------------------------------------------------------------------------

    def block(self, block: ir.Block, known: set[ir.Variable]) -> None:
        known = set(known)
        for statement in block.statements:
            self.statement(statement, known)

    def bind(self, variable: ir.Variable, known: set[ir.Variable], at: ir.Statement) -> None:
        if variable.kind in ("let", "temp", "view", "loop"):
            self.need(variable not in self.bound, f"{variable.kind} bound twice", at)
        self.bound.add(variable)
        known.add(variable)

    def statement(self, statement: ir.Statement, known: set[ir.Variable]) -> None:
        match statement:
            case ir.Define(variable=variable, value=value):
                if value is None:
                    self.need(isinstance(variable.type, ir.TileT | ir.ErrorT), "a scalar without a value", statement)
                else:
                    self.value(value, known)
                    self.fits(variable.type, value.type, statement, fill=isinstance(variable.type, ir.TileT))
                self.bind(variable, known, statement)
            case ir.DefineView(variable=variable, access=access):
                self.access(access, known)
                self.need(not access.is_point, "a view of one point", statement)
                self.bind(variable, known, statement)
            case ir.Assign(variable=variable, op=op, value=value):
                self.need(variable in known, "assigned before it is defined", statement)
                self.need(variable.kind == "var", "assigned though not a var", statement)
                self.value(value, known)
                self.fits(variable.type, value.type, statement, fill=True, op=op)
            case ir.Store(access=access, op=op, value=value):
                self.access(access, known)
                self.value(value, known)
                self.store(access, op, value, statement)
            case ir.Evaluate(value=value) | ir.AssumeUniform(value=value):
                self.value(value, known)
            case ir.For(variable=variable, lo=lo, hi=hi, step=step, body=body):
                for bound in (lo, hi, step):
                    self.value(bound, known)
                    self.index(bound)
                inner = set(known)
                self.bind(variable, inner, statement)
                self.block(body, inner)
            case ir.While(prelude=prelude, condition=condition, body=body):
                inner = set(known)
                for one in prelude.statements:
                    self.statement(one, inner)
                self.value(condition, inner)
                self.condition(condition)
                self.block(body, inner)
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                self.value(condition, known)
                self.condition(condition)
                self.block(then, known)
                self.block(otherwise, known)
            case ir.Inline(function=function, body=body, result=result):
                self.need(function not in self.functions, "recursion", statement)
                self.functions.append(function)
                inner = set(known)
                if result is not None and result.kind == "var":
                    self.bind(result, inner, statement)
                for one in body.statements:
                    self.statement(one, inner)
                if result is not None:
                    known.add(result)
                    clean = not self.program.problems
                    self.need(not clean or result in self.bound, "a result that nothing binds", statement)
                self.functions.pop()
            case ir.Atomic(index=index, operands=operands, result=result):
                self.value(index, known)
                self.index(index)
                for operand in operands:
                    self.value(operand, known)
                    self.need(self.dtype(operand) in ("i32", None), "an atomic's operand is not i32", statement)
                if result is not None:
                    self.bind(result, known, statement)
            case ir.UnsupportedCall(arguments=arguments):
                for argument in arguments:
                    self.value(argument, known)
            case ir.Leave(leaves_kernel=whole):
                self.need(whole == (not self.functions), "leaves the wrong thing", statement)

    def dtype(self, value: ir.Expression) -> str | None:
        return None if isinstance(value.type, ir.ErrorT) else value.type.dtype

    def index(self, value: ir.Expression) -> None:
        if not self.program.problems and not isinstance(value.type, ir.ErrorT):
            self.need(isinstance(value.type, ir.ScalarT) and value.type.dtype == "index", "not an index", value)

    def condition(self, value: ir.Expression) -> None:
        if not self.program.problems and not isinstance(value.type, ir.ErrorT):
            self.need(isinstance(value.type, ir.ScalarT) and value.type.dtype == "bool", "not a bool", value)

    def fits(self, target: ir.Type, source: ir.Type, at: object, *, fill: bool, op: str | None = None) -> None:
        if isinstance(target, ir.ErrorT) or isinstance(source, ir.ErrorT):
            return
        self.need(target.dtype == source.dtype, f"{source.dtype} into {target.dtype}", at)
        if isinstance(source, ir.TileT):
            self.need(isinstance(target, ir.TileT), "a tile into a scalar", at)
            assert isinstance(target, ir.TileT)
            if op is not None:
                self.need(self.alone or shapes.broadcast(target.shape, source.shape) == target.shape, "shape", at)
            else:
                self.need(self.alone or target.shape == source.shape, "shape", at)
        elif isinstance(target, ir.TileT):
            self.need(fill, "a scalar for a tile", at)

    @property
    def alone(self) -> bool:
        return self.program.owner is not None

    def store(self, access: ir.Access, op: str | None, value: ir.Expression, at: object) -> None:
        base = access.base
        if isinstance(base, ir.Variable):
            self.need(base.kind == "var" and isinstance(base.type, ir.TileT), "a store into something read-only", at)
        dtype = base.dtype if isinstance(base, ir.Tensor) else base.type.dtype  # type: ignore[union-attr]
        if isinstance(value.type, ir.ErrorT):
            return
        self.need(value.type.dtype == dtype, f"{value.type.dtype} stored in {dtype}", at)
        if access.is_point:
            self.need(isinstance(value.type, ir.ScalarT), "a tile in a point", at)
        elif isinstance(value.type, ir.TileT):
            self.need(len(value.type.shape) == len(access.subs), "rank", at)

    # --- expressions ------------------------------------------------------------------------------

    def access(self, access: ir.Access, known: set[ir.Variable]) -> None:
        if isinstance(access.base, ir.Variable):
            self.need(access.base in known, "a tile before it is defined", access)
            self.need(access.base.kind != "view", "a subscripted view", access)
        else:
            self.need(self.program.tensors.get(access.base.name) is access.base, "not a parameter", access)
        points = [isinstance(sub, ir.PointSub) for sub in access.subs]
        self.need(all(points) or not any(points), "points and slices mixed", access)
        for sub in access.subs:
            if isinstance(sub, ir.PointSub):
                self.value(sub.index, known)
                self.need(self.dtype(sub.index) in ("index", None), "a subscript that is no index", access)
            else:
                for part in (sub.first, sub.length):
                    self.value(part, known)
                    self.need(self.dtype(part) in ("index", None), "a slice that is no index", access)
                self.need(sub.static is None or sub.static > 0, "an empty slice", access)

    def value(self, value: ir.Expression, known: set[ir.Variable]) -> None:
        match value:
            case ir.VariableRef(variable=variable):
                self.need(variable in known, f"`{variable.name}` used before it is defined", value)
                self.need(variable.type is value.type or str(variable.type) == str(value.type), "another type", value)
            case ir.Load(access=access):
                self.access(access, known)
                self.need(isinstance(value.type, ir.ScalarT) == access.is_point, "a load of the wrong kind", value)
            case ir.UnaryOp(operand=operand):
                self.value(operand, known)
                self.need(self.dtype(operand) == self.dtype(value), "a unary of another type", value)
            case ir.Convert(operand=operand):
                self.value(operand, known)
                self.need(isinstance(operand.type, ir.TileT) == isinstance(value.type, ir.TileT), "shape", value)
                if isinstance(operand.type, ir.TileT) and isinstance(value.type, ir.TileT):
                    self.need(operand.type.shape == value.type.shape, "shape", value)
            case ir.ShortCircuit(left=left, right=right):
                for side in (left, right):
                    self.value(side, known)
                    self.need(isinstance(side.type, ir.ScalarT) and side.type.dtype == "bool", "not a bool", value)
            case ir.BinaryOp(op=op, left=left, right=right):
                self.value(left, known)
                self.value(right, known)
                self.need(self.dtype(left) == self.dtype(right), "operands of two types", value)
                wanted = "bool" if op in COMPARE else self.dtype(left)
                self.need(self.dtype(value) == wanted, "a result of another type", value)
                sides = [side.type.shape for side in (left, right) if isinstance(side.type, ir.TileT)]
                if not sides:
                    self.need(isinstance(value.type, ir.ScalarT), "a tile of scalars", value)
                elif not self.alone:
                    shape = sides[0] if len(sides) == 1 else shapes.broadcast(*sides)
                    assert isinstance(value.type, ir.TileT)
                    self.need(shape == value.type.shape, "not the broadcast shape", value)
            case ir.BuiltinCall(arguments=arguments):
                for argument in arguments:
                    self.value(argument, known)
                self.need(not isinstance(value.type, ir.ErrorT), "a call without a type", value)
            case ir.Unsupported(arguments=arguments):
                for argument in arguments:
                    self.value(argument, known)
        if isinstance(value.type, ir.TileT):
            self.need(all(not isinstance(n, int) or n > 0 for n in value.type.shape), "an empty tile", value)
            self.need(all(isinstance(n, int) or n.constant is None for n in value.type.shape), "a constant", value)


