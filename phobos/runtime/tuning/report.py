"""What is said of a tuning: a table for people, a picture (SVG) of all variants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phobos.diagnostic import plural
from phobos.runtime.drawing import Drawing
from phobos.runtime.sizes import short_duration
from phobos.runtime.tuning.judging import MEASURED, Row
from phobos.runtime.tuning.keeping import folder, size_class

if TYPE_CHECKING:
    from phobos.runtime.tuning.tuning import Tuning

WORDS = {"another-result": "another result", "slower": "slower"}


def milliseconds(ms: float | None) -> str:
    """`2.38 us`, `1.2 ms`, `3 s`: three figures."""
    return "-" if ms is None else short_duration(ms)


def text(tuning: Tuning) -> str:
    """Everything, ending without a line end."""
    out = [f"{tuning.kernel} on {tuning.card}" + (f", {_numbers(tuning.sizes)}" if tuning.sizes else "")]
    if tuning.device == "cpu":
        out.append("this times the reference runtime itself: it says nothing about a GPU")
    at = _numbers(tuning.judged_sizes)
    out.append(f"each variant was compared with the reference{f' at {at}' if at else ''} before it was timed")
    if tuning.held:
        out.append(f"held: {_numbers(tuning.held)}")
    out += ["", *_table(tuning), ""]
    out += _verdict(tuning)
    return "\n".join(out)


def _table(tuning: Tuning) -> list[str]:
    head = ["variant", "time", "of untuned", "grid", "registers", ""]
    lines = [head]
    for row in tuning.rows:
        ratio = "-"
        if row.elapsed_ms is not None and tuning.untuned is not None and tuning.untuned.elapsed_ms:
            ratio = f"{row.elapsed_ms / tuning.untuned.elapsed_ms:.2f}"
        grid = "-" if row.grid is None else "x".join(str(n) for n in row.grid if n != 1) or "1"
        registers = "-" if row.registers is None else str(row.registers)
        lines.append([row.variant.label, milliseconds(row.elapsed_ms), ratio, grid, registers, _said(row, tuning)])
    widths = [max(len(line[i]) for line in lines) for i in range(len(head) - 1)]
    return ["  ".join([*(c.ljust(w) for c, w in zip(line, widths)), line[-1]]).rstrip() for line in lines]


def _said(row: Row, tuning: Tuning) -> str:
    if row.status == "ok":
        marks = []
        if tuning.best is not None and row.variant.label == tuning.best.variant.label:
            marks.append("best")
        if tuning.untuned is not None and row.variant.label == tuning.untuned.variant.label:
            marks.append("without tuning")
        return ", ".join(marks)
    word = WORDS.get(row.status, row.status)
    return f"{word}: {row.why}" if row.why else word


def _verdict(tuning: Tuning) -> list[str]:
    out = []
    best = tuning.best
    if best is None:
        out.append("no variant was timed to the end")
    else:
        said = f"best: {best.variant.label}, {milliseconds(best.elapsed_ms)}"
        if tuning.untuned is not None and tuning.untuned.variant.label == best.variant.label:
            said += ", which is what runs without tuning"
        elif tuning.speedup is not None:
            said += f", {tuning.speedup:.2f} times as fast as without tuning"
        out.append(said)
    if tuning.from_disk:
        out.append(f"{plural(tuning.from_disk, 'row')} of an earlier run taken from disk (--fresh measures again)")
    if tuning.broken:
        out.append(f"{plural(len(tuning.broken), 'variant')} went wrong: see above")
    if tuning.left:
        why = "interrupted" if tuning.interrupted else "the budget is spent"
        out.append(f"{why}: {plural(tuning.left, 'variant')} not tried; the same command goes on with them")
    if tuning.kept is not None:
        sizes = size_class(tuning.sizes)
        user = "runs of the reference runtime" if tuning.device == "cpu" else "launches on this card"
        out.append(f"kept: {user} use it{f' for {sizes}' if sizes else ''} (--no-tuned ignores it)")
    elif best is not None and not tuning.interrupted:
        out.append(f"not kept, so that nothing uses it: {folder()} cannot be written to")
    return out


def _numbers(numbers: dict[str, int]) -> str:
    return ", ".join(f"{name} = {number}" for name, number in numbers.items())




# --- the picture ----------------------------------------------------------------------------------------------

ROW, LABEL, BAR, MARGIN = 18, 330, 360, 12
KINDS = {"best": "good", "ok": "c0", "slower": "weak"}  # of bars


def svg(tuning: Tuning) -> str:
    """A bar a variant, the fastest on top; what was not timed stands below with its reason."""
    longest = max((row.elapsed_ms or 0.0 for row in tuning.rows), default=0.0) or 1.0
    height = MARGIN * 3 + ROW * (len(tuning.rows) + 1)
    width = LABEL + BAR + 3 * MARGIN + 130
    title = f"{tuning.kernel} on {tuning.card}" + (f", {_numbers(tuning.sizes)}" if tuning.sizes else "")
    out = Drawing(width, height, title, ".broken{fill:#c01c28}@media(prefers-color-scheme:dark){.broken{fill:#ff7b72}}")
    out.text(MARGIN, MARGIN + 8, title, "title")
    for number, row in enumerate(tuning.rows):
        top = MARGIN * 2 + ROW * (number + 1) - 6
        base = top + 11
        out.text(MARGIN, base, row.variant.label)
        left = LABEL + MARGIN
        if row.status in MEASURED and row.elapsed_ms is not None:
            length = max(1.0, BAR * row.elapsed_ms / longest)
            out.box(KINDS["best" if _is(row, tuning.best) else row.status], left, top, length, ROW - 5)
            said = milliseconds(row.elapsed_ms) + (" (untuned)" if _is(row, tuning.untuned) else "")
            out.text(round(left + length + 6, 1), base, said)
        else:
            out.text(left, base, WORDS.get(row.status, row.status), "broken" if row in tuning.broken else "small")
        if row.why:
            out.put("rect", {"x": 0, "y": top - 2, "width": width, "height": ROW, "fill": "transparent"}, said=row.why)
    return out.document


def _is(row: Row, other: Row | None) -> bool:
    return other is not None and row.variant.label == other.variant.label
