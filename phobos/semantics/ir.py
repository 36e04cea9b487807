"""The typed program: a kernel with its names resolved, its functions inlined and its effects in order.

`semantics.build` makes it from the tree; every analysis, both runtimes and the emitter read it. What it
guarantees, so that no reader has to ask again:

- Names are gone. A scalar or tile variable is one `Variable` object (a function inlined twice has two);
  a tensor is always a tensor parameter of the kernel, also inside an inlined function.
- Expressions are pure: they read, they never write. Atomics and inlined calls are statements before the
  statement that uses their result, in the order of evaluation; an operand that was read before such an
  effect stands in a temporary. The right side of a short-circuit operator that holds an effect has become
  an `If`. A `While` evaluates `prelude` before its condition, in every round.
- Operands agree. Where the language joins two element types or brings a scalar to a tile's type, a
  `Convert` stands; a `Binary` has two operands of one dtype, and its shape is their broadcast.
- `x op= e` is one statement with `op` and its subscripts evaluated once, where both sides have one element type and
  nothing happens between the two; otherwise it is written out: `x = convert(x op e)`, the element kept in a temporary.
- Every node has a `Span` (`span.owner` is `None` in the kernel, the function's name inside one) and
  `calls`, the call sites it was inlined through, outermost first.

Nothing here is an error: where the text is wrong, `build` has reported a problem and put an `Error`
expression, which every reader must take to mean "unknown, stay silent".
"""

from __future__ import annotations

from typing import Union

from phobos.diagnostic import Span
from phobos.semantics.poly import Poly
from phobos.syntax import tree
from phobos.value import value

# --- types ------------------------------------------------------------------------------------------

# dtype names: the scalar types of the language, and "index" (64-bit signed). A scalar of an integer dtype
# other than "index" is a *real* integer (an atomic's result, `i8(x)`, `u8(x)`, `i32(x)`). Elements of integer tensors
# read as points are "index"; tiles keep their element dtype (also "index" for `iota`).


@value
class ScalarT:
    dtype: str


@value
class TileT:
    """`shape` holds an int where the length is known when compiled, else a `Poly` (a runtime length)."""

    dtype: str
    shape: tuple[int | Poly, ...]


@value
class ErrorT:
    """The type of what was already reported."""


Type = Union[ScalarT, TileT, ErrorT]


# --- what a kernel is made of -------------------------------------------------------------------------


@value
class Constant:
    """A compile-time constant of `@autotune` or `@cluster`."""

    name: str
    choices: tuple[int, ...]  # as enumerated (language.md section 8), in order
    value: int  # the one this program was built with: the default, or what the caller set
    attribute: str  # "autotune" or "cluster"
    span: Span  # its name in the attribute


@value
class Dim:
    """A symbolic extent. `tensor`/`axis` is where it is bound: the first tensor that mentions it."""

    name: str
    tensor: str
    axis: int
    span: Span


@value
class Tensor:
    """A tensor parameter. Each extent is an int, a `Dim`, or a `Constant`."""

    name: str
    dtype: str
    extents: tuple[int | Dim | Constant, ...]
    span: Span
    param: tree.Param


@value
class ScalarParam:
    name: str
    dtype: str  # as declared; integers are read as index
    span: Span
    param: tree.Param


@value
class Variable:
    """A local: scalar or tile, `let` or `var`, loop variable, or a temporary that `build` made.

    `kind`: "let" (bound once), "var", "loop", "view" (see `DefineView`), "temp" (made by build, bound once).
    A "let"/"temp" tile is read-only. `name` is "" for a temporary, and for the "var" of a result or of a condition
    that `build` made. `calls` tells two inlinings apart.
    """

    name: str
    kind: str
    type: Type
    span: Span
    calls: tuple[Span, ...]


# --- expressions --------------------------------------------------------------------------------------


@value
class Expression:
    span: Span
    calls: tuple[Span, ...]
    type: Type


@value
class Error(Expression):
    pass


@value
class IntLiteral(Expression):
    value: int


@value
class FloatLiteral(Expression):
    value: float


@value
class BoolLiteral(Expression):
    value: bool


@value
class ConstantRef(Expression):
    constant: Constant


@value
class DimRef(Expression):
    """A symbol's extent, however it was spelled (`N`, or `extent(X, d)`)."""

    dim: Dim


@value
class ParamRef(Expression):
    param: ScalarParam


@value
class BlockIndex(Expression):
    axis: int


@value
class GridExtent(Expression):
    axis: int


@value
class ThreadValue(Expression):
    """`ctx.thread.x` and friends: checked, not executed. `name` is the spelling."""

    name: str


@value
class VariableRef(Expression):
    """A scalar or tile variable. For a view, the read happens here."""

    variable: Variable


@value
class PointSub:
    """One cell of an axis."""

    index: Expression


@value
class SliceSub:
    """`length` cells from `first`. `static` is the length where it is known when compiled.

    `first : hi` has `length` = `hi - first`, never negative when run (clamped at 0); `:` is first 0 and the
    whole extent. `whole` marks `:`, for whom nothing can be outside.
    """

    first: Expression
    length: Expression
    static: int | None
    whole: bool


