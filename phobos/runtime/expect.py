"""Whether a run did what its header expects of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from phobos.errors import InputError
from phobos.runtime.binding import Bound
from phobos.runtime.headers import Expectation
from phobos.runtime.output import summary
from phobos.runtime.tolerance import tolerance_of
from phobos.value import value


@value
class Judged:
    """One expectation and how it went; `met` None where this run cannot say (a digest on a GPU, other arguments)."""

    expectation: Expectation
    met: bool | None
    said: str


def judge_fault(expectation: Expectation, kind: str | None) -> Judged:
    """`kind` is the fault that occurred."""
    if kind == expectation.wanted:
        return Judged(expectation, True, f"{kind}, as expected")
    happened = "the run ended well" if kind is None else f"the fault was {kind}"
    return Judged(expectation, False, f"expected the fault {expectation.wanted}, but {happened}")


def of_own_arguments(judged: Judged, changed: Sequence[str]) -> Judged:
    """What a header expects is of the arguments that it gives: with others it may hold, and need not."""
    if judged.met is not False or not changed:
        return judged
    why = f"expected of the header's arguments, and the command line gives others: {', '.join(changed)}"
    return Judged(judged.expectation, None, f"{judged.said}; {why}")


def judge_output(
    path: str, expectation: Expectation, bound: Bound, arrays: Mapping[str, Any], *, on_gpu: bool
) -> Judged:
    """A cell or a digest. Raises InputError where the expectation speaks of what does not exist."""
    name = expectation.tensor
    if name not in arrays:
        raise InputError(f"{path}:{expectation.line}: `{bound.program.name}` has no tensor `{name}`")
    array = arrays[name]
    if expectation.kind == "sha256":
        if on_gpu:
            return Judged(expectation, None, "digests are judged on the reference runtime; compared with it instead")
        digest = summary(array, bound.program.tensors[name].dtype).sha256
        if digest == expectation.wanted:
            return Judged(expectation, True, f"{name} has that digest")
        return Judged(expectation, False, f"{name} has sha256 {digest}, expected {expectation.wanted}")
    shown = f"{name}[{', '.join(map(str, expectation.index))}]"
    if len(expectation.index) != array.ndim or any(i >= n for i, n in zip(expectation.index, array.shape)):
        return Judged(expectation, False, f"{shown} is no cell of `{name}`, whose shape is {array.shape}")
    got = float(array[expectation.index])
    wanted = float(expectation.wanted)
    if got == wanted or (math.isnan(got) and math.isnan(wanted)):
        return Judged(expectation, True, f"{shown} = {got:g}")
    tolerance = tolerance_of(bound, name, on_gpu=on_gpu)
    allowed = (tolerance.relative + tolerance.of_largest) * abs(wanted)
    if abs(got - wanted) <= allowed:
        return Judged(expectation, True, f"{shown} = {got:.9g}")
    return Judged(expectation, False, f"{shown} is {got:.9g}, expected {wanted:.9g} within {allowed:.2g}")
