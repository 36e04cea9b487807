"""Runs kernel texts in the reference runtime, in batches and one block at a time, which must agree bit by bit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import phobos
from phobos.errors import KernelFault, LaunchError

BF16 = ml_dtypes.bfloat16
DTYPES = {
    "f16": np.float16, "bf16": BF16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "u8": np.uint8,
    "i32": np.int32, "i64": np.int64, "bool": np.bool_,
}  # fmt: skip


def same_bits(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def run(text: str, *arguments: Any, both: bool = True, **options: Any) -> Any:
    """Run on copies; the arguments afterwards, a single array by itself. Both paths must leave equal bits."""
    kernel = phobos.kernel(text)
    results = []
    for scheduler in (None, "round-robin") if both else (options.pop("scheduler", None),):
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        kernel.reference(*copies, scheduler=scheduler, **options)
        results.append([a for a in copies if isinstance(a, np.ndarray)])
    for one, other in zip(results[0], results[-1]):
        assert same_bits(one, other), "the batched and the coroutine path differ"
    return results[0][0] if len(results[0]) == 1 else results[0]


def fault(text: str, *arguments: Any, **options: Any) -> KernelFault | LaunchError:
    """The fault of a run, as the exception."""
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    try:
        phobos.kernel(text).reference(*copies, **options)
    except (KernelFault, LaunchError) as error:
        return error
    raise AssertionError("the run ended well")


def line_of(text: str, error: KernelFault | LaunchError) -> int:
    assert error.diagnostic is not None
    return text.count("\n", 0, error.diagnostic.span.start) + 1


def lines_of(text: str, error: KernelFault | LaunchError) -> list[int]:
    """The line of the caret and those of the related places."""
    assert error.diagnostic is not None
    spans = [error.diagnostic.span, *(related.span for related in error.diagnostic.related)]
    return [text.count("\n", 0, span.start) + 1 for span in spans]


# The first analysis of a process raises the recursion limit, which hypothesis must not see happen in a test of its.
_ = phobos.kernel("kernel first(X: tensor<f32>[N]) {\n  X[0] = 1.0\n}\n").findings
