"""Device code that does not depend on the kernel: small functions, each included only where it is called.

Everything is our own text: nothing is included from a toolkit, so that NVRTC alone compiles it.
"""

from __future__ import annotations

import re

from phobos.codegen.device.grid import GRID
from phobos.codegen.device.memory import MEMORY
from phobos.codegen.device.numbers import NUMBERS
from phobos.codegen.device.shadows import SHADOWS
from phobos.codegen.device.tensorcores import TENSORCORES

PIECES: dict[str, str] = {**NUMBERS, **MEMORY, **TENSORCORES, **GRID, **SHADOWS}
"""In the order in which they must stand. A piece is called by its own name."""

_CALLED_AS = {"ph_exchange_at": ("ph_first_largest", "ph_exchange")}


def pieces_for(text: str) -> str:
    """The device code that `text` calls, and what that code calls."""
    wanted: set[str] = set()
    found = _names(text)
    while found:
        name = found.pop()
        if name in PIECES and name not in wanted:
            wanted.add(name)
            found |= _names(PIECES[name])
    for piece, needed in _CALLED_AS.items():
        if all(one in wanted for one in needed):
            wanted.add(piece)
    return "\n".join(text for name, text in PIECES.items() if name in wanted)


def _names(text: str) -> set[str]:
    return set(re.findall(r"\bph_[a-z0-9_]+", text))
