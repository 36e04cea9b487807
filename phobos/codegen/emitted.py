"""A kernel as spelled: its text, and all that a launch must know of it. It can be kept, and read back as it was."""

from __future__ import annotations

import json
from typing import Literal

from phobos.diagnostic import Span
from phobos.value import value


@value
class Site:
    """A place in the source that a stopped grid can name.

    `what` is "barrier", "loop", "aligned", "bounds" or "step", or "phase": the barrier before a phase of kernels. An
    instrument may ask for more: "block" is the work of one virtual block, and "load", "store" and "atomic" are accesses
    to the tensor that is the subject.
    `root` is the kernel of the launch that it belongs to.
    """

    what: str
    span: Span
    calls: tuple[Span, ...]
    subject: str  # the promise, tensor or loop in words
    root: int = 0


@value
class Argument:
    """One argument of the kernel. `name` is the tensor, scalar, dim, or pitched or mapped tensor, or "ROOT AXIS" of a
    grid; `box` the rows and columns that one bulk copy through a map moves. A "buffer" is what the instrument of that
    name writes to, a "shadow" is of a tensor's cells, "cells" how many they are, and "races" what all shadows have in
    common."""

    kind: Literal[
        "tensor", "scalar", "dim", "pitch", "map", "grid", "word", "report", "timeout", "groups", "buffer",
        "shadow", "cells", "races",
    ]  # fmt: skip
    name: str
    ctype: str
    box: tuple[int, int] = (0, 0)


@value
class Emitted:
    """`symbol` is the kernel's name in the module. `wide` gives the alignment in bytes each tensor's base must have.

    `cooperative`: its blocks may wait for each other. `watched`: it takes word, report and timeout.
    """

    text: str
    symbol: str
    arguments: tuple[Argument, ...]
    sites: tuple[Site, ...]
    threads: int
    dynamic_shared_bytes: int
    static_shared_bytes: int
    wide: dict[str, int]
    cooperative: bool
    watched: bool


def to_bytes(emitted: Emitted) -> bytes:
    """The form that is kept."""
    return json.dumps(
        {
            "text": emitted.text,
            "symbol": emitted.symbol,
            "arguments": [[a.kind, a.name, a.ctype, a.box] for a in emitted.arguments],
            "sites": [[s.what, _span(s.span), [_span(c) for c in s.calls], s.subject, s.root] for s in emitted.sites],
            "threads": emitted.threads,
            "dynamic": emitted.dynamic_shared_bytes,
            "static": emitted.static_shared_bytes,
            "wide": emitted.wide,
            "cooperative": emitted.cooperative,
            "watched": emitted.watched,
        }
    ).encode()


def from_bytes(data: bytes) -> Emitted:
    """What `to_bytes` made. Raises ValueError, KeyError or TypeError for anything else."""
    kept = json.loads(data)
    return Emitted(
        kept["text"],
        kept["symbol"],
        tuple(Argument(kind, name, ctype, (box[0], box[1])) for kind, name, ctype, box in kept["arguments"]),
        tuple(
            Site(what, Span(*span), tuple(Span(*call) for call in calls), subject, root)
            for what, span, calls, subject, root in kept["sites"]
        ),
        kept["threads"],
        kept["dynamic"],
        kept["static"],
        kept["wide"],
        kept["cooperative"],
        kept["watched"],
    )


def _span(span: Span) -> list[object]:
    return [span.owner, span.start, span.end]
