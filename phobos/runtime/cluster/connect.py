"""A connection to workers: those of a scheduler that runs somewhere, or some of this machine, started for the while.

`local` starts one worker a GPU, which sees no other, or, where there is none, `local:N` of one thread each, in
which the reference runtime computes. They listen on the loopback interface alone. A worker holds one task at a time.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from phobos import __version__
from phobos.errors import InputError
from phobos.processes import shield
from phobos.runtime.device import driver
from phobos.value import value

if TYPE_CHECKING:
    from phobos.runtime.tuning.tuning import Machine

LOOPBACK = "127.0.0.1"
CONNECT_S = 10.0
START_S = 60.0
DEATHS = 2  # of its workers, after which a task is given up


@value
class Worker:
    """`gpu` is the identity of the one card that the worker uses, "" where it has none."""

    address: str
    gpu: str
    device: str
    machine: Machine | None = None  # of its GPU, or of the reference runtime there
    bare: Machine | None = None  # of the reference runtime there


@value
class Cluster:
    """`client` is distributed's."""

    client: Any
    address: str
    dashboard: str

    def workers(self) -> list[Worker]:
        """What each worker has, asked of all now. Raises InputError where they cannot work together."""
        understood(self.client.run(eval, VERSIONS, on_error="return"))
        said = self.client.run(about)
        found = [Worker(address, *about_) for address, about_ in sorted(said.items())]
        cards: dict[str, str] = {}
        for worker in found:
            if worker.gpu and cards.setdefault(worker.gpu, worker.address) != worker.address:
                raise InputError(
                    f"workers {cards[worker.gpu]} and {worker.address} share a GPU ({worker.device}): start one worker "
                    "a GPU, each with its own CUDA_VISIBLE_DEVICES"
                )
        return found


def needed() -> None:
    """Raises InputError, in one line that names the extra, where dask is not installed."""
    try:
        import distributed  # noqa: F401
    except ModuleNotFoundError as error:
        raise InputError(
            f"`{error.name}` is not installed, which clusters need: pip install 'phobos-tools[cluster]'"
        ) from None


# What can be asked of a worker that may have another Python and nothing of ours: a text, where no function would
# arrive.
VERSIONS = "('.'.join(map(str, __import__('sys').version_info[:2])), __import__('phobos').__version__)"


def understood(said: dict[str, Any]) -> None:
    """Look at what each worker says of its versions, or raises. Raises InputError where it would not understand us."""
    mine = ".".join(map(str, sys.version_info[:2]))
    for address, versions in sorted(said.items()):
        if isinstance(versions, ModuleNotFoundError):
            raise InputError(
                f"worker {address} has no `{versions.name}`: `pip install 'phobos-tools[cluster]=={__version__}'` into "
                "the environment that runs `dask worker` there"
            )
        if isinstance(versions, BaseException):
            raise InputError(f"worker {address} does not answer: {type(versions).__name__}: {versions}")
        python, ours = versions
        if ours != __version__:
            raise InputError(f"worker {address} has phobos {ours}, this is {__version__}: install one of them on both")
        if python != mine:
            raise InputError(f"worker {address} runs Python {python}, this is {mine}: use one of them on both")


