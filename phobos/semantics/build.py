"""Tree to typed program: names, types, shapes, constants; functions inlined, effects put in order.

`build` is the door. The work is in the `build_*` modules, which share one `build_context.Build`: attributes, types
(parameters too), statements (define, assign and stores, control), expressions (subscripts, builtins, effects, calls,
operators) and numbers. What needs the finished program is said by `build_flow`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from phobos.diagnostic import Span
from phobos.semantics import ir
from phobos.semantics.build_assumptions import assumptions
from phobos.semantics.build_attributes import constants_of, flags_of, launch_of, promises_of
from phobos.semantics.build_broken import broken_lines, lost_names, speaks, uses_of_lost_values
from phobos.semantics.build_calls import bind_result
from phobos.semantics.build_context import Build, Frame
from phobos.semantics.build_control import block, missing_return
from phobos.semantics.build_expressions import expression
from phobos.semantics.build_flow import after_building
from phobos.semantics.build_statements import statement
from phobos.semantics.build_types import parameters_of
from phobos.semantics.names import Scope
from phobos.semantics.program import DEFAULTS, Launch, Problem, Program, Promise, Settings
from phobos.syntax import tree

_DEPTH = 20_000
"""Nesting is bounded by the parser; an expression of that depth takes several calls a level here."""


def build(item: tree.Item, functions: Mapping[str, tree.Item], settings: Settings = DEFAULTS) -> Program:
    """The program of a kernel item (or of a function by itself, its parameters taken as a kernel's).

    Raises ValueError when `item.node` is None. Never raises for a mistake of the user: those are `problems`.
    """
    node = item.node
    if node is None:
        raise ValueError("this item holds neither a kernel nor a function")
    if sys.getrecursionlimit() < _DEPTH:
        sys.setrecursionlimit(_DEPTH)
    owner = node.name.text if isinstance(node, tree.Function) else None
    b = Build(functions, settings, owner, expression, _run, statement)
    b.lost = lost_names(item)
    b.item = item
    b.broken = bool(item.problems)
    assumptions(b, item, owner)
    attributes = node.attributes if isinstance(node, tree.Kernel) else ()
    constants_of(b, attributes)
    b.scope.names.update(b.constants)
    b.scope = Scope(b.scope)
    parameters = parameters_of(b, node.params)
    launch: Launch = launch_of(b, attributes)
    flags = flags_of(b, attributes)
    promises: tuple[Promise, ...] = promises_of(b, attributes)
    frame = Frame(node, owner)
    b.frames.append(frame)
    if isinstance(node, tree.Function):
        bind_result(b, node, frame)
    b.run(node.body)
    body = ir.Block(tuple(b.out))
    after_building(b, node, body)
    return Program(
        kernel=node,
        name=node.name.text,
        named=Span(owner, node.name.start, node.name.end),
        owner=owner,
        tensors=b.tensors,
        params=b.params,
        parameters=parameters,
        dims=b.dims,
        constants=b.constants,
        launch=launch,
        promises=promises,
        flags=flags,
        body=body,
        variables=tuple(b.variables),
        problems=_told(b, item, owner),
        node_types=b.nodes,
        settings=settings,
        inlined=tuple(b.inlined),
    )


def _told(b: Build, item: tree.Item, owner: str | None) -> tuple[Problem, ...]:
    """The problems without those that follow from text that did not parse."""
    lines: dict[str | None, tuple[tuple[int, int], ...]] = {owner: broken_lines(item)} if item.problems else {}
    for name in b.inlined:
        if b.functions[name].problems:
            lines[name] = broken_lines(b.functions[name])
    if not lines:
        return tuple(b.problems)
    if not b.problems:
        return ()
    lost = uses_of_lost_values(b.declared, b.nodes.values(), lines)
    return tuple(problem for problem in b.problems if speaks(problem, lines, lost))


def _run(b: Build, node: tree.Block) -> None:
    """The body of an item or of an inlined function."""
    goes_on = block(b, node)
    function = b.frames[-1].function
    if goes_on and isinstance(function, tree.Function) and function.result is not None and not b.broken:
        missing_return(b, function)
