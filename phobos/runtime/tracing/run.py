"""Tracing a kernel: with arguments as a caller has them, or as the command line gives them; on copies of both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from phobos.runtime import tuned
from phobos.runtime.judge import Judging, prepare
from phobos.runtime.tracing.trace import Trace
from phobos.value import replace

if TYPE_CHECKING:
    from phobos.runtime.kernel import Kernel
    from phobos.runtime.options import LaunchOptions
    from phobos.runtime.session import Request

ROOM = 32 << 20  # bytes of a device's memory for what is written down
REPEAT = 5  # launches of each kind, of which the median is the one that is told


def traced(
    kernel: Kernel, arrays: Mapping[str, Any], numbers: Mapping[str, Any], options: LaunchOptions, device: str,
    judging: Judging, room: int = ROOM,
) -> Trace:  # fmt: skip
    """Trace a launch with copies of host arrays on `device`. Raises CheckError, LaunchError, KernelFault."""

    def at(options: LaunchOptions) -> Trace:
        copies = {name: held.copy() for name, held in arrays.items()}
        named = {**copies, **numbers}
        bound = kernel.bound((), named, dict(options.constants))
        if device == "cpu":
            made = in_steps.traced(prepare(kernel, bound, (), named, options), judging)
        else:
            from phobos.runtime.cuda.tracing import traced as on_device

            if not options.unchecked:
                kernel.demand_launch(dict(options.constants))
            made, _ = on_device(kernel, bound, options, device, REPEAT, room)
        return made

    from phobos.runtime.tracing import in_steps

    bound = replace(kernel.bound((), {**arrays, **numbers}, dict(options.constants)), device=device)
    made, source = tuned.attempt(kernel, bound, options, at)
    made.plan = tuned.noted(made.plan, source)
    return made


def asked(request: Request, room: int = ROOM) -> Trace:
    """Trace what a command line asks for. Raises CheckError where the checker forbids it, InputError, LaunchError,
    KernelFault."""
    from phobos.errors import InputError
    from phobos.runtime.device import chosen
    from phobos.runtime.progress import Progress
    from phobos.runtime.session import launch_of, watched

    try:
        device, _ = chosen(request.device)
    except ValueError as error:
        raise InputError(str(error)) from None
    _, given, options = launch_of(request, device != "cpu")
    if device != "cpu":
        options = watched(options)
    with Progress(request.kernel.name) as progress:
        judging = Judging((), request.scheduler, request.seed, None, progress)
        return traced(request.kernel, given.arrays, given.numbers, options, device, judging, room)


def called(
    kernel: Kernel, arguments: tuple[Any, ...], named: Mapping[str, Any], options: LaunchOptions, judging: Judging
) -> Trace:
    """Trace a launch with copies of the arguments of a call, on the device that they are on."""
    from phobos.runtime.arrays import in_host_memory

    bound = kernel.bound(arguments, named, dict(options.constants))
    arrays = {name: in_host_memory(name, held) for name, held in bound.tensors.items()}
    return traced(kernel, arrays, bound.params, options, bound.device, judging)
