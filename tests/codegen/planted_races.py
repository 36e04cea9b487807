"""Kernels with one race each, planted: its two lines are marked `//!`. And kernels that only look like one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy

from phobos.diagnostic import Diagnostic
from phobos.runtime.kernel import Kernel, Kernels, fuse
from tests.codegen.compare import TYPES

OVERLAP = """
@launch(32)
kernel overlap(X: tensor<f32>[N], n: i64) {
  X[ctx.block.x * 48 :+ 64] = ctx.block.x  //!
}
"""


@dataclass(frozen=True)
class Planted:
    name: str
    text: str
    arrays: dict[str, Any]  # shape and dtype, or the array itself
    grid: int | None = None
    numbers: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    does: tuple[str, ...] = ()  # what the two accesses are, told of in the message

    def kernel(self) -> Kernel:
        kernels = list(Kernels("<text>", self.text))
        return kernels[0] if len(kernels) == 1 else fuse(*kernels, order="independent")

    def made(self) -> dict[str, numpy.ndarray]:
        found = {}
        for name, (shape, dtype) in self.arrays.items():
            if not isinstance(dtype, str):
                found[name] = dtype.copy()
                continue
            cells = numpy.arange(int(numpy.prod(shape))) % 100
            found[name] = cells.reshape(shape).astype(TYPES[dtype])
        return found

    @property
    def lines(self) -> set[int]:
        return {number for number, line in enumerate(self.text.split("\n"), 1) if "//!" in line}

    def told(self, diagnostic: Diagnostic) -> set[int]:
        """The lines that a fault names, calls aside."""
        spans = [diagnostic.span, *(one.span for one in diagnostic.related if "called" not in one.message)]
        return {self.text.count("\n", 0, span.start) + 1 for span in spans}


F = "f32"
PLANTED = [
    Planted("one cell", """
@launch(32)
kernel one(X: tensor<f32>[N]) {
  X[0] = ctx.block.x  //!
}
""", {"X": ((8,), F)}, 4, does=("store different values",)),
    Planted("halo without a barrier", """
@launch(32)
@persistent
kernel halo(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    Y[t :+ 64] = X[t :+ 64] * 2.0  //!
  }
  for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
    X[t :+ 64] = Y[t - 1 :+ 64] + 1.0  //!
  }
}
""", {"X": ((1000,), F), "Y": ((1000,), F)}, 4, does=("loads", "stores to")),
    Planted("shifted in place", """
@launch(32)
kernel shifted(X: tensor<f32>[N]) {
  let s = ctx.block.x * 64
  X[s :+ 64] =  //!
    X[s + 1 :+ 64] * 0.5  //!
}
""", {"X": ((500,), F)}, does=("loads", "stores to")),
    Planted("around a loop", """
@launch(32)
@persistent
kernel around(X: tensor<f32>[N], Y: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for s in range(0, 3) {
    for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
      Y[t :+ 64] =
        X[t + 1 :+ 64] * 0.25  //!
    }
    grid_barrier(BAR)
    for t in range(ctx.block.x * 64, N, ctx.blocks.x * 64) {
      X[t :+ 64] = Y[t :+ 64] + 1.0  //!
    }
  }
}
""", {"X": ((640,), F), "Y": ((640,), F)}, 4, does=("loads", "stores to")),
    Planted("sum of sums", """
@launch(64)
@persistent
kernel sums(X: tensor<f32>[M, N], P: tensor<f32>[B], Y: tensor<f32>[1]) {
  let b = ctx.block.x
  let s = rowsum(X[b :+ 1, 0 :+ 64])
  P[b :+ 1] = b + 1  //!
  if b == 0 {
    var total: f32 = 0.0
    for i in range(0, ctx.blocks.x) {
      total += P[i]  //!
    }
    Y[0] = total
  }
}
""", {"X": ((4, 64), F), "P": ((4,), F), "Y": ((1,), F)}, 4, does=("loads", "stores to")),
    Planted("ragged", OVERLAP, {"X": ((150,), F)}, 4, {"n": 0}, does=("store different values",)),
    *(
        Planted(f"of {dtype}", OVERLAP.replace("f32", dtype), {"X": ((150,), dtype)}, 4, {"n": 0})
        for dtype in ("f16", "bf16", "f64", "i8", "u8", "i32", "i64")
    ),
    Planted("turned in place", """
@launch(64)
kernel turned(A: tensor<f32>[M, M]) {
  let r = ctx.block.x * 16
  let c = ctx.block.y * 16
  var t: tile<f32>[16, 16] = A[c :+ 16, r :+ 16]  //!
  A[r :+ 16, c :+ 16] = transpose(t)  //!
}
""", {"A": ((40, 40), F)}, does=("loads", "stores to")),
    Planted("through a table", """
@launch(32)
kernel table(T: tensor<f32>[K], I: tensor<i32>[N], Y: tensor<f32>[N]) {
  let s = ctx.block.x * 64
  T[ctx.block.x] = 3.0  //!
  Y[s :+ 64] = gather(T, I[s :+ 64])  //!
}
""", {"T": ((5,), F), "I": ((300,), numpy.arange(300, dtype=numpy.int32) // 100 % 5), "Y": ((300,), F)},
        does=("loads", "stores to")),
    Planted("a product in place", """
