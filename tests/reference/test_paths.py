"""Batches and single blocks are one machine: equal bits where nothing races, the same fault where something breaks.

Random kernels of the truth generator, at sizes that divide and that do not, at grids of 1 to 5 blocks.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from phobos.runtime.reference.execute import Options, execute
from phobos.runtime.reference.faults import Fault
from phobos.semantics.module import analyse
from phobos.semantics.program import Program
from tests.reference.support import DTYPES
from tests.truth.generator import generate


def outcome(program: Program, seed: int, sizes: dict[str, int], grid: tuple[int, int, int], **how: object) -> object:
    """The fault's kind, or every tensor afterwards as bytes."""
    tensors = {}
    for name, tensor in program.tensors.items():
        shape = tuple(e if isinstance(e, int) else sizes.get(e.name, getattr(e, "value", 2)) for e in tensor.extents)
        drawn = np.random.default_rng(seed).integers(0, 3, shape)
        is_barrier = any(f"grid_barrier({name})" in text for text in [program_text(program)])
        tensors[name] = np.zeros(shape, np.int32) if is_barrier else drawn.astype(DTYPES[tensor.dtype])
    params = {name: sizes.get(name, 1) for name in program.params}
    dims = {name: sizes.get(name, 2) for name in program.dims}
    try:
        execute(program, tensors, params, dims, grid, Options(step_limit=20_000, **how))  # type: ignore[arg-type]
    except Fault as fault:
        return fault.kind
    return {name: array.tobytes() for name, array in tensors.items()}


TEXTS: dict[int, str] = {}


def program_text(program: Program) -> str:
    return TEXTS[id(program)]


def compared(seed: int) -> int:
    """Check one random kernel at several launches; how many ended well without a race."""
    sample = generate(seed)
    program = analyse("k.ph", sample.text).kernels[sample.kernel].program
    TEXTS[id(program)] = sample.text
    if any(problem.severity == "error" for problem in program.problems):
        return 0
    rng = random.Random(seed)
    good = 0
    for _ in range(4):
        sizes = {name: rng.choice(choices) for name, choices in {**sample.sizes, **sample.parameters}.items()}
        grid = (rng.choice((1, 2, 3, 5)), 1 if sample.persistent else rng.choice((1, 1, 2)), 1)
        judged = outcome(program, seed, sizes, grid, races=True)
        if judged in ("race", "timeout"):
            continue
        single = outcome(program, seed, sizes, grid, races=True, scheduler="round-robin")
        if isinstance(judged, str) and single == "race":
            continue  # it raced as well, and what a race leaves depends on the order
        how = f"seed {seed}, sizes {sizes}, grid {grid}\n{sample.text}"
        for batch in (None, 2):
            batched = outcome(program, seed, sizes, grid, batch=batch)
            if sample.uses_atomics and not isinstance(judged, str):
                continue  # the order of atomics may show in the result
            assert batched == judged, how
        singles = outcome(program, seed, sizes, grid, scheduler="round-robin")
        assert sample.uses_atomics or singles == judged, how
        good += not isinstance(judged, str)
    return good


@pytest.mark.parametrize("start", range(0, 100, 20))
def test_random_kernels_end_alike_on_both_paths(start: int) -> None:
    assert sum(compared(seed) for seed in range(start, start + 20)) > 5


def test_blocks_that_agree_share_their_steps() -> None:
    import phobos

    text = """
kernel k(X: tensor<f32>[N]) {
  let i = ctx.block.x * 64
  X[i :+ 64] = X[i :+ 64] + 1.0
}
"""
    x = np.zeros(64 * 500 + 3, np.float32)
    verdict = phobos.kernel(text).reference(x)
    assert verdict.plan.blocks == 501 and verdict.outcome.steps < 50 and (x == 1).all()
    alone = phobos.kernel(text).reference(x, scheduler="round-robin")
    assert alone.batched == 0 and alone.block_phases == 501 and alone.outcome.steps > 501
