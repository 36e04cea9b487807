"""Every editor answer as text, so that a fixture can be read and compared."""

from __future__ import annotations

from collections.abc import Callable

from phobos.ide import actions as doing
from phobos.ide import formatting, hierarchy
from phobos.ide.coloring import tokens
from phobos.ide.completion import completions
from phobos.ide.document import Document, Range
from phobos.ide.folding import folds
from phobos.ide.hints import hints
from phobos.ide.hover import hover
from phobos.ide.lens import lenses
from phobos.ide.links import links
from phobos.ide.references import definition, occurrences, references, type_definition
from phobos.ide.rename import RenameRefused, prepare, rename
from phobos.ide.selection import selection
from phobos.ide.signature import signature
from phobos.ide.symbols import Outline, outline

Answer = Callable[[Document, list[int], dict[str, str]], str]


def shown(document: Document, range: Range | None) -> str:
    """`line:column text`, counted from 1."""
    if range is None:
        return "nothing"
    row, column = document.lines.position(range.start)
    text = document.text[range.start : range.end]
    return f"{row + 1}:{column + 1} {text.splitlines()[0] if text else ''}".rstrip()


def edited(document: Document, edits: list[tuple[int, int, str]] | tuple[tuple[int, int, str], ...]) -> str:
    text = document.text
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text.rstrip("\n")


def _hover(document: Document, at: list[int], options: dict[str, str]) -> str:
    found = hover(document, at[0])
    return "nothing" if found is None else f"{shown(document, found.range)}\n{found.markdown}"


def _completion(document: Document, at: list[int], options: dict[str, str]) -> str:
    found = completions(document, at[0])
    lines = []
    for one in found[: int(options.get("most", 12))]:
        snippet = f" => {one.snippet}" if one.snippet and one.snippet != one.insert and "snippets" in options else ""
        lines.append(f"{one.label} ({one.kind}) {one.detail}{snippet}".rstrip().replace("\n", "⏎"))
    if len(found) > len(lines):
        lines.append(f"and {len(found) - len(lines)} more")
    return "\n".join(lines) or "nothing"


def _signature(document: Document, at: list[int], options: dict[str, str]) -> str:
    found = signature(document, at[0])
    if found is None:
        return "nothing"
    if found.active is None:
        return found.label
    active = found.parameters[found.active]
    return found.label[: active.start] + "<" + found.label[active.start : active.end] + ">" + found.label[active.end :]


def _rename(document: Document, at: list[int], options: dict[str, str]) -> str:
    try:
        old = prepare(document, at[0])
        places = rename(document, at[0], options["new"])
    except RenameRefused as refused:
        return f"refused: {refused}"
    assert any(place.start == old.start for place in places)
    return edited(document, [(place.start, place.end, options["new"]) for place in places])


def _symbols(document: Document, at: list[int], options: dict[str, str]) -> str:
    lines: list[str] = []

    def walk(part: Outline, depth: int) -> None:
        lines.append(f"{'  ' * depth}{part.kind} {part.name} {part.detail}".rstrip())
        for child in part.children:
            walk(child, depth + 1)

    for part in outline(document):
        walk(part, 0)
    return "\n".join(lines) or "nothing"


def _tokens(document: Document, at: list[int], options: dict[str, str]) -> str:
    within = Range(at[0], at[1]) if len(at) == 2 else None
    return "\n".join(
        f"{document.text[t.start : t.start + t.length]}: {t.type} {' '.join(t.modifiers)}".rstrip()
        for t in tokens(document, within)
    )


def _hints(document: Document, at: list[int], options: dict[str, str]) -> str:
    whole = Range(0, len(document.text))
    found = hints(document, whole, options.get("types") != "off", options.get("varying") != "off")
    return edited(document, [(h.offset, h.offset, f"‹{h.text}›") for h in found])


def _actions(document: Document, at: list[int], options: dict[str, str]) -> str:
    found = doing.actions(document, Range(at[0], at[-1]))
    whole = doing.fix_all(document)
    if whole is not None:
        found.append(whole)
    if "apply" in options:
        chosen = [a for a in found if options["apply"] in (a.kind, f"{a.kind}:{a.code}")]
        return edited(document, chosen[0].edits) if chosen else "nothing"
    return "\n".join(f"{a.kind}: {a.title}{' *' * a.preferred}" for a in found) or "nothing"


def _lens(document: Document, at: list[int], options: dict[str, str]) -> str:
    cards = tuple(options.get("cards", "h200").split(","))
    return "\n".join(f"{shown(document, lens.range)}: {lens.title}" for lens in lenses(document, cards, {}))


def _folding(document: Document, at: list[int], options: dict[str, str]) -> str:
    lines = []
    for fold in folds(document):
        first = document.lines.line_of(fold.range.start) + 1
        lines.append(f"{first}-{document.lines.line_of(fold.range.end) + 1} {fold.kind}")
    return "\n".join(lines) or "nothing"


def _selection(document: Document, at: list[int], options: dict[str, str]) -> str:
    grown = selection(document, at[0])
    return "\n".join(document.text[r.start : r.end].rstrip("\n").replace("\n", "⏎") for r in grown[:-1])


def _hierarchy(document: Document, at: list[int], options: dict[str, str]) -> str:
    found = hierarchy.prepare(document, at[0])
    if found is None:
        return "nothing"
    lines = [f"{'kernel' if found.is_kernel else 'fn'} {found.name}"]
    for caller in hierarchy.incoming(document, found.name):
        lines.append(f"from {caller.name}: " + ", ".join(shown(document, call) for call in caller.calls))
    for callee in hierarchy.outgoing(document, found.name_range.start):
        lines.append(f"to {callee.name}: " + ", ".join(shown(document, call) for call in callee.calls))
    return "\n".join(lines)


def _links(document: Document, at: list[int], options: dict[str, str]) -> str:
    lines = []
    for link in links(document):
        target = link.target if link.is_file else link.target.rpartition("/")[2]  # pages lie where this is installed
        lines.append(f"{shown(document, link.range)} -> {target}")
    return "\n".join(lines) or "nothing"


def _format(document: Document, at: list[int], options: dict[str, str]) -> str:
    if "typed" in options:
        typed = {"newline": "\n"}.get(options["typed"], options["typed"])
        return edited(document, formatting.format_typed(document, at[0], typed, 120))
    if len(at) == 2:
        return edited(document, formatting.format_range(document, Range(at[0], at[1]), 120))
    return edited(document, formatting.format_document(document, 120))


ANSWERS: dict[str, Answer] = {
    "hover": _hover,
    "completion": _completion,
    "signature": _signature,
    "definition": lambda d, at, _: shown(d, definition(d, at[0])),
    "type_definition": lambda d, at, _: shown(d, type_definition(d, at[0])),
    "references": lambda d, at, o: "\n".join(
        shown(d, r) for r in references(d, at[0], o.get("declaration") != "no")
    ) or "nothing",
    "highlight": lambda d, at, _: "\n".join(
        f"{shown(d, o.range)} {o.role}" for o in occurrences(d, at[0])
    ) or "nothing",
    "rename": _rename,
    "symbols": _symbols,
    "tokens": _tokens,
    "hints": _hints,
    "actions": _actions,
    "lens": _lens,
    "folding": _folding,
    "selection": _selection,
    "hierarchy": _hierarchy,
    "links": _links,
    "format": _format,
}  # fmt: skip
