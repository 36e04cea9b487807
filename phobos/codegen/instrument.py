"""What can be written into a kernel besides its own work, when somebody asks for it (`Options.instrument`).

An `Instrument` is asked where a kernel begins, around each grid barrier, and around each virtual block of a persistent
loop. The one that every kernel has by default adds nothing: not a byte of the text is different.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from phobos.codegen.emitted import Argument
from phobos.codegen.writer import Writer
from phobos.lowering.options import TRACE


class Instrument:
    """Adds nothing."""

    def arguments(self) -> list[tuple[Argument, str]]:
        """Buffers that the launch must bring, each with its name in the text."""
        return []

    def opening(self, block: str) -> list[str]:
        """Lines at the start of the kernel; `block` is the number of the CTA, as an expression."""
        return []

    @contextmanager
    def barrier(self, out: Writer, site: int) -> Iterator[None]:
        """Around the statement that waits for the grid."""
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

    def arguments(self) -> list[tuple[Argument, str]]:
        return [(Argument("buffer", TRACE, "unsigned long long*"), "trace_buffer")]

    def opening(self, block: str) -> list[str]:
        return [f"  ph_trace trace(trace_buffer, {block});"]

    @contextmanager
    def barrier(self, out: Writer, site: int) -> Iterator[None]:
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


_KNOWN = {"": Instrument, TRACE: Trace}


def instrument_of(name: str) -> Instrument:
    return _KNOWN[name]()
