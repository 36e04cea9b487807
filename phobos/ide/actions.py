"""What can be done about findings: apply a fix, all fixes of a kind, silence it here, read about it, see it happen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from phobos.check.suppressions import MENDED
from phobos.diagnostic import Diagnostic, Fix
from phobos.ide.document import Document, Range
from phobos.syntax import tree
from phobos.syntax.pragmas import pragma_of
from phobos.value import value

Kind = Literal["fix", "fix-all", "source-fix-all", "suppress", "explain", "happen"]
TextEdit = tuple[int, int, str]

HAPPENS = frozenset(("PH203", "PH204", "PH205", "PH215", "PH501", "PH502", "PH503", "PH508", "PH506", "PH110", "PH303"))
"""Findings that a run of the reference runtime can show as a fault."""


@value
class Action:
    """`edits` change the document; else `kernel` and `code` say what to explain or to run.

    `preferred`: what most people would want. `finding` is what it answers, None for the whole document.
    """

    title: str
    kind: Kind
    finding: Diagnostic | None
    edits: tuple[TextEdit, ...]
    preferred: bool
    code: str
    kernel: str


def actions(document: Document, within: Range) -> list[Action]:
    """For the findings that touch a range, gravest first; fixes before anything else."""
    touched = [f for f in document.findings if _touches(f, within)]
    found: list[Action] = []
    for finding in touched:
        if finding.fix is not None and finding.fix.edits and finding.fix.applicability != "display-only":
            fix = _fix(finding, finding.fix)
            if all((fix.title, fix.edits) != (other.title, other.edits) for other in found):
                found.append(fix)  # several findings may ask for one and the same
    found.extend(_of_a_kind(document, touched))
    for finding in _once(touched):
        if finding.code not in MENDED:
            found.append(_suppress(document, finding))
    for finding in _once(touched):
        kernel = _kernel_at(document, finding.span.start)
        if kernel and finding.code in HAPPENS:
            found.append(
                Action(f"Show {finding.code} happen in the reference runtime", "happen", finding, (), False,
                       finding.code, kernel)
            )  # fmt: skip
        title = f"Explain {finding.code} ({finding.name})"
        found.append(Action(title, "explain", finding, (), False, finding.code, ""))
    return found


def fix_all(document: Document) -> Action | None:
    """Every safe fix of the document that does not meet another: `source.fixAll`."""
    edits = _together(f.fix for f in document.findings if f.fix is not None and f.fix.applicability == "safe")
    if not edits:
        return None
    return Action("Fix all that is safe to fix", "source-fix-all", None, edits, True, "", "")


def _touches(finding: Diagnostic, within: Range) -> bool:
    return finding.span.start <= within.end and within.start <= finding.span.end


def _once(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    seen: dict[str, Diagnostic] = {}
    for finding in findings:
        seen.setdefault(finding.code, finding)
    return list(seen.values())


def _fix(finding: Diagnostic, fix: Fix) -> Action:
    title = fix.message[:1].upper() + fix.message[1:]
    if fix.applicability == "unsafe":
        title += " (may change what the kernel does)"
    return Action(title, "fix", finding, _edits(fix), fix.applicability == "safe", finding.code, "")


def _of_a_kind(document: Document, touched: list[Diagnostic]) -> list[Action]:
    found = []
    for finding in _once(touched):
        same = [f for f in document.findings if f.code == finding.code and f.fix and f.fix.applicability == "safe"]
        if len(same) > 1 and finding.fix is not None and finding.fix.applicability == "safe":
            edits = _together(f.fix for f in same)
            found.append(
                Action(f"Fix all {finding.code} ({finding.name}) in this file", "fix-all", finding, edits, False,
                       finding.code, "")
            )  # fmt: skip
    return found


def _edits(fix: Fix) -> tuple[TextEdit, ...]:
    return tuple((edit.span.start, edit.span.end, edit.content) for edit in fix.edits)


def _together(fixes: Iterable[Fix | None]) -> tuple[TextEdit, ...]:
    """The edits of all fixes that can stand side by side: of two that meet only the earlier, and no fix in part."""
    taken: list[TextEdit] = []
    for fix in sorted((f for f in fixes if f is not None), key=lambda f: f.edits[0].span.start if f.edits else 0):
        edits = _edits(fix)
        fresh = [edit for edit in edits if edit not in taken]  # two fixes may both add the same attribute
        if edits and not any(_meet(edit, other) for edit in fresh for other in taken):
            taken.extend(fresh)
    return tuple(sorted(taken))


def _meet(left: TextEdit, right: TextEdit) -> bool:
    if left[0] == left[1] or right[0] == right[1]:  # an insertion meets what it lies inside, or at, of another
        return left[0] <= right[1] and right[0] <= left[1]
    return left[0] < right[1] and right[0] < left[1]


# --- suppressions ---------------------------------------------------------------------------------------


def _suppress(document: Document, finding: Diagnostic) -> Action:
    """A comment on the line above the statement, or one more code in the comment that stands there."""
    lines = document.lines
    row = lines.line_of(finding.span.start)
    start = lines.starts[row]
    text = lines.line_text(row)
    indent = text[: len(text) - len(text.lstrip())]
    above = lines.line_text(row - 1).rstrip() if row else ""
    begins = lines.starts[row - 1] + len(above) - len(above.lstrip()) if row else 0
    comment = tree.Comment(begins, begins + len(above.lstrip()), above.lstrip())
    pragma = pragma_of(comment)
    edit: TextEdit
    if pragma is not None and pragma.kind == "ignore" and pragma.words:
        last = pragma.words[-1].end
        edit = (last, last, f", {finding.code}")
    else:
        ending = "\r\n" if "\r\n" in document.text else "\n"
        edit = (start, start, f"{indent}// phobos: ignore[{finding.code}]{ending}")
    return Action(f"Suppress {finding.code} here", "suppress", finding, (edit,), False, finding.code, "")


def _kernel_at(document: Document, offset: int) -> str:
    place = document.place(offset)
    if place is None or not isinstance(place.item.node, tree.Kernel):
        return ""
    return place.item.node.name.text
