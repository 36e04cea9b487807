"""Kernels that are tuned in tests, and problems made of them."""

from __future__ import annotations

from typing import Any

from phobos.runtime.kernel import Kernel, kernel
from phobos.runtime.tuning.problem import Problem, judged_at
from phobos.runtime.tuning.space import Variant, space

SCALE = """
@autotune(TILE in [4, 8, 16, 32, 64])
kernel scale(X: tensor<f32>[N], Y: tensor<f32>[N], alpha: f32) {
  let at = ctx.block.x * TILE
  Y[at :+ TILE] = X[at :+ TILE] * alpha
}
"""

STAGED = """
@persistent
@autotune(TILE in [4, 8], STAGES in [2])
kernel staged(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for stage in range(0, STAGES) {
    for t in range(ctx.block.x * TILE, N, ctx.blocks.x * TILE) {
      X[t :+ TILE] = X[t :+ TILE] * 0.5 + 1.0
    }
    grid_barrier(BAR)
  }
}
"""


ROWS = """
@autotune(T in [4, 8])
kernel copy(X: tensor<f32>[M, N], Y: tensor<f32>[M, N]) {
  let row = ctx.block.y * T
  let column = ctx.block.x * T
  Y[row :+ T, column :+ T] = X[row :+ T, column :+ T] * 2.0
}
"""


def problem_of(text: str, dims: dict[str, int], names: dict[str, str], **more: Any) -> Problem:
    made = kernel(text)
    program = made.analysed()[1].program
    base = space(program, {})[0]
    held = {name: c.value for name, c in program.constants.items() if name not in dict(base.constants)}
    held.update(more.pop("held", {}))
    small, device = more.pop("small", dict(dims)), more.pop("device", "cpu")
    return Problem(made.path, text, made.name, names, {}, 0, dims, small, held, base, device, **more)


def variants(made: Kernel) -> tuple[Variant, ...]:
    return space(made.analysed()[1].program, {})


__all__ = ["ROWS", "SCALE", "STAGED", "judged_at", "problem_of", "variants"]
