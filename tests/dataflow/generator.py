"""Random kernels about what flows within a block: tiles, views, slices, loops, products, what threads hand each other.

`generate(seed)` gives a `Sample`: the text and all that it takes to run it; everything follows from the seed. Blocks
keep to cells of their own (or read what nobody writes in that phase), subscripts of points are in bounds, and floats
are small multiples of one half, so that sums and products are exact in any order: two runtimes that both work give the
same cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.dataflow.sample import COLUMNS, LENGTHS, ROWS, TABLE, THREADS, Sample, Stuck, Tensor
from tests.dataflow.statements import Writer


def generate(seed: int) -> Sample:
    """The kernel of a seed."""
    for turn in range(50):
        try:
            return _generate(seed, turn)
        except Stuck:
            continue
    raise AssertionError(f"seed {seed} gives no kernel")


def _generate(seed: int, turn: int) -> Sample:
    writer = Writer(seed * 64 + turn)
    rng = writer.rng
    persistent = rng.random() < 0.2
    writer.grid = rng.choice((2, 3)) if persistent else rng.choice((1, 1, 2, 3))
    writer.single = writer.grid == 1
    writer.special = rng.random() < 0.15
    pool = [rng.choice(("f32", "f32", "f16", "bf16", "f64")), rng.choice(("i32", "i32", "i64", "i8", "u8"))]
    pool += [t for t in [rng.choice(("f32", "f16", "i8", "i32", "bool", "f64", "bf16", "i64"))] if t not in pool]
    writer.types = tuple(pool)
    writer.numeric = tuple(t for t in pool if t != "bool")
    writer.heights = tuple(rng.choice(ROWS) for _ in range(2))
    writer.columns = tuple(rng.choice(COLUMNS) for _ in range(2))
    writer.lengths = tuple(rng.choice(LENGTHS) for _ in range(2))
    threads = rng.choice(THREADS)
    products = rng.random() < 0.25
    groups = products and rng.random() < 0.4  # of four warps together, with bulk copies
    if products:  # of shapes that tensor cores take
        writer.products = 1
        writer.heights = tuple(rng.choice((16, 32, 64)) for _ in range(2))
        writer.columns = tuple(rng.choice((8, 16, 16, 32, 64)) for _ in range(2))
        writer.liking.update(dot=4.0, sum=3.0, exact=3.0)
        threads = rng.choice((threads, 128, 256))
        if groups:
            threads, writer.types = rng.choice((128, 256, 256)), ("f32", rng.choice(("f16", "f16", "bf16")))
            writer.multiplied = writer.types[1:]
            writer.liking.update(matmul=6.0, attend=6.0)
        elif rng.random() < 0.8:
            writer.types = tuple(dict.fromkeys(("f32", rng.choice(("f16", "bf16")), "i32")))
        writer.numeric = tuple(t for t in writer.types if t != "bool")
    elif rng.random() < 0.4:  # few shapes: things meet
        writer.heights, writer.columns, writer.lengths = writer.heights[:1], writer.columns[:1], writer.lengths[:1]
    stretch = 2 * max(writer.lengths) + rng.choice((0, 1, 8))
    writer.high = max(*writer.heights, 4)
    rows = rng.choice((writer.high, 2 * writer.high, 2 * writer.high + 1, 32, 64))
    rows = max(rows, writer.high)
    if groups or (products and rng.random() < 0.5):
        rows = rng.choice((64, 128))
    wide = rng.choice((*writer.columns, max(writer.columns), max(writer.columns) + 1, 16, 48))
    if products:
        wide = rng.choice((wide, 32, 64, 80, 96, 128, 160))
    neat = rng.random() < 0.4
    short = 0 if neat else rng.randint(0, min(stretch - 1, 9))
    sizes = {
        "N": writer.grid * stretch - short,
        "M": writer.grid * rows - (0 if neat else rng.randint(0, min(rows - 1, 3))),
        "C": wide,
    }
    known = {name: rng.random() < 0.3 for name in sizes}
    for dtype in writer.types:
        for dims, base, own in ((("N",), "p", stretch), (("M", "C"), "q", rows)):
            spelled = tuple(str(sizes[d]) if known[d] else d for d in dims)
            stem = "X" if len(dims) == 1 else "Z"
            tensor = Tensor(
                f"{stem}_{dtype}", dtype, spelled, tuple(sizes[d] for d in dims), rng.random() < 0.7, base, own
            )
            if groups and dtype != "f32":
                tensor.own = False
            writer.tensors.append(tensor)
    if rng.random() < 0.15:
        high, *others = (rng.choice((1, 2, 3, 4, 5)), rng.choice((1, 2, 3, 7)), rng.choice((1, 4, 5, 8, 16, 33)))
        extents = (writer.grid * high, *others)
        writer.cubes = tuple(
            Tensor(f"U_{t}", t, tuple(map(str, extents)), extents, True, "w", high) for t in writer.types
        )
    if rng.random() < 0.4:
        sizes["K"] = rng.choice((0, 0, 3, 16, 40))
        dtype = rng.choice(writer.numeric)
        writer.deepest = Tensor(f"V_{dtype}", dtype, ("M", "K"), (sizes["M"], sizes["K"]), False, "q", rows)
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        writer.function()
    if rng.random() < (0.7 if persistent else 0.15):
        length = rng.choice((threads, 2 * threads, 4 * threads, *writer.lengths, 64, 128))
        for number in range(rng.randint(1, 3)):
            dtype = rng.choice(writer.numeric)
            sizes["N"] = max(sizes["N"], writer.grid * length * rng.randint(1, 3) - rng.randint(0, length - 1))
            writer.walks.append(
                (Tensor(f"W{number}_{dtype}", dtype, ("N",), (sizes["N"],), True, "p", stretch), length)
            )
        for tensor in (*writer.tensors, *(t for t, _ in writer.walks)):
            if tensor.base == "p":
                tensor.extents = (sizes["N"],)
                tensor.dims = ("N",)
    writer.line("let b = ctx.block.x")
    writer.line(f"let p = b * {stretch}")
    writer.line(f"let q = b * {rows}")
    if writer.cubes:
        writer.line(f"let w = b * {writer.cubes[0].stretch}")
    writer.scopes[-1].indices += [("b", 0, writer.grid - 1), ("n", 3, 3)]
    if persistent:
        _phases(writer)
    else:
        writer.may_leave = rng.random() < 0.2
        writer.left = rng.randint(3, 12)
        writer.statements()
    writer.observe(8)
    attributes = [f"@launch({threads})"]
    if persistent:
        attributes.append("@persistent")
    for flag, share in (
        ("@dynshared", 0.7 if groups else 0.2),
        ("@tensorcore", 1.0 if groups else 0.85 if products else 0.3),
        ("@pipeline", 0.3 * products),
        ("@padstage", 0.1),
        ("@swizzle", 0.05),
    ):
        if rng.random() < share:
            attributes.append(flag)
    text = _text(writer, attributes)
    arch = "sm_90a" if groups else rng.choice(("sm_75", "sm_80", "sm_90a", "sm_90a"))
    workers = rng.choice((0, 0, 0, 1, 2)) if not persistent else 0
    return Sample(
        seed, text, sizes, {"n": 3}, writer.grid, writer.special, arch, rng.random() < 0.85, rng.random() < 0.5, workers
    )  # fmt: skip


def _phases(writer: Writer) -> None:
    rng = writer.rng
    if rng.random() < 0.5:  # little but what may stay on chip
        writer.liking.update(walk=12.0)
    with _maybe(writer, rng.random() < 0.5):
        for _ in range(rng.randint(1, 3)):
            for tensor in (*writer.tensors, *(t for t, _ in writer.walks)):
                tensor.own = rng.random() < 0.5
            writer.left = rng.randint(1, 4)
            writer.statements()
            writer.scopes[-1].names = [n for n in writer.scopes[-1].names if not n.view]  # of tensors that change hands
            writer.line("grid_barrier(BAR)")
    for tensor in (*writer.tensors, *(t for t, _ in writer.walks)):
        tensor.own = rng.random() < 0.6
    writer.left = rng.randint(1, 3)
    writer.statements()


@contextmanager
def _maybe(writer: Writer, stages: bool) -> Iterator[None]:
    if not stages:
        yield
        return
    with writer.block("for stage in range(0, n)"):
        yield


def _text(writer: Writer, attributes: list[str]) -> str:
    parameters = [
        f"{t.name}: tensor<{t.dtype}>[{', '.join(t.dims)}]"
        for t in (
            *writer.tensors,
            *(t for t, _ in writer.walks),
            *writer.cubes,
            *writer.outputs,
            *(t for t in (writer.deepest,) if t),
        )
    ]
    wide = max(writer.columns)
    floats = [t for t in ("f64",) if t in writer.types] or ["f32"]
    parameters += [f"APX: tensor<{floats[0]}>[{writer.grid * writer.high}, {wide}]"]
    parameters += [
        f"TAB: tensor<i32>[{TABLE}]",
        f"CNT: tensor<i32>[{writer.grid * 2}]",
        "BAR: tensor<i32>[2]",
        "n: i64",
    ]
    functions = "".join(text for _, lines, _, _ in writer.functions for text in lines)
    body = "\n".join(writer.lines)
    return f"{functions}{chr(10).join(attributes)}\nkernel k({', '.join(parameters)}) {{\n{body}\n}}\n"
