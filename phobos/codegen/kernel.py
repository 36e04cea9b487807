"""The statements of one kernel in CUDA C++, from its decisions. What stands around them is in `work`."""

from __future__ import annotations

import re

from phobos.codegen import cooperative, elementwise, spelling, tensorcores
from phobos.codegen.context import Context
from phobos.codegen.expressions import arithmetic, as_type, dtype_of, point, scalar
from phobos.codegen.leaves import view_of
from phobos.codegen.products import pipelined, product
from phobos.codegen.rounds import rounds
from phobos.lowering import ops, walk
from phobos.semantics import ir


def body(context: Context) -> str:
    """The statements of a kernel, without the braces around them. What they need is then known to `context`."""
    out = context.out
    with out.block():
        mark = len(out.lines)
        _guards(context)
        for param in context.program.params.values():
            if param.dtype in ("f16", "bf16"):
                name = context.params[param.name]
                out.line(f"{name} = {spelling.convert(name, 'f32', param.dtype)};")
        _block(context, context.lowered.body)
    text = "\n".join(out.lines[mark:])
    places: dict[str, None] = {}
    for layout in context.layouts.all():
        down, along = elementwise.place_names(layout)
        if re.search(rf"\b({down}|{along})\b", text) and down != "0":
            places["  " + elementwise.place_definition(layout)] = None
    lines = list(places) + out.lines[mark:-1]
    return "\n".join(lines)


def _guards(context: Context) -> None:
    """The promises of `@aligned`, where the host does not look at them."""
    if not context.lowered.options.guards:
        return
    for promise in context.program.promises:
        if promise.dim in context.dims and promise.tile > 1:
            site = context.site("aligned", promise.key, (), f"{promise.dim} = {promise.tile}")
            name = context.dims[promise.dim]
            _leave_if(context, f"{name} % {promise.tile} != 0", 2, site, name, str(promise.tile))


def _leave_if(context: Context, condition: str, code: int, site: int, a: str, b: str) -> None:
    """Where `condition` (the same in all threads) holds, the whole grid is asked to leave, and this CTA does."""
    context.watched = True
    with context.out.block(f"if ({condition})"):
        context.out.line(f"if (tid == 0) ph_stop(state, {code}, {site}, {a}, {b});")
        context.out.line(context.leave)


# --- statements -----------------------------------------------------------------------------------------


def _block(context: Context, block: ir.Block) -> None:
    for statement in block.statements:
        _statement(context, statement)


def _statement(context: Context, statement: ir.Statement) -> None:
    out = context.out
    if not isinstance(statement, ops.Sync):
        out.at(context.line_of(statement.span))
    if context.lowered.options.debug:
        _bounds(context, statement)
        if _gathers(statement):
            _watching_tables(context, statement)
            return
    _spelled(context, statement)


def _spelled(context: Context, statement: ir.Statement) -> None:
    out = context.out
    context.instrument.before(context, statement)
    match statement:
        case ops.Sync(reason=reason):
            out.line(f"__syncthreads();  // {comment(reason)}")
        case ir.Define(variable=variable, value=value):
            _define(context, statement, variable, value)
        case ir.DefineView(variable=variable, access=access):
            context.views[variable] = view_of(context, access, variable.name or "view")
        case ir.Assign(variable=variable, op=op, value=value):
            if walk.is_tile(variable.type):
                elementwise.assign(context, statement, op, value)
            else:
                _assign_scalar(context, variable, op, value)
        case ir.Store(access=access):
            if access.is_point:
                _store_point(context, statement)
            else:
                elementwise.store(context, statement)
        case ir.For():
            _for(context, statement)
        case ir.While():
            _while(context, statement)
        case ir.If(condition=condition, then=then, otherwise=otherwise):
            with out.block(f"if ({spelling.bare(scalar(context, condition))})"):
                _block(context, then)
            if otherwise.statements:
                with out.block("else"):
                    _block(context, otherwise)
        case ir.Break():
            out.line("break;")
        case ir.Continue():
            out.line("continue;")
        case ir.Inline(body=body, result=result):
            if result is not None:
                _declare(context, result)
            label = context.names.fresh("leave")
            context.leaves.append(label)
            with out.block():
                _block(context, body)
            context.leaves.pop()
            if any(isinstance(s, ir.Leave) and not s.leaves_kernel for s in walk.statements(body)):
                out.line(f"{label}:;")
        case ir.Leave(leaves_kernel=leaves_kernel):
            out.line("return;" if leaves_kernel else f"goto {context.leaves[-1]};")
        case ir.Barrier(tensor=tensor):
            context.watched = True
            site = context.site("barrier", statement.span, statement.calls, tensor.name)
            word = f"(unsigned*){context.tensors[tensor]}"
            with context.instrument.barrier(out, site, word, context.leave):
                out.line(f"if (ph_grid_barrier(state, {word}, {site})) {context.leave}")
        case ir.Atomic():
            cooperative.atomic(context, statement)
        case ops.Reduce(result=result):
            _declare(context, result)
            cooperative.reduce(context, statement)
        case ops.RunningSum():
            cooperative.running_sum(context, statement)
        case ops.Dot(result=result):
            _declare(context, result)
            if context.lowered.products[statement].unit == "fma":
                product(context, statement)
            else:
                tensorcores.product(context, statement)
        case ir.Evaluate() | ir.AssumeUniform():
            pass
        case _:
            raise AssertionError(f"no spelling for {type(statement).__name__}")


