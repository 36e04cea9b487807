"""The signature of the call that is being written, and which of its parameters the cursor is at."""

from __future__ import annotations

from phobos.ide.cursor import calling_at
from phobos.ide.describe import one_line
from phobos.ide.document import Document
from phobos.ide.hover import comment_above
from phobos.language.attributes import ATTRIBUTES
from phobos.language.builtins import BUILTINS
from phobos.syntax import tree
from phobos.value import value


@value
class ParameterHelp:
    """`start` and `end` are its place in the signature's label."""

    start: int
    end: int
    documentation: str


@value
class Signature:
    label: str
    documentation: str
    parameters: tuple[ParameterHelp, ...]
    active: int | None


_LAUNCH = (
    ("threads", "of a block: a multiple of 32, from 32 to 1024"),
    ("min_blocks", "to aim for on a multiprocessor; may be left out"),
    ("max_registers", "that a thread may take, 16 to 255; may be left out"),
)


def signature(document: Document, offset: int) -> Signature | None:
    from phobos.ide.completion import place_of

    place = place_of(document, offset)
    calling = calling_at(place)
    if calling is None:
        return None
    if calling.is_attribute:
        entry = ATTRIBUTES.get(calling.name)
        if entry is None:
            return None
        if entry.form == "launch":
            return _made(f"@{entry.name}", _LAUNCH, "", entry.documentation, calling.argument)
        return Signature(entry.signature, entry.documentation, (), None)
    if calling.name == "range":
        return _made(
            "range", (("lo", "the first number"), ("hi", "the first number that is not taken any more"),
                      ("step", "1 unless given")), "", "The numbers that a `for` walks.", calling.argument,
        )  # fmt: skip
    function = document.function(calling.name)
    builtin = BUILTINS.get(calling.name)
    if builtin is not None and (builtin.core or function is None):
        if builtin.variadic:
            return Signature(builtin.signature, builtin.documentation, (), None)
        parameters = tuple((p.label, p.documentation) for p in builtin.parameters)
        return _made(builtin.name, parameters, builtin.gives, builtin.documentation, calling.argument)
    if function is None or not isinstance(function.item.node, tree.Function):
        return None
    node = function.item.node
    written = tuple((one_line(function.item.text[param.start : param.end]), "") for param in node.params)
    result = "" if node.result is None else one_line(function.item.text[node.result.start : node.result.end])
    return _made(node.name.text, written, result, comment_above(document, function), calling.argument)


def _made(
    name: str, parameters: tuple[tuple[str, str], ...], result: str, documentation: str, argument: int
) -> Signature:
    label = f"{name}("
    places = []
    for number, (text, about) in enumerate(parameters):
        label += ", " if number else ""
        places.append(ParameterHelp(len(label), len(label) + len(text), about))
        label += text
    label += ")" + (f" -> {result}" if result else "")
    active = argument if argument < len(places) else None
    return Signature(label, documentation, tuple(places), active)
