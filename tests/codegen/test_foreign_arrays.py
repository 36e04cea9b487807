"""Arrays of libraries that are not here, as those show them: taken without a copy, or refused by name; their streams;
and what of a launch may be remembered for the next one."""

from __future__ import annotations

import copy
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy
import pytest

from phobos.errors import LaunchError
from phobos.runtime.arrays import describe
from phobos.runtime.cuda import driver, streams
from phobos.runtime.cuda.streams import stream_of
from phobos.runtime.kernel import Kernel, kernel, load
from tests.codegen import host
from tests.codegen.compare import read
from tests.codegen.fake_device import FakeDriver, HostArray
from tests.codegen.two_cards import LikeCupy

pytestmark = pytest.mark.skipif(host.COMPILER is None, reason="no C++ compiler (g++)")

ROOT = Path(__file__).resolve().parents[2]
AXPY = """
@launch(64)
kernel axpy(X: tensor<f32>[N], Y: tensor<f32>[N], a: f32) {
  let s = ctx.block.x * 64
  Y[s :+ 64] = X[s :+ 64] * a + Y[s :+ 64]
}
"""


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return FakeDriver(monkeypatch)


@pytest.fixture
def axpy() -> Kernel:
    return kernel(AXPY)


def ones(count: int = 100) -> numpy.ndarray:
    return numpy.ones(count, numpy.float32)


class Interface:
    """`__cuda_array_interface__` and nothing else, with entries of the test's own; None takes one out."""

    def __init__(self, array: numpy.ndarray, **more: object) -> None:
        self.array, self.more = array, more

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        shown = {**self.array.__array_interface__, "version": 3, "strides": self.array.strides, **self.more}
        return {name: entry for name, entry in shown.items() if entry is not None}

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


class Capsule:
    """DLPack and nothing else, on device 0; `versions` says whether it knows of them."""

    def __init__(self, array: numpy.ndarray, versions: bool = True) -> None:
        self.array, self.versions = array, versions
        self.asked: list[object] = []

    def __dlpack__(self, *, stream: int, **more: object) -> object:
        if more and not self.versions:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        self.asked.append(stream)
        return self.array.__dlpack__(**more)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


class Tensor:
    """As a tensor of PyTorch on a GPU, and what those raise."""

    def __init__(self, memory: numpy.ndarray, **more: Any) -> None:
        self.array, self.shape = memory, memory.shape
        self.device = type("device", (), {"type": "cuda", "index": 0})()
        self.dtype = f"torch.{memory.dtype.name}"
        self.layout, self.requires_grad = "torch.strided", False
        self.is_nested, self.negated = False, False
        self.__dict__.update(more)

    def is_neg(self) -> bool:
        return self.negated

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def detach(self) -> Tensor:
        return Tensor(self.array, **{**self.__dict__, "requires_grad": False})

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        if self.device.type != "cuda":
            raise AttributeError("Can't get __cuda_array_interface__ on non-CUDA tensor type")
        raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad.")

    def __dlpack__(self, **more: object) -> object:
        raise BufferError("Can't export tensors that require gradient")

    def __dlpack_device__(self) -> tuple[int, int]:
        if self.device.type == "meta":
            raise ValueError("Unknown device type meta for Dlpack")
        return 2, 0


Tensor.__module__ = "torch"
NOWHERE = type("device", (), {"type": "meta", "index": None})()

