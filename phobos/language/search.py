"""The values that a search list of `@autotune` or `@cluster` stands for, and the space that several lists span."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod


def choices(listed: Sequence[int]) -> tuple[int, ...]:
    """`[lo, hi]` with 0 < lo < hi is lo, 2lo, 4lo, ... below hi, then hi. Any other list is taken as it stands."""
    if len(listed) == 2 and 0 < listed[0] < listed[1]:
        lo, hi = listed
        found = []
        while lo < hi:
            found.append(lo)
            lo *= 2
        return (*found, hi)
    return tuple(listed)


def points(space: Mapping[str, Sequence[int]]) -> int:
    """How many combinations a space has."""
    return prod(len(values) for values in space.values())


def combinations(space: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
    """Every combination, in the order of declaration; the last name varies fastest."""
    names = tuple(space)
    for values in product(*space.values()):
        yield dict(zip(names, values, strict=True))
