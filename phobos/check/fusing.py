"""What stands against running several kernels as one launch, as findings of the file.

The kernels' own findings are the rules' business. Here is only what they are together: parameters that clash, kernels
that share no launch with others, and an order that nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from phobos.check.registry import worded
from phobos.diagnostic import Diagnostic, Related
from phobos.semantics.module import Module
from phobos.semantics.orders import order_called
from phobos.semantics.program import Problem, Program

if TYPE_CHECKING:
    from phobos.semantics.fusion import Fusion, NotFusible


def fusion_findings(module: Module, kernel: str, order: str) -> list[Diagnostic]:
    """The findings of `a+b`; none where a kernel of it is not in the file, or has errors of its own."""
    from phobos.semantics.fusion import FusedProgram, NotFusible, fused

    names = kernel.split("+")
    units = [module.kernels[name] for name in names if name in module.kernels]
    if len(units) < len(names) or any(unit.item.problems or _has_errors(unit.program) for unit in units):
        return []
    try:
        program = fused(module, names, order_called(order)).program
    except NotFusible as error:
        return against(error)
    return [worded(problem) for problem in _advice(program.fusion)] if isinstance(program, FusedProgram) else []


def _advice(fusion: Fusion) -> Iterator[Problem]:
    """What holds only by the caller's word, or by what the launch looks at."""
    for pair in fusion.together:
        found = pair.relation
        if found.verdict == "unknown" and found.first is not None and found.second is not None:
            one, other = fusion.programs[pair.first].name, fusion.programs[pair.second].name
            yield Problem(
                "PH506", "info",
                f"that `{other}` need not wait for `{one}` is taken on your word: {found.reason}",
                found.second.span, f"`{other}` {found.second.does} `{found.second.tensor}` here",
                (Related(found.first.span, f"`{one}` {found.first.does} it here"),),
                notes=("`phobos run --device cpu --detect races` shows whether they meet at the sizes of a run",),
            )  # fmt: skip
    for overlap in fusion.overlaps:
        pair_ = overlap.subject
        assert isinstance(pair_, tuple)
        mine, theirs = pair_
        if mine.dtype == theirs.dtype and len(mine.extents) == len(theirs.extents):
            yield Problem(
                "PH505", "info", f"right only if `{mine.name}` and `{theirs.name}` do not overlap in memory",
                theirs.span, overlap.reason, (Related(mine.span, f"`{mine.name}` is declared here"),),
                notes=("the launcher refuses arrays that overlap",),
            )  # fmt: skip


def _has_errors(program: Program) -> bool:
    return any(problem.severity == "error" for problem in program.problems)


def against(error: NotFusible) -> list[Diagnostic]:
    """What a refused fusion says; its places count in the file already."""
    return [worded(problem) for problem in error.problems]


def said_of(kernel: str, found: Sequence[Diagnostic]) -> str:
    """One sentence for those who see no list."""
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    help_ = f"; {found[0].help}" if found[0].help else ""
    return f"`{kernel}` cannot be one launch: {found[0].code} {found[0].message}{help_}{more}"


__all__ = ["against", "fusion_findings", "said_of"]
