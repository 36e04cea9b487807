"""What checking costs grows with a kernel's length: calls are counted, which no other process on the machine changes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from phobos.check import findings

MOST = 3_000_000  # calls, of one check: where it comes to more, something grows out of hand

HEAD = """@persistent
kernel k(X: tensor<f32>[N], Y: tensor<f32>[N], C: tensor<i32>[8], B: tensor<i32>[2], n: i32, a: f32) {
let p = ctx.block.x
let g = ctx.blocks.x
"""


class TooManyError(Exception):
    """A check that has called more functions than any should."""


def calls(text: str, most: int = MOST) -> int:
    """How many functions one check of a text calls."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += 1
        if count > most:
            sys.setprofile(None)
            raise TooManyError

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        findings("k.ph", text)
    finally:
        sys.setprofile(before)
    return count


def kernel(*parts: str) -> str:
    return HEAD + "\n".join(parts) + "\n}\n"


def named_twice(count: int) -> str:
    """Each name is computed from the two before it, and none is an index."""
    steps = [f"let v{i} = v{i - 1} * 2.0 + v{i - 2}" for i in range(2, count)]
    return kernel("let v0 = a", "let v1 = a", *steps, f"X[0] = v{count - 1}", f"X[1] = v{count - 1}")


GROWING: dict[str, Callable[[int], str]] = {
    "names that are used twice": named_twice,
}


@pytest.mark.parametrize("kind", GROWING)
def test_twice_the_kernel_costs_about_twice_as_much(kind: str) -> None:
    make = GROWING[kind]
    findings("k.ph", make(8))  # what is made once
    small, large = calls(make(100)), calls(make(200))
    assert large < 2.6 * small, f"{small} calls became {large}"
