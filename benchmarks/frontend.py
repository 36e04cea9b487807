"""Lines per second of parse, semantics and check at 1x, 2x and 4x size, and what an edit costs.

Usage: python benchmarks/frontend.py [--lines N] [--repeat N] [--json FILE]. Every figure is processor time, the best of
the repeats, in a process that has parsed and checked another text before, with nothing of the measured one cached.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from figures import Figure, finish

from phobos.check import findings
from phobos.semantics.module import analyse, analysed_items
from phobos.syntax import parse, parsed_items, pieces
from phobos.syntax.items import cut
from phobos.syntax.tokens import tokenize

CHECK_MS = 400  # per 1 000 lines, in a warm process
GROWTH = 1.2  # of the time a line at four times the size: linear, with room for noise

FUNCTION = """
// Rescale one value.
fn scale(x: f32, by: f32) -> f32 {{
  let y = x * by + {n}.0
  return y
}}
"""

# Forty lines each, of the statements that people write; `{n}` makes every text its own.
KERNELS = (
    """
// Stage {n}: scale, wait, average with the neighbours.
@launch(256)
@persistent
@autotune(TILE in [64, 128], STEPS in [{n}])
kernel sweep{n}(A: tensor<f32>[N], B: tensor<f32>[N], BAR: tensor<i32>[2], alpha: f32) {{
  let p = ctx.block.x
  let g = ctx.blocks.x
  var rounds = 0
  for s in range(0, STEPS) {{
    for t in range(p * TILE, N, g * TILE) {{
      B[t :+ TILE] = A[t :+ TILE] * alpha + {n}.0
    }}
    grid_barrier(BAR)
    for t in range(p * TILE, N, g * TILE) {{
      A[t :+ TILE] = B[t :+ TILE] * 0.5 + B[t + 1 :+ TILE] * 0.5
    }}
    grid_barrier(BAR)
    rounds += 1
  }}
  if p == 0 && rounds > {n} {{
    A[0] = scale(A[0], 0.5)
  }} else if p == 1 {{
    A[1] = 0.0
  }}
}}
""",
    """
// Product {n}, tiles in shared memory.
@launch(128)
@autotune(BM in [64], BN in [64], BK in [32])
@aligned(M = BM, N = BN, K = BK)
kernel product{n}(A: tensor<f16>[M, K], B: tensor<f16>[K, N], C: tensor<f32>[M, N], beta: f32) {{
  let m = ctx.block.x * BM
  let n = ctx.block.y * BN
  var acc: tile<f32>[BM, BN] = 0.0
  for k in range(0, K, BK) {{
    let a = A[m :+ BM, k :+ BK]
    let b = B[k :+ BK, n :+ BN]
    acc += dot(a, b)
  }}
  if beta == 0.0 {{
    C[m :+ BM, n :+ BN] = acc
  }} else {{
    C[m :+ BM, n :+ BN] = acc + C[m :+ BM, n :+ BN] * beta
  }}
}}
""",
    """
