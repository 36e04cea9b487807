"""Schedules against each other: flat, both persistent ones, groupings, on products and on uneven elementwise work;
phases shared out one by one against one partition of all. Usage: python benchmarks/schedules.py [--json FILE]"""

from __future__ import annotations

from functools import partial
from typing import Any

import cupy
import numpy
from gpu_common import finish, micros, table
from products import product

from phobos.runtime.kernel import Kernel, kernel

GEMM = product("@tensorcore", "@launch(256)", dtype="f16", deep=(64,))

UNEVEN = """
kernel uneven(X: tensor<f32>[M, N], Y: tensor<f32>[M, N]) {
  let b = ctx.block.x
  var t: tile<f32>[1, 1024] = X[b :+ 1, ctx.block.y * 1024 :+ 1024]
  for i in range(0, b * b % 97) { t = t * 0.5 + 1.0 }
  Y[b :+ 1, ctx.block.y * 1024 :+ 1024] = t
}
"""

STREAM = """
kernel stream(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let s = ctx.block.x * 2048
  Y[s :+ 2048] = X[s :+ 2048] * 2.0 + Y[s :+ 2048]
}
"""

WORK = """
      var t: tile<f32>[1, 1024] = {source}
      for i in range(0, STEPS) {{ t = t * 0.5 + 1.0 }}
      {target} = t"""
FIRST = WORK.format(source="X[v :+ 1, 0 :+ 1024]", target="Y[v :+ 1, 0 :+ 1024]")
SECOND = WORK.format(source="Y[(v * 7 + 3) % FIRST :+ 1, 0 :+ 1024]", target="Z[v :+ 1, 0 :+ 1024]")
PHASES = """
@persistent
@launch(256)
kernel phases(X: tensor<f32>[FIRST, 1024], Y: tensor<f32>[FIRST, 1024], Z: tensor<f32>[SECOND, 1024],
    BAR: tensor<i32>[2], STEPS: i64) {
  let b = ctx.block.x
  let w = ctx.blocks.x
"""
TOGETHER = (
    PHASES
    + f"""
  let each = (FIRST + SECOND + w - 1) / w
  let lo = b * each
  let hi = lo + each
  for v in range(lo, hi) {{
    if v < FIRST {{{FIRST}
    }}
  }}
  grid_barrier(BAR)
  for u in range(lo, hi) {{
    if u >= FIRST && u < FIRST + SECOND {{
      let v = u - FIRST{SECOND}
    }}
  }}
}}
"""
)
ONE_BY_ONE = (
    PHASES
    + f"""
  for v in range(b, FIRST, w) {{{FIRST}
  }}
  grid_barrier(BAR)
  for v in range(b, SECOND, w) {{{SECOND}
  }}
}}
"""
)

SCHEDULES: tuple[dict[str, Any], ...] = tuple(
    {"schedule": schedule, "l2_group": group}
    for schedule in ("flat", "xyz", "persistent-blocked", "persistent-interleaved")
    for group in (None, 4, 8, 16)
)


def timed(made: Kernel, arrays: tuple[Any, ...], how: dict[str, Any], want: Any) -> float:
    arrays[-1].fill(0)
    made(*arrays, **how)
    assert bool((arrays[-1] == want).all()), how
    return micros(lambda: made(*arrays, **how), repeat=12, warm=3)


def under_schedules(text: str, arrays: tuple[Any, ...], groups: tuple[int | None, ...]) -> list[list[object]]:
    """Each schedule with each of the groups, its result that of the flat one, and its time."""
    made = kernel(text)
    arrays[-1].fill(0)
    made(*arrays)
    want = arrays[-1].copy()
    rows: list[list[object]] = []
    for how in SCHEDULES:
        if how["l2_group"] in groups:
            plan = made.plan(*arrays, **how)
            times = timed(made, arrays, how, want)
            rows.append([how["schedule"], how["l2_group"] or "-", plan.workers, plan.rounds, times])
            print(rows[-1], flush=True)
    return [[*row, rows[0][4] / row[4]] for row in rows]  # type: ignore[operator]


def partitions() -> list[list[object]]:
    rows: list[list[object]] = []
    for first, second in ((132, 132), (1000, 50)):
        x = cupy.random.rand(first, 1024, dtype=numpy.float32)
        times, seen = [], []
        for text in (TOGETHER, ONE_BY_ONE):
            y, z = cupy.zeros_like(x), cupy.zeros((second, 1024), numpy.float32)
            made = kernel(text)
            made(x, y, z, STEPS=4000, grid=132, timeout=10.0)
            cupy.cuda.Device().synchronize()
            seen.append((y.copy(), z.copy()))
            launch = partial(made, x, y, z, STEPS=4000, grid=132, timeout=10.0)
            times.append(micros(launch, repeat=12))
        assert all(bool((a == b).all()) for a, b in zip(*seen, strict=True))
        rows.append([f"{first} + {second}", *times, times[0] / times[1]])
    return rows


def main() -> None:
    head = ["schedule", "group", "workers", "tiles each", "us", "flat / this"]
    tables: list[str] = []
    figures: dict[str, Any] = {}
    for m, n, k in ((4096, 4096, 4096), (16384, 8192, 1024), (4000, 4200, 4096)):
        a = (cupy.random.rand(m, k, dtype=numpy.float32) - 0.5).astype(numpy.float16)
        b = (cupy.random.rand(k, n, dtype=numpy.float32) - 0.5).astype(numpy.float16)
        name = f"f16 product {m} x {n} x {k}"
        figures[name] = under_schedules(GEMM, (a, b, cupy.zeros((m, n), numpy.float16)), (None, 4, 8, 16))
        tables.append(table(name, head, figures[name]))
    x = cupy.random.rand(3001, 4096, dtype=numpy.float32)
    figures["uneven"] = under_schedules(UNEVEN, (x, cupy.zeros_like(x)), (None,))
    tables.append(table("uneven elementwise work, 3001 x 4 tiles of 0 to 96 rounds", head, figures["uneven"]))
    y = cupy.random.rand(1 << 26, dtype=numpy.float32)
    figures["stream"] = under_schedules(STREAM, (y, cupy.zeros_like(y)), (None,))
    tables.append(table("streaming, 64 Mi elements of f32, two read and one written", head, figures["stream"]))
    figures["partitions"] = partitions()
    kept = {name: {"head": head, "rows": rows} for name, rows in figures.items()}
    head = ["tiles of the two phases", "one partition, us", "a partition each, us", "ratio"]
    tables.append(table("132 workers, two phases", head, figures["partitions"]))
    finish("Schedules", tables, {**kept, "partitions": {"head": head, "rows": figures["partitions"]}})


if __name__ == "__main__":
    main()
