"""Kernels on a device for arguments that lie in host memory: taken there, run, timed, brought back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from phobos.runtime.binding import Bound, bind
from phobos.runtime.cuda import driver, launch
from phobos.runtime.cuda.memory import DeviceArray
from phobos.runtime.cuda.streams import stream_for
from phobos.runtime.device import number_of
from phobos.runtime.faults import refusal
from phobos.runtime.plan import Plan
from phobos.runtime.sizes import size
from phobos.value import value

if TYPE_CHECKING:
    from phobos.runtime.kernel import Kernel
    from phobos.runtime.options import LaunchOptions


@value
class Result:
    """`arrays` are NumPy arrays by tensor name, as the last launch left them; `elapsed_ms` one number a launch."""

    plan: Plan
    arrays: dict[str, Any]
    elapsed_ms: list[float]


def plan(kernel: Kernel, bound: Bound, options: LaunchOptions, device: str) -> Plan:
    """What a launch with these host arrays would decide on `device`."""
    _, there = moved(bound, number_of(device))
    return launch.plan(kernel, there, options)


def run(
    kernel: Kernel, bound: Bound, options: LaunchOptions, device: str, repeat: int = 1,
    planned: Callable[[Plan], None] | None = None,
) -> Result:  # fmt: skip
    """Launch `repeat` times, each on the arrays as they were given; `planned` is told the plan before. Raises
    LaunchError, KernelFault."""
    number = number_of(device)
    copies, there = moved(bound, number)
    with driver.on(number):
        first, last = driver.new_event(timing=True), driver.new_event(timing=True)
        times: list[float] = []
        made = launch.plan(kernel, there, options)
        if planned is not None:
            planned(made)
        for again in range(repeat):
            if again:
                for name, copy in copies.items():
                    copy.put(bound.tensors[name].array)
            stream = stream_for(options, there, number)
            driver.record(first, stream)
            made = launch.launch(kernel, there, options)
            driver.record(last, stream)
            launch.synchronize(number)
            times.append(driver.elapsed_ms(first, last))
    return Result(made, {name: copy.numpy() for name, copy in copies.items()}, times)


def moved(bound: Bound, device: int) -> tuple[dict[str, DeviceArray], Bound]:
    """Host arrays copied to a device: the copies by tensor name, and the arguments with them. Raises LaunchError where
    they do not fit into its memory."""
    copies: dict[str, DeviceArray] = {}
    for name, held in bound.tensors.items():
        try:
            copies[name] = DeviceArray(held.array, device)
        except driver.DriverError as error:
            if error.status != driver.OUT_OF_MEMORY:
                raise
            with driver.on(device):
                left = size(driver.free_bytes())
            raise refusal(
                bound.module, bound.unit, None,
                f"argument `{name}` takes {size(held.array.nbytes)}, and cuda:{device} has {left} free",
                bound.program.tensors[name].span, help="take smaller sizes for this run",
            ) from None  # fmt: skip
    there = bind(bound.module, bound.unit, bound.program, (), {**copies, **bound.params})
    # The type of a bf16 array has no name in the interface that carries it.
    tensors = {name: replace(held, dtype=bound.tensors[name].dtype) for name, held in there.tensors.items()}
    return copies, replace(there, tensors=tensors, device=f"cuda:{device}")
