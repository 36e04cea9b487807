"""Diagnostics for people: `full` shows the lines themselves, `concise` is one line each.

`full` is also how a fault of a run and the refusal of a launch are printed. The frame is plain ASCII; only
what the user wrote can hold anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phobos.check.render.report import Listing, Report
from phobos.diagnostic import SEVERITIES, Diagnostic, Severity, Span, plural
from phobos.syntax.lines import LineIndex
from phobos.value import value

_COLOURS = {"error": "1;31", "warning": "1;33", "info": "1;36", "note": "1;34", "help": "1;32", "frame": "34"}
_NOUNS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_WIDEST = 160  # a source line longer than this is cut around its mark


@value
class Style:
    """How to paint: an ANSI colour code by role, or nothing."""

    colour: bool

    def paint(self, text: str, role: str) -> str:
        code = _COLOURS.get(role, "1" if role == "bold" else "2")
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text


def full(diagnostic: Diagnostic, text: str, path: str, colour: bool = False, lines: LineIndex | None = None) -> str:
    """One diagnostic with its source, spans absolute in `text`, ending in a line end.

    Places follow in the order of the chain: the primary one with `label`, then each related one.
    """
    index = lines or LineIndex(text)
    style = Style(colour)
    code = f"[{diagnostic.code}]" if diagnostic.code else ""
    head = style.paint(f"{diagnostic.severity}{code}", diagnostic.severity)
    rows = [row for span in _spans(diagnostic) for row in (index.position(span.start)[0] + 1,)]
    gutter = len(str(max(rows)))
    row, column = index.position(diagnostic.span.start)
    out = [f"{head}{style.paint(': ' + clean(diagnostic.message), 'bold')}"]
    out.append(f"{' ' * gutter}{style.paint('-->', 'frame')} {clean(path)}:{row + 1}:{column + 1}")
    bar = f"{' ' * gutter} {style.paint('|', 'frame')}"
    out.append(bar)
    out += _place(index, diagnostic.span, diagnostic.label, "^", diagnostic.severity, gutter, style)
    above = row
    for related in diagnostic.related:
        place = _place(index, related.span, related.message, "-", "note", gutter, style)
        at = index.line_of(related.span.start)
        out += place[1:] if at == above and len(place[0]) <= _WIDEST else [bar, *place]  # one line is shown once
        above = at
    tail: list[tuple[str, str, str]] = []
    tail += [("note", "note", note) for note in diagnostic.notes]
    if diagnostic.help:
        tail.append(("help", "help", diagnostic.help))
    if diagnostic.fix is not None:
        how = {"safe": "`--fix` does it", "unsafe": "`--fix --unsafe-fixes` does it", "display-only": ""}
        by = how[diagnostic.fix.applicability]
        tail.append(("help", "fix", diagnostic.fix.message + (f" ({by})" if by else "")))
    if diagnostic.code:
        tail.append(("frame", "see", f"phobos rule {diagnostic.code}"))
    if tail:
        out.append(bar)
    for role, word, sentence in tail:
        first, *rest = clean(sentence, keep_lines=True).split("\n")
        out.append(f"{' ' * gutter} {style.paint('=', 'frame')} {style.paint(word + ':', role)} {first}")
        out += [f"{' ' * gutter}   {' ' * len(word)}  {line}" for line in rest]
    return "\n".join(out) + "\n"


def _spans(diagnostic: Diagnostic) -> Iterable[Span]:
    return (diagnostic.span, *(related.span for related in diagnostic.related))


def _place(index: LineIndex, span: Span, label: str, mark: str, role: str, gutter: int, style: Style) -> list[str]:
    """A source line and what is said under it. Of a span over several lines, the first is shown."""
    row, column = index.position(span.start)
    last, end_column = index.position(span.end)
    line = index.line_text(row)
    until = end_column if last == row else len(line.rstrip())
    until = max(min(until, len(line)), column)
    before, marked, after = line[:column], line[column:until], line[until:]
    shown = [expand(before), expand(marked, width(expand(before)))]
    if width(shown[0]) + width(shown[1]) + len(after) > _WIDEST:
        before, shown, after = _cut(shown, after)
    body = shown[0] + shown[1] + expand(after)
    number = style.paint(f"{row + 1:>{gutter}} |", "frame")
    carets = mark * max(1, width(shown[1])) + ("..." if last > row else "")
    first, *rest = clean(label, keep_lines=True).split("\n")
    under = f"{' ' * gutter} {style.paint('|', 'frame')} {' ' * width(shown[0])}"
    out = [f"{number} {body}".rstrip(), f"{under}{style.paint((carets + ' ' + first).rstrip(), role)}"]
    out += [f"{under}{style.paint(' ' * len(carets) + ' ' + line, role)}" for line in rest]
    return out


def _cut(shown: list[str], after: str) -> tuple[str, list[str], str]:
    before, marked = shown
    if width(before) > _WIDEST // 2:
        before = "..." + before[-(_WIDEST // 2 - 3) :]
    if len(marked) > _WIDEST // 2:
        marked = marked[: _WIDEST // 2]
        after = "..."
    room = max(10, _WIDEST - width(before) - width(marked))
    if len(after) > room:
        after = after[: room - 3] + "..."
    return before, [before, marked], after


def expand(text: str, at: int = 0) -> str:
    """Tabs as spaces (to stops of 4, the text starting at column `at`), control characters made visible."""
    if "\t" in text:
        parts: list[str] = []
        column = at
        for character in text:
            piece = " " * (4 - column % 4) if character == "\t" else character
            column += len(piece)
            parts.append(piece)
        text = "".join(parts)
    return clean(text)


def clean(text: str, keep_lines: bool = False) -> str:
    """Text that cannot move the cursor or change the terminal's colours."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or (keep_lines and c == "\n") or _is_mark(c) else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def shown_name(name: str) -> str:
    """A file name at the start of a line, where two colons would make it a command to GitHub's runner."""
    return "./" * name.startswith("::") + clean(name)


