"""Where a tile variable lives: in its threads' registers, or in shared memory because other threads read it.

A variable that is only ever read and written element by element, reduced along its rows, or accumulated into by
products stays in registers, however large it is; so does the left operand of a product on tensor cores that
multiplies it row by row in the warps that hold it. One that another product, `transpose`, `cumsum`, `gather` or `flat`
reads, or that is subscripted, is shared. (A tile of one element is the same in all threads, so its point is
no reason.) PH402 counts by this decision.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from phobos.lowering import ops, walk
from phobos.semantics import ir


def shared_variables(body: ir.Block, held: Collection[ops.Dot] = ()) -> dict[ir.Variable, str]:
    """The tile variables of a normalised body that need shared memory, each with the reason, in order of first need.
    `held` are the products that take their left operand from registers."""
    found: dict[ir.Variable, str] = {}

    def need(variable: ir.Variable, reason: str) -> None:
        found.setdefault(variable, reason)

    for statement in walk.statements(body):
        match statement:
            case ops.RunningSum(tile=tile):
                need(tile, "`cumsum` reads it column by column")
            case ops.Dot(left=left, right=right):
                for operand in (right,) if statement in held else (left, right):
                    if (variable := tile_named(operand)) is not None:
                        need(variable, "it is an operand of a product")
            case ir.Store(access=access) | ir.DefineView(access=access):
                if (variable := _subscripted(access)) is not None:
                    need(variable, "it is subscripted")
        for root in walk.expressions(statement):
            for expression in walk.every(root):
                match expression:
                    case ir.Load(access=access):
                        if (variable := _subscripted(access)) is not None:
                            need(variable, "it is subscripted")
                    case ir.BuiltinCall(name="transpose" | "flat" | "gather" as name, arguments=(first, *_)):
                        if (variable := tile_named(first)) is not None:
                            need(variable, f"`{name}` reads it at other places")
    for statement in walk.statements(body):
        for variable in _higher_rank_broadcasts(statement):
            need(variable, "it is broadcast along a leading axis")
    return found


def _subscripted(access: ir.Access) -> ir.Variable | None:
    """The tile whose cells must be told apart: the only cell of one is told by a point, but a slice may miss it."""
    base = access.base
    return base if isinstance(base, ir.Variable) and (not access.is_point or ops.cells(base.type) > 1) else None


def tile_named(expression: ir.Expression) -> ir.Variable | None:
    """The tile variable that an operand names, through conversions."""
    while isinstance(expression, ir.Convert):
        expression = expression.operand
    if isinstance(expression, ir.VariableRef) and expression.variable.kind != "view":
        return expression.variable
    return None


def left_made_where_multiplied(body: ir.Block) -> list[ops.Dot]:
    """The products whose left operand is written in the innermost loop around them, where there is one. One from
    further out is multiplied again and again, and would fill registers all the while."""
    found: list[ops.Dot] = []

    def visit(block: ir.Block, written: frozenset[ir.Variable] | None) -> None:
        for statement in block.statements:
            if isinstance(statement, ops.Dot):
                tile = tile_named(statement.left)
                if tile is not None and (written is None or tile in written):
                    found.append(statement)
            inside = frozenset(written_in(statement)) if isinstance(statement, (ir.For, ir.While)) else written
            for inner in walk.blocks(statement):
                visit(inner, inside)

    visit(body, None)
    return found


def written_in(*roots: ir.Statement) -> Iterator[ir.Variable]:
    """The variables that statements write, at any depth."""
    for statement in walk.statements(ir.Block(roots)):
        match statement:
            case ir.Define(variable=variable) | ir.Assign(variable=variable) | ir.DefineView(variable=variable):
                yield variable
            case ops.Reduce(result=variable) | ops.Dot(result=variable) | ops.RunningSum(tile=variable):
                yield variable
            case ir.Store(access=access) if isinstance(access.base, ir.Variable):
                yield access.base


def _higher_rank_broadcasts(statement: ir.Statement) -> list[ir.Variable]:
    """Variables of rank 3 and more whose leading axes are broadcast: rows no longer correspond to rows."""
    found: list[ir.Variable] = []
    match statement:
        case ir.Define(variable=target) | ir.Assign(variable=target):
            shape = target.type
        case ir.Store(value=value):
            shape = value.type
        case ops.Reduce(source=source):
            shape = source.type
        case _:
            return found
    if not isinstance(shape, ir.TileT) or len(shape.shape) < 3:
        return found
    for root in walk.expressions(statement):
        for one in walk.every(root):
            if isinstance(one, ir.VariableRef) and isinstance(one.type, ir.TileT) and one.variable.kind != "view":
                leading = one.type.shape[:-1]
                if leading != shape.shape[:-1] and any(length != 1 for length in leading):
                    found.append(one.variable)
    return found
