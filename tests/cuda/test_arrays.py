"""Arrays on a card as their libraries show them: taken where they lie and in the order of their streams, or refused."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import phobos
from phobos.errors import LaunchError
from phobos.runtime.kernel import kernel

AXPY = """
kernel axpy(X: tensor<f32>[N], Y: tensor<f32>[N], a: f32) {
  let s = ctx.block.x * 1024
  Y[s :+ 1024] = X[s :+ 1024] * a + Y[s :+ 1024]
}
"""
COUNT = 5000


class Shown:
    """An array of another library: of CuPy's it shows one protocol alone."""

    def __init__(self, array: Any, stream: int | None = None) -> None:
        self.array, self.stream = array, stream


class ByCapsule(Shown):
    def __dlpack__(self, **how: Any) -> object:
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class ByInterface(Shown):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.array.__cuda_array_interface__, "stream": self.stream}


@pytest.mark.parametrize("shown", [ByCapsule, ByInterface])
def test_arrays_of_other_libraries(cupy, shown: type[Shown]) -> None:
    x, y = cupy.ones(COUNT, numpy.float32), cupy.zeros(COUNT, numpy.float32)
    for _ in range(2):
        kernel(AXPY)(shown(x), shown(y), 2.0)
    phobos.synchronize()
    assert bool((y == 4).all())
    with pytest.raises(LaunchError, match="`X` holds f16"):
        kernel(AXPY)(shown(x.astype(numpy.float16)), shown(y), 2.0)
    with pytest.raises(LaunchError, match="`X` is not row-major"):
        kernel(AXPY)(shown(cupy.zeros(2 * COUNT, numpy.float32)[::2]), shown(y), 2.0)


def busy(cupy: Any) -> None:
    square = cupy.ones((4096, 4096), numpy.float32)
    for _ in range(20):
        square @ square


def test_the_stream_that_an_array_says_it_is_worked_on(cupy) -> None:
    x, y = cupy.zeros(COUNT, numpy.float32), cupy.zeros(COUNT, numpy.float32)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        busy(cupy)
        x += 1
    kernel(AXPY)(ByInterface(x, stream.ptr), ByInterface(y), 1.0)
    stream.synchronize()
    assert bool((y == 1).all())


def test_a_subclass_goes_with_the_stream_of_its_library(cupy) -> None:
    class Own(cupy.ndarray): ...

    x, y = (cupy.zeros(COUNT, numpy.float32).view(Own) for _ in range(2))
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        busy(cupy)
        x += 1
        kernel(AXPY)(x, y, 1.0)
    stream.synchronize()
    assert bool((y == 1).all())


def test_a_number_on_the_card_is_read_at_every_launch(cupy) -> None:
    made, x, y = kernel(AXPY), cupy.ones(COUNT, numpy.float32), cupy.zeros(COUNT, numpy.float32)
    number = cupy.array(2, numpy.float32)
    made(x, y, number)
    number[...] = 3
    made(x, y, number)
    phobos.synchronize()
    assert bool((y == 5).all())


def test_tensors_that_stand_for_more_than_their_cells_are_refused(torch, still_usable) -> None:
    made, x = kernel(AXPY), torch.ones(COUNT, device="cuda")
    y = torch.zeros_like(x)
    made(x, y, 1.0)
    refused = {
        "requires a gradient": x.clone().requires_grad_(),
        "torch.sparse_coo": torch.eye(4, device="cuda").to_sparse(),
        "torch.float8_e5m2": x.to(torch.float8_e5m2),
        "torch.complex64": x.to(torch.complex64),
        "negation": torch.ones(COUNT, dtype=torch.complex64, device="cuda").conj().imag,
        "not row-major": x[:1].expand(COUNT),
        "argument `X`": torch.empty(COUNT, device="meta"),
    }
    for said, given in refused.items():
        with pytest.raises(LaunchError, match=said):
            made(given, y, 1.0)
    torch.cuda.synchronize()
    assert bool((y == 1).all())


def test_a_function_with_a_gradient_of_its_own_launches_kernels(torch) -> None:
    made = kernel(AXPY)

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            made(x, y := torch.zeros_like(x), 2.0)
            return y

        @staticmethod
        def backward(context: Any, slope: Any) -> Any:
            made(slope.contiguous(), back := torch.zeros_like(slope), 2.0)
            return back

    x = torch.ones(COUNT, device="cuda", requires_grad=True)
    y = Doubled.apply(x)
    y.sum().backward()
    assert bool((y == 2).all()) and bool((x.grad == 2).all())
