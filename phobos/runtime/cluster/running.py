"""A run from the command line on shards: the plan of the whole, the tasks, the results brought here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from phobos.diagnostic import plural
from phobos.errors import InputError
from phobos.runtime.cluster import shards
from phobos.runtime.cluster.connect import Cluster
from phobos.runtime.cluster.waiting import arriving
from phobos.runtime.plan import Check, Plan
from phobos.semantics.grid import blocks_at
from phobos.value import value

if TYPE_CHECKING:
    from phobos.runtime.binding import Bound
    from phobos.runtime.kernel import Kernel
    from phobos.runtime.options import LaunchOptions

Bar = Callable[[str], AbstractContextManager[Callable[[int, int], None] | None]]
PARTS = 2  # shards for each worker where nobody says how many: one that is late holds up less


class Crew:
    """The workers of a cluster, for work on "auto", "cpu" or "cuda"; all use one runtime. Raises InputError."""

    def __init__(self, cluster: Cluster, device: str) -> None:
        self.device = device.partition(":")[0]
        if device.partition(":")[2]:
            raise InputError(f"--device {device}: on a cluster each worker has one GPU; give auto, cpu or cuda")
        self.workers = cluster.workers()
        self.runtime = shards.demand_alike(self.workers, self.device)
        self.on_gpu = self.runtime != shards.REFERENCE
        many = plural(len(self.workers), "worker")
        board = f"; dashboard {cluster.dashboard}" if cluster.dashboard else ""
        self.words = f"{many}, {self.runtime}{board}"


@value
class Ran:
    """A run on shards: `arrays` by tensor name, put together; `elapsed_ms` is the median of its repeats."""

    plan: Plan
    bound: Bound
    arrays: dict[str, Any]
    elapsed_ms: float


class Run:
    """What `phobos run --cluster ... --shard ...` does with a cluster."""

    def __init__(self, cluster: Cluster, device: str) -> None:
        self.cluster = cluster
        self.found = Crew(cluster, device)
        self.device = self.found.device
        self.runtime = self.found.runtime
        self.on_gpu = self.found.on_gpu
        self.words = self.found.words

    def plan(
        self, kernel: Kernel, arrays: Mapping[str, Any], numbers: Mapping[str, Any], shard: tuple[str, int | None],
        options: LaunchOptions,
    ) -> tuple[Plan, shards.Sharded]:  # fmt: skip
        dim, parts = shard
        count = parts if parts is not None else PARTS * len(self.found.workers)
        cut = shards.sharded(kernel, arrays, numbers, dim, count, options, self.device)
        return _planned(kernel, cut, options, f"cluster {self.cluster.address} ({self.runtime})"), cut

    def run(
        self, kernel: Kernel, arrays: Mapping[str, Any], numbers: Mapping[str, Any], shard: tuple[str, int | None],
        options: LaunchOptions, repeat: int, bar: Bar,
    ) -> Ran:  # fmt: skip
        """Raises LaunchError, KernelFault, InputError; nothing runs on when it does."""
        times: list[float] = []
        found: dict[str, Any] = {}
        for again in range(repeat):
            plan, cut = self.plan(kernel, arrays, numbers, shard, options)
            begun = perf_counter()
            with bar(f"{kernel.name} {again + 1}/{repeat}, shards") as progress:
                found = collected(self.cluster.client, cut, progress)
            times.append(1e3 * (perf_counter() - begun))
        return Ran(plan, cut.bound, found, median(times))


def collected(client: Any, cut: shards.Sharded, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """What the kernel writes, as whole NumPy arrays. The cells are laid there when shards end and let go."""
    import numpy as np
    from dask.core import flatten

    names = list(cut.arrays)
    persisted = client.persist(list(cut.arrays.values()))
    # Shard by shard, so that of several that fail it is always the first that is told.
    each = [[array.dask[key] for key in flatten(array.__dask_keys__())] for array in persisted]
    futures = [future for of_shard in zip(*each) for future in of_shard]
    del persisted, each
    found = {name: np.empty(array.shape, array.dtype) for name, array in cut.arrays.items()}
    starts = cut.pieces.starts()
    with closing(arriving(client, futures, progress)) as cells:
        for place, cell in cells:
            at, which = divmod(place, len(names))
            name = names[which]
            own = slice(starts[at], starts[at] + cut.pieces.sizes[at])
            where = tuple(own if axis == cut.cut.axes[name] else slice(None) for axis in range(found[name].ndim))
            found[name][where] = cell.get() if hasattr(cell, "get") else cell  # CuPy's, on this machine
    return found


def _planned(kernel: Kernel, cut: shards.Sharded, options: LaunchOptions, device: str) -> Plan:
    bound, sizes = cut.bound, cut.pieces.sizes
    program = bound.program
    alike = f"{sizes[0]}" if len(set(sizes)) == 1 else f"{min(sizes)} to {max(sizes)}"
    said = f"{len(sizes)} of {alike} cells, cut at multiples of {cut.cut.unit}"
    beside = [f"{n} {where}" for n, where in ((cut.pieces.below, "before"), (cut.pieces.above, "behind")) if n]
    if beside and len(sizes) > 1:
        said += f", each with its neighbours' cells: {' and '.join(beside)}"
    dim = program.dims[cut.cut.dim]
    grid = blocks_at(program, bound.sizes)
    blocks = grid[0] * grid[1] * grid[2]
    return Plan(
        kernel=kernel.name,
        device=device,
        grid=grid,
        grid_source="of the whole; each shard has its part",
        block=program.launch.threads,
        constants={name: constant.value for name, constant in program.constants.items()},
        schedule="flat",
        shared_bytes=None,
        registers=None,
        ctas_per_sm=None,
        limiter=None,
        resident=None,
        timeout_s=options.timeout,
        timeout_source="a shard" if options.timeout else "",
        checks=(Check(f"shards along `{cut.cut.dim}`", said, bound.line(dim.span)),),
        notes=(),
        l2_group=1,
        workers=blocks,
        tiles=blocks,
        rounds=1,
    )
