"""Calls by name, and functions inlined at each call: arguments and symbols bound, returns made assignments."""

from __future__ import annotations

from phobos.diagnostic import Edit, Fix, Related, Span, plural
from phobos.language.builtins import BUILTINS, CORE, Builtin
from phobos.language.near import nearest
from phobos.language.scalars import INTEGERS
from phobos.semantics import ir, shapes
from phobos.semantics.build_assumptions import assumptions
from phobos.semantics.build_broken import head_is_broken, lost_names, statements
from phobos.semantics.build_builtins import call as builtin_call
from phobos.semantics.build_builtins import loosely
from phobos.semantics.build_context import MOST_CALLS, MOST_CALLS_ALONE, MOST_DEEP, Build, Frame
from phobos.semantics.build_operators import convert, stored
from phobos.semantics.build_subscripts import bare, extents_of, need_static
from phobos.semantics.build_types import element_name, meaning_of, read_type, same_tensor, tile_type
from phobos.semantics.names import Meaning, Scope
from phobos.semantics.shapes import Length
from phobos.semantics.types import ERROR, is_index, is_real_integer, length_text, shape_text, type_text
from phobos.syntax import tree


def call(b: Build, node: tree.Call, *, used: bool) -> ir.Expression | None:
    """What a call gives; None for a call without a value whose result is not `used`."""
    name = node.callee.text
    if name in CORE:
        return builtin_call(b, node, CORE[name])
    item = b.functions.get(name)
    if item is not None and isinstance(item.node, tree.Function) and not head_is_broken(item):
        return inline(b, node, item.node, used=used)
    return not_here(b, node, BUILTINS.get(name), used=used)


def not_here(b: Build, node: tree.Call, entry: Builtin | None, *, used: bool) -> ir.Expression | None:
    """A call that is known by name but not executed, or whose head did not parse, or not known: taken loosely."""
    name = node.callee.text
    if entry is not None:
        what = {
            "quantised": "a quantised or attention built-in",
            "thread": "per-thread code",
            "library": "a function of the standard library",
        }[entry.family]
        b.report(
            "PH114",
            f"`{name}` is not executed here: it is {what}",
            node.callee,
            "its result is not checked",
            severity="info",
            root=("later", name),
            help="write it as a function of this file to run it" if entry.family == "library" else None,
        )
    elif name and name not in b.settings.known_functions and name not in b.functions:
        _unknown(b, node)
    mark = len(b.out)
    arguments: list[ir.Expression] = []
    may_wait = False
    for argument in node.arguments:
        value = loosely(b, argument)
        if isinstance(value, ir.TensorRef):
            may_wait = entry is None
            value = b.error(argument)  # which of its cells are touched, nobody knows: nothing is said of them
        if len(b.out) > mark:
            arguments = b.keep(arguments, mark)
        mark = len(b.out)
        arguments.append(value)
    if used:
        # A statement of its own: whatever becomes of its value, the runtimes find it and refuse by name.
        return b.temporary(ir.Unsupported(b.span(node), b.calls, ERROR, name, tuple(arguments), may_wait))
    made = ir.UnsupportedCall(b.span(node), b.calls, name, tuple(arguments), may_wait)
    b.nodes.setdefault(node, made)
    b.out.append(made)
    return None


def _unknown(b: Build, node: tree.Call) -> None:
    name = node.callee.text
    known, meaning = b.scope.find(name)
    if known and meaning is not None:
        b.report(
            "PH107",
            f"`{name}` is not a function",
            node.callee,
            "a value cannot be called",
            help="only built-ins and functions of this file are called",
            root=("call", b.owner, name),
        )
        return
    from phobos.language.elsewhere import FUNCTIONS, instead_of

    near = nearest(name, [*BUILTINS, *b.functions], most=1)
    written = instead_of(name, FUNCTIONS)
    if near is not None and written is None:
        b.report(
            "PH107",
            f"unknown function `{name}`",
            node.callee,
            "nothing of this name is known",
            help=f"did you mean `{near}`?",
            root=("unknown-function", name),
            fix=Fix(f"write `{near}`", "unsafe", (Edit(b.span(node.callee), near),)),
        )
        return
    b.report(
        "PH107",
        f"unknown function `{name}`",
        node.callee,
        "its result is not checked" if near is None else "nothing of this name is known",
        severity="warning" if near is None else "error",
        help=written or f'if it belongs to a later library, list it: `known-functions = ["{name}"]`',
        root=("unknown-function", name),
    )


