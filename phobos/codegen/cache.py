"""Cubins kept on disk, by content: the text, the options, the architecture and the compiler. Beside them the texts,
by what they were spelled from, so that a kernel that is known is neither lowered nor spelled again; and of kernels that
the checker lets pass the codes of what it said, so that they are not checked again by every process.

A file is written under another name and then renamed, so that many processes may share the folder and a killed one
leaves nothing half written. What is read is verified against a digest. The folder is private to the user (one that
others can write to is neither read nor written) and bounded in bytes and in files: the ones used longest ago go
first. Whether it is too full is not asked at every write, since looking through thousands of files takes longer than
making one.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from phobos.codegen import nvrtc
from phobos.codegen.emitted import Emitted, from_bytes, to_bytes
from phobos.files import only_ours, put
from phobos.value import value

MOST_BYTES = 256 * 1024 * 1024
MOST_FILES = 16_384
LOOKS = "0"  # first digits of the keys at which a write looks whether the folder is too full: one in sixteen
_MAGIC = b"phobos-cubin-1\n"


@value
class Kept:
    """What the folder holds."""

    folder: str
    files: int
    bytes: int


def root() -> Path:
    """What this project keeps between processes: `PHOBOS_CACHE`, or the user's cache folder."""
    own = os.environ.get("PHOBOS_CACHE")
    if own:
        return Path(own)
    import platformdirs

    return Path(platformdirs.user_cache_dir("phobos-tools", appauthor=False))


def folder() -> Path:
    """Where the cubins are."""
    return root() / "cubins"


def compiled(text: str, name: str, arch: str, options: Sequence[str] = ()) -> nvrtc.Compiled:
    """The cubin of a text, from the folder or from the compiler. Raises what `nvrtc.compile_text` raises."""
    lent = _lent.get(digest_of(text, name, arch, options)) if _lent else None
    if lent is not None:
        return nvrtc.Compiled(arch, lent[0], lent[1].decode(), "")
    key = _key(text, name, arch, options)
    found = _read(key)
    if found is not None:
        return nvrtc.Compiled(arch, found[0], found[1].decode(), "")
    made = nvrtc.compile_text(text, name, arch, options)
    _write(key, made.cubin, made.ptx.encode())
    return made


_lent: dict[str, tuple[bytes, bytes]] = {}
MOST_LENT = 64


def lend(made: Mapping[str, tuple[bytes, bytes]]) -> None:
    """Take cubins, with their PTX, that another machine compiled, by `digest_of`: they come before the folder."""
    _lent.update(made)
    while len(_lent) > MOST_LENT:
        del _lent[next(iter(_lent))]


def digest_of(text: str, name: str, arch: str, options: Sequence[str]) -> str:
    """Names a compilation, whatever compiles it."""
    return _digest((text, name, arch, *nvrtc.FLAGS, *options))


def emission(key: str) -> Emitted | None:
    """The text that was spelled for a key, where it is kept."""
    found = _read(key)
    return None if found is None else from_bytes(found[0])


def keep_emission(key: str, emitted: Emitted) -> None:
    _write(key, to_bytes(emitted), b"")


def verdict(key: str) -> tuple[str, ...] | None:
    """The codes that were kept for a key."""
    found = _read(key)
    return None if found is None else tuple(found[0].decode().split())


def keep_verdict(key: str, codes: Sequence[str]) -> None:
    _write(key, " ".join(codes).encode(), b"")


def emission_key(parts: Sequence[str]) -> str:
    """`parts` say all that a text is spelled from; with them counts this very package, file by file."""
    return _named(b"emission", parts)


def verdict_key(parts: Sequence[str]) -> str:
    """`parts` say all that the checker goes by; with them counts this very package, file by file."""
    return _named(b"verdict", parts)


def _named(kind: bytes, parts: Sequence[str]) -> str:
    digest = hashlib.sha256(kind + b"\0")
    for part in (*parts, package()):
        digest.update(part.encode(errors="surrogatepass"))
        digest.update(b"\0")
    return digest.hexdigest()


