"""Random statements: definitions, stores, loops, branches, calls, products; each writes its lines."""

from __future__ import annotations

from tests.dataflow.expressions import Expressions
from tests.dataflow.sample import FLOATS, INTEGERS, Bound, Name, Of, Shape, Tensor, is_slice, tile_type


class Writer(Expressions):
    def shape(self) -> Shape:
        if self.cubes and not self.in_function and self.chance(0.35):
            rows, *others = self.cubes[0].extents
            return tuple(self.rng.choice((1, n, n)) for n in (rows // self.grid, *others))
        if self.chance(0.35):
            return (self.rng.choice(self.lengths),)
        rows, columns = self.rng.choice(self.heights), self.rng.choice(self.columns)
        match self.weighted(full=6, row=1, column=1, long=0.7, turned=1):
            case "row":
                return (1, columns)
            case "column":
                return (rows, 1)
            case "long" if rows * columns <= 512:
                return (1, rows * columns)
            case "turned":
                return (columns, rows)
        return (rows, columns)

    def statements(self) -> None:
        while self.left > 0:
            self.left -= 1
            self.statement()

    def nested(self, most: int) -> None:
        outer = self.left
        self.left = self.rng.randint(1, most)
        self.depth += 1
        self.statements()
        self.depth -= 1
        self.left = max(0, outer - 1)
        if not self.in_function and len(self.outputs) < 10:
            self.observe(1)

    def statement(self) -> None:
        deep = self.depth < 3
        stores = [t for t in self.tensors if t.own]
        changing = [n for n in self.tiles() if n.changes]
        products = self.products * 2.0 * deep * (not self.in_function and not self.loops)
        kind = self.weighted(
            define=4, view=2, store=4 * bool(stores), assign=4 * bool(changing), part=2 * bool(changing),
            point=1.5 * bool(changing), cell=1 * bool(stores), scalar=1.5, branch=1.5 * deep, loop=2.5 * deep,
            carried=1.2 * bool(stores), hop=1.2 * bool(stores), long=0.7 * bool(stores) * (not self.in_function),
            whiles=0.8 * deep, atomic=0.4 * (not self.in_function), flat=0.8,
            walk=1.5 * bool(self.walks), across=1.0 * deep * self.single * bool(stores),
            given=0.6 * bool(stores) * (not self.in_function), matmul=products, attend=products,
            sum=1.0 * deep, approximate=0.7 * (not self.in_function), leave=0.15 * self.may_leave,
        )  # fmt: skip
        getattr(self, f"_{kind}")()

    def _define(self) -> None:
        dtype, shape = self.rng.choice(self.types), self.shape()
        word = self.rng.choice(("let", "var", "var"))
        if word == "var" and self.chance(0.15):
            name = self.fresh("t")
            self.line(f"var {name}: {tile_type(dtype, shape)}")
            self.line(f"{name} = {self.fit(self.expression(shape, dtype), dtype).text}")
            self.define(Name(name, dtype, shape, True))
            return
        if word == "var" and dtype != "bool" and self.chance(0.15):
            name = self.fresh("t")
            self.line(f"var {name}: {tile_type(dtype, shape)} = {self.number(dtype)}")
            self.define(Name(name, dtype, shape, True))
            return
        one = self.expression(shape, dtype)
        if word == "var":
            one = self.fit(one, dtype)
        name = self.fresh("t")
        annotation = f": {tile_type(dtype, shape)}" if dtype == "bool" or self.chance(0.5) else ""
        view = word == "let" and is_slice(one.text)
        self.line(f"{word} {name}{'' if view else annotation} = {one.text}")
        self.define(Name(name, dtype, shape, word == "var", view, one.bound))

    def _view(self) -> None:
        dtype, shape = self.rng.choice(self.types), self.shape()
        for _ in range(4):
            one = self.leaf(shape, dtype)
            if is_slice(one.text):
                name = self.fresh("v")
                self.line(f"let {name} = {one.text}")
                self.define(Name(name, dtype, shape, False, True, one.bound))
                return

    def _flat(self) -> None:
        found = [n for n in self.tiles() if len(n.shape) == 2 and not n.view and not n.flat]
        if not found:
            return
        one = self.rng.choice(found)
        name = self.fresh("g")
        changes = self.chance(0.3)
        self.line(f"{'var' if changes else 'let'} {name} = flat({one.name})")
        self.define(Name(name, one.dtype, (1, one.shape[0] * one.shape[1]), changes, False, one.bound, True))

    def _assign(self) -> None:
        one = self.rng.choice([n for n in self.tiles() if n.changes])
        if one.dtype != "bool" and self.chance(0.08):
            self.line(f"{one.name} = {self.fit(self.scalar(one.dtype), one.dtype).text}")
            return
        if one.dtype in INTEGERS and self.chance(0.4):
            self.line(f"{one.name} {self.rng.choice('+-*')}= {self.operand(one.shape, one.dtype, 1).text}")
            return
        if one.dtype in FLOATS and self.chance(0.3):
            self._add(one.name, one.shape, one.dtype, 2)
            return
        self.line(f"{one.name} = {self.fit(self.expression(one.shape, one.dtype), one.dtype).text}")

    def _add(self, target: str, shape: tuple[int, ...], dtype: str, depth: int) -> None:
        """To floats, brought back to small multiples, as sums of them come round loops."""
        sign = self.rng.choice("+-")
        self.line(f"{target} {sign}= {self.fit(self.operand(shape, dtype, depth), dtype).text}")
        self.line(f"{target} = round({target}) % 8.0")

    def _one(self, dtype: str) -> str:
        """A number of the type, for one cell."""
        return f"({self.condition(0)})" if dtype == "bool" else self.fit(self.scalar(dtype), dtype).text

    def _part(self) -> None:
        one = self.rng.choice([n for n in self.tiles() if n.changes])
        shape = tuple(self.rng.randint(1, n) for n in one.shape)
        value = self.fit(self.expression(shape, one.dtype, 1), one.dtype).text
        if one.dtype != "bool" and self.chance(0.2):
            value = self.number(one.dtype)
        sign = self.rng.choice("+-") if one.dtype in INTEGERS and self.chance(0.3) else ""
        self.line(f"{one.name}[{self.slice_of(shape, one.shape)}] {sign}= {value}")

    def _point(self) -> None:
        one = self.rng.choice([n for n in self.tiles() if n.changes])
        value = self._one(one.dtype)
        self.line(f"{self.point(one)} = {value}")

    def _cell(self) -> None:
        one = self.rng.choice([t for t in self.tensors if t.own])
        value = self._one(one.dtype)
        sign = self.rng.choice("+-") if one.dtype in INTEGERS and self.chance(0.3) else ""
        self.line(f"{self.cell(one)} {sign}= {value}")

    def _store(self) -> None:
        if self.cubes and not self.in_function and self.chance(0.3):
            one = self.rng.choice(self.cubes)
            shape = tuple(self.rng.randint(1, n) for n in (one.stretch, *one.extents[1:]))
            self.line(f"{self.part(one, shape)} = {self.fit(self.expression(shape, one.dtype), one.dtype).text}")
            return
        one = self.rng.choice([t for t in self.tensors if t.own])
        shape = (
            (self.rng.choice(self.lengths),)
            if len(one.extents) == 1
            else (self.rng.choice(self.heights), self.rng.choice(self.columns))
        )
        target = self.part(one, shape)
        if target is None:
            return
        if one.dtype in FLOATS and self.chance(0.2):
            self._add(target, shape, one.dtype, 1)
            return
        sign = self.rng.choice("+-") if one.dtype in INTEGERS and self.chance(0.25) else ""
        value = (
            self.number(one.dtype)
            if one.dtype != "bool" and self.chance(0.08)
            else self.fit(self.expression(shape, one.dtype), one.dtype).text
        )
        self.line(f"{target} {sign}= {value}")

    def _scalar(self) -> None:
        name = self.fresh("s")
        floats = [t for t in self.types if t in FLOATS]
        if floats and self.chance(0.5):
            dtype = self.rng.choice(floats)
            held = [t for t in self.tiles() if t.dtype == dtype and not t.view]
            loaded = self.point(self.rng.choice(held)) if held and self.chance(0.5) else self.load_point(dtype)
            if loaded is not None:
                self.line(f"let {name} = {loaded}")
                self.define(Name(name, dtype, ()))
            return
        changing = [n for scope in self.scopes for n, _, _ in scope.indices if n.startswith("j")]
        if changing and self.chance(0.5):
            name = self.rng.choice(changing)
            self.line(f"{name} = ({self.rng.choice((name, '0'))} + {self.weighted_scalar()}) & 7")
            return
        word = self.rng.choice(("let", "var"))
        name = self.fresh("j") if word == "var" else name
        self.line(f"{word} {name} = ({self.weighted_scalar()}) & 7")
        self.scopes[-1].indices.append((name, 0, 7))

    def _branch(self) -> None:
        with self.block(f"if {self.condition()}"):
            self.nested(3)
        if self.chance(0.5):
            self.lines.pop()
            with self.block("} else"):
                self.nested(3)

    def _loop(self) -> None:
        name = self.fresh("i")
        unroll = f"<unroll {self.rng.choice((2, 3, 4))}>" if self.chance(0.2) else ""
        low, step, rounds = self.rng.choice((0, 0, 1, 2)), self.rng.choice((1, 1, 2, 3)), self.rng.randint(0, 3)
        last = low + rounds * step
        over = self.rng.randint(0, step - 1) if step > 1 else 0
        high = str(last + 1 - over if over else last + 1)
        if self.chance(0.3) and not self.in_function:
            high = f"{high} + (b & 1)"
            last += step
        with self.block(f"for{unroll} {name} in range({low}, {high}{f', {step}' if step > 1 else ''})"):
            self.scopes[-1].indices.append((name, low, max(last, low)))
            if self.chance(0.2):
                with self.block(f"if {self.condition(0)}"):
                    self.line(self.rng.choice(("break", "continue")))
            self.nested(3)

    def _whiles(self) -> None:
        name = self.fresh("w")
        self.line(f"var {name} = 0")
        condition = f" && {self.condition(0)}" if self.chance(0.3) else ""
        with self.block(f"while {name} < {self.rng.randint(1, 3)}{condition}"):
            self.line(f"{name} += 1")
            self.scopes[-1].indices.append((name, 1, 3))
            self.nested(2)
            if self.chance(0.4):
                with self.block(f"if {self.condition(0)}"):
                    self.line(self.rng.choice(("break", "continue")))
                self.nested(1)

    def _leave(self) -> None:
        with self.block(f"if {self.condition(0)}"):
            self.line("return")

    def _atomic(self) -> None:
        name = self.fresh("c")
        cell, one, other = self.rng.randint(0, 1), self.rng.randint(0, 2), self.rng.randint(0, 3)
        call = (
            f"atomic_add(CNT, b * 2 + {cell}, {other})"
            if self.chance(0.7)
            else f"atomic_cas(CNT, b * 2 + {cell}, {one}, {other})"
        )
        self.line(f"let {name} = i64({call}) & 7")
        self.scopes[-1].indices.append((name, 0, 7))

    def _carried(self) -> None:
        """A loop over the block's cells of a tensor whose rounds read what rounds before stored, nearby."""
        one = self.rng.choice([t for t in self.tensors if t.own])
        length = self.rng.choice([n for n in (1, 2, 4, 5, 8, 16, 16, 32, 33, 64) if n * 3 <= one.stretch] or [1])
        step = self.rng.choice((length, length, length, max(1, length // 2), length + 1))
        back = self.rng.choice((1, 2, step - 1, step, step + 1, 2 * step - 1, length, -1, -step, 0))
        name = self.fresh("i")
        low = max(0, back)
        high = one.stretch - length + 1 - max(0, -back)
        high = min(high, low + 6 * step)
        if high <= low:
            return
        with self.block(f"for {name} in range({one.base} + {low}, {one.base} + {high}, {step})"):
            wide = self.rng.choice(self.columns) if len(one.extents) == 2 else 0
            shape = (length, wide) if wide else (length,)
            across = f", {self.slice_of((wide,), one.extents[1:], one.dims[1:])}" if wide else ""
            there = (
                f", {self.slice_of((wide,), one.extents[1:], one.dims[1:])}" if wide and self.chance(0.4) else across
            )
            shift = f"{name} - {back}" if back > 0 else f"{name} + {-back}" if back else name
            read = f"{one.name}[{shift} :+ {length}{there}]"
            if self.chance(0.3):
                held = self.fresh("v")
                self.line(f"{self.rng.choice(('let', 'var'))} {held} = {read}")
                read = held
            extra = self.expression(shape, one.dtype, 1)
            if one.dtype == "bool":
                value = f"({read} != {extra.text})"
            else:
                value = self.fit(Of(f"({read} + {extra.text})", Bound(99, -2)), one.dtype).text
            self.line(f"{one.name}[{name} :+ {length}{across}] = {value}")
            if self.chance(0.4):
                self.nested(2)

    def _hop(self) -> None:
        """A loop whose rounds move over a tensor in a way of their own, and read around where they store."""
        one = self.rng.choice([t for t in self.tensors if t.own])
        wide = self.rng.choice(self.columns) if len(one.extents) == 2 else 0
        length = self.rng.choice([n for n in (1, 4, 5, 8, 16, 16, 32, 40, 64) if n * 2 <= one.stretch] or [1])
        unit = self.rng.choice((length, length, length, 1, length + 1, 2 * length))
        name, rounds = self.fresh("i"), self.rng.randint(2, 6)
        text, of = self.rng.choice((
            (f"({name} / 2)", lambda i: i // 2), (f"({name} % 3)", lambda i: i % 3), (f"{name}", lambda i: i),
            (f"({name} * {name} / 3)", lambda i: i * i // 3), (f"({name} ^ 1)", lambda i: i ^ 1),
            (f"(TAB[{name}] & 3)", lambda i: 3), (f"({name} >> 1)", lambda i: i >> 1),
            (f"(({name} + n) / 2)", lambda i: (i + 3) // 2),
        ))  # fmt: skip
        if self.in_function and ("TAB" in text or " n)" in text):
            return
        most = max(of(i) for i in range(rounds)) * unit
        room = one.stretch - length - most
        if room < 0:
            return
        there = f"{text} * {unit}" if self.chance(0.5) else f"{most} - {text} * {unit}"
        shift, back = self.rng.randint(0, room), self.rng.randint(0, room)
        if self.chance(0.5):
            shift = 0
        if self.chance(0.5):
            back = min(room, self.rng.choice((length, length + 4, length // 2, unit)))
        with self.block(f"for {name} in range(0, {rounds})"):
            if self.chance(0.5):
                held = self.fresh("s")
                self.line(f"let {held} = {there}")
                there = held
            across = f", {self.slice_of((wide,), one.extents[1:], one.dims[1:])}" if wide else ""
            read = f"{one.name}[{one.base} + {back} + {there} :+ {length}{across}]"
            if self.chance(0.3):
                held = self.fresh("v")
                self.line(f"{self.rng.choice(('let', 'var'))} {held} = {read}")
                read = held
            self._updates(
                f"{one.name}[{one.base} + {shift} + {there} :+ {length}{across}]",
                read,
                (length, wide) if wide else (length,),
                one.dtype,
            )
            if self.chance(0.3):
                self.nested(1)

    def _long(self) -> None:
        """A statement over a length that is known when it runs."""
        one = self.rng.choice([t for t in self.tensors if t.own])
        held = [t for t in self.tensors if t.dtype == one.dtype and t.dims[1:] == one.dims[1:]]
        held = [t for t in held if len(t.extents) == len(one.extents)]
        if len(one.extents) == 1:
            if not self.single:
                return
            spans = [f"0 : {one.dims[0]}"] * 2 if self.chance(0.5) else [f"1 : {one.dims[0]}", f"0 : {one.dims[0]} - 1"]
            rows = [""] * 3
        else:
            spans = [f"0 : {one.dims[1]}"] * 2 if self.chance(0.5) else [f"1 : {one.dims[1]}", f"0 : {one.dims[1]} - 1"]
            height = self.rng.choice([n for n in self.heights if n <= one.stretch] or [1])
            rows = [f"{one.base} + {self.index(0, one.stretch - height)} :+ {height}, " for _ in range(3)]
        self.rng.shuffle(spans)
        target = f"{one.name}[{rows[0]}{spans[0]}]"
        parts = []
        for n in (1, 2):
            other = self.rng.choice(held)
            parts.append(target if other is one else f"{other.name}[{rows[n]}{self.rng.choice(spans)}]")
        if one.dtype == "bool":
            self.line(f"{target} = ({parts[0]} != {parts[1]})")
        elif one.dtype in INTEGERS:
            self.line(f"{target} {self.rng.choice(('', '', '+'))}= ({parts[0]} {self.rng.choice('+-*')} {parts[1]})")
        else:
            self.line(f"{target} = round({parts[0]} {self.rng.choice('+-*')} {parts[1]}) % 8.0")

    def _walk(self) -> None:
        """Blocks take turns over tensors: each touches the cells of its own turns alone."""
        length = self.rng.choice(self.walks)[1]
        held = [t for t, n in self.walks if n == length and t.own]
        if not held:
            return
        name = self.fresh("i")
        stride = "ctx.blocks.x" if self.chance(0.7) else str(self.grid)
        with self.block(f"for {name} in range(b * {length}, N, {stride} * {length})"):
            for _ in range(self.rng.randint(1, 2)):
                one, other = self.rng.choice(held), self.rng.choice(held)
                read = f"{other.name}[{name} :+ {length}]"
                if self.chance(0.2):
                    view = self.fresh("v")
                    self.line(f"{self.rng.choice(('let', 'var'))} {view} = {read}")
                    read = view
                extra = self.operand((length,), other.dtype, 1)
                value = self.fit(Of(f"({read} {self.rng.choice('+-')} {extra.text})", Bound(99, -2)), other.dtype)
                if other.dtype != one.dtype:
                    value = self.converted(value, other.dtype, one.dtype)
                self.line(f"{one.name}[{name} :+ {length}] = {self.fit(value, one.dtype).text}")
            if self.chance(0.2):
                self.nested(1)

    def _across(self) -> None:
        """One block walks all of a tensor, by tiles that may run over its end."""
        one = self.rng.choice([t for t in self.tensors if t.own])
        first, other = self.fresh("i"), self.fresh("i")
        length = self.rng.choice(self.lengths if len(one.extents) == 1 else self.heights)
        ends = [one.dims[0], f"extent({one.name}, 0)"] if not self.in_function else [str(one.extents[0])]
        with self.block(f"for {first} in range({self.rng.choice((0, 0, 1))}, {self.rng.choice(ends)}, {length})"):
            if len(one.extents) == 1:
                back = self.rng.choice((0, 0, 1, length - 1, length, -1, -length))
                read = (
                    f"{one.name}[{first} - {back} :+ {length}]"
                    if back > 0
                    else f"{one.name}[{first} + {-back} :+ {length}]"
                )
                self._updates(f"{one.name}[{first} :+ {length}]", read, (length,), one.dtype)
                return
            width = self.rng.choice(self.columns)
            with self.block(
                f"for {other} in range(0, {one.dims[1] if not self.in_function else one.extents[1]}, {width})"
            ):
                down, along = self.rng.choice((0, 0, 1, 2)), self.rng.choice((0, 0, 1, width))
                read = f"{one.name}[{first} - {down} :+ {length}, {other} - {along} :+ {width}]"
                self._updates(f"{one.name}[{first} :+ {length}, {other} :+ {width}]", read, (length, width), one.dtype)

    def _updates(self, target: str, read: str, shape: Shape, dtype: str) -> None:
        extra = self.expression(shape, dtype, 1)
        if dtype == "bool":
            self.line(f"{target} = ({read} != {extra.text})")
        else:
            self.line(f"{target} = {self.fit(Of(f'({read} + {extra.text})', Bound(99, -2)), dtype).text}")

    def _given(self) -> None:
        """A function that takes a tensor and a tile, stores over what the tile was, and gives what the tile is."""
        one = self.rng.choice([t for t in self.tensors if t.own])
        two = len(one.extents) == 2
        shape = (
            (self.rng.choice(self.heights), self.rng.choice(self.columns)) if two else (self.rng.choice(self.lengths),)
        )
        if shape[0] > one.stretch:
            return
        name, result = self.fresh("h"), self.fresh("t")
        dims = ", ".join("KL"[: len(shape)])
        across = f", 0 :+ {shape[1]}" if two else ""
        shift = self.index(0, one.stretch - shape[0])
        body = [
            f"  let v = T[s :+ {shape[0]}{across}]",
            f"  T[s :+ {shape[0]}{across}] = x",
            f"  return {self.rng.choice(('x', 'v', f'T[s :+ {shape[0]}{across}]', 'where(x == v, x, v)'))}",
        ]
        self.rng.shuffle(body)
        while not body[-1].startswith("  return") or ("v" in body[-1].split("return")[1] and "let" in body[1]):
            self.rng.shuffle(body)
        type_ = tile_type(one.dtype, shape)
        head = f"fn {name}(T: tensor<{one.dtype}>[{dims}], s: i64, x: {type_}) -> {type_} {{"
        given = self.fit(self.expression(shape, one.dtype, 1), one.dtype).text
        self.functions.append((name, [head + "\n" + "\n".join(body) + "\n}\n"], None, []))
        self.line(f"var {result} = {name}({one.name}, {one.base} + {shift}, {given})")
        self.define(Name(result, one.dtype, shape, True))

    def _sum(self) -> None:
        """A sum of products in a loop."""
        kind = self.rng.choice([t for t in ("f16", "f32", "bf16", "i8", "f64") if t in self.types] or [""])
        held = [t for t in self.tensors if t.dtype == kind and len(t.extents) == 2]
        if not held:
            return
        dtype = {"i8": "i32", "f64": "f64"}.get(kind, "f32")
        one, other = self.rng.choice(held), self.rng.choice(held)
        height, width, step = (
            self.rng.choice(self.heights),
            self.rng.choice(self.columns),
            self.rng.choice((4, 8, 16, 16, 32)),
        )
        if self.chance(0.5):
            height, width = self.rng.choice((16, 32, 64, 64, 128)), self.rng.choice((8, 16, 32, 64))
            step = self.rng.choice((16, 16, 32, 64))
        if height > one.stretch or width > other.stretch:
            return
        name, i = self.fresh("t"), self.fresh("i")
        self.line(f"var {name}: {tile_type(dtype, (height, width))} = {self.number(dtype)}")
        end = one.dims[1] if self.chance(0.7) else str(one.extents[1])
        if self.in_function:
            end = str(one.extents[1])
        with self.block(f"for {i} in range(0, {end}, {step})"):
            left = f"{one.name}[{one.base} :+ {height}, {i} :+ {step}]"
            right = f"{other.name}[{other.base} :+ {width}, {i} :+ {step}]"
            if self.chance(0.4):
                held_ = self.fresh("v")
                self.line(f"{self.rng.choice(('let', 'var'))} {held_} = {left}")
                left = held_
            if self.chance(0.4):
                self.line(f"{name} += dot({left}, transpose({right}))")
            else:
                self.line(f"{name} += dot_t({left}, {right})")
            if self.chance(0.25):
                self.nested(2)
        self.define(Name(name, dtype, (height, width), False, False, Bound(1 << 14, -2)))

    def _matmul(self) -> None:
        """A loop of products over all of K, as large as tensor cores like them, with what comes behind it."""
        held = [t for t in self.tensors if len(t.extents) == 2 and t.dtype in self.multiplied]
        if not held:
            return
        left, right = self.rng.choice(held), self.rng.choice(held)
        height, width, step = (
            self.rng.choice((32, 64, 64, 128)),
            self.rng.choice((16, 32, 64, 64, 128)),
            self.rng.choice((16, 32, 64)),
        )
        if height > left.stretch or (self.chance(0.5) and not self.single and right.own):
            return
        turned = right.own and not self.single
        if turned and width > right.stretch:
            return
        name, i = self.fresh("t"), self.fresh("i")
        self.line(f"var {name}: {tile_type('f32', (height, width))} = {self.rng.choice(('0.0', '1.0'))}")
        with self.block(f"for {i} in range(0, {left.dims[1]}, {step})"):
            a, b = f"{left.name}[{left.base} :+ {height}, {i} :+ {step}]", f"{right.name}[{i} :+ {step}, 0 :+ {width}]"
            if turned or self.chance(0.4):
                b = f"{right.name}[{right.base} :+ {width}, {i} :+ {step}]"
                turned = True
            if self.chance(0.5):
                view = self.fresh("v")
                self.line(f"{self.rng.choice(('let', 'let', 'var'))} {view} = {a}")
                a = view
            call = f"{'dot_t' if turned else 'dot'}({a}, {b})"
            self.line(
                self.rng.choice((f"{name} += {call}", f"{name} = {name} + {call}", f"{name} = {name} * 1.0 + {call}"))
            )
            if self.chance(0.2):
                self.nested(1)
        self.define(Name(name, "f32", (height, width), False, False, Bound(1 << 14, -2)))
        self.observe(1)

    def _attend(self) -> None:
        """Two products a round, the left operand of the second computed from the first."""
        held = [
            t for t in self.tensors if len(t.extents) == 2 and t.dtype in self.multiplied and (self.single or not t.own)
        ]
        queries = [t for t in self.tensors if len(t.extents) == 2 and t.dtype in self.multiplied]
        if not held:
            return
        query, keys = self.rng.choice(queries), self.rng.choice(held)
        values = self.rng.choice([t for t in held if t.dtype == keys.dtype])
        height, tile, width = (
            self.rng.choice((16, 64, 64, 128)),
            self.rng.choice((16, 32, 64)),
            self.rng.choice((16, 32, 64)),
        )
        if height > query.stretch:
            return
        q, acc, i, s, p, top = (self.fresh(stem) for stem in ("t", "t", "i", "t", "t", "t"))
        self.line(f"var {q} = {query.name}[{query.base} :+ {height}, 0 :+ {width}]")
        self.line(f"var {acc}: {tile_type('f32', (height, width))} = 0.0")
        with self.block(f"for {i} in range(0, {keys.dims[0]}, {tile})"):
            self.line(
                f"var {s}: {tile_type('f32', (height, tile))} = dot_t({q}, {keys.name}[{i} :+ {tile}, 0 :+ {width}])"
            )
            if self.chance(0.7):
                self.line(
                    f"{s} = where(iota({tile}) + {i} < {self.rng.choice((keys.dims[0], '40'))}, round({s}) % 8.0, -2.0)"
                )
            else:
                self.line(f"{s} = round({s}) % 8.0")
            if self.special:
                self.line(f"let {top} = rowsum({s}) % 4.0")
            else:
                self.line(f"let {top} = rowmax({s})")
            self.line(f"let {p} = ({s} - {top}) % 4.0")
            factor = self.rng.choice(("", f" * where({top} > 2.0, -1.0, 1.0)"))
            self.line(f"{acc} = {acc}{factor} + dot({p}, {values.name}[{i} :+ {tile}, 0 :+ {width}])")
            if self.chance(0.3):
                self.line(f"{q} = {self.fit(Of(f'{q} + 1.0', Bound(99, -1)), query.dtype).text}")
        self.define(Name(acc, "f32", (height, width), False, False, Bound(1 << 14, -2)))
        self.observe(1)

    def _approximate(self) -> None:
        """What is exact on no device goes to a tensor of its own, that nobody reads."""
        floats = [t for t in ("f32", "f64") if t in self.types] or ["f32"]
        dtype = self.rng.choice(floats)
        shape = (self.rng.choice(self.heights), self.rng.choice(self.columns))
        one = self.fit(self.expression(shape, dtype), dtype).text
        positive = f"({one} * {one} + 1.0)"
        two = self.fit(self.operand(shape, dtype, 1), dtype).text
        text = self.rng.choice((
            f"exp({one})", f"sqrt({positive})", f"log({positive})", f"tanh({one})", f"{one} / ({two} + 0.25)",
            f"pow({positive}, 1.5)",
            f"exp({one} - rowmax({one}))" if not self.special else f"exp({one})", f"exp({one} * {two} - {two})",
        ))  # fmt: skip
        self.line(f"APX[b * {self.high} :+ {shape[0]}, 0 :+ {shape[1]}] = {text}")

    def observe(self, most: int) -> None:
        """Tiles of the innermost scope are stored, each to a tensor of its own."""
        for name in [n for n in self.scopes[-1].names if n.shape][-most:]:
            tensor = Tensor(f"O_{name.name}", name.dtype, (), (self.grid * name.shape[0], *name.shape[1:]))
            tensor.dims = tuple(map(str, tensor.extents))
            rest = "".join(f", 0 :+ {n}" for n in name.shape[1:])
            self.line(f"{tensor.name}[b * {name.shape[0]} :+ {name.shape[0]}{rest}] = {name.name}")
            if all(tensor.name != one.name for one in self.outputs):
                self.outputs.append(tensor)
