"""Subscripts: `A[i, j]` is an element, `A[a :+ n, :]` a slice; counts, kinds, lengths, places surely outside."""

from __future__ import annotations

from collections.abc import Iterator

from phobos.diagnostic import Edit, Fix, Related
from phobos.semantics import ir
from phobos.semantics.build_context import Build
from phobos.semantics.build_numbers import ZERO
from phobos.semantics.build_operators import may_be_zero, need_index
from phobos.semantics.build_types import read_type, undefined
from phobos.semantics.poly import Poly
from phobos.semantics.shapes import Length, is_static
from phobos.semantics.types import INDEX, length_text, poly_text, tensor_text, type_text
from phobos.syntax import tree

Base = ir.Tensor | ir.Variable


def bare(node: tree.Expr) -> tree.Expr:
    """An expression without the parentheses around it."""
    while isinstance(node, tree.Paren):
        node = node.inner
    return node


def _mention(b: Build, node: tree.Node) -> None:
    """The names in an expression that is no base are read there: that they are never read would be another mistake."""
    waiting: list[object] = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, tree.Name):
            b.used.add(b.scope.find(one.text)[1])
        elif isinstance(one, tuple):
            waiting.extend(one)
        elif isinstance(one, tree.Node):
            waiting.extend(getattr(one, name) for name in getattr(type(one), "__slots__", ()))


def base_of(b: Build, node: tree.Subscript, *, storing: bool) -> Base | None:
    """The tensor or tile that is subscripted, or None after saying what is wrong with it.

    To be stored to is no use of a local tile.
    """
    base = bare(node.base)
    if not isinstance(base, tree.Name):
        _mention(b, base)
        if isinstance(base, tree.Subscript):
            b.report(
                "PH106",
                "a subscripted value cannot be subscripted again",
                node,
                "a second pair of brackets",
                help="write all subscripts in one pair: `A[i, j]`",
            )
        elif not isinstance(base, tree.Missing):
            owner = bare(base.base) if isinstance(base, tree.Member) else None
            of_tensor = isinstance(owner, tree.Name) and isinstance(b.scope.find(owner.text)[1], ir.Tensor)
            b.report(
                "PH106",
                "only tensors and tiles can be subscripted",
                base,
                "this is a value",
                help="`extent(X, axis)` is the size of a tensor, which has no members"
                if of_tensor
                else "put it in a tile first: `var t = ...`, then subscript `t`",
            )
        return None
    known, meaning = b.scope.find(base.text)
    if not known:
        undefined(b, base)
        return None
    b.used.add(("changed", meaning) if storing and isinstance(meaning, ir.Variable) else meaning)
    b.nodes.setdefault(base, meaning)
    match meaning:
        case ir.Tensor():
            return meaning
        case ir.Variable(type=ir.TileT(), kind="view") if not storing:
            b.report(
                "PH106",
                f"`{base.text}` is a view, and a view is not subscripted again",
                node,
                "subscripts of a view",
                related=(Related(meaning.span, "a `let` of a slice is a view"),),
                help=f"subscript the tensor itself, or copy the slice: `var {base.text} = ...`",
            )
            return None
        case ir.Variable(type=ir.TileT()):
            return meaning
        case ir.Variable(type=ir.ErrorT()) | None:
            return None
        case ir.Variable(type=type_):
            what = type_text(type_)
        case ir.ScalarParam():
            what = f"the scalar parameter {meaning.dtype}"
        case _:
            what = "an index"
    b.report(
        "PH106",
        f"`{base.text}` cannot be subscripted",
        base,
        f"this is {what}",
        help="only tensors and tiles have elements",
    )
    return None


def extents_of(b: Build, base: Base) -> tuple[Length, ...]:
    if isinstance(base, ir.Tensor):
        return tuple(b.extent(extent) for extent in base.extents)
    assert isinstance(base.type, ir.TileT)
    return base.type.shape


def extent_expression(b: Build, node: tree.Node, base: Base, axis: int) -> ir.Expression:
    """The length of an axis as an expression."""
    span = b.span(node)
    extent = base.extents[axis] if isinstance(base, ir.Tensor) else extents_of(b, base)[axis]
    if isinstance(extent, ir.Dim):
        return ir.DimRef(span, b.calls, INDEX, extent)
    if isinstance(extent, ir.Constant):
        return ir.ConstantRef(span, b.calls, INDEX, extent)
    if isinstance(extent, int):
        return ir.IntLiteral(span, b.calls, INDEX, extent)
    made = ir.Error(span, b.calls, INDEX)
    b.polys[made] = extent
    return made


