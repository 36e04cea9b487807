"""A deadlock told as a story: who waits where, who has left and by which way, who goes round in vain.

The codes and the advice are those that the checker has for the same mistake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from phobos.diagnostic import Span
from phobos.runtime.reference.code import BarrierPlace
from phobos.runtime.reference.faults import Fault, Site, block_list, have, verb
from phobos.semantics import ir
from phobos.semantics.levels import Level
from phobos.semantics.program import Program
from phobos.semantics.uniformity import uniformity_of

_HELP = {
    "PH203": "move the barrier out of the `if`, so that every block passes it",
    "PH204": "let every block pass the barrier before any of them leaves",
    "PH205": "give every block the same number of rounds (round the count up and mask the surplus), or move the "
    "barrier behind the loop",
    "PH215": "two calls are two barriers: hoist them into one behind the `if`",
    "PH508": "make sure that a block which can run ends the wait; blocks wait for each other through atomics, and only "
    "in a `@persistent` grid do all of them run at once",
}


def explain(
    program: Program,
    waiting: Mapping[int, Sequence[int]],
    barriers: Mapping[int, BarrierPlace],
    left: Sequence[tuple[Sequence[int], ir.Statement | None]],
    spinning: Mapping[ir.While, Sequence[int]],
    unstarted: Sequence[int],
) -> Fault:
    """`waiting` maps the instruction of a barrier to the blocks that wait there; `left` pairs blocks with the
    statement that ended them (None: the end of the kernel)."""
    gone = sorted(block for blocks, _ in left for block in blocks)
    places = sorted(waiting, key=lambda at: barriers[at].statement.span.start)
    if not places:
        return _spin_only(spinning, gone, unstarted)
    first = barriers[places[0]]
    sites: list[Site] = []
    for at in places[1:]:
        blocks = waiting[at]
        sites.append(_at_barrier(barriers[at], f"{block_list(blocks)} {verb(blocks, 'wait')} here instead"))
    here = waiting[places[0]]
    code, construct = _verdict(program, [barriers[at] for at in places], left)
    who = f"{block_list(here)} {verb(here, 'wait')} at this barrier"
    clauses: list[str] = []
    if len(places) > 1:
        others = sorted(block for at in places[1:] for block in waiting[at])
        clauses.append(f"{block_list(others)} {verb(others, 'wait')} at another")
    if gone:
        clauses.append(f"{block_list(gone)} {have(gone)} left the kernel")
    for blocks in spinning.values():
        clauses.append(f"{block_list(blocks)} {verb(blocks, 'go')} round a `while` that nobody can end")
    if unstarted:
        clauses.append(f"{block_list(unstarted)} {have(unstarted)} never started")
    message = f"deadlock: {who}" + (", but " + " and ".join(clauses) if clauses else "")
    if construct is not None:
        sites.append(Site(_keyword(construct), construct.calls, _about(construct, code)))
    for blocks, statement in left:
        if statement is not None:
            sites.append(Site(statement.span, statement.calls, f"{block_list(blocks)} left here"))
    for loop, blocks in spinning.items():
        sites.append(Site(loop.keyword, loop.calls, f"{block_list(blocks)} {verb(blocks, 'go')} round here"))
    involved = sorted({block for blocks in waiting.values() for block in blocks} | set(gone))
    return Fault(
        "deadlock",
        message,
        _at_barrier(first, f"{block_list(here)} {verb(here, 'wait')} here"),
        blocks=involved,
        others=sites,
        help=_HELP[code],
        code=code,
    )


def _spin_only(spinning: Mapping[ir.While, Sequence[int]], gone: Sequence[int], unstarted: Sequence[int]) -> Fault:
    loops = sorted(spinning, key=lambda loop: loop.keyword.start)
    blocks = sorted(block for held in spinning.values() for block in held)
    clauses = ["no block that can run ends the wait"]
    if gone:
        clauses.append(f"{block_list(gone)} {have(gone)} left the kernel")
    if unstarted:
        clauses.append(f"{block_list(unstarted)} {have(unstarted)} never started")
    sites = [
        Site(loop.keyword, loop.calls, f"{block_list(spinning[loop])} {verb(spinning[loop], 'go')} round here")
        for loop in loops
    ]
    return Fault(
        "deadlock",
        f"deadlock: {block_list(blocks)} {verb(blocks, 'go')} round a `while` for ever: " + ", and ".join(clauses),
        sites[0],
        blocks=blocks,
        others=sites[1:],
        help=_HELP["PH508"],
        code="PH508",
    )


def _at_barrier(place: BarrierPlace, message: str) -> Site:
    return Site(place.statement.span, place.statement.calls, message)


def _keyword(construct: ir.If | ir.For | ir.While) -> Span:
    return construct.keyword


def _about(construct: ir.If | ir.For | ir.While, code: str) -> str:
    match construct:
        case ir.If():
            return "blocks part at this `if`"
        case ir.For():
            return "blocks go round this `for` a different number of times" if code == "PH205" else "in this `for`"
    return "blocks go round this `while` a different number of times" if code == "PH205" else "in this `while`"


def _verdict(
    program: Program, places: Sequence[BarrierPlace], left: Sequence[tuple[Sequence[int], ir.Statement | None]]
) -> tuple[str, ir.If | ir.For | ir.While | None]:
    """The checker's code for what happened, and the construct to blame: the outermost that tells blocks apart."""
    if len(places) > 1:
        shared = [c for c in places[0].enclosing if all(c in other.enclosing for other in places[1:])]
        for construct in reversed(shared):
            if isinstance(construct, ir.If):
                return "PH215", construct
    for construct in places[0].enclosing:
        if _varies(program, construct):
            return ("PH203" if isinstance(construct, ir.If) else "PH205"), construct
    if any(statement is not None for _, statement in left):
        return "PH204", None
    inner = places[0].enclosing[-1] if places[0].enclosing else None
    if inner is None:
        return "PH204", None
    return ("PH203" if isinstance(inner, ir.If) else "PH205"), inner


def _varies(program: Program, construct: ir.If | ir.For | ir.While) -> bool:
    match construct:
        case ir.If(condition=condition) | ir.While(condition=condition):
            deciding = [condition]
        case ir.For():
            deciding = [construct.lo, construct.hi, construct.step]
    uniformity = uniformity_of(program)
    return any(uniformity.level(expression) >= Level.VARYING for expression in deciding)


__all__ = ["explain"]
