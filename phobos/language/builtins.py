"""The built-in functions: signature, shape rule, type rule, documentation, example, level, and whether they run here.

A call by one of these names always means the built-in when `core` is true, whatever else has that name. The other
entries (quantised, per-thread and library names of later levels) are known so that a kernel which uses them is
not called wrong; a function of the file with that name comes first.
"""

from __future__ import annotations

from typing import Literal

from phobos.language.scalars import SCALARS
from phobos.value import value

ParameterKind = Literal["tile", "value", "tensor", "index", "axis", "condition", "table", "length", "any"]
ShapeRule = Literal[
    "statement", "scalar", "same", "broadcast", "rows", "transposed", "flat", "second", "dot", "dot_t", "iota", "loose"
]
DtypeRule = Literal[
    "none", "index", "i32", "same", "float", "shared", "join", "second-pair", "first", "accumulate", "convert", "loose"
]
Family = Literal["core", "quantised", "thread", "library"]


@value
class Parameter:
    """`label` is the name shown in a signature."""

    label: str
    kind: ParameterKind
    documentation: str


@value
class Builtin:
    """One built-in.

    `result` is the result in words; `shape` and `dtype` name the rules by which the builder types a call. `effect`
    is "barrier", "atomic" or "" (pure). `executed`: both runtimes run it.
    """

    name: str
    parameters: tuple[Parameter, ...]
    result: str
    shape: ShapeRule
    dtype: DtypeRule
    documentation: str
    example: str
    level: str = "0.1"
    executed: bool = True
    effect: str = ""
    family: Family = "core"
    variadic: bool = False

    @property
    def core(self) -> bool:
        return self.family == "core"

    @property
    def signature(self) -> str:
        """`dot(a, b) -> [M, N]`"""
        inside = "..." if self.variadic else ", ".join(p.label for p in self.parameters)
        return f"{self.name}({inside})" + (f" -> {self.gives}" if self.result else "")

    @property
    def gives(self) -> str:
        """`result` for where it is shown as code: without marks of code in it."""
        return self.result.replace("`", "")


def _tile(label: str = "t", documentation: str = "a float tile") -> Parameter:
    return Parameter(label, "tile", documentation)


def _value(label: str, documentation: str) -> Parameter:
    return Parameter(label, "value", documentation)


_FLOAT_VALUE = _value("t", "a float tile or scalar")


def _math(name: str, documentation: str, example: str) -> Builtin:
    return Builtin(name, (_FLOAT_VALUE,), "the type and shape of `t`", "same", "float", documentation, example)


def _conversion(name: str) -> Builtin:
    scalar = SCALARS[name]
    what = (
        "Floats round to nearest even; integers convert exactly where they can."
        if scalar.kind == "float"
        else "Floats truncate toward zero and saturate, NaN gives 0; wider integers wrap."
    )
    if name == "i64":
        what += " `i64` of a scalar is an index: this is how an atomic's result becomes a subscript or a bound."
    elif scalar.kind == "integer":
        what += f" `{name}` of a scalar is a real integer, not an index."
    return Builtin(
        name,
        (_value("x", "a number or a tile of numbers"),),
        f"`x` as {name}",
        "same",
        "convert",
        f"Converts to {name}. {what}",
        f"let y = {name}(x)",
        level=scalar.level,
    )


