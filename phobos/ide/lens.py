"""What stands over each kernel: how many blocks the chosen cards hold of it, its grid, and what can be done with it."""

from __future__ import annotations

from typing import Literal

from phobos.check.cards import Residency, residency
from phobos.check.rule import Context
from phobos.codegen.cards import UnknownTarget, target
from phobos.ide.document import Document, Range
from phobos.ide.facts import axis_text
from phobos.ide.keeping import kept
from phobos.semantics.grid import grid_of
from phobos.semantics.program import Program
from phobos.syntax import tree
from phobos.value import value


@value
class Resources:
    """Of a kernel compiled for a card: CTAs per multiprocessor, what limits them, and what each takes."""

    card: str
    ctas_per_sm: int
    limiter: str
    registers: int
    spilled_bytes: int
    shared_bytes: int


@value
class Lens:
    """`action` says what a click does: "run", "cuda", "cards"."""

    range: Range
    title: str
    action: Literal["run", "cuda", "cards"]
    kernel: str


def lenses(document: Document, cards: tuple[str, ...], known: dict[str, tuple[Resources, ...]]) -> list[Lens]:
    """Three over each kernel. `known` holds, by kernel, what was compiled; the rest is estimated and says so."""
    found: list[Lens] = []
    for place in document.places():
        node = place.item.node
        if not isinstance(node, tree.Kernel) or not node.name.text:
            continue
        program = document.program(place)
        range = place.range(node.name.start, node.name.end)
        name = node.name.text
        if program is not None:
            compiled = {r.card: r for r in known.get(name, ())}
            for card in cards:
                found.append(Lens(range, _title(program, card, compiled.get(card)), "cards", name))
        found.append(Lens(range, "run", "run", name))
        found.append(Lens(range, "show CUDA", "cuda", name))
    return found


@kept
def _estimate(program: Program, card: str) -> Residency | None:
    return residency(Context(program), card)


def _title(program: Program, card: str, compiled: Resources | None) -> str:
    try:
        known = target(card)
    except UnknownTarget:
        return f"{card}: no such card"
    if compiled is not None:
        ctas, limiter, mark = compiled.ctas_per_sm, compiled.limiter, ""
    else:
        estimate = _estimate(program, card)
        if estimate is None:
            return f"{card}: needs more shared memory than a block may have"
        ctas, limiter, mark = estimate.per_multiprocessor, estimate.limiter, "≤"
    parts = [f"{card}: {mark}{ctas} CTAs/SM ({limiter})"]
    if grid_of(program).persistent:
        if known.multiprocessors is not None:
            parts.append(f"grid {mark}{ctas * known.multiprocessors}")
    else:
        axes = [axis_text(program, axis) for axis in range(3)]
        while len(axes) > 1 and axes[-1] == "1":
            axes.pop()
        parts.append(f"grid {' x '.join(axes)}")
    if compiled is not None:
        parts.append(f"{compiled.registers} registers")
        if compiled.spilled_bytes:
            parts.append(f"{compiled.spilled_bytes} bytes spilled")
    else:
        parts.append("estimate")
    return ", ".join(parts)
