"""Assignment: to a whole variable, to cells of a tensor or tile; what may be assigned, and as what."""

from __future__ import annotations

from phobos.diagnostic import Edit, Fix, Related, Span
from phobos.language.scalars import INTEGERS
from phobos.semantics import ir
from phobos.semantics.build_context import Build
from phobos.semantics.build_numbers import unknown
from phobos.semantics.build_operators import (
    binary,
    convert,
    stored,
    to_tile,
)
from phobos.semantics.build_stores import fill, same_shape, scalar_stored
from phobos.semantics.build_subscripts import access, bare, load
from phobos.semantics.build_types import undefined
from phobos.semantics.names import Meaning
from phobos.semantics.types import element, is_index, shape_text, type_text
from phobos.syntax import tree


def assign(b: Build, node: tree.Assign) -> None:
    op = None if node.op == "=" else node.op[:-1]
    if isinstance(node.target, tree.Name):
        _assign_name(b, node, node.target, op)
    elif isinstance(node.target, tree.Subscript):
        _assign_cells(b, node, node.target, op)
    else:  # the parser has said that this cannot be assigned
        b.value(node.target)
        b.value(node.value)
        b.out.append(ir.Evaluate(b.span(node), b.calls, b.error(node)))


def _assign_name(b: Build, node: tree.Assign, target: tree.Name, op: str | None) -> None:
    known, meaning = b.scope.find(target.text)
    mark = len(b.out)
    value = b.value(node.value)
    if not known:
        undefined(b, target)
        return
    if meaning is not None and not isinstance(meaning, int):
        b.nodes.setdefault(target, meaning)
    b.used.add(("changed", meaning))
    if not isinstance(meaning, ir.Variable) or meaning.kind != "var":
        if meaning is not None and not (isinstance(meaning, ir.Variable) and isinstance(meaning.type, ir.ErrorT)):
            _immutable(b, target, meaning)
        return
    type_ = meaning.type
    if isinstance(type_, ir.ErrorT) or isinstance(value.type, ir.ErrorT):
        b.out.append(ir.Assign(b.span(node), b.calls, meaning, op, value))
        if meaning in b.known:
            b.known[meaning] = unknown(b, meaning)
        return
    if isinstance(type_, ir.TileT):
        made = _assign_tile(b, node, meaning, type_, op, value)
    else:
        made = _assign_scalar(b, node, target, meaning, type_, op, value, mark)
    # What does not fit is stored as an error, so that a tile does not count as never written.
    b.out.append(made or ir.Assign(b.span(node), b.calls, meaning, None, b.error(node.value)))


def _assign_tile(
    b: Build, node: tree.Assign, variable: ir.Variable, type_: ir.TileT, op: str | None, value: ir.Expression
) -> ir.Assign | None:
    what = f"`{variable.name}` holds"
    if op is None:
        filled = fill(b, type_, value, node.value, what)
        return None if filled is None else ir.Assign(b.span(node), b.calls, variable, None, filled)
    current = ir.VariableRef(b.span(node.target), b.calls, type_, variable)
    combined = _combined(b, node, op, current, type_, value, what)
    return None if combined is None else ir.Assign(b.span(node), b.calls, variable, *combined)


def _combined(
    b: Build, node: tree.Assign, op: str, current: ir.Expression, type_: ir.TileT, value: ir.Expression, what: str
) -> tuple[str | None, ir.Expression] | None:
    """`tile op= value` as (op, value) where both have the tile's element type, else as (None, the whole right side)."""
    if op == "+" and isinstance(value, ir.BuiltinCall) and value.name in ("dot", "dot_t"):
        # `tile += dot(..)` accumulates in the tile, whatever its type.
        if isinstance(value.type, ir.TileT) and not same_shape(b, type_.shape, value.type.shape, node.value):
            return None
        return op, convert(value, type_.dtype)
    if isinstance(value.type, ir.ScalarT):
        brought = to_tile(b, node, value, type_.dtype)
        if brought is None:
            return None
        value = brought
    whole = binary(b, node, op, current, value)
    if not isinstance(whole, ir.BinaryOp):
        return None
    assert isinstance(whole.type, ir.TileT)
    if not same_shape(b, type_.shape, whole.type.shape, node.value):
        return None
    if element(whole.right.type) == type_.dtype and whole.left is current:
        return op, whole.right
    fitted = stored(b, whole, type_.dtype, node.value, what, element_of_memory=True)
    return None if fitted is None else (None, fitted)


