"""Operators: which types they take, in which type they compute, what shape comes out, and stores' conversions."""

from __future__ import annotations

from typing import TypeVar

from phobos.diagnostic import Edit, Fix, Span
from phobos.language.scalars import FLOATS, INTEGERS, REAL_INTEGERS, SCALARS, join, stores
from phobos.semantics import ir, shapes
from phobos.semantics.build_context import Build
from phobos.semantics.types import ERROR, element, is_real_integer, scalar_type, shape_text, type_text
from phobos.syntax import tree

ARITHMETIC = frozenset(("+", "-", "*", "/", "%"))
ORDER = frozenset(("<", "<=", ">", ">="))
EQUALITY = frozenset(("==", "!="))
LOGIC = frozenset(("&&", "||"))
BITS = frozenset(("&", "|", "^", "<<", ">>"))
DOTS = frozenset(("dot", "dot_t"))

T = TypeVar("T", bound=ir.Expression)


def with_dtype(type_: ir.Type, dtype: str) -> ir.Type:
    """The same shape with another element type."""
    if isinstance(type_, ir.TileT):
        return type_ if type_.dtype == dtype else ir.TileT(dtype, type_.shape)
    return scalar_type(dtype)


def convert(value: ir.Expression, dtype: str, *, explicit: bool = False) -> ir.Expression:
    """`value` in another element type. A `dot` of narrow floats brought to a wider one accumulates in the wider."""
    type_ = value.type
    if isinstance(type_, ir.ErrorT) or type_.dtype == dtype:
        return value
    if isinstance(value, ir.BuiltinCall) and value.name in DOTS and not explicit and _wider(type_.dtype, dtype):
        return ir.BuiltinCall(value.span, value.calls, with_dtype(type_, dtype), value.name, value.arguments)
    return ir.Convert(value.span, value.calls, with_dtype(type_, dtype), value, explicit)


def _wider(narrow: str, wide: str) -> bool:
    return narrow in FLOATS and wide in FLOATS and SCALARS[narrow].bits < SCALARS[wide].bits


def binary(b: Build, node: tree.Node, op: str, left: ir.Expression, right: ir.Expression) -> ir.Expression:
    """`left op right`, elementwise where a tile takes part. Not `&&` and `||` of scalars."""
    if isinstance(left.type, ir.ErrorT) or isinstance(right.type, ir.ErrorT):
        return b.error(node)
    wrong = _takes(op, left.type.dtype) or _takes(op, right.type.dtype)
    if wrong and not (op in ARITHMETIC | ORDER and left.type.dtype != right.type.dtype):
        b.report(
            "PH104",
            f"`{op}` does not take {type_text(left.type)} and {type_text(right.type)}",
            node,
            wrong,
            help="`bool` has `== != ! && ||` only" if "bool" in (left.type.dtype, right.type.dtype) else None,
        )
        return b.error(node)
    agreed = agree(b, node, op, left, right)
    if agreed is None:
        return b.error(node)
    left, right = agreed
    shape = broadcast(b, node, left, right)
    if shape is None:
        return b.error(node)
    if op in ("/", "%") and element(right.type) in INTEGERS:
        by_zero(b, right)
    dtype = "bool" if op in ORDER or op in EQUALITY or op in LOGIC else element(left.type)
    assert dtype is not None
    type_: ir.Type = scalar_type(dtype) if shape == () else ir.TileT(dtype, shape)
    return ir.BinaryOp(b.span(node), b.calls, type_, op, left, right)


def _takes(op: str, dtype: str) -> str:
    """Why an operator does not take an element type; empty when it does."""
    if op in LOGIC:
        return "" if dtype == "bool" else f"{dtype} is not bool"
    if op in BITS:
        return "" if dtype in INTEGERS else f"{dtype} is not an integer"
    if op in EQUALITY:
        return ""
    return "bool is not a number" if dtype == "bool" else ""


def agree(
    b: Build, node: tree.Node, op: str, left: ir.Expression, right: ir.Expression
) -> tuple[ir.Expression, ir.Expression] | None:
    """Both operands in one element type, or None after saying why there is none."""
    lt, rt = left.type, right.type
    assert not isinstance(lt, ir.ErrorT) and not isinstance(rt, ir.ErrorT)
    l_tile, r_tile = isinstance(lt, ir.TileT), isinstance(rt, ir.TileT)
    if lt.dtype == rt.dtype:
        return left, right
    if l_tile and not r_tile:
        brought = to_tile(b, node, right, lt.dtype)
        return None if brought is None else (left, brought)
    if r_tile and not l_tile:
        brought = to_tile(b, node, left, rt.dtype)
        return None if brought is None else (brought, right)
    if not l_tile and "index" in (lt.dtype, rt.dtype) and lt.dtype in INTEGERS and rt.dtype in INTEGERS:
        return _beside_index(b, node, op, left, right)
    joined = join(lt.dtype, rt.dtype)
    if joined is None:
        _do_not_join(b, node, op, left, right)
        return None
    return convert(left, joined), convert(right, joined)


