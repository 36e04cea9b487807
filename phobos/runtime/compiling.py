"""From a program to a cubin: lowered, spelled, compiled, with what it needs of a multiprocessor. No GPU is asked.

`PHOBOS_DUMP=folder` keeps what was generated for each kernel: the CUDA text, the PTX and the cubin. Of a kernel that a
process compiles in several ways (constants, options, data kept on chip) the second is `name.arch.2.cu`, and so on.
"""

from __future__ import annotations

import os
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from phobos.codegen import cache, cards
from phobos.codegen.emitted import Emitted
from phobos.codegen.resources import Resources, resources_of
from phobos.errors import InputError, LaunchError
from phobos.files import save
from phobos.lowering.options import Options
from phobos.runtime.faults import refusal
from phobos.semantics import ir
from phobos.semantics.fusion import FusedProgram
from phobos.semantics.program import Program
from phobos.value import value

if TYPE_CHECKING:
    from phobos.lowering.decide import Lowered
    from phobos.semantics.module import Module, Unit


@value
class CompiledKernel:
    """`registers` and `local_bytes` are per thread, shared bytes per CTA. `cubin` is for `arch` alone."""

    name: str
    arch: str
    cuda: str
    ptx: str
    cubin: bytes
    emitted: Emitted
    resources: Resources
    constants: dict[str, int]

    def __repr__(self) -> str:
        """Without the code, which is long: `.cuda`, `.ptx` and `.cubin` have it."""
        chosen = "".join(f", {name}={number}" for name, number in self.constants.items())
        return (
            f"<{self.name} for {self.arch}{chosen}: {self.registers} registers, {self.shared_bytes} shared bytes, "
            f"{len(self.cubin)} bytes of cubin>"
        )

    @property
    def registers(self) -> int:
        return self.resources.registers

    @property
    def local_bytes(self) -> int:
        return self.resources.local_bytes

    @property
    def shared_bytes(self) -> int:
        """Static and dynamic together."""
        return self.resources.static_shared_bytes + self.emitted.dynamic_shared_bytes

    def occupancy(self, limits: cards.Limits) -> cards.Occupancy:
        return cards.occupancy(
            limits, registers=self.registers, threads=self.emitted.threads, shared_bytes=self.shared_bytes
        )


def compiled(module: Module, unit: Unit, target: str) -> CompiledKernel:
    """The kernel for a target by name (`sm_90a`, `h200`, ...). Raises LaunchError, CompilerMissing, InputError."""
    if not isinstance(target, str):
        raise LaunchError(f"`target` is {target!r}: give the name of a card or an architecture, as in \"sm_90a\"")
    try:
        arch = cards.target(target).arch
    except cards.UnknownTarget as error:
        raise LaunchError(str(error)) from None
    return build(module, unit, Options(arch=arch))


def spelled(module: Module, unit: Unit, options: Options) -> Emitted:
    """The CUDA text alone. Raises LaunchError where something of the kernel cannot run on a GPU."""
    from phobos.codegen.work import emit, emit_work

    program = unit.program

    line_of = partial(module.line, unit)
    if not isinstance(program, FusedProgram):
        return emit(lowered_for(module, unit, program, options), module.path, line_of)
    from phobos.codegen.work import Part

    fusion = program.fusion
    waits = {b.later: b.relation.second.span for b in fusion.barriers if b.relation.second is not None}
    phases = [
        [
            Part(lowered_for(module, unit, fusion.programs[n], options), module.path, line_of, waits.get(n))
            for n in phase
        ]
        for phase in fusion.phases
    ]  # fmt: skip
    return emit_work(program.name, phases, options.form or fusion.form)


def lowered_for(module: Module, unit: Unit, program: Program, options: Options) -> Lowered:
    """The decisions for a kernel of `unit`. Raises LaunchError where something of it cannot run on a GPU."""
    from phobos.lowering.decide import lower
    from phobos.lowering.support import missing

    lacking = missing(program)
    if lacking:
        first = lacking[0]
        raise refusal(
            module, unit, None, f"`{program.name}` cannot run on a GPU: {first.what}", first.span, label=first.label
        )
    lowered = lower(program, options)
    _check_shared(module, unit, lowered)
    return lowered


