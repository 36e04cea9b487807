"""Normal form: what needs other threads' elements is taken out of tile expressions into statements of its own.

`t = exp(x - rowmax(x))` becomes a `Reduce` into a temporary and an elementwise statement. A `dot` that is a
summand of what its variable becomes (`acc += dot(..)`, `acc = acc * s + dot(..)`, in any order) accumulates in
the variable; any other `dot` gets a temporary. Where a kernel asks for a pipeline, a tile that is loaded only to be
an operand is not copied first. Nothing here depends on how a value was spelled or named.
"""

from __future__ import annotations

from collections.abc import Callable

from phobos.lowering import ops, walk
from phobos.lowering.flats import Flats
from phobos.lowering.stretches import is_stretch, points_first
from phobos.semantics import ir
from phobos.semantics.program import Program
from phobos.value import replace

ROWS = ("rowmax", "rowsum", "rowargmax")
DOTS = ("dot", "dot_t")


def normalise(program: Program) -> tuple[ir.Block, dict[ir.Statement, ir.Statement]]:
    """The program's body in normal form, and for each of its loops the loop of the program that it was."""
    origins: dict[ir.Statement, ir.Statement] = {}
    once = _used_once(program) if "pipeline" in program.flags else set()
    flats = Flats(program)

    def block(old: ir.Block) -> ir.Block:
        out: list[ir.Statement] = []
        for statement in old.statements:
            for one in flats.read_anew(statement):
                _statement(one, out, block)
            if isinstance(statement, (ir.For, ir.While)):
                origins[out[-1]] = statement
        return ir.Block(tuple(_without_copies(out, once) if once else out))

    return block(program.body), origins


def _statement(statement: ir.Statement, out: list[ir.Statement], block: Callable[[ir.Block], ir.Block]) -> None:
    match statement:
        case ir.Define(variable=variable, value=value) if value is not None:
            if not _sum_into(variable, None, value, statement, out):
                out.append(replace(statement, value=_pull(value, out)))
        case ir.Assign(variable=variable, op=op, value=value):
            if not _sum_into(variable, op, value, statement, out):
                out.append(replace(statement, value=_pull(value, out)))
        case ir.Store(value=value):
            value = points_first(statement, out) if is_stretch(statement) else value
            out.append(replace(statement, value=_pull(value, out)))
        case ir.Evaluate() | ir.AssumeUniform():
            pass  # no effect
        case ir.For(body=body):
            out.append(replace(statement, body=block(body)))
        case ir.While(prelude=prelude, body=body):
            out.append(replace(statement, prelude=block(prelude), body=block(body)))
        case ir.If(then=then, otherwise=otherwise):
            out.append(replace(statement, then=block(then), otherwise=block(otherwise)))
        case ir.Inline(body=body):
            out.append(replace(statement, body=block(body)))
        case _:
            out.append(statement)


# --- sums of products ----------------------------------------------------------------------------------


def _sum_into(
    variable: ir.Variable,
    op: str | None,
    value: ir.Expression,
    statement: ir.Define | ir.Assign,
    out: list[ir.Statement],
) -> bool:
    """Write `variable op= value` as its other summands first and every `dot` accumulated onto them."""
    type_ = variable.type
    if not isinstance(type_, ir.TileT) or type_.dtype not in ("f32", "f64", "i32") or op not in (None, "+"):
        return False
    terms: list[ir.Expression] = []
    _summands(value, terms)
    products = [term for term in terms if _is_product(term, type_)]
    if not products:
        return False
    others = [term for term in terms if term not in products]
    if any(_mentions(operand, variable) for term in products for operand in term.arguments):  # type: ignore[attr-defined]
        return False
    itself = op == "+" or (len(others) == 1 and _is(others[0], variable))
    if op == "+" and any(_mentions(term, variable) for term in others):
        return False
    operands = [_operands(term, out) for term in products]
    rest = [] if itself and op is None else others
    if isinstance(statement, ir.Define) and not rest:
        out.append(replace(statement, value=None))
    elif rest:
        total = rest[0]
        for term in rest[1:]:
            total = ir.BinaryOp(value.span, value.calls, value.type, "+", total, term)
        pulled = _pull(total, out)
        out.append(replace(statement, value=pulled))
    for i, (term, (left, right)) in enumerate(zip(products, operands, strict=True)):
        accumulate = itself or bool(rest) or i > 0
        transposed = isinstance(term, ir.BuiltinCall) and term.name == "dot_t"
        out.append(ops.Dot(term.span, term.calls, variable, accumulate, left, right, transposed))
    return True


