"""The built-ins of the language as Python functions of a group of blocks; `language/` says what each means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from phobos.runtime.reference import numbers
from phobos.runtime.reference.evaluation import Eval, NotExecutable, dtype_of, rank_of, spreading
from phobos.runtime.reference.group import Group
from phobos.runtime.reference.machine import Place, check_gather
from phobos.runtime.reference.numbers import DTYPES, FLOATS, Array, Value
from phobos.semantics import ir

Compile = Callable[[ir.Expression], Eval]

_MATH = {"exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "round": np.rint}


def builtin(expression: ir.BuiltinCall, compiled: Compile) -> Eval:
    """A call as a function; `compiled` makes functions of its arguments. Raises NotExecutable."""
    name = expression.name
    rank = rank_of(expression.type)
    dtype = dtype_of(expression.type)
    if name == "gather":
        return _gather(expression, compiled)
    arguments = [compiled(a) if rank_of(a.type) else spreading(compiled(a), rank) for a in expression.arguments]
    types = [dtype_of(a.type) for a in expression.arguments]
    if name in _MATH:
        return _math(name, arguments[0], dtype)
    match name:
        case "pow":
            return _power(arguments[0], arguments[1], dtype)
        case "tmax" | "tmin":
            return _choose_by(np.greater if name == "tmax" else np.less, arguments, dtype)
        case "argsel":
            va, vb, ia, ib = arguments
            return lambda group: _pick(va(group) >= vb(group), ia(group), ib(group), dtype)
        case "where":
            c, a, b = arguments
            return lambda group: _pick(c(group), a(group), b(group), dtype)
        case "iota":
            assert isinstance(expression.type, ir.TileT)
            count = expression.type.shape[-1]
            assert isinstance(count, int)
            row = np.arange(count, dtype=np.int64).reshape(1, 1, count)
            row.flags.writeable = False
            return lambda group: row
        case "rowmax":
            return _rows(arguments[0], types[0], lambda t: t.max(axis=-1, keepdims=True))
        case "rowsum":
            return _rows(arguments[0], types[0], lambda t: t.sum(axis=-1, keepdims=True, dtype=t.dtype))
        case "rowargmax":
            first = arguments[0]
            return lambda group: np.argmax(_wide(first(group), types[0]), axis=-1, keepdims=True).astype(DTYPES[dtype])
        case "cumsum":
            return _rows(arguments[0], types[0], lambda t: np.cumsum(t, axis=-2, dtype=t.dtype))
        case "tril":
            first = arguments[0]
            return lambda group: np.tril(first(group)) if types[0] != "bf16" else _lower(first(group))
        case "transpose":
            first = arguments[0]
            return lambda group: first(group).swapaxes(-1, -2)
        case "flat":
            first = arguments[0]
            return lambda group: _row(first(group))
        case "dot" | "dot_t":
            return _dot(arguments[0], arguments[1], types[0], types[1], dtype, name == "dot_t")
    if len(arguments) == 1 and name in DTYPES:
        inner, source = arguments[0], types[0]
        return lambda group: numbers.convert(inner(group), source, dtype)
    raise NotExecutable(f"{name}(..)", expression)


def _gather(expression: ir.BuiltinCall, compiled: Compile) -> Eval:
    table, idx = expression.arguments
    index = compiled(idx)
    target = dtype_of(expression.type)
    if isinstance(table, ir.TensorRef):
        name, source = table.tensor.name, table.tensor.dtype
        place = Place(expression.span, expression.calls, name)

        def from_tensor(group: Group) -> Value:
            machine = group.machine
            found = machine.gather(group, machine.buffers[name], index(group), place)
            return numbers.convert_array(found, source, target)

        return from_tensor
    cells = compiled(table)
    source = dtype_of(table.type)
    spelled = table.variable.name if isinstance(table, ir.VariableRef) else "the table"
    place = Place(expression.span, expression.calls, spelled)

    def from_tile(group: Group) -> Value:
        held = cells(group)
        row = held.reshape(held.shape[0], -1)
        at = index(group)
        check_gather(group, spelled, row.shape[1], at, place)
        if row.shape[0] == 1:
            found = row[0][at]
        else:
            flat = np.broadcast_to(at, (row.shape[0], *at.shape[1:])).reshape(row.shape[0], -1)
            found = np.take_along_axis(row, flat.astype(np.int64), axis=1).reshape(row.shape[0], *at.shape[1:])
        return numbers.convert_array(found, source, target)

    return from_tile


def _wide(held: Value, dtype: str) -> Value:
    """Half precision as f32, in which it is computed."""
    if dtype in ("f16", "bf16"):
        return held.astype(np.float32)
    return held


def _math(name: str, inner: Eval, dtype: str) -> Eval:
    function = _MATH[name]
    if dtype in ("f16", "bf16"):
        target = DTYPES[dtype]
        return lambda group: function(inner(group).astype(np.float32)).astype(target)
    return lambda group: function(inner(group))


def _power(base: Eval, exponent: Eval, dtype: str) -> Eval:
    if dtype in ("f16", "bf16"):
        target = DTYPES[dtype]
        return lambda group: np.power(base(group).astype(np.float32), exponent(group).astype(np.float32)).astype(target)
    return lambda group: np.power(base(group), exponent(group))


def _pick(condition: Value, a: Value, b: Value, dtype: str) -> Value:
    if not isinstance(condition, np.ndarray):
        chosen = a if condition else b
        other = b if condition else a
        if isinstance(other, np.ndarray) and (not isinstance(chosen, np.ndarray) or chosen.shape != other.shape):
            shape = np.broadcast_shapes(np.shape(chosen), other.shape)
            return np.broadcast_to(np.asarray(chosen, DTYPES[dtype]), shape).copy()
        return chosen.copy() if isinstance(chosen, np.ndarray) else chosen
    if not isinstance(a, np.ndarray):
        a = np.asarray(a, DTYPES[dtype])
    if not isinstance(b, np.ndarray):
        b = np.asarray(b, DTYPES[dtype])
    return np.where(condition, a, b)


def _choose_by(test: Any, arguments: list[Eval], dtype: str) -> Eval:
    first, second = arguments

    def choose(group: Group) -> Value:
        a, b = first(group), second(group)
        condition = test(a, b)
        return _pick(condition if isinstance(condition, np.ndarray) else bool(condition), a, b, dtype)

    return choose


def _rows(inner: Eval, dtype: str, reduce: Callable[[Array], Array]) -> Eval:
    """A reduction in f32 or wider, rounded once; over contiguous rows, so that its order never depends on the group."""
    target = DTYPES[dtype]

    def run(group: Group) -> Value:
        held = _wide(inner(group), dtype)
        if held.strides[-1] != held.itemsize:
            held = np.ascontiguousarray(held)
        result = reduce(held)
        return result if result.dtype == target else result.astype(target)

    return run


def _lower(held: Array) -> Array:
    rows, columns = held.shape[-2:]
    keep = np.arange(columns)[None, :] <= np.arange(rows)[:, None]
    return np.where(keep, held, held.dtype.type(0))


def _row(held: Array) -> Array:
    return held.reshape(held.shape[0], 1, -1)


def _matrix(held: Array) -> Array:
    """Rows or columns contiguous, which is what BLAS takes; anything else is copied."""
    rows, columns = held.strides[-2:]
    size = held.itemsize
    if (columns == size and rows >= size * held.shape[-1]) or (rows == size and columns >= size * held.shape[-2]):
        return held
    return np.ascontiguousarray(held)


def _dot(left: Eval, right: Eval, a_type: str, b_type: str, dtype: str, transposed: bool) -> Eval:
    target = DTYPES[dtype]
    if a_type in FLOATS and b_type in FLOATS:
        work = np.dtype(np.float64) if "f64" in (a_type, b_type, dtype) else np.dtype(np.float32)

        def real(group: Group) -> Value:
            a, b = left(group), right(group)
            if a.dtype != work:
                a = a.astype(work)
            if b.dtype != work:
                b = b.astype(work)
            if b.shape[0] == 1:
                b = np.ascontiguousarray(b)  # one operand for all blocks is worth packing once
            if transposed:
                b = b.swapaxes(-1, -2)
            result = np.matmul(_matrix(a), _matrix(b))
            return numbers.convert_array(result, work.name.replace("float", "f"), dtype)

        return real
    narrow = a_type in ("i8", "u8") and b_type in ("i8", "u8")
    exact = np.dtype(np.float64) if narrow else np.dtype(np.int64)  # products of bytes sum exactly in f64, and by BLAS

    def whole(group: Group) -> Value:
        a, b = left(group).astype(exact), right(group).astype(exact)
        product = np.matmul(a, b.swapaxes(-1, -2) if transposed else b)
        return product.astype(np.int64).astype(target)

    return whole
