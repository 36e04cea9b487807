"""Expressions: names, members of `ctx`, operators, subscripts and calls, each with its type and its shape."""

from __future__ import annotations

from phobos.language.members import AXES, MEMBERS
from phobos.language.near import nearest
from phobos.semantics import ir
from phobos.semantics.build_calls import call
from phobos.semantics.build_context import Build, is_settled
from phobos.semantics.build_operators import LOGIC, binary, unary
from phobos.semantics.build_subscripts import access, load
from phobos.semantics.build_types import read_type, undefined
from phobos.semantics.names import Meaning
from phobos.semantics.types import BOOL, F32, INDEX
from phobos.syntax import tree


def expression(b: Build, node: tree.Expr) -> ir.Expression:
    """The meaning of an expression; its effects are appended to `b.out` before it."""
    match node:
        case tree.Name():
            return _name(b, node)
        case tree.Int(value=number):
            return ir.IntLiteral(b.span(node), b.calls, INDEX, number)
        case tree.Float(value=number):
            return ir.FloatLiteral(b.span(node), b.calls, F32, number)
        case tree.Bool(value=truth):
            return ir.BoolLiteral(b.span(node), b.calls, BOOL, truth)
        case tree.Binary():
            return _binary(b, node)
        case tree.Subscript():
            made = access(b, node)
            if made is None:
                return b.error(node)
            return load(b, node, made)
        case tree.Paren(inner=inner):
            return b.value(inner)
        case tree.Call():
            result = call(b, node, used=True)
            return b.error(node) if result is None else result
        case tree.Unary(operand=operand):
            return unary(b, node, b.value(operand))
        case tree.Member():
            return _member(b, node)
        case tree.Missing():
            return b.error(node)


def _name(b: Build, node: tree.Name) -> ir.Expression:
    known, meaning = b.scope.find(node.text)
    if not known:
        if node.text == "ctx":
            b.report(
                "PH104",
                "`ctx` is not a value by itself",
                node,
                "needs a member",
                help="write `ctx.block.x` or another of its members",
            )
        else:
            undefined(b, node)
        return b.error(node)
    b.used.add(meaning)
    made = reference(b, node, meaning)
    if isinstance(meaning, ir.Tensor):
        b.report(
            "PH108",
            f"the tensor `{node.text}` is used as a value",
            node,
            "a tensor's name alone is not a value",
            help=f"subscript it: `{node.text}[{', '.join(':' for _ in meaning.extents)}]` is the whole of it",
        )
    return made


def reference(b: Build, node: tree.Node, meaning: Meaning) -> ir.Expression:
    """A name in a value's place."""
    match meaning:
        case ir.Variable(type=type_):
            if isinstance(type_, ir.ErrorT):
                return ir.VariableRef(b.span(node), b.calls, type_, meaning)
            return ir.VariableRef(b.span(node), b.calls, type_, meaning)
        case ir.Dim():
            return ir.DimRef(b.span(node), b.calls, INDEX, meaning)
        case ir.Constant():
            return ir.ConstantRef(b.span(node), b.calls, INDEX, meaning)
        case ir.ScalarParam(dtype=dtype):
            return ir.ParamRef(b.span(node), b.calls, read_type(dtype), meaning)
        case int():
            return ir.IntLiteral(b.span(node), b.calls, INDEX, meaning)
    return b.error(node)


def _binary(b: Build, node: tree.Binary) -> ir.Expression:
    """Operators, the left spine of a long chain without recursion."""
    spine = [node]
    left_node = node.left
    while isinstance(left_node, tree.Binary):
        spine.append(left_node)
        left_node = left_node.left
    left = b.value(left_node)
    for step in reversed(spine):
        left = _step(b, step, left)
        if step is not node:
            b.nodes.setdefault(step, left)
    return left


def _step(b: Build, node: tree.Binary, left: ir.Expression) -> ir.Expression:
    mark = len(b.out)
    if node.op in LOGIC:
        return _logic(b, node, left, mark)
    right = b.value(node.right)
    if len(b.out) > mark and not is_settled(left):
        (left,) = b.keep([left], mark)
    return binary(b, node, node.op, left, right)


