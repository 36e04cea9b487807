"""Variants on a card: what is timed are launches inside a captured graph, so that the host has no part in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from phobos.runtime.cuda import host, measure
from phobos.runtime.kernel import Kernel
from phobos.runtime.options import LaunchOptions
from phobos.runtime.plan import Plan

if TYPE_CHECKING:
    from phobos.runtime.binding import Bound


class Device:
    """The engine of `--device cuda:N`."""

    def __init__(self, device: str) -> None:
        self.device = device

    def run(self, kernel: Kernel, bound: Bound, options: LaunchOptions) -> tuple[Plan, dict[str, Any]]:
        done = host.run(kernel, bound, options, self.device)
        return done.plan, done.arrays

    def times(self, kernel: Kernel, bound: Bound, options: LaunchOptions, repeat: int) -> Iterator[tuple[Plan, float]]:
        return measure.times(kernel, bound, options, self.device, repeat)
