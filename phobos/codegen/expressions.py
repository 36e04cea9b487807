"""Expressions as C++: scalars as they are, tiles one element at a time.

A tile expression is spelled for one element, whose row and column are named by an `Element`. Its leaves (loads
and variables) are spelled by the `Element`, which knows how the statement's loop holds them.
"""

from __future__ import annotations

from collections.abc import Callable

from phobos.codegen import spelling
from phobos.codegen.context import Context
from phobos.language.scalars import FLOATS
from phobos.semantics import ir

_MATH = {"exp": "ph_exp", "log": "ph_log", "sqrt": "ph_sqrt", "tanh": "ph_tanh", "round": "ph_round"}


class Element:
    """The element being computed: names of its coordinates, and the spelling of each leaf."""

    def __init__(self, coordinates: tuple[str, ...], leaf: Callable[[ir.Expression], str]) -> None:
        self.coordinates = coordinates
        self.leaf = leaf

    def within(self, type_: ir.Type) -> tuple[str, str]:
        """Row and column in a tile of this type that is broadcast to where the element is."""
        assert isinstance(type_, ir.TileT)
        at = ["0" if length == 1 else name for length, name in zip(type_.shape, self.coordinates, strict=True)]
        return (at[-2] if len(at) > 1 else "0"), at[-1]


def dtype_of(expression: ir.Expression) -> str:
    assert not isinstance(expression.type, ir.ErrorT)
    return expression.type.dtype


def scalar(context: Context, expression: ir.Expression) -> str:
    """A scalar expression: the same value in every thread."""
    return _spell(context, expression, None)


def as_type(context: Context, expression: ir.Expression, dtype: str, element: Element | None = None) -> str:
    """The expression's value as a `dtype`."""
    if dtype == "f64" and isinstance(expression, ir.FloatLiteral):
        return spelling.convert(spelling.real(expression.value, dtype_of(expression)), dtype_of(expression), dtype)
    return spelling.convert(_spell(context, expression, element), dtype_of(expression), dtype)


def arithmetic(
    context: Context, op: str, left: str, right: ir.Expression, dtype: str, element: Element | None = None
) -> str:
    """`left op right` in `dtype`, of which `left` is a value; a product on the right is contracted with a sum."""
    factors = _factors(right, dtype) if op in ("+", "-") else None
    if factors is None:
        return spelling.binary(op, left, as_type(context, right, dtype, element), dtype)
    a, b = (as_type(context, factor, dtype, element) for factor in factors)
    return spelling.multiply_add(f"-({a})" if op == "-" else a, b, left, dtype)


def _factors(expression: ir.Expression, dtype: str) -> tuple[ir.Expression, ir.Expression] | None:
    """The two sides of a product that is computed in this type and not rounded to a narrower one."""
    if dtype not in ("f32", "f64") or not isinstance(expression, ir.BinaryOp) or expression.op != "*":
        return None
    same = dtype_of(expression) == dtype_of(expression.left) == dtype
    return (expression.left, expression.right) if same else None


def _steady(expression: ir.Expression) -> tuple[tuple[ir.Expression, bool], ...] | None:
    """`a`, `b` and `c` of a * b + c, each with whether its sign is turned, where `b` and `c` are one along a row whose
    cells differ in `a`; None of any other expression."""
    if not isinstance(expression, ir.BinaryOp) or expression.op not in ("+", "-") or dtype_of(expression) != "f32":
        return None
    minus = expression.op == "-"
    for product, other, signs in (
        (expression.left, expression.right, (False, minus)),
        (expression.right, expression.left, (minus, False)),
    ):
        factors = _factors(product, "f32")
        if factors is None or not _is_one_along_rows(other):
            continue
        for a, b in (factors, factors[::-1]):
            if _is_one_along_rows(b) and not _is_one_along_rows(a):
                return (a, signs[0]), (b, False), (other, signs[1])
    return None


def _is_one_along_rows(expression: ir.Expression) -> bool:
    return not isinstance(expression.type, ir.TileT) or expression.type.shape[-1] == 1


