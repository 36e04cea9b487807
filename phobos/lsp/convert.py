"""Our values to the protocol's and back: offsets to positions in the client's encoding, findings to diagnostics."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from lsprotocol import types

from phobos.check.rule import url
from phobos.diagnostic import Diagnostic, Severity
from phobos.ide.document import Range
from phobos.lsp.client import Client, Format
from phobos.lsp.session import Opened, Session
from phobos.syntax.lines import Encoding
from phobos.value import value

SOURCE = "phobos"

SEVERITIES: dict[Severity, types.DiagnosticSeverity] = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Hint,
}
TAGS = {"unnecessary": types.DiagnosticTag.Unnecessary, "deprecated": types.DiagnosticTag.Deprecated}


@value
class Ready:
    """A result as it stands on the wire, for answers of hundreds of parts: the library's classes take longer to make
    and to take apart than all the rest of such an answer."""

    json: Any


class Converter:
    """Positions of one document in one encoding."""

    __slots__ = ("document", "encoding", "lines")

    def __init__(self, document: Opened, encoding: Encoding) -> None:
        self.document = document
        self.lines = document.lines
        self.encoding = encoding

    def offset(self, position: types.Position) -> int:
        """The nearest offset of the text; a position outside it is no error."""
        return self.lines.offset(position.line, position.character, self.encoding)

    def offsets(self, range: types.Range) -> Range:
        start, end = self.offset(range.start), self.offset(range.end)
        return Range(min(start, end), max(start, end))

    def position(self, offset: int) -> types.Position:
        return types.Position(*self.lines.position(offset, self.encoding))

    def range(self, start: int, end: int) -> types.Range:
        return types.Range(self.position(start), self.position(end))

    def range_of(self, range: Range) -> types.Range:
        return self.range(range.start, range.end)

    def json(self, range: Range) -> dict[str, dict[str, int]]:
        """A range on the wire."""
        line, character = self.lines.position(range.start, self.encoding)
        last, behind = self.lines.position(range.end, self.encoding)
        return {"start": {"line": line, "character": character}, "end": {"line": last, "character": behind}}

    def location(self, range: Range) -> types.Location:
        return types.Location(self.document.uri, self.range_of(range))

    def edit(self, start: int, end: int, text: str) -> types.TextEdit:
        return types.TextEdit(self.range(start, end), text)


def converter(session: Session, document: Opened) -> Converter:
    return Converter(document, session.encoding)


def workspace_edit(
    session: Session, document: Opened, edits: Iterable[tuple[int, int, str]]
) -> types.WorkspaceEdit:
    """Edits of one document, tied to its version where the client can hold us to it."""
    to = converter(session, document)
    changes = [to.edit(*edit) for edit in sorted(edits)]
    if session.client.versioned_edits:
        identifier = types.OptionalVersionedTextDocumentIdentifier(uri=document.uri, version=document.version)
        return types.WorkspaceEdit(
            document_changes=[types.TextDocumentEdit(text_document=identifier, edits=list(changes))]
        )
    return types.WorkspaceEdit(changes={document.uri: changes})


def markup(markdown: str, format: Format) -> types.MarkupContent:
    """Markdown for a client that renders it, else the same without its marks."""
    if format == "markdown":
        return types.MarkupContent(types.MarkupKind.Markdown, markdown)
    return types.MarkupContent(types.MarkupKind.PlainText, plain(markdown))


def documentation(markdown: str, format: Format) -> types.MarkupContent | str | None:
    """The documentation of an item: nothing for nothing, a string where the client knows no other form."""
    if not markdown:
        return None
    return plain(markdown) if format == "string" else markup(markdown, format)


def plain(markdown: str) -> str:
    """Markdown of our own making without fences, emphasis and code marks."""
    kept: list[str] = []
    fenced = False
    for line in markdown.split("\n"):
        if line.startswith("```"):
            fenced = not fenced
        elif fenced:
            kept.append(line)
        elif line == "---":
            kept.append("")
        else:
            kept.append(re.sub(r"`([^`]*)`|\\([\\`*_\[\]<>~|#&])|\*\*|`", r"\1\2", line))
    return "\n".join(kept)


# --- findings -------------------------------------------------------------------------------------------


def diagnostics(session: Session, document: Opened, findings: Iterable[Diagnostic]) -> list[types.Diagnostic]:
    to = converter(session, document)
    return [diagnostic(session.client, to, finding) for finding in findings]


def diagnostic(client: Client, to: Converter, finding: Diagnostic) -> types.Diagnostic:
    related = [
        types.DiagnosticRelatedInformation(to.location(Range(r.span.start, r.span.end)), r.message)
        for r in finding.related
    ]
    return types.Diagnostic(
        range=to.range(finding.span.start, finding.span.end),
        message=message(finding, None if client.related else to),
        severity=SEVERITIES[finding.severity],
        code=finding.code,
        code_description=types.CodeDescription(url(finding.code)) if client.code_links else None,
        source=SOURCE,
        tags=[TAGS[tag] for tag in finding.tags] or None if client.tags else None,
        related_information=related or None if client.related else None,
    )


def message(finding: Diagnostic, chain: Converter | None) -> str:
    """What is read in the editor: the message, its label, notes and help, each on a line.

    With `chain` the related places are lines too, in their order, for a client that cannot show them itself.
    """
    lines = [finding.message]
    if finding.label:
        lines.append(finding.label)
    if chain is not None:
        for related in finding.related:
            row = chain.lines.position(related.span.start)[0] + 1
            lines.append(f"line {row}: {related.message}")
    lines.extend(finding.notes)
    if finding.help:
        lines.append(f"help: {finding.help}")
    return "\n".join(lines)
