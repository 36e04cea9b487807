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


def block_list(blocks: Sequence[int], limit: int = 8) -> str:
    """ "block 3", "blocks 0, 1 and 2", "blocks 0-5", "blocks 0, 2, 4, ... (12 in all)"."""
    blocks = sorted(blocks)
    if len(blocks) == 1:
        return f"block {blocks[0]}"
    if len(blocks) > 2 and blocks[-1] - blocks[0] == len(blocks) - 1:
        return f"blocks {blocks[0]}-{blocks[-1]}"
    if len(blocks) <= limit:
        return "blocks " + ", ".join(map(str, blocks[:-1])) + f" and {blocks[-1]}"
    return "blocks " + ", ".join(map(str, blocks[: limit - 2])) + f", ... ({len(blocks)} in all)"


def have(blocks: Sequence[int]) -> str:
    return "has" if len(blocks) == 1 else "have"


def verb(blocks: Sequence[int], stem: str) -> str:
    """ "waits" for one block, "wait" for several."""
    if len(blocks) != 1:
        return stem
    return stem + ("es" if stem.endswith(("s", "sh", "ch", "o")) else "s")


def cell(name: str, index: Sequence[int]) -> str:
    return f"{name}[{', '.join(map(str, index))}]"
