"""Calls with an effect, and calls that name a tensor: `grid_barrier` and the atomics become statements."""

from __future__ import annotations

from phobos.diagnostic import Related
from phobos.language.builtins import Builtin
from phobos.language.scalars import INTEGERS
from phobos.semantics import ir
from phobos.semantics.build_context import Build
from phobos.semantics.build_operators import (
    convert,
    need_index,
)
from phobos.semantics.build_subscripts import bare, extents_of
from phobos.semantics.build_types import meaning_of
from phobos.semantics.types import (
    I32,
    INDEX,
    length_text,
    shape_text,
    tensor_text,
    type_text,
)
from phobos.syntax import tree


def named_tensor(b: Build, argument: tree.Expr, callee: str, code: str) -> ir.Tensor | None:
    """The tensor parameter that an argument names, or None after saying that it names none."""
    inner = bare(argument)
    if isinstance(inner, tree.Missing):
        return None
    if isinstance(inner, tree.Name):
        related: tuple[Related, ...] = ()
        if inner.text != "ctx" or b.scope.find("ctx")[0]:  # `ctx` has a meaning everywhere, and is no name that is lost
            meaning = meaning_of(b, inner)
            if meaning is None or isinstance(meaning, ir.Tensor):
                return meaning
            if not isinstance(meaning, int):
                related = (Related(meaning.span, f"`{inner.text}` is defined here"),)
        b.report(
            code,
            f"`{callee}` needs a tensor parameter, and `{inner.text}` is not one",
            argument,
            "not a tensor",
            related=related,
        )
        return None
    mark = len(b.out)
    b.value(argument)
    del b.out[mark:]
    b.report(
        code,
        f"`{callee}` needs the name of a tensor parameter",
        argument,
        "not a name",
        help=f"pass the tensor itself, as in `{callee}(NAME)`" if callee == "grid_barrier" else None,
    )
    return None


def barrier(b: Build, node: tree.Call) -> None:
    """`grid_barrier(bar)` as a statement. A wrong tensor is PH206, and the barrier stands all the same."""
    argument: tree.Node = node
    tensor: ir.Tensor | None = None
    if len(node.arguments) == 1:
        argument = node.arguments[0]
        tensor = named_tensor(b, node.arguments[0], "grid_barrier", "PH206")
    if tensor is None:
        name = tree.Name(argument.start, argument.end, "")
        unnamed = tree.Param(argument.start, argument.end, name, tree.ScalarType(argument.start, argument.end, "i32"))
        tensor = ir.Tensor("", "i32", (2,), b.span(argument), unnamed)
    else:
        _barrier_tensor(b, argument, tensor)
    made = ir.Barrier(b.span(node), b.calls, tensor, b.span(argument))
    b.nodes.setdefault(node, made)
    b.out.append(made)


def _barrier_tensor(b: Build, argument: tree.Node, tensor: ir.Tensor) -> None:
    what = tensor_text(tensor)
    related = (Related(tensor.span, f"`{tensor.name}` is {what}"),)
    help_ = f"declare it as `{tensor.name}: tensor<i32>[2]`"
    extents = extents_of(b, tensor)
    if tensor.dtype != "i32":
        b.report(
            "PH206",
            f"a barrier needs an i32 tensor, and `{tensor.name}` holds {tensor.dtype}",
            argument,
            f"holds {tensor.dtype}",
            related=related,
            help=help_,
        )
    elif len(extents) > 2 or (len(extents) == 2 and extents[1] != 1):
        if len(extents) == 2 and not isinstance(extents[1], int) and b.alone:
            return
        b.report(
            "PH206",
            f"a barrier needs its elements along the first axis, and `{tensor.name}` is {shape_text(extents)}",
            argument,
            "not `[n]` or `[n, 1]`",
            related=related,
            help=help_,
        )
    elif isinstance(extents[0], int) and extents[0] < 2:
        b.report(
            "PH206",
            f"a barrier needs at least 2 elements, and `{tensor.name}` has {extents[0]}",
            argument,
            f"{extents[0]} element",
            related=related,
            help=help_,
        )


def atomic(b: Build, node: tree.Call, entry: Builtin, *, used: bool) -> ir.Expression:
    """An atomic as a statement; its old value stands in a temporary where it is `used`."""
    tensor = named_tensor(b, node.arguments[0], entry.name, "PH107")
    values = b.in_order(node.arguments[1:])
    right = need_index(b, values[0], f"the index of `{entry.name}`")
    operands: list[ir.Expression] = []
    for value, argument in zip(values[1:], node.arguments[2:], strict=True):
        if isinstance(value.type, ir.ErrorT):
            right = False
        elif not isinstance(value.type, ir.ScalarT) or value.type.dtype not in INTEGERS:
            b.report(
                "PH107",
                f"`{entry.name}` needs an integer here",
                argument,
                f"this is {type_text(value.type)}",
                help=f"`{entry.signature}`",
            )
            right = False
        else:
            operands.append(convert(value, "i32"))
    if tensor is not None:
        extents = extents_of(b, tensor)
        related = (Related(tensor.span, f"`{tensor.name}` is {tensor_text(tensor)}"),)
        if tensor.dtype != "i32":
            b.report(
                "PH107",
                f"`{entry.name}` needs an i32 tensor, and `{tensor.name}` holds {tensor.dtype}",
                node.arguments[0],
                f"holds {tensor.dtype}",
                related=related,
            )
            tensor = None
        elif (len(extents) > 2 or (len(extents) == 2 and extents[1] != 1)) and not (
            b.alone and len(extents) == 2 and not isinstance(extents[1], int)
        ):
            b.report(
                "PH107",
                f"`{entry.name}` indexes the first axis alone, and `{tensor.name}` is {shape_text(extents)}",
                node.arguments[0],
                "not `[n]` or `[n, 1]`",
                related=related,
            )
            tensor = None
        elif right:
            at = b.length(b.poly(values[0]))
            extent = extents[0]
            if isinstance(at, int) and (at < 0 or (isinstance(extent, int) and at >= extent)):
                b.report(
                    "PH115",
                    f"element {at} is outside `{tensor.name}`, which has {length_text(extent)} elements",
                    node.arguments[1],
                    "never inside",
                    related=related,
                )
    if tensor is None or not right:
        return ir.Error(b.span(node), b.calls, I32)
    result = b.variable("", "temp", I32, b.span(node)) if used else None
    made = ir.Atomic(
        b.span(node), b.calls, entry.name.removeprefix("atomic_"), tensor, values[0], tuple(operands), result
    )
    b.out.append(made)
    if result is None:
        b.nodes.setdefault(node, made)
        return ir.IntLiteral(b.span(node), b.calls, INDEX, 0)
    return ir.VariableRef(b.span(node), b.calls, I32, result)