def tile(context: Context, expression: ir.Expression, element: Element) -> str:
    """One element of a tile expression (or a scalar, the same for all)."""
    return _spell(context, expression, element)


def point(context: Context, access: ir.Access) -> str:
    """The address of one cell, as an lvalue."""
    assert access.is_point
    if isinstance(access.base, ir.Variable) and context.is_single(access.base):
        return f"{context.name(access.base)}[0]"
    strides = context.strides(access.base)
    parts = []
    for sub, stride in zip(access.subs, strides, strict=True):
        assert isinstance(sub, ir.PointSub)
        at = as_type(context, sub.index, "index")
        parts.append(at if stride == "1" else f"{at} * {stride}")
    return f"{context.base(access.base)}[{spelling.bare(' + '.join(parts))}]"


def access_dtype(access: ir.Access) -> str:
    """The element type of what is accessed."""
    if isinstance(access.base, ir.Tensor):
        return access.base.dtype
    assert isinstance(access.base.type, ir.TileT)
    return access.base.type.dtype


def _spell(context: Context, expression: ir.Expression, element: Element | None) -> str:
    def inner(one: ir.Expression) -> str:
        return _spell(context, one, element)

    match expression:
        case ir.IntLiteral(value=number):
            return spelling.index(number) if dtype_of(expression) in ("index", "i64") else spelling.integer(number)
        case ir.FloatLiteral(value=number):
            return spelling.real(number, dtype_of(expression))
        case ir.BoolLiteral(value=truth):
            return "true" if truth else "false"
        case ir.ConstantRef(constant=constant):
            return spelling.index(constant.value)
        case ir.DimRef(dim=dim):
            return context.dims[dim.name]
        case ir.ParamRef(param=param):
            return context.params[param.name]
        case ir.BlockIndex(axis=axis):
            return f"block_{'xyz'[axis]}"
        case ir.GridExtent(axis=axis):
            return f"blocks_{'xyz'[axis]}"
        case ir.VariableRef(variable=variable):
            if isinstance(variable.type, ir.TileT):
                assert element is not None
                return element.leaf(expression)
            return context.name(variable)
        case ir.Load(access=access):
            if not access.is_point:
                assert element is not None
                return element.leaf(expression)
            return _loaded_point(context, access, dtype_of(expression))
        case ir.UnaryOp(op=op, operand=operand):
            dtype = dtype_of(expression)
            if op == "!":
                return f"(!{inner(operand)})"
            if op == "~":
                return spelling.rounded(f"(~{inner(operand)})", dtype) if dtype != "bool" else f"(!{inner(operand)})"
            if isinstance(operand, ir.FloatLiteral) and operand.value != 0:  # 0 - 0 is no negative nought
                return f"({spelling.real(-operand.value, dtype)})"
            return spelling.binary("-", spelling.zero(dtype), inner(operand), dtype)
        case ir.BinaryOp(op=op, left=left, right=right):
            kind = dtype_of(left)
            if op in ("/", "%") and kind not in FLOATS and isinstance(right, (ir.IntLiteral, ir.ConstantRef)):
                number = right.value if isinstance(right, ir.IntLiteral) else right.constant.value
                if number > 0:
                    return f"({inner(left)} {op} {inner(right)})"
            factors = _factors(left, kind) if op in ("+", "-") else None
            if factors is None:
                return arithmetic(context, op, inner(left), right, kind, element)
            a, b = (as_type(context, factor, kind, element) for factor in factors)
            c = as_type(context, right, kind, element)
            return spelling.multiply_add(a, b, f"-({c})" if op == "-" else c, kind)
        case ir.ShortCircuit(op=op, left=left, right=right):
            return f"({inner(left)} {op} {inner(right)})"
        case ir.Convert(operand=operand):
            return as_type(context, operand, dtype_of(expression), element)
        case ir.BuiltinCall(name=name, arguments=arguments):
            return _call(context, expression, name, arguments, element)
    raise AssertionError(f"no spelling for {type(expression).__name__}")