# --- inlining -----------------------------------------------------------------------------------------


def inline(b: Build, node: tree.Call, function: tree.Function, *, used: bool) -> ir.Expression | None:
    name = node.callee.text
    if _without_end(b, node):
        return b.error(node)
    b.inlined.setdefault(name)
    b.nodes.setdefault(node.callee, function)
    values = _arguments(b, node, function)
    if len(values) != len(function.params):
        count, wanted = len(values), len(function.params)
        b.report(
            "PH107",
            f"`{name}` takes {plural(wanted, 'argument')}, and {count} "
            f"{'stand' if count != 1 else 'stands'} here",
            node,
            f"{count} of {wanted}",
            related=(Related(Span(name, function.name.start, function.name.end), f"`{name}` is defined here"),),
            help=f"write `{signature(function)}`",
        )
        values = [None] * len(function.params)
    frame = Frame(function, name)
    scope = Scope()
    entry: list[ir.Statement] = []
    outer = (b.owner, b.calls, b.scope, b.loops, b.out, b.lost)
    site = b.span(node)
    item = b.functions[name]
    right = _bind(b, node, function, values, frame, scope, entry)
    b.owner, b.calls, b.scope, b.loops, b.out, b.lost = name, (*b.calls, site), scope, 0, entry, lost_names(item)
    b.frames.append(frame)
    try:
        bind_result(b, function, frame)
        assumptions(b, item, name)
        # Where an argument does not fit, the body still stands: a barrier in it must not be thought missing.
        b.run(function.body)
        body = ir.Block(tuple(b.out))
    finally:
        b.frames.pop()
        b.owner, b.calls, b.scope, b.loops, b.out, b.lost = outer
    made = ir.Inline(site, b.calls, name, body, frame.result)
    b.out.append(made)
    b.nodes.setdefault(node, made)
    if not right:
        return b.error(node)
    if frame.result is not None:
        return ir.VariableRef(site, b.calls, frame.result.type, frame.result)
    if function.result is not None:
        return b.error(node)
    if used:
        b.report(
            "PH107",
            f"`{name}` gives no value",
            node,
            "used as a value",
            related=(Related(Span(name, function.name.start, function.name.end), "no `-> type` here"),),
            help="give the function a result type and return a value",
        )
        return b.error(node)
    return None


def _without_end(b: Build, node: tree.Call) -> bool:
    """Whether a call is not to be inlined, as that would not end, or not soon; what is wrong has been said then."""
    name = node.callee.text
    if any(frame.name == name for frame in b.frames):
        chain = [frame.name for frame in b.frames if frame.name is not None]
        cycle = [*chain[chain.index(name) :], name]
        b.report(
            "PH107",
            f"`{name}` calls itself: functions are inlined, so they cannot be recursive",
            node.callee,
            " calls ".join(f"`{n}`" for n in cycle),
            help="write a loop",
            root=("recursion", frozenset(cycle)),
        )
        return True
    b.call_count += 1
    if b.alone and b.call_count > MOST_CALLS_ALONE:
        return True  # kernels that call the function look further
    if b.call_count > MOST_CALLS or len(b.frames) > MOST_DEEP:
        deep = len(b.frames) > MOST_DEEP
        b.report(
            "PH107",
            f"functions call each other more than {MOST_DEEP} deep"
            if deep
            else f"inlining makes more than {MOST_CALLS} calls of this kernel",
            node.callee,
            f"the limit is {MOST_DEEP} levels" if deep else f"the limit is {MOST_CALLS} calls",
            help="call fewer functions from functions",
            root="call-limit",
        )
        return True
    return False


