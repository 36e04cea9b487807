"""How statements change cells: assignments to variables, stores into tensors and tile variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from phobos.runtime.reference import numbers
from phobos.runtime.reference.evaluation import Eval, division_by_zero, dtype_of, rank_of, spread
from phobos.runtime.reference.expressions import Expressions, Where, is_fresh
from phobos.runtime.reference.group import Group
from phobos.runtime.reference.machine import Place
from phobos.runtime.reference.numbers import DTYPES, FLOATS, Array, Value, ZeroDivision
from phobos.runtime.reference.tiles import (
    agree,
    at_block,
    check_written,
    clipped,
    mark,
    owned,
    read_tile,
    read_tile_point,
)
from phobos.semantics import ir

Action = Callable[[Group], None]
Apply = Callable[[Group, Value, Value], Value]


def whole(expressions: Expressions, variable: ir.Variable, type_: ir.TileT, given: ir.Expression) -> Action:
    """Give a tile variable its cells: a scalar fills, a tile is copied unless nothing else holds it."""
    inner = expressions.converted(given, type_.dtype)
    dtype = DTYPES[type_.dtype]
    if not rank_of(given.type):
        shape = static_shape(type_)

        def fill(group: Group) -> None:
            held = inner(group)
            count = group.size if isinstance(held, np.ndarray) else 1
            tile = np.empty((count, *shape), dtype)
            tile[...] = spread(held, len(shape))
            group.env[variable] = tile
            group.written.pop(variable, None)

        return fill
    fresh = is_fresh(given) or DTYPES[dtype_of(given.type)] != dtype
    lengths = type_.shape

    def keep(group: Group) -> None:
        held = inner(group)
        if not fresh:
            held = held.copy()
        if any(isinstance(n, int) and n != m for n, m in zip(lengths, held.shape[1:])):
            held = np.broadcast_to(held, (held.shape[0], *static_shape(type_))).copy()
        group.env[variable] = held
        group.written.pop(variable, None)

    return keep


def assign(expressions: Expressions, statement: ir.Assign) -> Action:
    """What an assignment to a whole variable does."""
    variable, op, given = statement.variable, statement.op, statement.value
    type_ = variable.type
    if op is None:
        if isinstance(type_, ir.TileT):
            return whole(expressions, variable, type_, given)
        inner = expressions.converted(given, dtype_of(type_))
        return lambda group: group.env.__setitem__(variable, inner(group))
    kept = dtype_of(type_)
    work = numbers.join(kept, dtype_of(given.type))
    inner = expressions.converted(given, work)
    convert = numbers.convert
    apply = _applier(op, work, statement)
    if isinstance(type_, ir.ScalarT):

        def scalar(group: Group) -> None:
            old = convert(group.env[variable], kept, work)
            group.env[variable] = convert(apply(group, old, inner(group)), work, kept)

        return scalar
    rank = rank_of(type_)
    scalar_value = not rank_of(given.type)
    place = Place(statement.span, statement.calls, variable.name)
    in_place = work == kept and work in FLOATS and op != "%"
    operation = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}.get(op)

    def tile(group: Group) -> None:
        if group.written and variable in group.written:
            check_written(group, variable, group.written[variable], place)
        change = inner(group)
        if scalar_value:
            change = spread(change, rank)
        old = group.env[variable]
        if in_place and (not isinstance(change, np.ndarray) or change.shape[0] <= old.shape[0]):
            assert operation is not None
            operation(old, change, out=old)
            return
        new = convert(apply(group, convert(old, kept, work), change), work, kept)
        group.env[variable] = new

    return tile


def store(expressions: Expressions, statement: ir.Store) -> Action:
    """What a store into cells does. Of the cells outside, those of slices are left out; a point there is a fault."""
    access, op, given = statement.access, statement.op, statement.value
    where = expressions.where(access)
    base = access.base
    kept = base.dtype if isinstance(base, ir.Tensor) else dtype_of(base.type)
    work = kept if op is None else numbers.join(kept, dtype_of(given.type))
    inner = expressions.converted(given, work)
    apply = _applier(op, work, statement) if op is not None else None
    rank = len(access.subs)
    if isinstance(base, ir.Tensor):
        if access.is_point:
            return _store_point(where, base.name, kept, work, inner, apply)
        return _store_slice(where, base.name, kept, work, inner, apply, rank)
    if access.is_point:
        return _store_tile_point(where, base, kept, work, inner, apply)
    return _store_tile_slice(where, base, kept, work, inner, apply, rank)


def static_shape(type_: ir.TileT) -> tuple[int, ...]:
    """The extents of a tile variable, which the checker has shown to be known when compiled."""
    lengths = []
    for n in type_.shape:
        number = n if isinstance(n, int) else n.constant
        assert number is not None, "a tile variable of runtime length"
        lengths.append(number)
    return tuple(lengths)


def _applier(op: str, dtype: str, statement: ir.Assign | ir.Store) -> Apply:
    if dtype in FLOATS:
        return lambda group, old, change: numbers.floating(op, old, change)

    def whole(group: Group, old: Value, change: Value) -> Value:
        try:
            return numbers.integer(op, old, change, dtype)
        except ZeroDivision as error:
            raise division_by_zero(group, statement.value, error.where, op) from None

    return whole


def _cells(held: Value, work: str, kept: str, lengths: tuple[int, ...]) -> Array:
    """What is stored, as (blocks or 1, *lengths) cells of type `kept`."""
    if not isinstance(held, np.ndarray):
        return np.broadcast_to(np.asarray(numbers.convert(held, work, kept), DTYPES[kept]), (1, *lengths))
    cells = numbers.convert_array(held, work, kept)
    return cells if cells.shape[1:] == lengths else np.broadcast_to(cells, (cells.shape[0], *lengths))


def _store_point(where: Where, name: str, kept: str, work: str, inner: Eval, apply: Apply | None) -> Action:
    place = where.place
    convert = numbers.convert

    def run(group: Group) -> None:
        machine = group.machine
        buffer = machine.buffers[name]
        index = where.index(group)
        if apply is not None:
            old = convert(machine.load_point(group, buffer, index, place), kept, work)
            held = apply(group, old, inner(group))
        else:
            held = inner(group)
        machine.store_point(group, buffer, index, convert(held, work, kept), place)

    return run


def _store_slice(where: Where, name: str, kept: str, work: str, inner: Eval, apply: Apply | None, rank: int) -> Action:
    place = where.place

    def run(group: Group) -> None:
        machine = group.machine
        buffer = machine.buffers[name]
        starts, lengths = where.index(group), where.sizes(group)
        held = spread(inner(group), rank)
        if apply is not None:
            old = numbers.convert_array(machine.load(group, buffer, starts, lengths, place), kept, work)
            held = apply(group, old, held)
        held = _cells(held, work, kept, lengths)
        machine.store(group, buffer, starts, lengths, held, place)

    return run


def _store_tile_point(
    where: Where, base: ir.Variable, kept: str, work: str, inner: Eval, apply: Apply | None
) -> Action:
    place = where.place
    convert = numbers.convert

    def run(group: Group) -> None:
        index = [agree(number) for number in where.index(group)]
        extents = group.env[base].shape[1:]
        group.machine.check_point(group, base.name, extents, index, place)
        held = inner(group)
        if apply is not None:
            old = convert(read_tile_point(group, base, group.env[base], index, place), kept, work)
            held = apply(group, old, held)
        held = convert(held, work, kept)
        per_block = isinstance(held, np.ndarray) or any(isinstance(number, np.ndarray) for number in index)
        cells = owned(group, base, per_block)
        lanes: Any = np.arange(group.size) if cells.shape[0] == group.size else 0
        cells[(lanes, *index)] = held
        if group.written:
            per = per_block or (base in group.written and group.written[base].shape[0] == group.size)
            mark(group, base, np.arange(group.size) if per else 0, tuple(index), per)

    return run


def _store_tile_slice(
    where: Where, base: ir.Variable, kept: str, work: str, inner: Eval, apply: Apply | None, rank: int
) -> Action:
    place = where.place

    def run(group: Group) -> None:
        starts = [agree(start) for start in where.index(group)]
        lengths = where.sizes(group)
        held = spread(inner(group), rank)
        if apply is not None:
            old = numbers.convert_array(read_tile(group, base, group.env[base], starts, lengths, place), kept, work)
            held = apply(group, old, held)
        held = _cells(held, work, kept, lengths)
        differ = any(isinstance(start, np.ndarray) for start in starts)
        mask = group.written.get(base)
        per_block = differ or held.shape[0] > 1
        cells = owned(group, base, per_block)
        if np.may_share_memory(cells, held):
            held = held.copy()
        if not differ:
            box, come = clipped(starts, lengths, cells.shape[1:])
            cells[(slice(None), *box)] = held[(slice(None), *come)]
            if mask is not None:
                mark(group, base, slice(None), box, False)
            return
        for lane in range(group.size):
            box, come = clipped([at_block(start, lane) for start in starts], lengths, cells.shape[1:])
            cells[lane][box] = held[lane if held.shape[0] > 1 else 0][come]
            if mask is not None:
                mark(group, base, lane, box, True)

    return run
