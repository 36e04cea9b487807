"""A launch in the form that the driver takes, made once: what is another each time is set in it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from phobos.runtime.cuda import driver
from phobos.runtime.cuda.arguments import argument_of, map_of

if TYPE_CHECKING:
    from phobos.runtime.cuda.detection import Shadows
    from phobos.runtime.cuda.preparing import Ready
    from phobos.runtime.cuda.reports import Channel

MOST = 16  # calls kept of one launch: streams and captures have words of their own


class Call:
    """For one thread at a time."""

    def __init__(
        self, ready: Ready, channel: Channel | None, addresses: dict[str, int], shadows: Shadows | None = None
    ) -> None:
        self._ready = ready
        self._emitted = emitted = ready.loaded.compiled.emitted
        self._held: list[Any] = [argument_of(a, ready, channel, addresses, shadows) for a in emitted.arguments]
        self._pointers = (ctypes.c_void_p * max(len(self._held), 1))(*map(ctypes.addressof, self._held))
        self._places: dict[str, list[int]] = {}
        for at, argument in enumerate(emitted.arguments):
            if argument.kind in ("tensor", "scalar", "map"):
                self._places.setdefault(argument.name, []).append(at)

    def set(self, names: Sequence[str], given: Sequence[int | float]) -> None:
        """Addresses of tensors, and floats, by the names of their parameters."""
        for name, one in zip(names, given, strict=True):
            for at in self._places.get(name, ()):
                argument = self._emitted.arguments[at]
                if argument.kind == "map":
                    self._held[at] = made = map_of(self._ready.bound.tensors[name], argument.box, int(one))
                    self._pointers[at] = ctypes.addressof(made)
                else:
                    self._held[at].value = one

    def send(self, stream: int) -> None:
        """Enqueue it. Raises DriverError."""
        emitted = self._emitted
        driver.launch(
            self._ready.loaded.function, self._ready.work.launched, emitted.threads, emitted.dynamic_shared_bytes,
            stream, self._pointers, emitted.cooperative,
        )  # fmt: skip


class Repeated:
    """A launch that is known: its calls so far, by the words they use, and what is given for `names` this time."""

    __slots__ = ("given", "made", "names")

    def __init__(self, made: dict[int, Call], names: Sequence[str], given: Sequence[int | float]) -> None:
        self.made, self.names, self.given = made, names, given

    def call(self, words: int, make: Callable[[], Call]) -> Call:
        found = self.made.get(words)
        if found is None:
            if len(self.made) >= MOST:
                self.made.clear()
            found = self.made[words] = make()
        found.set(self.names, self.given)
        return found
