"""The same launch again: same arrays, same numbers, same options. Nothing is decided anew.

All that a launch is decided by is in its signature: addresses, shapes, strides, types, devices, numbers, options. A
launch whose signature is known goes straight to the driver. No array is kept alive by being remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import replace
from math import copysign
from typing import TYPE_CHECKING, Any, TypeAlias

from phobos.runtime.arrays import loses_gradient
from phobos.runtime.cuda import driver, launch
from phobos.runtime.cuda.preparing import Ready
from phobos.runtime.cuda.streams import stream_of

if TYPE_CHECKING:
    from phobos.runtime.options import LaunchOptions

MOST = 256  # signatures remembered for each kernel
_NOTHING = (None,)

_Known: TypeAlias = tuple[Ready, str, tuple[tuple[int, Callable[[], object]], ...]]
"""A launch, the library of its arrays, and which arguments are barrier tensors: (place, a weak reference)."""


class Again:
    """What one kernel was launched with before."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, _Known] = OrderedDict()

    def launch(self, arguments: tuple[Any, ...], named: dict[str, Any], options: LaunchOptions) -> bool:
        """Launch where the signature is known; False where it is not, and nothing has happened."""
        key, known = signature(arguments, named, options), None
        with suppress(TypeError):  # an option that cannot be hashed is none, and is refused later
            known = None if key is None else self._known.get(key)
        if known is None:
            return False
        ready, library, brought = known
        if brought:
            given = (*arguments, *named.values())
            if any(given[at] is not array() for at, array in brought):
                return False  # another array at that address: what it counts is to be looked at
        assert key is not None
        with suppress(KeyError):  # another thread may have made room meanwhile
            self._known.move_to_end(key)
        with driver.on(ready.device) as context:
            if context != ready.context:
                return False
            launch.run(ready, stream_of(options.stream, library, ready.device))
        return True

    def remember(
        self, arguments: tuple[Any, ...], named: dict[str, Any], options: LaunchOptions, ready: Ready, library: str
    ) -> None:
        key = signature(arguments, named, options)
        if key is None:
            return
        tensors = ready.bound.tensors
        barriers = [tensors[name].array for name in ready.barriers if name in tensors]
        given = enumerate((*arguments, *named.values()))
        brought = tuple((at, launch.weakly(one)) for at, one in given if any(one is array for array in barriers))
        with suppress(TypeError):
            self._known[key] = (replace(ready, bound=ready.bound.without_arrays), library, brought)
        while len(self._known) > MOST:
            with suppress(KeyError):
                self._known.popitem(last=False)


def signature(arguments: tuple[Any, ...], named: dict[str, Any], options: LaunchOptions) -> Hashable | None:
    """None where something is passed whose address cannot be asked quickly, or does not say all."""
    parts: list[Hashable] = []
    try:
        for given in (*arguments, *named.values()):
            part = _part(given)
            if part is None:
                return None
            parts.append(part)
    except Exception:  # it is refused with its name where arguments are looked at one by one
        return None
    return (tuple(parts), tuple(named), options.key)


def _part(given: Any) -> Hashable | None:
    """What a launch is decided by of one argument. None for what has to be looked at: a number in the memory of a
    device may be another one by now, and a tensor that stands for more than its cells is refused."""
    kind = type(given)
    if kind is int or kind is bool:
        return kind, given
    if kind is float:
        return kind, given, copysign(1.0, given)  # 0.0 and -0.0 are equal
    if given is None:
        return _NOTHING
    module = kind.__module__.partition(".")[0]
    if module == "numpy" and not given.shape:
        number = given.item()
        return _part(number) if type(number) in (int, float, bool) else None
    if module == "torch":
        place, shape = given.device, tuple(given.shape)
        if not shape or place.type != "cuda" or (given.requires_grad and loses_gradient(given)) or given.is_neg():
            return None
        return given.data_ptr(), shape, given.stride(), given.dtype, place.index
    if module == "cupy" and given.shape:
        return given.data.ptr, given.shape, given.strides, given.dtype.char, given.device.id
    return None


__all__ = ["Again", "signature"]