def access(b: Build, node: tree.Subscript, *, storing: bool = False) -> ir.Access | None:
    """The cells that a subscript names, or None after saying why it names none. Evaluates its parts in order."""
    base = base_of(b, node, storing=storing)
    parts: list[tree.Expr] = []
    for index in node.subscripts:
        match index:
            case tree.Point(value=value):
                parts.append(value)
            case tree.SpanOf(first=first, length=length):
                parts += (first, length)
            case tree.Range(lo=lo, hi=hi):
                parts += [end for end in (lo, hi) if end is not None]
    values = iter(b.in_order(parts))
    if base is None:
        return None
    extents = extents_of(b, base)
    count = len(node.subscripts)
    if count != len(extents):
        _count(b, node, base, count, len(extents))
        return None
    points = sum(isinstance(index, tree.Point) for index in node.subscripts)
    if points and points != count:
        point = next(index for index in node.subscripts if isinstance(index, tree.Point))
        b.report(
            "PH106",
            "points and slices are mixed in one subscript",
            node,
            "some axes are points, some are slices",
            related=(Related(b.span(point), "a point"),),
            help="write a point as a slice of one: `i :+ 1`",
            fix=Fix(
                "make the points slices of one",
                "unsafe",
                tuple(
                    Edit(b.place(index.end, index.end), " :+ 1")
                    for index in node.subscripts
                    if isinstance(index, tree.Point)
                ),
            ),
        )
        return None
    subs: list[ir.Sub] = []
    right = True
    for axis, index in enumerate(node.subscripts):
        sub = _sub(b, index, base, axis, values)
        if sub is None:
            right = False
        else:
            subs.append(sub)
    if not right:
        return None
    made = ir.Access(b.span(node), b.calls, base, tuple(subs))
    b.nodes.setdefault(node, made)
    for axis, (sub, index) in enumerate(zip(subs, node.subscripts, strict=True)):
        _inside(b, index, base, axis, sub, extents[axis])
    return made


def _count(b: Build, node: tree.Subscript, base: Base, count: int, rank: int) -> None:
    what = tensor_text(base) if isinstance(base, ir.Tensor) else type_text(base.type)
    b.report(
        "PH106",
        f"`{base.name}` has {_axes(rank)}, and {count} subscript{'s stand' if count != 1 else ' stands'} here",
        node,
        f"{count} of {rank}",
        related=(Related(base.span, f"{what}"),),
        help="give one subscript for each dimension; `:` takes a whole one",
    )


def _axes(rank: int) -> str:
    return f"{rank} dimension{'s' if rank != 1 else ''}"


def _sub(b: Build, index: tree.Index, base: Base, axis: int, values: Iterator[ir.Expression]) -> ir.Sub | None:
    match index:
        case tree.Point():
            point = next(values)
            return ir.PointSub(point) if need_index(b, point, "a subscript", "PH106") else None
        case tree.SpanOf():
            start, length = next(values), next(values)
            right = need_index(b, start, "the start of a slice", "PH106")
            if not (need_index(b, length, "the length of a slice", "PH106") and right):
                return None
            poly = b.poly(length)
            may_be_zero(b, length, "a length")
            return _slice(b, index, start, length, poly, whole=False)
        case tree.Range(lo=None, hi=None):
            length = extent_expression(b, index, base, axis)
            zero = ir.IntLiteral(b.place(index.start, index.start), b.calls, INDEX, 0)
            return _slice(b, index, zero, length, b.poly(length), whole=True)
    assert isinstance(index, tree.Range)
    first = next(values) if index.lo is not None else None
    last = next(values) if index.hi is not None else None
    right = True
    for end in (first, last):
        if end is not None and not need_index(
            b, end, "the end of a slice" if end is last else "the start of a slice", "PH106"
        ):
            right = False
    if not right:
        return None
    if first is None:
        assert last is not None
        zero = ir.IntLiteral(b.place(index.start, index.start), b.calls, INDEX, 0)
        return _slice(b, index, zero, last, b.poly(last), whole=False)
    if last is None:
        last = extent_expression(b, index, base, axis)
    poly = b.poly(last) - b.poly(first)
    if b.poly(first).constant == 0:
        return _slice(b, index, first, last, poly, whole=False)
    length = ir.BinaryOp(b.span(index), b.calls, INDEX, "-", last, first)
    b.polys[length] = poly
    return _slice(b, index, first, length, poly, whole=False)


