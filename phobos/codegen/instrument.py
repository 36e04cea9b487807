"""What can be written into a kernel besides its own work, when somebody asks for it (`Options.instrument`).

An `Instrument` is asked where a kernel begins, before each statement, where cells are stored and atomics are done,
around each grid barrier, and around each virtual block of a persistent loop. A launch has one. The one that it has by
default adds nothing: not a byte of the text is different.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from phobos.codegen.emitted import Argument
from phobos.codegen.writer import Writer
from phobos.lowering.options import RACES, TRACE
from phobos.semantics import ir
from phobos.semantics.program import Program

if TYPE_CHECKING:
    from phobos.codegen.context import Context
    from phobos.codegen.leaves import Cells

Entry = tuple[Argument, str]  # and the name that it has in the text


class Instrument:
    """Adds nothing."""

    stops = False  # it can stop the grid

    def arguments(self) -> list[Entry]:
        """Buffers that the launch must bring, each with its name in the text."""
        return []

    def given(self, context: Context) -> list[Entry]:
        """What it needs of the launch for each tensor of a kernel."""
        return []

    def parameters(self) -> list[tuple[str, str]]:
        """What the function of one virtual block takes besides: a declaration each, and what is passed."""
        return []

    def opening(self, block: str) -> list[str]:
        """Lines at the start of the kernel; `block` is the number of the CTA, as an expression."""
        return []

    @contextmanager
    def barrier(self, out: Writer, site: int, word: str, leave: str) -> Iterator[None]:
        """Around the statement that waits for the grid, at `word`; `leave` is what a CTA does that is to leave."""
        yield

    def before(self, context: Context, statement: ir.Statement) -> None:
        """In front of a statement."""

    def reads(self, context: Context, roots: Sequence[ir.Expression]) -> None:
        """In front of what is computed within a statement: the condition of a `while`."""

    def gathered(self, context: Context, call: ir.BuiltinCall, tensor: ir.Tensor, cell: str) -> str:
        """The index of one element of a table in memory."""
        return cell

    def stored(self, cells: Cells, given: Sequence[str], at: tuple[str, ...]) -> None:
        """In front of the store of `given`, neighbours, to where `at` is the first of them."""

    def stored_point(self, context: Context, access: ir.Access, cell: str) -> None:
        """In front of the store of one cell."""

    @contextmanager
    def atomic(self, context: Context, statement: ir.Atomic, access: ir.Access) -> Iterator[None]:
        """Around an atomic, which thread 0 does."""
        yield

    @contextmanager
    def virtual_block(self, out: Writer, site: int, number: str) -> Iterator[None]:
        """Around the call that does the work of one virtual block of a persistent loop."""
        yield

    @property
    def wants_blocks(self) -> bool:
        """Whether each kernel of a persistent loop needs a site of its own, by which its blocks are told."""
        return False


class Trace(Instrument):
    """Each CTA writes down when it starts and ends, and when it comes to and leaves each barrier and virtual block."""

    def arguments(self) -> list[Entry]:
        return [(Argument("buffer", TRACE, "unsigned long long*"), "trace_buffer")]

    def opening(self, block: str) -> list[str]:
        return [f"  ph_trace trace(trace_buffer, {block});"]

    @contextmanager
    def barrier(self, out: Writer, site: int, word: str, leave: str) -> Iterator[None]:
        out.line("trace.begin();")
        yield
        out.line(f"trace.end({site}, 0);")

    @contextmanager
    def virtual_block(self, out: Writer, site: int, number: str) -> Iterator[None]:
        out.line("trace.begin();")
        yield
        out.line("__syncthreads();  // the last thread's end is the block's")
        out.line(f"trace.end({site}, {number});")

    @property
    def wants_blocks(self) -> bool:
        return True


def instrument_of(name: str, programs: Sequence[Program]) -> Instrument:
    """The instrument of a launch of these kernels."""
    if name == RACES:
        from phobos.codegen.shadows import Shadows  # which spells accesses, as its own users do

        return Shadows(programs)
    return Trace() if name == TRACE else Instrument()
