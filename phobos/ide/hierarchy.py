"""Who calls whom: kernels and functions of a document."""

from __future__ import annotations

from phobos.ide.document import Document, Place, Range
from phobos.ide.references import subject_at
from phobos.language.builtins import BUILTINS
from phobos.syntax import tree
from phobos.value import value


@value
class Caller:
    """A kernel or function, with the calls that are asked about."""

    name: str
    is_kernel: bool
    range: Range
    name_range: Range
    calls: tuple[Range, ...]


def prepare(document: Document, offset: int) -> Caller | None:
    """The kernel or function named at `offset`."""
    subject = subject_at(document, offset)
    if subject is None or subject.kind not in ("kernel", "function"):
        return None
    return _caller(subject.place, ())


def incoming(document: Document, name: str) -> list[Caller]:
    """Who calls the function `name`, and where."""
    if _core(name) or document.function(name) is None:
        return []
    found = []
    for place in document.places():
        calls = tuple(place.range(u.start, u.end) for u in place.names.uses if u.role == "call" and u.name == name)
        caller = _caller(place, calls) if calls else None
        if caller is not None:
            found.append(caller)
    return found


def outgoing(document: Document, start: int) -> list[Caller]:
    """The functions that the item at `start` calls, with the calls in it."""
    place = document.place(start)
    if place is None:
        return []
    calls: dict[str, list[Range]] = {}
    for use in place.names.uses:
        if use.role == "call" and not _core(use.name):
            calls.setdefault(use.name, []).append(place.range(use.start, use.end))
    found = []
    for name, ranges in calls.items():
        function = document.function(name)
        caller = _caller(function, tuple(ranges)) if function is not None else None
        if caller is not None:
            found.append(caller)
    return found


def _caller(place: Place, calls: tuple[Range, ...]) -> Caller | None:
    node = place.item.node
    if node is None or not node.name.text:
        return None
    return Caller(
        node.name.text, isinstance(node, tree.Kernel), place.range(node.start, node.end),
        place.range(node.name.start, node.name.end), calls,
    )  # fmt: skip


def _core(name: str) -> bool:
    return name in BUILTINS and BUILTINS[name].core