def _check_shared(module: Module, unit: Unit, lowered: Lowered) -> None:
    """Refuse more shared memory than there is: for tiles by the count of PH402, for all together by the card's."""
    from phobos.lowering.decide import total_bytes

    tiles, arch, static = lowered.most_tiles, lowered.options.arch, "dynshared" not in lowered.program.flags
    parts = [(f"`{tile.name}`", tile.span, size) for tile, size in tiles]
    needed, limit = total_bytes(tiles), cards.STATIC_SHARED_BYTES
    if not static or needed <= limit:
        static = False
        needed, limit = lowered.shared.bytes, shared_limit(arch)
        parts = []
        for thing, place in lowered.shared.places.items():
            if isinstance(thing, ir.Variable):
                parts.append((f"`{thing.name}`" if thing.name else "a temporary tile", thing.span, place.bytes))
            else:
                parts.append((thing.purpose, thing.statement.span, place.bytes))
    if needed <= limit:
        return
    name, span, size = max(parts, key=lambda part: part[2])
    raise refusal(
        module, unit, None,
        f"`{lowered.program.name}` needs {needed} bytes of shared memory, {limit} are the most on "
        f"{arch}{' without `@dynshared`' if static else ''}",
        span, label=f"the largest part is {name} with {size} bytes",
        help="add `@dynshared`, or choose smaller tiles" if static else "choose smaller tiles",
    )  # fmt: skip


def shared_limit(arch: str) -> int:
    """Bytes of shared memory that a CTA may have. What tiles may take without `@dynshared` is less (PH402)."""
    return cards.LIMITS[arch].shared_bytes_per_cta if arch in cards.LIMITS else cards.STATIC_SHARED_BYTES


def build(module: Module, unit: Unit, options: Options) -> CompiledKernel:
    """Compile, or take from the cache: a kernel that is known there is not lowered again."""
    program = unit.program
    key = _key(module, unit, options)
    known = cache.emission(key)
    emitted = spelled(module, unit, options) if known is None else known
    flags = _flags(unit)
    dumped = _Dump(program.name, options.arch, emitted.text)
    dumped.keep("cu", emitted.text.encode())
    made = cache.compiled(emitted.text, f"{program.name}.cu", options.arch, flags)
    if known is None:
        cache.keep_emission(key, emitted)
    dumped.keep("ptx", made.ptx.encode())
    dumped.keep("cubin", made.cubin)
    return CompiledKernel(
        program.name, options.arch, emitted.text, made.ptx, made.cubin, emitted,
        resources_of(made.cubin, emitted.symbol),
        {name: constant.value for name, constant in program.constants.items()},
    )  # fmt: skip


def _flags(unit: Unit) -> list[str]:
    most = unit.program.launch.max_registers
    return [f"--maxrregcount={most}"] if most else []


def lendable(unit: Unit, made: CompiledKernel) -> dict[str, tuple[bytes, bytes]]:
    """What `cache.lend` takes, so that another machine need not compile the kernel."""
    key = cache.digest_of(made.cuda, f"{unit.program.name}.cu", made.arch, _flags(unit))
    return {key: (made.cubin, made.ptx.encode())}


def _key(module: Module, unit: Unit, options: Options) -> str:
    """Names all that the text of a kernel is spelled from."""
    program = unit.program
    settings = program.settings
    constants = [f"{name}={constant.value}" for name, constant in program.constants.items()]
    constants += [f"{name}:{size}" for name, size in settings.sizes] + list(settings.known_functions)
    if isinstance(program, FusedProgram):
        constants.append(str(program.fusion.phases))  # which the author's word has a part in
    return cache.emission_key([module.path, module.file.text, program.name, *constants, *options.key])


class _Dump:
    """Keeps what is generated from one text where the user wants it, if anywhere."""

    def __init__(self, name: str, arch: str, text: str) -> None:
        self.folder = os.environ.get("PHOBOS_DUMP", "")
        safe = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
        self.stem = f"{safe}.{arch}"
        if self.folder:
            texts = _texts.setdefault((self.folder, self.stem), [])
            if (digest := sha256(text.encode(errors="surrogatepass")).digest()) not in texts:
                texts.append(digest)
            number = texts.index(digest) + 1
            self.stem += f".{number}" if number > 1 else ""

    def keep(self, form: str, data: bytes) -> None:
        """Raises InputError."""
        if not self.folder:
            return
        try:
            Path(self.folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"PHOBOS_DUMP: {self.folder}: no such folder, and none can be made: {error.strerror}"
            ) from None
        save(f"{Path(self.folder) / self.stem}.{form}", lambda stream: stream.write(data))


_texts: dict[tuple[str, str], list[bytes]] = {}
"""The texts that this process compiled, by folder and by the name and architecture that their files are called by."""
