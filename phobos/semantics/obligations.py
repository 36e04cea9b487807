"""Everything a kernel needs to be true, once, each with its place, its reason and its state.

The checker reports the refuted and the doubtful, the plan decides those left to the launch, guards stand for
those left to the device, hover shows them, the reference runtime turns a broken one into its fault.
"""

from __future__ import annotations

from typing import Literal

from phobos.diagnostic import Span
from phobos.semantics import ir
from phobos.semantics.poly import Poly
from phobos.semantics.program import Program, Promise, fact
from phobos.value import value

Kind = Literal[
    "one-dimensional-grid", "resident", "same-barriers", "barrier-tensor", "aligned", "no-overlap",
    "grid-at-most", "grid-constant", "extent-agrees", "index-fits", "uniform",
]
State = Literal["proved", "refuted", "launch", "device", "doubtful"]


@value
class Obligation:
    """`reason` is a sentence for the host's author ("every extent named N must be a multiple of 64").

    `subject` is what it is about: a `Promise`, `Tensor`, `CellCap`, `Barrier`, `Access`, a pair of tensors, ...
    `bound` is the number that a "grid-at-most" or "aligned" obligation speaks of.
    """

    kind: Kind
    state: State
    span: Span
    calls: tuple[Span, ...]
    reason: str
    subject: object
    bound: Poly | None


@fact
def obligations_of(program: Program) -> tuple[Obligation, ...]:
    raise NotImplementedError


__all__ = ["Kind", "Obligation", "Promise", "State", "ir", "obligations_of"]
