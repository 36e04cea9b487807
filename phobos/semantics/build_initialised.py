"""Reads of tiles that were never written, on every path or on some (PH110).

A tile without a value is *unwritten* until a store to any of its cells; after that its cells are not told apart.
Where paths meet that disagree it is *perhaps* unwritten. Loops that may have no round are paths of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from phobos.diagnostic import Related, Span
from phobos.semantics import ir
from phobos.semantics.build_context import Build
from phobos.semantics.build_numbers import truth
from phobos.semantics.values import expressions_in, statements_of, subscript_parts, walk

State = dict[ir.Variable, bool]
"""Tiles that may be unwritten: True where they are on every path to here, False where they are on some."""


def uninitialised_reads(b: Build, body: ir.Block) -> None:
    tracked = {
        statement.variable: statement
        for statement in statements_of(body)
        if isinstance(statement, ir.Define)
        and statement.value is None
        and isinstance(statement.variable.type, ir.TileT)
    }
    if tracked:
        _Reads(b, tracked).block(body, {})


class _Exits:
    """States that leave a loop or a function early, collected until they arrive."""

    __slots__ = ("breaks", "continues", "leaves")

    def __init__(self) -> None:
        self.breaks: list[State] = []
        self.continues: list[State] = []
        self.leaves: list[State] = []


class _Reads:
    def __init__(self, b: Build, tracked: dict[ir.Variable, ir.Define]) -> None:
        self.b = b
        self.tracked = tracked
        self.views: dict[ir.Variable, ir.Variable] = {}
        self.exits = _Exits()
        self._loops: dict[object, tuple[State | None, list[State]]] = {}  # by loop and state before it

    def block(self, block: ir.Block, state: State | None) -> State | None:
        """The state behind a block; None where control does not come out of it."""
        for statement in block.statements:
            if state is None:
                return None
            state = self.statement(statement, state)
        return state

    def statement(self, statement: ir.Statement, state: State) -> State | None:
        for variable, place, calls in self.reads(statement):
            if variable in state:
                self.report(variable, place, calls, state.pop(variable))
        match statement:
            case ir.Define(variable=variable, value=None):
                return {**state, variable: True}
            case ir.DefineView(variable=variable, access=access):
                if isinstance(access.base, ir.Variable):
                    self.views[variable] = access.base
            case ir.Assign(variable=variable):
                return {v: sure for v, sure in state.items() if v is not variable}
            case ir.Store(access=access):
                return {v: sure for v, sure in state.items() if v is not access.base}
            case ir.If():
                return self.branch(statement, state)
            case ir.For() | ir.While():
                # The loops around it come by again, mostly in a state that they have come in before.
                key = statement, frozenset(state.items())
                if key not in self._loops:
                    self._loops[key] = self.loop(statement, state)
                after, leaves = self._loops[key]
                self.exits.leaves += leaves
                return None if after is None else dict(after)
            case ir.Inline(body=inner):
                outer, self.exits = self.exits, _Exits()
                after = self.block(inner, state)
                left, self.exits = self.exits, outer
                return join([after, *left.leaves])
            case ir.Break():
                self.exits.breaks.append(state)
                return None
            case ir.Continue():
                self.exits.continues.append(state)
                return None
            case ir.Leave():
                self.exits.leaves.append(state)
                return None
        return state

    def branch(self, statement: ir.If, state: State) -> State | None:
        always = truth(self.b, statement.condition, constants=False)
        then = None if always is False else self.block(statement.then, dict(state))
        otherwise = None if always is True else self.block(statement.otherwise, dict(state))
        return join([then, otherwise])

    def loop(self, statement: ir.For | ir.While, state: State) -> tuple[State | None, list[State]]:
        """The state behind a loop, and those in which it leaves the function around it."""
        outer, self.exits = self.exits, _Exits()
        prelude = statement.prelude if isinstance(statement, ir.While) else ir.Block(())
        runs = self.runs(statement)
        ends = not (isinstance(statement, ir.While) and truth(self.b, statement.condition, constants=False) is True)
        # The first round begins in the state before the loop, so what it reads unwritten is certain.
        entry: State | None = dict(state)
        left: list[State | None] = []
        for _ in range(2):
            assert entry is not None
            tested = self.block(prelude, dict(entry))
            after = None if tested is None else self.block(statement.body, dict(tested))
            if not runs:
                left.append(tested)
            runs = False
            again = join([after, *self.exits.continues])
            self.exits.continues = []
            if again is None:
                break
            entry = again
            left.append(again)
        if not ends:
            left.clear()  # only a `break` comes out
        left += self.exits.breaks
        leaves = self.exits.leaves
        self.exits = outer
        return join(left), leaves

    def runs(self, statement: ir.For | ir.While) -> bool:
        """Whether a loop has a first round for certain."""
        if isinstance(statement, ir.While):
            return truth(self.b, statement.condition, constants=True) is True
        rounds = self.b.at_constants(self.b.poly(statement.hi) - self.b.poly(statement.lo)).constant
        return rounds is not None and rounds > 0

    def reads(self, statement: ir.Statement) -> Iterator[tuple[ir.Variable, Span, tuple[Span, ...]]]:
        """Tracked tiles that a statement itself reads, and where."""
        expressions = list(expressions_in(statement))
        match statement:
            case ir.Store(access=access):
                expressions += subscript_parts(access)
            case ir.DefineView(access=access):
                expressions += subscript_parts(access)
        for outer in expressions:
            for inner in walk(outer):
                match inner:
                    case ir.VariableRef(variable=variable):
                        base = self.views.get(variable, variable)
                        if base in self.tracked:
                            yield base, inner.span, inner.calls
                    case ir.Load(access=ir.Access(base=ir.Variable() as base)) if base in self.tracked:
                        yield base, inner.span, inner.calls
        match statement:
            case ir.Assign(op=str(), variable=variable) if variable in self.tracked:
                yield variable, statement.span, statement.calls
            case ir.Store(op=str(), access=access) if access.base in self.tracked:
                assert isinstance(access.base, ir.Variable)
                yield access.base, access.span, access.calls

    def report(self, variable: ir.Variable, place: Span, calls: tuple[Span, ...], sure: bool) -> None:
        self.b.report(
            "PH110",
            f"`{variable.name}` is read before anything is stored in it"
            if sure
            else f"`{variable.name}` may be read before anything is stored in it",
            place,
            "its elements have no value here" if sure else "on some path its elements have no value here",
            severity="error" if sure else "warning",
            related=(Related(variable.span, "declared without a value"),),
            calls=calls,
            help=f"give it one where it is declared: `var {variable.name}: ... = 0`",
        )


def join(states: list[State | None]) -> State | None:
    """What holds where paths meet: unwritten on all of them, or on some."""
    reached = [state for state in states if state is not None]
    if not reached:
        return None
    result: State = {}
    for state in reached:
        for variable in state:
            result[variable] = all(other.get(variable, False) for other in reached)
    return result
