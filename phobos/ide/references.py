"""Where a name is declared, and everywhere it is written: definition, references, highlight, type definition.

A `.ph` file imports nothing, so every place is in the document. Names stand in code, in `// phobos: assume
uniform(x)` comments and in the `// run:` and `// expect:` headers of the file, and are found in all three.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from phobos.ide.document import Document, Place, Range
from phobos.ide.names import Kind, Role, Symbol, Use
from phobos.language.builtins import BUILTINS
from phobos.syntax import tree
from phobos.value import value

_HEADER = re.compile(r"^[ \t]*//[ \t]*(?P<key>run|expect):(?P<rest>[^\r\n]*)", re.MULTILINE)
_PAIR = re.compile(r"(?P<key>[^\s=]+)=(?P<value>\S*)")
_OPTIONS = frozenset((
    "kernel", "grid", "resident", "schedule", "l2_group",
    "device", "detect", "scheduler", "seed", "timeout",
))  # fmt: skip


@value
class Occurrence:
    range: Range
    role: Role


@value
class Subject:
    """What a name stands for: `symbol` as its own item (at `place`) declares it."""

    place: Place
    symbol: Symbol

    @property
    def kind(self) -> Kind:
        return self.symbol.kind

    @property
    def declared(self) -> Range:
        return self.place.range(self.symbol.declared.start, self.symbol.declared.end)


def use_at(document: Document, offset: int) -> tuple[Place, Use] | None:
    """The name written at `offset` in code or in an assumption, with its item."""
    place = document.place(offset)
    if place is None:
        return None
    use = place.names.at(place.inside)
    return None if use is None else (place, use)


def subject_at(document: Document, offset: int) -> Subject | None:
    """What the name at `offset` stands for, if the document declares it."""
    found = use_at(document, offset)
    if found is None:
        return _header_subject(document, offset)
    place, use = found
    if use.symbol is not None:
        return Subject(place, use.symbol)
    if use.role == "call" and use.name not in BUILTINS:  # a built-in's name in a call is always the built-in
        return _function(document, use.name)
    return None


def definition(document: Document, offset: int) -> Range | None:
    subject = subject_at(document, offset)
    return None if subject is None else subject.declared


def type_definition(document: Document, offset: int) -> Range | None:
    """Where the type of the name at `offset` is written: its annotation, or the parameter it was made from."""
    subject = subject_at(document, offset)
    if subject is None:
        return None
    seen: set[int] = set()
    symbol = subject.symbol
    while id(symbol) not in seen:
        seen.add(id(symbol))
        match symbol.node:
            case tree.Param(type=written):
                return subject.place.range(written.start, written.end)
            case tree.Let(type=written) | tree.Var(type=written) if written is not None:
                return subject.place.range(written.start, written.end)
            case tree.Let(value=value) | tree.Var(value=value) if value is not None:
                source = _source(subject.place, value)
                if source is None:
                    return None
                symbol = source
            case tree.TensorType() | tree.TileType() as written:  # a dimension
                return subject.place.range(written.start, written.end)
            case _:
                return None
    return None


def references(document: Document, offset: int, declaration: bool = True) -> list[Range]:
    return [found.range for found in occurrences(document, offset) if declaration or found.role != "declare"]


def occurrences(document: Document, offset: int) -> list[Occurrence]:
    """Every place where what is named at `offset` is named, in the order of the text."""
    subject = subject_at(document, offset)
    if subject is not None:
        return occurrences_of(document, subject)
    found = use_at(document, offset)
    if found is None:
        return []
    _, use = found
    if use.role != "call":
        return []
    return sorted(_calls(document, use.name), key=lambda o: o.range.start)  # of a built-in, or of nothing we know


def occurrences_of(document: Document, subject: Subject) -> list[Occurrence]:
    place, symbol = subject.place, subject.symbol
    found = [Occurrence(place.range(use.start, use.end), use.role) for use in place.names.of(symbol)]
    if symbol.kind == "function" and symbol.name not in BUILTINS:
        called = _function(document, symbol.name)
        if called is not None and called.symbol is symbol:
            found.extend(_calls(document, symbol.name))
    if isinstance(place.item.node, tree.Kernel):
        found.extend(Occurrence(range, "read") for range in _in_headers(document, subject))
    return sorted(found, key=lambda o: o.range.start)


# --- functions ----------------------------------------------------------------------------------------


def _function(document: Document, name: str) -> Subject | None:
    place = document.function(name)
    if place is None:
        return None
    for symbol in place.names.symbols:
        if symbol.kind == "function":
            return Subject(place, symbol)
    return None


def _calls(document: Document, name: str) -> Iterator[Occurrence]:
    for place in document.places():
        for use in place.names.uses:
            if use.role == "call" and use.name == name:
                yield Occurrence(place.range(use.start, use.end), "call")


def _source(place: Place, value: tree.Expr) -> Symbol | None:
    """The one thing whose type `value` has by its form: `A[..]`, `x`, `(x)`."""
    while True:
        match value:
            case tree.Paren(inner=inner):
                value = inner
            case tree.Subscript(base=base):
                value = base
            case tree.Unary(operand=operand):
                value = operand
            case tree.Name():
                use = place.names.at(value.start)
                return None if use is None else use.symbol
            case _:
                return None


# --- headers ------------------------------------------------------------------------------------------


@value
class _Word:
    """A name in a `// run:` or `// expect:` line. `kernel` is who the line speaks of; None: the file's only one."""

    range: Range
    text: str
    kernel: str | None
    is_kernel: bool


