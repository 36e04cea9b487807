"""Written types to types: element names, dimensions, and the parameters of an item."""

from __future__ import annotations

from collections.abc import Sequence

from phobos.diagnostic import Edit, Fix, Related
from phobos.language.near import nearest
from phobos.language.scalars import INTEGERS, SCALARS
from phobos.semantics import ir
from phobos.semantics.build_broken import is_broken
from phobos.semantics.build_context import Build
from phobos.semantics.names import Meaning
from phobos.semantics.poly import Poly
from phobos.semantics.shapes import Length
from phobos.semantics.types import ERROR, scalar_type, tensor_text
from phobos.syntax import tree


def element_name(b: Build, node: tree.ScalarType) -> str | None:
    """The scalar type a node names, or None after saying that there is no such type."""
    if node.name in SCALARS:
        return node.name
    if not node.name:
        return None
    near = nearest(node.name, SCALARS)
    b.report(
        "PH101",
        f"unknown type `{node.name}`",
        node,
        "not a type",
        help=f"did you mean `{near}`?" if near else "the scalar types are " + ", ".join(f"`{n}`" for n in SCALARS),
        fix=Fix(f"write `{near}`", "unsafe", (Edit(b.span(node), near),)) if near else None,
        root=("type", b.owner, node.start),
    )
    return None


def read_type(dtype: str) -> ir.ScalarT:
    """The type of a scalar read from a parameter or an element: every integer is an index."""
    return scalar_type("index" if dtype in INTEGERS else dtype)


def tile_type(b: Build, node: tree.TileType) -> ir.Type:
    """A declared tile type; every dimension must be known when compiled (PH109)."""
    dtype = element_name(b, node.element)
    shape: list[Length] = []
    for dim in node.dims:
        length = tile_dimension(b, dim)
        if length is None:
            dtype = None
        else:
            shape.append(length)
    return ERROR if dtype is None else ir.TileT(dtype, tuple(shape))


def tile_dimension(b: Build, dim: tree.Name | tree.Int) -> Length | None:
    if isinstance(dim, tree.Int):
        if dim.value < 1:
            b.report(
                "PH109",
                "a tile needs at least one element on each axis",
                dim,
                f"{dim.value} elements",
                help="write a positive length",
            )
            return None
        return dim.value
    known, meaning = b.scope.find(dim.text)
    if not known:
        undefined(b, dim, "a constant")
        return None
    b.used.add(meaning)
    if meaning is None:
        return None
    if isinstance(meaning, int):
        return meaning
    b.nodes.setdefault(dim, meaning)
    what = "not known when compiled"
    match meaning:
        case ir.Constant():
            from phobos.semantics.build_attributes import zero_constant

            zero_constant(b, meaning, b.span(dim), "a dimension")
            return meaning.value if meaning.value > 0 else None
        case ir.Dim():
            if b.alone:
                return Poly.atom("dim", meaning.name)
            what = f"an extent of `{meaning.tensor}`, known only at launch"
        case ir.ScalarParam():
            if b.alone:
                return Poly.atom("param", meaning.name)
            what = "a parameter, known only at launch"
        case ir.Variable():
            if isinstance(meaning.type, ir.ErrorT):
                return None
            if isinstance(meaning.type, ir.ScalarT) and meaning.kind in ("let", "temp"):
                number = b.at_constants(b.known.get(meaning, Poly.atom("value", 0))).constant
                if number is not None and number > 0:
                    return number
                if b.alone and meaning.type.dtype == "index":
                    return b.length(b.known.get(meaning, Poly.atom("value", b.fresh())))
            what = "a value of the run"
        case ir.Tensor():
            what = "a tensor"
    b.report(
        "PH109",
        f"the tile dimension `{dim.text}` is not a compile-time constant",
        dim,
        what,
        help=f"write a literal, or declare a constant with `@autotune({dim.text}_TILE in [64])`"
        if isinstance(meaning, ir.Dim)
        else "write a literal, or a name that `@autotune` declares",
    )
    return None


def meaning_of(b: Build, name: tree.Name) -> Meaning:
    """What a name stands for where no value is wanted; None where nothing more is to be said."""
    known, meaning = b.scope.find(name.text)
    if not known:
        undefined(b, name)
        return None
    b.used.add(meaning)
    b.nodes.setdefault(name, meaning)
    return None if isinstance(meaning, ir.Variable) and isinstance(meaning.type, ir.ErrorT) else meaning


def undefined(b: Build, name: tree.Name, wanted: str = "") -> None:
    """A name that nothing defines (PH101), told once for each name of an item."""
    if b.lost is None or name.text in b.lost:
        return
    known = {*b.scope.all(), "ctx"} if wanted == "a member" else set(b.scope.all())
    near = nearest(name.text, known)
    b.report(
        "PH101",
        f"`{name.text}` is not defined",
        name,
        "nothing of this name is in scope here",
        help=f"did you mean `{near}`?" if near else _hint(name.text, wanted),
        fix=Fix(f"write `{near}`", "unsafe", (Edit(b.span(name), near),)) if near else None,
        root=("undefined", b.owner, name.text),
    )