Sub = Union[PointSub, SliceSub]


@value
class Access:
    """Cells of a tensor or of a tile variable: all subscripts are points (`is_point`) or all are slices."""

    span: Span
    calls: tuple[Span, ...]
    base: Tensor | Variable
    subs: tuple[Sub, ...]

    @property
    def is_point(self) -> bool:
        return all(isinstance(sub, PointSub) for sub in self.subs)


@value
class Load(Expression):
    """Reads an access. A point gives a scalar, slices a tile with masked cells as 0."""

    access: Access


@value
class UnaryOp(Expression):
    op: str  # - ! ~
    operand: Expression


@value
class BinaryOp(Expression):
    """Elementwise with broadcasting, or scalar. Comparisons give bool. Not `&&`/`||` on scalars."""

    op: str
    left: Expression
    right: Expression


@value
class ShortCircuit(Expression):
    """`&&` or `||` on scalars: the right side is evaluated only where the left does not decide."""

    op: str
    left: Expression
    right: Expression


@value
class Convert(Expression):
    """To another dtype, shape kept. `explicit` where the user wrote it (`f32(x)`).

    An index that an annotation wraps (`let x: i32 = n`) is converted to the real integer and back to "index".
    """

    operand: Expression
    explicit: bool


@value
class BuiltinCall(Expression):
    """A pure built-in of `language.builtins` on values: `exp`, `where`, `rowsum`, `dot`, ...

    `flat` and `gather` of declared tiles take a `VariableRef`; `gather`'s table may be a `TensorRef`.
    """

    name: str
    arguments: tuple[Expression, ...]


@value
class TensorRef(Expression):
    """A whole tensor as the operand of a built-in that names one (`gather`'s table). `type` is a TileT."""

    tensor: Tensor


@value
class Unsupported(Expression):
    """A call that is known by name but not executed here (quantised, later levels, unknown callee).

    A tensor passed by name is an `Error` among the arguments. Always the value of a `Define` of a temporary, so that it
    is found even where its result is used wrongly. `may_wait`: a grid barrier may be inside, for nothing is known of it
    and it takes a tensor.
    """

    name: str
    arguments: tuple[Expression, ...]
    may_wait: bool


# --- statements ---------------------------------------------------------------------------------------


@value
class Statement:
    span: Span
    calls: tuple[Span, ...]


@value
class Define(Statement):
    """Brings `variable` into being. A tile variable owns its cells (a copy); no value: uninitialised."""

    variable: Variable
    value: Expression | None


@value
class DefineView(Statement):
    """`let v = A[slices]`: the subscripts are evaluated here, the elements at each `VariableRef`."""

    variable: Variable
    access: Access


@value
class Assign(Statement):
    """Whole variable; a scalar value fills a tile. `op` is None for `=`, else + - * / %."""

    variable: Variable
    op: str | None
    value: Expression


@value
class Store(Statement):
    """Into cells of a tensor or tile. Point: scalar, once per CTA. Slices: a tile, or a scalar that fills."""

    access: Access
    op: str | None
    value: Expression


@value
class Evaluate(Statement):
    """An expression statement: no effect, still subject to the rules of what it reads."""

    value: Expression


@value
class Block:
    statements: tuple[Statement, ...]


@value
class For(Statement):
    """`span` covers the statement; `keyword` is `for`. Bounds are evaluated once."""

    keyword: Span
    variable: Variable
    lo: Expression
    hi: Expression
    step: Expression
    unroll: int | None
    body: Block


@value
class While(Statement):
    keyword: Span
    prelude: Block
    condition: Expression
    body: Block


@value
class If(Statement):
    """`keyword` is `if` (or the operator, when `build` made it of a short circuit)."""

    keyword: Span
    condition: Expression
    then: Block
    otherwise: Block


@value
class Break(Statement):
    pass


@value
class Continue(Statement):
    pass


@value
class Inline(Statement):
    """The body of a called function; its parameters are `Define`s of "let" variables at the start of `body`.

    `result` comes into being with this statement, and outlives it. Where the function has one `return`, at its end,
    `result` is a "temp" that a `Define` in `body` binds once, and no `Leave` follows; otherwise it is a "var", set by
    an `Assign` before each `Leave`.
    """

    function: str
    body: Block
    result: Variable | None


@value
class Leave(Statement):
    """`return`: of the innermost enclosing `Inline`, or of the kernel (`leaves_kernel`)."""

    leaves_kernel: bool


@value
class Barrier(Statement):
    tensor: Tensor
    argument: Span


@value
class Atomic(Statement):
    """`kind` "add" (operands: value) or "cas" (old, new). `result` gets the old value, a real i32."""

    kind: str
    tensor: Tensor
    index: Expression
    operands: tuple[Expression, ...]
    result: Variable | None


@value
class AssumeUniform(Statement):
    """`// phobos: assume uniform(x)` above the statement that follows."""

    value: Expression


@value
class UnsupportedCall(Statement):
    """A statement call that is known by name but not executed here; `may_wait` as in `Unsupported`."""

    name: str
    arguments: tuple[Expression, ...]
    may_wait: bool