def _is_mark(character: str) -> bool:
    import unicodedata

    return unicodedata.category(character) in ("Zs", "Mn", "Me", "Mc")


def width(text: str) -> int:
    """Terminal columns that `text` takes."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def render_full(report: Report) -> str:
    parts: list[str] = []
    for listing in report.listings:
        lines = listing.lines
        for diagnostic in listing.diagnostics:
            parts.append(full(diagnostic, listing.text, listing.name, report.colour, lines) + "\n")
    return "".join(parts) + summary(report)


def render_concise(report: Report) -> str:
    """`path:line:column: severity[code] message`, for people who read logs and for editors' problem matchers.

    Proofs stand below their finding, indented, so that no matcher takes them for one.
    """
    style = Style(report.colour)
    out: list[str] = []
    for listing in report.listings:
        for diagnostic in listing.diagnostics:
            out.append(concise(listing, diagnostic, style) + "\n")
            if report.proofs:
                notes = "\n".join(clean(note, keep_lines=True) for note in diagnostic.notes)
                out += [f"    {line}\n" for line in notes.split("\n") if line]
    return "".join(out) + summary(report)


def concise(listing: Listing, diagnostic: Diagnostic, style: Style) -> str:
    row, column = listing.lines.position(diagnostic.span.start)
    where = f"{shown_name(listing.name)}:{row + 1}:{column + 1}:"
    severity = style.paint(f"{diagnostic.severity}[{diagnostic.code}]", diagnostic.severity)
    fixable = " [fixable]" if diagnostic.fix is not None and diagnostic.fix.applicability == "safe" else ""
    return f"{where} {severity} {clean(diagnostic.message)}{fixable}"


def summary(report: Report) -> str:
    """The last line: what was found and what is not shown."""
    counts = dict.fromkeys(_NOUNS, 0)
    fixable = 0
    for listing in report.listings:
        for diagnostic in listing.diagnostics:
            counts[diagnostic.severity] += 1
            fixable += diagnostic.fix is not None and diagnostic.fix.applicability == "safe"
    said = [plural(n, _NOUNS[s]) for s, n in counts.items() if n]
    files = plural(report.files, "file")
    if said:
        line = f"Found {enumerate_words(said)} in {files} checked."
    elif report.failing:
        fail = "fails" if report.failing == 1 else "fail"
        line = f"Nothing to show in {files} checked, but {plural(report.failing, 'hidden finding')} {fail} the check."
    else:
        line = f"All good: {files} checked."
    if fixable:
        line += f" {fixable} fixable with `--fix`."
    if report.hidden:
        counts = dict.fromkeys(_NOUNS, 0)
        for diagnostic in report.hidden:
            counts[diagnostic.severity] += 1
        least = next(s for s in reversed(SEVERITIES) if counts[s])
        them = "it" if len(report.hidden) == 1 else "them"
        said = [plural(n, _NOUNS[s]) for s, n in counts.items() if n]
        line += f" {enumerate_words(said)} hidden: `--severity {least}` shows {them}."
    if report.baselined:
        line += f" {plural(report.baselined, 'finding')} in the baseline."
    return line + "\n"


def enumerate_words(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
