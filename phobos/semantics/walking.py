"""The ways through a typed program: statements in the order of the text, expressions inside out, what is written."""

from __future__ import annotations

from collections.abc import Iterator

from phobos.semantics import ir
from phobos.semantics.program import Program, fact

INTEGERS = frozenset({"index", "i8", "u8", "i32", "i64"})
NESTS = frozenset({ir.For, ir.While, ir.If, ir.Inline})  # kinds of statements with blocks inside
LEAVES = frozenset(
    {
        ir.Error, ir.IntLiteral, ir.FloatLiteral, ir.BoolLiteral, ir.ConstantRef, ir.DimRef, ir.ParamRef,
        ir.BlockIndex, ir.GridExtent, ir.ThreadValue, ir.VariableRef, ir.TensorRef,
    }
)  # fmt: skip
"""Kinds of expressions with nothing inside: most of those met, and every walk is spared a look into them."""


def is_integer(type_: ir.Type) -> bool:
    return isinstance(type_, ir.ScalarT) and type_.dtype in INTEGERS


def is_bool(type_: ir.Type) -> bool:
    return isinstance(type_, ir.ScalarT) and type_.dtype == "bool"


def blocks_of(statement: ir.Statement) -> tuple[ir.Block, ...]:
    """The blocks inside a statement, in order of execution."""
    if type(statement) not in NESTS:
        return ()
    match statement:
        case ir.For(body=body) | ir.Inline(body=body):
            return (body,)
        case ir.While(prelude=prelude, body=body):
            return (prelude, body)
        case ir.If(then=then, otherwise=otherwise):
            return (then, otherwise)
    return ()


def children_of(expression: ir.Expression) -> tuple[ir.Expression, ...]:
    """The operands of an expression that are values; the subscripts of a load are in its access."""
    if type(expression) in LEAVES:
        return ()
    match expression:
        case ir.UnaryOp(operand=operand) | ir.Convert(operand=operand):
            return (operand,)
        case ir.BinaryOp(left=left, right=right) | ir.ShortCircuit(left=left, right=right):
            return (left, right)
        case ir.BuiltinCall(arguments=arguments) | ir.Unsupported(arguments=arguments):
            return arguments
    return ()


def subscript_parts(access: ir.Access) -> Iterator[ir.Expression]:
    """Every expression that stands in a subscript."""
    for sub in access.subs:
        if isinstance(sub, ir.PointSub):
            yield sub.index
        else:
            yield sub.first
            yield sub.length


def subscripts(access: ir.Access) -> tuple[ir.Expression, ...]:
    return tuple(subscript_parts(access))


def operands(expression: ir.Expression) -> tuple[ir.Expression, ...]:
    """The expressions directly inside one, subscripts included."""
    return subscripts(expression.access) if isinstance(expression, ir.Load) else children_of(expression)


def inside(expression: ir.Expression) -> Iterator[ir.Expression]:
    """An expression and everything in it, in order of evaluation."""
    stack = [expression]
    while stack:
        one = stack.pop()
        yield one
        if type(one) not in LEAVES:
            stack.extend(reversed(operands(one)))


def evaluated_by(statement: ir.Statement) -> tuple[ir.Expression, ...]:
    """What a statement evaluates itself, not what its blocks do; subscripts first."""
    if isinstance(statement, (ir.Store, ir.DefineView)):
        return (*subscripts(statement.access), *expressions_in(statement))
    return expressions_in(statement)


def everything_in(statement: ir.Statement) -> Iterator[ir.Expression]:
    """Every expression that a statement evaluates itself, and all that is inside them."""
    for expression in evaluated_by(statement):
        yield from inside(expression)


def statements_of(block: ir.Block) -> Iterator[ir.Statement]:
    """Every statement at any depth, in the order of the text."""
    stack = list(reversed(block.statements))
    while stack:
        statement = stack.pop()
        yield statement
        if type(statement) in NESTS:
            inner = [s for b in blocks_of(statement) for s in b.statements]
            stack.extend(reversed(inner))


def expressions_in(statement: ir.Statement) -> tuple[ir.Expression, ...]:
    """The expressions a statement itself evaluates (not those of its blocks), subscripts of stores aside."""
    match statement:
        case ir.Define(value=initial):
            return () if initial is None else (initial,)
        case ir.Assign(value=new) | ir.Store(value=new):
            return (new,)
        case ir.Evaluate(value=evaluated) | ir.AssumeUniform(value=evaluated):
            return (evaluated,)
        case ir.For(lo=lo, hi=hi, step=step):
            return (lo, hi, step)
        case ir.While(condition=condition) | ir.If(condition=condition):
            return (condition,)
        case ir.Atomic(index=index, operands=operands):
            return (index, *operands)
        case ir.UnsupportedCall(arguments=arguments):
            return arguments
    return ()


def walk(expression: ir.Expression) -> Iterator[ir.Expression]:
    """An expression and everything inside it, subscripts of loads included."""
    stack = [expression]
    while stack:
        at = stack.pop()
        yield at
        if type(at) in LEAVES:
            continue
        if isinstance(at, ir.Load):
            stack.extend(subscript_parts(at.access))
        stack.extend(children_of(at))


def loads_in(statement: ir.Statement) -> Iterator[ir.Access]:
    """The accesses a statement itself reads, those in the subscripts of its store included; views not."""
    roots = list(expressions_in(statement))
    if isinstance(statement, (ir.Store, ir.DefineView)):
        roots.extend(subscript_parts(statement.access))
    for root in roots:
        if type(root) in LEAVES:
            continue
        for expression in walk(root):
            if isinstance(expression, ir.Load):
                yield expression.access


# --- of a whole program, walked once --------------------------------------------------------------------


@fact
def statements_in(program: Program) -> tuple[ir.Statement, ...]:
    """Every statement at any depth, in the order of the text."""
    return tuple(statements_of(program.body))


@fact
def unknown_waits(program: Program) -> tuple[ir.Statement, ...]:
    """Statements that call a function of which nothing is known, so that a grid barrier may be inside it."""
    return tuple(
        statement
        for statement in statements_in(program)
        if (isinstance(statement, ir.UnsupportedCall) and statement.may_wait)
        or any(isinstance(one, ir.Unsupported) and one.may_wait for one in everything_in(statement))
    )


@fact
def loads_of(program: Program) -> dict[ir.Statement, tuple[ir.Access, ...]]:
    """What each statement itself reads, as `loads_in` says."""
    return {statement: tuple(loads_in(statement)) for statement in statements_in(program)}


@fact
def all_evaluated(program: Program) -> dict[ir.Statement, tuple[ir.Expression, ...]]:
    """What each statement itself evaluates and everything in it, subscripts first, in the order of evaluation."""
    return {
        statement: tuple([one for root in evaluated_by(statement) for one in inside(root)])
        for statement in statements_in(program)
    }


def written_tensors(program: Program) -> frozenset[str]:
    """Names of the tensors that a store or an atomic of the kernel may change."""
    found: set[str] = set()
    for statement in statements_in(program):
        if isinstance(statement, ir.Store) and isinstance(statement.access.base, ir.Tensor):
            found.add(statement.access.base.name)
        elif isinstance(statement, (ir.Atomic, ir.Barrier)):
            found.add(statement.tensor.name)
    return frozenset(found)
