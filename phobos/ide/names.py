"""Who is who in one item: every name that is written in a kernel or function and what it stands for.

This is scoping alone, read from the tree, so that it holds in code that does not parse or does not type. What a
name's value *is* (type, uniformity, masks) is asked of the program, never of this file. Offsets count from the
item's first character, as in the tree; an item is pure in its text, so its names are kept with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from phobos.ide.keeping import kept
from phobos.syntax import tree
from phobos.syntax.pragmas import pragma_of
from phobos.value import value

Kind = Literal["kernel", "function", "tensor", "tile", "parameter", "dimension", "constant", "let", "var", "loop"]
Role = Literal["declare", "read", "write", "update", "call", "attribute"]



@value
class Symbol:
    """One thing with a name. It can be named between `visible_from` and `visible_to`.

    `node` is what declares it: `Kernel`, `Function`, `Param`, `Let`, `Var`, `For`, `SearchArg`, or the `TensorType`
    (`TileType`) that mentions a dimension first.
    """

    kind: Kind
    name: str
    declared: tree.Name
    node: tree.Node
    visible_from: int
    visible_to: int


@value
class Use:
    """A name as written. `symbol` is None for what this item does not declare (a function, a built-in, a mistake).

    `node` is None in a comment.
    """

    start: int
    end: int
    name: str
    role: Role
    symbol: Symbol | None
    node: tree.Name | None


class Names:
    """All names of an item, in the order of the text."""

    __slots__ = ("symbols", "uses")

    def __init__(self, symbols: tuple[Symbol, ...], uses: tuple[Use, ...]) -> None:
        self.symbols = symbols
        self.uses = uses

    def at(self, offset: int) -> Use | None:
        """The name that `offset` touches: one that holds it, else one that ends there."""
        ends_here = None
        for use in self.uses:
            if use.start > offset:
                break
            if offset < use.end:
                return use
            if offset == use.end:
                ends_here = use
        return ends_here

    def of(self, symbol: Symbol) -> tuple[Use, ...]:
        return tuple(use for use in self.uses if use.symbol is symbol)

    def visible(self, offset: int) -> dict[str, Symbol]:
        """What each name means at `offset`; of two in scope the later declared one."""
        found: dict[str, Symbol] = {}
        for symbol in self.symbols:
            if symbol.kind not in ("kernel", "function") and symbol.visible_from <= offset <= symbol.visible_to:
                known = found.get(symbol.name)
                if known is None or known.visible_from <= symbol.visible_from:
                    found[symbol.name] = symbol
        return found


@kept
def names_of(item: tree.Item) -> Names:
    """The names of an item; none where the item is neither a kernel nor a function."""
    if item.node is None:
        return Names((), ())
    reader = _Reader(item)
    reader.read(item.node)
    symbols = tuple(sorted(reader.symbols, key=lambda s: (s.visible_from, s.declared.start)))
    return Names(symbols, tuple(sorted(reader.uses, key=lambda use: (use.start, use.end))))


class _Reader:
    """Walks the tree with a stack of its own (code may nest deeper than Python likes to recurse)."""

    def __init__(self, item: tree.Item) -> None:
        self.item = item
        self.length = len(item.text)
        self.symbols: list[Symbol] = []
        self.uses: list[Use] = []
        self.top: dict[str, Symbol] = {}  # parameters, dimensions, constants

    # --- declarations ---------------------------------------------------------------------------------

    def declare(self, kind: Kind, name: tree.Name, node: tree.Node, start: int, end: int) -> Symbol:
        symbol = Symbol(kind, name.text, name, node, start, end)
        if name.text:
            self.symbols.append(symbol)
            self.uses.append(Use(name.start, name.end, name.text, "declare", symbol, name))
        return symbol

    def mention(self, name: tree.Name, role: Role, symbol: Symbol | None) -> None:
        if name.text:
            self.uses.append(Use(name.start, name.end, name.text, role, symbol, name))

    def read(self, node: tree.Kernel | tree.Function) -> None:
        self.declare("kernel" if isinstance(node, tree.Kernel) else "function", node.name, node, 0, self.length)
        attributes = node.attributes if isinstance(node, tree.Kernel) else ()
        self.constants(attributes)
        self.parameters(node)
        self.promises(attributes)
        if isinstance(node, tree.Function) and node.result is not None:
            self.type(node.result, self.top)
        self.body(node.body)
        self.comments()

    def constants(self, attributes: tuple[tree.Attribute, ...]) -> None:
        for attribute in attributes:
            for argument in attribute.arguments:
                if isinstance(argument, tree.SearchArg):
                    known = self.top.get(argument.name.text)
                    if known is None:
                        known = self.declare("constant", argument.name, argument, 0, self.length)
                        self.top[argument.name.text] = known
                    else:  # merged: a second list for the same constant
                        self.mention(argument.name, "attribute", known)

    def parameters(self, node: tree.Kernel | tree.Function) -> None:
        for param in node.params:
            kind: Kind = "parameter"
            if isinstance(param.type, tree.TensorType):
                kind = "tensor"
            elif isinstance(param.type, tree.TileType):
                kind = "tile"
            known = self.top.get(param.name.text)
            if known is not None and known.kind == "dimension" and kind == "parameter":
                self.mention(param.name, "read", known)  # a parameter of a dimension's name is passed equal to it
                continue
            symbol = self.declare(kind, param.name, param, 0, self.length)
            self.top.setdefault(param.name.text, symbol)
            if not isinstance(param.type, tree.ScalarType):
                self.type(param.type, self.top, binds=True)

    def type(self, node: tree.TypeNode, scope: dict[str, Symbol], binds: bool = False) -> None:
        if isinstance(node, tree.ScalarType):
            return
        for dim in node.dims:
            if isinstance(dim, tree.Name):
                known = scope.get(dim.text)
                if known is None and binds:
                    scope[dim.text] = self.declare("dimension", dim, node, 0, self.length)
                else:
                    self.mention(dim, "read", known)

    def promises(self, attributes: tuple[tree.Attribute, ...]) -> None:
        for attribute in attributes:
            for argument in attribute.arguments:
                match argument:
                    case tree.KeywordArg(name=name, value=value):
                        self.mention(name, "attribute", self.top.get(name.text))
                        if isinstance(value, tree.Name):
                            self.mention(value, "attribute", self.top.get(value.text))
                    case tree.PlainArg(value=tree.Name() as value) if value.text in self.top:
                        self.mention(value, "attribute", self.top[value.text])
                    case _:
                        pass

    # --- statements -----------------------------------------------------------------------------------

    def body(self, block: tree.Block) -> None:
        # Each entry is a block with its iterator and scope; a scope is a chain of dictionaries.
        stack: list[tuple[Iterator[tree.Stmt], _Scope, int]] = [
            (iter(block.statements), _Scope({}, _Scope(self.top)), block.end)
        ]
        while stack:
            statements, scope, end = stack[-1]
            statement = next(statements, None)
            if statement is None:
                stack.pop()
                continue
            for inner, bound in self.statement(statement, scope, end):
                stack.append((iter(inner.statements), bound, inner.end))

    def statement(self, statement: tree.Stmt, scope: _Scope, end: int) -> list[tuple[tree.Block, _Scope]]:
        """Read one statement; gives the blocks inside it, last first, each with its scope."""
        match statement:
            case tree.Let(name=name, type=annotation, value=value) | tree.Var(name=name, type=annotation, value=value):
                if annotation is not None:
                    self.annotation(annotation, scope)
                if value is not None:
                    self.expression(value, scope)
                kind: Kind = "let" if isinstance(statement, tree.Let) else "var"
                scope.here[name.text] = self.declare(kind, name, statement, statement.end, end)
            case tree.Assign(target=target, op=op, value=value):
                role: Role = "write" if op == "=" else "update"
                if isinstance(target, tree.Name):
                    self.mention(target, role, scope.find(target.text))
                elif isinstance(target, tree.Subscript):
                    base = target.base
                    if isinstance(base, tree.Name):
                        self.mention(base, role, scope.find(base.text))
                    else:
                        self.expression(base, scope)
                    self.subscripts(target.subscripts, scope)
                else:
                    self.expression(target, scope)
                self.expression(value, scope)
            case tree.For(variable=variable, lo=lo, hi=hi, step=step, body=body):
                for bound in (lo, hi, step):
                    if bound is not None:
                        self.expression(bound, scope)
                inner = _Scope({}, scope)
                inner.here[variable.text] = self.declare("loop", variable, statement, body.start, body.end)
                return [(body, _Scope({}, inner))]
            case tree.While(condition=condition, body=body):
                self.expression(condition, scope)
                return [(body, _Scope({}, scope))]
            case tree.If(condition=condition, then=then, otherwise=otherwise):
                self.expression(condition, scope)
                rest: list[tuple[tree.Block, _Scope]] = [(then, _Scope({}, scope))]
                while isinstance(otherwise, tree.If):  # an else-if chain may be long: no recursion
                    self.expression(otherwise.condition, scope)
                    rest.append((otherwise.then, _Scope({}, scope)))
                    otherwise = otherwise.otherwise
                if otherwise is not None:
                    rest.append((otherwise, _Scope({}, scope)))
                return rest[::-1]
            case tree.Return(value=value) if value is not None:
                self.expression(value, scope)
            case tree.ExprStmt(value=value):
                self.expression(value, scope)
            case tree.Broken(parts=parts):
                for part in parts:
                    self.expression(part, scope)
            case tree.Block():
                return [(statement, _Scope({}, scope))]
            case _:
                pass
        return []

    def annotation(self, node: tree.TypeNode, scope: _Scope) -> None:
        if not isinstance(node, tree.ScalarType):
            for dim in node.dims:
                if isinstance(dim, tree.Name):
                    self.mention(dim, "read", scope.find(dim.text))

    # --- expressions ----------------------------------------------------------------------------------

    def expression(self, root: tree.Expr, scope: _Scope) -> None:
        stack: list[tree.Expr] = [root]
        while stack:
            match stack.pop():
                case tree.Name() as name:
                    self.mention(name, "read", scope.find(name.text))
                case tree.Unary(operand=operand):
                    stack.append(operand)
                case tree.Binary(left=left, right=right):
                    stack += [right, left]
                case tree.Call(callee=callee, arguments=arguments):
                    self.mention(callee, "call", None)
                    stack.extend(reversed(arguments))
                case tree.Subscript(base=base, subscripts=subscripts):
                    stack.append(base)
                    stack.extend(reversed(list(_parts(subscripts))))
                case tree.Member(base=base):
                    stack.append(base)
                case tree.Paren(inner=inner):
                    stack.append(inner)
                case _:
                    pass

    def subscripts(self, subscripts: tuple[tree.Index, ...], scope: _Scope) -> None:
        for part in _parts(subscripts):
            self.expression(part, scope)

    # --- comments -------------------------------------------------------------------------------------

    def comments(self) -> None:
        """`// phobos: assume uniform(x)` names what it speaks of as the statement below it would."""
        for comment in self.item.comments:
            pragma = pragma_of(comment)
            if pragma is None or pragma.kind != "assume-uniform":
                continue
            known = Names(tuple(self.symbols), ()).visible(comment.start)
            for word in pragma.words:
                symbol = known.get(word.text)
                if symbol is not None:
                    self.uses.append(Use(word.start, word.end, word.text, "read", symbol, None))


class _Scope:
    """Names of a block over those of the blocks around it."""

    __slots__ = ("here", "outer")

    def __init__(self, here: dict[str, Symbol], outer: _Scope | None = None) -> None:
        self.here = here
        self.outer = outer

    def find(self, name: str) -> Symbol | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.here:
                return scope.here[name]
            scope = scope.outer
        return None


def _parts(subscripts: tuple[tree.Index, ...]) -> Iterator[tree.Expr]:
    for index in subscripts:
        match index:
            case tree.Point(value=value):
                yield value
            case tree.SpanOf(first=first, length=length):
                yield first
                yield length
            case tree.Range(lo=lo, hi=hi):
                if lo is not None:
                    yield lo
                if hi is not None:
                    yield hi