def _hint(name: str, wanted: str) -> str | None:
    from phobos.language.builtins import CORE

    if name in CORE:
        return f"`{name}` is a built-in; call it: `{CORE[name].signature}`"
    if wanted == "a constant":
        return f"declare it with `@autotune({name} in [64])`, or write a number"
    from phobos.language.elsewhere import NAMES, instead_of

    return instead_of(name, NAMES)


# --- the parameters of a kernel, or of a function analysed by itself -----------------------------------


def parameters_of(b: Build, params: Sequence[tree.Param]) -> tuple[ir.Tensor | ir.ScalarParam, ...]:
    """Tensors, scalars and symbols of an item, bound in the current scope."""
    made: list[ir.Tensor | ir.ScalarParam] = []
    seen: dict[str, tree.Param] = {}
    for param in params:
        name = param.name.text
        if name and name in seen:
            b.report(
                "PH102",
                f"two parameters are called `{name}`",
                param.name,
                "defined again here",
                related=(Related(b.span(seen[name].name), "first defined here"),),
                help="rename one of them",
            )
            continue
        seen[name] = param
        if b.item is not None and b.item.problems and is_broken(param, b.item):
            b.scope.names[name] = None
            continue
        match param.type:
            case tree.ScalarType() as node:
                dtype = element_name(b, node)
                if dtype is None:
                    b.scope.names[name] = None
                    continue
                scalar = ir.ScalarParam(name, dtype, b.span(param.name), param)
                b.params[name] = scalar
                b.scope.names[name] = scalar
                b.nodes[param] = b.nodes[param.name] = scalar
                made.append(scalar)
            case tree.TensorType() as node:
                tensor = _tensor(b, param, node)
                if tensor is None:
                    b.scope.names[name] = None
                    continue
                b.tensors[name] = tensor
                b.scope.names[name] = tensor
                b.nodes[param] = b.nodes[param.name] = tensor
                made.append(tensor)
            case tree.TileType() as node:
                if not b.alone:
                    b.report(
                        "PH104",
                        f"a kernel cannot take the tile `{name}`",
                        param.type,
                        "tiles belong to one block",
                        help="take a tensor, and read a tile from it in the body",
                    )
                    b.scope.names[name] = None
                    continue
                b.taken.append((param, node))
    _bind_extents(b)
    for param, tile in b.taken:
        _own_tile(b, param, tile)
    return tuple(made)


def _bind_extents(b: Build) -> None:
    """Extents by their names, which a parameter of the same value may have, too."""
    for name, dim in b.dims.items():
        scalar_param = b.params.get(name)
        if scalar_param is None:
            if not isinstance(b.scope.names.get(name), ir.Tensor):
                b.scope.names[name] = dim
            continue
        b.used.add(scalar_param)
        if scalar_param.dtype not in INTEGERS:
            b.report(
                "PH104",
                f"`{name}` is an extent of `{dim.tensor}`, so it cannot be {scalar_param.dtype}",
                scalar_param.param.type,
                f"{scalar_param.dtype}",
                related=(Related(dim.span, "the extent"),),
                help="make it i32 or i64, or rename it",
            )
        b.scope.names[name] = dim


def _tensor(b: Build, param: tree.Param, node: tree.TensorType) -> ir.Tensor | None:
    dtype = element_name(b, node.element)
    extents: list[int | ir.Dim | ir.Constant] = []
    for axis, dim in enumerate(node.dims):
        if isinstance(dim, tree.Int):
            if dim.value < 1:
                b.report(
                    "PH104",
                    "an extent must be positive",
                    dim,
                    f"{dim.value} elements",
                    help="write a positive number, or a name",
                )
            extents.append(dim.value)
        elif dim.text in b.constants:
            constant = b.constants[dim.text]
            from phobos.semantics.build_attributes import zero_constant

            zero_constant(b, constant, b.span(dim), "an extent")
            b.used.add(constant)
            b.nodes[dim] = constant
            extents.append(constant)
        else:
            bound = b.dims.get(dim.text)
            if bound is None:
                bound = b.dims[dim.text] = ir.Dim(dim.text, param.name.text, axis, b.span(dim))
            b.nodes[dim] = bound
            extents.append(bound)
    if dtype is None:
        return None
    return ir.Tensor(param.name.text, dtype, tuple(extents), b.span(param.name), param)


def _own_tile(b: Build, param: tree.Param, node: tree.TileType) -> None:
    """A tile parameter of a function analysed by itself: its symbols are its own, its value is unknown."""
    for axis, dim in enumerate(node.dims):
        if isinstance(dim, tree.Name) and not b.scope.find(dim.text)[0]:
            symbol = b.dims[dim.text] = ir.Dim(dim.text, param.name.text, axis, b.span(dim))
            b.scope.names[dim.text] = symbol
            b.nodes[dim] = symbol
    made = b.variable(param.name.text, "let", tile_type(b, node), b.span(param.name))
    b.scope.names[param.name.text] = made
    b.nodes[param] = b.nodes[param.name] = made
    b.out.append(ir.Define(b.span(param), b.calls, made, ir.Error(b.span(param), b.calls, made.type)))


def same_tensor(tensor: ir.Tensor) -> str:
    return f"`{tensor.name}` is {tensor_text(tensor)}"
