"""What is said of a run: as text for a terminal, as values for JSON, and the exit code."""

from __future__ import annotations

from typing import Any

from phobos.diagnostic import Diagnostic, plural
from phobos.runtime.detections import Search
from phobos.runtime.expect import Judged
from phobos.runtime.kernel import Kernel
from phobos.runtime.output import Summary
from phobos.runtime.plan import Plan
from phobos.runtime.sizes import duration, rate
from phobos.value import value


@value
class Stop:
    """What stopped a run: the kind of fault, its place in the file where it has one, what it says, and the blocks."""

    kind: str
    place: Diagnostic | None
    message: str
    blocks: tuple[int, ...]


@value
class Report:
    """Everything that is printed of a run, and its exit code."""

    kernel: Kernel
    device: str
    why_device: str
    plan: Plan | None
    findings: tuple[Diagnostic, ...]  # that stopped it
    outputs: dict[str, Summary]
    saved: tuple[tuple[str, str], ...]
    elapsed_ms: float | None
    bytes_moved: int
    repeat: int
    batched: tuple[int, int] | None  # block-phases in batches, block-phases
    fault: Stop | None
    verdicts: tuple[str, ...]
    judged: tuple[Judged, ...]
    verified: tuple[str, bool] | None
    search: Search | None
    code: int

    def text(self, colour: bool) -> str:
        from phobos.check.render import full

        out: list[str] = [f"{self.kernel.name} on {self.device} ({self.why_device})"]
        if self.plan is not None:
            out.append(str(self.plan))
        for diagnostic in self.findings:
            out.append(full(diagnostic, self.kernel.text, self.kernel.path, colour).rstrip("\n"))
        if self.findings:
            out.append(f"nothing has run: {plural(len(self.findings), 'error')} of the checker")
        for name, held in self.outputs.items():
            shape = "x".join(map(str, held.shape))
            figures = "empty" if held.low is None else f"min {held.low:.7g}  max {held.high:.7g}  mean {held.mean:.7g}"
            out.append(f"{name}: {held.dtype}[{shape}]  {figures}")
            out.append(f"  sha256 {held.sha256}")
        if self.elapsed_ms is not None:
            moved = self.bytes_moved / self.elapsed_ms / 1e6 if self.elapsed_ms else 0.0
            often = f", median of {self.repeat}" if self.repeat > 1 else ""
            out.append(f"time {duration(self.elapsed_ms)}{often}, {rate(moved)}")
        if self.search is not None:
            out.append(str(self.search))
        if self.batched is not None:
            out.append(f"{self.batched[0]} of {self.batched[1]} block-phases ran in batches")
        out += [f"saved {name} to {path}" for name, path in self.saved]
        if self.fault is not None:
            if self.fault.place is None:
                out.append(f"error: {self.fault.kind}: {self.fault.message}")
            else:
                out.append(full(self.fault.place, self.kernel.text, self.kernel.path, colour).rstrip("\n"))
        out += self.verdicts
        if self.verified is not None:
            out.append(self.verified[0])
        for judged in self.judged:
            mark = "met" if judged.met else "not judged" if judged.met is None else "NOT MET"
            out.append(f"expectation {mark} (line {judged.expectation.line}): {judged.said}")
        return "\n".join(out) + "\n"

    def as_dict(self) -> dict[str, Any]:
        from phobos.check.render import Listing
        from phobos.check.render.as_json import as_dict
        from phobos.syntax.lines import LineIndex

        lines = LineIndex(self.kernel.text)
        listing = Listing(self.kernel.path, self.kernel.text, lines, ())
        fault: dict[str, Any] | None = None
        if self.fault is not None:
            said: dict[str, Any] = {"message": self.fault.message}
            if self.fault.place is not None:
                shown = as_dict(self.fault.place, listing)
                keys = ("code", "message", "filename", "location", "end_location", "related", "notes", "help")
                said = {key: shown[key] for key in keys}
            fault = {"kind": self.fault.kind, **said, "blocks": list(self.fault.blocks)}
        gb_per_s = self.bytes_moved / self.elapsed_ms / 1e6 if self.elapsed_ms else None
        return {
            "kernel": self.kernel.name,
            "filename": self.kernel.path,
            "device": self.device,
            "device_reason": self.why_device,
            "plan": None if self.plan is None else self.plan.as_dict(),
            "outputs": {name: held.as_dict() for name, held in self.outputs.items()},
            "saved": dict(self.saved),
            "elapsed_ms": self.elapsed_ms,
            "repeat": self.repeat,
            "gb_per_s": gb_per_s,
            "block_phases": None if self.batched is None else self.batched[1],
            "batched_block_phases": None if self.batched is None else self.batched[0],
            "fault": fault,
            "search": None if self.search is None else self.search.as_dict(),
            "verdicts": list(self.verdicts),
            "findings": [as_dict(diagnostic, listing) for diagnostic in self.findings],
            "verified": None if self.verified is None else {"ok": self.verified[1], "message": self.verified[0]},
            "expectations": [
                {"line": j.expectation.line, "text": j.expectation.text, "met": j.met, "message": j.said}
                for j in self.judged
            ],
            "exit_code": self.code,
        }


