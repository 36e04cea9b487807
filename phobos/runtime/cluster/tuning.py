"""Tuning on a cluster: variants are compiled here, once, and judged by whichever worker is free."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from phobos.errors import InputError
from phobos.runtime.cluster.connect import Worker, cluster
from phobos.runtime.cluster.executor import Workers
from phobos.runtime.cluster.running import Crew
from phobos.runtime.tuning.tuning import How, Machine


@contextmanager
def on_cluster(where: str, device: str, how: How) -> Iterator[tuple[str, How, str]]:
    """The device that a worker judges on, how to tune there, and the cluster in words. Raises InputError."""
    with cluster(where) as found:
        crew = Crew(found, device)
        machine = _one(crew.workers, on_gpu=crew.on_gpu)
        told = f"{found.address}: {crew.words}"
        yield "cuda:0" if crew.on_gpu else "cpu", replace(how, executor=Workers(found), machine=machine), told


def _one(workers: list[Worker], *, on_gpu: bool) -> Machine:
    """What all workers have. Raises InputError where times of one would not be times of another."""
    first, *others = workers
    machines = {worker.address: worker.machine if on_gpu else worker.bare for worker in workers}
    mine = machines[first.address]
    assert mine is not None
    for worker in others:
        theirs = machines[worker.address]
        assert theirs is not None
        if (theirs.card, theirs.arch) != (mine.card, mine.arch):
            raise InputError(
                f"workers {first.address} ({mine.card}) and {worker.address} ({theirs.card}) are not alike: their "
                "times cannot be compared"
            )
    return mine
