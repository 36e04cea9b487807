"""The shadows of a launch that looks for races: how large they are, whether they fit, and their memory.

A shadow has `SHADOW_BYTES` for each cell of each tensor that the launch stores to. Words are shared out to what they
must hold: blocks and places take what they need, the number of the phase has the rest, and where those run out the
kernel wipes all marks and begins anew.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import TYPE_CHECKING

from phobos.codegen.emitted import Emitted
from phobos.codegen.shadows import has_atomics, shadowed
from phobos.runtime.arrays import SIZES, Given
from phobos.runtime.binding import Bound
from phobos.runtime.cuda import driver
from phobos.runtime.faults import refusal
from phobos.runtime.plan import Check
from phobos.runtime.sizes import size
from phobos.semantics.fusion import parts_of

if TYPE_CHECKING:
    from phobos.runtime.cuda.preparing import Ready
    from phobos.runtime.cuda.reports import Channel

SHADOW_BYTES = 32  # a cell
HEAD_BYTES = 80
FLAG_BITS = 3
MOST_SITES = 2**16  # that the second block of a kind has room for
SPARE_PHASE_BITS = 8  # that epochs leave to the number of the phase
MOST_EPOCH_BITS = 16
MOST_PHASES = 2**31 - 1
MISSED = (
    "not seen is a race of two blocks where the one that came first did an atomic between the two accesses (of two "
    "stores, or where the second is an atomic: any) and the other did one before its own, as atomics may order them "
    "(--device cpu follows every chain)"
)


def cells(bound: Bound) -> dict[str, int]:
    """The cells of each tensor that has a shadow, those between its rows included."""
    found: dict[str, int] = {}
    names = shadowed(parts_of(bound.program))
    for name, held in bound.tensors.items():
        if name in names:
            last = sum((length - 1) * step for length, step in zip(held.shape, _steps(held), strict=True))
            found[name] = 0 if 0 in held.shape else last + 1
    return found


def _steps(held: Given) -> tuple[int, ...]:
    """Cells from one index of each axis to the next: row-major, but for a matrix whose rows lie apart."""
    steps = [1]
    for length in reversed(held.shape[1:]):
        steps.insert(0, steps[0] * length)
    if len(held.shape) == 2 and held.shape[0] > 1:
        steps[0] = held.strides[0] // SIZES[held.dtype]
    return tuple(steps[: len(held.shape)])


def shadow_bytes(bound: Bound) -> int:
    return SHADOW_BYTES * sum(cells(bound).values())


def checks(bound: Bound) -> list[Check]:
    """What a plan says of the search. Raises LaunchError where the shadows do not fit into the device's memory."""
    counts = cells(bound)
    needed, free = shadow_bytes(bound), driver.free_bytes()
    if needed > free:
        name = max(counts, key=lambda one: counts[one])
        raise refusal(
            bound.module, bound.unit, None,
            f"looking for races needs {size(needed)} of shadows, and the device has {size(free)} free", None,
            label=f"`{name}` alone has {counts[name]} cells, and each takes {SHADOW_BYTES} bytes",
            help="take smaller sizes for this run",
        )  # fmt: skip
    named = ", ".join(f"`{name}`" for name in counts) or "no tensor: none is stored to"
    return [Check("races", f"a shadow of {named}: {size(needed)}", None)]


def notes(bound: Bound) -> tuple[str, ...]:
    """What is otherwise than in a launch that looks for no races, and what is not seen."""
    said = "races are looked for: nothing stays on chip across barriers, and no loop fetches rounds ahead"
    unseen = missed(bound)
    return (said,) if unseen is None else (said, unseen)


def missed(bound: Bound) -> str | None:
    """The races that the search does not see, if any."""
    return MISSED if has_atomics(parts_of(bound.program)) else None


class Shadows:
    """The memory of one launch. `free` it when the launch has ended."""

    def __init__(self, ready: Ready, channel: Channel, word: int, stream: int) -> None:
        bound, emitted = ready.bound, ready.loaded.compiled.emitted
        blocks = max([ready.plan.blocks, *(phase.total for phase in ready.work.phases)])
        block_bits, site_bits = blocks.bit_length(), max(1, (len(emitted.sites) - 1).bit_length())
        atomics = has_atomics(parts_of(bound.program))
        phase_bits = 64 - FLAG_BITS - 2 * (block_bits + site_bits)
        epoch_bits = min(max((phase_bits - SPARE_PHASE_BITS) // 2, 0), MOST_EPOCH_BITS) if atomics else 0
        phase_bits -= 2 * epoch_bits
        if phase_bits < 1 or len(emitted.sites) > MOST_SITES:
            raise refusal(
                bound.module, bound.unit, None,
                f"looking for races marks each cell with a block and a place: {blocks} blocks and {len(emitted.sites)} "
                "places are too many for a word of 64 bits", None, help="take a smaller grid for this run",
            )  # fmt: skip
        self.counts = cells(bound)
        marks = SHADOW_BYTES * sum(self.counts.values())
        last = 8 * blocks if atomics else 0
        try:
            self.pointer = driver.allocate(HEAD_BYTES + last + marks)
        except driver.DriverError as error:
            raise refusal(
                bound.module, bound.unit, None, f"looking for races needs {size(marks)} of shadows: {error}", None
            ) from None
        first = self.pointer + HEAD_BYTES + last
        self.rows: dict[str, int] = {}
        for name in self.counts:
            self.rows[name] = first + SHADOW_BYTES * sum(self.counts[other] for other in self.rows)
        driver.fill_words(self.pointer, 0, (HEAD_BYTES + last + marks) // 4, stream)
        driver.synchronize_stream(stream)
        limit = min(2**phase_bits - 1, MOST_PHASES)
        head = (ctypes.c_ulonglong * (HEAD_BYTES // 8))(
            0, first, marks // 8, self.pointer + HEAD_BYTES if last else 0, word, channel.there,
            block_bits | site_bits << 32, epoch_bits | blocks << 32, limit,
        )  # fmt: skip
        driver.copy_in(self.pointer, ctypes.addressof(head), HEAD_BYTES)

    def seen(self) -> int:
        """How many racing accesses were seen, after the launch has ended."""
        low, high = driver.read_words(self.pointer, 2)
        return low | high << 32

    def free(self) -> None:
        with suppress(driver.DriverError):  # the context has gone, and the memory with it
            driver.free(self.pointer)


def index_in(bound: Bound, name: str, cell: int) -> tuple[int, ...]:
    """The subscripts of a cell of a tensor, which is named by its place in memory."""
    found = []
    for step in _steps(bound.tensors[name]):
        found.append(cell // max(step, 1))
        cell %= max(step, 1)
    return tuple(found)


def looks(emitted: Emitted) -> bool:
    """Whether this code looks for races."""
    return any(argument.kind == "races" for argument in emitted.arguments)