def _beside_index(
    b: Build, node: tree.Node, op: str, left: ir.Expression, right: ir.Expression
) -> tuple[ir.Expression, ir.Expression] | None:
    """A real integer and an index: they compare, and a literal joins; else the real one has to be converted."""
    if op in ORDER or op in EQUALITY:
        return convert(left, "index"), convert(right, "index")
    real, other = (left, right) if is_real_integer(left.type) else (right, left)
    if is_literal(other) and b.poly(other).constant is not None:
        dtype = element(real.type)
        assert dtype is not None
        return convert(left, dtype), convert(right, dtype)
    b.report(
        "PH104",
        f"a {type_text(real.type)} cannot be used beside an index",
        node,
        f"{type_text(left.type)} {op} {type_text(right.type)}",
        notes=("the result of an atomic, or of i8, u8 or i32, is a real integer: it joins only others and literals",),
        help="convert it with `i64(..)`, which gives an index",
        fix=wrap_fix(real.span, "i64"),
    )
    return None


def is_literal(expression: ir.Expression) -> bool:
    """Whether an expression is made of literals, through `let` too; a `var` is not, whatever it holds."""
    match expression:
        case ir.IntLiteral():
            return True
        case ir.VariableRef(variable=variable):
            return variable.kind in ("let", "temp")
        case ir.UnaryOp(operand=operand):
            return is_literal(operand)
        case ir.BinaryOp(left=left, right=right):
            return is_literal(left) and is_literal(right)
    return False


def _do_not_join(b: Build, node: tree.Node, op: str, left: ir.Expression, right: ir.Expression) -> None:
    lt, rt = left.type, right.type
    assert not isinstance(lt, ir.ErrorT) and not isinstance(rt, ir.ErrorT)
    help_ = "both sides must have one type"
    fix = None
    if (lt.dtype in FLOATS and rt.dtype in INTEGERS) or (rt.dtype in FLOATS and lt.dtype in INTEGERS):
        integer, real = (left, right) if lt.dtype in INTEGERS else (right, left)
        dtype = element(real.type)
        if isinstance(integer, ir.IntLiteral):
            help_ = f"write the literal as a float: `{integer.value}.0`"
            fix = Fix("make the literal a float", "safe", (Edit(integer.span, f"{integer.value}.0"),))
        else:
            help_ = f"convert the integer: `{dtype}(..)`"
            fix = wrap_fix(integer.span, str(dtype))
    b.report(
        "PH104",
        f"`{op}` does not mix {type_text(lt)} and {type_text(rt)}",
        node,
        f"{lt.dtype} {op} {rt.dtype}",
        help=help_,
        fix=fix,
    )


def wrap_fix(span: Span, conversion: str) -> Fix | None:
    """Put `conversion(..)` around a piece of text, where that text belongs to the item being built."""
    start, end = Span(span.owner, span.start, span.start), Span(span.owner, span.end, span.end)
    return Fix(f"convert with `{conversion}(..)`", "unsafe", (Edit(start, f"{conversion}("), Edit(end, ")")))


def to_tile(b: Build, node: tree.Node, scalar: ir.Expression, dtype: str) -> ir.Expression | None:
    """A scalar in a tile's element type, or None after saying why it cannot be."""
    source = element(scalar.type)
    assert source is not None
    if not stores(source, dtype) or (dtype == "index" and source in REAL_INTEGERS):
        help_ = None
        if source in FLOATS and dtype in INTEGERS:
            help_ = "a float never becomes an integer by itself: convert the tile to a float type, or the scalar"
        elif source in REAL_INTEGERS:
            help_ = "convert it with `i64(..)`, which gives an index"
        b.report(
            "PH104",
            f"a {type_text(scalar.type)} does not combine with a tile of {dtype}",
            node,
            f"the tile computes in {dtype}",
            help=help_,
        )
        return None
    return convert(scalar, dtype)


def shape_of(value: ir.Expression) -> shapes.Shape:
    return value.type.shape if isinstance(value.type, ir.TileT) else ()


def broadcast(b: Build, node: tree.Node, *values: ir.Expression) -> shapes.Shape | None:
    """The shape of an elementwise result; `()` when all are scalars; None after saying that they do not fit."""
    shape: shapes.Shape = ()
    for value in values:
        other = shape_of(value)
        if not other:
            continue
        if not shape:
            shape = other
            continue
        both = shapes.broadcast(shape, other)
        if both is None and b.alone:
            both = shapes.loosely(shape, other)
        if both is None:
            mismatch(b, node, shape, other)
            return None
        shape = both
    return shape


def mismatch(b: Build, node: tree.Node, left: shapes.Shape, right: shapes.Shape) -> None:
    why = (
        "the ranks differ"
        if len(left) != len(right)
        else next(
            (
                f"axis {axis} is {shapes_text(x)} on one side and {shapes_text(y)} on the other"
                for axis, (x, y) in enumerate(zip(left, right, strict=True))
                if x != y and x != 1 and y != 1
            ),
            "",
        )
    )
    b.report(
        "PH105",
        f"the shapes {shape_text(left)} and {shape_text(right)} do not fit together",
        node,
        why,
        help="operands need equal rank, and on each axis equal lengths or a 1",
    )


