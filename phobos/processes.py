"""How this package starts processes of its own: they find the modules that it has itself, wherever they are started.

Python looks for modules first in the folder that it is started in. An editor starts its server in the folder that is
open, and a command runs where its user stands, which may be anybody's: a `phobos` or a `json.py` there must not run.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def command(module: str, *words: str) -> list[str]:
    """What starts `module` of this package; with `environment`."""
    return [sys.executable, "-P", "-m", module, *words]


def environment(**more: str) -> dict[str, str]:
    """That of this process, in which a child finds this very package, and `more`."""
    root = Path(__file__).resolve().parents[1]
    given = os.environ.get("PYTHONPATH")
    if root.name not in ("site-packages", "dist-packages"):  # a child looks there by itself, and last
        more["PYTHONPATH"] = os.pathsep.join([str(root), given] if given else [str(root)])
    return {**os.environ, **more}


def shield() -> None:
    """The same for children that a library starts (a pool of processes, workers of a cluster), from now on."""
    os.environ["PYTHONSAFEPATH"] = "1"
