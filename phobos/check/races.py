"""How the rules PH501 to PH507 word what the footprints show, and which conflicts another rule has explained."""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.rule import Context
from phobos.check.strides import strides_of
from phobos.check.walk import barriers_of, called_from, places_of, same_place, unique
from phobos.diagnostic import Related, Span, plural
from phobos.semantics import ir
from phobos.semantics.conflicts import Conflict, aliases_of, meetings_of
from phobos.semantics.footprints import Footprint, depends_on_constants
from phobos.semantics.program import Program, fact
from phobos.semantics.waits import waits_of

MOST_CONSTANTS = 12  # other values of constants that are looked at, each an analysis of its own


@fact
def order_of(program: Program) -> dict[ir.Statement, int]:
    """The place of each statement in the order of the text."""
    return {place.statement: number for number, place in enumerate(places_of(program))}


@fact
def told_of(program: Program) -> tuple[Conflict, ...]:
    """The conflicts within one tensor that are for the race rules to tell."""
    barriers = {barrier.tensor for barrier in barriers_of(program)}
    strided = {
        place.statement for stride in strides_of(program) for place in places_of(program) if stride.loop in place.inside
    }
    waited = {wait.tensor for wait in waits_of(program)}
    out: list[Conflict] = []
    for conflict in meetings_of(program):
        tensor = conflict.first.access.base
        if tensor in barriers:
            continue  # PH207
        if conflict.first.statement in strided and conflict.second.statement in strided:
            continue  # PH211 or PH212
        if tensor in waited and conflict.kind in ("race", "loop", "atomic"):
            continue  # PH508
        out.append(conflict)
    return tuple(out)


def told_aliases_of(program: Program) -> tuple[Conflict, ...]:
    """The pairs of tensors that are for PH505 to tell, none of them a barrier's."""
    barriers = {barrier.tensor for barrier in barriers_of(program)}
    return tuple(conflict for conflict in aliases_of(program) if conflict.first.access.base not in barriers)


def of_kind(program: Program, *kinds: str) -> Iterator[tuple[Conflict, Footprint, Footprint]]:
    """Conflicts of some kinds with the access later in the text first; one for each mistake, the gravest.

    What two statements do to one tensor is one mistake: `X[a] = X[b] + 1.0` both writes and reads.
    """
    order = order_of(program)
    seen: set[object] = set()
    for conflict in sorted(told_of(program), key=lambda one: (not one.certain, one.kind == "unknown")):
        first, second = conflict.first, conflict.second
        if conflict.kind not in kinds:
            if "unknown" in kinds and conflict.certain:
                seen.add((frozenset((first.statement, second.statement)), first.access.base))
            continue
        if _position(order, first) > _position(order, second):
            first, second = second, first
        place = _place(second.access.span)
        pair = frozenset((first.statement, second.statement)), first.access.base
        if (place in seen or pair in seen) and not conflict.limit:
            continue
        seen |= {place, pair}
        yield conflict, second, first


def everywhere(context: Context, kind: str) -> Iterator[tuple[Conflict, Footprint, Footprint, tuple[str, ...]]]:
    """Conflicts of a kind with their notes: at this program's constants, and the certain ones that only others have."""
    seen: set[tuple[object, ...]] = set()
    for conflict, later, earlier in of_kind(context.program, kind):
        seen.add(_place(later.access.span))
        yield conflict, later, earlier, witness_note(conflict)
    for told, program in elsewhere(context):
        for conflict, later, earlier in of_kind(program, kind):
            if conflict.certain and _place(later.access.span) not in seen:
                seen.add(_place(later.access.span))
                yield (
                    conflict,
                    later,
                    earlier,
                    (f"{told}; at the default constants the blocks keep apart", *witness_note(conflict)),
                )


def elsewhere(context: Context) -> Iterator[tuple[str, Program]]:
    """The kernel at other constants that can change what blocks do to one another, with the words that name them."""
    if context.at is None:
        return
    for constants in _other_constants(context.program):
        told = ", ".join(f"{name} = {number}" for name, number in constants.items())
        yield f"with {told}", context.at(constants)


def _other_constants(program: Program) -> Iterator[dict[str, int]]:
    """The search space, one constant at a time and its ends first, where other values can change the verdict."""
    if not depends_on_constants(program):
        return
    others: list[dict[str, int]] = []
    for constant in program.constants.values():
        others += [{constant.name: n} for n in dict.fromkeys(constant.choices) if n != constant.value]
    others.sort(key=lambda chosen: not any(n in _ends(program, name) for name, n in chosen.items()))
    yield from others[:MOST_CONSTANTS]


def _ends(program: Program, name: str) -> tuple[int, int]:
    choices = program.constants[name].choices
    return min(choices), max(choices)


def _place(span: Span) -> tuple[object, ...]:
    return span.owner, span.start, span.end


def _position(order: dict[ir.Statement, int], footprint: Footprint) -> tuple[int, int]:
    """Later in the text is greater; of one statement what is stored is first, as it is written."""
    return order.get(footprint.statement, -1), footprint.access.span.start


def does(footprint: Footprint) -> str:
    return {"load": "reads", "store": "writes", "atomic": "does an atomic on"}[footprint.kind]


def other_site(later: Footprint, earlier: Footprint, message: str) -> tuple[Related, ...]:
    """The other access, and how both came to be inlined."""
    own = () if same_place(later.access.span, earlier.access.span) else (Related(earlier.access.span, message),)
    calls = called_from(earlier.access.calls if own else ()) + called_from(later.access.calls)
    return own + unique((call.span, call.message) for call in calls)


def witness_note(conflict: Conflict) -> tuple[str, ...]:
    """The two blocks that meet, where the analysis found them."""
    witness = conflict.witness
    if witness is None:
        return (conflict.reason,) if conflict.reason else ()
    tensor = conflict.first.access.base.name
    cell = ", ".join(str(index) for index in witness.cell)
    sizes = "".join(f", {name} = {size}" for name, size in witness.sizes)
    one, other = witness.blocks
    return (
        f"for example with {plural(witness.grid, 'block')}{sizes}: "
        f"block {one} and block {other} both come to {tensor}[{cell}]",
    )


def has_barrier(program: Program) -> bool:
    return bool(barriers_of(program))