def _slice(
    b: Build, index: tree.Index, first: ir.Expression, length: ir.Expression, poly: Poly, *, whole: bool
) -> ir.SliceSub | None:
    static = b.at_constants(poly).constant
    if static is not None and static < 1:
        if poly.constant is None:
            static = None  # a constant that may be 0 has been reported; other lengths depend on the constants
        else:
            b.report(
                "PH106",
                "a slice needs at least one element",
                index,
                f"its length is {static}",
                help="the end of `s : e` is not included; `s :+ n` gives n elements",
            )
            return None
    if static is not None and not isinstance(length, ir.IntLiteral) and poly.constant is not None:
        length = ir.IntLiteral(length.span, length.calls, INDEX, static)
    return ir.SliceSub(first, length, static, whole)


def shape_of(b: Build, made: ir.Access) -> tuple[Length, ...]:
    """The shape of a slice."""
    return tuple(
        sub.static if sub.static is not None else b.length(b.poly(sub.length))
        for sub in made.subs
        if isinstance(sub, ir.SliceSub)
    )


def load(b: Build, node: tree.Subscript, made: ir.Access) -> ir.Load:
    """Reading an access: a scalar for points, a tile for slices."""
    dtype = made.base.dtype if isinstance(made.base, ir.Tensor) else made.base.type.dtype  # type: ignore[union-attr]
    type_: ir.Type = read_type(dtype) if made.is_point else ir.TileT(dtype, shape_of(b, made))
    return ir.Load(b.span(node), b.calls, type_, made)


def _inside(b: Build, index: tree.Index, base: Base, axis: int, sub: ir.Sub, extent: Length) -> None:
    """Say so when a point, or a whole slice, is outside whatever the run does (PH115)."""
    if isinstance(sub, ir.PointSub):
        at = b.length(b.poly(sub.index))
        if isinstance(at, int) and (at < 0 or (isinstance(extent, int) and at >= extent)):
            _outside(b, index, base, axis, f"element {at}", extent, "PH115")
        elif isinstance(at, Poly) and isinstance(extent, Poly) and _never_below(at - extent):
            _outside(b, index, base, axis, f"element {poly_text(at)}", extent, "PH115")
        return
    if sub.whole:
        return
    first = b.length(b.poly(sub.first))
    if isinstance(first, int):
        if isinstance(extent, int) and first >= extent:
            _outside(b, index, base, axis, f"the slice starts at {first}, so all of it", extent, "PH115")
        elif sub.static is not None and first + sub.static <= 0:
            _outside(b, index, base, axis, f"the slice ends at {first + sub.static}, so all of it", extent, "PH115")
    elif isinstance(extent, Poly) and _never_below(first - extent):
        _outside(b, index, base, axis, f"the slice starts at {poly_text(first)}, so all of it", extent, "PH115")


def _never_below(difference: Length | Poly) -> bool:
    """Whether a difference is a constant that is not negative."""
    poly = difference if isinstance(difference, Poly) else ZERO + difference
    constant = poly.constant
    return constant is not None and constant >= 0


def _outside(b: Build, index: tree.Index, base: Base, axis: int, what: str, extent: Length, code: str) -> None:
    b.report(
        code,
        f"{what} is outside `{base.name}`, whose axis {axis} has {length_text(extent)} elements",
        index,
        "never inside",
        related=(Related(base.span, f"`{base.name}` is declared here"),),
    )


def need_static(b: Build, value: ir.Expression, where: tree.Node, what: str) -> bool:
    """Whether all lengths of a tile are known when compiled; says that they must be (PH106)."""
    if not isinstance(value.type, ir.TileT) or is_static(value.type.shape) or b.alone:
        return True
    runtime = next(length for length in value.type.shape if not isinstance(length, int))
    b.report(
        "PH106",
        f"{what} needs lengths known when compiled",
        where,
        f"one length is `{length_text(runtime)}`, known only at launch",
        notes=("a runtime length may stand as K of `dot` or `dot_t`, or on both sides of an elementwise statement",),
        help="walk the extent in tiles of a constant length: `for k in range(0, N, 64)` with `k :+ 64`",
    )
    return False
