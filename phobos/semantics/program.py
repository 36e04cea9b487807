"""The result of the semantics: one kernel at one choice of constants, and what is known of it.

A `Program` is pure in (kernel text, texts of the functions it inlines, settings). Facts that cost something
are functions in sibling modules (`grid.grid_of(program)`, `phases.phases_of(program)`, ...), computed once
and kept with the program by `fact`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from phobos.diagnostic import Edit, Fix, Related, Severity, Span, Tag
from phobos.semantics import ir
from phobos.syntax import tree
from phobos.value import value

T = TypeVar("T")


@value
class Problem:
    """Something the builder found wrong, in the words of the user; a rule of that code turns it into a Diagnostic.

    `root` identifies the mistake: problems of one root are one mistake (a function checked alone and inlined twice).
    """

    code: str
    severity: Severity
    message: str
    span: Span
    label: str = ""
    related: tuple[Related, ...] = ()
    notes: tuple[str, ...] = ()
    help: str | None = None
    fix: Fix | None = None
    tags: tuple[Tag, ...] = ()
    root: object = None


@value
class Launch:
    """`@launch(threads, min_blocks, max_regs)`; `span` is the attribute, None when it is the default 256."""

    threads: int
    min_blocks: int | None
    max_registers: int | None
    span: Span | None


@value
class Promise:
    """One `DIM = tile` of `@aligned`, with `tile` at this program's constants."""

    dim: str
    tile: int
    constant: ir.Constant | None  # where the tile is one
    key: Span
    value: Span
    attribute: Span


@value
class Settings:
    """What the caller fixes: constants by name, extents and integer parameters by name."""

    constants: tuple[tuple[str, int], ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()
    known_functions: tuple[str, ...] = ()


DEFAULTS = Settings()


class Program:
    """One kernel, typed, with its functions inlined.

    `body` is None when the kernel is too broken to say anything of. `node_types` maps a tree node of the
    kernel (and of the functions, at their first inlining) to the IR object made of it: an `ir.Expression`,
    `ir.Access`, `ir.Statement`, `ir.Variable`, `ir.Tensor`, `ir.Dim`, `ir.Constant` or `ir.ScalarParam`.
    `named` is where its name stands.
    """

    __slots__ = (
        "_facts",
        "_lock",
        "body",
        "constants",
        "dims",
        "flags",
        "inlined",
        "kernel",
        "launch",
        "name",
        "named",
        "node_types",
        "owner",
        "parameters",
        "params",
        "problems",
        "promises",
        "settings",
        "tensors",
        "variables",
    )

    def __init__(
        self,
        *,
        kernel: tree.Kernel | tree.Function,
        name: str,
        named: Span,
        owner: str | None,  # None: a kernel; a name: a function analysed by itself
        tensors: dict[str, ir.Tensor],
        params: dict[str, ir.ScalarParam],
        parameters: tuple[ir.Tensor | ir.ScalarParam, ...],
        dims: dict[str, ir.Dim],
        constants: dict[str, ir.Constant],
        launch: Launch,
        promises: tuple[Promise, ...],
        flags: dict[str, tree.Attribute],  # persistent, dynshared, tensorcore, pipeline, padstage, ...
        body: ir.Block,
        variables: tuple[ir.Variable, ...],
        problems: tuple[Problem, ...],
        node_types: dict[tree.Node, object],
        settings: Settings,
        inlined: tuple[str, ...],  # names of the functions inlined, each once
    ) -> None:
        self.kernel = kernel
        self.name = name
        self.named = named
        self.owner = owner
        self.tensors = tensors
        self.params = params
        self.parameters = parameters
        self.dims = dims
        self.constants = constants
        self.launch = launch
        self.promises = promises
        self.flags = flags
        self.body = body
        self.variables = variables
        self.problems = problems
        self.node_types = node_types
        self.settings = settings
        self.inlined = inlined
        self._facts: dict[Callable[[Program], object], object] = {}
        self._lock = threading.RLock()

    @property
    def is_persistent(self) -> bool:
        return "persistent" in self.flags


def fact(compute: Callable[[Program], T]) -> Callable[[Program], T]:
    """Keep what `compute` says of a program with the program."""

    def known(program: Program) -> T:
        facts = program._facts
        try:
            return facts[compute]  # type: ignore[return-value]
        except KeyError:
            pass
        with program._lock:  # facts refer to one another's parts: two threads must not have two of one
            if compute not in facts:
                facts[compute] = compute(program)
        return facts[compute]  # type: ignore[return-value]

    known.__doc__ = compute.__doc__
    known.__name__ = compute.__name__
    return known


__all__ = ["Edit", "Launch", "Problem", "Program", "Promise", "Settings", "fact"]
