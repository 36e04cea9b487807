"""What is shown for the thing under the cursor: its documentation, and what the analysis knows of it here.

A hover is at most a screenful. What it says of a name: type and shape, how far it differs between blocks and why,
what masks its slices need and why, which phases a barrier separates, what an attribute does to this kernel, and
what the host must guarantee.
"""

from __future__ import annotations

import re

from phobos.ide import facts
from phobos.ide.describe import (
    Meaning,
    chain_of,
    level_at,
    level_of,
    level_words,
    meaning,
    one_line,
    prose,
    type_of,
    type_text,
)
from phobos.ide.document import Document, Place, Range
from phobos.ide.keywords import KEYWORDS
from phobos.ide.names import Symbol, Use
from phobos.ide.references import header_names, header_subjects
from phobos.ide.rules import rule_page
from phobos.ide.walk import path_to
from phobos.language.attributes import ATTRIBUTES
from phobos.language.builtins import BUILTINS, Builtin
from phobos.language.members import DOCUMENTATION as CTX
from phobos.language.members import MEMBERS
from phobos.language.scalars import SCALARS
from phobos.semantics import ir
from phobos.semantics.levels import Level
from phobos.semantics.program import Program
from phobos.semantics.uniformity import uniformity_of
from phobos.syntax import tree
from phobos.syntax.pragmas import pragma_of
from phobos.value import value

MOST_LINES = 32


@value
class Hover:
    range: Range
    markdown: str


def hover(document: Document, offset: int) -> Hover | None:
    place = document.place(offset)
    found = None if place is None else _comment(document, place)
    if found is None and place is not None and place.item.node is not None:
        found = _code(document, place)
    if found is None:
        found = _header(document, offset)
    if found is None:
        return None
    range, sections = found
    return Hover(range, _screenful("\n\n".join(section for section in sections if section)))


Found = tuple[Range, list[str]]


def _screenful(markdown: str) -> str:
    lines = markdown.split("\n")
    if len(lines) <= MOST_LINES:
        return markdown
    kept = lines[: MOST_LINES - 1]
    if sum(line.startswith("```") for line in kept) % 2:
        kept.append("```")
    return "\n".join([*kept, "…"])


# --- comments -------------------------------------------------------------------------------------------


def _comment(document: Document, place: Place) -> Found | None:
    for comment in place.item.comments:
        if comment.start <= place.inside <= comment.end:
            pragma = pragma_of(comment)
            if pragma is None:
                return None
            if pragma.kind == "assume-uniform":
                use = place.names.at(place.inside)
                if use is not None:
                    return _name(document, place, use)
                text = (
                    f"Promises that `{pragma.words[0].text}` has one value for all blocks at the next statement. "
                    "The reference runtime checks it (`assumption-broken`)."
                )
                return place.range(comment.start, comment.end), ["**assume uniform**", text]
            if pragma.kind in ("ignore", "ignore-file"):
                for word in pragma.words:
                    if word.start <= place.inside <= word.end:
                        page = rule_page(word.text)
                        return (place.range(word.start, word.end), [page]) if page else None
            return None
    return None


def _header(document: Document, offset: int) -> Found | None:
    """A name in a `// run:` or `// expect:` line is what the kernel declares by it."""
    for name in header_names(document):
        if name.range.start <= offset <= name.range.end:
            for subject in header_subjects(document, name)[:1]:
                use = subject.place.names.at(subject.symbol.declared.start)
                shown = None if use is None else _name(document, subject.place, use)
                return None if shown is None else (name.range, shown[1])
    return None


# --- code -----------------------------------------------------------------------------------------------


def _code(document: Document, place: Place) -> Found | None:
    node = place.item.node
    assert node is not None
    program = document.program(place)
    path = path_to(node, place.inside)
    attribute = next((n for n in path if isinstance(n, tree.Attribute)), None)
    if attribute is not None and place.inside <= attribute.name.end:
        return _attribute(document, place, program, attribute)
    member = next((n for n in path if isinstance(n, tree.Member)), None)
    if member is not None:
        found = _member(document, place, program, member)
        if found is not None:
            return found
    use = place.names.at(place.inside)
    if use is not None:
        return _name(document, place, use)
    if attribute is not None:
        return None  # its `in` is not that of a `for`
    for inner in reversed(path):
        if isinstance(inner, tree.ScalarType) and inner.name in SCALARS:
            entry = SCALARS[inner.name]
            return place.range(inner.start, inner.end), [f"```phobos\n{entry.name}\n```", entry.documentation]
        if isinstance(inner, tree.SpanOf | tree.Range) and program is not None:
            access = next((n for n in reversed(path) if isinstance(n, tree.Subscript)), None)
            if access is not None:
                masks = facts.mask_lines(document, place, program, access)
                if masks:
                    return place.range(access.start, access.end), ["\n".join(masks)]
    return _keyword(place)


