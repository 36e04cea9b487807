"""Calls of built-ins: arity, kinds of operands, and the shape and type rules that `language.builtins` names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from phobos.diagnostic import Related, plural
from phobos.language.builtins import Builtin, DtypeRule, ShapeRule
from phobos.language.scalars import FLOATS, INTEGERS, REAL_INTEGERS, join
from phobos.semantics import ir, shapes
from phobos.semantics.build_context import Build
from phobos.semantics.build_effects import atomic, barrier, named_tensor
from phobos.semantics.build_operators import (
    agree,
    broadcast,
    need_index,
    shape_of,
    to_tile,
    with_dtype,
)
from phobos.semantics.build_subscripts import bare, extent_expression, extents_of, need_static
from phobos.semantics.types import (
    INDEX,
    is_index,
    length_text,
    scalar_type,
    shape_text,
    tensor_text,
    type_text,
)
from phobos.syntax import tree


def call(b: Build, node: tree.Call, entry: Builtin) -> ir.Expression:
    """A call of a core built-in as an expression. Effects become statements before it."""
    if not _arity(b, node, entry):
        for argument in node.arguments:
            loosely(b, argument)
        if entry.effect == "barrier":
            barrier(b, node)  # so that it is not thought missing
        return b.error(node)
    match entry.name:
        case "program_id":
            return _program_id(b, node)
        case "extent":
            return _extent(b, node)
        case "grid_barrier":
            barrier(b, node)
            b.report(
                "PH216",
                "the result of `grid_barrier` is used",
                node,
                "it has no value",
                severity="warning",
                help="write the call as a statement of its own",
            )
            return ir.IntLiteral(b.span(node), b.calls, INDEX, 0)
        case "atomic_add" | "atomic_cas":
            return atomic(b, node, entry, used=True)
        case "iota":
            return _iota(b, node)
        case "gather":
            return _gather(b, node, entry)
        case "flat":
            return _flat(b, node, entry)
    values = b.in_order(node.arguments)
    if any(isinstance(value.type, ir.ErrorT) for value in values):
        return b.error(node)
    made = _RULES[entry.shape, entry.dtype](b, node, entry, values)
    return b.error(node) if made is None else made


def _arity(b: Build, node: tree.Call, entry: Builtin) -> bool:
    wanted, given = len(entry.parameters), len(node.arguments)
    if wanted == given:
        return True
    if any(isinstance(argument, tree.Missing) for argument in node.arguments):
        return False
    b.report(
        "PH107",
        f"`{entry.name}` takes {plural(wanted, 'argument')}, and {given} "
        f"{'stand' if given != 1 else 'stands'} here",
        node,
        f"{given} of {wanted}",
        help=f"write `{entry.signature}`",
    )
    return False


def loosely(b: Build, node: tree.Expr) -> ir.Expression:
    """An operand of a call that is not checked: a tensor's name alone is fine there."""
    inner = bare(node)
    if isinstance(inner, tree.Name):
        known, meaning = b.scope.find(inner.text)
        if known and isinstance(meaning, ir.Tensor):
            b.used.add(meaning)
            b.nodes.setdefault(inner, meaning)
            return tensor_ref(b, inner, meaning)
    return b.value(node)


def tensor_ref(b: Build, node: tree.Node, tensor: ir.Tensor) -> ir.TensorRef:
    return ir.TensorRef(b.span(node), b.calls, ir.TileT(tensor.dtype, extents_of(b, tensor)), tensor)


def _kind(b: Build, node: tree.Node, entry: Builtin, index: int, value: ir.Expression, wanted: str) -> None:
    b.report(
        "PH107",
        f"`{entry.name}` needs {wanted} as `{entry.parameters[index].label}`",
        node,
        f"this is {type_text(value.type)}",
        help=f"`{entry.signature}`",
    )


def _conversion_help(value: ir.Expression) -> str | None:
    dtype = None if isinstance(value.type, ir.ErrorT) else value.type.dtype
    return "convert it first: `f32(..)`" if dtype in INTEGERS else None


# --- places and sizes ---------------------------------------------------------------------------------


def _program_id(b: Build, node: tree.Call) -> ir.Expression:
    value = b.value(node.arguments[0])
    if isinstance(value.type, ir.ErrorT):
        return b.error(node)
    axis = b.poly(value).constant if is_index(value.type) else None
    if axis not in (0, 1, 2):
        b.report(
            "PH107",
            "`program_id` needs the axis 0, 1 or 2",
            node.arguments[0],
            "not one of 0, 1, 2",
            help="write `program_id(0)`, or `ctx.block.x`",
        )
        return b.error(node)
    return ir.BlockIndex(b.span(node), b.calls, INDEX, axis)