def _summands(value: ir.Expression, terms: list[ir.Expression]) -> None:
    if isinstance(value, ir.BinaryOp) and value.op == "+":
        _summands(value.left, terms)
        _summands(value.right, terms)
    else:
        terms.append(value)


def _is_product(term: ir.Expression, type_: ir.TileT) -> bool:
    return (
        isinstance(term, ir.BuiltinCall)
        and term.name in DOTS
        and isinstance(term.type, ir.TileT)
        and term.type.dtype == type_.dtype
        and term.type.shape == type_.shape
    )


def _is(term: ir.Expression, variable: ir.Variable) -> bool:
    return isinstance(term, ir.VariableRef) and term.variable is variable


def _mentions(expression: ir.Expression, variable: ir.Variable) -> bool:
    return any(
        _is(one, variable) or (isinstance(one, ir.Load) and one.access.base is variable)
        for one in walk.every(expression)
    )


# --- what needs other threads ---------------------------------------------------------------------------


def _pull(expression: ir.Expression, out: list[ir.Statement]) -> ir.Expression:
    """The expression with its cooperative parts computed before it, by statements appended to `out`."""
    match expression:
        case ir.BuiltinCall(name=name, arguments=(source,)) if name in ROWS:
            source = _pull(source, out)
            temporary = _temporary(expression)
            out.append(ops.Reduce(expression.span, expression.calls, name, temporary, source))
            return _ref(expression, temporary)
        case ir.BuiltinCall(name="cumsum", arguments=(source,)):
            temporary = _copy(_pull(source, out), out)
            out.append(ops.RunningSum(expression.span, expression.calls, temporary))
            return _ref(expression, temporary)
        case ir.BuiltinCall(name="transpose", arguments=(source,)):
            source = _pull(source, out)
            if not (isinstance(source, ir.VariableRef) and source.variable.kind != "view"):
                source = _ref(source, _copy(source, out))
            return replace(expression, arguments=(source,))
        case ir.BuiltinCall(name="gather", arguments=(table, index)):
            table = table if isinstance(table, ir.TensorRef) else _pull(table, out)
            if not isinstance(table, ir.TensorRef) and not (
                isinstance(table, ir.VariableRef) and table.variable.kind != "view"
            ):
                table = _ref(table, _copy(table, out))
            return replace(expression, arguments=(table, _pull(index, out)))
        case ir.BuiltinCall(name="flat"):
            return expression
        case ir.BuiltinCall(name=name) if name in DOTS:
            left, right = _operands(expression, out)
            temporary = _temporary(expression)
            out.append(ir.Define(expression.span, expression.calls, temporary, None))
            out.append(ops.Dot(expression.span, expression.calls, temporary, False, left, right, name == "dot_t"))
            return _ref(expression, temporary)
        case ir.BuiltinCall(arguments=arguments):
            return replace(expression, arguments=tuple(_pull(a, out) for a in arguments))
        case ir.UnaryOp(operand=operand) | ir.Convert(operand=operand):
            return replace(expression, operand=_pull(operand, out))
        case ir.BinaryOp(left=left, right=right):
            return replace(expression, left=_pull(left, out), right=_pull(right, out))
        case _:
            return expression


