"""What a kernel is tuned on: its arguments at the sizes that are timed, and at smaller ones that a judge can afford.

A problem can be pickled and holds all that judging a variant needs: the text of the file, what each argument is, the
extents. Where arrays are given as arrays they travel with it; `zeros`, `random:seed=7` and numbers travel as text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from phobos.errors import InputError, KernelFault, LaunchError
from phobos.runtime.faults import said_of
from phobos.runtime.tuning.space import Variant
from phobos.semantics import ir
from phobos.semantics.multiples import MULTIPLE
from phobos.semantics.program import Program
from phobos.semantics.tiles import slice_lengths
from phobos.value import replace, value

if TYPE_CHECKING:
    from phobos.runtime.kernel import Kernel

CELLS = 1 << 16  # of all tensors together, where variants of the reference are judged, one block after another
CELLS_IN_BATCHES = 1 << 20  # where the reference judges a card
SECONDS = 1.5  # that the reference may take at these sizes
SLOW = "slow"
LEAST_TILES = 2  # of the largest kind along a dimension, so that a loop over tiles goes round


@value
class Problem:
    """`names` are arguments as text, `arrays` those given as NumPy arrays (whole; the judge cuts them).

    `dims` are the extents that are timed, `small` those at which variants are judged; `held` the constants that are
    not tuned, by value. `base` is the variant that runs without tuning. `grid` is the caller's, None where it is the
    plan's or the variant's. `scratch` tensors may hold what they like in the end, as long as the reference agrees.
    `arch` and `multiprocessors` are the device's; "" and 1 for the reference. `seconds` is the most a variant is timed.
    """

    path: str
    text: str
    kernel: str
    names: dict[str, str]
    arrays: dict[str, Any]
    seed: int
    dims: dict[str, int]
    small: dict[str, int]
    held: dict[str, int]
    base: Variant
    device: str
    arch: str = ""
    multiprocessors: int = 1
    grid: tuple[int, ...] | None = None
    resident: int | None = None
    scratch: tuple[str, ...] = ()
    repeat: int = 20
    timeout_s: float = 30.0
    seconds: float = 2.0
    order: str = "ask"  # of a fusion

    def made(self) -> Kernel:
        from phobos.runtime.kernel import Kernel

        return Kernel(self.path, self.text, self.kernel, self.order)

    def constants(self, variant: Variant) -> dict[str, int]:
        return {**self.held, **dict(variant.constants)}


def arguments_at(problem: Problem, program: Program, dims: Mapping[str, int]) -> dict[str, Any]:
    """All arguments by name, anew: arrays of these extents, numbers. Raises InputError."""
    from phobos.runtime.given import arguments

    names = {**problem.names, **{name: str(extent) for name, extent in dims.items() if name in program.dims}}
    for name in problem.arrays:
        names[name] = "zeros"
    constants = {name: constant.value for name, constant in program.constants.items()}
    made = arguments(program, names, problem.seed, {}, constants)
    arrays = dict(made.arrays)
    for name, whole in problem.arrays.items():
        arrays[name] = whole[tuple(slice(0, extent) for extent in made.arrays[name].shape)].copy()
    return {**arrays, **made.numbers}


def shrunk(dims: Mapping[str, int], programs: Iterable[Program], cells: int = CELLS) -> dict[str, int]:
    """Extents so small that all tensors together have about `cells` cells, for which the same promises hold.

    A smaller extent leaves the same remainder as the whole one by every tile length that any of `programs` (the kernel
    at its variants' constants) has along it, by every tile it promises, and by what the code is specialised on. So
    what is a whole number of tiles stays one, and what is ragged stays ragged.
    """
    programs = list(programs)
    units = dict.fromkeys(dims, MULTIPLE)
    for program in programs:
        for name, lengths in slice_lengths(program).items():
            units[name] = math.lcm(units.get(name, 1), *lengths)
        for promise in program.promises:
            if promise.tile > 0 and promise.dim in units:
                units[promise.dim] = math.lcm(units[promise.dim], promise.tile)
    counts = {name: dims[name] // units[name] for name in dims}
    small = dict(dims)
    while _cells(programs[0], small) > cells:
        least = LEAST_TILES if any(counts[name] > LEAST_TILES for name in dims) else 1
        longest = max((name for name in dims if counts[name] > least), key=lambda name: counts[name], default=None)
        if longest is None:
            break
        counts[longest] = max(counts[longest] // 2, least)
        small[longest] = counts[longest] * units[longest] + dims[longest] % units[longest]
    return small


def _cells(program: Program, dims: Mapping[str, int]) -> int:
    total = 0
    for tensor in program.tensors.values():
        sizes = (dims.get(e.name, 1) if isinstance(e, ir.Dim) else e if isinstance(e, int) else e.value
                 for e in tensor.extents)  # fmt: skip
        total += math.prod(sizes)
    return total


def judged_at(problem: Problem, programs: Iterable[Program]) -> Problem:
    """The problem with the sizes at which its variants are judged: as large as the reference can afford.

    Raises InputError where the kernel as it is fails in the reference at its own sizes: nothing can be judged by it.
    """
    programs = list(programs)
    small = shrunk(problem.dims, programs, CELLS if problem.device == "cpu" else CELLS_IN_BATCHES)
    said = _fails(problem, small)
    while said == SLOW:
        smaller = shrunk(problem.dims, programs, _cells(programs[0], small) // 4)
        if smaller == small:
            break  # the least there is: the judge takes the time it needs
        small, said = smaller, _fails(problem, smaller)
    if said not in (None, SLOW) and small != problem.dims:
        # Too small for what it does (an index that is data, say): the whole sizes are what it was made for.
        small, said = problem.dims, _fails(problem, problem.dims)
        if said == SLOW:
            said = f"the reference takes more than {SECONDS:g} s at these sizes, and fails at smaller ones"
    if said not in (None, SLOW):
        raise InputError(f"`{problem.kernel}` cannot be tuned, as nothing can be compared with it as it is: {said}")
    return replace(problem, small=small)


def _fails(problem: Problem, dims: Mapping[str, int]) -> str | None:
    """What goes wrong in the reference at these extents; SLOW where it takes too long; None where all is well."""
    from phobos.runtime.tuning.judging import referee

    try:
        referee(problem, problem.base, dims, None, seconds=SECONDS)
    except KernelFault as fault:
        return SLOW if fault.kind == "timeout" else said_of(fault)
    except LaunchError as error:
        return said_of(error)
    return None
