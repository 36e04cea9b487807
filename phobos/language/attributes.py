"""The attributes of a kernel: what each takes, what it means, and how it is written."""

from __future__ import annotations

from typing import Literal

from phobos.value import value

Form = Literal["none", "search", "launch", "dims", "option", "any"]


@value
class AttributeEntry:
    """One attribute.

    `form` is what it takes: "none"; "search" (`NAME in [..]`); "launch" (one to three integers); "dims"
    (`DIM = tile`); "option" (nothing, or one of `options`); "any" (accepted as it stands). `repeatable`: several
    are merged.
    """

    name: str
    form: Form
    signature: str
    summary: str
    documentation: str
    example: str
    level: str = "0.1"
    options: tuple[str, ...] = ()
    repeatable: bool = False


ATTRIBUTES: dict[str, AttributeEntry] = {
    a.name: a
    for a in (
        AttributeEntry(
            "autotune", "search", "@autotune(NAME in [values], ...)",
            "compile-time constants with the values worth trying",
            "Declares compile-time constants. Two values `[lo, hi]` with `0 < lo < hi` stand for `lo, 2*lo, 4*lo, ...` "
            "below `hi`, then `hi`; any other list is taken as it stands. Without a tuner every constant has its "
            "first value. Several `@autotune` are merged; the last name varies fastest.",
            "@autotune(TILE in [64, 256], STEPS in [8])",
            repeatable=True,
        ),
        AttributeEntry(
            "cluster", "search", "@cluster(NAME in [values], ...)",
            "cluster tile sizes, recorded",
            "Lists cluster tile sizes. It is recorded and has no effect on one GPU; a name that no `@autotune` "
            "declares becomes a constant.",
            "@cluster(CM in [1, 2])",
            repeatable=True,
        ),
        AttributeEntry(
            "launch", "launch", "@launch(threads[, min_blocks[, max_registers]])",
            "threads of a block",
            "Threads of a block, a multiple of 32 from 32 to 1024 (256 when it is not written); the number of blocks "
            "per multiprocessor to aim for; and the most registers a thread may take, 16 to 255.",
            "@launch(256, 4)",
        ),
        AttributeEntry(
            "persistent", "none", "@persistent",
            "every block of the grid is resident at once",
            "A contract with the host: the grid is co-resident, so its blocks can wait for each other with "
            "`grid_barrier`. The grid has one dimension; the launcher sizes it as resident blocks per multiprocessor "
            "times multiprocessors, asked of the compiled kernel.",
            "@persistent",
        ),
        AttributeEntry(
            "aligned", "dims", "@aligned(DIM = tile, ...)",
            "an extent is a whole number of tiles",
            "A promise by the host: every extent named DIM is a whole multiple of `tile`, so that whole tiles need no "
            "mask. Static extents are checked when compiled, runtime extents before the launch, and on the device "
            "where the host check is off.",
            "@aligned(N = 64)",
        ),
        AttributeEntry(
            "dynshared", "none", "@dynshared",
            "tiles may use more than 48 KiB of shared memory",
            "Tiles live in dynamic shared memory, up to the limit that a device allows a block to opt in to. Without "
            "it the limit is 48 KiB.",
            "@dynshared",
        ),
        AttributeEntry(
            "tensorcore", "option", "@tensorcore[(wmma|sync)]",
            "`dot` on tensor cores",
            "Runs `dot` and `dot_t` on tensor cores: operands are rounded to f16, sums are kept in f32. Where the "
            "shapes do not allow it the exact path is taken, and the checker says why.",
            "@tensorcore",
            options=("wmma", "sync"),
        ),
        AttributeEntry(
            "pipeline", "none", "@pipeline",
            "a loop is double-buffered",
            "Asserts that a loop of the kernel is double-buffered; an error names the reason when none can be.",
            "@pipeline",
        ),
        AttributeEntry(
            "padstage", "any", "@padstage",
            "pads staged tiles",
            "Pads staged tiles so that rows fall into different shared-memory banks. Accepted; the layout is chosen "
            "here without it.",
            "@padstage",
        ),
        AttributeEntry(
            "registers", "any", "@registers",
            "keeps tiles in registers",
            "Asks that tiles be kept in registers. Accepted; the layout is chosen here without it.",
            "@registers",
            level="0.2",
        ),
        AttributeEntry(
            "swizzle", "any", "@swizzle",
            "swizzles staged tiles",
            "Asks for a swizzled shared-memory layout. Accepted; the layout is chosen here without it.",
            "@swizzle",
            level="0.2",
        ),
    )
}
"""By name, in the order in which documentation lists them."""

DEFAULT_THREADS = 256
WARP = 32
MOST_THREADS = 1024
REGISTERS = (16, 255)
