"""Arithmetic of shapes: lengths are numbers, or polynomials where only the run knows them; equal is equal as sums."""

from __future__ import annotations

from phobos.semantics.poly import Poly

Length = int | Poly
Shape = tuple[Length, ...]


def length(poly: Poly) -> Length:
    """A number where the polynomial is one."""
    constant = poly.constant
    return poly if constant is None else constant


def is_static(shape: Shape) -> bool:
    return all(isinstance(n, int) for n in shape)


def same(left: Length, right: Length) -> bool:
    """Whether two lengths are the same whatever the extents are."""
    return left == right


def may_agree(left: Length, right: Length) -> bool:
    """Whether two lengths are the same at some extents, as far as their difference tells."""
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    difference = left - right
    assert isinstance(difference, Poly)
    constant = difference.constant
    return constant is None or constant == 0


def broadcast(left: Shape, right: Shape) -> Shape | None:
    """The shape of an elementwise result, or None where the two do not fit: equal rank, each axis equal or 1."""
    if left is right or left == right:
        return left
    if len(left) != len(right):
        return None
    result: list[Length] = []
    for a, b in zip(left, right, strict=True):
        if a == b or b == 1:
            result.append(a)
        elif a == 1:
            result.append(b)
        else:
            return None
    return tuple(result)


def loosely(left: Shape, right: Shape) -> Shape | None:
    """As `broadcast`, but lengths that some extents make equal count as equal (functions analysed by themselves)."""
    if len(left) != len(right):
        return None
    result: list[Length] = []
    for a, b in zip(left, right, strict=True):
        if a == b or b == 1:
            result.append(a)
        elif a == 1:
            result.append(b)
        elif may_agree(a, b):
            result.append(a if isinstance(a, int) else b)
        else:
            return None
    return tuple(result)
