"""Random expressions: scalars, subscripts that are in bounds, tiles of a shape and type; floats that stay exact."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from tests.dataflow.sample import (
    FLOATS,
    NARROWER,
    PLAIN,
    TABLE,
    Bound,
    Name,
    Of,
    Scope,
    Shape,
    Stuck,
    Tensor,
    larger,
    result_of,
    tile_type,
)


class Expressions:
    """The lines written so far, the names in scope, and random values of any shape and type."""

    types: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    heights: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()
    lengths: tuple[int, ...] = ()
    high = 1
    grid = 1
    may_leave = False
    cubes: tuple[Tensor, ...] = ()  # of three axes
    deepest: Tensor | None = None  # to be read alone, of a length that may be 0
    products = 0  # 1: a kernel for tensor cores
    multiplied: tuple[str, ...] = ("f16", "bf16", "f32")  # types of what loops of products read

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.indent = 1
        self.count = 0
        self.scopes = [Scope()]
        self.tensors: list[Tensor] = []
        self.functions: list[tuple[str, list[str], tuple[str, str, Shape] | None, list[tuple[str, str, Shape]]]] = []
        self.depth = 0
        self.loops = 0
        self.left = 0
        self.liking: dict[str, float] = {}
        self.in_function = False
        self.single = False
        self.special = False
        self.walks: list[tuple[Tensor, int]] = []  # tensors that blocks walk over in turns, and the length of a turn
        self.outputs: list[Tensor] = []

    # --- small things -----------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def weighted(self, **weights: float) -> str:
        """One of the names. A kernel likes some kinds of things more than others: see `liking`."""
        likes = [self.liking.setdefault(name, self.rng.choice((0.3, 1.0, 1.0, 1.0, 3.0))) for name in weights]
        return self.rng.choices(list(weights), [w * n for w, n in zip(weights.values(), likes, strict=True)])[0]

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head + " {")
        self.indent += 1
        self.scopes.append(Scope())
        self.loops += head.startswith(("for", "while"))
        yield
        self.loops -= head.startswith(("for", "while"))
        self.scopes.pop()
        self.indent -= 1
        self.line("}")

    def names(self) -> list[Name]:
        return [name for scope in self.scopes for name in scope.names]

    def tiles(self) -> list[Name]:
        return [name for name in self.names() if name.shape]

    def define(self, name: Name) -> Name:
        self.scopes[-1].names.append(name)
        return name

    # --- scalars ----------------------------------------------------------------------------------

    def index(self, low: int, high: int) -> str:
        """An index expression whose value lies between two numbers, both included."""
        choices = [str(self.rng.randint(low, high)) if low >= 0 else f"{self.rng.randint(0, high - low)} - {-low}"]
        if low <= 0 <= high:
            choices.append("0")
        for name, first, last in (one for scope in self.scopes for one in scope.indices):
            if last - first <= high - low:
                shift = self.rng.randint(low - first, high - last)
                choices += [f"{name} + {shift}" if shift > 0 else f"{name} - {-shift}" if shift else name] * 2
            else:
                keep = high - low + 1
                choices.append(f"({name} & {(1 << keep.bit_length() - 1) - 1}) + {low}")
        if high - low >= 1 and not self.in_function:
            mask = (1 << (high - low + 1).bit_length() - 1) - 1
            choices.append(f"(TAB[{self.rng.randrange(TABLE)}] & {mask}) + {low}")
        return self.rng.choice(choices)

    def whole(self) -> str:
        """A small index of any value."""
        return self.index(-3, 9)

    def number(self, dtype: str) -> str:
        """A float literal that is a multiple of one half, or an integer one."""
        if dtype in FLOATS:
            return f"{self.rng.choice((0.0, 0.5, 1.0, 1.5, 2.0, 3.0))}"
        return str(self.rng.choice((0, 1, 2, 3, 5, 7, 100)))

    def scalar(self, dtype: str) -> Of:
        """A scalar of a float type (or f32, which joins it), or an index."""
        if dtype not in FLOATS:
            return Of(self.weighted_scalar())
        found = [name for name in self.names() if not name.shape and name.dtype == dtype]
        points = [name for name in self.tiles() if name.dtype == dtype and not name.view]
        match self.weighted(literal=2, name=2 * bool(found), point=2 * bool(points), load=1):
            case "name":
                one = self.rng.choice(found)
                return Of(one.name, one.bound)
            case "point":
                one = self.rng.choice(points)
                return Of(self.point(one), one.bound)
            case "load":
                load = self.load_point(dtype)
                if load is not None:
                    return Of(load)
        return Of(self.number(dtype), Bound(3, -1))

    def weighted_scalar(self) -> str:
        match self.weighted(index=3, literal=2, load=1, sum=1):
            case "index":
                return f"({self.whole()})"
            case "literal":
                return self.number("i32")
            case "load":
                load = self.load_point("i32")
                if load is not None:
                    return f"({load} & 31)"
        return f"({self.whole()} * {self.rng.randint(1, 3)} - {self.rng.randint(0, 5)})"

    def point(self, tile: Name) -> str:
        return f"{tile.name}[{', '.join(self.near(n) for n in tile.shape)}]"

    def near(self, extent: int) -> str:
        """The index of a cell, often of one that others name too."""
        return self.index(0, min(extent, 2) - 1 if self.chance(0.5) else extent - 1)

    def load_point(self, dtype: str) -> str | None:
        found = [tensor for tensor in self.tensors if tensor.dtype == dtype]
        return self.cell(self.rng.choice(found)) if found else None

    def cell(self, tensor: Tensor) -> str:
        """One cell, of the block's own where it may be written. The last block's stretch may be short."""
        first = min(tensor.stretch, tensor.extents[0] - (self.grid - 1) * tensor.stretch) - 1
        subs = [f"{tensor.base} + {self.near(first + 1)}", *(self.near(n) for n in tensor.extents[1:])]
        return f"{tensor.name}[{', '.join(subs)}]"

    def condition(self, depth: int = 1) -> str:
        if depth and self.chance(0.25):
            return f"({self.condition(0)} {self.rng.choice(('&&', '||'))} {self.condition(0)})"
        sign = self.rng.choice(("<", "<=", "==", "!=", ">", ">="))
        floats = [t for t in FLOATS if any(x.dtype == t for x in self.tensors)]
        if floats and self.chance(0.5):
            dtype = self.rng.choice(floats)
            return f"{self.scalar(dtype).text} {sign} {self.number(dtype)}"
        left = f"({self.whole()}) % {self.rng.randint(2, 3)}" if self.chance(0.5) else self.weighted_scalar()
        return f"{left} {sign} {self.rng.randint(0, 3)}"

    # --- tiles ------------------------------------------------------------------------------------

    def fit(self, one: Of, dtype: str, bound: Bound = PLAIN) -> Of:
        """The expression brought back to small multiples where it may have left them."""
        if dtype not in FLOATS or (one.bound.most <= bound.most and one.bound.unit >= bound.unit):
            return one
        return Of(f"(round({one.text}) % 8.0)", Bound(8, 0))

    def slice_of(self, lengths: Shape, extents: Shape, spelled: tuple[str, ...] = ()) -> str:
        """Slices of some axes; now and then they run over an end. `spelled`: how extents stand in the text."""
        subs = []
        for axis, (length, extent) in enumerate(zip(lengths, extents, strict=True)):
            low, high = (max(-2, 1 - length), extent - 1) if self.chance(0.25) else (0, max(extent - length, 0))
            start = "0" if self.chance(0.45) and low <= 0 else self.index(low, high)
            if length == extent and start == "0" and self.chance(0.2) and (not spelled or spelled[axis].isdigit()):
                subs.append(self.rng.choice((":", "0 :", f"0 : {extent}")))
            else:
                subs.append(f"{start} :+ {length}")
        return ", ".join(subs)

    def part(self, tensor: Tensor, shape: Shape) -> str | None:
        """A slice of a tensor: of the block's own cells, or anywhere where nobody writes."""
        room = tensor.stretch - shape[0]
        if room < 0:
            return None
        free = not tensor.own or self.single
        if free and self.chance(0.3):
            first = self.index(max(-4, 1 - shape[0]), tensor.extents[0] - 1)
        elif free:
            first = f"{tensor.base} + {self.index(-3, tensor.stretch)}"
        else:
            first = f"{tensor.base} + {self.index(0, room)}" if self.chance(0.7) else tensor.base
        subs = [f"{first} :+ {shape[0]}"]
        if len(shape) > 1:
            subs.append(self.slice_of(shape[1:], tensor.extents[1:], tensor.dims[1:]))
        return f"{tensor.name}[{', '.join(subs)}]"

    def leaf(self, shape: Shape, dtype: str) -> Of:
        """Something of exactly this shape and type that is not computed."""
        exact = [name for name in self.tiles() if name.dtype == dtype and name.shape == shape]
        tiles = [n for n in self.tiles() if n.dtype == dtype and len(n.shape) == len(shape) and not n.view]
        flats = [
            n for n in self.tiles()
            if n.dtype == dtype and not n.view and not n.flat and len(n.shape) == 2
            and shape == (1, n.shape[0] * n.shape[1])
        ]  # fmt: skip
        tensors = [t for t in self.tensors if t.dtype == dtype and len(t.extents) == len(shape)]
        if len(shape) == 3:
            tensors = [t for t in self.cubes if t.dtype == dtype] * (not self.in_function)
        if len(shape) == 1:
            tensors += [t for t, _ in self.walks if t.dtype == dtype and (self.single or not t.own)] * (
                not self.in_function
            )
        kind = self.weighted(
            exact=5 * bool(exact), slice=2 * bool(tiles), flat=3 * bool(flats), part=3 * bool(tensors),
            iota=0.3 * (len(shape) == 2 and shape[0] == 1 and dtype not in ("i8", "u8", "bool")) + 0.001,
        )  # fmt: skip
        match kind:
            case "exact":
                one = self.rng.choice(exact)
                return Of(one.name, one.bound)
            case "slice":
                one = self.rng.choice(tiles)
                return Of(f"{one.name}[{self.slice_of(shape, one.shape)}]", one.bound)
            case "flat":
                one = self.rng.choice(flats)
                return Of(f"flat({one.name})", one.bound)
            case "part":
                text = self.part(self.rng.choice(tensors), shape)
                if text is not None:
                    return Of(text)
            case "iota" if len(shape) == 2 and shape[0] == 1 and dtype != "bool":
                if dtype in FLOATS:
                    return Of(f"{dtype}(iota({shape[1]}) % 8)")
                return Of(f"{dtype}(iota({shape[1]}))")
        return self.made(shape, dtype)

    def made(self, shape: Shape, dtype: str) -> Of:
        """From another type, where there is nothing of this one."""
        if dtype == "bool":
            return Of(self.compared(shape, 0))
        if len(shape) == 2:
            row = f"iota({shape[1]})" if shape[1] > 1 else "iota(1)"
            if shape[0] == 1:
                return Of(f"{dtype}({row} % 8)")
        other = self.rng.choice([t for t in self.types if t not in ("bool",)])
        held = [t for t in (*self.tensors, *self.cubes) if t.dtype == other and len(t.extents) == len(shape)]
        held = held if len(shape) < 3 or not self.in_function else []
        text = self.part(self.rng.choice(held), shape) if held else None
        if text is None:
            two = [n for n in self.tiles() if n.shape == shape and n.dtype != "bool"]
            if not two:
                length = 1
                for n in shape:
                    length *= n
                raise Stuck
            one = self.rng.choice(two)
            other, text = one.dtype, one.name
        return self.converted(Of(text), other, dtype)

    def converted(self, one: Of, other: str, dtype: str) -> Of:
        if other == "bool":
            return Of(f"where({one.text}, {dtype}({self.number(dtype)}), {dtype}({self.number(dtype)}))")
        if dtype in FLOATS and other in FLOATS:
            return Of(f"{dtype}({self.fit(one, other).text})")
        if dtype in FLOATS:
            return Of(f"{dtype}({one.text} % 8)", Bound(8, 0))
        return Of(f"{dtype}({one.text})")

    def expression(self, shape: Shape, dtype: str, depth: int = 2) -> Of:
        """A value of exactly this shape and type."""
        if dtype == "bool":
            return Of(self.compared(shape, depth))
        if depth <= 0:
            return self.leaf(shape, dtype)
        floats = dtype in FLOATS
        two = len(shape) == 2
        cells = shape[0] * shape[-1] if two else shape[0]
        kind = self.weighted(
            leaf=3, binary=6, unary=1, where=1, choose=1, convert=1, transpose=0.8 * two,
            rows=0.9 * (two and floats and shape[1] == 1),
            argmax=1.2 * (two and dtype == "i64" and shape[1] == 1 and not self.special),
            running=0.7 * (two and floats), gather=0.7,
            dot=1.2 * (two and dtype in ("f32", "f64", "i32") and cells <= 1024),
            call=1.0 * bool(self.functions) * (not self.in_function),
        )  # fmt: skip
        match kind:
            case "binary":
                return self.binary(shape, dtype, depth)
            case "unary":
                one = self.expression(shape, dtype, depth - 1)
                if floats:
                    return Of(self.rng.choice((f"(-{one.text})", f"round({one.text})")), one.bound)
                return Of(self.rng.choice((f"(-{one.text})", f"(~{one.text})")))
            case "where":
                one, two_ = self.pair(shape, dtype, depth)
                chosen = self.condition(0) if self.chance(0.2) else self.compared(shape, depth - 1)
                return Of(f"where({chosen}, {one.text}, {two_.text})", larger(one, two_))
            case "choose":
                one, two_ = self.pair(shape, dtype, depth)
                if self.chance(0.3):
                    other = self.rng.choice(self.numeric)
                    a, b = self.pair(shape, other, depth - 1)
                    return Of(f"argsel({a.text}, {b.text}, {one.text}, {two_.text})", larger(one, two_))
                return Of(f"{self.rng.choice(('tmax', 'tmin'))}({one.text}, {two_.text})", larger(one, two_))
            case "convert":
                other = self.rng.choice(self.numeric)
                return self.converted(self.expression(shape, other, depth - 1), other, dtype)
            case "transpose":
                one = self.expression((shape[1], shape[0]), dtype, depth - 1)
                return Of(f"transpose({one.text})", one.bound)
            case "rows":
                return self.rows(shape[0], dtype, depth)
            case "argmax":
                other = self.rng.choice([t for t in self.numeric if t in FLOATS] or ["f32"])
                return Of(
                    f"rowargmax({self.expression((shape[0], self.rng.choice(self.columns)), other, depth - 1).text})"
                )
            case "running":
                if shape[0] > 32 or self.chance(0.4):
                    return Of(f"tril({self.expression(shape, dtype, depth - 1).text})")
                one = self.fit(self.expression(shape, dtype, depth - 1), dtype)
                bound = Bound(one.bound.most * shape[0], one.bound.unit)
                if not bound.fits(dtype):
                    return one
                return Of(f"cumsum({one.text})", bound)
            case "gather":
                return self.gather(shape, dtype, depth)
            case "dot":
                return self.dot(shape, dtype, depth)
            case "call":
                return self.call(shape, dtype)
        return self.leaf(shape, dtype)

    def pair(self, shape: Shape, dtype: str, depth: int, joins: bool = False) -> tuple[Of, Of]:
        """One of the whole shape, one that may be smaller (and narrower, where it `joins`), in any order."""
        found = [self.expression(shape, dtype, depth - 1), self.operand(shape, dtype, depth - 1, joins)]
        self.rng.shuffle(found)
        return found[0], found[1]

    def operand(self, shape: Shape, dtype: str, depth: int, joins: bool = False) -> Of:
        """What broadcasts to the shape, and joins the type."""
        if len(shape) == 3 and self.chance(0.4):
            return self.expression(tuple(self.rng.choice((1, n)) for n in shape), dtype, depth)
        narrow = [t for t in self.types if t in NARROWER.get(dtype, ())]
        two = len(shape) == 2
        match self.weighted(same=4, scalar=2, row=1.5 * two, column=1.5 * two, narrow=1.0 * bool(narrow) * joins):
            case "scalar" if dtype != "bool":
                return self.scalar(dtype)
            case "narrow":
                return self.expression(shape, self.rng.choice(narrow), depth)
            case "row":
                return self.expression((1, shape[-1]), dtype, depth)
            case "column":
                return self.expression((shape[0], 1), dtype, depth)
        return self.expression(shape, dtype, depth)

    def binary(self, shape: Shape, dtype: str, depth: int) -> Of:
        one, other = self.pair(shape, dtype, depth, joins=True)
        if dtype in FLOATS:
            sign = self.rng.choice("+-*+-*%/")
            if sign == "%":
                whole = self.expression(shape, dtype, depth - 1)
                return Of(
                    f"({whole.text} % {self.rng.choice(('1.5', '2.0', '8.0'))})",
                    Bound(min(whole.bound.most, 8), min(whole.bound.unit, -1)),
                )
            if sign == "/":
                whole = self.expression(shape, dtype, depth - 1)
                half = Bound(whole.bound.most / 2, whole.bound.unit - 1)
                return Of(f"({whole.text} / 2.0)", half) if half.fits(dtype) else whole
            bound = result_of(sign, one.bound, other.bound)
            if not bound.fits(dtype):
                one, other = self.fit(one, dtype), self.fit(other, dtype)
                bound = result_of(sign, one.bound, other.bound)
            if not bound.fits(dtype):
                return self.leaf(shape, dtype)
            return Of(f"({one.text} {sign} {other.text})", bound)
        match self.weighted(plain=5, bits=2, shift=1, divide=1):
            case "plain":
                return Of(f"({one.text} {self.rng.choice('+-*')} {other.text})")
            case "bits":
                return Of(f"({one.text} {self.rng.choice('&|^')} {other.text})")
            case "shift":
                whole = self.expression(shape, dtype, depth - 1)
                return Of(f"({whole.text} {self.rng.choice(('<<', '>>'))} {self.rng.choice((0, 1, 3, 7, 8, 31))})")
        whole = self.expression(shape, dtype, depth - 1)
        return Of(f"({whole.text} {self.rng.choice('/%')} {self.rng.choice(('2', '3', '7', '16'))})")

    def compared(self, shape: Shape, depth: int) -> str:
        """A tile of truths."""
        held = [n for n in self.tiles() if n.dtype == "bool" and n.shape == shape]
        match self.weighted(compare=5, both=1 * (depth > 0), no=0.5 * (depth > 0), name=3 * bool(held)):
            case "both":
                return f"({self.compared(shape, depth - 1)} {self.rng.choice(('&&', '||'))} {self.compared(shape, 0)})"
            case "no":
                return f"(!{self.compared(shape, depth - 1)})"
            case "name":
                return self.rng.choice(held).name
        one, other = self.pair(shape, self.rng.choice(self.numeric), depth - 1)
        return f"({one.text} {self.rng.choice(('<', '<=', '==', '!=', '>', '>='))} {other.text})"

    def rows(self, height: int, dtype: str, depth: int) -> Of:
        one = self.fit(self.expression((height, self.rng.choice(self.columns)), dtype, depth - 1), dtype)
        sum_ = Bound(one.bound.most * 64, one.bound.unit)
        if self.special or (sum_.fits(dtype) and self.chance(0.5)):
            return (
                self.fit(Of(f"rowsum({one.text})", sum_), dtype) if sum_.fits(dtype) else self.leaf((height, 1), dtype)
            )
        return Of(f"rowmax({one.text})", one.bound)

    def gather(self, shape: Shape, dtype: str, depth: int) -> Of:
        kind = self.rng.choice([t for t in self.numeric if t in ("i32", "i64")] or ["i32"])
        tables = [n for n in self.tiles() if n.dtype == dtype and not n.view and n.shape[0] == 1 and len(n.shape) == 2]
        tensors = [t for t in self.tensors if t.dtype == dtype and len(t.extents) == 1 and (not t.own or self.single)]
        if not tables and not tensors:
            return self.leaf(shape, dtype)
        index = self.expression(shape, kind, depth - 1).text
        if tables and (not tensors or self.chance(0.6)):
            one = self.rng.choice(tables)
            mask = (1 << one.shape[1].bit_length() - 1) - 1
            return Of(f"gather({one.name}, {index} & {mask})", one.bound)
        tensor = self.rng.choice(tensors)
        mask = (1 << tensor.extents[0].bit_length() - 1) - 1
        return Of(f"gather({tensor.name}, {index} & {mask})")

    def dot(self, shape: Shape, dtype: str, depth: int) -> Of:
        kinds = {"f32": ("f16", "f32", "bf16", "f32", "f16"), "f64": ("f64",), "i32": ("i8", "u8", "i32")}[dtype]
        kind = self.rng.choice([k for k in kinds if k in self.types] or [kinds[0]])
        turned = self.chance(0.4)
        deep = [t for t in self.tensors if t.dtype == kind and len(t.extents) == 2 and t.dims[1] == "C"]
        if self.deepest is not None and self.deepest.dtype == kind and not self.in_function:
            deep = [self.deepest]
        if turned and deep and self.chance(0.4):  # of a length that is known when it runs
            held = self.rng.choice(deep)
            one, other = (self.long_part(held, n) for n in shape)
            if one and other:
                return Of(f"dot_t({one}, {other})", Bound(64 * held.extents[1], -2))
        length = self.rng.choice(self.columns)
        left, right = (shape[0], length), ((shape[1], length) if turned else (length, shape[1]))
        a, b = (self.fit(self.expression(s, kind, depth - 1), kind) for s in (left, right))
        return Of(f"{'dot_t' if turned else 'dot'}({a.text}, {b.text})", Bound(64 * length, -2))

    def long_part(self, tensor: Tensor, height: int) -> str | None:
        room = tensor.stretch - height
        if room < 0:
            return None
        start = f"{tensor.base} + {self.index(0, room)}"
        return f"{tensor.name}[{start} :+ {height}, 0 : {tensor.dims[1]}]"

    # --- functions --------------------------------------------------------------------------------

    def function(self) -> None:
        """A function of tiles and a number that gives a tile."""
        outer = (self.lines, self.indent, self.scopes, self.tensors, self.left, self.loops, self.depth)
        name = self.fresh("h")
        dtype = self.rng.choice(self.numeric)
        shape = self.shape()
        other = self.rng.choice([shape, (1, shape[-1]) if len(shape) == 2 else shape])
        parameters = [("a", dtype, shape), ("b", dtype, other)]
        self.lines, self.indent, self.scopes, self.tensors, self.depth, self.loops = [], 1, [Scope()], [], 1, 0
        self.in_function = True
        for label, kind, dims in parameters:
            self.define(Name(label, kind, dims))
        self.scopes[-1].indices.append(("n", -3, 9))
        self.left = self.rng.randint(0, 2)
        if self.chance(0.4):
            with self.block(f"if {self.condition(0)}"):
                self.line(f"return {self.fit(self.expression(shape, dtype, 1), dtype).text}")
        self.statements()
        self.line(f"return {self.fit(self.expression(shape, dtype, 2), dtype).text}")
        self.in_function = False
        spelled = ", ".join(f"{n}: {tile_type(t, s)}" for n, t, s in parameters)
        text = f"fn {name}({spelled}, n: i64) -> {tile_type(dtype, shape)} {{\n" + "\n".join(self.lines) + "\n}\n"
        self.lines, self.indent, self.scopes, self.tensors, self.left, self.loops, self.depth = outer
        self.functions.append((name, [text], (dtype, "", shape), parameters))

    def call(self, shape: Shape, dtype: str) -> Of:
        found = [f for f in self.functions if f[2] is not None and f[2][0] == dtype and f[2][2] == shape]
        if not found:
            return self.leaf(shape, dtype)
        name, _, _, parameters = self.rng.choice(found)
        given = [self.fit(self.expression(s, t, 1), t).text for _, t, s in parameters]
        return Of(f"{name}({', '.join(given)}, {self.whole()})")
