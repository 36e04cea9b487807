"""Statements: definitions, stores and control flow, with what may be assigned and what a branch or loop may change."""

from __future__ import annotations

from collections.abc import Sequence

from phobos.diagnostic import Edit, Fix, Related, Span
from phobos.language.builtins import CORE
from phobos.language.scalars import INTEGERS, REAL_INTEGERS, wrap
from phobos.semantics import ir, shapes
from phobos.semantics.build_builtins import atomic, barrier
from phobos.semantics.build_calls import call
from phobos.semantics.build_context import Build, Declared
from phobos.semantics.build_numbers import truth, unknown
from phobos.semantics.build_operators import (
    binary,
    convert,
    may_be_zero,
    need_bool,
    need_index,
    stored,
    to_tile,
)
from phobos.semantics.build_subscripts import access, bare, load, need_static, shape_of
from phobos.semantics.build_types import element_name, read_type, tile_type, undefined
from phobos.semantics.names import Meaning, Scope
from phobos.semantics.types import ERROR, INDEX, element, is_index, shape_text, type_text
from phobos.syntax import tree


def block(b: Build, node: tree.Block) -> bool:
    """The statements of a block in a scope of its own. Whether control can come out at its end."""
    outer, b.scope = b.scope, Scope(b.scope)
    try:
        return statements(b, node)
    finally:
        b.scope = outer


def statements(b: Build, node: tree.Block) -> bool:
    goes_on = True
    for position, inner in enumerate(node.statements):
        if not goes_on:
            _unreachable(b, b.place(inner.start, node.statements[-1].end), node.statements[position - 1])
            b.dead += 1
            for rest in node.statements[position:]:
                statement(b, rest)
            b.dead -= 1
            return False
        goes_on = statement(b, inner)
    return goes_on


def _unreachable(b: Build, span: Span, because: tree.Stmt) -> None:
    if b.calls or b.dead:
        return
    what = {
        tree.Return: "`return` leaves before this",
        tree.Break: "`break` leaves before this",
        tree.Continue: "`continue` goes on before this",
    }.get(type(because), "nothing comes out of the statement before this")
    b.report(
        "PH113",
        "this code is never reached",
        span,
        what,
        severity="warning",
        tags=("unnecessary",),
        help="remove it, or move it up",
    )


def statement(b: Build, node: tree.Stmt) -> bool:
    """One statement. Whether control goes on to the next."""
    if b.assumes:
        for assumed in b.assumes.get(node, ()):
            _assume(b, assumed)
    mark = len(b.out)
    goes_on = True
    match node:
        case tree.Assign():
            _assign(b, node)
        case tree.Let() | tree.Var():
            _define(b, node)
        case tree.ExprStmt():
            _expression(b, node)
        case tree.For():
            goes_on = _for(b, node)
        case tree.If():
            goes_on = _if(b, node)
        case tree.While():
            goes_on = _while(b, node)
        case tree.Return():
            _return(b, node)
            goes_on = False
        case tree.Break() | tree.Continue():
            _leave_loop(b, node)
            goes_on = not b.loops
        case tree.Block():
            goes_on = block(b, node)
        case tree.Broken():
            _broken(b, node)
    if len(b.out) > mark:
        b.nodes.setdefault(node, b.out[-1])
    return goes_on


def _assume(b: Build, node: tree.Expr) -> None:
    value = b.value(node)
    if not isinstance(value, ir.Error):
        b.out.append(ir.AssumeUniform(b.span(node), b.calls, value))


def _broken(b: Build, node: tree.Broken) -> None:
    """What could still be read of a statement that did not parse: its names count as used, nothing is said of it."""
    problems, told = list(b.problems), set(b.told)
    for part in node.parts:
        b.value(part)
    b.problems[:], b.told = problems, told
    b.out.append(ir.Evaluate(b.span(node), b.calls, b.error(node)))


# --- definitions --------------------------------------------------------------------------------------


def _define(b: Build, node: tree.Let | tree.Var) -> None:
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
    type_ = _declared_type(b, node, declared, wraps, value)
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
        _know(b, made, value)
    b.out.append(ir.Define(b.span(node), b.calls, made, value))
    _name(b, node.name, made)


