"""A rule's manual page for an editor: the whole of it, and what a hover has room for."""

from __future__ import annotations

from phobos.check import registry
from phobos.check.rule import url


def rule_page(word: str) -> str | None:
    """Code, summary, why it is bad and what to do, for a code or a name; None for what is no rule."""
    code = registry.code_of(word)
    if code is None:
        return None
    manual = registry.manual(code)
    parts = [f"**{code}** {registry.names()[code]}", manual.summary]
    parts += [f"*{heading}.* {body}" for heading, body in manual.sections if heading in ("Why it is bad", "Fix")]
    return "\n\n".join([*parts, f"[The page of this rule]({url(code)})"])


def rule_manual(code: str) -> str:
    """The whole page as Markdown."""
    return f"{registry.page(code)}\n<{url(code)}>\n"
