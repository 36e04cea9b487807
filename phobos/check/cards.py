"""What a kernel needs of a card and what the card holds, for the rules that know a target.

Registers are known only where the kernel may be compiled (`phobos check --target`, with NVRTC installed); else the
numbers are an estimate from threads and shared memory, which is an upper bound of what is resident.
"""

from __future__ import annotations

from phobos.check.rule import Context
from phobos.semantics.program import Program
from phobos.value import value


@value
class Residency:
    """`resident` blocks at once on the whole card (None: the target is an architecture, not a card)."""

    per_multiprocessor: int
    multiprocessors: int | None
    resident: int | None
    limiter: str
    need: str
    estimate: bool

    @property
    def notes(self) -> tuple[str, ...]:
        return ("this is an estimate: registers were not counted",) if self.estimate else ()


def residency(context: Context, target: str) -> Residency | None:
    """How many blocks of a kernel a target holds; None where PH402 speaks of its shared memory instead."""
    from phobos.check.rules.ph402_shared_memory_exceeded import most_live
    from phobos.codegen.cards import STATIC_SHARED_BYTES, occupancy
    from phobos.codegen.cards import target as card

    program = context.program
    known = card(target)
    threads = program.launch.threads
    if "dynshared" not in program.flags and most_live(program, STATIC_SHARED_BYTES).bytes > STATIC_SHARED_BYTES:
        return None
    measured = _measured(program, known.arch) if context.measure else None
    registers, shared = measured or (0, _shared_bytes(program, known.arch))
    need = f"{threads} threads"
    if registers:
        need += f", {registers} registers each"
    if shared:
        need += f" and {shared} bytes of shared memory"
    found = occupancy(known.limits, registers=registers, threads=threads, shared_bytes=shared)
    sm = known.multiprocessors
    resident = None if sm is None else sm * found.ctas_per_sm
    return Residency(found.ctas_per_sm, sm, resident, found.limiter, need, measured is None)


def _measured(program: Program, arch: str) -> tuple[int, int] | None:
    """Registers of a thread and shared bytes of a block as compiled; None where it cannot be compiled here."""
    from phobos.codegen import cache, nvrtc
    from phobos.codegen.resources import resources_of
    from phobos.codegen.work import emit
    from phobos.lowering.decide import lower
    from phobos.lowering.options import Options
    from phobos.lowering.support import missing

    if missing(program) or any(problem.severity == "error" for problem in program.problems):
        return None
    emitted = emit(lower(program, Options(arch=arch)), "kernel.ph", lambda span: 1)
    flags = [f"--maxrregcount={program.launch.max_registers}"] if program.launch.max_registers else []
    try:
        made = cache.compiled(emitted.text, f"{program.name}.cu", arch, flags)
    except (nvrtc.CompilerMissing, nvrtc.CompileError):
        return None
    resources = resources_of(made.cubin, emitted.symbol)
    return resources.registers, resources.static_shared_bytes + emitted.dynamic_shared_bytes


def _shared_bytes(program: Program, arch: str) -> int:
    """Shared bytes of one block, as the emitter plans them."""
    from phobos.lowering.decide import decide
    from phobos.lowering.options import Options

    return decide(program, Options(arch=arch)).shared.bytes