def _extent(b: Build, node: tree.Call) -> ir.Expression:
    tensor = named_tensor(b, node.arguments[0], "extent", "PH107")
    value = b.value(node.arguments[1])
    if tensor is None or isinstance(value.type, ir.ErrorT):
        return b.error(node)
    axis = b.poly(value).constant if is_index(value.type) else None
    rank = len(tensor.extents)
    if axis is None or not 0 <= axis < rank:
        b.report(
            "PH107",
            f"`{tensor.name}` has no axis like this",
            node.arguments[1],
            f"not a literal from 0 to {rank - 1}",
            related=(Related(tensor.span, tensor_text(tensor)),),
        )
        return b.error(node)
    return extent_expression(b, node, tensor, axis)


# --- pure built-ins with rules of their own -----------------------------------------------------------


def _iota(b: Build, node: tree.Call) -> ir.Expression:
    value = b.value(node.arguments[0])
    if not need_index(b, value, "the length of `iota`", "PH107"):
        return b.error(node)
    length = b.length(b.poly(value))
    if not isinstance(length, int) and not b.alone:
        b.report(
            "PH107",
            "`iota` needs a length known when compiled",
            node.arguments[0],
            f"`{length_text(length)}` is known only at launch",
            help="write a literal or a constant",
        )
        return b.error(node)
    if isinstance(length, int) and length < 1:
        b.report("PH107", "`iota` needs a positive length", node.arguments[0], f"this is {length}")
        return b.error(node)
    return ir.BuiltinCall(b.span(node), b.calls, ir.TileT("index", (1, length)), "iota", (value,))


def _gather(b: Build, node: tree.Call, entry: Builtin) -> ir.Expression:
    table = loosely(b, node.arguments[0])
    mark = len(b.out)
    index = b.value(node.arguments[1])
    if len(b.out) > mark and not isinstance(table, ir.TensorRef):
        (table,) = b.keep([table], mark)
    if isinstance(table.type, ir.ErrorT) or isinstance(index.type, ir.ErrorT):
        return b.error(node)
    if not isinstance(table.type, ir.TileT):
        _kind(b, node.arguments[0], entry, 0, table, "a tensor or tile")
        return b.error(node)
    rank = len(table.type.shape)
    if rank > 2 or (rank == 2 and table.type.shape[0] != 1):
        b.report(
            "PH105",
            f"`gather` needs a table of one row, and this is {shape_text(table.type.shape)}",
            node.arguments[0],
            "not `[n]` or `[1, n]`",
        )
        return b.error(node)
    if not isinstance(index.type, ir.TileT) or index.type.dtype not in INTEGERS:
        _kind(b, node.arguments[1], entry, 1, index, "a tile of integers")
        return b.error(node)
    return ir.BuiltinCall(b.span(node), b.calls, ir.TileT(table.type.dtype, index.type.shape), "gather", (table, index))


def _flat(b: Build, node: tree.Call, entry: Builtin) -> ir.Expression:
    argument = bare(node.arguments[0])
    value = b.value(node.arguments[0])
    if isinstance(value.type, ir.ErrorT):
        return b.error(node)
    if not isinstance(value.type, ir.TileT):
        _kind(b, node.arguments[0], entry, 0, value, "a declared tile")
        return b.error(node)
    if not isinstance(argument, tree.Name) or not isinstance(value, ir.VariableRef) or value.variable.kind == "view":
        b.report(
            "PH107",
            "`flat` needs the name of a declared tile",
            node.arguments[0],
            "a view" if isinstance(value, ir.VariableRef) else "not a name",
            help="copy it into a tile first: `var t = ...`, then `flat(t)`",
        )
        return b.error(node)
    if not _rank_two(b, node.arguments[0], entry, value):
        return b.error(node)
    rows, columns = value.type.shape
    length = rows * columns
    return ir.BuiltinCall(b.span(node), b.calls, ir.TileT(value.type.dtype, (1, length)), "flat", (value,))


# --- rules by name ------------------------------------------------------------------------------------

Rule = Callable[[Build, tree.Call, Builtin, list[ir.Expression]], ir.Expression | None]


def _result(
    b: Build, node: tree.Call, entry: Builtin, dtype: str, shape: shapes.Shape, values: Sequence[ir.Expression]
) -> ir.Expression:
    type_: ir.Type = ir.TileT(dtype, shape) if shape else scalar_type(dtype)
    return ir.BuiltinCall(b.span(node), b.calls, type_, entry.name, tuple(values))


def _float(b: Build, node: tree.Expr, entry: Builtin, value: ir.Expression) -> bool:
    if not isinstance(value.type, ir.ErrorT) and value.type.dtype in FLOATS:
        return True
    b.report(
        "PH107",
        f"`{entry.name}` needs floats",
        node,
        f"this is {type_text(value.type)}",
        help=_conversion_help(value) or f"`{entry.signature}`",
    )
    return False