def _declared_type(
    b: Build, node: tree.Let | tree.Var, declared: ir.Type | None, wraps: str | None, value: ir.Expression | None
) -> ir.Type:
    if declared is None:
        return ERROR if value is None else value.type
    if value is not None and wraps in REAL_INTEGERS and isinstance(value.type, ir.ScalarT):
        # An integer annotation wraps to its width and keeps the kind of its value.
        if value.type.dtype in REAL_INTEGERS:
            return ir.ScalarT(wraps)
    return declared


def _fit(
    b: Build, node: tree.Let | tree.Var, type_: ir.Type, wraps: str | None, value: ir.Expression
) -> ir.Expression | None:
    """A value as the annotation wants it."""
    if isinstance(type_, ir.ErrorT) or isinstance(value.type, ir.ErrorT):
        return value
    assert node.value is not None
    if isinstance(type_, ir.TileT):
        return _fill(b, type_, value, node.value, f"`{node.name.text}` holds")
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


def scalar_stored(
    b: Build, type_: ir.ScalarT, wraps: str | None, value: ir.Expression, where: tree.Node, what: str
) -> ir.Expression | None:
    """A scalar as a variable takes it; one with an integer annotation wraps to its width."""
    if wraps is None or wraps not in INTEGERS:
        return stored(b, value, type_.dtype, where, what, element_of_memory=False)
    if element(value.type) in INTEGERS and type_.dtype == "index" and element(value.type) == "index":
        if wraps == "i64":
            return value
        number = b.poly(value).constant
        if number is not None and isinstance(value, ir.IntLiteral) and _fits(number, wraps):
            return value
        return convert(convert(value, wraps), "index")
    return stored(b, value, type_.dtype, where, what, element_of_memory=False)


def _fits(number: int, dtype: str) -> bool:
    return wrap(number, dtype) == number


def _fill(b: Build, type_: ir.TileT, value: ir.Expression, where: tree.Node, what: str) -> ir.Expression | None:
    """A value for all of a tile: a tile of the same shape, or a scalar that fills."""
    if isinstance(value.type, ir.TileT) and not _same_shape(b, type_.shape, value.type.shape, where):
        return None
    return stored(b, value, type_.dtype, where, what, element_of_memory=True)


def _same_shape(b: Build, target: shapes.Shape, source: shapes.Shape, where: tree.Node) -> bool:
    if len(target) == len(source) and all(
        shapes.same(x, y) or (b.alone and shapes.may_agree(x, y)) for x, y in zip(target, source, strict=True)
    ):
        return True
    broadcasts = shapes.broadcast(target, source) == target
    b.report(
        "PH105",
        f"a value of shape {shape_text(source)} is stored where {shape_text(target)} is expected",
        where,
        f"{shape_text(source)}, not {shape_text(target)}",
        help="a store does not broadcast: combine it with a tile of the full shape first"
        if broadcasts
        else "a whole store needs equal shapes, or a scalar",
    )
    return False


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


def _know(b: Build, made: ir.Variable, value: ir.Expression) -> None:
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


# --- assignment ---------------------------------------------------------------------------------------


def _assign(b: Build, node: tree.Assign) -> None:
    op = None if node.op == "=" else node.op[:-1]
    if isinstance(node.target, tree.Name):
        _assign_name(b, node, node.target, op)
    else:
        _assign_cells(b, node, node.target, op)


def _assign_name(b: Build, node: tree.Assign, target: tree.Name, op: str | None) -> None:
    known, meaning = b.scope.find(target.text)
    mark = len(b.out)
    value = b.value(node.value)
    if not known:
        undefined(b, target)
        return
    if meaning is not None and not isinstance(meaning, int):
        b.nodes.setdefault(target, meaning)
    if not isinstance(meaning, ir.Variable) or meaning.kind != "var":
        if meaning is not None and not (isinstance(meaning, ir.Variable) and isinstance(meaning.type, ir.ErrorT)):
            _immutable(b, target, meaning)
        return
    if op is not None:
        b.used.add(("changed", meaning))
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
    if made is not None:
        b.out.append(made)