def _words(document: Document) -> Iterator[_Word]:
    kernel: str | None = None
    for line in _HEADER.finditer(document.text):
        base = line.start("rest")
        if line["key"] == "run":
            pairs = list(_PAIR.finditer(line["rest"]))
            kernel = next((pair["value"] for pair in pairs if pair["key"] == "kernel"), None)
            for pair in pairs:
                if pair["key"] == "kernel":
                    at = base + pair.start("value")
                    for name in pair["value"].split("+"):
                        yield _Word(Range(at, at + len(name)), name, kernel, True)
                        at += len(name) + 1
                elif pair["key"] not in _OPTIONS:
                    name = pair["key"].removeprefix("arg.")
                    at = base + pair.end("key") - len(name)
                    yield _Word(Range(at, at + len(name)), name, kernel, False)
        else:
            found = re.match(r"\s*([A-Za-z_]\w*)\s*(?=\[|sha256=)", line["rest"])
            if found is not None:
                at = base + found.start(1)
                yield _Word(Range(at, at + len(found[1])), found[1], kernel, False)


def _kernels(document: Document, word: _Word) -> list[Place]:
    kernels = [p for p in document.places() if isinstance(p.item.node, tree.Kernel)]
    if word.kernel is None:
        return kernels if len(kernels) == 1 else []
    named = word.kernel.split("+")
    return [p for p in kernels if isinstance(p.item.node, tree.Kernel) and p.item.node.name.text in named]


def _header_symbol(place: Place, word: _Word) -> Symbol | None:
    for symbol in place.names.symbols:
        if symbol.name == word.text:
            if symbol.kind == "kernel" and word.is_kernel:
                return symbol
            if symbol.kind in ("tensor", "parameter", "dimension", "constant") and not word.is_kernel:
                return symbol
    return None


def _header_subject(document: Document, offset: int) -> Subject | None:
    for word in _words(document):
        if word.range.start <= offset <= word.range.end:
            for place in _kernels(document, word):
                symbol = _header_symbol(place, word)
                if symbol is not None:
                    return Subject(place, symbol)
    return None


def _in_headers(document: Document, subject: Subject) -> Iterator[Range]:
    for word in _words(document):
        if word.text == subject.symbol.name:
            for place in _kernels(document, word):
                if place.start == subject.place.start and _header_symbol(place, word) is subject.symbol:
                    yield word.range