def _rank_two(b: Build, node: tree.Expr, entry: Builtin, value: ir.Expression) -> bool:
    if not isinstance(value.type, ir.TileT):
        _kind(b, node, entry, 0, value, "a tile")
        return False
    if len(value.type.shape) != 2:
        b.report(
            "PH105",
            f"`{entry.name}` needs a tile of rank 2, and this is {shape_text(value.type.shape)}",
            node,
            f"rank {len(value.type.shape)}",
            help="a row of n elements is `[1, n]`",
        )
        return False
    return True


def _map(b: Build, node: tree.Call, entry: Builtin, values: list[ir.Expression]) -> ir.Expression | None:
    (value,) = values
    if not _float(b, node.arguments[0], entry, value):
        return None
    return _result(b, node, entry, value.type.dtype, shape_of(value), values)  # type: ignore[union-attr]


def _rows(b: Build, node: tree.Call, entry: Builtin, values: list[ir.Expression]) -> ir.Expression | None:
    (value,) = values
    argument = node.arguments[0]
    if not _rank_two(b, argument, entry, value) or not _float(b, argument, entry, value):
        return None
    if not need_static(b, value, argument, f"`{entry.name}`"):
        return None
    assert isinstance(value.type, ir.TileT)
    shape = (value.type.shape[0], 1) if entry.shape == "rows" else value.type.shape
    return _result(b, node, entry, "index" if entry.dtype == "index" else value.type.dtype, shape, values)


def _transpose(b: Build, node: tree.Call, entry: Builtin, values: list[ir.Expression]) -> ir.Expression | None:
    (value,) = values
    if not _rank_two(b, node.arguments[0], entry, value):
        return None
    if not need_static(b, value, node.arguments[0], f"`{entry.name}`"):
        return None
    assert isinstance(value.type, ir.TileT)
    return _result(b, node, entry, value.type.dtype, value.type.shape[::-1], values)


def _pow(b: Build, node: tree.Call, entry: Builtin, values: list[ir.Expression]) -> ir.Expression | None:
    left, right = values
    if not _float(b, node.arguments[0], entry, left):
        return None
    if not (isinstance(left.type, ir.TileT) and isinstance(right.type, ir.ScalarT)) and not _float(
        b, node.arguments[1], entry, right
    ):
        return None
    agreed = agree(b, node, "pow", left, right)
    if agreed is None:
        return None
    shape = broadcast(b, node, *agreed)
    return None if shape is None else _result(b, node, entry, agreed[0].type.dtype, shape, agreed)  # type: ignore[union-attr]


def _extreme(b: Build, node: tree.Call, entry: Builtin, values: list[ir.Expression]) -> ir.Expression | None:
    pair = _pair(b, node, entry, *values)
    if pair is None:
        return None
    dtype = pair[0].type.dtype  # type: ignore[union-attr]
    if dtype == "bool":
        _kind(b, node.arguments[0], entry, 0, values[0], "numbers")
        return None
    shape = broadcast(b, node, *pair)
    return None if shape is None else _result(b, node, entry, dtype, shape, pair)


def _pair(
    b: Build, node: tree.Call, entry: Builtin, left: ir.Expression, right: ir.Expression
) -> tuple[ir.Expression, ir.Expression] | None:
    """Two values that must share an element type; a scalar beside a tile is brought to the tile's."""
    lt, rt = left.type, right.type
    assert not isinstance(lt, ir.ErrorT) and not isinstance(rt, ir.ErrorT)
    if lt.dtype == rt.dtype:
        return left, right
    if isinstance(lt, ir.TileT) and isinstance(rt, ir.ScalarT):
        brought = to_tile(b, node, right, lt.dtype)
        return None if brought is None else (left, brought)
    if isinstance(rt, ir.TileT) and isinstance(lt, ir.ScalarT):
        brought = to_tile(b, node, left, rt.dtype)
        return None if brought is None else (brought, right)
    if isinstance(lt, ir.ScalarT) and isinstance(rt, ir.ScalarT) and lt.dtype in INTEGERS and rt.dtype in INTEGERS:
        return agree(b, node, entry.name, left, right)
    b.report(
        "PH104",
        f"`{entry.name}` needs one element type, and these are {lt.dtype} and {rt.dtype}",
        node,
        f"{type_text(lt)} and {type_text(rt)}",
        help="convert one of them",
    )
    return None


