"""Which known name a misspelt one was meant to be: the one place of every "did you mean".

Distance is that of Damerau: insertions, deletions, substitutions and swaps of neighbours count one each. Letters
that differ in case only count as half, and a whole name that does counts as half altogether, so that `n` for `N` is
nearer than `n` for `M`.
"""

from __future__ import annotations

from collections.abc import Iterable


def distance(left: str, right: str, limit: int = 3) -> float:
    """Edits from `left` to `right`; anything above `limit` may come back as `limit + 1`."""
    if left == right:
        return 0
    if left.lower() == right.lower():
        return 0.5
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[float] = []
    row: list[float] = [float(i) for i in range(len(right) + 1)]
    for i, a in enumerate(left, 1):
        earlier, before, row = before, row, [float(i)]
        for j, b in enumerate(right, 1):
            cost = 0 if a == b else 0.5 if a.lower() == b.lower() else 1
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + cost)
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b and a != b:
                best = min(best, earlier[j - 2] + 1)
            row.append(best)
        if min(row) > limit:
            return limit + 1
    return row[-1]


def nearest(name: str, known: Iterable[str], most: int | None = None) -> str | None:
    """The known name that `name` was probably meant to be, or None when none is near.

    A third of the letters may be wrong (at least one, at most three), unless `most` says how many. Of equally near
    ones the first in alphabetical order is taken, so that the answer does not depend on the order of a table.
    """
    limit = most if most is not None else max(1, min(3, len(name) // 3))
    best: str | None = None
    best_distance = float(limit)
    for candidate in sorted(known):
        if candidate == name or abs(len(candidate) - len(name)) > limit:
            continue
        away = distance(name, candidate, limit)
        # One letter for another says nothing where the name is one letter: `A` is not a misspelt `B`.
        if away >= len(name) or away >= len(candidate):
            continue
        if away < best_distance or (away == best_distance and best is None):
            best, best_distance = candidate, away
    return best
