"""Who comes before whom where atomics order blocks: a vector clock a block, as the reference runtime keeps them.

An atomic sees all that came before the earlier atomics on its cell, and barriers join everybody. Two touches are
ordered where the later one's block had heard of the earlier one by then.
"""

from __future__ import annotations

Moment = tuple[int, ...]
"""What a block has heard of each at a time; empty where nothing but barriers orders blocks."""


class Clocks:
    """The clocks of so many blocks, numbered from 0."""

    def __init__(self, blocks: int) -> None:
        self._now = [[int(other == block) for other in range(blocks)] for block in range(blocks)]
        self._released: dict[tuple[str, int], list[int]] = {}
        self._moments: dict[int, Moment] = {}

    def moment(self, block: int) -> Moment:
        """What a block has heard of by now."""
        known = self._moments.get(block)
        if known is None:
            known = self._moments[block] = tuple(self._now[block])
        return known

    def atomic(self, block: int, tensor: str, cell: int) -> None:
        """A block's atomic on a cell: it hears of all before it there, and who comes next hears of this block."""
        now = self._now[block]
        before = self._released.get((tensor, cell))
        if before is not None:
            now[:] = map(max, now, before)
        self._released[tensor, cell] = [*now]
        now[block] += 1
        self._moments.pop(block, None)

    def barrier(self) -> None:
        """All blocks have come to one barrier."""
        joined = [*map(max, *self._now)] if len(self._now) > 1 else self._now[0]
        for block in range(len(self._now)):
            self._now[block] = [*joined]
            self._now[block][block] += 1
        self._moments.clear()


def ordered(one: int, mine: Moment, other: int, theirs: Moment) -> bool:
    """Whether a touch of one block at a moment and one of another at another are ordered by atomics."""
    return bool(mine) and (theirs[one] >= mine[one] or mine[other] >= theirs[other])


__all__ = ["Clocks", "Moment", "ordered"]