@launch(64)
kernel product(A: tensor<f32>[M, 32], B: tensor<f32>[32, 32]) {
  let r = ctx.block.x * 32
  var acc: tile<f32>[32, 32] = 0.0
  for k in range(0, 32, 8) {
    acc += dot(
      A[0 :+ 32, k :+ 8],  //!
      B[k :+ 8, 0 :+ 32])
  }
  A[r :+ 32, 0 :+ 32] = acc  //!
}
""", {"A": ((100, 32), F), "B": ((32, 32), F)}, does=("loads", "stores to")),
    Planted("in a condition", """
@launch(32)
@persistent
kernel waits(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let b = ctx.block.x
  var n = 0
  if b == 0 {
    X[0] = 5.0  //!
  }
  while n < 3 && X[0] > 0.0 {  //!
    n += 1
  }
  Y[b] = n
}
""", {"X": ((4,), F), "Y": ((4,), F)}, 4, does=("loads", "stores to")),
    Planted("a zero beside an atomic", """
@launch(32)
@persistent
kernel zeroed(H: tensor<i32>[N]) {
  let b = ctx.block.x
  if b % 2 == 0 {
    H[b] = 0  //!
  } else {
    let was = atomic_add(H, b - 1, 1)  //!
  }
}
""", {"H": ((4,), "i32")}, 4, does=("has an atomic on", "stores to")),
    Planted("behind a ticket", """
@launch(32)
@persistent
kernel ticket(C: tensor<i32>[1], X: tensor<f32>[N]) {
  let mine = i64(atomic_add(C, 0, 1))
  X[mine / 2] = X[mine / 2] + 1.0  //!
}
""", {"C": ((1,), numpy.zeros(1, numpy.int32)), "X": ((4,), F)}, 4),
    Planted("in a function", """
fn left(T: tensor<f32>[N], at: i64) -> f32 {
  return T[at]  //!
}
@launch(32)
kernel uses(X: tensor<f32>[N], Y: tensor<f32>[N]) {
  let b = ctx.block.x
  X[b] = 1.0  //!
  Y[b] = left(X, (b + 1) % ctx.blocks.x)
}
""", {"X": ((4,), F), "Y": ((4,), F)}, does=("loads", "stores to")),
    Planted("two kernels of one launch", """
@launch(32)
kernel first(X: tensor<f32>[N]) {
  X[ctx.block.x * 32 :+ 32] = 1.0  //!
}
@launch(32)
kernel second(X: tensor<f32>[N], I: tensor<i32>[B], Y: tensor<f32>[B, 32]) {
  let at = I[ctx.block.x]
  let row = X[at * 32 :+ 32]
  for k in range(0, 1) {
    Y[ctx.block.x :+ 1, k * 32 :+ 32] = Y[ctx.block.x :+ 1, k * 32 :+ 32]
  }
  Y[ctx.block.x, 0] = X[at]  //!
}
""", {"X": ((128,), F), "I": ((4,), numpy.array([1, 2, 3, 0], numpy.int32)), "Y": ((4, 32), F)}),
    Planted("of blocks that one worker runs", OVERLAP, {"X": ((1000,), F)}, 20, {"n": 0},
        {"schedule": "persistent-blocked", "resident": 2}),
]  # fmt: skip

ALIKE = [
    Planted("a flag that all set", """
@launch(32)
kernel flag(X: tensor<f32>[1], Y: tensor<f32>[N]) {
  X[0] = 1.0
  Y[ctx.block.x] = 2.0
}
""", {"X": ((1,), F), "Y": ((6,), F)}),
    Planted("a count after a barrier", """
@launch(32)
@persistent
kernel counted(H: tensor<i32>[N], Y: tensor<i32>[N], BAR: tensor<i32>[2]) {
  let b = ctx.block.x
  H[b] = 0
  grid_barrier(BAR)
  let was = atomic_add(H, (b + 1) % ctx.blocks.x, 1)
  grid_barrier(BAR)
  Y[b] = H[(b + 2) % ctx.blocks.x]
}
""", {"H": ((4,), "i32"), "Y": ((4,), "i32")}, 4),
    Planted("the last block reads", """
@launch(32)
@persistent
kernel last(P: tensor<f32>[N], C: tensor<i32>[1], Y: tensor<f32>[1]) {
  let b = ctx.block.x
  P[b] = b + 1
  let was = atomic_add(C, 0, 1)
  if i64(was) == ctx.blocks.x - 1 {
    var total: f32 = 0.0
    for i in range(0, ctx.blocks.x) {
      total += P[i]
    }
    Y[0] = total
  }
}
""", {"P": ((4,), F), "C": ((1,), numpy.zeros(1, numpy.int32)), "Y": ((1,), F)}, 4),
    Planted("many phases", """
@launch(32)
@persistent
kernel many(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let b = ctx.block.x
  for s in range(0, 23) {
    X[(b + s) % ctx.blocks.x] = s + b
    grid_barrier(BAR)
  }
}
""", {"X": ((4,), F)}, 4),
]  # fmt: skip
