"""A plan: everything decided about one launch before it happens, as a value that can be printed."""

from __future__ import annotations

from typing import Any

from phobos.diagnostic import plural
from phobos.semantics.schedules import FLAT, PERSISTENT
from phobos.value import value


@value
class Check:
    """One obligation and how the plan decided it ("N = 65536 is a multiple of TILE = 1024")."""

    obligation: str
    outcome: str
    line: int | None  # 1-based line of the .ph file


@value
class PhasePlan:
    """One phase of a fusion: its kernels with their grids of virtual blocks, and why each waits for the phase before.

    `free` says why kernels of it need not wait for those that stand before them in the call.
    """

    kernels: tuple[tuple[str, tuple[int, int, int]], ...]
    waits: tuple[str, ...]
    free: tuple[str, ...]

    @property
    def blocks(self) -> int:
        return sum(x * y * z for _, (x, y, z) in self.kernels)


@value
class Plan:
    """`grid_source` says where the number of blocks comes from; sizes in blocks, threads and bytes.

    `registers`, `ctas_per_sm`, `limiter`, `shared_bytes` are None on the reference runtime. `grid` is the kernel's own,
    of virtual blocks, or the workers of a fusion, whose `phases` have a grid barrier between any two. `workers` are
    launched, and run `tiles` virtual blocks, at most `rounds` each, in bands of `l2_group` along x.
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
    l2_group: int
    workers: int
    tiles: int
    rounds: int
    phases: tuple[PhasePlan, ...] = ()

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    def rows(self) -> list[tuple[str, str]]:
        """What is printed, as pairs of a word and what is to be said of it."""
        rows = [("device", self.device)]
        noun = "worker" if self.phases else "block"
        rows.append(("grid", f"{_blocks(self.grid, noun)} of {self.block} threads ({self.grid_source})"))
        if self.constants:
            rows.append(("constants", ", ".join(f"{name} = {number}" for name, number in self.constants.items())))
        if self.schedule != FLAT or self.l2_group > 1:
            rows.append(("schedule", self.order()))
        if self.resident is not None:
            where = "" if self.ctas_per_sm is None else f" ({self.ctas_per_sm} per multiprocessor, {self.limiter})"
            rows.append(("resident", f"{plural(self.resident, 'block')} at once{where}"))
        if self.registers is not None:
            rows.append(("registers", f"{self.registers} a thread, {self.shared_bytes or 0} bytes of shared memory"))
        if self.timeout_s:
            rows.append(("timeout", f"{self.timeout_s:g} s ({self.timeout_source})"))
        for number, phase in enumerate(self.phases, 1):
            rows += [("barrier", f"before phase {number}: {reason}") for reason in phase.waits]
            kernels = [f"`{name}` {_blocks(grid)}" for name, grid in phase.kernels]
            rows.append((f"phase {number}", " and ".join(kernels)))
            rows += [("no barrier", reason) for reason in phase.free]
        for check in self.checks:
            place = f" (line {check.line})" if check.line is not None else ""
            rows.append(("checked", f"{check.obligation}: {check.outcome}{place}"))
        return rows + [("note", note) for note in self.notes]

    def order(self) -> str:
        """The schedule in words."""
        words = self.schedule
        if self.schedule in PERSISTENT:
            workers = "1 worker runs" if self.workers == 1 else f"{self.workers} workers run"
            words += f": {workers} {self.tiles} tiles, at most {self.rounds} each"
        return words + (f", in bands of {self.l2_group} along x" if self.l2_group > 1 else "")

    def __str__(self) -> str:
        return "\n".join([f"plan for {self.kernel}", *(f"  {name:<10} {text}" for name, text in self.rows())])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """For IPython in a terminal."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        """For notebooks."""
        from html import escape

        cells = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(text)}</td></tr>'
            for name, text in self.rows()
        )
        return f"<table><caption>plan for <code>{escape(self.kernel)}</code></caption>{cells}</table>"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "grid": list(self.grid),
            "grid_source": self.grid_source,
            "block": self.block,
            "constants": dict(self.constants),
            "shared_bytes": self.shared_bytes,
            "registers": self.registers,
            "ctas_per_sm": self.ctas_per_sm,
            "limiter": self.limiter,
            "resident": self.resident,
            "schedule": self.schedule,
            "l2_group": self.l2_group,
            "workers": self.workers,
            "tiles": self.tiles,
            "rounds": self.rounds,
            "timeout_s": self.timeout_s,
            "timeout_source": self.timeout_source,
            "checks": [{"obligation": c.obligation, "outcome": c.outcome, "line": c.line} for c in self.checks],
            "notes": list(self.notes),
            "phases": [
                {
                    "kernels": [{"kernel": name, "grid": list(grid)} for name, grid in phase.kernels],
                    "waits": list(phase.waits),
                    "free": list(phase.free),
                }
                for phase in self.phases
            ],
        }


def _blocks(grid: tuple[int, int, int], noun: str = "block") -> str:
    extents = grid if grid[2] != 1 else grid[:2] if grid[1] != 1 else grid[:1]
    return f"{' x '.join(map(str, extents))} {noun if extents == (1,) else noun + 's'}"
