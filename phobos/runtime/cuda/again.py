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

from phobos.runtime.arrays import loses_gradient
from phobos.runtime.binding import parameters_of
from phobos.runtime.cuda import detection, driver, launch
from phobos.runtime.cuda.calls import Call, Repeated
from phobos.runtime.cuda.preparing import Ready
from phobos.runtime.cuda.streams import stream_of
from phobos.semantics.multiples import WIDE_BYTES
from phobos.value import replace

if TYPE_CHECKING:
    from phobos.runtime.options import LaunchOptions

MOST = 256  # signatures remembered for each kernel

Moving: TypeAlias = tuple[int | float, ...]
"""The arguments that may be others each time: addresses of arrays, and floats."""


class _Known:
    """A launch with its calls, and the library of its arrays.

    `names` are the parameters for which something else may be given each time. There are none where arrays share memory
    or a float was given for an integer: then the launch is known for this very `given` alone. `brought` are the
    arguments that are barrier tensors: (place, a weak reference); they stay where they are.
    """

    def __init__(
        self, ready: Ready, given: Moving, names: tuple[str, ...], library: str,
        brought: tuple[tuple[int, Callable[[], object]], ...],
    ) -> None:  # fmt: skip
        self.ready, self.given, self.names, self.library, self.brought = ready, given, names, library, brought
        self.calls: dict[int, Call] = {}
        tensors = ready.bound.tensors
        self._bytes = [tensors[name].nbytes if name in tensors else 0 for name in names]
        self._fixed = [at for at, name in enumerate(names) if name in ready.barriers]

    def takes(self, given: Moving) -> bool:
        """Whether nothing has to be decided anew for this."""
        if given == self.given and 0.0 not in given:  # 0.0 and -0.0 are equal
            return True
        if not self.names or any(given[at] != self.given[at] for at in self._fixed):
            return False
        if not _apart(zip(given, self._bytes, strict=True)):
            return False
        self.given = given
        return True


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
        if not known.takes(moving):
            return False
        with suppress(KeyError):  # another thread may have made room meanwhile
            self._known.move_to_end(key)
        ready, names = known.ready, known.names
        with driver.on(ready.device) as context:
            if context != ready.context:
                return False
            stream = stream_of(options.stream, known.library, ready.device)
            repeated = Repeated(known.calls, names, moving if names else ())
            launch.run(ready, stream, repeated, is_current=options.stream is None)
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
        apart = _apart((held.pointer, held.nbytes) for held in bound.tensors.values())
        looks = detection.looks(ready.loaded.compiled.emitted)
        if looks or not apart or any(type(bound.params.get(name, 0.0)) is not float for name in names):
            names = ()
        kept = replace(ready, bound=bound.without_arrays)
        with suppress(TypeError):
            self._known[key] = _Known(kept, moving, names, library, brought)
        while len(self._known) > MOST:
            with suppress(KeyError):
                self._known.popitem(last=False)


def _apart(arrays: Iterable[tuple[float, int]]) -> bool:
    """Whether none begins before the one that lies below it ends, by addresses and bytes; what has no bytes lies
    nowhere."""
    spans = sorted((start, start + size) for start, size in arrays if size)
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
    kind = type(given)
    if kind is int or kind is bool:
        return (kind, given), None
    if kind is float:
        return "float", given
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
        if not pointer:
            return None
        return (pointer % WIDE_BYTES, shape, given.stride(), given.dtype, place.index), pointer
    if module == "cupy" and given.shape:
        pointer = given.data.ptr
        return (pointer % WIDE_BYTES, given.shape, given.strides, given.dtype.char, given.device.id), pointer
    return None


__all__ = ["Again", "signature"]
