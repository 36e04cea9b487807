"""How the rules PH203, PH204, PH205, PH215 and PH506 word what the uniformity analysis found."""

from __future__ import annotations

from collections.abc import Iterator

from phobos.check.walk import called_from, unique
from phobos.diagnostic import Related
from phobos.semantics.divergences import Divergence
from phobos.semantics.program import Program
from phobos.semantics.uniformity import uniformity_of


def divergences(program: Program, kind: str) -> Iterator[Divergence]:
    """Those of a kind that rest on something, once for each call and call chain."""
    return (found for found in uniformity_of(program).divergences if found.kind == kind and found.ground != "none")


def unfounded(program: Program) -> Iterator[Divergence]:
    """Those of which neither a witness nor a proof of the contrary was found."""
    return (found for found in uniformity_of(program).divergences if found.ground == "none")


def chain(divergence: Divergence, construct: str) -> tuple[Related, ...]:
    """Always in this order: the calls that lead to the barrier, the construct, what makes it vary."""
    calls = called_from(divergence.barrier.calls)
    own = unique([
        (divergence.construct, construct),
        *((origin.span, origin.message) for origin in divergence.chain),
    ])  # fmt: skip
    return calls + own
