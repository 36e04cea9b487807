"""Schedules: which blocks of which kernels each worker of a launch runs, and in what order. Numbers only.

The grid that a kernel's text speaks of (`ctx.block`, `ctx.blocks`) is one of *virtual* blocks. What is launched are
*workers*; a schedule says which virtual blocks a worker runs. A launch is a sequence of *phases* with a grid barrier
between each two. A phase is a list of *roots*, the grids of one or several kernels that do not depend on each other;
they share one space of ids, the first root's ids first. Each phase is shared out among the workers by itself, so that
all of them have work in each. One kernel under a schedule is one phase of one root.

Three numbers name a virtual block. Its *id* is its place in the ids that its phase shares out. Less the ids of the
roots before its own, that is its *local id*, which the root's order turns into coordinates. Its *number* counts the
coordinates, x fastest, whatever the order: faults and races name blocks by it, under every schedule alike.

The runtimes, the emitter's loop over virtual blocks and fused kernels all follow what stands here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from phobos.value import value

Extents = tuple[int, int, int]
N = TypeVar("N", int, Any)  # a number, or an array of numbers

FLAT = "flat"
XYZ = "xyz"
BLOCKED = "persistent-blocked"
INTERLEAVED = "persistent-interleaved"
KINDS = (FLAT, XYZ, BLOCKED, INTERLEAVED)
PERSISTENT = (BLOCKED, INTERLEAVED)

MOST_BLOCKS = 2**31 - 1  # of a phase: ids are 32 bits wide on a device, and no more can be launched along x
MOST_ALONG = (2**31 - 1, 65535, 65535)  # blocks of a launched grid along x, y and z


class ScheduleError(Exception):
    """A schedule that cannot be; the message says why, in the user's terms."""


# --- how a caller says it -----------------------------------------------------------------------------------


@value
class Schedule:
    """One of `KINDS`, and how many blocks along x stand in a band (1: no bands)."""

    kind: str
    l2_group: int

    @property
    def is_persistent(self) -> bool:
        return self.kind in PERSISTENT

    def __str__(self) -> str:
        return self.kind if self.l2_group == 1 else f"{self.kind}, in bands of {self.l2_group}"


def schedule_called(name: str | None, l2_group: int | None = None) -> Schedule:
    """The schedule of a name, in our spelling or Helion's (`persistent_blocked`); None is flat, and no bands.

    Raises ScheduleError.
    """
    kind = FLAT if name is None else str(name).replace("_", "-")
    if kind not in KINDS:
        raise ScheduleError(f"no schedule is called {name!r}: choose {', '.join(KINDS)}")
    group = 1 if l2_group is None else l2_group
    if isinstance(group, bool) or not isinstance(group, int) or not 1 <= group <= MOST_BLOCKS:
        raise ScheduleError(f"blocks cannot be grouped by {l2_group!r}: give a whole number of at least 1")
    return Schedule(kind, group)


# --- the grid of one kernel ---------------------------------------------------------------------------------