def _assign_scalar(
    b: Build,
    node: tree.Assign,
    target: tree.Name,
    variable: ir.Variable,
    type_: ir.ScalarT,
    op: str | None,
    value: ir.Expression,
    mark: int,
) -> ir.Assign | None:
    if isinstance(value.type, ir.TileT):
        b.report(
            "PH104",
            f"a tile cannot be stored in the {type_.dtype} `{variable.name}`",
            node.value,
            f"this is {type_text(value.type)}",
            related=(Related(variable.span, f"`{variable.name}` is a scalar"),),
        )
        return None
    whole = value
    if op is not None:
        current: ir.Expression = ir.VariableRef(b.span(target), b.calls, type_, variable)
        if len(b.out) > mark:
            (current,) = b.keep([current], mark)
        whole = binary(b, node, op, current, value)
        if not isinstance(whole, ir.BinaryOp):
            return None
    wraps = b.wraps.get(variable)
    fitted = scalar_stored(b, type_, wraps, whole, node.value, f"`{variable.name}` is")
    if fitted is None:
        return None
    if is_index(type_) or type_.dtype in INTEGERS:
        b.known[variable] = b.poly(fitted)
    if (
        op is not None
        and fitted is whole
        and isinstance(whole, ir.BinaryOp)
        and isinstance(whole.left, ir.VariableRef)
        and whole.left.variable is variable
    ):
        return ir.Assign(b.span(node), b.calls, variable, op, whole.right)
    return ir.Assign(b.span(node), b.calls, variable, None, fitted)


def _immutable(b: Build, target: tree.Name, meaning: Meaning) -> None:
    name = target.text
    if isinstance(meaning, ir.Tensor):
        b.report(
            "PH108",
            f"the tensor `{name}` is assigned as a whole",
            target,
            "a tensor's name alone is not a value",
            related=(Related(meaning.span, "a tensor parameter"),),
            help=f"store into its elements: `{name}[..] = ...`",
        )
        return
    b.used.add(meaning)  # one mistake: that it is never read would be another
    what, help_, fix = "an extent", None, None
    related: tuple[Related, ...] = ()
    match meaning:
        case ir.Variable(kind="loop"):
            what, help_ = "a loop variable", "assign to a `var` of its own"
            related = (Related(meaning.span, "the loop sets it in every round"),)
        case ir.Variable(kind=kind):
            declared = b.declared.get(meaning)
            if declared is None:
                what, help_ = "a parameter", f"copy it first: `var {name}_ = {name}`"
                related = (Related(meaning.span, "passed by value, and read-only"),)
            else:
                what = "a read-only view" if kind == "view" else "defined by `let`"
                related = (Related(meaning.span, "defined here"),)
                help_ = "define it with `var`"
                if isinstance(declared.node, tree.Let):
                    start = declared.node.start
                    fix = Fix(
                        "change `let` to `var`",
                        "unsafe" if kind == "view" else "safe",
                        (Edit(Span(declared.owner, start, start + 3), "var"),),
                    )
        case ir.ScalarParam():
            what, help_ = "a parameter", f"copy it first: `var {name}_ = {name}`"
            related = (Related(meaning.span, "a parameter"),)
        case ir.Constant():
            what = "a compile-time constant"
            related = (Related(meaning.span, "declared here"),)
        case ir.Dim():
            related = (Related(meaning.span, f"an extent of `{meaning.tensor}`"),)
    b.report(
        "PH103",
        f"`{name}` cannot be assigned: it is {what}",
        target,
        "assigned here",
        related=related,
        help=help_,
        fix=fix,
    )


