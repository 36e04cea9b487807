"""What checking costs grows with a kernel's length. Calls are counted: no other process on the machine changes that."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from phobos.check import findings

MOST = 1_000_000  # calls, of one check: where it comes to more, something grows out of hand

HEAD = """@persistent
kernel k(X: tensor<f32>[N], Y: tensor<f32>[N], C: tensor<i32>[8], B: tensor<i32>[2], n: i32, a: f32) {
let p = ctx.block.x
let g = ctx.blocks.x
"""


class TooManyError(Exception):
    """A check that has called more functions than any should."""


def calls(text: str, most: int) -> int:
    """How many functions one check of a text calls; it is stopped where it calls more than `most`."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += 1
        if count > most:
            sys.settrace(None)
            raise TooManyError

    before = sys.gettrace()
    sys.settrace(note)
    try:
        findings("k.ph", text)
    finally:
        sys.settrace(before)
    return count


def kernel(*parts: str) -> str:
    return HEAD + "\n".join(parts) + "\n}\n"


def named_twice(count: int) -> str:
    """Each name is computed from the two before it, and none is an index."""
    steps = [f"let v{i} = v{i - 1} * 2.0 + v{i - 2}" for i in range(2, count)]
    return kernel("let v0 = a", "let v1 = a", *steps, f"X[0] = v{count - 1}", f"X[1] = v{count - 1}")


def loops_with_a_barrier_under_a_condition(count: int) -> str:
    loop = "for i{0} in range(0, n) {{\nif i{0} > {0} {{\ngrid_barrier(B)\n}}\n}}"
    return kernel("X[p] = a", *map(loop.format, range(count)), "Y[p] = a")


def barriers_under_conditions(count: int) -> str:
    branch = "if n > {0} {{\nif n < 2 * {0} {{\ngrid_barrier(B)\n}}\n}}"
    return kernel("X[p] = a", *map(branch.format, range(count)), "Y[p] = a")


def barriers_behind_one_another(count: int) -> str:
    branch = "if n > {0} {{\ngrid_barrier(B)\n}}"
    return kernel("X[p] = a", *map(branch.format, range(count)), "Y[p] = a")


def waits(count: int) -> str:
    wait = "let t{0} = atomic_add(C, 0, 1)\nwhile atomic_add(C, 0, 0) < n {{\n}}"
    return kernel("X[p] = a", *map(wait.format, range(count)), "Y[p] = X[p + 1]")


def nested_loops(count: int) -> str:
    """Loops one in the other, each counting for itself."""
    deep = count // 10
    opened = "var w{0} = 0\nwhile w{0} < n {{\nw{0} += 1"
    return kernel(*map(opened.format, range(deep)), "X[p] = a", *["}"] * deep)


GROWING: dict[str, Callable[[int], str]] = {
    "names that are used twice": named_twice,
    "loops with a barrier under a condition": loops_with_a_barrier_under_a_condition,
    "barriers under conditions": barriers_under_conditions,
    "barriers, each on one of two ways": barriers_behind_one_another,
    "waits": waits,
    "loops one in the other": nested_loops,
}


@pytest.mark.parametrize("kind", GROWING)
def test_twice_the_kernel_costs_about_twice_as_much(kind: str) -> None:
    make = GROWING[kind]
    findings("k.ph", make(8))  # what is made once
    small = calls(make(100), MOST)
    calls(make(200), 5 * small // 2)
