"""A recorded editing session against the real server: how long each request takes, how that grows, what it keeps.

    python benchmarks/lsp.py                 the session, growth at 1x, 2x, 4x, memory after 2 000 edits
    python benchmarks/lsp.py --quick         the session alone
    python benchmarks/lsp.py --json FILE     the figures as JSON too
    python benchmarks/lsp.py --against FILE  each figure beside that of an earlier `--json FILE`

The session types 300 keystrokes into a file of 1 000 lines and 25 kernels, one every 60 ms as a quick typist does,
and asks what an editor asks meanwhile: a completion or signature right behind two keys of three, a hover at every
fifth, and now and then the tokens, hints, lenses and symbols that the view shows. "At once" is before the kernel
that was just changed has been analysed. Keystroke to published diagnostics includes the debounce.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from figures import Figure, finish
from figures import number as in_figures

from tests.lsp.wire import Wire

URI = "file:///code/bench/session.ph"
BUDGETS = {"keystroke to diagnostics": 150.0, "hover": 10.0, "definition": 10.0, "completion": 10.0}
KERNEL = """\
// Kernel number {n}: strides over its row, keeps a partial sum, combines after a barrier.
//
// Like its neighbours it exists to be edited.
@launch(256)
@persistent
@autotune(TILE in [256, 1024], SLOTS in [2048])
@aligned(N = 64)
kernel stage_{n}(X: tensor<f32>[M, N], Y: tensor<f32>[M, N], PART: tensor<f32>[1, SLOTS], BAR: tensor<i32>[2],
    s: f32) {{
  let p = ctx.block.x
  let row = {n} % 2
  var sum: tile<f32>[1, 1] = 0.0
  for t in range(p * TILE, N, ctx.blocks.x * TILE) {{
    let x = X[row :+ 1, t :+ TILE]
    let y = exp(x * s) + 1.0
    Y[row :+ 1, t :+ TILE] = y
    sum += rowsum(y * y)
  }}
  PART[0 :+ 1, p :+ 1] = sum
  grid_barrier(BAR)
  let filled = iota(SLOTS) < ctx.blocks.x
  let total = rowsum(where(filled, PART[0 :+ 1, 0 :+ SLOTS], 0.0))
  let scale = 1.0 / sqrt(total + 1.0)
  if s > 0.0 {{
    for t in range(p * TILE, N, ctx.blocks.x * TILE) {{
      let y = Y[row :+ 1, t :+ TILE]
      Y[row :+ 1, t :+ TILE] = y * scale
    }}
  }} else {{
    for t in range(p * TILE, N, ctx.blocks.x * TILE) {{
      Y[row :+ 1, t :+ TILE] = X[row :+ 1, t :+ TILE] - scale
    }}
  }}
  grid_barrier(BAR)
  if p == 0 {{
    PART[0 :+ 1, 0 :+ 1] = total
  }}
}}

"""
TYPED = "  let extra = X[row :+ 1, p * TILE :+ TILE] * s + 1.0\n  Y[row :+ 1, p * TILE :+ TILE] = extra\n"


def text_of(kernels: int) -> str:
    """40 lines a kernel."""
    return "".join(KERNEL.format(n=n) + "// spacer\n" * (40 - KERNEL.count("\n")) for n in range(kernels))


class Session:
    """A client that times what it asks."""

    def __init__(self, text: str) -> None:
        self.wire = Wire()
        self.times: dict[str, list[float]] = {}
        start = time.perf_counter()
        capabilities: dict[str, Any] = {"general": {"positionEncodings": ["utf-16"]}}
        self.wire.start(capabilities)
        self.start_ms = (time.perf_counter() - start) * 1000
        start = time.perf_counter()
        self.wire.open(URI, text)
        self.wire.wait_for("textDocument/publishDiagnostics")
        self.open_ms = (time.perf_counter() - start) * 1000
        self.version = 1
        self._cpu_s = cpu_seconds(self.wire.process.pid)

    def cpu_ms(self) -> float:
        """What the server's process has computed since the file was open; a busy machine changes it little."""
        return (cpu_seconds(self.wire.process.pid) - self._cpu_s) * 1000

    def timed(self, name: str, method: str, **params: Any) -> Any:
        start = time.perf_counter()
        answer = self.wire.about(method, URI, **params)
        self.times.setdefault(name, []).append((time.perf_counter() - start) * 1000)
        return answer

    def type(self, line: int, column: int, text: str) -> float:
        self.version += 1
        at = {"line": line, "character": column}
        self.wire.change(URI, self.version, {"range": {"start": at, "end": at}, "text": text})
        return time.perf_counter()

    def published(self, since: float) -> None:
        self.wire.wait_for("textDocument/publishDiagnostics", lambda found: found["version"] == self.version)
        self.times.setdefault("keystroke to diagnostics", []).append((time.perf_counter() - since) * 1000)

    def close(self) -> None:
        self.wire.stop()
        self.wire.kill()