def _assign_tile(
    b: Build, node: tree.Assign, variable: ir.Variable, type_: ir.TileT, op: str | None, value: ir.Expression
) -> ir.Assign | None:
    what = f"`{variable.name}` holds"
    if op is None:
        filled = _fill(b, type_, value, node.value, what)
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
        if isinstance(value.type, ir.TileT) and not _same_shape(b, type_.shape, value.type.shape, node.value):
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
    if not _same_shape(b, type_.shape, whole.type.shape, node.value):
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
    made = access(b, target)
    mark = len(b.out)
    value = b.value(node.value)
    if made is None:
        return
    if len(b.out) > mark:
        made = _keep_access(b, made, mark)
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
    stored_value = (
        _point_store(b, node, target, made, dtype, op, value, what)
        if made.is_point
        else _slice_store(b, node, target, made, dtype, op, value, what)
    )
    if stored_value is None:
        return
    b.out.append(ir.Store(b.span(node), b.calls, made, *stored_value))


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
    target: tree.Subscript,
    made: ir.Access,
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
    current = ir.Load(b.span(target), b.calls, read_type(dtype), made)
    whole = binary(b, node, op, current, value)
    if not isinstance(whole, ir.BinaryOp):
        return None
    fitted = stored(b, whole, dtype, node.value, what, element_of_memory=True)
    if fitted is None:
        return None
    if whole.left is current and (fitted is whole or (op in ("+", "-", "*") and dtype in INTEGERS)):
        return op, convert(whole.right, dtype)
    return None, fitted


def _slice_store(
    b: Build,
    node: tree.Assign,
    target: tree.Subscript,
    made: ir.Access,
    dtype: str,
    op: str | None,
    value: ir.Expression,
    what: str,
) -> tuple[str | None, ir.Expression] | None:
    type_ = ir.TileT(dtype, shape_of(b, made))
    if op is None:
        filled = _fill(b, type_, value, node.value, what)
        return None if filled is None else (None, filled)
    current = ir.Load(b.span(target), b.calls, type_, made)
    return _combined(b, node, op, current, type_, value, what)


# --- expression statements ----------------------------------------------------------------------------


def _expression(b: Build, node: tree.ExprStmt) -> None:
    inner = bare(node.value)
    if isinstance(inner, tree.Call):
        entry = CORE.get(inner.callee.text)
        if entry is not None and entry.effect and len(inner.arguments) == len(entry.parameters):
            if entry.effect == "barrier":
                barrier(b, inner)
            else:
                atomic(b, inner, entry, used=False)
            return
        if entry is None:
            result = call(b, inner, used=False)
            if result is not None:
                b.nodes.setdefault(inner, result)
            return
    value = b.value(node.value)
    b.out.append(ir.Evaluate(b.span(node), b.calls, value))
    if isinstance(value.type, ir.ErrorT) or isinstance(inner, tree.Missing) or b.calls:
        return
    after_newline = isinstance(inner, tree.Unary | tree.Paren) or isinstance(node.value, tree.Paren)
    b.report(
        "PH004",
        "this expression has no effect",
        node,
        "its value is thrown away",
        severity="warning",
        notes=("a newline ended the statement before it, so this line is a statement of its own",)
        if after_newline
        else (),
        help="to go on with the line above, end that line with the operator"
        if after_newline
        else "store the value, or remove the line",
    )


# --- control flow -------------------------------------------------------------------------------------


def _assigned(b: Build, nodes: Sequence[tree.Stmt]) -> frozenset[str]:
    """Names that any of these statements assigns, at any depth."""
    found: set[str] = set()
    stack: list[tree.Stmt] = list(nodes)
    while stack:
        node = stack.pop()
        match node:
            case tree.Assign(target=tree.Name(text=text)):
                found.add(text)
            case tree.For(body=body) | tree.While(body=body):
                inner = b.assigned.get(body)
                if inner is None:
                    inner = b.assigned[body] = _assigned(b, body.statements)
                found |= inner
            case tree.If(then=then, otherwise=otherwise):
                stack += then.statements
                if otherwise is not None:
                    stack.append(otherwise)
            case tree.Block(statements=inner_statements):
                stack += inner_statements
    return frozenset(found)


def _changed(b: Build, nodes: Sequence[tree.Stmt]) -> list[ir.Variable]:
    """The scalar variables in scope that these statements assign."""
    found = []
    for name in sorted(_assigned(b, nodes)):
        meaning = b.scope.find(name)[1]
        if isinstance(meaning, ir.Variable) and meaning.kind == "var" and isinstance(meaning.type, ir.ScalarT):
            found.append(meaning)
    return found


def _forget(b: Build, variables: Sequence[ir.Variable]) -> None:
    for variable in variables:
        b.known[variable] = unknown(b, variable)