@functools.cache
def package() -> str:
    """Size and time of every file that has a part in what is spelled, or in what is said of a kernel."""
    root = Path(__file__).resolve().parents[1]
    found = []
    folders = [str(root / room) for room in ("syntax", "language", "semantics", "lowering", "codegen", "check")]
    while folders:
        with contextlib.suppress(OSError):
            for entry in os.scandir(folders.pop()):
                if entry.name.endswith((".py", ".lark")):
                    state = entry.stat()
                    found.append(f"{entry.path[len(str(root)) :]}:{state.st_size}:{state.st_mtime_ns}")
                elif entry.is_dir():
                    folders.append(entry.path)
    return "\n".join(sorted(found))


def kept() -> Kept:
    files = _files()
    return Kept(str(folder()), len(files), sum(size for _, size, _ in files))


def clear() -> int:
    """Remove all; gives the number of files that went."""
    return removed(path for path, _, _ in _files())


def removed(paths: Iterable[str | os.PathLike[str]]) -> int:
    """Remove files; gives the number of those that went."""
    count = 0
    for path in paths:
        with contextlib.suppress(OSError):
            Path(path).unlink()
            count += 1
    return count


def is_writable(where: Path) -> bool:
    """Whether a folder can be written to, and by nobody else, or can be made."""
    there = next(part for part in (where, *where.parents) if part.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK) and (there != where or only_ours(str(where)))


def _key(text: str, name: str, arch: str, options: Sequence[str]) -> str:
    path = nvrtc.location()
    compiler = "none"
    if path is not None:
        with contextlib.suppress(OSError):
            state = Path(path).stat()
            compiler = f"{path}:{state.st_size}:{state.st_mtime_ns}"
    return _digest((text, name, arch, *nvrtc.FLAGS, *options, compiler))


def _digest(parts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode("utf-8", "surrogatepass"))  # a path may hold bytes that are no text
        digest.update(b"\0")
    return digest.hexdigest()


def _read(key: str) -> tuple[bytes, bytes] | None:
    path = folder() / key
    try:
        if not only_ours(str(path.parent)):
            return None
        data = path.read_bytes()
    except OSError:
        return None
    head = len(_MAGIC)
    body = data[head + 32 :]
    if data[:head] != _MAGIC or hashlib.sha256(body).digest() != data[head : head + 32]:
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    size = int.from_bytes(body[:8], "little")
    return body[8 : 8 + size], body[8 + size :]


def _write(key: str, cubin: bytes, ptx: bytes) -> None:
    body = len(cubin).to_bytes(8, "little") + cubin + ptx
    if keep(folder() / key, _MAGIC + hashlib.sha256(body).digest() + body) and key[0] in LOOKS:
        _bound()


def private_folder(where: Path) -> Path:
    """A folder that this user alone can enter, made if need be, with all that is missing above it. Raises OSError."""
    for part in reversed([part for part in (where, *where.parents) if not part.exists()]):
        part.mkdir(mode=0o700, exist_ok=True)
    return where


def keep(path: Path, contents: bytes) -> bool:
    """Put a file in its place in one step; False where it cannot be, which is no reason to fail."""
    try:
        if not only_ours(str(private_folder(path.parent))):
            return False
        put(str(path), lambda stream: stream.write(contents), private=True)
    except OSError:
        return False
    return True


def _bound() -> None:
    files = sorted(_files(), key=lambda file: file[2])
    left, total = len(files), sum(size for _, size, _ in files)
    for path, size, _ in files:
        if total <= MOST_BYTES and left <= MOST_FILES:
            break
        with contextlib.suppress(OSError):
            Path(path).unlink()
        left, total = left - 1, total - size


def _files() -> list[tuple[str, int, float]]:
    """Path, bytes and time of last use of what the folder holds."""
    found = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder()):
            with contextlib.suppress(OSError):
                if entry.is_file(follow_symlinks=False):
                    state = entry.stat(follow_symlinks=False)
                    found.append((entry.path, state.st_size, state.st_mtime))
    return found