def _declare(context: Context, variable: ir.Variable) -> None:
    if variable in context.declared:
        return
    context.declared.add(variable)
    name = context.name(variable)
    if isinstance(variable.type, ir.ScalarT):
        context.out.line(f"{spelling.VALUES[variable.type.dtype]} {name};")
    elif isinstance(variable.type, ir.TileT) and context.place(variable) is None:
        context.out.line(f"{spelling.VALUES[variable.type.dtype]} {name}[{context.layout(variable).registers}];")


def _define(context: Context, statement: ir.Define, variable: ir.Variable, value: ir.Expression | None) -> None:
    if walk.is_tile(variable.type):
        _declare(context, variable)
        if value is not None:
            elementwise.assign(context, statement, None, value)
        return
    assert isinstance(variable.type, ir.ScalarT)
    if value is None or variable in context.declared:
        _declare(context, variable)
        if value is not None:
            _assign_scalar(context, variable, None, value)
        return
    context.declared.add(variable)
    dtype = variable.type.dtype
    const = "const " if variable.kind in ("let", "temp") else ""
    text = as_type(context, value, dtype)
    context.out.line(f"{const}{spelling.VALUES[dtype]} {context.name(variable)} = {spelling.bare(text)};")


def _assign_scalar(context: Context, variable: ir.Variable, op: str | None, value: ir.Expression) -> None:
    assert isinstance(variable.type, ir.ScalarT)
    dtype, name = variable.type.dtype, context.name(variable)
    if op is None:
        text = as_type(context, value, dtype)
    else:
        joint = elementwise.joined(dtype, dtype_of(value))
        text = arithmetic(context, op, spelling.convert(name, dtype, joint), value, joint)
        text = spelling.convert(text, joint, dtype)
    context.out.line(f"{name} = {spelling.bare(text)};")


def _store_point(context: Context, statement: ir.Store) -> None:
    """One cell, once per CTA. (A tile of one element is every thread's own.)"""
    access = statement.access
    base, out = access.base, context.out
    assert not isinstance(base.type if isinstance(base, ir.Variable) else None, ir.ErrorT)
    single = isinstance(base, ir.Variable) and context.is_single(base)
    dtype = base.dtype if isinstance(base, ir.Tensor) else base.type.dtype  # type: ignore[union-attr]
    cell = point(context, access)
    if statement.op is None:
        text = as_type(context, statement.value, dtype)
    else:
        joint = elementwise.joined(dtype, dtype_of(statement.value))
        old = spelling.convert(cell if single else spelling.from_cell(cell, dtype), dtype, joint)
        text = spelling.convert(arithmetic(context, statement.op, old, statement.value, joint), joint, dtype)
    if single:
        out.line(f"{cell} = {spelling.bare(text)};")
    else:
        text = spelling.to_cell(text, dtype)
        if isinstance(base, ir.Tensor):
            context.instrument.stored_point(context, access, text)
        out.line(f"if (tid == 0) {cell} = {spelling.bare(text)};")


