"""Phobos in IPython and Jupyter: `%load_ext phobos`, then cells that begin with `%%phobos`.

A cell's text is checked, its findings are shown under it, and its kernels become names of the notebook. A kernel with
findings is bound all the same, in place of the one that had its name before: calling it says what is wrong.
"""

from __future__ import annotations

from typing import Any

USAGE = """%%phobos [NAME] [--quiet]: check the kernels of this cell and make them callable, each by its own name.

NAME binds the cell as a whole instead (`NAME.kernel`); --quiet does not list the kernels."""


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext phobos` calls."""

    def cell_magic(line: str, cell: str) -> None:
        _run_cell(shell, line, cell)

    cell_magic.__doc__ = USAGE
    shell.register_magic_function(cell_magic, "cell", "phobos")


def _run_cell(shell: Any, line: str, cell: str) -> None:
    from phobos.check import Findings, check
    from phobos.runtime.kernel import Kernels

    words = [word for word in line.split() if word != "--quiet"]
    if len(words) > 1 or not all(word.isidentifier() for word in words):
        print(f"%%phobos: {line.strip()!r} is not understood\n{USAGE}")
        return
    path = f"<cell {shell.execution_count}>"
    told = [found for found in check(cell, path) if found.severity != "info"]
    if told:
        _display(Findings(told, cell, path))
    kernels = Kernels(path, cell)
    shell.push({words[0]: kernels} if words else {name: kernels[name] for name in kernels.names})
    if "--quiet" not in line.split():
        print(f"kernels: {', '.join(kernels.names)}" if kernels.names else "no kernel in this cell")


def _display(shown: object) -> None:
    from IPython import display

    show: Any = display.display
    show(shown)
