"""A plan: everything decided about one launch before it happens, as a value that can be printed."""

from __future__ import annotations

from phobos.value import value


@value
class Check:
    """One obligation and how the plan decided it ("N = 65536 is a multiple of TILE = 1024")."""

    obligation: str
    outcome: str
    line: int | None  # 1-based line of the .ph file


@value
class Plan:
    """`grid_source` says where the number of blocks comes from; sizes in blocks, threads and bytes.

    `registers`, `ctas_per_sm`, `limiter`, `shared_bytes` are None on the reference runtime.
    """

    kernel: str
    device: str
    grid: tuple[int, int, int]
    grid_source: str
    block: int
    constants: dict[str, int]
    schedule: str
    shared_bytes: int | None
    registers: int | None
    ctas_per_sm: int | None
    limiter: str | None
    resident: int | None
    timeout_s: float | None
    timeout_source: str
    checks: tuple[Check, ...]
    notes: tuple[str, ...]