def record(kernels: int, keys: int, pause_ms: float) -> Session:
    session = Session(text_of(kernels))
    base = (kernels // 2) * 40 + 16  # inside the kernel in the middle, behind its first store
    line, column = base, 0
    script = (TYPED * 4)[:keys]
    for number, key in enumerate(script):
        sent = session.type(line, column, key)
        line, column = (line + 1, 0) if key == "\n" else (line, column + 1)
        position = {"line": line, "character": column}
        if number % 3 == 0:
            session.timed("completion", "completion", position=position)
        if number % 3 == 1:
            session.timed("signature help", "signatureHelp", position=position)
        if number % 15 == 7:
            session.timed("hover, at once", "hover", position={"line": base - 3, "character": 12})
        session.published(sent)
        if number % 5 == 0:
            session.timed("hover", "hover", position={"line": base - 3, "character": 12})
            session.timed("definition", "definition", position={"line": base - 3, "character": 12})
            session.timed("highlight", "documentHighlight", position={"line": base - 3, "character": 12})
        if number % 10 == 0:
            view = {"start": {"line": base - 20, "character": 0}, "end": {"line": base + 30, "character": 0}}
            session.timed("tokens", "semanticTokens/full")
            session.timed("hints", "inlayHint", range=view)
            session.timed("lenses", "codeLens")
            session.timed("symbols", "documentSymbol")
            session.timed("folding", "foldingRange")
            session.timed("actions", "codeAction", range=view, context={"diagnostics": []})
        time.sleep(max(0.0, pause_ms / 1000 - (time.perf_counter() - sent)))
    return session


def quantile(times: list[float], share: float) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def table(session: Session) -> list[str]:
    lines = [f"{'request':<28}{'n':>5}{'p50':>9}{'p95':>9}{'p99':>9}  budget (p95), ms"]
    for name, times in session.times.items():
        figures = "".join(f"{quantile(times, share):>9.1f}" for share in (0.5, 0.95, 0.99))
        budget = BUDGETS.get(name)
        verdict = "" if budget is None else f"  {budget:.0f} {'ok' if quantile(times, 0.95) <= budget else 'EXCEEDED'}"
        lines.append(f"{name:<28}{len(times):>5}{figures}{verdict}")
    return lines


def cpu_seconds(pid: int) -> float:
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return 0.0
    words = stat.read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def edits(count: int) -> tuple[float, float, float]:
    """Memory before, after half and after all of `count` edits, each of which is analysed."""
    session = Session(text_of(25))
    pid = session.wire.process.pid
    line = 12 * 40 + 9
    before = memory_mib(pid)
    half = before
    for number in range(count):
        session.type(line, 2, "x" if number % 20 else "\n  ")
        session.wire.about("hover", URI, position={"line": line + 4, "character": 6})
        session.wire.notifications.clear()
        if number == count // 2:
            half = memory_mib(pid)
    after = memory_mib(pid)
    session.close()
    return before, half, after


def figures_of(kept: dict[str, Any]) -> Iterator[Figure]:
    yield Figure("spawn to `initialize` reply", kept["start_ms"], "ms", target=1000)
    yield Figure("open 1 000 lines to first diagnostics", kept["open_ms"], "ms")
    for name, shares in kept["requests"].items():
        for share, took in shares.items():
            yield Figure(f"{name}, {share}", took, "ms", target=BUDGETS.get(name) if share == "p95" else None)
    yield Figure("CPU of the server, a keystroke with its requests", kept["cpu_ms_a_key"], "ms")
    for factor, _, _, _, key_ms, _ in kept.get("growth", ()):
        yield Figure(f"keystroke to diagnostics, p95, {factor}x size", key_ms, "ms")
    memory = kept.get("memory_mib")
    if memory:
        half, whole = memory["after_1000"], memory["after_2000"]
        yield Figure("memory after 2 000 edits", whole, "MiB", whole / half, "that after 1 000")


def beside(figures: list[Figure], path: Path) -> str:
    """Each figure with the one of that name in the file that `--json` wrote, and the ratio of the two."""
    before = {one["name"]: one["value"] for one in json.loads(path.read_text(encoding="utf-8"))["figures"]}
    lines = [f"{'':<52}{'then':>10}{'now':>10}{'ratio':>8}"]
    for one in figures:
        then = before.get(one.name)
        ratio = f"{one.value / then:>8.2f}" if then else f"{'new':>8}"
        lines.append(f"{one.name:<52}{'' if then is None else in_figures(then):>10}{in_figures(one.value):>10}{ratio}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--against", metavar="FILE", type=Path)
    parser.add_argument("--keys", type=int, default=300)
    arguments = parser.parse_args()
    session = record(25, arguments.keys, 60)
    figures: dict[str, Any] = {
        "start_ms": session.start_ms,
        "open_ms": session.open_ms,
        "cpu_ms_a_key": session.cpu_ms() / arguments.keys,
        "requests": {
            name: {f"p{round(share * 100)}": quantile(times, share) for share in (0.5, 0.95, 0.99)}
            for name, times in session.times.items()
        },
    }
    print(f"{arguments.keys} keystrokes in {len(text_of(25).splitlines())} lines, 25 kernels")
    print(f"spawn to `initialize` reply {session.start_ms:.0f} ms (budget 1000); open to first diagnostics "
          f"{session.open_ms:.0f} ms")  # fmt: skip
    print(f"CPU of the server: {figures['cpu_ms_a_key']:.1f} ms a keystroke, requests and all")
    session.close()
    if not arguments.quick:
        print(f"\n{'size':<8}{'lines':>8}{'open':>10}{'key p50':>10}{'key p95':>10}{'hover p95':>11}  ms")
        figures["growth"] = []
        for factor in (1, 2, 4):
            grown = record(25 * factor, 60, 60)
            keys, hovers = grown.times["keystroke to diagnostics"], grown.times["hover"]
            shares = (quantile(keys, 0.5), quantile(keys, 0.95), quantile(hovers, 0.95))
            row = (factor, 1000 * factor, grown.open_ms, *shares)
            figures["growth"].append(row)
            print(f"{factor}x{'':<6}{row[1]:>8}{row[2]:>10.0f}{row[3]:>10.1f}{row[4]:>10.1f}{row[5]:>11.1f}")
            grown.close()
        before, half, after = edits(2000)
        figures["memory_mib"] = {"before": before, "after_1000": half, "after_2000": after}
        print(f"\nmemory: {before:.0f} MiB with the file open, {half:.0f} after 1000 edits, {after:.0f} after 2000")
    found = list(figures_of(figures))
    if arguments.against is not None:
        print(f"\n{beside(found, arguments.against)}")
    finish("Language server", found, tables=["\n".join(["```", *table(session), "```\n"])])


if __name__ == "__main__":
    main()
