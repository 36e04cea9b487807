"""The checker. From Python `phobos.check(text)` gives what it finds; `findings(path, text, configuration)` is the one
entry of command, server and Python.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from phobos.check.configuration import DEFAULT, Configuration
from phobos.check.engine import findings
from phobos.diagnostic import Diagnostic


class Findings(list[Diagnostic]):
    """A list of findings that knows the text they are about: `print` shows them as the command does."""

    def __init__(self, found: Iterable[Diagnostic] = (), text: str = "", path: str = "<text>") -> None:
        super().__init__(found)
        self.text = text
        self.path = path

    def __str__(self) -> str:
        return self._shown(False) or "nothing found"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """For IPython in a terminal."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        """For notebooks."""
        import io

        from rich.console import Console
        from rich.text import Text

        console = Console(record=True, file=io.StringIO(), width=200)
        console.print(Text.from_ansi(self._shown(True) or "nothing found"), soft_wrap=True)
        return console.export_html(inline_styles=True, code_format='<pre style="line-height:1.25">{code}</pre>')

    def _shown(self, colour: bool) -> str:
        from phobos.check.render.text import full

        return "\n".join(full(found, self.text, self.path, colour) for found in self)


def check(text: str, path: str = "<text>", configuration: Configuration = DEFAULT) -> Findings:
    """What the rules say of the kernels in `text`, of every severity, in order of place.

    Spans are half-open ranges of code points in `text`. Nothing is raised for what the text holds.
    """
    return Findings(findings(path, text, configuration), text, path)


class _Callable(ModuleType):
    """`phobos.check(text)` is public, and importing this package puts it under that very name."""

    def __call__(self, text: str, path: str = "<text>", configuration: Configuration = DEFAULT) -> Findings:
        return check(text, path, configuration)


sys.modules[__name__].__class__ = _Callable

__all__ = ["Configuration", "Findings", "check", "findings"]