WRONG: dict[str, tuple[Any, str]] = {
    "a gradient": (Tensor(ones(), requires_grad=True), r"requires a gradient.*\.detach\(\)"),
    "sparse": (Tensor(ones(), layout="torch.sparse_coo"), r"torch\.sparse_coo.*\.to_dense\(\)"),
    "a type of its own": (Tensor(ones(), dtype="torch.float8_e5m2"), r"torch\.float8_e5m2.*convert to one of f16"),
    "negated": (Tensor(ones(), negated=True), r"negation.*\.resolve_neg\(\)"),
    "a type, no array": (type("dtype", (), {"__module__": "torch"})(), "of type dtype"),
    "no data": (Tensor(ones(), device=NOWHERE, layout="torch.strided", dtype="torch.float8_e5m2"), "float8_e5m2"),
    "complex": (Interface(ones().astype(numpy.complex64)), "<c8.*convert to one of"),
    "a mask": (Interface(ones(), mask=Interface(ones())), "has a mask"),
    "no address": (Interface(ones(), data=(None, False)), "has no memory: its address is 0"),
    "nothing there": (Interface(ones(), data=(0, False)), "has no memory: its address is 0"),
    "a tensor that stands for one": (Tensor(ones(), data_ptr=lambda: 0), "has no memory: its address is 0"),
    "several in one": (Tensor(ones(), is_nested=True), "is nested"),
    "no shape": (Interface(ones(), shape=None), "cannot be read as an array: KeyError: 'shape'"),
    "another byte order": (Interface(ones(), typestr=">f4"), ">f4"),
    "a capsule of a type of its own": (Capsule(ones().astype(numpy.uint16)), "uint16, which no tensor can have"),
    "no capsule": (type("No", (Capsule,), {"__dlpack__": lambda *_, **__: 3})(ones()), "gives no DLPack capsule"),
    "a capsule, strided": (Capsule(ones(200)[::2]), "not row-major"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_no_kernel_can_read_is_refused_with_its_name_and_line(device: FakeDriver, axpy: Kernel, case: str) -> None:
    given, said = WRONG[case]
    y = HostArray(ones())
    for _ in range(2):  # with nothing remembered, and after a launch that was
        with pytest.raises(LaunchError, match=f"<text>:3: argument `X`.*{said}"):
            axpy(given, y, 2.0)
        assert not device.launches
    axpy(HostArray(ones()), y, 2.0)
    with pytest.raises(LaunchError, match=f"argument `X`.*{said}"):
        axpy(given, y, 2.0)


def test_memory_that_is_nowhere_is_said_to_be() -> None:
    """What another library says in types of its own is told in a line, with the argument's name."""
    with pytest.raises(LaunchError, match="`X` cannot be read as an array: ValueError: Unknown device type meta"):
        describe("X", Tensor(ones(), device=NOWHERE))


def test_a_tensor_with_a_gradient_is_taken_where_nothing_is_recorded(
    device: FakeDriver, axpy: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In `torch.no_grad()`, or in the forward of a `torch.autograd.Function`: there a kernel loses nothing."""
    recording = [False]
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(is_grad_enabled=lambda: recording[0]))
    x, y = Tensor(ones(), requires_grad=True), Tensor(ones())
    for launches in (1, 2):
        axpy(x, y, 2.0, stream=0)
        assert len(device.launches) == launches
    recording[0] = True
    with pytest.raises(LaunchError, match="requires a gradient"):
        axpy(x, y, 2.0, stream=0)
    numpy.testing.assert_array_equal(y.array, 5.0)


@pytest.mark.parametrize("versions", [True, False])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u1", "i4", "i8", "?"])
def test_a_capsule_says_what_numpy_says(dtype: str, versions: bool) -> None:
    whole = numpy.zeros((5, 7), dtype)
    for array in (whole, whole[1:, 2:], whole[:0], whole[:, ::2]):
        mine, theirs = describe("X", Capsule(array, versions)), describe("X", array)
        assert mine.device == "cuda:0" and mine.dtype == theirs.dtype and mine.shape == theirs.shape
        assert mine.strides == theirs.strides or not array.size
        assert mine.pointer == theirs.pointer and mine.writeable


def test_a_capsule_of_memory_that_may_not_be_written(device: FakeDriver, axpy: Kernel) -> None:
    frozen = ones()
    frozen.flags.writeable = False
    with pytest.raises(LaunchError, match="`Y` is read-only"):
        axpy(HostArray(ones()), Capsule(frozen), 1.0)


def test_arrays_of_any_library_are_computed_on_where_they_are(device: FakeDriver, axpy: Kernel) -> None:
    x, y = ones(), ones()
    shown = Capsule(x)
    axpy(shown, Capsule(y), 2.0)
    axpy(Interface(x, stream=driver.LEGACY_STREAM), Interface(y), 2.0)
    axpy(Tensor(x), Tensor(y), 2.0, stream=0)
    numpy.testing.assert_array_equal(y, 7.0)
    assert shown.asked == [1]
    assert device.waits == []


def test_the_type_of_halves_is_that_of_the_tensor() -> None:
    halves = ones().astype(ml_dtypes.bfloat16)
    assert describe("X", Tensor(halves, dtype="torch.bfloat16")).dtype == "bf16"


def test_an_array_says_which_stream_it_is_worked_on(device: FakeDriver, axpy: Kernel, monkeypatch: Any) -> None:
    sent: list[int] = []
    launch = driver.launch
    monkeypatch.setattr(driver, "launch", lambda *given: (sent.append(given[4]), launch(*given)))
    axpy(Interface(ones(), stream=0x4100), Interface(ones()), 1.0)
    axpy(Interface(ones(), stream=0x4100), Interface(ones(), stream=0x4100), 1.0)
    assert sent == [0x4100, 0x4100] and device.waits == []
    axpy(Interface(ones(), stream=0x4100), Interface(ones(), stream=0x4300), 1.0)
    axpy(Interface(ones(), stream=0x4100), Interface(ones()), 1.0, stream=0x4700)
    assert sent == [0x4100, 0x4100, 0x4100, 0x4700] and device.waits == [0x4300, 0x4100]


# --- what is remembered -----------------------------------------------------------------------------------------


def card(array: numpy.ndarray) -> LikeCupy:
    return LikeCupy(array, 0)


def test_a_number_in_the_memory_of_a_device_is_read_at_every_launch(
    device: FakeDriver, axpy: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was remembered by its address: a launch went on with the number that had been there before."""
    monkeypatch.setattr(streams, "stream_of", lambda given, library, number: 0)
    x, y, a = ones(), numpy.zeros(100, numpy.float32), numpy.full((), 2, numpy.float32)
    number = card(a)
    number.item = a.item  # type: ignore[attr-defined]
    axpy(card(x), card(y), number, stream=0)
    a[...] = 3
    axpy(card(x), card(y), number, stream=0)
    numpy.testing.assert_array_equal(y, 5.0)
    device.capture = 1
    with pytest.raises(LaunchError, match=r"argument `a` cannot be read as a number: .* a graph is being captured"):
        axpy(card(x), card(y), number, stream=0)


def test_a_zero_with_another_sign_is_another_number(device: FakeDriver, axpy: Kernel) -> None:
    x, y = card(ones()), numpy.full(100, -0.0, numpy.float32)
    for number in (0.0, -0.0):
        y[:] = -0.0
        axpy(x, card(y), number, stream=0)
    assert numpy.signbit(y).all()


@pytest.mark.parametrize("number", [2, 2.0, numpy.float32(2), numpy.int64(2), numpy.array(2.0)])
def test_a_launch_is_known_again_whoever_made_its_numbers(
    device: FakeDriver, axpy: Kernel, number: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = card(ones()), card(ones())
    axpy(x, y, number, stream=0)
    monkeypatch.setattr(Kernel, "bound", None)
    axpy(x, y, number, stream=0)
    numpy.testing.assert_array_equal(y.array, 5.0)


@pytest.mark.parametrize("options", [{"grid": [[4]]}, {"grid": {"x": 4}}, {"debug": []}, {"constants": {"A": [1]}}])
def test_what_cannot_be_remembered_is_refused_after_a_launch_as_before(
    device: FakeDriver, axpy: Kernel, options: dict[str, Any]
) -> None:
    x, y = card(ones()), card(ones())
    axpy(x, y, 1.0, stream=0)
    with pytest.raises(LaunchError):
        axpy(x, y, 1.0, stream=0, **options)


def test_things_of_a_library_that_are_no_arrays_are_refused_after_a_launch_as_before(
    device: FakeDriver, axpy: Kernel
) -> None:
    axpy(card(ones()), card(ones()), 1.0, stream=0)
    for library in ("torch", "cupy"):
        with pytest.raises(LaunchError, match="argument `X` is of type Odd"):
            axpy(type("Odd", (), {"__module__": library})(), card(ones()), 1.0, stream=0)


def test_a_kernel_goes_to_another_process_after_a_launch_as_before(device: FakeDriver, axpy: Kernel) -> None:
    """What it was launched with went along, and holds what cannot."""
    axpy(card(ones()), card(ones()), 1.0, stream=0)
    for made in (pickle.loads(pickle.dumps(axpy)), copy.deepcopy(axpy)):
        y = ones()
        made(ones(), y, 1.0)
        assert (y == 2).all() and made.order == axpy.order
    assert pickle.loads(pickle.dumps(load(str(ROOT / "examples/fused.ph")))).names == ("largest", "mean", "spread")


# --- streams and steps ------------------------------------------------------------------------------------------


class Stream:
    def __init__(self, **what: object) -> None:
        self.__dict__.update(what)

    def add_callback(self) -> None: ...


class Event:
    ptr = 4096


@pytest.mark.parametrize(
    ("given", "handle"),
    [
        (7000, 7000), (numpy.int64(7000), 7000), (0, 0), (driver.PER_THREAD_STREAM, 2), (Stream(ptr=7000), 7000),
        (Stream(cuda_stream=7000), 7000), (Stream(handle=None, ptr=7000), 7000),
        (Stream(handle=driver.ctypes.c_void_p(7000)), 7000), (Stream(handle=driver.ctypes.c_void_p(0)), 0),
        (Stream(__cuda_stream__=lambda: (0, 7000)), 7000), (Stream(__cuda_stream__=(0, 7000)), 7000),
    ],
)  # fmt: skip
def test_streams_of_any_library(given: object, handle: int) -> None:
    assert stream_of(given, "", 0) == handle


@pytest.mark.parametrize(
    "given", [-1, 3, 4095, 1 << 64, True, 1.5, "7", object(), Event(), Stream(handle=print), Stream(__cuda_stream__=3)]
)
def test_what_is_no_stream_is_refused(given: object) -> None:
    """The driver follows whatever address it is given: an event's was taken for a stream's."""
    with pytest.raises(LaunchError, match="`stream` is"):
        stream_of(given, "", 0)


def test_an_array_of_a_subclass_goes_with_the_stream_of_its_library(device: FakeDriver, axpy: Kernel) -> None:
    from phobos.runtime.arrays import library_of

    own = type("Own", (Tensor,), {"__module__": "somebody"})
    assert library_of(own(ones())) == "torch" and library_of(HostArray(ones())) == ""


def test_reserving_every_multiprocessor_is_refused(device: FakeDriver) -> None:
    staged, x = kernel(read("examples/staged.ph")), HostArray(numpy.ones((1, 1 << 16), numpy.float32))
    assert staged.plan(x, reserved_sms=3).grid == (2, 1, 1)
    for reserved in (4, 5000):
        with pytest.raises(LaunchError, match=f"`reserved_sms` is {reserved}, and cuda:0 has 4 .* at most 3"):
            staged.plan(x, reserved_sms=reserved)


def test_arrays_are_looked_at_before_any_device_is_asked(device: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Overlap, read-only arrays and barrier tensors come before residency, and before anything is compiled."""
    from phobos.runtime.cuda import preparing

    def compiled(*_: object) -> None:
        raise AssertionError("nothing had to be compiled to see that")

    monkeypatch.setattr(preparing, "load", compiled)
    staged, x = kernel(read("examples/staged.ph")), numpy.ones((1, 4096), numpy.float32)
    with pytest.raises(LaunchError, match="shares memory with `X`"):
        staged(HostArray(x), HostArray(x.reshape(-1)[:2].view(numpy.int32)), grid=10_000)
    x.flags.writeable = False
    with pytest.raises(LaunchError, match="read-only"):
        staged(HostArray(x), grid=10_000)


@pytest.mark.parametrize("name", ["unchecked", "debug", "keep", "host_checks", "tuned"])
def test_a_switch_is_true_or_false(axpy: Kernel, name: str) -> None:
    x, y = ones(), ones()
    for given in ("no", None, 2, [], numpy.ones(2)):
        with pytest.raises(LaunchError, match=f"`{name}` is .*: give True or False"):
            axpy.plan(x, y, 1.0, **{name: given})
    for given in (0, 1, True, numpy.bool_(False), numpy.array(True)):
        axpy.plan(x, y, 1.0, **{name: given})
