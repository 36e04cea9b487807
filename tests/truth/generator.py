"""Random kernels for the truth run: well typed, small, and not shy of the borders of any analysis.

`generate(seed)` gives a `Sample`: the text of one kernel (with the functions it calls) and what the judge needs
to run it: the extents worth trying and how each tensor is filled. Everything follows from the seed. The
generator knows the language, nothing of the checker: right and wrong strides, promises, guards, exits, slots,
flags and counters come out as they fall, and whether one is wrong is for the reference runtime to say.
"""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass, field


@dataclass
class Sample:
    """One random kernel. `sizes` maps a dim to the extents to try, `fills` a tensor to its `--arg` spelling."""

    seed: int
    text: str
    kernel: str
    persistent: bool
    reads_axis_y: bool
    uses_atomics: bool
    sizes: dict[str, tuple[int, ...]]
    parameters: dict[str, tuple[int, ...]]
    fills: dict[str, str]
    features: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()  # cards that the checker is asked about
    kept: int = 1  # a multiple of it keeps every promise about N


@dataclass
class Writer:
    """The kernel being written: its lines, the names in scope and what it turned out to need."""

    rng: random.Random
    tile: str  # how a tile length is written: a literal or the constant `T`
    length: int  # its value (the default of T)
    persistent: bool
    lines: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    indent: int = 1
    names: int = 0
    tensors: set[str] = field(default_factory=set)
    features: set[str] = field(default_factory=set)
    starts: list[str] = field(default_factory=list)  # names of index values in scope that start a tile
    scalars: list[str] = field(default_factory=list)
    in_loop: int = 0
    budget: int = 9  # statements still allowed
    barrier_type: str = "tensor<i32>[2]"
    tunes: list[str] = field(default_factory=list)  # further `@autotune` arguments
    promised: list[int] = field(default_factory=lambda: [1])  # what `@aligned` says of N

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    def fresh(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def use(self, *tensors: str) -> None:
        self.tensors.update(tensors)


GRID = "ctx.blocks.x"


def generate(seed: int) -> Sample:
    """The kernel of a seed."""
    rng = random.Random(seed)
    persistent = rng.random() < 0.78
    length = rng.choice([2, 4, 4, 8])
    constant = rng.random() < 0.5
    writer = Writer(rng, "T" if constant else str(length), length, persistent)
    reads_y = rng.random() < (0.06 if persistent else 0.25)
    writer.line("let p = ctx.block.x")
    writer.scalars.append("p")
    if reads_y:
        writer.line("let q = ctx.block.y")
        writer.scalars.append("q")
        writer.features.add("axis-y")
    writer.barrier_type = rng.choices(BARRIER_TYPES, BARRIER_WEIGHTS)[0]
    shape = rng.choices([shape for shape, _ in SHAPES], [weight for _, weight in SHAPES])[0]
    shape(writer)
    if rng.random() < 0.35:
        _statement(writer, 1)
    _season(writer)
    if not any(name in writer.tensors for name in "XYZPC"):
        _store(writer, "p * " + writer.tile)
    return _finish(seed, writer, constant, reads_y)


def _finish(seed: int, writer: Writer, constant: bool, reads_y: bool) -> Sample:
    rng = writer.rng
    attributes = []
    if writer.persistent:
        attributes.append("@persistent" if rng.random() > 0.045 else "@persistent(1)")
    second = writer.length * 2 if rng.random() < 0.4 else writer.length
    if constant:
        choices = [writer.length] if second == writer.length else [writer.length, second]
        attributes.append(f"@autotune(T in [{', '.join(map(str, choices))}])")
    if writer.tunes:
        attributes.append(f"@autotune({', '.join(writer.tunes)})")
    body = "\n".join(writer.lines)
    static_extent = None
    if rng.random() < 0.16:
        static_extent = rng.choice([writer.length * 2, writer.length * 3, writer.length * 2 + 1, writer.length * 4])
        writer.features.add("static-extent")
    if rng.random() < (0.3 if static_extent is None else 0.75):
        promised = rng.choice(
            [writer.tile, str(writer.length), *[str(max(1, writer.length // 2))] * 2, str(writer.length * 2)]
        )
        also = ""
        if rng.random() < 0.5:  # a word that is no promise, or one too many
            also = rng.choice([", Q = 4", f", N = {writer.length + 1}", ", N = 3", ", N = 3"])
            if rng.random() < 0.25:
                promised, also = "0", ""
        attributes.append(f"@aligned(N = {promised}{also})")
        writer.promised += [int(n) for n in re.findall(r"N = (\d+)", f"N = {promised}{also}") if n != "0"]
        if promised == "T":
            writer.promised += [writer.length, second]
        writer.features.add("aligned")
        if static_extent is not None:
            attributes.append(f"@autotune(N in [{static_extent}])")
    elif static_extent is not None:
        attributes.append(f"@autotune(N in [{static_extent}])")
    parameters = _declarations(writer, static_extent)
    header = []
    targets: tuple[str, ...] = ()
    if writer.persistent and rng.random() < 0.065:
        header, targets = [f"// run: kernel=k grid={rng.choice([2000, 5000])}"], ("h200",)
    text = "\n".join([*header, *writer.functions, *attributes, f"kernel k({parameters}) {{", body, "}"]) + "\n"
    text = text.replace("BARRIER_TYPE", writer.barrier_type)
    length = writer.length
    edges = {max(1, edge + d) for edge in (length, 2 * length, 3 * length) for d in (-1, 0, 1)}
    kept = math.lcm(*writer.promised)
    edges |= {kept, *(-(-edge // kept) * kept for edge in edges if kept <= 2 * length)}  # they keep every promise
    sizes: dict[str, tuple[int, ...]] = {}
    if static_extent is None:
        sizes["N"] = tuple(sorted(edges))
    if "Z" in writer.tensors:
        sizes["M"] = (1, 2, 3)
    if "P" in writer.tensors:
        sizes["S"] = (5, 8)
    if "C" in writer.tensors:
        sizes["K"] = (2,)
    if "W" in writer.tensors:
        sizes["H"] = (3, 4)
    if "BAR" in writer.tensors and "[B" in writer.barrier_type:
        sizes["B"] = (1, 2, 3)
    fills = {name: "random:seed=1" for name in writer.tensors if name in "XYZWP"}
    fills |= {name: "zeros" for name in writer.tensors if name in ("C", "BAR")}
    if "I" in writer.tensors:
        fills["I"] = "iota"
    return Sample(
        seed=seed,
        text=text,
        kernel="k",
        persistent=writer.persistent,
        reads_axis_y=reads_y,
        uses_atomics="atomic" in writer.features,
        sizes=sizes,
        parameters={"flag": (0, 1)} if "flag" in parameters else {},
        fills=fills,
        features=tuple(sorted(writer.features)),
        targets=targets,
        kept=kept,
    )


def _declarations(writer: Writer, static_extent: int | None) -> str:
    types = {
        "X": "tensor<f32>[N]",
        "Y": "tensor<f32>[N]",
        "Z": "tensor<f32>[M, N]",
        "P": "tensor<f32>[S]",
        "I": "tensor<i32>[N]",
        "C": "tensor<i32>[K]",
        "W": "tensor<f32>[H, N]",
        "BAR": writer.barrier_type,
    }
    used = [name for name in types if name in writer.tensors]
    if not any("N" in types[name] for name in used):
        used.insert(0, "X")
        writer.tensors.add("X")
    parts = [f"{name}: {types[name]}" for name in used]
    if "flag" in writer.features:
        parts.append("flag: i32")
    return ", ".join(parts)


BARRIER_TYPES = (
    "tensor<i32>[2]", "tensor<i32>[3, 1]", "tensor<i32>[B]", "tensor<i32>[B, 1]", "tensor<i32>[1]",
    "tensor<i32>[1, 2]", "tensor<f32>[2]", "tensor<i32>[1, 1]",
)  # fmt: skip
BARRIER_WEIGHTS = (66, 8, 9, 5, 5, 3, 2, 2)
"""Sound ones, those whose size only the launch knows, and bad ones."""


def _season(writer: Writer) -> None:
    """Now and then one mistake (or one thing that only looks like one), put on top of the rest."""
    plain = writer.barrier_type in ("tensor<i32>[2]", "tensor<i32>[B]")
    if "barrier" in writer.features and plain and writer.chance(0.16):
        writer.line(writer.pick("BAR[0] = 0", "let touched = atomic_add(BAR, 1, 0)", "let seen = BAR[1]"))
    if "barrier" not in writer.features and writer.persistent and writer.chance(0.1):
        writer.use("X")
        writer.line(writer.pick("X[ctx.block.y] = 7.0", "X[p % N] = f32(ctx.blocks.y)"))
        writer.features.add("axis-y")
    if writer.chance(0.08):
        _number(writer)
    if writer.chance(0.05):
        _assumed(writer)


def _rounds(writer: Writer) -> None:
    """The same two passes over and over; what a round reads may be what a neighbour wrote in the one before."""
    writer.use("X", "Y")
    name = writer.fresh("s")
    writer.line(f"for {name} in range(0, {writer.pick('2', '3')}) {{")
    writer.indent += 1
    writer.in_loop += 1
    shift = writer.pick("", " + 1", f" + {writer.tile}", " - 1")
    _strided(writer, lambda: writer.line(
        f"Y[{writer.starts[-1]} :+ {writer.tile}] = X[{writer.starts[-1]}{shift} :+ {writer.tile}] * 0.5"
    ))  # fmt: skip
    if writer.chance(0.9):
        writer.use("BAR")
        writer.features.add("barrier")
        writer.line("grid_barrier(BAR)")
    _strided(writer, lambda: writer.line(
        f"X[{writer.starts[-1]} :+ {writer.tile}] = Y[{writer.starts[-1]} :+ {writer.tile}] + 1.0"
    ))  # fmt: skip
    if writer.chance(0.3):
        _barrier(writer)
    writer.indent -= 1
    writer.in_loop -= 1
    writer.line("}")


def _both_arms(writer: Writer) -> None:
    writer.use("BAR")
    writer.line(f"if {_condition(writer)} {{")
    writer.line("  grid_barrier(BAR)")
    writer.line("} else {")
    writer.line("  grid_barrier(BAR)")
    writer.line("}")


def _number(writer: Writer) -> None:
    """A step, a divisor or a point that is right for some sizes only."""
    writer.use("P", "X")
    kind = writer.rng.random()
    loaded = "X[p % N]"
    if kind < 0.35:
        step = writer.pick("flag", "N / 4", "p", "flag - 1", "p + 1", "N - 2", "3 - N")
        if "flag" in step:
            writer.features.add("flag")
        name = writer.fresh("z")
        total = writer.fresh("count")
        writer.line(f"var {total} = 0")
        writer.line(f"for {name} in range(0, 4, {step}) {{")
        writer.line(f"  {total} += {name}")
        writer.line("}")
        loaded = f"f32({total})"
    elif kind < 0.75:
        divisor = writer.pick("flag", "p", "(N - 3)", "(N / 3)", "(p + 1)", "(N - p)", f"({GRID} - 2)")
        if "flag" in divisor:
            writer.features.add("flag")
        loaded = f"f32({writer.pick('N', '7')} {writer.pick('/', '%')} {divisor})"
    else:
        place = writer.pick("p * 2", "N - p", "p - 1", "N - 1 - p", "p + N / 2", "flag + 1", "p / 2", "N - 3")
        if "flag" in place:
            writer.features.add("flag")
        writer.use("X")
        loaded = f"X[{place}]"
    writer.line(f"P[p] = {loaded}")


def _numbers(writer: Writer) -> None:
    _number(writer)
    if writer.persistent and writer.chance(0.4):
        _barrier(writer)
        _number(writer) if writer.chance(0.3) else None


def _assumed(writer: Writer) -> None:
    """A value that is said to be the same for all blocks, and a barrier (or a store) that relies on it."""
    writer.use("X")
    name = writer.fresh("same")
    value = writer.pick("X[0]", "X[p % N]", "X[p % N]", "f32(p)", "f32(p / 8)", "f32(N)", "f32(p % 2)", "X[p / 8]")
    writer.line(f"let {name} = {value}")
    writer.line(f"// phobos: assume uniform({name})")
    writer.line(f"if {name} > {writer.pick('0.5', '0.1', '-1.0')} {{")
    if writer.persistent and writer.chance(0.8):
        writer.line("  grid_barrier(BAR)")
        writer.use("BAR")
        writer.features.add("barrier")
    else:
        writer.use("P")
        writer.line(f"  P[p] = {name}")
    writer.line("}")


def _columns(writer: Writer) -> None:
    """Rank 2: columns interleaved between blocks, or spans of one row that touch."""
    writer.use("W")
    writer.features.add("rank-2")
    tile = writer.tile
    row = writer.fresh("r")
    writer.line(f"for {row} in range(0, H) {{")
    writer.indent += 1
    writer.in_loop += 1
    column = writer.fresh("c")
    start, step = writer.pick(
        f"p,{GRID}", f"p,{GRID}", f"p * {tile},{GRID} * {tile}", f"p * 2,{GRID} * 2", "p,2", f"p * {tile},{tile} * 2"
    ).split(",")
    writer.line(f"for {column} in range({start}, N, {step}) {{")
    width = writer.pick("1", "1", tile, "2")
    source = writer.pick(row, row, "H - 1 - " + row, "0")
    writer.line(f"  W[{row} :+ 1, {column} :+ {width}] = W[{source} :+ 1, {column} :+ {width}] * 0.5")
    writer.line("}")
    if writer.chance(0.4):
        _barrier(writer)
    writer.indent -= 1
    writer.in_loop -= 1
    writer.line("}")


def _mixed(writer: Writer) -> None:
    """One counter, by atomic and by plain access, with or without a barrier between."""
    writer.use("C", "P")
    writer.features.add("atomic")
    writer.line(f"let {writer.fresh('old')} = atomic_add(C, {writer.pick('0', 'p % 2')}, 1)")
    if writer.persistent and writer.chance(0.4):
        _barrier(writer)
    if writer.chance(0.5):
        writer.line("P[p] = f32(C[0])")
    else:
        writer.line(f"if p == {writer.pick('0', '1')} {{")
        writer.line(f"  C[{writer.pick('0', '1')}] = 0")
        writer.line("}")


# --- whole shapes -----------------------------------------------------------------------------------


def _elementwise_pass(writer: Writer) -> None:
    """One pass over a tensor, by stride or by one tile a block, perhaps followed by a barrier."""
    _strided(writer, lambda: _store(writer, writer.starts[-1]))
    if writer.persistent and writer.chance(0.6):
        _barrier(writer)
    if writer.chance(0.4):
        _strided(writer, lambda: _store(writer, writer.starts[-1]))


def _two_phases(writer: Writer) -> None:
    """Write, barrier (or none), read what may be a neighbour's; the ground of most races."""
    rounds = writer.chance(0.4)
    if rounds:
        name = writer.fresh("s")
        writer.line(f"for {name} in range(0, {writer.pick('2', '3')}) {{")
        writer.indent += 1
        writer.in_loop += 1
    source, target = ("X", "Y") if writer.chance(0.5) else ("Y", "X")
    writer.use(source, target)
    shift = writer.pick("", "", " + 1", " + " + writer.tile, " - 1")

    def first() -> None:
        t = writer.starts[-1]
        writer.line(f"{target}[{t} :+ {writer.tile}] = {source}[{t} :+ {writer.tile}] * 0.5")

    def second() -> None:
        t = writer.starts[-1]
        written = writer.pick(source, source, target)
        writer.line(f"{written}[{t} :+ {writer.tile}] = {target}[{t}{shift} :+ {writer.tile}] + 1.0")

    _strided(writer, first)
    if writer.chance(0.75):
        _barrier(writer)
    _strided(writer, second)
    if rounds:
        if writer.chance(0.7):
            _barrier(writer)
        writer.indent -= 1
        writer.in_loop -= 1
        writer.line("}")


def _free_form(writer: Writer) -> None:
    for _ in range(writer.rng.randint(2, 4)):
        _statement(writer, 0)


def _slots(writer: Writer) -> None:
    """A partial result per block, a barrier, and everybody reads all of them."""
    writer.use("P", "X")
    writer.features.add("slots")
    acc = writer.fresh("acc")
    writer.line(f"var {acc}: f32 = 0.0")

    def gather() -> None:
        writer.line(f"{acc} += X[{writer.pick('p', 'p', '0')} % N]")

    _strided(writer, gather)
    writer.line(f"P[{writer.pick('p', 'p', 'p', 'p + 1', '0', 'p / 2')}] = {acc}")
    if writer.chance(0.8):
        _barrier(writer)
    total = writer.fresh("total")
    writer.line(f"var {total}: f32 = 0.0")
    name = writer.fresh("b")
    bound = writer.pick(GRID, GRID, "2", "p")
    writer.line(f"for {name} in range(0, {bound}) {{")
    writer.line(f"  {total} += P[{name}]")
    writer.line("}")
    guard = writer.pick("p == 0", "p == 0", "flag == 1", "p < 2")
    if "flag" in guard:
        writer.features.add("flag")
    writer.line(f"if {guard} {{")
    writer.line(f"  X[{writer.pick('0', 'p', 'N - 1')}] = {total}")
    writer.line("}")


def _atomics(writer: Writer) -> None:
    """Tickets, semaphores, flags, histograms: blocks that talk through an atomic."""
    writer.use("C")
    writer.features.add("atomic")
    kind = writer.rng.choice(["ticket", "last", "flag", "lookback", "histogram"])
    writer.features.add(kind)
    if kind == "ticket":
        writer.use("X")
        name = writer.fresh("i")
        writer.line(f"var {name} = i64(atomic_add(C, 0, 1))")
        writer.line(f"while {name} * {writer.tile} < N {{")
        writer.line(f"  X[{name} * {writer.tile} :+ {writer.tile}] = X[{name} * {writer.tile} :+ {writer.tile}] * 2.0")
        writer.line(f"  {name} = {writer.pick('i64(atomic_add(C, 0, 1))', 'i64(atomic_add(C, 0, 1))', f'{name} + 1')}")
        writer.line("}")
    elif kind == "last":
        writer.use("P", "X")
        writer.line(f"P[{writer.pick('p', 'p', '0')}] = X[p % N]")
        name = writer.fresh("n")
        writer.line(f"let {name} = i64(atomic_add(C, 0, 1))")
        writer.line(f"if {name} == {writer.pick(GRID + ' - 1', GRID + ' - 1', '0')} {{")
        writer.line(f"  X[0] = P[0]{writer.pick('', ' + P[1]')}")
        if writer.chance(0.4):
            writer.line("  C[0] = 0")
        writer.line("}")
        if writer.chance(0.2):
            _barrier(writer)
    elif kind == "flag":
        writer.use("X", "Y")
        writer.line(f"if p == {writer.pick('0', '0', '1')} {{")
        writer.line("  X[0] = 3.0")
        writer.line("  let done = atomic_add(C, 0, 1)")
        writer.line("}")
        condition = writer.pick(
            "atomic_add(C, 0, 0) == 0", "atomic_add(C, 0, 0) == 0", "C[0] == 0", "atomic_add(C, 1, 0) == 0"
        )
        writer.line(f"while {condition} {{")
        writer.line("}")
        writer.line("Y[p % N] = X[0]")
    elif kind == "lookback":
        writer.use("P")
        writer.line(f"while i64(atomic_add(C, 0, 0)) != p{writer.pick('', '', ' + 1')} {{")
        writer.line("}")
        writer.line("if p > 0 {")
        writer.line("  P[p] = P[p - 1] + 1.0")
        writer.line("}")
        writer.line(f"let next = atomic_add(C, 0, {writer.pick('1', '1', '1', '2')})")
    else:
        writer.use("X")
        writer.line("let old = atomic_add(C, p % 2, 1)")
        if writer.chance(0.7):
            _barrier(writer)
        writer.line("if p == 0 {")
        writer.line("  X[0] = f32(C[0])")
        writer.line("}")


def _tiles(writer: Writer) -> None:
    """Tiles that may be read before they are written, rank 2 tensors, reductions."""
    writer.use("Z")
    writer.features.add("rank-2")
    name = writer.fresh("t")
    row = writer.pick("p", "0", "p % M")
    if writer.chance(0.5):
        writer.line(f"var {name}: tile<f32>[1, {writer.tile}]")
        if writer.chance(0.92):
            guard = writer.pick("", "if p == 0", "if p < 2", "if N > 3", "if flag == 1")
            if "flag" in guard:
                writer.features.add("flag")
            load = f"{name} = Z[{row} :+ 1, 0 :+ {writer.tile}]"
            writer.line(f"{guard} {{" if guard else load)
            if guard:
                writer.line(f"  {load}")
                writer.line("}")
    else:
        writer.line(f"var {name}: tile<f32>[1, {writer.tile}] = 0.5")
    if writer.chance(0.5):
        loop = writer.fresh("c")
        writer.line(f"for {loop} in range(0, N, {writer.tile}) {{")
        writer.line(f"  {name} += Z[{row} :+ 1, {loop} :+ {writer.tile}]")
        writer.line("}")
    if writer.chance(0.3):
        _barrier(writer)
    target = writer.pick("p", "p", "p", "0", "p + 1")
    column = writer.pick("0", "0", f"p * {writer.tile}", "p")
    writer.line(f"Z[{target} :+ 1, {column} :+ {writer.tile}] = {name} * 2.0")


SHAPES = (
    (_elementwise_pass, 10), (_two_phases, 14), (_free_form, 28), (_slots, 10), (_atomics, 14), (_tiles, 16),
    (_numbers, 20), (_assumed, 13), (_columns, 7), (_mixed, 9), (_rounds, 11),
)  # fmt: skip


# --- statements -------------------------------------------------------------------------------------


def _statement(writer: Writer, depth: int) -> None:
    if writer.budget <= 0:
        return
    writer.budget -= 1
    options = [(3, _any_store), (3, _pass), (2, _barrier), (1, _scalar), (1, _call), (1, _point)]
    if depth < 2:
        options += [(3, _if), (2, _loop), (1, _while)]
    if writer.in_loop or depth:
        options.append((1, _jump))
    weights = [weight for weight, _ in options]
    chosen = writer.rng.choices([option for _, option in options], weights)[0]
    if chosen in (_if, _loop, _while):
        chosen(writer, depth)  # type: ignore[operator]
    else:
        chosen(writer)  # type: ignore[operator]


def _block(writer: Writer, depth: int, statements: int) -> None:
    scopes = (len(writer.starts), len(writer.scalars))
    writer.indent += 1
    for _ in range(statements):
        _statement(writer, depth + 1)
    if writer.lines[-1].endswith("{"):
        _any_store(writer)
    writer.indent -= 1
    del writer.starts[scopes[0] :]
    del writer.scalars[scopes[1] :]


def _condition(writer: Writer) -> str:
    kind = writer.rng.random()
    if kind < 0.3:
        text = writer.pick("flag == 1", "N > 3", f"{GRID} > 2", f"N % {writer.tile} == 0", f"{GRID} < 9 && N > 2")
    elif kind < 0.75:
        scalar = writer.rng.choice(writer.scalars)
        text = writer.pick(
            f"{scalar} == 0",
            f"{scalar} < 2",
            f"{scalar} != 1",
            f"p * {writer.tile} < N",
            f"p < {GRID}",
            f"{scalar} % 2 == 0",
            f"p + 1 < {GRID}",
            "p == 0 || N > 4",
            "p < 0",
        )
    else:
        writer.use("X")
        text = writer.pick("X[0] > 0.5", "X[p % N] > 0.5", "X[N - 1] > 0.2")
    if "flag" in text:
        writer.features.add("flag")
    return text


def _if(writer: Writer, depth: int) -> None:
    writer.line(f"if {_condition(writer)} {{")
    _block(writer, depth, writer.rng.randint(1, 2))
    if writer.chance(0.3):
        writer.line("} else {")
        _block(writer, depth, 1)
    writer.line("}")


def _loop(writer: Writer, depth: int) -> None:
    name = writer.fresh("s")
    bounds = writer.pick(
        "0, 2", "0, 3", "0, p + 1", "0, p", "p, p + 2", f"0, {GRID}", "0, flag + 1", "1, 1", "0, N / 4"
    )
    if "flag" in bounds:
        writer.features.add("flag")
    writer.line(f"for {name} in range({bounds}) {{")
    writer.in_loop += 1
    writer.scalars.append(name)
    _block(writer, depth, writer.rng.randint(1, 2))
    writer.in_loop -= 1
    writer.scalars.pop()
    writer.line("}")


def _while(writer: Writer, depth: int) -> None:
    name = writer.fresh("w")
    start, bound = writer.pick("0", "p"), writer.pick("2", "3", GRID, "p + 2", "N")
    step = writer.pick("1", GRID, "2")
    writer.line(f"var {name} = {start}")
    writer.line(f"while {name} < {bound} {{")
    writer.indent += 1
    writer.line(f"{name} += {step}")
    writer.indent -= 1
    writer.in_loop += 1
    writer.scalars.append(name)
    _block(writer, depth, 1)
    writer.in_loop -= 1
    writer.line("}")


def _jump(writer: Writer) -> None:
    word = writer.pick("break", "continue", "return") if writer.in_loop else "return"
    writer.features.add(word)
    writer.line(f"if {_condition(writer)} {{")
    writer.line(f"  {word}")
    writer.line("}")


def _barrier(writer: Writer) -> None:
    writer.use("BAR")
    writer.features.add("barrier")
    if writer.chance(0.08):
        writer.line(f"let {writer.fresh('met')} = grid_barrier(BAR)")
        return
    if writer.chance(0.16):
        _both_arms(writer)
        return
    if writer.chance(0.14):
        writer.line(f"if {_condition(writer)} {{")
        writer.line("  return")
        writer.line("}")
    if writer.chance(0.05):
        writer.line(f"if {_condition(writer)} {{")
        writer.line("  grid_barrier(BAR)")
        writer.line("}")
        return
    if writer.chance(0.08):
        name = writer.fresh("sync")
        writer.functions.append(f"fn {name}(b: BARRIER_TYPE) {{\n  grid_barrier(b)\n}}")
        writer.line(f"{name}(BAR)")
    else:
        writer.line("grid_barrier(BAR)")


def _strided(writer: Writer, body: object) -> None:
    """A pass over N: block-strided in one of its spellings, one tile a block, or everything by everybody."""
    tile = writer.tile
    offset = writer.pick("", "", "", "", " + 1", f" + {tile}") if writer.chance(0.3) else ""
    stride = writer.pick(
        f"{GRID} * {tile}", f"{GRID} * {tile}", f"{GRID} * {tile}", f"{GRID} * {tile} * 2", tile, f"2 * {tile}"
    )
    if writer.persistent and "G" not in "".join(writer.tunes) and writer.chance(0.075):
        writer.tunes.append(f"G in [{writer.pick('2', '4', '2, 3')}]")
        stride = f"G * {tile}"
    elif writer.chance(0.04):  # a constant that may or may not be the tile
        if not any(tune.startswith("D ") for tune in writer.tunes):
            writer.tunes.append(f"D in [{writer.length}, {writer.length + 1}]")
        stride = f"{GRID} * D"
    kind = writer.rng.random()
    if (not writer.persistent and kind < 0.6) or kind < 0.15:
        name = writer.fresh("o")
        writer.line(f"let {name} = p * {tile}{offset}")
        writer.starts.append(name)
        body()  # type: ignore[operator]
        return
    name = writer.fresh("t")
    if kind < (0.5 if stride.startswith("G") else 0.75):
        writer.line(f"for {name} in range(p * {tile}{offset}, N, {stride}) {{")
        writer.indent += 1
        start = name
    elif kind < 0.78 and stride.startswith("G"):
        writer.line(f"for {name} in range(0, (N + G * {tile} - 1) / (G * {tile})) {{")
        writer.indent += 1
        start = writer.fresh("o")
        writer.line(f"let {start} = ({name} * G + p) * {tile}{offset}")
    elif kind < 0.9:
        rounds = f"(N + {GRID} * {tile} - 1) / ({GRID} * {tile})"
        writer.line(f"for {name} in range(0, {rounds}) {{")
        writer.indent += 1
        start = writer.fresh("o")
        writer.line(f"let {start} = ({name} * {GRID} + p) * {tile}{offset}")
    else:
        writer.line(f"for {name} in range({writer.pick('0', '0', f'p * {tile}')}, N, {tile}) {{")
        writer.indent += 1
        start = name
    writer.starts.append(start)
    writer.in_loop += 1
    body()  # type: ignore[operator]
    if writer.chance(0.08):
        _barrier(writer)
    writer.in_loop -= 1
    writer.starts.pop()
    writer.indent -= 1
    writer.line("}")


def _pass(writer: Writer) -> None:
    _strided(writer, lambda: _store(writer, writer.starts[-1]))


def _any_store(writer: Writer) -> None:
    choices = [f"p * {writer.tile}", f"p * {writer.tile}", f"(p + 1) * {writer.tile}", "0", "p", *writer.starts[-2:]]
    _store(writer, writer.rng.choice(choices))


def _store(writer: Writer, start: str) -> None:
    tile = writer.tile
    target = writer.pick("X", "Y", "X")
    writer.use(target)
    source = writer.pick(target, "X", "Y")
    writer.use(source)
    shift = writer.pick("", "", "", "", " + 1", f" + {tile}") if writer.chance(0.3) else ""
    value = writer.pick(
        f"{source}[{start}{shift} :+ {tile}] * 0.5",
        f"{source}[{start}{shift} :+ {tile}] * 0.5",
        "1.0",
        f"exp({source}[{start} :+ {tile}])",
    )
    if value != "1.0" and writer.chance(0.15):
        name = writer.fresh("v")
        writer.line(f"let {name} = {source}[{start}{shift} :+ {tile}]")
        if writer.chance(0.3):
            _barrier(writer)
        value = f"{name} + 1.0"
    op = writer.pick("=", "=", "=", "+=")
    writer.line(f"{target}[{start} :+ {tile}] {op} {value}")


def _point(writer: Writer) -> None:
    writer.use("X")
    place = writer.pick("p", "0", "N - 1", "p % N", "p * 2", "N - 1 - p", writer.rng.choice(writer.scalars))
    value = writer.pick("1.0", "X[0]", "X[p % N] + 1.0", "f32(p)", "f32(N)")
    if writer.chance(0.3):
        writer.line("if p == 0 {")
        writer.line(f"  X[{place}] = {value}")
        writer.line("}")
    else:
        writer.line(f"X[{place}] = {value}")


def _scalar(writer: Writer) -> None:
    name = writer.fresh("n")
    value = writer.pick(
        "p * 2", "p + 1", f"{GRID} - 1", "N / 2", "0", "p % 2", writer.rng.choice(writer.scalars) + " + 1"
    )
    writer.line(f"var {name} = {value}")
    if writer.chance(0.4):
        writer.line(f"if {_condition(writer)} {{")
        writer.line(f"  {name} = {writer.pick('0', '1', 'p')}")
        writer.line("}")
    writer.scalars.append(name)


def _call(writer: Writer) -> None:
    """A function that stores, loads or computes for the kernel."""
    writer.use("X")
    name = writer.fresh("f")
    kind = writer.rng.random()
    if kind < 0.5:
        writer.functions.append(
            f"fn {name}(A: tensor<f32>[L], at: i64) {{\n  A[at :+ {writer.length}] = A[at :+ {writer.length}] + 1.0\n}}"
        )
        writer.line(f"{name}(X, {writer.pick(f'p * {writer.length}', '0', 'p')})")
    elif kind < 0.75:
        early = "  if at > 2 {\n    return 0\n  }\n" if writer.chance(0.5) else ""
        writer.functions.append(f"fn {name}(at: i64) -> i64 {{\n{early}  return at + 1\n}}")
        result = writer.fresh("r")
        writer.line(f"let {result} = {name}({writer.pick('p', '1')})")
        writer.scalars.append(result)
    else:
        writer.use("BAR")
        guard = writer.pick("at == 0", "at < 99", "extent(A, 0) > 2")
        writer.functions.append(
            f"fn {name}(A: tensor<f32>[L], b: BARRIER_TYPE, at: i64) {{\n"
            f"  if {guard} {{\n    return\n  }}\n  grid_barrier(b)\n}}"
        )
        writer.features.add("barrier")
        writer.line(f"{name}(X, BAR, {writer.pick('p', '0', '1')})")
