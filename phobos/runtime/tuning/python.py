"""`Kernel.tune`: arguments as a caller of the kernel has them, on whatever device, brought to host memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phobos.runtime.arrays import in_host_memory
from phobos.runtime.kernel import Kernel
from phobos.runtime.placing import GridOption
from phobos.runtime.tuning.tuning import How, Tuning, tune
from phobos.value import replace


def tuned_on(
    kernel: Kernel, arguments: tuple[Any, ...], named: Mapping[str, Any], constants: dict[str, int], *,
    grid: GridOption, schedule: str | None, l2_group: int | None, **options: Any,
) -> Tuning:  # fmt: skip
    """Tune on copies of the arguments. Raises CheckError, LaunchError, InputError."""
    bound = kernel.bound(arguments, named, constants)
    device = bound.device
    bound = replace(
        bound, tensors={name: replace(held, array=in_host_memory(name, held)) for name, held in bound.tensors.items()}
    )
    names = {name: _text(number) for name, number in bound.params.items()}
    how = How(
        grid=(grid,) if isinstance(grid, int) else grid, schedules=None if schedule is None else (schedule,),
        l2_groups=None if l2_group is None else (l2_group,), **options,
    )  # fmt: skip
    arrays = {name: held.array for name, held in bound.tensors.items()}
    return tune(kernel, bound, names, arrays, constants, device, how)


def _text(number: Any) -> str:
    return str(number).lower() if isinstance(number, bool) else repr(number)