def _for(context: Context, loop: ir.For) -> None:
    out = context.out
    name = context.name(loop.variable)
    context.declared.add(loop.variable)
    with out.scope():
        hi = as_type(context, loop.hi, "index")
        if not isinstance(loop.hi, (ir.IntLiteral, ir.ConstantRef, ir.DimRef)):
            out.line(f"const long long {name}_end = {spelling.bare(hi)};")
            hi = f"{name}_end"
        step = as_type(context, loop.step, "index")
        if not isinstance(loop.step, (ir.IntLiteral, ir.ConstantRef)):
            out.line(f"const long long {name}_step = {spelling.bare(step)};")
            step = f"{name}_step"
            values = context.lowered.values
            least = values.at_least(values.poly(loop.step))
            if least is None or least < 1:
                site = context.site("step", loop.step.span, loop.calls)
                _leave_if(context, f"{step} <= 0", 4, site, step, "0")
        if loop in context.lowered.rounds:
            for statement in loop.body.statements:
                if isinstance(statement, ops.Dot):
                    _declare(context, statement.result)
            rounds(
                context, loop, (name, as_type(context, loop.lo, "index"), hi, step), lambda s: _statement(context, s)
            )
            return
        dot = context.lowered.pipelines.get(loop)
        if dot is not None:
            _declare(context, dot.result)
            out.at(context.line_of(dot.span))
            others = [s for s in loop.body.statements if isinstance(s, (ir.DefineView, ir.Define))]

            def define() -> None:
                for statement in others:
                    _statement(context, statement)

            pipelined(context, loop, dot, name, as_type(context, loop.lo, "index"), hi, step, define)
            return
        if loop.unroll is not None:
            out.line(f"#pragma unroll {loop.unroll}")
        lo = spelling.bare(as_type(context, loop.lo, "index"))
        head = f"for (long long {name} = {lo}; {name} < {hi}; {name} += {step})"
        with out.block(head):
            _block(context, loop.body)


def _while(context: Context, loop: ir.While) -> None:
    out = context.out
    context.watched = True
    site = context.site("loop", loop.keyword, loop.calls)
    rounds, since = context.names.fresh("rounds"), context.names.fresh("since")
    with out.block():
        out.line(f"unsigned {rounds} = 0;")
        out.line(f"unsigned long long {since} = 0;")
        with out.block("for (;;)"):
            out.line(f"if (ph_poll(state, {rounds}, {since}, {site})) {context.leave}")
            _block(context, loop.prelude)
            context.instrument.reads(context, (loop.condition,))
            out.line(f"if (!{scalar(context, loop.condition)}) break;")
            _block(context, loop.body)


# --- guards of `--debug` ----------------------------------------------------------------------------------


def _bounds(context: Context, statement: ir.Statement) -> None:
    """Point accesses outside their tensor stop the grid before they happen."""
    if isinstance(statement, ir.While):
        return
    if isinstance(statement, ir.Store) and statement.access.is_point:
        _check_point(context, statement.access, "")
    for root in walk.expressions(statement):
        _check_points(context, root, "")


def _gathers(statement: ir.Statement) -> bool:
    return any(
        isinstance(one, ir.BuiltinCall) and one.name == "gather"
        for root in walk.expressions(statement)
        for one in walk.every(root)
    )


def _watching_tables(context: Context, statement: ir.Statement) -> None:
    """A statement whose threads read tables by index: an index outside reads cell 0 instead, and stops the grid."""
    out = context.out
    context.watched = True
    context.stray = context.names.fresh("stray")
    out.line(f"ph_stray {context.stray} = {{0, 0, 0}};")
    _spelled(context, statement)
    with out.block(f"if (__syncthreads_or({context.stray}.site))"):
        at = context.stray
        out.line(f"if ({at}.site) ph_stop(state, 3, {at}.site - 1, {at}.at, {at}.length);")
        out.line(context.leave)
    context.stray = ""


def _check_points(context: Context, expression: ir.Expression, condition: str) -> None:
    match expression:
        case ir.ShortCircuit(op=op, left=left, right=right):
            _check_points(context, left, condition)
            decided = scalar(context, left) if op == "&&" else f"!{scalar(context, left)}"
            _check_points(context, right, f"{condition} && {decided}" if condition else decided)
            return
        case ir.Load(access=access) if access.is_point:
            _check_point(context, access, condition)
    for operand in walk.operands(expression):
        _check_points(context, operand, condition)


def _check_point(context: Context, access: ir.Access, condition: str) -> None:
    if isinstance(access.base, ir.Variable) and context.is_single(access.base):
        return
    for sub, extent in zip(access.subs, context.extents(access.base), strict=True):
        assert isinstance(sub, ir.PointSub)
        at = as_type(context, sub.index, "index")
        site = context.site("bounds", access.span, access.calls, access.base.name)
        bad = f"!ph_inside({at}, {extent})"
        _leave_if(context, f"{condition} && {bad}" if condition else bad, 3, site, at, extent)


def comment(text: str) -> str:
    """A text as it may stand in a comment."""
    return "".join(c if c.isprintable() and c != "\\" else " " for c in text)