@contextmanager
def cluster(where: str) -> Iterator[Cluster]:
    """`local`, `local:N`, or the address of a scheduler (`tcp://HOST:PORT`, `tls://HOST:PORT`). Raises InputError."""
    needed()
    if where == "local" or where.startswith("local:"):
        count = where.partition(":")[2]
        if count and (not count.isdecimal() or int(count) < 1):
            raise InputError(f"--cluster {where}: the number of workers must be at least 1")
        with _local(int(count) if count else None) as found:
            yield found
        return
    kind, _, rest = where.partition("://")
    if kind not in ("tcp", "tls") or not rest.rpartition(":")[2].isdecimal():
        raise InputError(f"--cluster {where}: give local, local:N, tcp://HOST:PORT or tls://HOST:PORT")
    from distributed import Client
    from distributed.security import Security

    if kind == "tls":
        names = "`ca-file`, `client.cert` and `client.key` of `distributed.comm.tls`"
        try:
            known = Security().get_connection_args("client").get("ssl_context")
        except OSError as error:
            raise InputError(
                f"--cluster {where}: the certificates that dask's configuration names ({names}) cannot be read: {error}"
            ) from None
        if known is None:
            raise InputError(
                f"--cluster {where}: dask's configuration names no certificates: set {names} "
                "(or DASK_DISTRIBUTED__COMM__TLS__CA_FILE, ...__CLIENT__CERT, ...__CLIENT__KEY)"
            )
    try:
        client = Client(where, timeout=CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(f"--cluster {where}: no scheduler answers: {str(error) or type(error).__name__}") from None
    with _quiet(), contextlib.closing(client):
        if not client.nthreads():
            raise InputError(f"--cluster {where}: the scheduler has no workers: start some with `dask worker {where}`")
        yield Cluster(client, where, client.dashboard_link or "")


@contextmanager
def _local(count: int | None, memory: str = "auto") -> Iterator[Cluster]:
    """`memory` is what a worker may hold before it spills to the folder that dask's `temporary-directory` names."""
    from multiprocessing import resource_tracker

    import dask
    from distributed import Client, SpecCluster

    cards = visible_cards()
    total = count if count is not None else len(cards) or max(1, min(4, os.cpu_count() or 1))
    if cards and total > len(cards):
        raise InputError(f"--cluster local:{total}: there are {len(cards)} GPUs, and a worker needs one of its own")
    settings = {
        "distributed.scheduler.allowed-failures": DEATHS - 1,
        "distributed.worker.daemon": True,
        "distributed.comm.timeouts.connect": "30s",
        "distributed.nanny.pre-spawn-environ": {},
    }
    shield()
    resource_tracker.ensure_running()  # or the first process that is started does it, and lets Ctrl-C in again
    with dask.config.set(settings), _quiet():
        made: Any = None
        client: Any = None
        try:
            with _uninterrupted():
                try:
                    made = SpecCluster(**_specification(total, cards, memory), silence_logs=logging.CRITICAL)
                    client = Client(made, timeout=CONNECT_S, set_as_default=False)
                    client.wait_for_workers(total, timeout=START_S)
                except (OSError, TimeoutError, RuntimeError) as error:
                    raise InputError(f"the workers of this machine do not start: {error}") from None
            yield Cluster(client, made.scheduler_address, made.dashboard_link or "")
        finally:
            with _uninterrupted():
                for part, seconds in ((client, 2), (made, 10)):
                    if part is not None:
                        with contextlib.suppress(Exception):
                            part.close(timeout=seconds)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until this is over. Threads and processes that begin in it never see it: it is for the process that
    was asked, which then ends the others."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _specification(total: int, cards: list[str], memory: str) -> dict[str, Any]:
    from distributed import Nanny, Scheduler
    from distributed.system import MEMORY_LIMIT

    paths = os.pathsep.join(path for path in sys.path if path)
    if memory == "auto":
        memory = str(int(MEMORY_LIMIT / total))
    common = {
        "nthreads": 1, "host": LOOPBACK, "dashboard": False, "silence_logs": logging.CRITICAL, "memory_limit": memory,
    }  # fmt: skip
    workers = {}
    for at in range(total):
        # One thread a worker for NumPy's BLAS too: a shard has one core, and sums have one order.
        env = {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        if cards:
            env["CUDA_VISIBLE_DEVICES"] = cards[at]
        workers[at] = {"cls": Nanny, "options": {**common, "env": env}}
    options = {
        "host": LOOPBACK,
        "port": 0,
        "protocol": "tcp://",
        "dashboard": True,
        "dashboard_address": f"{LOOPBACK}:0",
    }
    return {"scheduler": {"cls": Scheduler, "options": options}, "workers": workers}


def visible_cards() -> list[str]:
    """What CUDA_VISIBLE_DEVICES must be for a worker to see one card alone, for each card that this process sees."""
    count, _ = driver()
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    listed = [part.strip() for part in given.split(",")] if given else [str(at) for at in range(count)]
    return listed[:count]


@contextmanager
def _quiet() -> Iterator[None]:
    """What the engine logs of workers that go is said by us, once, where it matters."""
    names = ("distributed", "distributed.core", "distributed.comm", "distributed.nanny", "distributed.client")
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="distributed")
            yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)


def about() -> tuple[str, str, Machine, Machine]:
    """What a `Worker` holds beside its address, of the process it is called in."""
    from phobos.runtime.tuning.tuning import machine_of

    count, _ = driver()
    bare = machine_of("cpu")
    if not count:
        return "", "reference runtime", bare, bare
    from phobos.runtime.cuda import driver as cuda

    return cuda.identity(0), cuda.device_name(0), machine_of("cuda:0"), bare
