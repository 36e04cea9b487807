"""Explain a rule: what it finds, why that is bad, an example, how to mend it, and what it cannot see."""

from __future__ import annotations

import argparse
import sys

from phobos.check import registry
from phobos.check.rule import url
from phobos.cli.output import document
from phobos.errors import InputError

EXAMPLE = """
phobos rule PH205
phobos rule barrier-trip-count-varies
phobos rule PH5                      the rules of a group, one line each
phobos rule --all
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rule", nargs="?", metavar="CODE|NAME", help="a rule's code or name, or a group: PH2")
    parser.add_argument("--all", action="store_true", help="every rule (text: one line each)")
    parser.add_argument("--output-format", choices=("text", "json", "markdown"), default="text", help="default text")


def run(arguments: argparse.Namespace) -> int:
    if (arguments.rule is None) != arguments.all:
        raise InputError(
            "name one rule, or `--all`" if arguments.all else "which rule? `phobos rule PH205`, or `--all`"
        )
    group = _group(arguments.rule)
    codes = group or [_code(arguments.rule)]
    several = bool(group)
    match arguments.output_format:
        case "json":
            import json

            pages = [as_dict(code) for code in codes]
            text = json.dumps(pages if several else pages[0], indent=2, ensure_ascii=False) + "\n"
        case "markdown":
            text = "\n".join(registry.page(code) for code in codes)
        case _:
            text = "".join(line(code) for code in codes) if several else registry.page(codes[0])
    if arguments.output_format == "text":
        sys.stdout.write(text)
    else:
        document(text)
    return 0


def _group(word: str | None) -> list[str]:
    """The codes of `--all` (None) or of a group (`PH2`, `PH2xx`), in order; none where the word names one rule."""
    if word is None or (registry.code_of(word) is None and registry.expand(word)):
        return sorted(registry.expand(word or "ALL") or ())
    return []


def _code(word: str) -> str:
    code = registry.code_of(word)
    if code is None:
        near = registry.nearest(word)
        hint = f"did you mean `{near}`?" if near else "`phobos rule --all` lists them"
        raise InputError(f"no rule is called `{word}`; {hint}")
    return code


def line(code: str) -> str:
    rule = registry.rule(code)
    severities = "/".join(rule.severities)
    return f"{code}  {severities:<18} {rule.name:<36} {registry.manual(code).summary}\n"


def as_dict(code: str) -> dict[str, object]:
    rule, manual = registry.rule(code), registry.manual(code)
    return {
        "code": code,
        "name": rule.name,
        "severity": rule.severity,
        "severities": list(rule.severities),
        "summary": manual.summary,
        "sections": [{"heading": heading, "text": body} for heading, body in manual.sections],
        "examples": {"bad": list(manual.bad), "good": list(manual.good)},
        "url": url(code),
    }
