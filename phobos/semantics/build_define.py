"""`let` and `var`: values, views and tiles; annotations enforced; names bound."""

from __future__ import annotations

from phobos.diagnostic import Related
from phobos.language.scalars import INTEGERS, REAL_INTEGERS
from phobos.semantics import ir
from phobos.semantics.build_context import Build, Declared
from phobos.semantics.build_numbers import truth
from phobos.semantics.build_stores import fill, scalar_stored
from phobos.semantics.build_subscripts import access, bare, load, need_static
from phobos.semantics.build_types import element_name, read_type, tile_type
from phobos.semantics.types import ERROR, element, is_index, is_real_integer, scalar_type, type_text
from phobos.syntax import tree


def define(b: Build, node: tree.Let | tree.Var) -> None:
    is_let = isinstance(node, tree.Let)
    value_node = node.value
    declared: ir.Type | None = None
    wraps: str | None = None
    match node.type:
        case tree.ScalarType() as written:
            dtype = element_name(b, written)
            declared = ERROR if dtype is None else read_type(dtype)
            wraps = dtype
        case tree.TileType() as written_tile:
            declared = tile_type(b, written_tile)
        case tree.TensorType():
            b.report(
                "PH104",
                f"`{node.name.text}` cannot be a tensor",
                node.type,
                "tensors are parameters only",
                help="declare a tile: `tile<..>[..]`",
            )
            declared = ERROR
    if is_let and declared is None and value_node is not None and _view(b, node, value_node):
        return
    value = None if value_node is None else b.value(value_node)
    type_ = _declared_type(declared, wraps, value)
    if value is not None and declared is not None:
        value = _fit(b, node, type_, wraps, value)
        if value is None:
            value = ir.Error(b.span(node), b.calls, type_)
    elif value is not None and isinstance(value.type, ir.TileT) and value_node is not None:
        if not need_static(b, value, value_node, f"the tile `{node.name.text}`"):
            type_ = ERROR
    elif value is None and not isinstance(type_, ir.TileT | ir.ErrorT):
        b.report(
            "PH104",
            f"`{node.name.text}` has no value",
            node.name,
            f"only a tile may lack one, not {wraps}",
            help=f"give it one: `var {node.name.text}: {wraps} = ...`",
        )
        type_ = ERROR
    made = b.variable(node.name.text, "let" if is_let else "var", type_, b.span(node.name))
    _note(b, made, node)
    if wraps in INTEGERS and isinstance(type_, ir.ScalarT):
        b.wraps[made] = wraps
    if value is not None:
        know(b, made, value)
    b.out.append(ir.Define(b.span(node), b.calls, made, value))
    _name(b, node.name, made)


def _declared_type(declared: ir.Type | None, wraps: str | None, value: ir.Expression | None) -> ir.Type:
    if declared is None:
        return ERROR if value is None else value.type
    if value is not None and wraps in REAL_INTEGERS and is_real_integer(value.type):
        return scalar_type(wraps)  # an integer annotation wraps to its width and keeps the kind of its value
    return declared


def _fit(
    b: Build, node: tree.Let | tree.Var, type_: ir.Type, wraps: str | None, value: ir.Expression
) -> ir.Expression | None:
    """A value as the annotation wants it."""
    if isinstance(type_, ir.ErrorT) or isinstance(value.type, ir.ErrorT):
        return value
    assert node.value is not None
    if isinstance(type_, ir.TileT):
        return fill(b, type_, value, node.value, f"`{node.name.text}` holds")
    if isinstance(value.type, ir.TileT):
        b.report(
            "PH104",
            f"a tile cannot be a {wraps}",
            node.value,
            f"this is {type_text(value.type)}",
            help="leave the annotation out, or declare a tile type",
        )
        return None
    return scalar_stored(b, type_, wraps, value, node.value, f"`{node.name.text}` is")


def _view(b: Build, node: tree.Let | tree.Var, value_node: tree.Expr) -> bool:
    """`let v = A[slices]`: a view. False where the value is something else."""
    inner = bare(value_node)
    if not isinstance(inner, tree.Subscript) or all(isinstance(i, tree.Point) for i in inner.subscripts):
        return False
    made_access = access(b, inner)
    type_: ir.Type = ERROR
    if made_access is not None:
        value = load(b, inner, made_access)
        b.nodes.setdefault(value_node, value)
        type_ = value.type
    kind = "view" if made_access is not None else "let"
    made = b.variable(node.name.text, kind, type_, b.span(node.name))
    _note(b, made, node)
    if made_access is None:
        b.out.append(ir.Define(b.span(node), b.calls, made, b.error(value_node)))
    else:
        b.views[made] = made_access
        b.out.append(ir.DefineView(b.span(node), b.calls, made, made_access))
    _name(b, node.name, made)
    return True


def _note(b: Build, made: ir.Variable, node: tree.Node) -> None:
    b.declared[made] = Declared(node, b.owner)


def know(b: Build, made: ir.Variable, value: ir.Expression) -> None:
    if (is_index(made.type) and is_index(value.type)) or (
        isinstance(made.type, ir.ScalarT) and made.type.dtype in INTEGERS and element(value.type) in INTEGERS
    ):
        b.known[made] = b.poly(value)
    elif made.kind == "let" and isinstance(made.type, ir.ScalarT) and made.type.dtype == "bool":
        known = truth(b, value, constants=False)
        if known is not None:
            b.truths[made] = known


def _name(b: Build, name: tree.Name, made: ir.Variable) -> None:
    b.nodes.setdefault(name, made)
    if not name.text:
        return
    before = b.scope.names.get(name.text)
    if isinstance(before, ir.Variable) and not b.calls and before.kind != "loop":
        b.report(
            "PH102",
            f"`{name.text}` is defined again in the same scope",
            name,
            "hides the first",
            severity="warning",
            related=(Related(before.span, "first defined here"),),
            help="assign to it, or choose another name",
        )
        b.redefined.add(before)
    b.scope.names[name.text] = made
