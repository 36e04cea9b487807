"""What can stand where the cursor is: by position, by scope and by kind, in code that is only half written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Literal

from phobos.ide.cursor import Cursor, cursor_at
from phobos.ide.describe import meaning, type_of
from phobos.ide.document import Document, Place, Range
from phobos.ide.keywords import KEYWORDS
from phobos.ide.names import Symbol
from phobos.language.attributes import ATTRIBUTES
from phobos.language.builtins import BUILTINS, CORE, Builtin
from phobos.language.members import AXES, MEMBERS
from phobos.language.scalars import SCALARS
from phobos.syntax import tree
from phobos.syntax.tokens import NAME, tokens_of
from phobos.value import value

Kind = Literal[
    "keyword", "builtin", "function", "tensor", "tile", "parameter", "dimension", "constant", "variable", "attribute",
    "member", "type", "value", "rule",
]  # fmt: skip


@value
class Completion:
    """`insert` replaces `range`; `snippet` is the same with places to fill in. Lower `rank` comes first."""

    label: str
    kind: Kind
    range: Range
    detail: str
    documentation: str
    insert: str
    snippet: str | None
    rank: int


def completions(document: Document, offset: int) -> list[Completion]:
    from phobos.ide.comments import in_comment

    said = in_comment(document, offset)
    if said is not None:
        return said
    place = place_of(document, offset)
    cursor = cursor_at(place)
    range = place.range(cursor.prefix_start, max(cursor.word_end, place.inside))
    make = _Maker(document, place, cursor, range)
    return sorted(make.all(), key=lambda c: (c.rank, c.label))


def place_of(document: Document, offset: int) -> Place:
    """The item at the cursor; between items, an empty one, so that something can begin there."""
    place = document.place(offset)
    if place is not None and (place.item.node is not None or offset < place.start + len(place.item.text)):
        return place
    if place is not None:
        return place
    for start, item in reversed([*document.items]):  # behind an unfinished item: its text goes on to the cursor
        if start <= offset:
            between = document.text[start + len(item.text) : offset]
            if not between.strip() and item.node is not None and not item.text.rstrip().endswith("}"):
                longer = tree.Item(item.text + between, item.node, item.problems, item.comments)
                return Place(start, longer, offset - start)
            break
    return Place(offset, tree.Item("", None, (), ()), 0)


class _Maker:
    def __init__(self, document: Document, place: Place, cursor: Cursor, range: Range) -> None:
        self.document = document
        self.place = place
        self.cursor = cursor
        self.range = range
        rest = document.text[range.end : range.end + 80].partition("\n")[0].strip()
        self.behind = rest[:1]  # what comes next on the line, if anything

    def all(self) -> Iterator[Completion]:
        cursor = self.cursor
        match cursor.position:
            case "item":
                yield from self.keywords("item", 10)
                yield from self.attributes("@")
            case "attribute":
                yield from self.attributes("")
            case "attribute-argument":
                yield from self.attribute_arguments()
            case "member":
                yield from self.members()
            case "axis":
                yield from self.axes()
            case "type":
                yield from self.types()
            case "result":
                yield self.keyword("tile", 1)
                yield from self.scalars(10)
            case "scalar":
                yield from self.scalars(0)
            case "dimension":
                yield from self.names(("dimension", "constant"), cursor.wanted)
            case "range" | "in" | "else" | "hint":
                yield from self.keywords(cursor.position, 0)
            case "else-if":
                yield self.keyword("if", 0)
            case "statement":
                yield from self.keywords("statement")
                if cursor.in_loop:
                    yield from self.keywords("loop")
                yield from self.values(statement=True)
            case "expression":
                yield from self.values(statement=False)
            case _:
                return

    # --- fixed words ----------------------------------------------------------------------------------

    def plain(
        self, label: str, kind: Kind, detail: str, documentation: str, rank: int, snippet: str | None = None,
        insert: str | None = None,
    ) -> Completion:  # fmt: skip
        written = insert or label
        if snippet is not None and self.goes_on(label, snippet):
            written, snippet = label, None
        return Completion(label, kind, self.range, detail, documentation, written, snippet, rank)

    def goes_on(self, label: str, snippet: str) -> bool:
        """Whether what a snippet puts behind its word stands there already: the `(` of a call, the rest of a `for`."""
        if not self.behind:
            return False
        more = snippet.removeprefix(label).lstrip()
        return more[:1] == self.behind or (label in KEYWORDS and more[:1] == "$" and self.behind not in "}/;")

    def keyword(self, word: str, rank: int) -> Completion:
        entry = KEYWORDS[word]
        return self.plain(word, "keyword", entry.form, entry.documentation, rank, entry.snippet)

    def keywords(self, where: str, rank: int = 50) -> Iterator[Completion]:
        for word, entry in KEYWORDS.items():
            if entry.where == where:
                yield self.keyword(word, rank)

    def attributes(self, mark: str) -> Iterator[Completion]:
        written = self.written_attributes()
        for entry in ATTRIBUTES.values():
            if entry.name in written and not entry.repeatable:
                continue
            snippet = _ATTRIBUTE_SNIPPETS.get(entry.name, entry.name)
            rank = 41 if entry.form == "any" else 40  # those without an effect here come last
            yield self.plain(
                mark + entry.name, "attribute", entry.summary, entry.documentation, rank, mark + snippet,
                mark + entry.name,
            )  # fmt: skip

    def written_attributes(self) -> set[str]:
        """Those that stand before the kernel already, or before the place where it will."""
        tokens = tokens_of(self.place.item.text)
        head = tokens.kinds.partition("K")[0]
        names = [tokens.list[at + 1] for at, kind in enumerate(head[:-1]) if kind == "@" and head[at + 1] == NAME]
        return {text for start, end, text in names if not start <= self.place.inside <= end}

    def attribute_arguments(self) -> Iterator[Completion]:
        entry = ATTRIBUTES.get(self.cursor.attribute or "")
        if entry is None:
            return
        calling = self.cursor.calling
        before = self.place.item.text[calling.open if calling else 0 : self.cursor.prefix_start]
        behind_equal = before.rstrip().endswith("=")
        if entry.form != "search" and re.search(r"\w\s*\Z", before):
            return  # an argument that is complete
        if entry.form == "dims":
            if behind_equal:
                yield from self.names(("constant",))
                return
            for symbol in self.visible(("dimension",)):
                yield self.plain(
                    symbol.name, "dimension", "extent", f"Promise that `{symbol.name}` is a whole number of tiles.", 0,
                    f"{symbol.name} = $0", f"{symbol.name} = ",
                )  # fmt: skip
        elif entry.form == "search":
            if before[-1:].isspace() and re.search(r"[(,]\s*[^\W\d]\w*\s*\Z", before):
                yield self.plain("in", "keyword", "NAME in [values]", entry.documentation, 0, "in [${1:64, 256}]")
        elif entry.form == "option":
            for option in entry.options:
                yield self.plain(option, "value", entry.name, entry.summary, 0)
        elif entry.form == "launch":
            threads = ("64", "128", "256", "512", "1024")
            if calling is not None and calling.argument == 0:
                for rank, number in enumerate(threads):
                    yield self.plain(number, "value", "threads a block", "A multiple of 32, from 32 to 1024.", rank)

    def members(self) -> Iterator[Completion]:
        for entry in MEMBERS.values():
            detail = "index" if entry.executed else "per thread, checked and not executed here"
            insert = f"{entry.name}." if entry.axes else entry.name
            snippet = f"{entry.name}.${{1|x,y,z|}}" if entry.axes else entry.name
            yield self.plain(
                entry.name, "member", detail, entry.documentation, 0 if entry.executed else 60, snippet, insert
            )

    def axes(self) -> Iterator[Completion]:
        entry = MEMBERS.get(self.cursor.path[1])
        if entry is not None and entry.axes:
            for axis in AXES:
                yield self.plain(axis, "member", f"ctx.{entry.name}.{axis}", entry.documentation, AXES[axis])

    def types(self) -> Iterator[Completion]:
        node = self.place.item.node
        in_head = not (self.cursor.in_kernel or self.cursor.in_function)
        if in_head or node is None:
            yield self.keyword("tensor", 0)
        if not in_head or not isinstance(node, tree.Kernel):
            yield self.keyword("tile", 1)
        yield from self.scalars(10)

    def scalars(self, rank: int) -> Iterator[Completion]:
        for position, entry in enumerate(SCALARS.values()):
            yield self.plain(entry.name, "type", f"{entry.bits} bits", entry.documentation, rank + position)

    # --- names of the kernel ----------------------------------------------------------------------------

    def visible(self, kinds: tuple[str, ...]) -> list[Symbol]:
        symbols = self.place.names.visible(self.place.inside)
        return [symbol for symbol in symbols.values() if symbol.kind in kinds and not self.being_declared(symbol)]

    def being_declared(self, symbol: Symbol) -> bool:
        """Whether the cursor still stands in what declares it: `let q = |`, `for i in range(|`, `tensor<f32>[N|`."""
        if symbol.declared.start <= self.place.inside <= symbol.declared.end:
            return True
        if symbol.kind == "loop":
            return "{" not in self.place.item.text[symbol.declared.end : self.place.inside]
        if symbol.kind not in ("let", "var"):
            return False
        calling = self.cursor.calling
        if calling is not None and symbol.node.start <= calling.open <= symbol.visible_from:
            return True  # in a call of its value that is not closed
        since = self.place.item.text[symbol.visible_from : self.place.inside]
        return not any(end in since for end in "\n\r;")

    def names(self, kinds: tuple[str, ...], wanted: str | None = None) -> Iterator[Completion]:
        """Names of these kinds; those whose type fits what is wanted first."""
        program = self.document.program_in_sight(self.place)
        for symbol in self.visible(kinds):
            meant = meaning(program, symbol) if program is not None else None
            detail = type_of(meant) if meant is not None else _written_type(self.place, symbol)
            kind = _KINDS.get(symbol.kind, "variable")
            if detail.startswith("tile"):
                kind = "tile"
            yield self.plain(symbol.name, kind, detail, "", _rank(symbol.kind, detail, wanted))

    def values(self, statement: bool) -> Iterator[Completion]:
        wanted = self.wanted()
        calling = self.cursor.calling
        if wanted == "tensor" and calling is not None:
            yield from self.tensors(calling.name)
            return
        if wanted == "axis":
            for axis in "012":
                yield self.plain(axis, "value", "axis", "", 0)
            return
        yield from self.names(tuple(_KINDS), wanted or ("statement" if statement else None))
        yield from self.calls(statement, 20)
        if wanted is None and not statement:
            yield from self.keywords("expression")
        if self.place.item.node is not None or self.cursor.in_kernel:
            yield self.plain(
                "ctx", "member", "where this block runs", MEMBERS["block"].documentation, 60 if statement else 15,
                "ctx.${1|block,blocks|}.${2|x,y,z|}", "ctx.",
            )  # fmt: skip

    def wanted(self) -> str | None:
        """What kind of value fits: a subscript's, else that of the argument under the cursor."""
        if self.cursor.wanted is not None:
            return self.cursor.wanted
        calling = self.cursor.calling
        if calling is None:
            return None
        if calling.name == "range":
            return ("index", "extent", "length")[min(calling.argument, 2)]
        builtin = BUILTINS.get(calling.name)
        if builtin is None or calling.argument >= len(builtin.parameters):
            return None
        kind = builtin.parameters[calling.argument].kind
        return kind if kind in ("tile", "tensor", "index", "axis", "condition", "table", "length") else None

    def tensors(self, callee: str) -> Iterator[Completion]:
        """Tensors for a built-in that names one: those that it can take, first."""
        for found in self.names(("tensor",)):
            integer = found.detail.startswith("tensor<i32>")
            if callee in ("grid_barrier", "atomic_add", "atomic_cas") and not integer:
                continue
            yield found

    def calls(self, statement: bool, rank: int) -> Iterator[Completion]:
        for builtin in CORE.values():
            if builtin.effect == "barrier" and not statement:
                continue
            yield self.call(builtin, rank if builtin.effect or not statement else rank + 40)
        for place in self.document.functions():
            node = place.item.node
            if isinstance(node, tree.Function) and node.name.text and node.name.text not in CORE:
                from phobos.ide.hover import comment_above, signature_of

                parameters = ", ".join(f"${{{i}:{p.name.text}}}" for i, p in enumerate(node.params, 1))
                yield self.plain(
                    node.name.text, "function", signature_of(place), comment_above(self.document, place), 12,
                    f"{node.name.text}({parameters})", node.name.text,
                )  # fmt: skip

    def call(self, builtin: Builtin, rank: int) -> Completion:
        documentation, snippet = _told(builtin)
        return self.plain(builtin.name, "builtin", builtin.signature, documentation, rank, snippet, builtin.name)


