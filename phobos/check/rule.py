"""What a rule is: a file under `rules/` whose name is its code and name, whose docstring is its manual page.

A rule that reads facts has a `check(context)`; one that only words what the parser or the builder found has
none, its findings come from there under its code. `RULE = Rule.of(__name__, "error")` declares it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache

from phobos.diagnostic import Diagnostic, Fix, Related, Severity, Span, Tag
from phobos.semantics.program import Program
from phobos.value import value


def url(code: str) -> str:
    """The address of a rule's page: on the project's site if it has one, else the file in this installation.

    Links must open something, and what opens should be made for reading.
    """
    from urllib.parse import quote

    site = _site()
    if site is not None:
        return f"{site}/rules/{code}.html"
    page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pages", f"{code}.md")
    path = page.replace(os.sep, "/")
    return "file://" + quote(path if path.startswith("/") else "/" + path)


@cache
def _site() -> str | None:
    """Where the site of this version is: `Documentation` of `[project.urls]`. None: nowhere, or not installed."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        named = metadata("phobos-tools").get_all("Project-URL") or ()
    except PackageNotFoundError:  # it was copied, as into the extension
        return None
    urls = dict(each.split(", ", 1) for each in named if ", " in each)
    return urls["Documentation"].rstrip("/") if "Documentation" in urls else None


@value
class FixedGrid:
    """A grid that a `// run:` header, an option or the configuration fixes; `source` names it for people."""

    blocks: tuple[int, ...]
    source: str


@value
class Context:
    """What a rule may read: the program, the cards asked for, the grid if something fixes it.

    `at` is the same kernel at other constants; None where it was not built from a text. `measure`: the kernel may
    be compiled to learn what it needs of a card. `parses`: the text, and that of the functions it inlines, has no
    syntax error; what does not parse has no facts to judge, and only what stands by itself is looked at.
    """

    program: Program
    targets: tuple[str, ...] = ()
    grid: FixedGrid | None = None
    at: Callable[[Mapping[str, int]], Program] | None = None
    measure: bool = False
    parses: bool = True


@value
class Rule:
    code: str
    name: str
    severities: tuple[Severity, ...]  # all that it reports, the gravest first

    @staticmethod
    def of(module: str, *severities: Severity) -> Rule:
        """The rule of a module called `...ph203_barrier_in_divergent_control_flow`."""
        code, name = split(module.rpartition(".")[2])
        return Rule(code, name, severities)

    @property
    def severity(self) -> Severity:
        """The gravest that it reports."""
        return self.severities[0]

    def at(
        self,
        span: Span,
        message: str,
        *,
        label: str = "",
        severity: Severity | None = None,
        related: tuple[Related, ...] = (),
        notes: tuple[str, ...] = (),
        help: str | None = None,
        fix: Fix | None = None,
        tags: tuple[Tag, ...] = (),
    ) -> Diagnostic:
        """A finding of this rule at `span`."""
        return Diagnostic(
            self.code, self.name, severity or self.severity, message, span, label, related, notes, help, fix, tags
        )


def split(stem: str) -> tuple[str, str]:
    """`ph203_barrier_in_x` as (`PH203`, `barrier-in-x`)."""
    code, _, rest = stem.partition("_")
    return code.upper(), rest.replace("_", "-")