_CORE = (
    Builtin(
        "program_id", (Parameter("axis", "axis", "0, 1 or 2, as a literal"),), "index", "scalar", "index",
        "The index of this block on one axis of the grid: the 0.1 spelling of `ctx.block.x`, `.y`, `.z`.",
        "let p = program_id(0)",
    ),
    Builtin(
        "extent",
        (
            Parameter("tensor", "tensor", "the name of a tensor parameter"),
            Parameter("axis", "axis", "the dimension, as a literal from 0"),
        ),
        "index", "scalar", "index",
        "The size of a tensor along one dimension.",
        "let n = extent(X, 0)",
        level="0.2",
    ),
    Builtin(
        "grid_barrier",
        (Parameter("bar", "tensor", "an i32 tensor parameter of at least 2 elements, `[n]` or `[n, 1]`"),),
        "", "statement", "none",
        "Waits until every block of the grid has come here, and orders what each did to global memory before it before "
        "what any does after it. Needs `@persistent` and a one-dimensional grid; every block must pass the same "
        "calls in the same order. `bar` is zero before the first launch and otherwise left alone.",
        "grid_barrier(BAR)",
        effect="barrier",
    ),
    Builtin(
        "atomic_add",
        (
            Parameter("tensor", "tensor", "an i32 tensor parameter, `[n]` or `[n, 1]`"),
            Parameter("index", "index", "position in the leading dimension"),
            Parameter("value", "value", "an integer"),
        ),
        "real i32, the old value", "scalar", "i32",
        "Adds to one cell, once per block, and gives the value it had. Acquires and releases at device scope. The "
        "result is a real i32; `i64(..)` makes it an index.",
        "let ticket = i64(atomic_add(NEXT, 0, 1))",
        effect="atomic",
    ),
    Builtin(
        "atomic_cas",
        (
            Parameter("tensor", "tensor", "an i32 tensor parameter, `[n]` or `[n, 1]`"),
            Parameter("index", "index", "position in the leading dimension"),
            Parameter("old", "value", "the integer that must be there"),
            Parameter("new", "value", "the integer to put in its place"),
        ),
        "real i32, the old value", "scalar", "i32",
        "Compares and swaps one cell, once per block: stores `new` where the cell holds `old`, and gives the value it "
        "had. Acquires and releases at device scope.",
        "let was = atomic_cas(LOCK, 0, 0, 1)",
        level="0.2", effect="atomic",
    ),
    _math("exp", "e to the power of each element. A GPU uses its approximate instruction.", "let e = exp(t)"),
    _math("log", "Natural logarithm of each element. A GPU uses its approximate instruction.", "let l = log(t)"),
    _math("sqrt", "Square root of each element. A GPU uses its approximate instruction.", "let s = sqrt(t)"),
    _math("tanh", "Hyperbolic tangent of each element. A GPU uses its approximate instruction.", "let h = tanh(t)"),
    _math("round", "Each element to the nearest whole number, ties to even.", "let r = round(t)"),
    Builtin(
        "pow", (_value("a", "a float tile or scalar"), _value("b", "the exponent")), "broadcast of `a` and `b`",
        "broadcast", "float",
        "`a` to the power of `b`, element by element.",
        "let y = pow(t, 2.0)",
        level="0.2",
    ),
    Builtin(
        "tmax", (_value("a", "a tile or scalar"), _value("b", "of the same element type")), "broadcast of `a` and `b`",
        "broadcast", "shared",
        "The larger of two elements: `a > b ? a : b`, so a NaN in `a` loses and one in `b` wins.",
        "m = tmax(m, rowmax(s))",
    ),
    Builtin(
        "tmin", (_value("a", "a tile or scalar"), _value("b", "of the same element type")), "broadcast of `a` and `b`",
        "broadcast", "shared",
        "The smaller of two elements: `a < b ? a : b`.",
        "m = tmin(m, t)",
        level="0.2",
    ),
    Builtin(
        "where",
        (
            Parameter("condition", "condition", "a bool tile or scalar"),
            _value("a", "taken where the condition is true"),
            _value("b", "taken where it is false"),
        ),
        "broadcast of all three", "broadcast", "join",
        "Chooses between two values, element by element. Both are evaluated.",
        "let safe = where(c, t, 0.0)",
        level="0.2",
    ),
    Builtin(
        "iota", (Parameter("n", "length", "a length known when compiled"),), "`[1, n]` tile of index", "iota", "index",
        "The numbers 0, 1, ... n-1 as a row.",
        "let column = iota(64)",
        level="0.2",
    ),
    Builtin(
        "argsel",
        (
            _value("va", "values of the first"), _value("vb", "values of the second"),
            _value("ia", "taken where `va >= vb`"), _value("ib", "taken elsewhere"),
        ),
        "broadcast", "broadcast", "second-pair",
        "Chooses by comparing: `va >= vb ? ia : ib`. The values share a type, and so do the choices.",
        "let i = argsel(a, b, ia, ib)",
    ),
    Builtin(
        "rowmax", (_tile(),), "[R, 1]", "rows", "float",
        "The largest element of each row of an `[R, C]` tile. Cells that a mask filled count as 0.",
        "let m = rowmax(t)",
    ),
    Builtin(
        "rowsum", (_tile(),), "[R, 1]", "rows", "float",
        "The sum of each row of an `[R, C]` tile, in the element type; the order of the sum is not fixed.",
        "let s = rowsum(t)",
    ),
    Builtin(
        "rowargmax", (_tile(),), "[R, 1] tile of index", "rows", "index",
        "The column of the largest element of each row of an `[R, C]` tile; the first of equal ones.",
        "let j = rowargmax(t)",
        level="0.2",
    ),
    Builtin(
        "cumsum", (_tile(),), "the shape of `t`", "same", "float",
        "Running sums down the rows of an `[R, C]` tile, each row included in its own.",
        "let c = cumsum(t)",
    ),
    Builtin(
        "tril", (_tile(),), "the shape of `t`", "same", "float",
        "Keeps the elements with column <= row of an `[R, C]` tile, and puts 0 elsewhere.",
        "let l = tril(t)",
    ),
    Builtin(
        "transpose", (Parameter("t", "tile", "a tile of rank 2"),), "[C, R]", "transposed", "same",
        "Swaps the two axes of an `[R, C]` tile.",
        "let u = transpose(t)",
    ),
    Builtin(
        "flat", (Parameter("t", "tile", "the name of a declared tile of rank 2"),), "[1, R*C]", "flat", "same",
        "A declared tile read as one row, in row-major order. Read-only.",
        "let row = flat(t)",
    ),
    Builtin(
        "gather",
        (
            Parameter("table", "table", "a tensor or tile, `[n]` or `[1, n]`"),
            Parameter("idx", "tile", "a tile of integers"),
        ),
        "the shape of `idx`", "second", "first",
        "Looks each index up in a table. An index outside the table is a fault.",
        "let y = gather(TABLE, idx)",
    ),
    Builtin(
        "dot",
        (Parameter("a", "tile", "an `[M, K]` tile"), Parameter("b", "tile", "a `[K, N]` tile")),
        "[M, N]", "dot", "accumulate",
        "Matrix product: contracts the last axis of `a` with the first of `b`. K may be a runtime length. Integers "
        "accumulate in i32. `tile += dot(..)` accumulates in the tile.",
        "acc += dot(a, b)",
    ),
    Builtin(
        "dot_t",
        (Parameter("a", "tile", "an `[M, K]` tile"), Parameter("b", "tile", "an `[N, K]` tile")),
        "[M, N]", "dot_t", "accumulate",
        "Matrix product with the second operand transposed: contracts the last axis of both. K may be a "
        "runtime length.",
        "s += dot_t(q, k)",
    ),
    *(_conversion(name) for name in ("f16", "bf16", "f32", "f64", "i8", "u8", "i32", "i64")),
)

