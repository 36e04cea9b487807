"""Worker processes as the server sees them: ask for a job, await its answer, cancel it by killing its process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from asyncio.subprocess import PIPE, Process

from phobos.lsp.worker import LENGTH, frame
from phobos.processes import command, environment

log = logging.getLogger("phobos.lsp.workers")


class JobFailed(Exception):
    """The message is for the user."""


class Workers:
    """At most `size` processes, started when first needed. A job that is cancelled takes its process with it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._free: list[Process] = []
        self._all: set[Process] = set()
        self._room: asyncio.Semaphore | None = None

    async def run(self, job: str, **arguments: object) -> object:
        """The answer of `jobs.<job>(**arguments)`. Raises JobFailed with its message, or when the process died."""
        if self._room is None:
            self._room = asyncio.Semaphore(self.size)
        async with self._room:
            process = await self._process()
            try:
                good, answer = await _ask(process, job, arguments)
            except BaseException as error:
                self._end(process)
                if isinstance(error, (OSError, EOFError, asyncio.IncompleteReadError)):
                    raise JobFailed(f"the worker process ended during {job}") from error
                raise
            self._free.append(process)
        if not good:
            raise JobFailed(str(answer))
        return answer

    async def close(self) -> None:
        processes = list(self._all)
        self.kill()
        for process in processes:
            with contextlib.suppress(asyncio.TimeoutError, ProcessLookupError):
                await asyncio.wait_for(process.wait(), 2)

    def kill(self) -> None:
        for process in list(self._all):
            self._end(process)
        self._free.clear()

    async def _process(self) -> Process:
        while self._free:
            process = self._free.pop()
            if process.returncode is None:
                return process
            self._all.discard(process)
        log.info("starting a worker process")
        process = await asyncio.create_subprocess_exec(
            *command("phobos.lsp.worker"), stdin=PIPE, stdout=PIPE, limit=2**26, env=environment()
        )
        self._all.add(process)
        return process

    def _end(self, process: Process) -> None:
        self._all.discard(process)
        with contextlib.suppress(ProcessLookupError):
            process.kill()


async def _ask(process: Process, job: str, arguments: dict[str, object]) -> tuple[bool, object]:
    import pickle

    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(frame((job, arguments)))
    await process.stdin.drain()
    (length,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
    good, answer = pickle.loads(await process.stdout.readexactly(length))  # our own child wrote it
    return bool(good), answer
