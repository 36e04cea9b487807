"""Variants on the reference runtime: what is timed is the reference itself, in batches, on this processor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from phobos.runtime.judge import Judging, judge, prepare
from phobos.runtime.kernel import Kernel
from phobos.runtime.options import LaunchOptions
from phobos.runtime.plan import Plan

if TYPE_CHECKING:
    from phobos.runtime.binding import Bound


class Reference:
    """The engine of `--device cpu`."""

    def run(self, kernel: Kernel, bound: Bound, options: LaunchOptions) -> tuple[Plan, dict[str, Any]]:
        plan, arrays, _ = self._once(kernel, bound, options)
        return plan, arrays

    def times(self, kernel: Kernel, bound: Bound, options: LaunchOptions, repeat: int) -> Iterator[tuple[Plan, float]]:
        self._once(kernel, bound, options)  # what is computed once and kept is nobody's
        for _ in range(repeat):
            plan, _, elapsed_ms = self._once(kernel, bound, options)
            yield plan, elapsed_ms

    def _once(self, kernel: Kernel, bound: Bound, options: LaunchOptions) -> tuple[Plan, dict[str, Any], float]:
        named = {**{name: held.array.copy() for name, held in bound.tensors.items()}, **bound.params}
        again = kernel.bound((), named, dict(options.constants))
        prepared = prepare(kernel, again, (), named, options)
        verdict = judge(prepared, Judging())
        return prepared.plan, prepared.arrays, verdict.elapsed_ms
