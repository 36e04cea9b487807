"""The words by which a grid is stopped and by which it says why, kept for each device, kernel, and stream or capture.

Barrier words are allocated once, outside any capture's memory, each on a line of its own; a kernel leaves its
word ready for the next launch, so that a captured launch can be replayed. The report lies in host memory that the
device writes: looking at it costs nothing, and it is looked at when somebody waits, and before the next launch.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from phobos.codegen.emitted import Site
from phobos.runtime.cuda import driver
from phobos.runtime.cuda.detection import index_in
from phobos.runtime.faults import raised
from phobos.runtime.reference.faults import Fault, Touch, block_list, race
from phobos.runtime.reference.faults import Site as FaultSite

if TYPE_CHECKING:
    from phobos.errors import KernelFault
    from phobos.runtime.binding import Bound

LINE_WORDS = 32  # 128 bytes: no two barriers share a line
GROUPS = 128  # of 64 CTAs each, for the barriers of large grids
GROUP_CTAS = 64
HEAD_WORDS = 12
RACE = 5  # the code of that cause
MOST_PLACES = 16384  # blocks whose place is written down when a grid is stopped


class Channel:
    """What one kernel on one stream of one device, or in one captured graph, needs: barrier words, and the report of
    its launches of at most `blocks` blocks. It is there for the life of the process, as a graph may be."""

    def __init__(self, device: int, barriers: int, blocks: int) -> None:
        self.device = device
        self.words = max(barriers, 1)
        self.places = min(blocks, MOST_PLACES)
        self.groups_held = min(-(-blocks // GROUP_CTAS), GROUPS)
        with driver.on(device), driver.beside_captures():
            self.pointer = driver.allocate_zeros(self._length)
            self.here, self.there = driver.allocate_mapped(4 * (HEAD_WORDS + self.places))
        self.report = (ctypes.c_uint * (HEAD_WORDS + self.places)).from_address(self.here)
        self.report[10] = self.places
        self.races = 0  # seen by the last launch, where it looked for them

    @property
    def _length(self) -> int:
        return LINE_WORDS * (self.words + self.groups_held)

    def barrier(self, index: int) -> int:
        return self.pointer + 4 * LINE_WORDS * index

    def groups(self, blocks: int) -> int:
        """The address of the groups' words, 0 where the grid has more groups than there are."""
        return self.barrier(self.words) if blocks <= self.groups_held * GROUP_CTAS else 0

    @property
    def stopped(self) -> bool:
        return bool(self.report[0])

    def fault(self, bound: Bound, sites: tuple[Site, ...], seconds: float | None) -> KernelFault:
        """What the report says, as an exception with places in the .ph file."""
        words = list(self.report)
        code, site, block, generation = words[:4]
        values = [ctypes.c_longlong(words[4 + 2 * i] | words[5 + 2 * i] << 32).value for i in range(2)]
        blocks = words[9]
        if code == RACE:
            fault = _race(bound, sites, site, (block, generation), (values[0], values[1]), self.races)
            return raised(bound.module, bound.unit, fault)
        waits = words[HEAD_WORDS : HEAD_WORDS + min(blocks, self.places)]
        return raised(
            bound.module, bound.unit, _fault(code, sites, site, block, generation, values, blocks, waits, seconds)
        )

    def clear(self, barriers: list[int], stream: int) -> None:
        """Make words and report ready again, after everything on the device has ended."""
        with driver.on(self.device):
            for pointer in barriers:
                driver.fill_words(pointer, 0, 1, stream)
            driver.fill_words(self.pointer, 0, self._length, stream)
            driver.synchronize_stream(stream)
        for i in range(HEAD_WORDS + self.places):
            self.report[i] = 0
        self.report[10] = self.places


def _race(
    bound: Bound, sites: tuple[Site, ...], number: int, mine: tuple[int, int], values: tuple[int, int], seen: int
) -> Fault:
    """Two blocks at one cell: `mine` are the block that found it and its phase, `values` the cell and the other."""
    site, (block, phase) = sites[number], mine
    at, other, there = values[0], values[1] & 0xFFFFFFFF, sites[values[1] >> 32]
    fault = race(
        site.subject, index_in(bound, site.subject, at),
        Touch(block, site.what, site.span, site.calls), Touch(other, there.what, there.span, there.calls),
    )  # fmt: skip
    passed = "1 barrier" if phase == 1 else f"{phase} barriers"
    count = "1 racing access was seen" if seen == 1 else f"{seen} racing accesses were seen"
    fault.notes = (f"in phase {phase} ({passed} passed before); {count} until the run ended",)
    return fault


def _fault(
    code: int, sites: tuple[Site, ...], number: int, block: int, generation: int, values: list[int], blocks: int,
    waits: list[int], seconds: float | None,
) -> Fault:  # fmt: skip
    site = sites[number]
    place = FaultSite(site.span, site.calls, "")
    if code == 2:
        dim = site.subject.split(" = ")[0]
        return Fault(
            "aligned-broken", f"{dim} = {values[0]} is not a whole number of {values[1]}", place, blocks=(block,),
            notes=("the kernel found this itself, as the host was told not to look",),
        )  # fmt: skip
    if code == 3:
        message = f"index {values[0]} is outside `{site.subject}`, which has {values[1]} there"
        return Fault("out-of-bounds", message, place, blocks=(block,))
    if code == 4:
        return Fault("bad-step", f"the step is {values[0]}, it must be at least 1", place, blocks=(block,))
    at: dict[int, list[int]] = {}
    for index, wait in enumerate(waits):
        at.setdefault(wait, []).append(index)
    gone = at.pop(0, [])
    limit = f"longer than {seconds:g} s" if seconds else "too long"
    what = {"barrier": "at this barrier", "phase": f"at the barrier {site.subject}"}.get(site.what, "in this loop")
    notes = [f"generation {generation} (barriers passed before); arrived {blocks - len(gone)}, expected {blocks}"]
    others = []
    for wait, members in sorted(at.items()):
        if wait - 1 < len(sites):
            other = sites[wait - 1]
            others.append(FaultSite(other.span, other.calls, f"{block_list(members)} waited here"))
    message = f"block {block} waited {limit} {what}"
    if gone:
        message += f" for {block_list(gone)}"
        notes.append(f"{block_list(gone)} waited nowhere: ended, or never came")
    return Fault("timeout", message, place, blocks=tuple(gone) or (block,), others=others, notes=notes)