_FORMATS = ("iq1s", "iq1m", "iq2xxs", "iq2xs", "iq2s", "iq3xxs", "iq3s", "iq4xs",
            "q2k", "q3k", "q4k", "q5k", "q6k", "ptq1")

_QUANTISED = (
    "qdot_t", "qmma_t", "q50_qdot_t", "q50_qmma_t", "rms_norm_q_t", "rms_norm_gated_q_t", "iq1s_qmma_t",
    "warp_partial", "delta_scan_t",
    *(f"{fmt}_{form}" for fmt in _FORMATS
      for form in ("qdot_t", "qdot_i8_t", "qgemm_t", "qdecode_t", "qmma_staged_t")),
)

_THREAD = (
    "barrier", "elem", "store", "sum", "word", "byteperm", "popcount", "f16bits", "generate",
    "shuffle", "shuffle_xor", "shuffle_up", "shuffle_down", "lane_sum", "lane_max", "warp_sum", "warp_max", "cta_sum",
    "cta_max", "cta_any", "cta_all", "ballot",
)

_LIBRARY = (
    "gelu", "gelu_tanh", "relu", "leaky_relu", "elu", "selu", "silu", "swish", "mish", "sigmoid", "softplus",
    "hardswish", "hardsigmoid", "softmax", "log_softmax", "layer_norm", "rms_norm", "batch_norm", "group_norm",
    "mse_loss", "l1_loss", "cross_entropy", "nll_loss", "huber_loss", "kl_div", "dropout", "rand", "randn", "uniform",
    "attention", "colsum", "colmax", "rowmean", "colmean", "rowmin", "colmin", "quantize", "dequantize", "matmul",
)

_LATER_TEXT: dict[Family, str] = {
    "quantised": "A quantised or attention-specific built-in. Its name is known and its result is taken loosely; it "
    "is not executed here.",
    "thread": "Belongs to the per-thread level of the language. Its name is known; it is not executed here.",
    "library": "Belongs to the public standard library. Its name is known; it is not executed here. A function of the "
    "same name in the file is used instead.",
}


def _later(name: str, family: Family) -> Builtin:
    return Builtin(
        name, (), "not checked", "loose", "loose", _LATER_TEXT[family], f"let y = {name}(x)",
        level="later", executed=False, family=family, variadic=True,
    )


BUILTINS: dict[str, Builtin] = {
    **{b.name: b for b in _CORE},
    **{name: _later(name, "quantised") for name in _QUANTISED},
    **{name: _later(name, "thread") for name in _THREAD},
    **{name: _later(name, "library") for name in _LIBRARY},
}
"""Every known call, by name; those of the language itself first."""

CORE: dict[str, Builtin] = {b.name: b for b in _CORE}
"""The built-ins of the levels that are executed."""