def _keyword(place: Place) -> Found | None:
    text = place.item.text
    for word in re.finditer(r"[a-z]+", text[max(0, place.inside - 10) : place.inside + 10]):
        start = max(0, place.inside - 10) + word.start()
        end = start + len(word.group())
        whole = not (start and (text[start - 1].isalnum() or text[start - 1] == "_"))
        if whole and start <= place.inside <= end and word.group() in KEYWORDS:
            entry = KEYWORDS[word.group()]
            return place.range(start, end), [f"```phobos\n{entry.form}\n```", entry.documentation]
    return None


def _attribute(
    document: Document, place: Place, program: Program | None, attribute: tree.Attribute
) -> Found | None:
    entry = ATTRIBUTES.get(attribute.name.text)
    if entry is None:
        return None
    sections = [f"```phobos\n{entry.signature}\n```", entry.documentation]
    if program is not None:
        effect = facts.attribute_lines(document, place, program, attribute)
        if effect:
            sections.append("**Here:** " + "\n".join(effect))
    return place.range(attribute.start, attribute.name.end), sections


def _member(document: Document, place: Place, program: Program | None, member: tree.Member) -> Found | None:
    inner = member.base if isinstance(member.base, tree.Member) else member
    if not (isinstance(inner.base, tree.Name) and inner.base.text == "ctx"):
        return None
    if place.inside <= inner.base.end and inner.base.start <= place.inside:
        return place.range(inner.base.start, inner.base.end), ["```phobos\nctx\n```", CTX]
    entry = MEMBERS.get(inner.name.text)
    if entry is None:
        return None
    axis = member.name.text if member is not inner else ""
    spelled = f"ctx.{entry.name}" + (f".{axis}" if axis else "")
    sections = [f"```phobos\n{spelled}: index\n```", entry.documentation]
    if program is not None and axis in ("x", "y", "z") and entry.meaning in ("block", "blocks"):
        sections.append("\n".join(facts.axis_lines(document, place, program, "xyz".index(axis))))
    return place.range(inner.base.start, member.end), sections


# --- names ----------------------------------------------------------------------------------------------


def _name(document: Document, place: Place, use: Use) -> Found | None:
    range = place.range(use.start, use.end)
    symbol = use.symbol
    if symbol is None:
        if use.name == "ctx":
            return range, ["```phobos\nctx\n```", CTX]
        builtin = BUILTINS.get(use.name)  # also before its `(` is typed
        function = document.function(use.name)
        if builtin is not None and (builtin.core or function is None):
            return range, _builtin(document, place, use, builtin)
        return None if function is None else (range, _function(document, function))
    match symbol.kind:
        case "kernel":
            return range, _kernel(document, place)
        case "function":
            return range, _function(document, place)
        case _:
            return range, _value(document, place, use, symbol)


def _builtin(document: Document, place: Place, use: Use, builtin: Builtin) -> list[str]:
    sections = [f"```phobos\n{builtin.signature}\n```", builtin.documentation]
    if builtin.parameters:
        sections.append("\n".join(f"- `{p.label}`: {p.documentation}" for p in builtin.parameters))
    program = document.program(place)
    if program is None or place.item.node is None:
        return sections
    path = path_to(place.item.node, use.start) if use.role == "call" else []
    call = next((n for n in reversed(path) if isinstance(n, tree.Call)), None)
    if call is None:
        return sections
    if builtin.effect == "barrier":
        sections.extend(facts.barrier_sections(document, place, program, call))
    else:
        made = program.node_types.get(call)
        if isinstance(made, ir.Expression):
            text = type_text(made.type)
            here = [f"Here: `{text}`"] if text else []
            sections.append("\n".join([*here, *_varies(document, place, program, made)]))
    return sections


def signature_of(place: Place) -> str:
    """A kernel's or function's head as written, blanks evened out."""
    node = place.item.node
    assert node is not None
    head = one_line(place.item.text[node.name.start : node.body.start])
    return ("kernel " if isinstance(node, tree.Kernel) else "fn ") + head


def comment_above(document: Document, place: Place) -> str:
    """The `//` comment that stands right above an item: its own documentation, in Markdown."""
    lines = document.lines
    row = lines.line_of(place.start) - 1
    kept: list[str] = []
    while row >= 0:
        line = lines.line_text(row).strip()
        if not line.startswith("//"):
            break
        text = line[2:].strip()
        if not re.match(r"(run|expect|phobos):", text):
            kept.append(text)
        row -= 1
    return prose("\n".join(reversed(kept)).strip())


