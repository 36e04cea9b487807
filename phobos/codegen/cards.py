"""What each NVIDIA card can hold: limits by compute capability, multiprocessors by product, and the arithmetic.

Limits are those of the CUDA C++ Programming Guide, appendix "Compute Capabilities", table "Technical
Specifications per Compute Capability" (release 13.0), and the arithmetic is that of `cuda_occupancy.h`, the
header that comes with the toolkit. Multiprocessor counts are those of NVIDIA's architecture white
papers and product pages, named beside each group. The driver's own answer for a loaded function is what the
launcher uses; this table answers where there is no card.
"""

from __future__ import annotations

from phobos.lowering.options import KIB, SHARED_BYTES, STATIC_BYTES
from phobos.value import value


@value
class Limits:
    """Of one compute capability; per multiprocessor unless the name says otherwise."""

    arch: str  # what to compile for
    threads: int
    ctas: int
    registers: int
    shared_bytes: int
    shared_bytes_per_cta: int  # dynamic, after opting in
    reserved_bytes_per_cta: int
    shared_unit_bytes: int


OLDEST = (7, 5)  # compute capability that kernels are compiled for
STATIC_SHARED_BYTES = STATIC_BYTES  # what a kernel may use without opting in to more, on every card
REGISTER_UNIT = 256  # registers are given to a warp in multiples of this
PARTITIONS = 4  # of a multiprocessor; each has a quarter of the registers

LIMITS: dict[str, Limits] = {
    "sm_75": Limits("sm_75", 1024, 16, 65536, 64 * KIB, SHARED_BYTES["sm_75"], 0, 256),
    "sm_80": Limits("sm_80", 2048, 32, 65536, 164 * KIB, SHARED_BYTES["sm_80"], KIB, 128),
    "sm_86": Limits("sm_86", 1536, 16, 65536, 100 * KIB, SHARED_BYTES["sm_86"], KIB, 128),
    "sm_87": Limits("sm_87", 1536, 16, 65536, 164 * KIB, SHARED_BYTES["sm_87"], KIB, 128),
    "sm_89": Limits("sm_89", 1536, 24, 65536, 100 * KIB, SHARED_BYTES["sm_89"], KIB, 128),
    "sm_90a": Limits("sm_90a", 2048, 32, 65536, 228 * KIB, SHARED_BYTES["sm_90a"], KIB, 128),
    "sm_100": Limits("sm_100", 2048, 32, 65536, 228 * KIB, SHARED_BYTES["sm_100"], KIB, 128),
    "sm_103": Limits("sm_103", 2048, 32, 65536, 228 * KIB, SHARED_BYTES["sm_103"], KIB, 128),
    "sm_120": Limits("sm_120", 1536, 24, 65536, 100 * KIB, SHARED_BYTES["sm_120"], KIB, 128),
    "sm_121": Limits("sm_121", 1536, 24, 65536, 100 * KIB, SHARED_BYTES["sm_121"], KIB, 128),
}

CARDS: dict[str, tuple[str, int]] = {
    # Turing white paper; T4 and RTX product pages
    "t4": ("sm_75", 40), "rtx2080s": ("sm_75", 48), "rtx2080ti": ("sm_75", 68),
    # A100 white paper; GA102 white paper; A10 product brief
    "a100": ("sm_80", 108), "a30": ("sm_80", 56),
    "a10": ("sm_86", 72), "a40": ("sm_86", 84), "a6000": ("sm_86", 84),
    "rtx3080": ("sm_86", 68), "rtx3090": ("sm_86", 82),
    # Ada white paper; L4 and L40S product briefs
    "l4": ("sm_89", 58), "l40s": ("sm_89", 142), "rtx4090": ("sm_89", 128),
    # H100 white paper (SXM5; the PCIe board has 114); H200 and H20 as the device reports
    "h100": ("sm_90a", 132), "h100pcie": ("sm_90a", 114), "h200": ("sm_90a", 132),
    "gh200": ("sm_90a", 132), "h20": ("sm_90a", 78),
    # Blackwell architecture brief; RTX Blackwell white paper
    "b200": ("sm_100", 148), "gb200": ("sm_100", 152), "b300": ("sm_103", 148),
    "rtx5090": ("sm_120", 170), "rtx5080": ("sm_120", 84), "rtxpro6000": ("sm_120", 188),
}  # fmt: skip


@value
class Target:
    """What is compiled for: a card, or an architecture alone (`multiprocessors` is None then)."""

    name: str
    arch: str
    multiprocessors: int | None

    @property
    def limits(self) -> Limits:
        return LIMITS[self.arch]


@value
class Occupancy:
    """`ctas_per_sm` resident CTAs on each multiprocessor; `limiter` is what stops one more."""

    ctas_per_sm: int
    limiter: str


DEFAULT_TARGET = "h200"


class UnknownTarget(ValueError):
    """No such card and no such architecture; the message lists what there is."""


def target(name: str) -> Target:
    """The target called `name`: a card (`h200`), or an architecture (`sm_90a`; `sm_90` means the same)."""
    key = name.strip().lower().replace("-", "").replace(" ", "")
    if key in CARDS:
        return Target(key, *CARDS[key])
    arch = "sm_90a" if key == "sm_90" else key
    if arch in LIMITS:
        return Target(arch, arch, None)
    raise UnknownTarget(f"unknown target `{name}`; known are {', '.join(CARDS)} and {', '.join(LIMITS)}")


def arch_of(major: int, minor: int) -> str:
    """The architecture to compile for on a device of this compute capability."""
    return "sm_90a" if (major, minor) == (9, 0) else f"sm_{major}{minor}"


def occupancy(limits: Limits, *, registers: int, threads: int, shared_bytes: int) -> Occupancy:
    """How many CTAs of `threads` threads fit on one multiprocessor, and what limits them.

    `registers` are per thread; `shared_bytes` static and dynamic together, per CTA.
    """
    warps = -(-threads // 32)
    bounds = [(limits.ctas, "CTAs per multiprocessor"), (limits.threads // (warps * 32), "threads")]
    if registers:
        per_warp = _up(registers * 32, REGISTER_UNIT)
        if per_warp * _up(warps, PARTITIONS) > limits.registers:
            return Occupancy(0, "registers")
        held = limits.registers // PARTITIONS // per_warp * PARTITIONS
        bounds.append((held // warps, "registers"))
    if shared_bytes:
        if shared_bytes > limits.shared_bytes_per_cta:
            return Occupancy(0, "shared memory")
        per_cta = _up(shared_bytes + limits.reserved_bytes_per_cta, limits.shared_unit_bytes)
        bounds.append((limits.shared_bytes // per_cta, "shared memory"))
    return Occupancy(*min(bounds, key=lambda bound: bound[0]))


def _up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
