"""What a caller chooses of the code for a kernel. It stands apart, as a kernel that is kept needs nothing else here."""

from __future__ import annotations

from phobos.semantics.schedules import Form
from phobos.value import value

KIB = 1024
STATIC_BYTES = 48 * KIB  # of shared memory, without `@dynshared`
SHARED_BYTES = {
    "sm_75": 64 * KIB, "sm_80": 163 * KIB, "sm_86": 99 * KIB, "sm_87": 163 * KIB, "sm_89": 99 * KIB,
    "sm_90a": 227 * KIB, "sm_100": 227 * KIB, "sm_103": 227 * KIB, "sm_120": 99 * KIB, "sm_121": 99 * KIB,
}  # fmt: skip
"""What a CTA may have after opting in, by architecture (CUDA C++ Programming Guide 13.0, "Compute Capabilities")."""

REGISTERS, MOST_REGISTERS, REGISTER_UNIT = 64 * KIB, 255, 8
"""Of a multiprocessor, the most of one thread, and what a thread's number of them is a multiple of."""

TRACE = "trace"  # an instrument: each CTA writes down when it is where
RACES = "races"  # an instrument: every access marks a shadow of its cell


@value
class Options:
    """What the caller chooses besides the program itself.

    `arch` - what it is compiled for. `vectors` - arrays begin at multiples of 16 bytes, so that wide accesses may
    be used. `debug` - point accesses are checked on the device. `guards` - so are the promises of `@aligned`.
    `pitched` - tensors whose rows lie further apart than they are long. `multiples` - extents, and of what they are
    known to be whole multiples at this launch (`semantics.multiples`). `form` - how virtual blocks are
    run, None where they are what is launched. `keep` - tensors whose tiles stay on chip across barriers, each with the
    most rounds that a block of this launch walks over them. `together` - so many CTAs of this launch share a
    multiprocessor, and may have all its registers among them (0: not known). `instrument` - what is written into the
    code besides the kernel's own work, "" for nothing.
    """

    arch: str = "sm_90a"
    vectors: bool = True
    debug: bool = False
    guards: bool = False
    pitched: tuple[str, ...] = ()
    multiples: tuple[tuple[str, int], ...] = ()
    maps: bool = True
    form: Form | None = None
    keep: tuple[tuple[str, int], ...] = ()
    together: int = 0
    instrument: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """Two options with one key are the same options."""
        return (
            self.arch, str(self.vectors), str(self.debug), str(self.guards), ",".join(self.pitched),
            ",".join(f"{name}%{unit}" for name, unit in self.multiples), str(self.maps),
            self.form.key if self.form else "", ",".join(f"{name}*{rounds}" for name, rounds in self.keep),
            str(self.together), self.instrument,
        )  # fmt: skip


def room_bytes(arch: str, dynamic: bool, min_blocks: int) -> int:
    """Shared memory that a CTA may fill where `min_blocks` of them shall fit on a multiprocessor."""
    if not dynamic or arch not in SHARED_BYTES:
        return STATIC_BYTES
    reserved = 0 if arch == "sm_75" else KIB  # by the system, for each CTA
    return (SHARED_BYTES[arch] + reserved) // max(min_blocks, 1) - reserved