@cache
def _told(builtin: Builtin) -> tuple[str, str]:
    """The documentation of a built-in, and the call with places to fill in."""
    parameters = ", ".join(f"${{{i}:{p.label}}}" for i, p in enumerate(builtin.parameters, 1))
    return f"{builtin.documentation}\n\n```phobos\n{builtin.example}\n```", f"{builtin.name}({parameters})"


_KINDS: dict[str, Kind] = {
    "tensor": "tensor", "tile": "tile", "parameter": "parameter", "dimension": "dimension", "constant": "constant",
    "let": "variable", "var": "variable", "loop": "variable",
}  # fmt: skip

_INTEGERS = frozenset(("index", "i8", "u8", "i32", "i64"))


def _rank(kind: str, type: str, wanted: str | None) -> int:
    """How well a name fits; 0 is best. A name whose type is not known may fit."""
    tile, tensor = type.startswith("tile"), type.startswith("tensor")
    match wanted:
        case "index" | "length" | "extent":
            if type in _INTEGERS:
                best = {"length": "constant", "extent": "dimension"}.get(wanted)
                given = int(kind in ("constant", "dimension", "parameter"))
                return given if best is None else 0 if kind == best else 1 + given
            return 3 if not type or (tensor and "<i" in type) else 9
        case "tile" | "table":
            first, second = (tile, tensor) if wanted == "tile" else (tensor, tile)
            return 0 if first else 1 if second else 2 if not type else 9
        case "condition":
            return 0 if "bool" in type else 1 if tile else 2
        case "statement":
            return 0 if kind in ("var", "tensor") else 60  # the others cannot be assigned
        case _:
            return {"parameter": 1, "tensor": 1, "dimension": 2, "constant": 2}.get(kind, 0)


_ATTRIBUTE_SNIPPETS = {
    "autotune": "autotune(${1:TILE} in [${2:64, 256}])",
    "cluster": "cluster(${1:CM} in [${2:1, 2}])",
    "launch": "launch(${1:256})",
    "aligned": "aligned(${1:N} = ${2:64})",
}


def _written_type(place: Place, symbol: Symbol) -> str:
    match symbol.node:
        case tree.Param(type=written):
            return place.item.text[written.start : written.end]
        case tree.Let(type=written) | tree.Var(type=written) if written is not None:
            return place.item.text[written.start : written.end]
        case tree.For() | tree.SearchArg():
            return "index"
        case _:
            return "index" if symbol.kind == "dimension" else ""