@value
class Root:
    """The grid of one kernel in a phase, in virtual blocks.

    `l2_group` > 1 runs bands of so many blocks along x, in each of which x goes fastest, then y: the blocks that
    run at one time then touch few rows and few columns of the operands. With 1 there are no bands: x fastest, then
    y, then z. (Bands of height 1 would be another order, y fastest.)
    """

    grid: Extents
    l2_group: int

    @property
    def total(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def in_bands(self) -> bool:
        """Whether its order differs from that without bands; blocks in one row have one order."""
        return 1 < self.l2_group < self.grid[0] and self.grid[1] > 1

    def coordinates(self, local: N) -> tuple[N, N, N]:
        """Where a local id lies, `0 <= local < total`; for an array of ids, arrays."""
        nx, ny, _ = self.grid
        z, inner = local // (nx * ny), local % (nx * ny)
        if not self.in_bands:
            return inner % nx, inner // nx, z
        band, offset = inner // (self.l2_group * ny), inner % (self.l2_group * ny)
        missing = self.l2_group - nx % self.l2_group  # of the last band, where it is lower
        height = self.l2_group - (band == nx // self.l2_group) * missing
        return band * self.l2_group + offset % height, offset // height, z

    def number(self, coordinates: tuple[N, N, N]) -> N:
        """The name of a block: its coordinates counted, x fastest; for arrays an array."""
        x, y, z = coordinates
        return x + self.grid[0] * (y + self.grid[1] * z)


# --- a phase ------------------------------------------------------------------------------------------------


@value
class Phase:
    """Roots that share their ids, in order; no block of one needs anything of another."""

    roots: tuple[Root, ...]

    @property
    def total(self) -> int:
        return sum(root.total for root in self.roots)

    @property
    def starts(self) -> tuple[int, ...]:
        """The first id of each root."""
        found: list[int] = []
        start = 0
        for root in self.roots:
            found.append(start)
            start += root.total
        return tuple(found)

    def locate(self, block: int) -> tuple[int, Extents]:
        """The root (its place in `roots`) and the coordinates of an id. Raises IndexError past the last."""
        local = block
        for index, root in enumerate(self.roots):
            if 0 <= local < root.total:
                return index, root.coordinates(local)
            local -= root.total
        raise IndexError(block)


# --- a launch -----------------------------------------------------------------------------------------------


@value
class Work:
    """All that one launch does. Made by `share_out`, which refuses what cannot be.

    `launched` is the grid of workers that the launch has; a worker's number counts it x fastest. With a 0 in it
    there is nothing to do, and nothing is launched.
    """

    kind: str
    phases: tuple[Phase, ...]
    launched: Extents

    @property
    def workers(self) -> int:
        return self.launched[0] * self.launched[1] * self.launched[2]

    @property
    def blocks(self) -> int:
        """Virtual blocks of all phases."""
        return sum(phase.total for phase in self.phases)

    @property
    def is_persistent(self) -> bool:
        return self.kind in PERSISTENT

    def share(self, worker: int, phase: int) -> range:
        """The ids of a phase that a worker runs, in order."""
        return share(self.kind, worker, self.workers, self.phases[phase].total)

    def visits(self, worker: int, phase: int) -> Iterator[tuple[int, Extents]]:
        """(root, coordinates) of each virtual block of a phase that a worker runs, in order."""
        return map(self.phases[phase].locate, self.share(worker, phase))

    def worker_of(self, phase: int, block: N) -> N:
        """The worker that runs an id of a phase; for an array of ids, an array."""
        if self.kind == INTERLEAVED:
            return block % self.workers
        return block // max(self.most_in(phase), 1)

    def most_in(self, phase: int) -> int:
        """The most virtual blocks that one worker runs in a phase."""
        return -(-self.phases[phase].total // self.workers) if self.workers else 0

    @property
    def longest(self) -> int:
        """Virtual blocks one after another from start to end, as every phase waits for its slowest worker."""
        return sum(self.most_in(phase) for phase in range(len(self.phases)))


@value
class Order:
    """The order of one root in code: how many axes its grid has, 1 to 3 (those behind have one block), and bands."""

    axes: int
    l2_group: int


@value
class Form:
    """What the code of a launch must know of its schedule: all but the numbers, which it gets as arguments."""

    kind: str
    phases: tuple[tuple[Order, ...], ...]

    @property
    def key(self) -> str:
        """Two forms with one key are the same form."""
        orders = ("+".join(f"{order.axes}/{order.l2_group}" for order in phase) for phase in self.phases)
        return f"{self.kind}:{';'.join(orders)}"

    @property
    def is_persistent(self) -> bool:
        return self.kind in PERSISTENT


def form_of(work: Work) -> Form | None:
    """The form of the code for a launch; None where its blocks are what is launched, one root as it is."""
    roots = [root for phase in work.phases for root in phase.roots]
    as_it_is = len(roots) == 1 and work.launched == roots[0].grid and not roots[0].in_bands
    if as_it_is and not work.is_persistent:
        return None
    return Form(work.kind, tuple(tuple(order_of(root) for root in phase.roots) for phase in work.phases))


def order_of(root: Root) -> Order:
    axes = 3 if root.grid[2] != 1 else 2 if root.grid[1] != 1 else 1
    return Order(axes, root.l2_group if root.in_bands else 1)


def share(kind: str, worker: int, workers: int, total: int) -> range:
    """The ids below `total` that one of `workers` runs, in order; over all workers, each id once."""
    if kind == INTERLEAVED:
        return range(worker, total, workers)
    if kind == BLOCKED:
        chunk = -(-total // workers)
        return range(min(worker * chunk, total), min(worker * chunk + chunk, total))
    return range(worker, min(worker + 1, total))


def rounds(kind: str, workers: int, total: int) -> Iterator[range]:
    """The ids that workers run as their first, as their second, and so on; together each id once."""
    if not workers:
        return
    chunk = -(-total // workers)
    for turn in range(chunk):
        yield range(turn, total, chunk) if kind == BLOCKED else range(turn * workers, min((turn + 1) * workers, total))


def share_out(schedule: Schedule, phases: Sequence[Sequence[Extents]], resident: int | None = None) -> Work:
    """Share the grids of a launch (phases of roots) out among workers. Raises ScheduleError.

    `resident` is how many workers may be launched at once, and must be at least 1 for a persistent schedule, which
    launches as many, or as many as its largest phase has blocks. The other schedules launch one worker a block.

    Without bands a single grid whose extents a launch can have is launched as it is, under `flat` too: a device
    starts blocks in the order of the numbers, which is what the ids would give.
    """
    made = tuple(Phase(tuple(Root(grid, schedule.l2_group) for grid in roots)) for roots in phases)
    for phase in made:
        if phase.total > MOST_BLOCKS:
            raise ScheduleError(f"{phase.total} blocks in one phase, at most {MOST_BLOCKS} can be numbered")
    if schedule.is_persistent:
        if resident is None or resident < 1:
            raise ScheduleError(f"schedule '{schedule.kind}' needs at least one resident block, and none fits")
        most = max((phase.total for phase in made), default=0)
        return Work(schedule.kind, made, (min(resident, most), 1, 1))
    if len(made) != 1:
        raise ScheduleError(
            f"schedule '{schedule.kind}' has no grid barrier, but these kernels need "
            f"{len(made) - 1} between them: choose {' or '.join(PERSISTENT)}"
        )
    (phase,) = made
    single = phase.roots[0].grid if len(phase.roots) == 1 else None
    if schedule.kind == XYZ:
        if single is None:
            raise ScheduleError(f"schedule '{XYZ}' launches the grid of one kernel, these are {len(phase.roots)}")
        for extent, most, axis in zip(single, MOST_ALONG, "xyz", strict=True):
            if extent > most:
                raise ScheduleError(
                    f"schedule '{XYZ}' launches {extent} blocks along {axis}, a device takes at most {most}: "
                    f"choose {FLAT}"
                )
        return Work(XYZ, made, single)
    if single is not None and not phase.roots[0].in_bands and all(n <= most for n, most in zip(single, MOST_ALONG)):
        return Work(FLAT, made, single)
    return Work(FLAT, made, (phase.total, 1, 1))