def signature(function: tree.Function) -> str:
    return f"{function.name.text}({', '.join(param.name.text for param in function.params)})"


Argument = ir.Expression | ir.Tensor | None


def _arguments(b: Build, node: tree.Call, function: tree.Function) -> list[Argument]:
    """Each argument: a tensor for a tensor parameter, else a value; in order, with effects kept apart."""
    made: list[Argument] = []
    for position, argument in enumerate(node.arguments):
        param = function.params[position] if position < len(function.params) else None
        if param is not None and isinstance(param.type, tree.TensorType):
            made.append(_tensor_argument(b, node, argument, param))
            continue
        mark = len(b.out)
        value = loosely(b, argument) if param is None else b.value(argument)
        if len(b.out) > mark:
            for at, before in enumerate(made):
                if isinstance(before, ir.Expression):
                    (made[at],) = b.keep([before], mark)
                    mark += made[at] is not before
        made.append(value)
    return made


def _tensor_argument(b: Build, node: tree.Call, argument: tree.Expr, param: tree.Param) -> ir.Tensor | None:
    inner = bare(argument)
    related = (Related(Span(node.callee.text, param.start, param.end), f"`{param.name.text}` is a tensor parameter"),)
    if isinstance(inner, tree.Name):
        meaning = meaning_of(b, inner)
        if meaning is None or isinstance(meaning, ir.Tensor):
            return meaning
    elif isinstance(inner, tree.Missing):
        return None
    else:
        mark = len(b.out)
        b.value(argument)
        del b.out[mark:]
    b.report(
        "PH107",
        f"`{node.callee.text}` needs a tensor for `{param.name.text}`",
        argument,
        "not the name of a tensor",
        related=related,
        help="pass a tensor parameter by its name",
    )
    return None


def _bind(
    b: Build,
    node: tree.Call,
    function: tree.Function,
    values: list[Argument],
    frame: Frame,
    scope: Scope,
    entry: list[ir.Statement],
) -> bool:
    """Bind parameters and symbols in the function's scope; what does not fit is bound to nothing. Whether all fit."""
    right = True
    arguments = node.arguments if len(node.arguments) == len(values) else (node,) * len(values)
    for param, argument, value in zip(function.params, arguments, values, strict=True):
        if not isinstance(param.type, tree.TensorType):
            continue
        if not isinstance(value, ir.Tensor) or not _bind_tensor(
            b, argument, function, param, param.type, value, frame, scope
        ):
            scope.names[param.name.text] = None
            right = False
    for param, argument, value in zip(function.params, arguments, values, strict=True):
        name = param.name.text
        if isinstance(param.type, tree.TensorType):
            continue
        if not isinstance(value, ir.Expression) or isinstance(value.type, ir.ErrorT):
            scope.names[name] = None
            right = False
            continue
        bound = (
            _scalar(b, argument, function, param, param.type, value)
            if isinstance(param.type, tree.ScalarType)
            else _tile(b, argument, function, param, param.type, value, frame, scope)
        )
        if bound is None:
            scope.names[name] = None
            right = False
            continue
        calls = (*b.calls, b.span(node))
        place = Span(function.name.text, param.name.start, param.name.end)
        made = ir.Variable(name, "let", bound.type, place, calls)
        b.variables.append(made)
        if is_index(bound.type):
            b.known[made] = b.poly(bound)
        if isinstance(bound, ir.BoolLiteral):
            b.truths[made] = bound.value
        entry.append(ir.Define(Span(function.name.text, param.start, param.end), calls, made, bound))
        b.nodes.setdefault(param, made)
        b.nodes.setdefault(param.name, made)
        symbol = scope.names.get(name)
        if symbol is not None and not isinstance(symbol, ir.Variable):
            # A scalar parameter that is called like a symbol: the extent, which it must equal.
            _equals_extent(b, argument, function, param, bound, frame.lengths.get(name))
            continue
        scope.names[name] = made
    for param in function.params:
        if not right and not isinstance(param.type, tree.ScalarType):
            for dim in param.type.dims:
                if isinstance(dim, tree.Name):
                    scope.names.setdefault(dim.text, None)
    return right


