"""The same launch again, of arrays of the same kind: nothing is decided anew.

All that a launch is decided by is in its signature: shapes, strides, types, devices, integers, options, and how
addresses are aligned. What else is asked of addresses is that arrays lie apart, which is looked at where they are
others than last time; a float decides nothing. A launch whose signature is known goes straight to the driver. No array
is kept alive by being remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from phobos.runtime.arrays import Given, loses_gradient
from phobos.runtime.binding import parameters_of
from phobos.runtime.cuda import driver, launch
from phobos.runtime.cuda.preparing import WIDEST, Ready
from phobos.runtime.cuda.streams import stream_of
from phobos.value import replace, value

if TYPE_CHECKING:
    from phobos.runtime.options import LaunchOptions

MOST = 256  # signatures remembered for each kernel

Moving: TypeAlias = tuple[int | float, ...]
"""The arguments that may be others each time: addresses of arrays, and floats."""


@value
class _Known:
    """A launch, what was given for its parameters `names`, and the library of its arrays.

    There are no names where arrays share memory or a float was given for an integer: then the launch is known for this
    very `given` alone. `brought` are the arguments that are barrier tensors: (place, a weak reference).
    """

    ready: Ready
    given: Moving
    names: tuple[str, ...]
    library: str
    brought: tuple[tuple[int, Callable[[], object]], ...]


class Again:
    """What one kernel was launched with before."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, _Known] = OrderedDict()

    def launch(self, arguments: tuple[Any, ...], named: dict[str, Any], options: LaunchOptions) -> bool:
        """Launch where the signature is known; False where it is not, and nothing has happened."""
        signed = signature(arguments, named, options)
        if signed is None:
            return False
        (key, moving), known = signed, None
        with suppress(TypeError):  # an option that cannot be hashed is none, and is refused later
            known = self._known.get(key)
        if known is None:
            return False
        if known.brought:
            given = (*arguments, *named.values())
            if any(given[at] is not array() for at, array in known.brought):
                return False  # another array at that address: what it counts is to be looked at
        if moving != known.given or 0.0 in moving:  # 0.0 and -0.0 are equal
            moved = _moved(known, moving)
            if moved is None:
                return False
            self._known[key] = known = moved
        with suppress(KeyError):  # another thread may have made room meanwhile
            self._known.move_to_end(key)
        ready = known.ready
        with driver.on(ready.device) as context:
            if context != ready.context:
                return False
            launch.run(ready, stream_of(options.stream, known.library, ready.device))
        return True

    def remember(
        self, arguments: tuple[Any, ...], named: dict[str, Any], options: LaunchOptions, ready: Ready, library: str
    ) -> None:
        signed = signature(arguments, named, options)
        if signed is None:
            return
        key, moving = signed
        bound, given = ready.bound, (*arguments, *named.values())
        parameters = parameters_of(bound, len(arguments), tuple(named))
        places = [(at, name) for at, name in parameters if given[at] is not None]
        brought = tuple((at, launch.weakly(given[at])) for at, name in places if name in ready.barriers)
        names = tuple(name for at, name in places if (part := _part(given[at])) and part[1] is not None)
        if not _apart(bound.tensors.values()) or any(type(bound.params.get(name, 0.0)) is not float for name in names):
            names = ()
        kept = replace(ready, bound=bound.without_arrays)
        with suppress(TypeError):
            self._known[key] = _Known(kept, moving, names, library, brought)
        while len(self._known) > MOST:
            with suppress(KeyError):
                self._known.popitem(last=False)


def _moved(known: _Known, given: Moving) -> _Known | None:
    """The same launch of arrays at other addresses and of other floats; None where the arrays may share memory."""
    if not known.names:
        return None
    bound = known.ready.bound
    tensors, params = dict(bound.tensors), dict(bound.params)
    for name, one in zip(known.names, given, strict=True):
        if name in tensors:
            tensors[name] = replace(tensors[name], pointer=one)
        else:
            params[name] = one
    if not _apart(tensors.values()):
        return None
    return replace(known, ready=replace(known.ready, bound=replace(bound, tensors=tensors, params=params)), given=given)


def _apart(arrays: Iterable[Given]) -> bool:
    """Whether no array begins before the one that lies below it ends."""
    spans = sorted((held.pointer, held.pointer + held.nbytes) for held in arrays if held.nbytes)
    return all(end <= start for (_, end), (start, _) in pairwise(spans))


def signature(
    arguments: tuple[Any, ...], named: dict[str, Any], options: LaunchOptions
) -> tuple[Hashable, Moving] | None:
    """What decides a launch, and the rest; None where something is given whose address cannot be asked quickly."""
    parts: list[Hashable] = []
    moving: list[int | float] = []
    try:
        for given in (*arguments, *named.values()):
            part = _part(given)
            if part is None:
                return None
            parts.append(part[0])
            if part[1] is not None:
                moving.append(part[1])
    except Exception:  # it is refused with its name where arguments are looked at one by one
        return None
    return (tuple(parts), tuple(named), options.key), tuple(moving)


def _part(given: Any) -> tuple[Hashable, int | float | None] | None:
    """What of one argument decides a launch, and what may be another each time. None for what has to be looked at: a
    number in the memory of a device may be another one by now, and a tensor that stands for more than its cells is
    refused."""
    kind: Hashable = type(given)
    if kind is int or kind is bool:
        return (kind, given), None
    if kind is float:
        return kind, given
    if given is None:
        return None, None
    module = type(given).__module__.partition(".")[0]
    if module == "numpy" and not given.shape:
        number = given.item()
        return _part(number) if type(number) in (int, float, bool) else None
    if module == "torch":
        place, shape = given.device, tuple(given.shape)
        if not shape or place.type != "cuda" or (given.requires_grad and loses_gradient(given)) or given.is_neg():
            return None
        pointer = given.data_ptr()
        return (pointer % WIDEST, shape, given.stride(), given.dtype, place.index), pointer
    if module == "cupy" and given.shape:
        pointer = given.data.ptr
        return (pointer % WIDEST, given.shape, given.strides, given.dtype.char, given.device.id), pointer
    return None


__all__ = ["Again", "signature"]
