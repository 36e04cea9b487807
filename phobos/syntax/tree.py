"""The syntax tree of `.ph`: what was written, nothing of what it means.

Every node carries `start` and `end`, code-point offsets from the first character of its *item* (a kernel
with its attributes, or a function). Nodes hash by identity. A place that could not be parsed is a `Missing`
expression or a `Broken` statement, so that a tree exists for any text. No tree is nested deeper than
`shapes.DEPTH` expressions and blocks, so a walk may recurse.
"""

from __future__ import annotations

from typing import Union

from phobos.value import value


@value
class Node:
    start: int
    end: int


# --- expressions ------------------------------------------------------------------------------------


@value
class Name(Node):
    text: str


@value
class Int(Node):
    value: int


@value
class Float(Node):
    value: float
    text: str


@value
class Bool(Node):
    value: bool


@value
class Unary(Node):
    op: str  # - ! ~
    operand: Expr


@value
class Binary(Node):
    op: str  # || && | ^ & == != < <= > >= << >> + - * / %
    op_start: int
    left: Expr
    right: Expr


@value
class Call(Node):
    callee: Name
    arguments: tuple[Expr, ...]


@value
class Subscript(Node):
    base: Expr
    subscripts: tuple[Index, ...]


@value
class Member(Node):
    base: Expr
    name: Name  # text is "" while the user is still typing it


@value
class Paren(Node):
    """A parenthesised expression, kept for the formatter and for exact spans."""

    inner: Expr


@value
class Missing(Node):
    """Where an expression should stand and none does. The parser has already said so."""


Expr = Union[Name, Int, Float, Bool, Unary, Binary, Call, Subscript, Member, Paren, Missing]


# --- subscripts -------------------------------------------------------------------------------------


@value
class Point(Node):
    """`e`"""

    value: Expr


@value
class SpanOf(Node):
    """`first :+ length`"""

    first: Expr
    length: Expr


@value
class Range(Node):
    """`lo : hi`; either end may be open (`None`), both open is `:`."""

    lo: Expr | None
    hi: Expr | None


Index = Union[Point, SpanOf, Range]


# --- types ------------------------------------------------------------------------------------------


@value
class ScalarType(Node):
    """`name` is a scalar type; where it is not, or is empty, the parser has already said so."""

    name: str


@value
class TensorType(Node):
    element: ScalarType
    dims: tuple[Name | Int, ...]


@value
class TileType(Node):
    element: ScalarType
    dims: tuple[Name | Int, ...]


TypeNode = Union[ScalarType, TensorType, TileType]


# --- statements -------------------------------------------------------------------------------------


@value
class Block(Node):
    """`{ ... }`; the span includes the braces."""

    statements: tuple[Stmt, ...]


@value
class Let(Node):
    name: Name
    type: TypeNode | None
    value: Expr


@value
class Var(Node):
    name: Name
    type: TypeNode | None
    value: Expr | None


@value
class Assign(Node):
    target: Name | Subscript
    op: str  # = += -= *= /= %=
    op_start: int
    value: Expr


@value
class For(Node):
    """`for` is the three code points from `start`."""

    variable: Name
    lo: Expr
    hi: Expr
    step: Expr | None
    unroll: Int | None
    body: Block


@value
class While(Node):
    condition: Expr
    body: Block


@value
class If(Node):
    condition: Expr
    then: Block
    otherwise: Block | If | None
    else_start: int | None


@value
class Break(Node):
    pass


@value
class Continue(Node):
    pass


@value
class Return(Node):
    value: Expr | None


@value
class ExprStmt(Node):
    value: Expr


@value
class Broken(Node):
    """What no statement could take; `parts` are the expressions that could still be read in it."""

    parts: tuple[Expr, ...]


Stmt = Union[Let, Var, Assign, For, While, If, Break, Continue, Return, ExprStmt, Broken, Block]


# --- items ------------------------------------------------------------------------------------------


@value
class SearchArg(Node):
    """`NAME in [16, 256]`"""

    name: Name
    values: tuple[Int, ...]


@value
class KeywordArg(Node):
    """`NAME = literal`"""

    name: Name
    value: Int | Float | Bool | Name


@value
class PlainArg(Node):
    value: Int | Float | Bool | Name


@value
class Attribute(Node):
    """`@name(arguments)`; `parenthesised` tells `@persistent()` from `@persistent`."""

    name: Name
    arguments: tuple[SearchArg | KeywordArg | PlainArg, ...]
    parenthesised: bool


@value
class Param(Node):
    name: Name
    type: TypeNode


@value
class Kernel(Node):
    """`name.text` is "" when it is missing."""

    attributes: tuple[Attribute, ...]
    name: Name
    params: tuple[Param, ...]
    body: Block


@value
class Function(Node):
    name: Name
    params: tuple[Param, ...]
    result: TypeNode | None
    body: Block


@value
class SyntaxProblem:
    """What the parser could not take. `code` is PH001, PH002, PH003 or PH005; offsets as in nodes."""

    code: str
    message: str
    start: int
    end: int
    label: str = ""
    related: tuple[tuple[int, int, str], ...] = ()
    help: str | None = None
    fix: tuple[str, tuple[tuple[int, int, str], ...]] | None = None  # message, edits (start, end, content)


@value
class Comment:
    """`// ...` without its line end, at an item-relative offset."""

    start: int
    end: int
    text: str


@value
class Item:
    """One kernel or function, or a stretch of text that is neither (`node` is None then).

    Pure in `text`: two items of equal text are the same object, wherever they stand. `unopened`: a `{` is missing,
    so that a `}` meant for an inner block ends the item, and text that belongs to it stands behind it.
    """

    text: str
    node: Kernel | Function | None
    problems: tuple[SyntaxProblem, ...]
    comments: tuple[Comment, ...]
    unopened: bool = False


@value
class File:
    """A parsed file: `items` are (offset of the item's first character, item), in order."""

    text: str
    items: tuple[tuple[int, Item], ...]
