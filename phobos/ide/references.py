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
from phobos.syntax.headers import FUSED, header_lines, header_words
from phobos.value import value

_EXPECTED = re.compile(r"\s*([^\W\d]\w*)\s*(?=\[|sha256\s*=)")


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
class HeaderName:
    """A name in a `// run:` or `// expect:` line, and the kernels that the line speaks of.

    `kernels` is None for the file's only one. `bare`: it stands where the name of an option of the run could stand.
    """

    range: Range
    text: str
    line: int
    kernels: tuple[str, ...] | None
    is_kernel: bool
    bare: bool


def header_names(document: Document) -> Iterator[HeaderName]:
    """Every name in the header of the file that can stand for a kernel or for something of one."""
    kernels: tuple[str, ...] | None = None
    for line in header_lines(document.text):
        if line.key == "expect":
            found = _EXPECTED.match(line.text)
            if found is not None:
                at = line.start + found.start(1)
                yield HeaderName(Range(at, at + len(found[1])), found[1], line.line, kernels, False, False)
            continue
        words = header_words(line)
        given = next((word.given for word in words if word.key == "kernel"), None)
        kernels = tuple(given.split(FUSED)) if given else None
        for word in words:
            if word.key == "kernel":
                at = word.end + len("=")
                for name in kernels or ():
                    yield HeaderName(Range(at, at + len(name)), name, line.line, kernels, True, False)
                    at += len(name) + len(FUSED)
            elif not word.is_option:
                at = word.end - len(word.name)
                yield HeaderName(Range(at, word.end), word.name, line.line, kernels, False, at == word.start)


def header_subjects(document: Document, name: HeaderName) -> list[Subject]:
    """What a name in the header stands for: in a fusion, one of each kernel that has it."""
    places = [place for place in document.places() if isinstance(place.item.node, tree.Kernel)]
    if name.kernels is None:
        places = places if len(places) == 1 else []
    found = []
    for place in places:
        if name.kernels is None or _own_name(place) in name.kernels:
            symbol = next((s for s in place.names.symbols if s.name == name.text and _fits(s, name)), None)
            if symbol is not None:
                found.append(Subject(place, symbol))
    return found


def _fits(symbol: Symbol, name: HeaderName) -> bool:
    kinds = ("kernel",) if name.is_kernel else ("tensor", "parameter", "dimension", "constant")
    return symbol.kind in kinds


def _own_name(place: Place) -> str:
    assert place.item.node is not None
    return place.item.node.name.text


def _header_subject(document: Document, offset: int) -> Subject | None:
    for name in header_names(document):
        if name.range.start <= offset <= name.range.end:
            return next(iter(header_subjects(document, name)), None)
    return None


def _in_headers(document: Document, subject: Subject) -> Iterator[Range]:
    for name in header_names(document):
        same = name.text == subject.symbol.name
        if same and any(found.symbol is subject.symbol for found in header_subjects(document, name)):
            yield name.range