def shapes_text(length: shapes.Length) -> str:
    return shape_text((length,))[1:-1]


def by_zero(b: Build, right: ir.Expression) -> None:
    """An integer division by a constant 0 (PH117), or by a constant that may be 0 (PH403)."""
    divisor = right.operand if isinstance(right, ir.Convert) else right
    if not isinstance(divisor.type, ir.ScalarT) or divisor.type.dtype not in INTEGERS:
        return
    poly = b.poly(divisor)
    if poly.constant == 0:
        b.report(
            "PH117",
            "division by zero",
            divisor.span,
            "this is always 0",
            notes=("an integer division or remainder by 0 is a fault",),
        )
        return
    may_be_zero(b, divisor, "a divisor")


def may_be_zero(b: Build, expression: ir.Expression, role: str) -> None:
    """Say so when an expression is a bare constant in whose list 0 stands."""
    poly = b.poly(expression)
    if len(poly.terms) == 1:
        (monomial,) = poly.terms
        if len(monomial) == 1 and monomial[0][0] == "const":
            from phobos.semantics.build_attributes import zero_constant

            zero_constant(b, b.constants[str(monomial[0][1])], expression.span, role)


def unary(b: Build, node: tree.Unary, operand: ir.Expression) -> ir.Expression:
    if isinstance(operand.type, ir.ErrorT):
        return b.error(node)
    dtype = operand.type.dtype
    wrong = ""
    if node.op == "-" and dtype == "bool":
        wrong = "bool is not a number"
    elif node.op == "!" and dtype != "bool":
        wrong = f"{dtype} is not bool"
    elif node.op == "~" and dtype not in INTEGERS:
        wrong = f"{dtype} is not an integer"
    if wrong:
        b.report("PH104", f"`{node.op}` does not take {type_text(operand.type)}", node, wrong)
        return b.error(node)
    return ir.UnaryOp(b.span(node), b.calls, operand.type, node.op, operand)


def stored(
    b: Build, value: ir.Expression, dtype: str, where: tree.Node, what: str, *, element_of_memory: bool
) -> ir.Expression | None:
    """`value` as it is stored where `dtype` is expected, or None after saying that it cannot be.

    Into memory (tiles and tensors) every integer goes; a variable that is an index takes no real integer.
    """
    source = element(value.type)
    if source is None:
        return value
    if not stores(source, dtype) or (not element_of_memory and dtype == "index" and source in REAL_INTEGERS):
        help_, fix = None, None
        if source in FLOATS and dtype in INTEGERS:
            help_ = (
                f"a float never becomes an integer by itself: `{'i64' if dtype == 'index' else dtype}(..)` truncates"
            )
        elif source in REAL_INTEGERS and dtype == "index":
            help_ = "convert it with `i64(..)`, which gives an index"
            fix = wrap_fix(value.span, "i64")
        elif "bool" in (source, dtype):
            help_ = "nothing converts to or from bool; compare, or choose with `where`"
        b.report(
            "PH104",
            f"cannot store {type_text(value.type)} where {dtype} is expected",
            where,
            f"{what} {dtype}",
            help=help_,
            fix=fix,
        )
        return None
    return convert(value, dtype)


def need_bool(b: Build, condition: ir.Expression, what: str) -> ir.Expression:
    """The condition where it is a bool, else an error after saying so."""
    type_ = condition.type
    if isinstance(type_, ir.ErrorT) or (isinstance(type_, ir.ScalarT) and type_.dtype == "bool"):
        return condition
    help_ = "compare it, as in `x != 0`" if isinstance(type_, ir.ScalarT) else "a condition is one bool for the block"
    b.report(
        "PH104", f"the condition of `{what}` must be a bool", condition.span, f"this is {type_text(type_)}", help=help_
    )
    return ir.Error(condition.span, condition.calls, ERROR)


def need_index(b: Build, value: ir.Expression, what: str, code: str = "PH104") -> bool:
    """Whether a value can stand where an index is needed; says why not (real integers are always PH104)."""
    type_ = value.type
    if isinstance(type_, ir.ErrorT):
        return False
    if isinstance(type_, ir.ScalarT) and type_.dtype == "index":
        return True
    if is_real_integer(type_):
        b.report(
            "PH104",
            f"{what} must be an index, and this is a {type_text(type_)}",
            value.span,
            type_text(type_),
            notes=("the result of an atomic, or of i8, u8 or i32, is a real integer",),
            help="convert it with `i64(..)`, which gives an index",
            fix=wrap_fix(value.span, "i64"),
        )
    else:
        b.report(
            code,
            f"{what} must be an integer",
            value.span,
            f"this is {type_text(type_)}",
            help="convert it with `i64(..)`" if isinstance(type_, ir.ScalarT) and type_.dtype in FLOATS else None,
        )
    return False
