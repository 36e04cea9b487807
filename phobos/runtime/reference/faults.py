"""What can go wrong while a kernel runs, as the runtime sees it: kinds, places, blocks, values.

Places are spans of the item, as in the typed program. `runtime.faults` makes a `Diagnostic` of the file.
"""

from __future__ import annotations

from collections.abc import Sequence

from phobos.diagnostic import Span
from phobos.value import value

KINDS = (
    "deadlock",
    "race",
    "out-of-bounds",
    "uninitialised",
    "aligned-broken",
    "not-resident",
    "grid-too-large",
    "assumption-broken",
    "bad-barrier-tensor",
    "bad-step",
    "division-by-zero",
    "timeout",
)

MOST_NAMED = 8  # blocks in a sentence


@value
class Site:
    """A place with the calls it was inlined through, and what is to be said there."""

    span: Span
    calls: tuple[Span, ...]
    message: str


class Fault(Exception):
    """`site` is where the caret goes; `others` are further places in the order of the story."""

    def __init__(
        self,
        kind: str,
        message: str,
        site: Site | None,
        blocks: Sequence[int] = (),
        others: Sequence[Site] = (),
        notes: Sequence[str] = (),
        help: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.site = site
        self.blocks = tuple(blocks)
        self.others = tuple(others)
        self.notes = tuple(notes)
        self.help = help
        self.code = code


def block_list(blocks: Sequence[int]) -> str:
    """ "block 3", "blocks 0, 1 and 2", "blocks 0-5", "blocks 0, 2, 4, ... (12 in all)"."""
    blocks = sorted(blocks)
    if len(blocks) == 1:
        return f"block {blocks[0]}"
    if len(blocks) > 2 and blocks[-1] - blocks[0] == len(blocks) - 1:
        return f"blocks {blocks[0]}-{blocks[-1]}"
    if len(blocks) <= MOST_NAMED:
        return "blocks " + ", ".join(map(str, blocks[:-1])) + f" and {blocks[-1]}"
    return "blocks " + ", ".join(map(str, blocks[: MOST_NAMED - 2])) + f", ... ({len(blocks)} in all)"


def have(blocks: Sequence[int]) -> str:
    return "has" if len(blocks) == 1 else "have"


def verb(blocks: Sequence[int], stem: str) -> str:
    """ "waits" for one block, "wait" for several."""
    if len(blocks) != 1:
        return stem
    return stem + ("es" if stem.endswith(("s", "sh", "ch", "o")) else "s")


def cell(name: str, index: Sequence[int]) -> str:
    return f"{name}[{', '.join(map(str, index))}]"


@value
class Touch:
    """One of two accesses that race: `does` is "load", "store" or "atomic", `stored` what it leaves, where known."""

    block: int
    does: str
    span: Span
    calls: tuple[Span, ...]
    stored: str | None = None


def race(name: str, index: Sequence[int], mine: Touch, theirs: Touch) -> Fault:
    """The fault of two blocks at one cell, told from the access that stands later in the text."""
    where = cell(name, index)
    block, other = mine.block, theirs.block
    low, high = min(block, other), max(block, other)
    if mine.does == theirs.does == "store":
        message = f"blocks {other} and {block} store different values to {where} in one phase"
        words = {one.block: f"block {one.block} stores {one.stored or f'to {where}'} here" for one in (theirs, mine)}
    else:
        message = (
            f"blocks {low} and {high} race on {where}: block {other} {_does(theirs.does)} it and block {block} "
            f"{_does(mine.does)} it, and nothing orders them"
        )
        words = {one.block: f"block {one.block} {_does(one.does)} {where} here" for one in (theirs, mine)}
    first, second = Site(mine.span, mine.calls, words[block]), Site(theirs.span, theirs.calls, words[other])
    if second.span.owner == first.span.owner and second.span.start > first.span.start:
        first, second = second, first
    others: tuple[Site, ...] = (second,)
    if first.span.start == second.span.start and first.span.end == second.span.end:
        first = Site(first.span, first.calls, f"blocks {low} and {high} meet here")
        others = ()
    return Fault(
        "race", message, first, blocks=(low, high), others=others,
        help="put a `grid_barrier` between the two accesses, or let each block keep to cells of its own",
    )  # fmt: skip


def _does(access: str) -> str:
    return {"load": "loads", "store": "stores to", "atomic": "has an atomic on"}[access]
