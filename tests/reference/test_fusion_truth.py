"""Random pairs of kernels: what is proved apart never races, and the example of what needs a barrier does."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from phobos.runtime.reference.execute import Options, execute_phases
from phobos.runtime.reference.faults import Fault
from phobos.semantics.fusion import FusedProgram, fused
from phobos.semantics.grid import GridDisagrees, GridUnknown, blocks_at
from phobos.semantics.module import analyse
from phobos.semantics.ordering import relation

SIZES = [{"N": n, "M": m} for n in (1, 2, 3, 5, 8, 13) for m in (1, 4, 9, 24)]


def kernel(name: str, rng: random.Random) -> str:
    """Stores to or loads from S at a random place, under a random condition, in a random loop."""
    lines = ["let p = ctx.block.x", f"{name}_OUT[p] = 1.0"]
    tile = rng.choice((1, 2, 4))
    index = rng.choice(
        (
            f"p * {rng.choice((1, 2, 3))} + {rng.choice((0, 1, 2, 5))}",
            f"{rng.choice((7, 8, 15))} - p",
            f"p / 2 + {rng.choice((0, 4))}",
            f"p % 3 + {rng.choice((0, 3))}",
            f"N + p * {tile}",
            f"{rng.choice((0, 1, 6))}",
            f"q * {rng.choice((1, 2))} + p * {rng.choice((0, 2, 4))}",
            f"tmin(p, {rng.choice((2, 5))})",
        )
    )
    span = f"{index} :+ {tile}"
    own = 100 * ord(name)  # no value of one kernel is one of the other
    does = rng.choice(
        (f"S[{span}] = f32(p) + {own}.5", f"S[{span}] = {own}.25", f"KEPT_{name}[p * 4 :+ {tile}] = S[{span}]")
    )
    guard = rng.choice(("", f"p < {rng.choice((1, 2, 4))}", f"p >= {rng.choice((1, 3))}", "p % 2 == 0", "p % 2 == 1"))
    if guard:
        does = f"if {guard} {{ {does} }}"
    if "q" in index:
        does = f"for q in range(0, {rng.choice((2, 3))}) {{ {does} }}"
    lines.append(does)
    parameters = f"S: tensor<f32>[M], {name}_OUT: tensor<f32>[N]"
    if "KEPT" in does:
        parameters += f", KEPT_{name}: tensor<f32>[K]"
    body = "\n    ".join(lines)
    return f"kernel {name}({parameters}) {{\n    {body}\n}}\n"


def side_by_side(program: FusedProgram, sizes: dict[str, int], seed: int) -> Fault | None:
    """Both kernels in one phase, whatever was decided: the fault, if there is one."""
    sizes = {**sizes, "K": 64}
    phase: list[Any] = []
    for part in program.fusion.programs:
        try:
            phase.append((part, blocks_at(part, sizes)))
        except (GridUnknown, GridDisagrees):
            return None
    arrays = {
        name: np.zeros([sizes[e.name] for e in tensor.extents], np.float32)  # type: ignore[union-attr]
        for name, tensor in program.tensors.items()
    }
    try:
        execute_phases((tuple(phase),), arrays, {}, sizes, Options(races=True, seed=seed))
    except Fault as fault:
        first, blocks = phase[0][1][0], fault.blocks
        if fault.kind == "race" and len(blocks) == 2 and (blocks[0] < first) == (blocks[1] < first):
            return None  # a race inside one of the kernels is no business of their order
        return fault
    return None


@pytest.mark.parametrize("block", range(8))
def test_verdicts_against_the_reference(block: int) -> None:
    told = {"apart": 0, "ordered": 0, "unknown": 0}
    for seed in range(block * 30, block * 30 + 30):
        rng = random.Random(seed)
        text = kernel("a", rng) + kernel("b", rng)
        module = analyse("t.ph", text)
        errors = [p for name in "ab" for p in module.kernels[name].program.problems if p.severity == "error"]
        assert not errors, text
        found = relation(*(module.kernels[name].program for name in "ab"))
        told[found.verdict] += 1
        program = fused(module, ["a", "b"], "barrier").program
        assert isinstance(program, FusedProgram)
        if found.verdict == "apart":
            for sizes in SIZES:
                fault = side_by_side(program, sizes, seed)
                assert fault is None, f"{text}{sizes}: {fault}"
        elif found.verdict == "ordered":
            assert found.meeting is not None
            sizes = {"N": 1, "M": 1, **dict(found.meeting.sizes)}
            cell = found.meeting.cell[0]
            assert 0 <= cell < sizes["M"]
            fault = side_by_side(program, sizes, seed)
            if fault is None:  # the first race may be one inside a kernel, and the run ends there
                assert races_by_itself(program, sizes), f"{text}{sizes} {found.meeting}"
    assert told["apart"] and told["ordered"], told


def races_by_itself(program: FusedProgram, sizes: dict[str, int]) -> bool:
    sizes = {**sizes, "K": 64}
    for part in program.fusion.programs:
        arrays = {
            name: np.zeros([sizes[e.name] for e in tensor.extents], np.float32)  # type: ignore[union-attr]
            for name, tensor in part.tensors.items()
        }
        try:
            execute_phases((((part, blocks_at(part, sizes)),),), arrays, {}, sizes, Options(races=True))
        except Fault:
            return True
        except (GridUnknown, GridDisagrees):
            return True
    return False
