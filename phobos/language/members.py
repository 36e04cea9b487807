"""The members of `ctx`: where a kernel runs, spelled out, and which of them are executed here."""

from __future__ import annotations

from phobos.value import value


@value
class Member:
    """`ctx.<name>`, with `axes` when one of `.x .y .z` follows. `executed`: the runtimes can evaluate it.

    `meaning` is what the builder makes of it: "block", "blocks" or "thread" (per thread, or known to threads only).
    """

    name: str
    axes: bool
    executed: bool
    meaning: str
    documentation: str
    example: str


AXES: dict[str, int] = {"x": 0, "y": 1, "z": 2}

MEMBERS: dict[str, Member] = {
    m.name: m
    for m in (
        Member(
            "block", True, True, "block",
            "The index of this block on one axis of the grid, from 0. Differs between blocks.",
            "let p = ctx.block.x",
        ),
        Member(
            "blocks", True, True, "blocks",
            "How many blocks the grid has on one axis. The same for all blocks.",
            "for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {\n}",
        ),
        Member(
            "thread", True, False, "thread",
            "The index of a thread in its block. Per-thread code is checked here, and not executed.",
            "let i = ctx.thread.x",
        ),
        Member(
            "threads", True, False, "thread",
            "How many threads a block has (`@launch`). Belongs to per-thread code, which is not executed here.",
            "let n = ctx.threads.x",
        ),
        Member(
            "warp", False, False, "thread",
            "The index of a warp in its block. Per-thread code is checked here, and not executed.",
            "let w = ctx.warp",
        ),
        Member(
            "lane", False, False, "thread",
            "The index of a thread in its warp. Per-thread code is checked here, and not executed.",
            "let l = ctx.lane",
        ),
    )
}

DOCUMENTATION = (
    "Where a kernel runs: `ctx.block.x` is the index of this block, `ctx.blocks.x` the number of blocks. "
    "`.y` and `.z` are the other axes of the grid."
)


def spellings() -> tuple[str, ...]:
    """Every complete member path: `ctx.block.x`, ..., `ctx.lane`."""
    return tuple(
        f"ctx.{m.name}.{axis}" if axis else f"ctx.{m.name}"
        for m in MEMBERS.values()
        for axis in (tuple(AXES) if m.axes else ("",))
    )
