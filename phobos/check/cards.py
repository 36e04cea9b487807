"""What a kernel needs of a card and what the card holds, for the rules that know a target."""

from __future__ import annotations

from phobos.semantics.program import Program
from phobos.value import value


@value
class Residency:
    """`resident` blocks at once on the whole card (None: the target is an architecture, not a card)."""

    per_multiprocessor: int
    multiprocessors: int | None
    resident: int | None
    limiter: str
    need: str


def residency(program: Program, target: str) -> Residency | None:
    """How many blocks of a kernel a target holds. Threads and shared memory are counted."""
    from phobos.codegen.cards import STATIC_SHARED_BYTES, occupancy
    from phobos.codegen.cards import target as card

    known = card(target)
    shared = shared_bytes(program)
    threads = program.launch.threads
    need = f"{threads} threads" + (f" and {shared} bytes of shared memory" if shared else "")
    if shared > STATIC_SHARED_BYTES and "dynshared" not in program.flags:
        return None  # PH402 says so
    found = occupancy(known.limits, registers=0, threads=threads, shared_bytes=shared)
    sm = known.multiprocessors
    resident = None if sm is None else sm * found.ctas_per_sm
    return Residency(found.ctas_per_sm, sm, resident, found.limiter, need)


def most_resident(program: Program, target: str) -> int | None:
    """An upper bound of the blocks that a card can hold at once."""
    found = residency(program, target)
    return None if found is None else found.resident


def shared_bytes(program: Program) -> int:
    """Shared bytes of one block: its tiles where they take the most."""
    from phobos.check.rules.ph402_shared_memory_exceeded import most_live

    return most_live(program).bytes
