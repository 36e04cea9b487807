"""The checker: `findings(path, text, configuration)` is the one entry of command, server and Python."""

from __future__ import annotations

import sys
from types import ModuleType

from phobos.check.configuration import DEFAULT, Configuration
from phobos.check.engine import findings
from phobos.diagnostic import Diagnostic


def check(text: str, path: str = "<text>", configuration: Configuration = DEFAULT) -> list[Diagnostic]:
    """What the rules say of the kernels in `text`, of every severity, in order of place.

    Spans are half-open ranges of code points in `text`. Nothing is raised for what the text holds.
    """
    return findings(path, text, configuration)


class _Callable(ModuleType):
    """`phobos.check(text)` is public, and importing this package puts it under that very name."""

    def __call__(self, text: str, path: str = "<text>", configuration: Configuration = DEFAULT) -> list[Diagnostic]:
        return check(text, path, configuration)


sys.modules[__name__].__class__ = _Callable

__all__ = ["Configuration", "check", "findings"]
