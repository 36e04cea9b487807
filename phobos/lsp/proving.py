"""`phobos check --prove` for the text of a document, in a child process: it runs kernels, the server does not."""

from __future__ import annotations

import asyncio
import json
import logging
from asyncio.subprocess import PIPE
from typing import Any

from phobos.diagnostic import Diagnostic, Edit, Fix, Related, Span
from phobos.lsp.client import Settings
from phobos.processes import command, environment
from phobos.syntax.lines import LineIndex

log = logging.getLogger("phobos.lsp")


async def prove(path: str, text: str, lines: LineIndex, settings: Settings) -> tuple[Diagnostic, ...] | None:
    """The findings with proof, or None when the child could not say. Cancelling ends the child."""
    words = ["check", "--prove", "--output-format", "json", f"--stdin-filename={path}"]
    if settings.configuration:
        words += [f"--config={settings.configuration}"]
    if settings.cards:
        words += [f"--target={','.join(settings.cards)}"]
    child = await asyncio.create_subprocess_exec(
        *command("phobos", *words, "-"), stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment()
    )
    try:
        out, err = await child.communicate(text.encode("utf-8", "surrogatepass"))
    except BaseException:
        if child.returncode is None:
            child.kill()
        raise
    if child.returncode not in (0, 1):
        log.error("`phobos check --prove` ended with %s: %s", child.returncode, err.decode("utf-8", "replace").strip())
        return None
    try:
        return tuple(diagnostic_of(found, path, lines) for found in json.loads(out))
    except (ValueError, TypeError, KeyError, AttributeError):
        log.error("`phobos check --prove` gave no list of findings: %s", out[:200].decode("utf-8", "replace").strip())
        return None


def diagnostic_of(found: dict[str, Any], path: str, lines: LineIndex) -> Diagnostic:
    """A finding back from its JSON form."""

    def span(at: dict[str, Any]) -> Span:
        return Span(path, _offset(at["location"], lines), _offset(at["end_location"], lines))

    fix = found["fix"]
    return Diagnostic(
        found["code"], found["name"], found["severity"], found["message"], span(found), found.get("label", ""),
        tuple(Related(span(related), related["message"]) for related in found["related"]),
        tuple(found["notes"]), found["help"],
        None if fix is None else Fix(
            fix["message"], fix["applicability"], tuple(Edit(span(edit), edit["content"]) for edit in fix["edits"])
        ),
        tuple(found.get("tags", ())),
    )  # fmt: skip


def _offset(place: dict[str, int], lines: LineIndex) -> int:
    return lines.offset(place["row"] - 1, place["column"] - 1)