def _where(b: Build, node: tree.Call, entry: Builtin, values: list[ir.Expression]) -> ir.Expression | None:
    condition, left, right = values
    assert not isinstance(condition.type, ir.ErrorT)
    if condition.type.dtype != "bool":
        b.report(
            "PH104",
            "the condition of `where` must be bool",
            node.arguments[0],
            f"this is {type_text(condition.type)}",
            help="compare, as in `t > 0.0`",
        )
        return None
    agreed = agree(b, node, "where", left, right)
    if agreed is None:
        return None
    shape = broadcast(b, node, condition, *agreed)
    if shape is None:
        return None
    return _result(b, node, entry, agreed[0].type.dtype, shape, (condition, *agreed))  # type: ignore[union-attr]


def _argsel(b: Build, node: tree.Call, entry: Builtin, values: list[ir.Expression]) -> ir.Expression | None:
    first = _pair(b, node, entry, values[0], values[1])
    second = _pair(b, node, entry, values[2], values[3])
    if first is None or second is None:
        return None
    shape = broadcast(b, node, *first, *second)
    return None if shape is None else _result(b, node, entry, second[0].type.dtype, shape, (*first, *second))  # type: ignore[union-attr]


def _dot(b: Build, node: tree.Call, entry: Builtin, values: list[ir.Expression]) -> ir.Expression | None:
    left, right = values
    right_ok = _rank_two(b, node.arguments[0], entry, left)
    if not (_rank_two(b, node.arguments[1], entry, right) and right_ok):
        return None
    assert isinstance(left.type, ir.TileT) and isinstance(right.type, ir.TileT)
    dtype = join(left.type.dtype, right.type.dtype)
    if dtype is None or dtype in ("bool", "index"):
        b.report(
            "PH104",
            f"`{entry.name}` cannot multiply {left.type.dtype} and {right.type.dtype}",
            node,
            f"{type_text(left.type)} and {type_text(right.type)}",
            help="convert one of them",
        )
        return None
    if dtype in REAL_INTEGERS:
        dtype = "i64" if dtype == "i64" else "i32"
    rows, inner = left.type.shape
    other, columns = right.type.shape if entry.name == "dot" else right.type.shape[::-1]
    if not shapes.same(inner, other) and not (b.alone and shapes.may_agree(inner, other)):
        last = "first" if entry.name == "dot" else "last"
        b.report(
            "PH105",
            f"`{entry.name}` contracts {length_text(inner)} with {length_text(other)}",
            node,
            f"{shape_text(left.type.shape)} and {shape_text(right.type.shape)}",
            notes=(f"the last axis of `a` and the {last} axis of `b` must be equal",),
            help="`dot_t` takes the second operand transposed"
            if entry.name == "dot" and shapes.same(inner, columns)
            else None,
        )
        return None
    shape = (rows, columns)
    if not shapes.is_static(shape) and not b.alone:
        runtime = rows if not isinstance(rows, int) else columns
        b.report(
            "PH106",
            f"the result of `{entry.name}` needs lengths known when compiled",
            node,
            f"one length is `{length_text(runtime)}`, known only at launch",
            notes=("only K may be a runtime length",),
        )
        return None
    return _result(b, node, entry, dtype, shape, values)


def _convert(b: Build, node: tree.Call, entry: Builtin, values: list[ir.Expression]) -> ir.Expression | None:
    (value,) = values
    assert not isinstance(value.type, ir.ErrorT)
    if value.type.dtype == "bool":
        b.report(
            "PH104",
            f"`{entry.name}` does not convert a bool",
            node.arguments[0],
            type_text(value.type),
            help="choose with `where(c, 1, 0)`",
        )
        return None
    dtype = entry.name
    if dtype == "i64" and isinstance(value.type, ir.ScalarT):
        dtype = "index"
    return ir.Convert(b.span(node), b.calls, with_dtype(value.type, dtype), value, True)


def _same(b: Build, node: tree.Call, entry: Builtin, values: list[ir.Expression]) -> ir.Expression | None:
    """Floats of the same shape: any, or tiles of rank 2 where the operand must be a tile."""
    rule = _rows if entry.parameters[0].kind == "tile" else _map
    return rule(b, node, entry, values)


_RULES: dict[tuple[ShapeRule, DtypeRule], Rule] = {
    ("same", "float"): _same,
    ("same", "convert"): _convert,
    ("rows", "float"): _rows,
    ("rows", "index"): _rows,
    ("transposed", "same"): _transpose,
    ("broadcast", "float"): _pow,
    ("broadcast", "shared"): _extreme,
    ("broadcast", "join"): _where,
    ("broadcast", "second-pair"): _argsel,
    ("dot", "accumulate"): _dot,
    ("dot_t", "accumulate"): _dot,
}
"""By the rules that `language.builtins` names, so that a built-in that follows one of them is an entry there."""