// Rows {n}: softmax in one pass.
@launch(256, 2)
kernel rows{n}(X: tensor<f32>[M, N], Y: tensor<f32>[M, N]) {{
  let row = ctx.block.x
  var top: tile<f32>[1, 1] = -3.0e38
  var sum: tile<f32>[1, 1] = 0.0
  for t in range(0, N, 128) {{
    let x = X[row :+ 1, t :+ 128]
    let live = iota(128) + t < N
    top = tmax(top, rowmax(where(live, x, -3.0e38)))
  }}
  for t in range(0, N, 128) {{
    let x = X[row :+ 1, t :+ 128]
    let live = iota(128) + t < N
    sum += rowsum(where(live, exp(x - top), 0.0))
  }}
  for t in range(0, N, 128) {{
    Y[row :+ 1, t :+ 128] = exp(X[row :+ 1, t :+ 128] - top) / sum * {n}.0
  }}
}}
""",
)


def text_of(lines: int, seed: int) -> str:
    """A file of about so many lines; no item of it is in a file of another seed."""
    parts = [FUNCTION.format(n=seed)]
    count = parts[0].count("\n")
    n = seed
    while count < lines:
        parts.append(KERNELS[n % len(KERNELS)].format(n=n))
        count += parts[-1].count("\n")
        n += 1
    return "".join(parts)


def best(work: Callable[[str], object], lines: int, repeat: int, seed: int) -> tuple[int, float]:
    """Lines of the text and seconds of `work` on a text it has not seen."""
    seconds = []
    for i in range(repeat):
        text = text_of(lines, seed + 100_000 * (i + 1))
        gc.collect()
        start = time.process_time()
        work(text)
        seconds.append(time.process_time() - start)
    return text.count("\n"), min(seconds)


def tokens(text: str) -> None:
    for c in cut(text):
        tokenize(text[c.start : c.end])


STAGES: dict[str, Callable[[str], object]] = {
    "tokens": tokens,
    "parse": parse,
    "parse + semantics": lambda text: analyse("bench.ph", text),
    "check": lambda text: findings("bench.ph", text),
}


def edits(lines: int) -> dict[str, dict[str, int]]:
    """How many items are parsed, pieces learnt and programs analysed again after an edit."""
    text = text_of(lines, 7)
    callers = text.count("scale(") - 1
    changes = {
        "one edit in a kernel": text.replace("B[t + 1 :+ TILE] * 0.5", "B[t + 1 :+ TILE] * (alpha - 0.5)", 1),
        "a line inserted above all": "// a line\n" + text,
        "a blank line inserted above all": "\n" + text,
        f"an edit in a function with {callers} callers": text.replace("let y = x * by", "let y = x * by * 2.0", 1),
        "a half-typed statement in a kernel": text.replace("  rounds += 1\n", "  rounds += X[p * \n", 1),
    }
    found = {}
    for name, changed in changes.items():
        assert changed != text
        findings("bench.ph", text)
        before = parsed_items(), pieces.new_shapes(), analysed_items()
        findings("bench.ph", changed)
        after = parsed_items(), pieces.new_shapes(), analysed_items()
        parsed, learnt, analysed = (b - a for a, b in zip(before, after))
        found[name] = {"items parsed": parsed, "pieces parsed": learnt, "items analysed": analysed}
    return found


def figures_of(rows: dict[str, Any], counted: dict[str, dict[str, int]]) -> Iterator[Figure]:
    for name, sizes in rows.items():
        each = [row["ms"] / row["lines"] * 1000 for row in sizes]
        target: float | None = CHECK_MS if name == "check" else None
        yield Figure(f"{name}, 1 000 lines", each[0], "ms of processor time", target=target)
        target = GROWTH if name == "check" else None
        yield Figure(f"{name}, time a line at 4x size", each[2] / 1000, "ms", each[2] / each[0], "1x size", target)
    for name, counts in counted.items():
        target = 1 if name == "one edit in a kernel" else None
        yield Figure(f"{name}: analysed again", counts["items analysed"], "items", target=target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1000, help="lines of the 1x file")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()

    findings("bench.ph", text_of(200, 1))
    rows: dict[str, Any] = {}
    factors = "".join(f"{f'{factor}x':>20}" for factor in (1, 2, 4))
    print(f"{'lines per second (ms)':<24}{factors}{'4x to 1x':>12}")
    for number, (name, work) in enumerate(STAGES.items()):
        cells, times = [], []
        for factor in (1, 2, 4):
            repeat = options.repeat if factor < 4 else max(1, options.repeat - 1)
            lines, seconds = best(work, factor * options.lines, repeat, 10_000_000 * (number + 1) + 1_000_000 * factor)
            times.append(seconds / lines)
            cells.append(f"{lines / seconds:>11,.0f} ({seconds * 1e3:.0f})".rjust(20))
            rows.setdefault(name, []).append({"lines": lines, "ms": round(seconds * 1e3, 1)})
        print(f"{name:<24}" + "".join(cells) + f"{times[2] / times[0]:>11.2f}x")
    print("\n4x to 1x: time per line; 1 is linear growth.\n")
    counted = edits(options.lines)
    for name, counts in counted.items():
        print(f"{name}: " + ", ".join(f"{count} {what}" for what, count in counts.items()))
    finish("Front end", list(figures_of(rows, counted)))


if __name__ == "__main__":
    main()
