"""Other commands of this project, run for the editor in a child process: `phobos emit`, `phobos run`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterator, Sequence
from pathlib import Path

from phobos.lsp.session import Opened
from phobos.lsp.workers import JobFailed
from phobos.processes import command, environment
from phobos.value import value


@value
class Ended:
    """A child's exit code and what it printed."""

    code: int
    output: str
    errors: str


@contextlib.contextmanager
def file_to_run(document: Opened) -> Iterator[str]:
    """The same as `file_of`, for a run: one whose header names files beside it must be where they are."""
    with file_of(document) as path:
        if path != document.path and "=@" in document.text:
            raise JobFailed("its `// run:` header names files beside it; save the file first")
        yield path


@contextlib.contextmanager
def file_of(document: Opened) -> Iterator[str]:
    """A path that holds the document's newest text: its own file, or a copy while it has unsaved edits."""
    path = document.path
    if path is not None:
        with contextlib.suppress(OSError):
            if Path(path).read_bytes().decode("utf-8-sig", "replace") == document.text:
                yield path
                return
    with tempfile.TemporaryDirectory(prefix="phobos-") as folder:
        name = os.path.basename(path) if path is not None else "untitled.ph"
        copy = Path(folder, name if name.endswith(".ph") else f"{name}.ph")
        copy.write_text(document.text, encoding="utf-8", errors="surrogatepass", newline="")
        yield str(copy)


async def phobos(arguments: Sequence[str], path: str, document: Opened) -> Ended:
    """Run `phobos <arguments>` on `path`, which holds the text of `document`. Cancelling ends it.

    What it prints speaks of the document's own file, also where it ran on a copy, which is gone by then.
    """
    child = await asyncio.create_subprocess_exec(
        *command("phobos", *arguments), stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=environment(NO_COLOR="1")
    )
    try:
        out, err = await child.communicate()
    except BaseException:
        if child.returncode is None:
            child.kill()
        raise
    own = document.path or document.uri
    return Ended(child.returncode or 0, _of_its_own(out, path, own), _of_its_own(err, path, own))


def _of_its_own(printed: bytes, path: str, own: str) -> str:
    text = printed.decode("utf-8", "replace")
    if path != own:
        for spelled in (str, _escaped):  # as CUDA and JSON spell it, too
            text = text.replace(spelled(path), spelled(own))
    return text


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\")
