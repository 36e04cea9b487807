"""Files at the edge: read no further than a text can go, and put in their place in one step, so that whoever reads one
finds the old contents or the new, whatever interrupts us."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import IO

from phobos.errors import InputError

MOST_BYTES = 64 * 1024 * 1024  # of a text that people write: more is a device, or none of it


def contents(path: str) -> bytes:
    """What stands in a text file. Raises OSError, and InputError where it does not end within `MOST_BYTES`."""
    with open(path, "rb") as stream:
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InputError(f"{path}: is larger than {MOST_BYTES >> 20} MiB, which no text that is read here is")
    return data


def only_ours(path: str) -> bool:
    """Whether nobody but this user can change what stands at `path`. Raises OSError."""
    if sys.platform == "win32":  # what is kept lies in a folder of the user's own there
        return True
    status = os.stat(path)
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def put(path: str, fill: Callable[[IO[bytes]], object], *, private: bool = False) -> None:
    """Have `fill` write the contents of `path`, the link's target where it is a link.

    The mode stays that of a file that is there already; a new one has what the umask leaves, or is the user's alone
    (`private`). Raises OSError, and what `fill` raises; then nothing has changed. What is no file, a device or a pipe,
    is written to as it stands: `/dev/null` must stay what it is.
    """
    import stat
    import tempfile

    target = os.path.realpath(path)
    if os.path.exists(target) and not stat.S_ISREG(os.stat(target).st_mode):
        with open(target, "wb") as stream:
            fill(stream)
        return
    handle, temporary = tempfile.mkstemp(prefix=".phobos-", dir=os.path.dirname(target))
    try:
        with os.fdopen(handle, "wb") as stream:
            fill(stream)
        if not private:
            os.chmod(temporary, os.stat(target).st_mode & 0o7777 if os.path.exists(target) else 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


@contextlib.contextmanager
def held(path: str) -> Iterator[None]:
    """Have the file `path`, which is made where it is missing, to oneself: others who ask for it wait, and it is given
    back when the process ends, however it does. What is read, changed and put back meanwhile loses nobody's change.
    Raises OSError.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_LOCK, 1)  # tries for ten seconds; closing gives it back
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def save(path: str, fill: Callable[[IO[bytes]], object]) -> None:
    """As `put`, for a file that the user named. Raises InputError."""
    try:
        put(path, fill)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