def _function(document: Document, place: Place) -> list[str]:
    callers = sorted(
        {
            other.item.node.name.text
            for other in document.places()
            for use in other.names.uses
            if use.role == "call" and other.item.node is not None and use.name == _own_name(place)
        }
    )
    inlined = f"Inlined in {', '.join(f'`{name}`' for name in callers)}." if callers else "Called nowhere in this file."
    return [f"```phobos\n{signature_of(place)}\n```", comment_above(document, place), inlined]


def _own_name(place: Place) -> str:
    assert place.item.node is not None
    return place.item.node.name.text


def _kernel(document: Document, place: Place) -> list[str]:
    sections = [f"```phobos\n{signature_of(place)}\n```", comment_above(document, place)]
    program = document.program(place)
    if program is not None:
        sections.append("\n".join(facts.grid_lines(document, place, program)))
        sections.append(facts.host_section(program))
    return sections


def _value(document: Document, place: Place, use: Use, symbol: Symbol) -> list[str]:
    program = document.program(place)
    meant = meaning(program, symbol) if program is not None else None
    if program is None or meant is None:
        return [f"```phobos\n{_written(place, symbol)}\n```"]
    text = type_of(meant)
    head = _written(place, symbol)
    if isinstance(meant, ir.Variable):
        kind = {"view": "let", "temp": "let", "loop": "for"}.get(meant.kind, meant.kind)
        head = f"{kind} {symbol.name}: {text}" if text else f"{kind} {symbol.name}"
    if isinstance(meant, ir.Tensor | ir.ScalarParam) or (isinstance(symbol.node, tree.Param) and text):
        head = f"{symbol.name}: {text}"
    sections = [f"```phobos\n{head}\n```"]
    match meant:
        case ir.Constant():
            sections.extend(facts.constant_lines(program, meant))
        case ir.Dim():
            sections.append(facts.dimension_line(document, place, program, meant))
        case ir.Variable(kind="view"):
            sections.append("A read-only view: its elements are read where it is used, in the phase of that use.")
        case ir.Variable(kind="loop"):
            sections.append(facts.loop_line(document, place, program, meant))
        case _:
            pass
    lines = _level_lines(document, place, program, use, meant)
    if lines:
        sections.append("\n".join(lines))
    masks = _masks_at(document, place, program, use)
    if masks:
        sections.append("\n".join(masks))
    if isinstance(meant, ir.Tensor | ir.Dim | ir.ScalarParam):
        sections.append(facts.host_section(program, meant))
    return sections


def _level_lines(document: Document, place: Place, program: Program, use: Use, meant: Meaning) -> list[str]:
    if isinstance(meant, ir.Tensor | ir.Constant):
        return []
    level = level_at(program, use, meant)
    made = program.node_types.get(use.node) if use.node is not None else None
    about = made if isinstance(made, ir.Expression) else meant
    words = level_words(program, level)
    if level < Level.VARYING and level_of(program, meant) >= Level.VARYING:
        return [f"{words} here; it differs elsewhere."]
    lines = [f"{words}."]
    if level >= Level.VARYING and isinstance(about, ir.Expression | ir.Variable):
        lines = [f"{words}:"] + [
            f"- {line}" for line in chain_of(document, place, uniformity_of(program).why(about))
        ]
    return lines


def _varies(document: Document, place: Place, program: Program, made: ir.Expression) -> list[str]:
    facts_of = uniformity_of(program)
    level = facts_of.level(made)
    if level < Level.VARYING:
        return [f"{level_words(program, level)}."]
    return [f"{level_words(program, level)}:"] + [
        f"- {line}" for line in chain_of(document, place, facts_of.why(made))
    ]


def _masks_at(document: Document, place: Place, program: Program, use: Use) -> list[str]:
    """Of the access whose base is the name under the cursor, or, for a view, of the slice that it is."""
    node = place.item.node
    if node is None or use.node is None:
        return []
    path = path_to(node, use.start)
    if use.role == "declare":
        statement = next((n for n in reversed(path) if isinstance(n, tree.Let | tree.Var)), None)
        value = statement.value if statement is not None else None
        if isinstance(value, tree.Subscript):
            return facts.mask_lines(document, place, program, value)
        return []
    for inner in reversed(path):
        if isinstance(inner, tree.Subscript) and inner.base is use.node:
            return facts.mask_lines(document, place, program, inner)
    return []


def _written(place: Place, symbol: Symbol) -> str:
    """A declaration as it stands in the text, on one line."""
    match symbol.node:
        case tree.Let() | tree.Var() as node:
            text = place.item.text[node.start : node.end]
        case tree.For() as node:
            text = place.item.text[node.start : node.body.start]
        case tree.Param() | tree.SearchArg() as node:
            text = place.item.text[node.start : node.end]
        case _:
            return symbol.name
    return one_line(text)

