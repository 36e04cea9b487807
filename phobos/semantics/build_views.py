"""Stores to a tensor or tile while a `let` view of it is live (PH111).

A view is live from its `let` to the start of the last statement that uses it, around loops too. The walk goes
backwards: behind each statement it knows which views are still used, and where next. What is live at the end of a round
is known once the body was walked from what is used behind the loop: that walk reports nothing and takes no loop in it
twice, so that a nest costs as many walks as it is deep.
"""

from __future__ import annotations

from collections.abc import Callable

from phobos.diagnostic import Edit, Fix, Related, Span
from phobos.semantics import ir
from phobos.semantics.build_context import Build
from phobos.semantics.values import expressions_in, statements_of, subscript_parts, walk
from phobos.syntax import tree

Live = dict[ir.Variable, Span]  # a view that is still used, and the place of its next use


def stores_under_views(b: Build, body: ir.Block) -> None:
    if not b.views:
        return
    viewed = {access.base for access in b.views.values()}
    if not any(
        statement.access.base in viewed
        if isinstance(statement, ir.Store)
        else isinstance(statement, ir.Assign) and statement.variable in viewed
        for statement in statements_of(body)
    ):
        return
    _Views(b).block(body, {}, {}, {}, {})


class _Views:
    def __init__(self, b: Build) -> None:
        self.b = b
        self._used: dict[ir.Expression, Live] = {}  # every loop around it comes by again
        self._quiet = False

    def block(self, block: ir.Block, after: Live, on_break: Live, on_continue: Live, on_leave: Live) -> Live:
        """The views that are live before a block, from those live behind it and at its ways out."""
        live = after
        for statement in reversed(block.statements):
            live = self.statement(statement, live, on_break, on_continue, on_leave)
        return live

    def statement(
        self, statement: ir.Statement, after: Live, on_break: Live, on_continue: Live, on_leave: Live
    ) -> Live:
        match statement:
            case ir.DefineView(variable=variable):
                live = {v: use for v, use in after.items() if v is not variable}
            case ir.Store(access=access):
                self.stored(access.base, access.span, statement.calls, after)
                live = after
            case ir.Assign(variable=variable):
                self.stored(variable, statement.span, statement.calls, after)
                live = after
            case ir.If(then=then, otherwise=otherwise):
                live = self.block(then, after, on_break, on_continue, on_leave) | self.block(
                    otherwise, after, on_break, on_continue, on_leave
                )
            case ir.For(body=body):

                def before_round(then: Live) -> Live:
                    return after | self.block(body, then, after, then, on_leave)

                live = self.around(before_round, after)
            case ir.While(prelude=prelude, body=body):
                tested = self.used(statement.condition) | after

                def before_test(then: Live) -> Live:
                    inside = self.block(body, then, after, then, on_leave)
                    return self.block(prelude, tested | inside, {}, {}, on_leave)

                return self.around(before_test, tested)
            case ir.Inline(body=body):
                live = self.block(body, after, {}, {}, after)
            case ir.Break():
                return dict(on_break)
            case ir.Continue():
                return dict(on_continue)
            case ir.Leave():
                return dict(on_leave)
            case _:
                live = after
        expressions = list(expressions_in(statement))
        if isinstance(statement, ir.Store | ir.DefineView):
            expressions += subscript_parts(statement.access)
        for expression in expressions:
            used = self.used(expression)
            if used:
                live = live | used
        return live

    def around(self, before: Callable[[Live], Live], behind: Live) -> Live:
        """What is live before a loop, given what is live before a round by what is live at its end."""
        quiet, self._quiet = self._quiet, True
        live = before(behind)
        self._quiet = quiet
        return live if quiet else before(live)

    def used(self, expression: ir.Expression) -> Live:
        found = self._used.get(expression)
        if found is None:
            found = self._used[expression] = {
                inner.variable: inner.span
                for inner in walk(expression)
                if isinstance(inner, ir.VariableRef) and inner.variable in self.b.views
            }
        return found

    def stored(self, base: ir.Tensor | ir.Variable, place: Span, calls: tuple[Span, ...], live: Live) -> None:
        if self._quiet:
            return
        for view, use in live.items():
            access = self.b.views[view]
            if access.base is not base:
                continue
            declared = self.b.declared.get(view)
            fix = None
            if declared is not None and isinstance(declared.node, tree.Let):
                start = declared.node.start
                fix = Fix(
                    "copy it: change `let` to `var`", "unsafe", (Edit(Span(declared.owner, start, start + 3), "var"),)
                )
            self.b.report(
                "PH111",
                f"`{base.name}` is stored while its view `{view.name}` is still used",
                place,
                "stored here",
                severity="warning",
                related=(
                    Related(view.span, "a view: its elements are read where it is used"),
                    Related(use, f"`{view.name}` is read again here, after the store"),
                ),
                help=f"copy the slice before the store: `var {view.name} = ...`",
                fix=fix,
                calls=calls,
            )
            return
