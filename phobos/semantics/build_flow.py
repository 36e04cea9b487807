"""What only the finished program shows: unused names, reads before writes, stores under live views, overlaps."""

from __future__ import annotations

from phobos.diagnostic import Edit, Fix, Span
from phobos.semantics import ir
from phobos.semantics.build_context import Build
from phobos.semantics.build_initialised import uninitialised_reads
from phobos.semantics.build_overlap import overlapping_assignments
from phobos.semantics.build_views import stores_under_views
from phobos.syntax import tree

_MISNAMED = frozenset(("PH101", "PH107", "PH206"))


def after_building(b: Build, node: tree.Kernel | tree.Function, body: ir.Block) -> None:
    """Report what the whole body shows. Mistakes of a function's text are told where the function is by itself."""
    uninitialised_reads(b, body)
    stores_under_views(b, body)
    overlapping_assignments(b, body)
    # A name written for another, or an argument left out, leaves something unused that was meant to be used.
    misnamed = any(problem.code in _MISNAMED and problem.severity == "error" for problem in b.problems)
    if not b.broken and not misnamed:
        _unused(b, node)


def _unused(b: Build, node: tree.Kernel | tree.Function) -> None:
    """Names that nothing reads (PH112); loop variables and names that begin with `_` aside."""
    for variable, declared in b.declared.items():
        name = variable.name
        if (
            variable in b.used
            or variable.calls
            or not name
            or name.startswith("_")
            or variable in b.redefined
            or isinstance(declared.node, tree.For)
        ):
            continue
        stored = ("changed", variable) in b.used
        b.report(
            "PH112",
            f"`{name}` is {'stored to' if stored else 'defined'} and never read",
            variable.span,
            "nothing reads it",
            severity="warning",
            help=f"remove it, or call it `_{name}` to keep it",
            fix=None if stored else _kept(variable.span, name),
            tags=("unnecessary",),
        )
    for param in node.params:
        meaning = b.nodes.get(param)
        name = param.name.text
        if meaning is None or meaning in b.used or not name or name.startswith("_"):
            continue
        if isinstance(meaning, ir.Tensor) and any(
            not isinstance(extent, int) and extent in b.used and _only_in(b, extent, meaning)
            for extent in meaning.extents
        ):
            continue  # it says how large something is
        b.report(
            "PH112",
            f"the parameter `{name}` is never used",
            param.name,
            "nothing reads or stores it",
            severity="warning",
            help=f"remove it, or call it `_{name}` to keep it",
            tags=("unnecessary",),
        )
    for constant in b.constants.values():
        if constant in b.used or constant.attribute != "autotune" or constant.name.startswith("_"):
            continue
        b.report(
            "PH112",
            f"the constant `{constant.name}` is never used",
            constant.span,
            "nothing depends on it",
            severity="warning",
            help="remove it: every value would be tried for nothing",
            tags=("unnecessary",),
        )


def _kept(span: Span, name: str) -> Fix:
    """Put `_` before a name that nothing reads."""
    return Fix(f"call it `_{name}`", "unsafe", (Edit(Span(span.owner, span.start, span.start), "_"),))


def _only_in(b: Build, extent: ir.Dim | ir.Constant, tensor: ir.Tensor) -> bool:
    """Whether no other tensor has this extent."""
    return isinstance(extent, ir.Dim) and not any(
        extent in other.extents for other in b.tensors.values() if other is not tensor
    )
