"""What the builder carries from node to node: where it is, what names mean, what it has made and what it found wrong.

One `Build` makes one program. Its parts are functions in the `build_*` modules, which call each other through
`Build.value` and `Build.run`, so that no module needs to know the one that uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from phobos.diagnostic import Fix, Related, Severity, Span, Tag
from phobos.semantics import ir
from phobos.semantics.names import Meaning, Scope
from phobos.semantics.poly import Poly
from phobos.semantics.program import Problem, Settings
from phobos.semantics.shapes import Length, length
from phobos.semantics.types import ERROR, is_index
from phobos.syntax import tree

E = TypeVar("E", bound=ir.Expression)

MOST_CALLS = 1000
"""Calls of functions that one kernel may hold after inlining."""

MOST_CALLS_ALONE = 100
"""Calls that are looked into while a function is analysed by itself."""

MOST_DEEP = 64
"""Functions that may be inside each other at one place after inlining."""


class Frame:
    """One function being inlined (or the item itself): its name, its result, and its `return`s."""

    __slots__ = ("function", "kind_known", "lengths", "name", "result", "result_type", "single", "symbols", "wraps_to")

    def __init__(self, function: tree.Function | tree.Kernel, name: str | None) -> None:
        self.function = function
        self.name = name
        self.result: ir.Variable | None = None
        self.result_type: ir.Type | None = None
        self.wraps_to: str | None = None
        self.single = False
        self.kind_known = False  # whether a `return` has said if the result is an index or a real integer
        self.symbols: dict[str, Meaning] = {}
        self.lengths: dict[str, Length] = {}


class Declared:
    """Where a variable was written, for fixes: its statement and the owner of the text."""

    __slots__ = ("node", "owner")

    def __init__(self, node: tree.Node, owner: str | None) -> None:
        self.node = node
        self.owner = owner


class Build:
    def __init__(
        self,
        functions: Mapping[str, tree.Item],
        settings: Settings,
        owner: str | None,
        evaluate: Callable[[Build, tree.Expr], ir.Expression],
        run: Callable[[Build, tree.Block], None],
        step: Callable[[Build, tree.Stmt], bool],
    ) -> None:
        self.functions = functions
        self.settings = settings
        self.alone = owner is not None  # a function by itself: its symbols may still turn out to be numbers
        self.owner = owner
        self.calls: tuple[Span, ...] = ()
        self.scope = Scope()
        self.frames: list[Frame] = []
        self.out: list[ir.Statement] = []
        self.problems: list[Problem] = []
        self.nodes: dict[tree.Node, object] = {}
        self.variables: list[ir.Variable] = []
        self.declared: dict[ir.Variable, Declared] = {}
        self.wraps: dict[ir.Variable, str] = {}
        self.known: dict[ir.Variable, Poly] = {}
        self.polys: dict[ir.Expression, Poly] = {}
        self.used: set[object] = set()  # meanings that were read
        self.constants: dict[str, ir.Constant] = {}
        self.zeros: dict[ir.Constant, Span | None] = {}  # where 0 is listed for a constant
        self.tensors: dict[str, ir.Tensor] = {}
        self.params: dict[str, ir.ScalarParam] = {}
        self.dims: dict[str, ir.Dim] = {}
        self.views: dict[ir.Variable, ir.Access] = {}
        self.truths: dict[ir.Variable, bool] = {}  # bool `let`s that are always the same
        self.loops = 0
        self.breaks = False  # whether the loop being built has a `break`
        self.dead = 0  # above 0 in code that is never reached
        self.assigned: dict[tree.Block, frozenset[str]] = {}
        self.redefined: set[ir.Variable] = set()
        self.inlined: dict[str, None] = {}
        self.call_count = 0
        self.serial = 0
        self.told: set[object] = set()
        self.assumes: dict[tree.Stmt, list[tree.Name]] = {}
        self.assumes_of: set[str | None] = set()
        self.lost: frozenset[str] | None = frozenset()  # names to say nothing of (None: any)
        self.item: tree.Item | None = None
        self.taken: list[tuple[tree.Param, tree.TileType]] = []  # tile parameters
        self.broken = False  # whether some of the text did not parse
        self._evaluate = evaluate
        self._run = run
        self._step = step

    # --- the other parts --------------------------------------------------------------------------

    def value(self, node: tree.Expr) -> ir.Expression:
        """The expression a node means; `Error` where it means nothing, and then that has been reported."""
        made = self._evaluate(self, node)
        self.nodes.setdefault(node, made)
        return made

    def run(self, block: tree.Block) -> None:
        """Append the body of an item or of an inlined function, in a scope of its own."""
        self._run(self, block)

    def statement(self, node: tree.Stmt) -> bool:
        """Append one statement. Whether control goes on to the next."""
        return self._step(self, node)

    # --- places -----------------------------------------------------------------------------------

    def span(self, node: tree.Node) -> Span:
        return Span(self.owner, node.start, node.end)

    def place(self, start: int, end: int) -> Span:
        return Span(self.owner, start, end)

    # --- making -----------------------------------------------------------------------------------

    def error(self, node: tree.Node) -> ir.Error:
        return ir.Error(self.span(node), self.calls, ERROR)

    def fresh(self) -> int:
        self.serial += 1
        return self.serial

    def variable(self, name: str, kind: str, type_: ir.Type, span: Span) -> ir.Variable:
        made = ir.Variable(name, kind, type_, span, self.calls)
        self.variables.append(made)
        return made

    def temporary(self, value: ir.Expression, at: int | None = None) -> ir.VariableRef:
        """Keep `value` in a temporary defined at position `at` of the statements (default: now)."""
        made = self.variable("", "temp", value.type, value.span)
        if is_index(value.type):
            self.known[made] = self.poly(value)
        statement = ir.Define(value.span, self.calls, made, value)
        self.out.insert(len(self.out) if at is None else at, statement)
        return ir.VariableRef(value.span, self.calls, value.type, made)

    def collect(self, make: Callable[[], None]) -> ir.Block:
        """The statements that `make` appends, as a block of their own."""
        outer, self.out = self.out, []
        try:
            make()
            return ir.Block(tuple(self.out))
        finally:
            self.out = outer

    def in_order(self, nodes: Sequence[tree.Expr]) -> list[ir.Expression]:
        """Operands from left to right. One that was read before a later one's effect is kept in a temporary."""
        made: list[ir.Expression] = []
        for node in nodes:
            mark = len(self.out)
            value = self.value(node)
            if len(self.out) > mark:
                made = self.keep(made, mark)
            made.append(value)
        return made

    def keep(self, made: list[ir.Expression], mark: int) -> list[ir.Expression]:
        """`made`, with what an effect at `mark` could change read before it."""
        kept: list[ir.Expression] = []
        for value in made:
            if is_settled(value):
                kept.append(value)
            else:
                kept.append(self.temporary(value, mark))
                mark += 1
        return kept

    # --- numbers ----------------------------------------------------------------------------------

    def poly(self, expression: ir.Expression) -> Poly:
        """An index expression as a polynomial; anything it cannot look into is an atom of its own."""
        found = self.polys.get(expression)
        if found is None:
            from phobos.semantics.build_numbers import poly_of

            found = self.polys[expression] = poly_of(self, expression)
        return found

    def at_constants(self, poly: Poly) -> Poly:
        """With every constant replaced by the number it has in this program."""
        if not poly.mentions("const"):
            return poly
        return poly.substitute(self._number)

    def _number(self, atom: tuple[object, ...]) -> Poly | None:
        if atom[0] == "const":
            return Poly.of(self.constants[str(atom[1])].value)
        if atom[0] in ("div", "mod"):
            from phobos.semantics.build_numbers import of_key, quotient, remainder

            operation = quotient if atom[0] == "div" else remainder
            return operation(self.at_constants(of_key(atom[1])), self.at_constants(of_key(atom[2])))
        return None

    def static(self, expression: ir.Expression) -> int | None:
        """The number an index expression always is in this program, or None."""
        return self.at_constants(self.poly(expression)).constant

    def length(self, poly: Poly) -> Length:
        return length(self.at_constants(poly))

    def extent(self, extent: int | ir.Dim | ir.Constant) -> Length:
        """The length of an axis."""
        if isinstance(extent, int):
            return extent
        if isinstance(extent, ir.Constant):
            return extent.value
        return Poly.atom("dim", extent.name)

    # --- problems ---------------------------------------------------------------------------------

    def report(
        self,
        code: str,
        message: str,
        where: tree.Node | Span,
        label: str = "",
        *,
        severity: Severity = "error",
        related: Sequence[Related] = (),
        notes: Sequence[str] = (),
        help: str | None = None,
        fix: Fix | None = None,
        tags: Sequence[Tag] = (),
        root: object = None,
        calls: tuple[Span, ...] | None = None,
    ) -> None:
        span = where if isinstance(where, Span) else self.span(where)
        chain = tuple(Related(call, "called from here") for call in (self.calls if calls is None else calls))
        key = (code, span.owner, span.start, span.end) if root is None else root
        if key in self.told:
            return
        self.told.add(key)
        self.problems.append(
            Problem(
                code, severity, message, span, label, chain + tuple(related), tuple(notes), help, fix, tuple(tags), key
            )
        )


def is_settled(expression: ir.Expression) -> bool:
    """Whether no effect can change what an expression gives: it reads neither memory nor a `var`."""
    stack = [expression]
    while stack:
        match stack.pop():
            case (
                ir.Error()
                | ir.IntLiteral()
                | ir.FloatLiteral()
                | ir.BoolLiteral()
                | ir.ConstantRef()
                | ir.DimRef()
                | ir.ParamRef()
                | ir.BlockIndex()
                | ir.GridExtent()
                | ir.ThreadValue()
                | ir.TensorRef()
            ):
                continue
            case ir.VariableRef(variable=variable):
                if variable.kind not in ("let", "temp", "loop"):
                    return False
            case ir.UnaryOp(operand=operand) | ir.Convert(operand=operand):
                stack.append(operand)
            case ir.BinaryOp(left=left, right=right) | ir.ShortCircuit(left=left, right=right):
                stack += (left, right)
            case ir.BuiltinCall(arguments=arguments) | ir.Unsupported(arguments=arguments):
                stack += arguments
            case _:
                return False
    return True