def _for(b: Build, node: tree.For) -> bool:
    bounds = [node.lo, node.hi] + ([node.step] if node.step is not None else [])
    values = b.in_order(bounds)
    for value, what in zip(values, ("the start of `range`", "the end of `range`", "the step of `range`")):
        need_index(b, value, what)
    step: ir.Expression = (
        values[2] if len(values) == 3 else ir.IntLiteral(b.place(node.hi.end, node.hi.end), b.calls, INDEX, 1)
    )
    if node.step is not None and is_index(step.type):
        number = b.poly(step).constant
        if number is not None and number <= 0:
            b.report(
                "PH117",
                f"the step of `range` is {number}",
                node.step,
                "a step must be positive",
                help="a loop counts up; count down inside it: `let i = n - 1 - j`",
            )
        else:
            may_be_zero(b, step, "a step")
    unroll = None if node.unroll is None else node.unroll.value
    if unroll is not None and unroll < 1:
        assert node.unroll is not None
        b.report(
            "PH117",
            "a loop is unrolled at least once",
            node.unroll,
            f"this is {unroll}",
            help="write a positive number, or leave `<unroll ..>` out",
        )
        unroll = None
    if is_index(values[0].type) and is_index(values[1].type):
        rounds = (b.poly(values[1]) - b.poly(values[0])).constant
        if rounds is not None and rounds <= 0 and not b.calls and not b.dead:
            b.report(
                "PH113",
                "this loop never runs",
                b.span(node.body),
                f"`range` is empty: {rounds} long",
                severity="warning",
                tags=("unnecessary",),
            )
    changed = _changed(b, node.body.statements)
    _forget(b, changed)
    variable = b.variable(node.variable.text, "loop", INDEX, b.span(node.variable))
    b.nodes.setdefault(node.variable, variable)
    outer, b.scope = b.scope, Scope(b.scope)
    if node.variable.text:
        b.scope.names[node.variable.text] = variable
    b.loops += 1
    breaks, b.breaks = b.breaks, False
    body = b.collect(lambda: _body(b, node.body))
    b.breaks = breaks
    b.loops -= 1
    b.scope = outer
    _forget(b, changed)
    keyword = b.place(node.start, node.start + 3)
    b.out.append(ir.For(b.span(node), b.calls, keyword, variable, values[0], values[1], step, unroll, body))
    return True


def _body(b: Build, node: tree.Block) -> None:
    block(b, node)


def _while(b: Build, node: tree.While) -> bool:
    changed = _changed(b, node.body.statements)
    _forget(b, changed)
    held: list[ir.Expression] = []
    prelude = b.collect(lambda: held.append(b.value(node.condition)))
    (condition,) = held
    need_bool(b, condition, "while")
    always = truth(b, condition, constants=False)
    if always is False and not b.calls and not b.dead:
        b.report(
            "PH113",
            "this loop never runs",
            b.span(node.body),
            "the condition is always false",
            severity="warning",
            tags=("unnecessary",),
        )
    b.loops += 1
    breaks, b.breaks = b.breaks, False
    body = b.collect(lambda: _body(b, node.body))
    leaves = b.breaks
    b.breaks = breaks
    b.loops -= 1
    _forget(b, changed)
    keyword = b.place(node.start, node.start + 5)
    b.out.append(ir.While(b.span(node), b.calls, keyword, prelude, condition, body))
    return always is not True or leaves


def _if(b: Build, node: tree.If) -> bool:
    condition = b.value(node.condition)
    need_bool(b, condition, "if")
    always = truth(b, condition, constants=False)
    if always is not None and not b.calls and not b.dead:
        dead = node.then if not always else node.otherwise
        if dead is not None:
            b.report(
                "PH113",
                "this code is never reached",
                b.span(dead),
                f"the condition is always {'true' if always else 'false'}",
                severity="warning",
                tags=("unnecessary",),
                related=(Related(condition.span, "the condition"),),
            )
    arms: list[tree.Stmt] = [*node.then.statements]
    if node.otherwise is not None:
        arms.append(node.otherwise)
    changed = _changed(b, arms)
    before = {variable: b.known[variable] for variable in changed if variable in b.known}
    goes_on = [True, True]

    def then() -> None:
        goes_on[0] = block(b, node.then)

    def otherwise() -> None:
        if isinstance(node.otherwise, tree.If):
            goes_on[1] = statement(b, node.otherwise)
        elif node.otherwise is not None:
            goes_on[1] = block(b, node.otherwise)

    then_block = b.collect(then)
    for variable in changed:
        if variable in before:
            b.known[variable] = before[variable]
        else:
            b.known.pop(variable, None)
    else_block = b.collect(otherwise)
    _forget(b, changed)
    keyword = b.place(node.start, node.start + 2)
    b.out.append(ir.If(b.span(node), b.calls, keyword, condition, then_block, else_block))
    if always is True:
        return goes_on[0]
    if always is False:
        return goes_on[1]
    return goes_on[0] or goes_on[1]