def _loaded_point(context: Context, access: ir.Access, dtype: str) -> str:
    source = access_dtype(access)
    text = point(context, access)
    if isinstance(access.base, ir.Variable) and context.is_single(access.base):
        return spelling.convert(text, source, dtype)
    return spelling.convert(spelling.from_cell(text, source), source, dtype)


def _call(
    context: Context, call: ir.BuiltinCall, name: str, arguments: tuple[ir.Expression, ...], element: Element | None
) -> str:
    dtype = dtype_of(call)

    def typed(one: ir.Expression, kind: str = dtype) -> str:
        return as_type(context, one, kind, element)

    if name == "exp" and dtype == "f32" and (parts := _steady(arguments[0])) is not None:
        return f"ph_exp_of({', '.join(f'-({typed(one)})' if minus else typed(one) for one, minus in parts)})"
    if name in _MATH:
        return spelling.rounded(f"{_MATH[name]}({spelling.bare(typed(arguments[0]))})", dtype)
    match name, arguments:
        case "pow", (a, b):
            return spelling.rounded(f"ph_pow({spelling.bare(typed(a))}, {spelling.bare(typed(b))})", dtype)
        case "tmax" | "tmin", (a, b):
            return f"ph_{name[1:]}<{spelling.VALUES[dtype]}>({spelling.bare(typed(a))}, {spelling.bare(typed(b))})"
        case "where", (condition, a, b):
            return f"({_spell(context, condition, element)} ? {spelling.bare(typed(a))} : {spelling.bare(typed(b))})"
        case "argsel", (va, vb, ia, ib):
            kind = dtype_of(va)
            return f"({typed(va, kind)} >= {typed(vb, kind)} ? {typed(ia)} : {typed(ib)})"
    assert element is not None
    row, column = element.within(call.type)
    match name, arguments:
        case "iota", _:
            return f"(long long){column}"
        case "tril", (source,):
            return f"({column} <= {row} ? {typed(source)} : {spelling.zero(dtype)})"
        case "transpose", (ir.VariableRef(variable=variable),):
            return _shared_cell(context, variable, (column, row), dtype)
        case "flat", (ir.VariableRef(variable=variable),):
            assert isinstance(variable.type, ir.TileT)
            columns = variable.type.shape[-1]
            return _shared_cell(context, variable, (f"({column} / {columns})", f"({column} % {columns})"), dtype)
        case "gather", (table, positions):
            cell = as_type(context, positions, "index", element)
            if context.stray:
                cell = _within(context, call, table, cell)
            if isinstance(table, ir.TensorRef):
                kind = table.tensor.dtype
                cell = context.instrument.gathered(context, call, table.tensor, cell)
                return spelling.convert(
                    spelling.from_cell(f"{context.tensors[table.tensor]}[{cell}]", kind), kind, dtype
                )
            assert isinstance(table, ir.VariableRef) and isinstance(table.variable.type, ir.TileT)
            rank = len(table.variable.type.shape)
            return _shared_cell(context, table.variable, (*("0",) * (rank - 1), cell), dtype)
    raise AssertionError(f"no spelling for `{name}`")


def _within(context: Context, call: ir.BuiltinCall, table: ir.Expression, cell: str) -> str:
    """The index of a table, checked."""
    assert isinstance(table, (ir.TensorRef, ir.VariableRef))
    base = table.tensor if isinstance(table, ir.TensorRef) else table.variable
    site = context.site("bounds", call.span, call.calls, base.name or "table")
    return f"ph_within({cell}, {context.extents(base)[-1]}, {site + 1}, {context.stray})"


def _shared_cell(context: Context, variable: ir.Variable, at: tuple[str, ...], dtype: str) -> str:
    assert isinstance(variable.type, ir.TileT)
    source = variable.type.dtype
    if context.place(variable) is None:  # a tile of one element
        return spelling.convert(f"{context.name(variable)}[0]", source, dtype)
    parts = [
        one if stride == "1" else f"{one} * {stride}"
        for one, stride in zip(at, context.strides(variable), strict=True)
        if one != "0"
    ]
    return spelling.convert(
        spelling.from_cell(f"{context.name(variable)}[{' + '.join(parts) or '0'}]", source), source, dtype
    )