def _equals_extent(
    b: Build,
    argument: tree.Expr,
    function: tree.Function,
    param: tree.Param,
    value: ir.Expression,
    extent: Length | None,
) -> None:
    given = b.length(b.poly(value))
    if extent is None or not is_index(value.type) or shapes.may_agree(given, extent):
        return
    b.report(
        "PH104",
        f"`{param.name.text}` of `{function.name.text}` is an extent too, and {length_text(given)} is not "
        f"{length_text(extent)}",
        argument,
        f"the extent is {length_text(extent)}",
        related=(Related(Span(function.name.text, param.start, param.end), "must be passed equal to the extent"),),
    )


def _bind_tensor(
    b: Build,
    argument: tree.Expr,
    function: tree.Function,
    param: tree.Param,
    type_: tree.TensorType,
    tensor: ir.Tensor,
    frame: Frame,
    scope: Scope,
) -> bool:
    name = function.name.text
    scope.names[param.name.text] = tensor
    b.nodes.setdefault(param, tensor)
    b.nodes.setdefault(param.name, tensor)
    here = Related(Span(name, param.start, param.end), f"the parameter `{param.name.text}`")
    there = Related(tensor.span, same_tensor(tensor))
    if type_.element.name != tensor.dtype:
        if type_.element.name:
            b.report(
                "PH104",
                f"`{param.name.text}` of `{name}` holds {type_.element.name}, and `{tensor.name}` holds {tensor.dtype}",
                argument,
                f"a tensor of {tensor.dtype}",
                related=(there, here),
            )
        return False
    extents = extents_of(b, tensor)
    if len(type_.dims) != len(extents):
        b.report(
            "PH105",
            f"`{param.name.text}` of `{name}` has rank {len(type_.dims)}, and `{tensor.name}` is {shape_text(extents)}",
            argument,
            f"rank {len(extents)}",
            related=(there, here),
        )
        return False
    for dim, extent, meaning in zip(type_.dims, extents, tensor.extents, strict=True):
        if not _dimension(b, argument, name, dim, extent, meaning, frame, scope, here):
            return False
    return True


def _dimension(
    b: Build,
    argument: tree.Expr,
    name: str,
    dim: tree.Name | tree.Int,
    extent: Length,
    meaning: Meaning,
    frame: Frame,
    scope: Scope,
    here: Related,
) -> bool:
    """One dimension of a parameter against the argument's: a symbol binds or must agree, a number must be equal."""
    if isinstance(dim, tree.Int):
        expected: Length = dim.value
    else:
        if dim.text not in frame.symbols:
            frame.symbols[dim.text] = meaning
            scope.names[dim.text] = meaning
            frame.lengths[dim.text] = extent
            if meaning is not None and not isinstance(meaning, int):
                b.nodes.setdefault(dim, meaning)
            return True
        expected = frame.lengths[dim.text]
    if shapes.same(expected, extent) or (b.alone and shapes.may_agree(expected, extent)):
        return True
    what = f"`{dim.text}` is {length_text(expected)} there" if isinstance(dim, tree.Name) else "a fixed length there"
    b.report(
        "PH105",
        f"`{name}` expects {length_text(expected)} elements on this axis, and the argument has {length_text(extent)}",
        argument,
        what,
        related=(here,),
    )
    return False


