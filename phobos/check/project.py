"""Which files are meant and what stands in them: walking, `.gitignore`, decoding, and writing in one step."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator

from phobos.check.configuration import Configuration, matches, of_file, relative_to
from phobos.errors import InputError
from phobos.files import contents, save
from phobos.syntax.lines import line_at
from phobos.value import value


@value
class Source:
    """One file to check: its name as given, its text, and whether it began with a byte order mark."""

    name: str
    text: str
    bom: bool = False


def decode(name: str, data: bytes) -> Source:
    """The text of a `.ph` file. Raises InputError where it is not text."""
    bom = data.startswith(b"\xef\xbb\xbf")
    try:
        text = data[3:].decode("utf-8") if bom else data.decode("utf-8")
    except UnicodeDecodeError as error:
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise InputError(f"{name}:1: is UTF-16 text, and a .ph file is UTF-8: save it as that") from None
        offset = error.start + 3 * bom
        line = line_at(data[:offset].decode("utf-8"), offset)
        raise InputError(
            f"{name}:{line}: not UTF-8 text (byte 0x{data[offset]:02x} at offset {offset}); a .ph file is UTF-8"
        ) from None
    if "\0" in text:
        line = line_at(text, text.index("\0"))
        raise InputError(f"{name}:{line}: not a text file (it holds a NUL byte)")
    return Source(name, text, bom)


def refuse_python(name: str) -> None:
    """Raises InputError for a file of Python."""
    if name.endswith((".py", ".pyi")) and not os.path.isdir(name):
        raise InputError(f"{name}: kernels in Python spelling are not read; phobos reads .ph files only")


def read(name: str) -> Source:
    """The file called `name`. Raises InputError with the reason, in the user's terms."""
    refuse_python(name)
    try:
        data = contents(name)
    except IsADirectoryError:
        raise InputError(f"{name}: is a directory, a .ph file is needed") from None
    except FileNotFoundError:
        raise InputError(f"{name}: {_missing(name, 'no such file')}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return decode(name, data)


def read_stdin(name: str) -> Source:
    """Standard input, under the name it is to be reported by."""
    refuse_python(name)
    if sys.stdin is None:
        raise InputError("standard input (`-`) is closed: send a file there, or name one")
    try:
        return decode(name, sys.stdin.buffer.read())
    except OSError as error:
        raise InputError(f"standard input (`-`) cannot be read: {error.strerror}") from None


def _missing(name: str, said: str) -> str:
    """Why there is nothing of that name; `said` where it is simply not there."""
    if os.path.islink(name):
        return f"is a link to {os.readlink(name)}, which does not exist"
    if name == "-":
        return "standard input is read by `phobos check` and `phobos fmt`; name a file here (/dev/stdin is one)"
    return said + _near_file(name)


def _near_file(name: str) -> str:
    from difflib import get_close_matches

    directory, base = os.path.split(name)
    try:
        names = [entry for entry in os.listdir(directory or ".") if entry.endswith(".ph")]
    except OSError:
        return ""
    near = [name for name in get_close_matches(base, names, 2, 0.7) if name != base]  # itself: a link to nothing
    return f"; did you mean {os.path.join(directory, near[0])}?" if near else ""


def write(name: str, contents: str | bytes, bom: bool = False) -> None:
    """Replace a file's contents in one step: after Ctrl-C it holds the old text or the new. Raises InputError.

    A byte of a file name that is no text is written as an escape that JSON reads back.
    """
    data = contents if isinstance(contents, bytes) else contents.encode("utf-8", "backslashreplace")
    save(name, lambda stream: stream.write((b"\xef\xbb\xbf" if bom else b"") + data))


def find(paths: Iterable[str], configuration_of: Callable[[str], Configuration] = of_file) -> list[str]:
    """The `.ph` files that `paths` mean, each once, in order of name. A file that is named is taken as it is."""
    found: dict[str, str] = {}
    for path in paths:
        refuse_python(path)
        if os.path.isdir(path):
            names: Iterable[str] = walk(path, configuration_of)
        elif os.path.exists(path):
            names = (path,)
        else:
            raise InputError(f"{path}: {_missing(path, 'no such file or directory')}")
        for name in names:
            found.setdefault(os.path.realpath(name), name)
    return sorted(found.values(), key=lambda name: name.split(os.sep))


def walk(top: str, configuration_of: Callable[[str], Configuration] = of_file) -> Iterator[str]:
    """The `.ph` files below a directory that neither `.gitignore` nor `exclude` leaves out."""
    ignored = _Ignored(top)
    for directory, subdirectories, names in os.walk(top):
        ignored.enter(directory)
        subdirectories[:] = sorted(
            name
            for name in subdirectories
            if not name.startswith(".") and name not in ("node_modules", "__pycache__")
            and not ignored.skips(os.path.join(directory, name), folder=True)
        )  # fmt: skip
        for name in sorted(names):
            path = os.path.join(directory, name)
            if not name.endswith(".ph") or name.startswith(".") or ignored.skips(path, folder=False):
                continue  # a hidden one is an editor's lock or a copier's note, no kernel
            if os.path.exists(path) and not os.path.isfile(path):  # a pipe or socket: reading one may never end
                continue
            configuration = configuration_of(path)
            if configuration.exclude:
                relative = relative_to(path, configuration.root)
                if any(matches(relative, glob) for glob in configuration.exclude):
                    continue
            yield os.path.normpath(path) if not os.path.isabs(path) else path


class _Ignored:
    """The `.gitignore` files that apply below a directory, those of its repository above it included."""

    def __init__(self, top: str) -> None:
        self.specs: dict[str, tuple[object, object]] = {}
        absolute = os.path.abspath(top)
        above: list[str] = []
        directory = absolute
        while True:
            above.append(directory)
            if os.path.exists(os.path.join(directory, ".git")):
                break
            parent = os.path.dirname(directory)
            if parent == directory:  # no repository: only what stands at or below `top` counts
                above = [absolute]
                break
            directory = parent
        for directory in above:
            self.enter(directory)

    def enter(self, directory: str) -> None:
        directory = os.path.abspath(directory)
        path = os.path.join(directory, ".gitignore")
        if directory in self.specs or not os.path.isfile(path):
            return
        try:
            self.specs[directory] = _patterns(contents(path).decode("utf-8-sig", "replace"))
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from None

    def skips(self, path: str, folder: bool) -> bool:
        if not self.specs:
            return False
        path = os.path.abspath(path)
        directory = os.path.dirname(path)
        while True:  # the nearest file that has an opinion decides
            spec = self.specs.get(directory)
            if spec is not None:
                name = os.path.relpath(path, directory).replace(os.sep, "/")
                opinion = spec[folder].check_file(name).include  # type: ignore[attr-defined]
                if opinion is not None:
                    return bool(opinion)
            parent = os.path.dirname(directory)
            if parent == directory:
                return False
            directory = parent


def _patterns(text: str) -> tuple[object, object]:
    """What a `.gitignore` says of files, and of folders. A line that git makes nothing of, such as a lone `!`, is none.

    The library looks at a path and at the folders above it. Who walks asks about each folder on its own, for which
    `build/` says what `build` says.
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return _spec(lines), _spec([re.sub(r"/ *\Z", "", line) for line in lines])


def _spec(lines: list[str]) -> object:
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return GitIgnoreSpec.from_lines(line for line in lines if _is_pattern(line))


def _is_pattern(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
