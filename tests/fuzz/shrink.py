"""The smallest text that goes wrong in the same way: lines left out, then tokens, then letters."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from phobos.value import replace
from tests.fuzz.inputs import TOKEN, Input
from tests.fuzz.stages import tried_input


def kind_of(wrong: str) -> str:
    """What two texts have in common that go wrong alike: the stage, the error, the words without what they name."""
    return re.sub(r"`[^`]*`|'[^']*'|\"[^\"]*\"|\d+", "_", wrong)[:120]


def shrunk(given: Input, wrong: str, seconds: float = 20.0) -> str:
    """A smaller text that still goes wrong as `wrong` says, as far as that many seconds take."""
    ends = time.monotonic() + seconds
    kind = kind_of(wrong)

    def fails(text: str) -> bool:
        return kind_of(tried_input(replace(given, text=text)).wrong) == kind

    text = given.text
    for cut in (lambda t: t.splitlines(keepends=True), TOKEN.findall, list):
        text = "".join(_fewer(cut(text), fails, ends))
    return text


def _fewer(parts: Sequence[str], fails: Callable[[str], bool], ends: float) -> Sequence[str]:
    """Without the parts that are not needed, larger stretches first."""
    size = max(1, len(parts) // 2)
    while time.monotonic() < ends:
        at, found = 0, False
        while at < len(parts) and time.monotonic() < ends:
            fewer = [*parts[:at], *parts[at + size :]]
            if fails("".join(fewer)):
                parts, found = fewer, True
            else:
                at += size
        if size == 1 and not found:
            break
        size = max(1, size // 2) if not found or size > 1 else 1
    return parts