def _operands(term: ir.Expression, out: list[ir.Statement]) -> tuple[ir.Expression, ir.Expression]:
    assert isinstance(term, ir.BuiltinCall)
    left, right = (_operand(argument, out) for argument in term.arguments)
    return left, right


def _operand(argument: ir.Expression, out: list[ir.Statement]) -> ir.Expression:
    """As a product reads it: cells of a tensor or tile as they are; anything computed, from a copy."""
    pulled = _pull(argument, out)
    inner = pulled
    while isinstance(inner, ir.Convert):
        inner = inner.operand
    if isinstance(inner, (ir.Load, ir.VariableRef)):
        return pulled
    return _ref(pulled, _copy(pulled, out))


# --- tiles that are loaded only to be an operand ---------------------------------------------------------


def _used_once(program: Program) -> set[ir.Variable]:
    """The variables that one place reads, and none writes after their definition."""
    uses: dict[ir.Variable, int] = {}

    def use(variable: ir.Variable, count: int) -> None:
        uses[variable] = uses.get(variable, 0) + count

    for statement in walk.statements(program.body):
        if isinstance(statement, ir.Assign):
            use(statement.variable, 2)
        if isinstance(statement, (ir.Store, ir.DefineView)) and isinstance(statement.access.base, ir.Variable):
            use(statement.access.base, 2)
        for root in walk.expressions(statement):
            for one in walk.every(root):
                if isinstance(one, ir.VariableRef):
                    use(one.variable, 1)
                elif isinstance(one, ir.Load) and isinstance(one.access.base, ir.Variable):
                    use(one.access.base, 2)
    return {variable for variable, count in uses.items() if count == 1}


def _without_copies(statements: list[ir.Statement], once: set[ir.Variable]) -> list[ir.Statement]:
    """Where nothing can change a loaded tile before the product that reads it, the product loads it itself."""
    out = list(statements)
    for i, statement in enumerate(statements):
        match statement:
            case ir.Define(variable=variable, value=ir.Load(access=access) as load) if (
                variable in once and load.type == variable.type and isinstance(access.base, ir.Tensor)
            ):
                j = _reader(out, i + 1, variable)
                if j is not None:
                    dot = out[j]
                    assert isinstance(dot, ops.Dot)
                    left, right = (_instead(operand, variable, load) for operand in (dot.left, dot.right))
                    out[j] = replace(dot, left=left, right=right)
                    out[i] = ir.Evaluate(statement.span, statement.calls, load)
    return [s for s in out if not isinstance(s, ir.Evaluate)]


def _reader(statements: list[ir.Statement], start: int, variable: ir.Variable) -> int | None:
    """The product that reads a variable, where no store, atomic or change of a number comes before it."""
    for j in range(start, len(statements)):
        statement = statements[j]
        match statement:
            case ops.Dot(left=left, right=right):
                if any(_is(_inner(operand), variable) for operand in (left, right)):
                    return j
            case ir.Define() | ir.DefineView():
                pass
            case ir.Assign(variable=changed) if walk.is_tile(changed.type):
                pass
            case _:
                return None
    return None


def _inner(operand: ir.Expression) -> ir.Expression:
    while isinstance(operand, ir.Convert):
        operand = operand.operand
    return operand


def _instead(operand: ir.Expression, variable: ir.Variable, load: ir.Load) -> ir.Expression:
    if isinstance(operand, ir.Convert):
        return replace(operand, operand=_instead(operand.operand, variable, load))
    return load if _is(operand, variable) else operand


def _copy(source: ir.Expression, out: list[ir.Statement]) -> ir.Variable:
    temporary = _temporary(source)
    out.append(ir.Define(source.span, source.calls, temporary, source))
    return temporary


def _temporary(source: ir.Expression) -> ir.Variable:
    return ir.Variable("", "temp", source.type, source.span, source.calls)


def _ref(source: ir.Expression, variable: ir.Variable) -> ir.VariableRef:
    return ir.VariableRef(source.span, source.calls, variable.type, variable)
