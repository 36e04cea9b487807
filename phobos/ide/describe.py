"""Names in words: what they mean, their types, how far they vary and why. One wording for every answer."""

from __future__ import annotations

import re

from phobos.ide.document import Document, Place
from phobos.ide.names import Symbol, Use
from phobos.semantics import ir, types
from phobos.semantics.levels import Level, Origin
from phobos.semantics.program import Program
from phobos.semantics.uniformity import uniformity_of
from phobos.syntax import tree

Meaning = ir.Variable | ir.Tensor | ir.Dim | ir.Constant | ir.ScalarParam

AXES = "xyz"

_SPAN = re.compile(r"(`[^`\n]+`)")
_MARKS = re.compile(r"([\\`*_\[\]<>~|#&])")


def prose(text: str) -> str:
    """A text of the user's for Markdown: it shows as it is. What stands between backticks is code, nothing else is
    markup: neither a link nor an image, which an editor would fetch, nor emphasis out of `a * b * c`."""
    return "".join(part if number % 2 else _MARKS.sub(r"\\\1", part) for number, part in enumerate(_SPAN.split(text)))


def one_line(written: str) -> str:
    """Code as it stands in the text, on one line: without its comments, blanks evened out."""
    return " ".join(re.sub(r"//[^\r\n]*", " ", written).split())


# --- what a name means in a program ---------------------------------------------------------------------


def meaning(program: Program, symbol: Symbol) -> Meaning | None:
    """What the analysis made of a declaration; None where the text is too broken to say."""
    match symbol.kind:
        case "constant":
            return program.constants.get(symbol.name)
        case "dimension":
            return program.dims.get(symbol.name)
        case "tensor" | "parameter" | "tile":
            found = program.tensors.get(symbol.name) or program.params.get(symbol.name)
            if found is not None and found.param is symbol.node:
                return found
    for variable in program.variables:
        span = variable.span
        own = span.owner in (program.owner, None) and not variable.calls
        if own and variable.name == symbol.name and span.start <= symbol.declared.start < span.end:
            return variable
    return None


def type_of(meaning: Meaning) -> str:
    """The type of a declared thing, as it would be written."""
    match meaning:
        case ir.Tensor():
            return types.tensor_text(meaning)
        case ir.ScalarParam(dtype=dtype):
            return dtype
        case ir.Variable(type=type):
            return type_text(type)
        case _:
            return "index"


def type_text(type: ir.Type) -> str:
    """`tile<f32>[16, N]`, `index`; "" for the type of what was reported already."""
    return "" if isinstance(type, ir.ErrorT) else types.type_text(type)


# --- uniformity -----------------------------------------------------------------------------------------

LEVELS = {
    Level.CONSTANT: "the same in every block",
    Level.UNIFORM: "the same in every block",
    Level.VARYING: "differs between blocks",
    Level.LANE: "differs between threads",
}


def level_words(program: Program, level: Level) -> str:
    """How far something varies. A function's own values hang on what it is called with, which is not known in it."""
    if level < Level.VARYING and program.owner is not None:
        return "The same in every block if the arguments are"
    return LEVELS[level].capitalize()


def level_of(program: Program, meaning: Meaning) -> Level:
    """How far a declared thing varies over its life. A tensor's name, an extent, a parameter: not at all."""
    if isinstance(meaning, ir.Variable):
        return uniformity_of(program).level(meaning)
    return Level.CONSTANT if isinstance(meaning, ir.Constant) else Level.UNIFORM


def level_at(program: Program, use: Use, meant: Meaning | None) -> Level:
    """How far the value read at a use varies there; of a declaration, over its life."""
    made = program.node_types.get(use.node) if use.node is not None else None
    if isinstance(made, ir.Expression):
        return uniformity_of(program).level(made)
    return Level.CONSTANT if meant is None else level_of(program, meant)


def chain_of(document: Document, place: Place, origins: tuple[Origin, ...]) -> list[str]:
    """Why something varies, a line each, from what is asked about to where the variation comes in."""
    lines = []
    for origin in origins:
        row = row_of(document, place, origin.span.owner, origin.span.start)
        lines.append(f"{origin.message} (line {row})" if row is not None else origin.message)
    return lines


def row_of(document: Document, place: Place, owner: str | None, offset: int) -> int | None:
    """The line of a fact's place; facts of a kernel may lie in a function it inlines."""
    node = place.item.node
    if owner is None or (isinstance(node, tree.Function) and node.name.text == owner):
        return document.row(place, offset)
    function = document.function(owner)
    return None if function is None else document.row(function, offset)
