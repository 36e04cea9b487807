"""What can be written in a comment that is read: a pragma, the codes of a suppression, the words of a header."""

from __future__ import annotations

import re
from collections.abc import Iterator

from phobos.check import registry
from phobos.ide.completion import Completion, Kind
from phobos.ide.document import Document, Place, Range
from phobos.ide.hover import signature_of
from phobos.ide.names import Symbol
from phobos.syntax import tree
from phobos.syntax.headers import FILLS, FUSED, OPTIONS, HeaderLine, header_lines, header_words

_PRAGMAS = (
    ("ignore", "ignore[CODE] reason", "Silences rules on this line, or, alone on a line, at the next statement.",
     "ignore[${1:PH205}] ${2:why}"),
    ("ignore-file", "ignore-file[CODE] reason", "Silences rules in the whole file. It stands above all code.",
     "ignore-file[${1:PH205}] ${2:why}"),
    ("assume", "assume uniform(NAME)",
     "Promises that a name has one value for all blocks at the next statement; the reference runtime checks it.",
     "assume uniform(${1:name})"),
)  # fmt: skip

_GIVEN = {
    "tensor": f"${{1|{','.join(FILLS)}|}}", "parameter": "${1:1}", "dimension": "${1:4096}", "constant": "${1:64}",
}  # fmt: skip
_KINDS: dict[str, Kind] = {
    "tensor": "tensor", "parameter": "parameter", "dimension": "dimension", "constant": "constant",
}  # fmt: skip


def in_comment(document: Document, offset: int) -> list[Completion] | None:
    """What can stand at an offset of a comment that is read; None where there is no such comment."""
    row = document.lines.line_of(offset)
    before = document.text[document.lines.starts[row] : offset]
    if "//" not in before:
        return None
    opening = re.search(r"//\s*phobos\s*:\s*([\w-]*)$", before)
    if opening is not None:
        range = Range(offset - len(opening[1]), offset)
        return [
            Completion(word, "keyword", range, form, about, word, snippet, 0)
            for word, form, about, snippet in _PRAGMAS
        ]
    listed = re.search(r"//\s*phobos\s*:\s*ignore(?:-file)?\s*\[[^\]]*?([A-Za-z][\w-]*)?$", before)
    if listed is not None:
        range = Range(offset - len(listed[1] or ""), offset)
        return [
            Completion(code, "rule", range, name, registry.manual(code).summary, code, None, 0)
            for code, name in registry.names().items()
        ]
    lines = header_lines(document.text)
    for number, line in enumerate(lines):
        if line.start <= offset <= line.start + len(line.text):
            run = next((one for one in reversed(lines[: number + 1]) if one.key == "run"), None)
            return sorted(_header(document, offset, line, run), key=lambda c: (c.rank, c.label))
    return None


def _header(document: Document, offset: int, line: HeaderLine, run: HeaderLine | None) -> Iterator[Completion]:
    """Names of the kernels that the line speaks of, and the options of a run, each once."""
    typed = re.search(r"\S*\Z", document.text[line.start : offset])
    assert typed is not None
    key, given, value = typed[0].partition("=")
    rest = re.match(r"[^\s=+]*", document.text[offset : line.start + len(line.text)])
    end = offset + (len(rest[0]) if rest is not None else 0)  # of the word that the cursor is in
    goes_on = document.text[end : end + 1] == "="
    words = header_words(run) if run is not None else ()
    named = next((word.given for word in words if word.key == "kernel"), None)
    kernels = [place for place in document.places() if isinstance(place.item.node, tree.Kernel)]
    speaks_of = kernels if named is None else [p for p in kernels if _name(p) in named.split(FUSED)]
    symbols = {symbol.name: symbol for place in speaks_of for symbol in place.names.symbols if symbol.kind in _KINDS}
    if given and line.key == "run":
        tensor = symbols.get(key.removeprefix("arg."))
        if key == "kernel":
            before, _, typed_name = value.rpartition(FUSED)
            range = Range(offset - len(typed_name), end)
            for place in (each for each in kernels if _name(each) not in before.split(FUSED)):
                yield Completion(_name(place), "function", range, signature_of(place), "", _name(place), None, 0)
        elif tensor is not None and tensor.kind == "tensor" and key not in OPTIONS:
            for rank, fill in enumerate(FILLS):
                yield Completion(fill, "value", Range(offset - len(value), end), "fills it", "", fill, None, rank)
    if given:
        return
    range = Range(offset - len(typed[0]), end)
    if line.key == "expect":
        for name, symbol in symbols.items():
            if symbol.kind == "tensor":
                cell = ", ".join(["0"] * _rank(symbol))
                yield Completion(name, "tensor", range, "a cell of it", "", name, f"{name}[${{1:{cell}}}] = $0", 0)
        yield Completion("fault", "keyword", range, "fault=KIND", "The run is stopped by this fault.", "fault=",
                         "fault=${1:deadlock}", 1)  # fmt: skip
        return
    there = {word.key if word.is_option else word.name for word in words if word.start != range.start}
    for name, symbol in symbols.items():
        if name not in there:
            key = f"arg.{name}" if name in OPTIONS else name
            snippet = None if goes_on else f"{key}={_GIVEN[symbol.kind]}"
            insert = key if goes_on else f"{key}="
            yield Completion(key, _KINDS[symbol.kind], range, symbol.kind, "", insert, snippet, 1)
    for option in sorted(OPTIONS - there):
        rank = 0 if option == "kernel" else 2
        insert = option if goes_on else f"{option}="
        yield Completion(option, "keyword", range, "option of the run", "", insert, None, rank)


def _name(place: Place) -> str:
    assert place.item.node is not None
    return place.item.node.name.text


def _rank(symbol: Symbol) -> int:
    match symbol.node:
        case tree.Param(type=tree.TensorType(dims=dims)):
            return len(dims)
        case _:
            return 1
