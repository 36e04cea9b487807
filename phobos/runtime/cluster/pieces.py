"""How an extent is cut into shards: at whole tiles, each with its neighbours' cells that a block may look at."""

from __future__ import annotations

from phobos.semantics.shards import Cut
from phobos.value import value


@value
class Pieces:
    """`sizes` of the shards, in order; their sum is the extent. Each but the last is a whole number of units.

    `below` and `above` are the cells of the neighbours that a shard gets, also whole units: so its own blocks, and
    those that run in vain on the neighbours' cells, begin where the blocks of the whole begin.
    """

    sizes: tuple[int, ...]
    below: int
    above: int

    def starts(self) -> list[int]:
        return [sum(self.sizes[:at]) for at in range(len(self.sizes))]

    def own(self, at: int) -> slice:
        """Where, in what shard `at` gets, its own cells lie."""
        before = min(self.below, self.starts()[at])
        return slice(before, before + self.sizes[at])


def pieces_of(cut: Cut, extent: int, parts: int) -> Pieces:
    """`parts` shards of about one size, fewer where there are fewer units or a shard would be less than its margin."""
    unit = cut.unit
    below, above = (-(-reach // unit) * unit for reach in (cut.below, cut.above))
    units = -(-extent // unit)
    least = max(1, below // unit, above // unit)
    parts = max(1, min(parts, units // least))
    counts = [units // parts + (at < units % parts) for at in range(parts)]
    sizes = [count * unit for count in counts]
    sizes[-1] -= units * unit - extent
    if len(sizes) > 1 and sizes[-1] < max(below, above):
        last = sizes.pop()
        sizes[-1] += last
    return Pieces(tuple(sizes), below, above)
