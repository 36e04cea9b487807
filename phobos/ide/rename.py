"""Renaming, and refusing to: a rename never changes what a kernel means.

Refused: what the document does not declare (built-ins, `ctx`, attributes), a name that is no identifier or has a
meaning of its own, and every clash, that is, a rename after which some name would stand for something else.
"""

from __future__ import annotations

from phobos.ide.document import Document, Range
from phobos.ide.names import Symbol, Use
from phobos.ide.references import Subject, header_names, header_subjects, occurrences_of, subject_at, use_at
from phobos.language.builtins import BUILTINS
from phobos.syntax import tree
from phobos.syntax.headers import OPTIONS
from phobos.syntax.tokens import KEYWORDS, NAME, tokenize


class RenameRefused(Exception):
    """The message is for the user."""


def prepare(document: Document, offset: int) -> Range:
    """The name at `offset`, if it can be renamed. Raises RenameRefused."""
    subject = _subject(document, offset)
    for found in occurrences_of(document, subject):
        if found.range.start <= offset <= found.range.end:
            return found.range
    raise RenameRefused("there is no name here")


def rename(document: Document, offset: int, name: str) -> list[Range]:
    """The places to write `name` at. Raises RenameRefused."""
    subject = _subject(document, offset)
    if name in KEYWORDS:
        raise RenameRefused(f"`{name}` is a keyword")
    if not _is_name(name):
        raise RenameRefused(f"`{name}` is not a name: letters, digits and `_`, not beginning with a digit")
    if name == "ctx":
        raise RenameRefused("`ctx` is the kernel's context; nothing else can have this name")
    shared = _shared(document, subject)
    if name != subject.symbol.name:
        for each in shared:
            _refuse_clashes(document, each, name)
        _refuse_option(document, shared, name)
    places = {found.range.start: found.range for each in shared for found in occurrences_of(document, each)}
    return [places[start] for start in sorted(places)]


def _shared(document: Document, subject: Subject) -> list[Subject]:
    """What is to keep one name: of kernels that are launched as one, all that a word of the header stands for."""
    found = [subject]
    groups = [header_subjects(document, name) for name in header_names(document) if name.text == subject.symbol.name]
    for known in found:  # which grows on the way
        for group in groups:
            if any(each.symbol is known.symbol for each in group):
                found.extend(each for each in group if all(each.symbol is not other.symbol for other in found))
    return found


def _refuse_option(document: Document, shared: list[Subject], name: str) -> None:
    if name not in OPTIONS:
        return
    for written in header_names(document):
        if written.bare and written.text == shared[0].symbol.name:
            found = header_subjects(document, written)
            if any(one.symbol is each.symbol for one in found for each in shared):
                raise RenameRefused(
                    f"`{name}=` in a `// run:` line is an option of the run: write `arg.{written.text}=` for "
                    f"`{written.text}=` in line {written.line} first"
                )


def _subject(document: Document, offset: int) -> Subject:
    subject = subject_at(document, offset)
    if subject is not None and subject.symbol.name:
        return subject
    found = use_at(document, offset)
    if found is None:
        raise RenameRefused("there is no name here that can be changed")
    name = found[1].name
    if name in BUILTINS:
        raise RenameRefused(f"`{name}` is a built-in of the language")
    raise RenameRefused(f"`{name}` is not declared in this file")


def _refuse_clashes(document: Document, subject: Subject, name: str) -> None:
    symbol = subject.symbol
    if symbol.kind in ("kernel", "function"):
        _refuse_item_clash(document, subject, name)
    else:
        _refuse_local_clash(subject, name)


def _refuse_item_clash(document: Document, subject: Subject, name: str) -> None:
    for place in document.places():
        node = place.item.node
        if node is not None and node.name.text == name:
            what = "kernel" if isinstance(node, tree.Kernel) else "function"
            raise RenameRefused(f"there is already a {what} `{name}` in this file")
    if subject.kind == "function":
        if name in BUILTINS:
            raise RenameRefused(f"`{name}` is a built-in: a call of it would never reach the function")
        for place in document.places():
            for use in place.names.uses:
                if use.role == "call" and use.name == name and use.symbol is None:
                    raise RenameRefused(f"`{name}` is already called in this file and would become this function")


def _refuse_local_clash(subject: Subject, name: str) -> None:
    names, symbol = subject.place.names, subject.symbol
    for other in names.symbols:
        if other.name != name or other is symbol or other.kind in ("kernel", "function"):
            continue
        if _captures(names.of(symbol), symbol, other, names.of(other)):
            raise RenameRefused(f"`{name}` already names a {_word(other)} here; one of them would be hidden")
    for use in names.uses:  # a name that is declared nowhere would become this one
        free = use.name == name and use.symbol is None and use.role in ("read", "write", "update")
        if free and symbol.visible_from <= use.start <= symbol.visible_to:
            raise RenameRefused(f"`{name}` is already written here and would become this {_word(symbol)}")


def _captures(uses: tuple[Use, ...], symbol: Symbol, other: Symbol, other_uses: tuple[Use, ...]) -> bool:
    """Whether giving both one name makes a use of one mean the other, or declares two in one scope."""
    top = ("tensor", "tile", "parameter", "dimension", "constant")
    if symbol.kind in top and other.kind in top:
        return True
    if symbol.visible_to == other.visible_to:
        return True  # one block: declared twice
    inner, outer_uses = (other, uses) if symbol.visible_from <= other.visible_from else (symbol, other_uses)
    return any(inner.visible_from <= use.start <= inner.visible_to for use in outer_uses)


def _word(symbol: Symbol) -> str:
    return {"let": "variable", "var": "variable", "loop": "loop variable"}.get(symbol.kind, symbol.kind)


def _is_name(text: str) -> bool:
    """Whether the language reads it as one name."""
    tokens = tokenize(text)
    return tokens.kinds[:1] == NAME and tokens.list[0] == (0, len(text), text)
