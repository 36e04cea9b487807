"""Which rules there are, by code and by name, and what their manual pages say.

The file names under `rules/` are the list, so code and name are written in one place; a rule's module is
imported only when it has facts to read or somebody asks for its page.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from phobos.check.rule import Rule, split
from phobos.diagnostic import Diagnostic
from phobos.value import value

if TYPE_CHECKING:
    from phobos.semantics.program import Problem

# The rules with a `check`. A house test compares this with the modules.
FACT_RULES = tuple(
    """
    PH106 PH115
    PH201 PH202 PH203 PH204 PH205 PH207 PH208 PH210 PH211 PH212 PH213 PH214 PH215 PH217 PH218 PH219
    PH303 PH304 PH305 PH306 PH308 PH309
    PH402 PH404 PH405 PH408 PH409
    PH501 PH502 PH503 PH504 PH505 PH506 PH507 PH508
    PH601 PH602 PH603 PH604
    PH901
    """.split()  # noqa: SIM905 - a group a line
)

# Those of them that judge one place by itself: what did not parse elsewhere in the kernel cannot make them wrong.
LOCAL_RULES = ("PH106", "PH115", "PH201", "PH202", "PH207", "PH208", "PH303", "PH601")


@value
class Manual:
    """A rule's page: `summary` in one line, `sections` as (heading, Markdown) in order, and its examples."""

    summary: str
    sections: tuple[tuple[str, str], ...]
    bad: tuple[str, ...]
    good: tuple[str, ...]


@cache
def stems() -> dict[str, str]:
    """Module name by code, in order of code."""
    directory = os.path.join(os.path.dirname(__file__), "rules")
    names = sorted(name[:-3] for name in os.listdir(directory) if name.startswith("ph") and name.endswith(".py"))
    return {split(name)[0]: name for name in names}


@cache
def names() -> dict[str, str]:
    """Rule name by code."""
    return {code: split(stem)[1] for code, stem in stems().items()}


@cache
def codes() -> dict[str, str]:
    """Code by rule name."""
    return {name: code for code, name in names().items()}


def module(code: str) -> ModuleType:
    return import_module(f"phobos.check.rules.{stems()[code]}")


def rule(code: str) -> Rule:
    declared: Rule = module(code).RULE
    return declared


def code_of(word: str) -> str | None:
    """The code that a user's word (`PH203`, `ph203` or the rule's name) means."""
    upper = word.upper()
    if upper in stems():
        return upper
    return codes().get(word.lower())


def expand(word: str) -> frozenset[str] | None:
    """The codes that a selector means: `ALL`, a code, a name, or a prefix (`PH2`, `PH2xx`). None: nothing."""
    upper = word.upper()
    if upper == "ALL":
        return frozenset(stems())
    exact = code_of(word)
    if exact is not None:
        return frozenset((exact,))
    prefix = upper.rstrip("X")
    if len(prefix) >= 2 and "PH".startswith(prefix[:2]):
        found = frozenset(code for code in stems() if code.startswith(prefix))
        return found or None
    return None


def nearest(word: str) -> str | None:
    """A code or name that is close to a word which is none."""
    from difflib import get_close_matches

    pool = [*codes(), *stems()]
    close = get_close_matches(word.lower(), pool, 1, 0.6) or get_close_matches(word.upper(), pool, 1, 0.75)
    return close[0] if close else None


def manual(code: str) -> Manual:
    """The page of a rule, from its docstring: a summary line, then `## Heading` sections."""
    text = (module(code).__doc__ or "").strip()
    summary, _, rest = text.partition("\n\n")
    sections: list[tuple[str, str]] = []
    for part in ("\n" + rest).split("\n## ")[1:]:
        heading, _, body = part.partition("\n")
        sections.append((heading.strip(), body.strip()))
    return Manual(" ".join(summary.split()), tuple(sections), _fenced(rest, "ph bad"), _fenced(rest, "ph good"))


def page(code: str) -> str:
    """The page of a rule as one Markdown text; `pages/` of this package holds each as a file."""
    declared, text = rule(code), manual(code)
    parts = [f"# {code} {declared.name}", text.summary, f"Severity: {' or '.join(declared.severities)}."]
    parts += [f"## {heading}\n\n{body}" for heading, body in text.sections]
    return "\n\n".join(parts).replace("```ph bad", "```ph").replace("```ph good", "```ph") + "\n"


def _fenced(text: str, info: str) -> tuple[str, ...]:
    blocks: list[str] = []
    current: list[str] | None = None
    for line in text.split("\n"):
        if current is None:
            if line.strip() == "```" + info:
                current = []
        elif line.strip() == "```":
            blocks.append("\n".join(current) + "\n")
            current = None
        else:
            current.append(line)
    return tuple(blocks)


def worded(problem: Problem) -> Diagnostic:
    """A builder's problem as a finding of the rule of its code."""
    return Diagnostic(
        problem.code, names()[problem.code], problem.severity, problem.message, problem.span, problem.label,
        problem.related, problem.notes, problem.help, problem.fix, problem.tags,
    )  # fmt: skip
