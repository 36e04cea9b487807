"""Phobos tools: a checker, a language server and two runtimes for persistent GPU kernels in `.ph`.

Everything public is loaded when it is first asked for, so that `phobos check` pays for nothing it does not use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from phobos.check import check as check
    from phobos.errors import CheckError as CheckError
    from phobos.errors import InputError as InputError
    from phobos.errors import KernelFault as KernelFault
    from phobos.errors import LaunchError as LaunchError
    from phobos.errors import PhobosError as PhobosError
    from phobos.runtime.kernel import Kernel as Kernel
    from phobos.runtime.kernel import fuse as fuse
    from phobos.runtime.kernel import kernel as kernel
    from phobos.runtime.kernel import load as load
    from phobos.runtime.kernel import synchronize as synchronize

__version__ = "0.1.0"

_HOMES = {
    "check": "phobos.check",
    "CheckError": "phobos.errors",
    "InputError": "phobos.errors",
    "KernelFault": "phobos.errors",
    "LaunchError": "phobos.errors",
    "PhobosError": "phobos.errors",
    "Kernel": "phobos.runtime.kernel",
    "fuse": "phobos.runtime.kernel",
    "kernel": "phobos.runtime.kernel",
    "load": "phobos.runtime.kernel",
    "synchronize": "phobos.runtime.kernel",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'phobos' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: object) -> None:
    """What `%load_ext phobos` calls in IPython and Jupyter: the cell magic `%%phobos`."""
    from phobos.notebook import load_ipython_extension as load

    load(shell)
