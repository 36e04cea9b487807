"""What worker processes do: check files, list names, compile. Each job takes and gives plain values.

No pygls and no lsprotocol here: a worker starts as quickly as `phobos check`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from phobos.diagnostic import Diagnostic
from phobos.errors import PhobosError


class JobError(Exception):
    """A job that cannot be done; the message is for the user."""


def check(
    path: str, text: str, override: str | None, targets: tuple[str, ...]
) -> tuple[Diagnostic, ...]:
    """The findings of one text under the name `path`."""
    from phobos.lsp.checking import Configurations
    from phobos.lsp.checking import check as findings

    return findings(path, text, Configurations().rules(path, override), targets)


Checked = tuple[str, str, str, tuple[Diagnostic, ...]]
"""Path, text, result id, findings."""


def check_files(
    paths: Sequence[str], override: str | None, targets: tuple[str, ...]
) -> list[Checked]:
    """Findings of files as they stand on disk; one that cannot be read is left out."""
    from phobos.check.project import read
    from phobos.lsp.checking import Configurations, result_id
    from phobos.lsp.checking import check as findings

    configurations = Configurations()
    found: list[Checked] = []
    for path in paths:
        try:
            text = read(path).text
        except PhobosError:
            continue
        rules = configurations.rules(path, override)
        result = result_id(text, rules, repr(targets))
        found.append((path, text, result, findings(path, text, rules, targets)))
    return found


def find(folders: Sequence[str]) -> list[tuple[str, int, int]]:
    """The `.ph` files below folders as `phobos check` finds them, with modification time and size."""
    from phobos.check import configuration
    from phobos.check.project import find as files

    configuration.forget()
    found = []
    for folder in folders:
        try:
            names = files([folder])
        except PhobosError:
            continue
        for name in names:
            try:
                status = os.stat(name)
            except OSError:
                continue
            found.append((os.path.abspath(name), status.st_mtime_ns, status.st_size))
    return found


Named = tuple[str, str, str, tuple[int, int], tuple[int, int]]
_names: dict[str, tuple[tuple[int, int], list[Named]]] = {}


def names(folders: Sequence[str], encoding: str) -> list[Named]:
    """Kernels and functions below folders: path, name, kind, and where the name stands (line and column)."""
    from phobos.check.project import read
    from phobos.syntax import parse, tree
    from phobos.syntax.lines import LineIndex

    found: list[Named] = []
    for path, modified, size in find(folders):
        kept = _names.get(path)
        if kept is None or kept[0] != (modified, size):
            mine: list[Named] = []
            try:
                text = read(path).text
            except PhobosError:
                continue
            lines = LineIndex(text)
            for start, item in parse(text).items:
                node = item.node
                if node is not None and node.name.text:
                    kind = "kernel" if isinstance(node, tree.Kernel) else "function"
                    first = lines.position(start + node.name.start, encoding)  # type: ignore[arg-type]
                    last = lines.position(start + node.name.end, encoding)  # type: ignore[arg-type]
                    mine.append((path, node.name.text, kind, first, last))
            kept = _names[path] = ((modified, size), mine)
        found.extend(kept[1])
    return found