def _assign_cells(b: Build, node: tree.Assign, target: tree.Subscript, op: str | None) -> None:
    made = access(b, target, storing=True)
    mark = len(b.out)
    value = b.value(node.value)
    if made is None:
        _lost_store(b, node, target)
        return
    kept = len(b.out) > mark
    current: ir.Expression | None = None
    if kept:
        count = len(b.out)
        made = _keep_access(b, made, mark)
        if op is not None:  # `X[i] op= e` is `X[i] = X[i] op e`: the element is read before what `e` does
            current = b.temporary(load(b, target, made), mark + len(b.out) - count)
    base = made.base
    if isinstance(base, ir.Variable):
        if base.kind != "var":
            inner = bare(target.base)
            assert isinstance(inner, tree.Name)
            _immutable(b, inner, base)
            return
        assert isinstance(base.type, ir.TileT)
        dtype = base.type.dtype
    else:
        dtype = base.dtype
    if isinstance(value.type, ir.ErrorT):
        b.out.append(ir.Store(b.span(node), b.calls, made, op, value))
        return
    what = f"`{base.name}` holds"
    if current is None:
        current = load(b, target, made)
    fits = (
        _point_store(b, node, current, dtype, op, value, what)
        if made.is_point
        else _slice_store(b, node, current, dtype, op, value, what)
    )
    if fits is not None and kept and fits[0] is not None:
        fits = None, convert(binary(b, node, fits[0], current, fits[1]), dtype)
    # What does not fit is stored as an error, so that the cells do not count as never written.
    b.out.append(ir.Store(b.span(node), b.calls, made, *(fits or (None, b.error(node.value)))))


def _lost_store(b: Build, node: tree.Assign, target: tree.Subscript) -> None:
    """A store whose subscripts are wrong: a tile it may have filled does not count as never written."""
    inner = bare(target.base)
    meaning = b.scope.find(inner.text)[1] if isinstance(inner, tree.Name) else None
    if isinstance(meaning, ir.Variable) and meaning.kind == "var" and isinstance(meaning.type, ir.TileT):
        b.out.append(ir.Assign(b.span(node), b.calls, meaning, None, b.error(node.value)))
    else:
        b.out.append(ir.Evaluate(b.span(node), b.calls, b.error(node)))


def _keep_access(b: Build, made: ir.Access, mark: int) -> ir.Access:
    """The subscripts of a target, read before an effect of the right side."""
    subs: list[ir.Sub] = []
    for sub in made.subs:
        parts = [sub.index] if isinstance(sub, ir.PointSub) else [sub.first, sub.length]
        before = len(b.out)
        kept = b.keep(parts, mark)
        mark += len(b.out) - before
        subs.append(
            ir.PointSub(kept[0])
            if isinstance(sub, ir.PointSub)
            else ir.SliceSub(kept[0], kept[1], sub.static, sub.whole)
        )
    return ir.Access(made.span, made.calls, made.base, tuple(subs))


def _point_store(
    b: Build,
    node: tree.Assign,
    current: ir.Expression,
    dtype: str,
    op: str | None,
    value: ir.Expression,
    what: str,
) -> tuple[str | None, ir.Expression] | None:
    if isinstance(value.type, ir.TileT):
        b.report(
            "PH105",
            f"a tile of shape {shape_text(value.type.shape)} is stored in one element",
            node.value,
            "all subscripts are points",
            help="write slices on the left: `i :+ 1` instead of `i`",
        )
        return None
    if op is None:
        fitted = stored(b, value, dtype, node.value, what, element_of_memory=True)
        return None if fitted is None else (None, fitted)
    whole = binary(b, node, op, current, value)
    if not isinstance(whole, ir.BinaryOp):
        return None
    fitted = stored(b, whole, dtype, node.value, what, element_of_memory=True)
    if fitted is None:
        return None
    same = fitted is whole or (op in ("+", "-", "*") and dtype in INTEGERS)
    if same and whole.left is current and isinstance(current, ir.Load):  # one that is kept is an index, not a cell
        return op, convert(whole.right, dtype)
    return None, fitted


def _slice_store(
    b: Build, node: tree.Assign, current: ir.Expression, dtype: str, op: str | None, value: ir.Expression, what: str
) -> tuple[str | None, ir.Expression] | None:
    type_ = current.type
    assert isinstance(type_, ir.TileT) and type_.dtype == dtype
    if op is None:
        filled = fill(b, type_, value, node.value, what)
        return None if filled is None else (None, filled)
    return _combined(b, node, op, current, type_, value, what)