def _leave_loop(b: Build, node: tree.Break | tree.Continue) -> None:
    word = "break" if isinstance(node, tree.Break) else "continue"
    if not b.loops:
        b.report(
            "PH001",
            f"`{word}` stands outside a loop",
            node,
            "no loop around it in this item",
            help="`return` leaves the kernel or function",
        )
        return
    if word == "break":
        b.breaks = True
        b.out.append(ir.Break(b.span(node), b.calls))
    else:
        b.out.append(ir.Continue(b.span(node), b.calls))


def _return(b: Build, node: tree.Return) -> None:
    frame = b.frames[-1]
    value = None if node.value is None else b.value(node.value)
    if isinstance(frame.function, tree.Kernel):
        if value is not None:
            assert node.value is not None
            b.report(
                "PH104",
                "a kernel returns no value",
                node.value,
                "nothing can take it",
                help="store the result into a tensor; `return` alone ends the block",
            )
        b.out.append(ir.Leave(b.span(node), b.calls, True))
        return
    name = frame.function.name
    here = (Related(Span(b.owner, name.start, name.end), f"in the function `{name.text}`"),)
    if frame.result_type is None:
        if value is not None:
            assert node.value is not None
            b.report(
                "PH104",
                f"`{name.text}` returns no value",
                node.value,
                "no `-> type` in its signature",
                related=here,
                help="declare the result: `fn ..(..) -> f32`",
            )
    elif value is None:
        b.report("PH104", f"`{name.text}` must return a value here", node, "returns nothing", related=here)
    elif frame.result is not None:
        assert node.value is not None
        fitted = _returned(b, frame.result_type, frame.wraps_to, value, node.value, name.text)
        if fitted is not None:
            result = frame.result
            if frame.single:
                if (
                    isinstance(fitted.type, ir.ScalarT)
                    and isinstance(result.type, ir.ScalarT)
                    and fitted.type.dtype != result.type.dtype
                ):
                    # A real integer keeps its kind: the result is of the type that was found.
                    result = ir.Variable("", "temp", fitted.type, result.span, result.calls)
                    b.variables.append(result)
                    frame.result = result
                _know(b, result, fitted)
                b.out.append(ir.Define(b.span(node), b.calls, result, fitted))
            else:
                b.out.append(ir.Assign(b.span(node), b.calls, result, None, fitted))
    # The last statement of a function needs no `Leave`: control comes out there by itself.
    if not (frame.single and b.frames[-1].function.body.statements[-1] is node):
        b.out.append(ir.Leave(b.span(node), b.calls, b.alone and len(b.frames) == 1))


def _returned(
    b: Build, type_: ir.Type, wraps: str | None, value: ir.Expression, where: tree.Node, name: str
) -> ir.Expression | None:
    if isinstance(type_, ir.ErrorT) or isinstance(value.type, ir.ErrorT):
        return value
    what = f"`{name}` returns"
    if isinstance(type_, ir.TileT):
        if not isinstance(value.type, ir.TileT):
            b.report("PH104", f"`{name}` returns {type_text(type_)}", where, f"this is {type_text(value.type)}")
            return None
        return _fill(b, type_, value, where, what)
    if isinstance(value.type, ir.TileT):
        b.report("PH104", f"`{name}` returns {type_text(type_)}", where, f"this is {type_text(value.type)}")
        return None
    if wraps is not None and value.type.dtype in REAL_INTEGERS:
        return convert(value, wraps)
    return scalar_stored(b, type_, wraps, value, where, what)


def missing_return(b: Build, function: tree.Function) -> None:
    """Every path of a function with a result must return a value (PH104)."""
    end = function.body.end
    b.report(
        "PH104",
        f"`{function.name.text}` can end without a value",
        b.place(max(function.body.start, end - 1), end),
        "control comes out here",
        related=(Related(b.span(function.name), "declared with a result"),),
        help="return a value on every path",
    )