def _logic(b: Build, node: tree.Binary, left: ir.Expression, mark: int) -> ir.Expression:
    """`&&` and `||`: on scalars the right side runs only where the left does not decide."""
    held: list[ir.Expression] = []
    effects = b.collect(lambda: held.append(b.value(node.right)))
    (right,) = held
    scalars = isinstance(left.type, ir.ScalarT) and isinstance(right.type, ir.ScalarT)
    if not scalars:
        if effects.statements:
            (left,) = b.keep([left], mark)
            b.out += effects.statements
        return binary(b, node, node.op, left, right)
    checked = binary(b, node, node.op, left, right)
    if isinstance(checked, ir.Error):
        b.out += effects.statements
        return checked
    if not effects.statements:
        return ir.ShortCircuit(b.span(node), b.calls, BOOL, node.op, left, right)
    result = b.variable("", "var", BOOL, b.span(node))
    keyword = b.place(node.op_start, node.op_start + 2)
    b.out.append(ir.Define(b.span(node), b.calls, result, left))
    value = ir.VariableRef(left.span, b.calls, BOOL, result)
    goes_on = value if node.op == "&&" else ir.UnaryOp(left.span, b.calls, BOOL, "!", value)
    then = ir.Block((*effects.statements, ir.Assign(right.span, b.calls, result, None, right)))
    b.out.append(ir.If(b.span(node), b.calls, keyword, goes_on, then, ir.Block(())))
    return ir.VariableRef(b.span(node), b.calls, BOOL, result)


# --- ctx ----------------------------------------------------------------------------------------------


def _no_members(b: Build, base: tree.Expr, name: tree.Name) -> None:
    if isinstance(base, tree.Missing):
        return
    known, meaning = b.scope.find(base.text) if isinstance(base, tree.Name) else (False, None)
    if isinstance(meaning, ir.Tensor):
        b.used.add(meaning)
        b.nodes.setdefault(base, meaning)
        help_ = f"`extent({meaning.name}, 0)` is its size along axis 0"
    elif isinstance(base, tree.Name) and not known:
        undefined(b, base, "a member")
        return
    else:
        if isinstance(b.value(base).type, ir.ErrorT):
            return
        help_ = None
    if name.text:
        b.report("PH104", "only `ctx` has members", name, "no member", help=help_)


def _member(b: Build, node: tree.Member) -> ir.Expression:
    path: list[tree.Name] = []
    base: tree.Expr = node
    while isinstance(base, tree.Member):
        path.insert(0, base.name)
        base = base.base
    if not isinstance(base, tree.Name) or base.text != "ctx":
        _no_members(b, base, path[0])
        return b.error(node)
    if any(not name.text for name in path):
        return b.error(node)
    first = path[0]
    entry = MEMBERS.get(first.text)
    if entry is None:
        from phobos.language import elsewhere

        near = elsewhere.instead_of(first.text, elsewhere.MEMBERS, MEMBERS) or nearest(first.text, MEMBERS)
        b.report(
            "PH101",
            f"`ctx` has no member `{first.text}`",
            first,
            "not a member",
            help=f"did you mean `ctx.{near}`?"
            if near
            else "its members are " + ", ".join(f"`{name}`" for name in MEMBERS),
        )
        return b.error(node)
    if entry.axes and len(path) == 1:
        b.report(
            "PH104", f"`ctx.{entry.name}` needs an axis", node, "not a value yet", help=f"write `ctx.{entry.name}.x`"
        )
        return b.error(node)
    if len(path) > 1 + entry.axes or (entry.axes and path[1].text not in AXES):
        wrong = path[1 + entry.axes] if len(path) > 1 + entry.axes else path[1]
        if entry.axes and path[1].text not in AXES:
            wrong = path[1]
        b.report(
            "PH101",
            f"`ctx.{entry.name}` has no member `{wrong.text}`"
            if wrong is path[1]
            else f"`ctx.{entry.name}.{path[1].text}` has no members",
            wrong,
            "not a member",
            help="its axes are `.x`, `.y` and `.z`" if entry.axes else "it is a value by itself",
        )
        return b.error(node)
    axis = AXES[path[1].text] if entry.axes else 0
    if entry.meaning == "block":
        return ir.BlockIndex(b.span(node), b.calls, INDEX, axis)
    if entry.meaning == "blocks":
        return ir.GridExtent(b.span(node), b.calls, INDEX, axis)
    spelling = ".".join(["ctx", *(name.text for name in path)])
    b.report(
        "PH114",
        f"`{spelling}` is not executed here: it is per-thread code",
        node,
        "checked, and refused by `run`",
        severity="info",
        root=("thread", spelling),
    )
    return ir.ThreadValue(b.span(node), b.calls, INDEX, spelling)