def _scalar(
    b: Build,
    argument: tree.Expr,
    function: tree.Function,
    param: tree.Param,
    type_: tree.ScalarType,
    value: ir.Expression,
) -> ir.Expression | None:
    """An argument as its scalar parameter takes it. An integer keeps its kind and its width is that of the value."""
    dtype = type_.name
    here = (Related(Span(function.name.text, param.start, param.end), f"the parameter `{param.name.text}`"),)
    if not isinstance(value.type, ir.ScalarT):
        b.report(
            "PH107",
            f"`{function.name.text}` needs a scalar for `{param.name.text}`",
            argument,
            f"this is {type_text(value.type)}",
            related=here,
        )
        return None
    if dtype in INTEGERS and value.type.dtype in INTEGERS:
        if is_real_integer(value.type):
            return convert(value, dtype)
        if dtype in ("i32", "i64"):
            return value
        return convert(convert(value, dtype), "index")
    return stored(b, value, dtype, argument, f"`{param.name.text}` is", element_of_memory=True)


def _tile(
    b: Build,
    argument: tree.Expr,
    function: tree.Function,
    param: tree.Param,
    type_: tree.TileType,
    value: ir.Expression,
    frame: Frame,
    scope: Scope,
) -> ir.Expression | None:
    name = function.name.text
    here = Related(Span(name, param.start, param.end), f"the parameter `{param.name.text}`")
    if not isinstance(value.type, ir.TileT):
        b.report(
            "PH107",
            f"`{name}` needs a tile for `{param.name.text}`",
            argument,
            f"this is {type_text(value.type)}",
            related=(here,),
            help="put it in a tile first: `var t: tile<..>[..] = ...`",
        )
        return None
    if not need_static(b, value, argument, "a tile passed by value"):
        return None
    shape = value.type.shape
    if len(type_.dims) != len(shape):
        b.report(
            "PH105",
            f"`{param.name.text}` of `{name}` has rank {len(type_.dims)}, and the argument is {shape_text(shape)}",
            argument,
            f"rank {len(shape)}",
            related=(here,),
        )
        return None
    for dim, length in zip(type_.dims, shape, strict=True):
        meaning: Meaning = length if isinstance(length, int) else _symbol(b, length)
        if not _dimension(b, argument, name, dim, length, meaning, frame, scope, here):
            return None
    return stored(b, value, type_.element.name, argument, f"`{param.name.text}` holds", element_of_memory=True)


def _symbol(b: Build, length: Length) -> Meaning:
    """A runtime length as the meaning of a symbol, while a function is analysed by itself."""
    for dim in b.dims.values():
        if length == b.extent(dim):
            return dim
    return None


def bind_result(b: Build, function: tree.Function, frame: Frame) -> None:
    """The variable that takes the result, in the function's scope."""
    if function.result is None:
        return
    match function.result:
        case tree.ScalarType() as node:
            dtype = element_name(b, node)
            frame.result_type = ERROR if dtype is None else read_type(dtype)
            if dtype in INTEGERS:
                frame.wraps_to = dtype
        case tree.TileType() as tile:
            frame.result_type = tile_type(b, tile)
        case tree.TensorType() as tensor:
            b.report(
                "PH104",
                f"`{function.name.text}` cannot return a tensor",
                tensor,
                "tensors are parameters only",
                help="return a tile, or store into a tensor parameter",
            )
            frame.result_type = ERROR
    frame.single = _single_return(function)
    assert frame.result_type is not None
    frame.result = b.variable("", "temp" if frame.single else "var", frame.result_type, b.span(function.name))


def _single_return(function: tree.Function) -> bool:
    """Whether the only `return` is the last statement, so that the result is bound once."""
    own = function.body.statements
    if not own or not isinstance(own[-1], tree.Return):
        return False
    return not any(isinstance(one, tree.Return) for one in statements(own[:-1]))
