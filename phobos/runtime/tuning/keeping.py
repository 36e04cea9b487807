"""What tuning leaves on disk: rows, so that a run can be gone on with, and winners, which later launches use.

A file of winners is named by the kernel (its words and those of the functions it inlines, so that a comment changes
nothing) and by the card; in it stand winners by size class, by the constants that were held, and by the caller's
grid. A file of rows belongs to one tuning: kernel, card, exact sizes and arguments, and this very version of the code
that makes kernels. Files are written under another name and renamed: after Ctrl-C they are whole or as before.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from phobos.codegen import cache
from phobos.files import held, only_ours
from phobos.runtime.device import number_of
from phobos.runtime.tuning.reading import NOT_OURS, document, extents, field, whole_numbers
from phobos.runtime.tuning.space import Variant, variant_of
from phobos.semantics.multiples import MULTIPLE
from phobos.syntax.tokens import END, tokenize
from phobos.value import value

if TYPE_CHECKING:
    from phobos.runtime.tuning.judging import Row
    from phobos.runtime.tuning.problem import Problem
    from phobos.semantics.module import Module

T = TypeVar("T")

VERSION = 1
MOST_FILES = 500  # of rows; the ones used longest ago go first


@value
class Winner:
    """The fastest variant of a kernel on a card, for sizes of a class.

    `held` are the constants that were not tuned, `grid` what the caller had fixed. `untuned_ms` is what it takes
    without tuning, None where that could not be measured. `sizes` are the extents it was timed at.
    """

    variant: Variant
    held: dict[str, int]
    grid: tuple[int, ...] | None
    sizes: dict[str, int]
    elapsed_ms: float
    untuned_ms: float | None
    date: str

    def as_dict(self) -> dict[str, Any]:
        return {
            "variant": self.variant.as_dict(), "held": self.held, "grid": None if self.grid is None else
            list(self.grid), "sizes": self.sizes, "elapsed_ms": self.elapsed_ms, "untuned_ms": self.untuned_ms,
            "date": self.date,
        }  # fmt: skip


def winner_of(kept: Mapping[str, Any]) -> Winner:
    """The inverse of `as_dict`. Raises what is `NOT_OURS` where it is none."""
    return Winner(
        variant_of(kept["variant"]), whole_numbers(kept, "held"), extents(kept, "grid"), whole_numbers(kept, "sizes"),
        field(kept, "elapsed_ms", float, int), field(kept, "untuned_ms", float, int, None), field(kept, "date", str),
    )  # fmt: skip


def size_class(sizes: Mapping[str, int]) -> str:
    """`N in (2^19, 2^20], x16`: for each extent the powers of two around it, and whether code is specialised on it."""
    parts = []
    for name, extent in sorted(sizes.items()):
        power = max(extent - 1, 0).bit_length()
        around = f"{name} in (2^{power - 1}, 2^{power}]" if power else f"{name} = {extent}"
        parts.append(around + (f", x{MULTIPLE}" if extent % MULTIPLE == 0 else ""))
    return "; ".join(parts)


def kernel_key(module: Module, name: str, order: str = "") -> str:
    """Names a kernel (or the fusion `a+b`, in an `order`) by its words, and those of all functions that it inlines."""
    digest = hashlib.sha256(order.encode() if "+" in name else b"")
    for part in name.split("+"):
        unit = module.kernels[part]
        texts = [unit.item.text, *(module.functions[name].item.text for name in sorted(unit.program.inlined))]
        for text in texts:
            tokens = tokenize(text)
            for kind, (_, _, word) in zip(tokens.kinds, tokens.list, strict=True):
                digest.update((END if kind == END else word).encode(errors="surrogatepass") + b"\0")
            digest.update(b"\1")
    return digest.hexdigest()


def card(device: str) -> str:
    """What is timed, in words: two cards of which this differs are two cards."""
    if device == "cpu":
        import platform

        return f"the reference runtime on {platform.machine()} with {os.cpu_count()} cores"
    from phobos.runtime.cuda import driver

    number = number_of(device)
    with driver.on(number):
        return f"{driver.device_name(number)} with {driver.multiprocessors(number)} multiprocessors"


# --- winners --------------------------------------------------------------------------------------------------


def folder() -> Path:
    return cache.root() / "tuned"


def _winners_file(kernel: str, device_card: str) -> Path:
    return folder() / f"{kernel[:32]}-{hashlib.sha256(device_card.encode()).hexdigest()[:16]}.json"


def winners(kernel: str, device_card: str) -> tuple[Winner, ...]:
    """All that is kept of a kernel (by its key) on a card, the newest first."""
    kept = _read(_winners_file(kernel, device_card))
    return tuple(_listed(kept, "winners", winner_of)) if kept.get("card") == device_card else ()


def keep_winner(kernel: str, name: str, device_card: str, winner: Winner) -> Path | None:
    """Keep a winner instead of the one of its class; the file, or None where it cannot be written."""
    ours = size_class(winner.sizes), winner.held, winner.grid
    where = _winners_file(kernel, device_card)
    try:
        if not only_ours(str(cache.private_folder(where.parent))):
            return None
        with held(str(where.parent / "lock")):  # another tuning may end just now
            others = [w for w in winners(kernel, device_card) if (size_class(w.sizes), w.held, w.grid) != ours]
            whole = {"version": VERSION, "kernel": name, "card": device_card,
                     "winners": [w.as_dict() for w in (winner, *others)]}  # fmt: skip
            return where if _write(where, whole) else None
    except OSError:
        return None


# --- rows -----------------------------------------------------------------------------------------------------


class Rows:
    """The rows of one tuning, kept as they come."""

    def __init__(self, key: str, about: dict[str, Any]) -> None:
        self._file = folder() / "rows" / f"{key}.json"
        self._about = about
        self._rows: dict[str, Row] = {}

    @property
    def kept(self) -> dict[str, Row]:
        """By the label of their variant."""
        return dict(self._rows)

    def read(self) -> None:
        from phobos.runtime.tuning.judging import row_of

        self._rows.update((row.variant.label, row) for row in _listed(_read(self._file), "rows", row_of))

    def add(self, row: Row) -> None:
        self._rows[row.variant.label] = row
        rows = [one.as_dict() for one in self._rows.values()]
        if _write(self._file, {"version": VERSION, **self._about, "rows": rows}) and len(rows) == 1:
            _bound(self._file.parent)


def rows_of(problem: Problem, kernel: str, device_card: str, *, fresh: bool = False) -> Rows:
    """The rows of a tuning that are on disk; none with `fresh`."""
    digest = hashlib.sha256()
    about = {
        "kernel": problem.kernel, "card": device_card, "sizes": problem.dims, "names": problem.names,
        "held": problem.held, "grid": problem.grid, "resident": problem.resident, "seed": problem.seed,
        "scratch": sorted(problem.scratch),
    }  # fmt: skip
    for part in (kernel, json.dumps(about, sort_keys=True, default=str), cache.package()):
        digest.update(part.encode() + b"\0")
    for name, array in sorted(problem.arrays.items()):
        digest.update(name.encode() + str(array.shape).encode() + array.tobytes())
    rows = Rows(digest.hexdigest()[:32], about)
    if not fresh:
        rows.read()
    return rows


# --- all of it ------------------------------------------------------------------------------------------------


@value
class Kept:
    """What the folder holds."""

    folder: str
    winners: int
    files: int


def kept() -> Kept:
    """Where winners are kept, how many there are, and in how many files."""
    count = 0
    files = list(_files())
    for path in files:
        if path.parent == folder():
            count += len(_listed(_read(path), "winners", winner_of))
    return Kept(str(folder()), count, len(files))


def clear() -> int:
    """Remove winners and rows; gives the number of files that went."""
    return cache.removed(_files())


def _files() -> Iterable[Path]:
    for where in (folder(), folder() / "rows"):
        with contextlib.suppress(OSError):
            yield from (path for path in where.iterdir() if path.suffix == ".json")


def _read(path: Path) -> dict[str, Any]:
    """{} for what is not there, or is not ours."""
    try:
        found = document(path.read_bytes() if only_ours(str(path.parent)) else b"{}")
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and found.get("version") == VERSION else {}


def _listed(kept: Mapping[str, Any], key: str, known: Callable[[Mapping[str, Any]], T]) -> list[T]:
    """The records of a list, without what is none."""
    found = []
    for one in kept[key] if isinstance(kept.get(key), list) else ():
        with contextlib.suppress(*NOT_OURS):
            found.append(known(one))
    return found


def _write(path: Path, what: dict[str, Any]) -> bool:
    return cache.keep(path, json.dumps(what, indent=1).encode("utf-8"))


def _bound(where: Path) -> None:
    found = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(where):
            with contextlib.suppress(OSError):
                found.append((entry.stat().st_mtime, entry.path))
    cache.removed(path for _, path in sorted(found, reverse=True)[MOST_FILES:])
