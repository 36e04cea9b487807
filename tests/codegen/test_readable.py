"""The emitted text reads as if somebody had written it: no arithmetic with nothing, no braces or names for nothing."""

from __future__ import annotations

import re
import struct
from itertools import pairwise
from pathlib import Path

import numpy
import pytest

from phobos.codegen import spelling
from phobos.codegen.writer import Writer
from phobos.lowering.options import Options
from phobos.semantics.module import analyse
from tests.codegen.compare import emitted, read

ROOT = Path(__file__).resolve().parents[2]
SOME = ["examples/gemm.ph", "examples/normalise.ph", "examples/saxpy.ph", "examples/softmax.ph", "examples/staged.ph"]
SOME += [f"tests/corpus/{name}.ph" for name in ("batchnorm", "causal_attention", "conjugate_gradient")]
KERNELS = [(path, name) for path in SOME for name in analyse(path, read(path)).kernels]


@pytest.fixture(scope="module")
def bodies() -> dict[tuple[str, str], list[str]]:
    """The lines of each kernel behind the device code, without indentation."""
    options = Options(arch="sm_90a", vectors=True)
    texts = {one: emitted(read(one[0]), one[1], options).text for one in KERNELS}
    return {
        one: [line.strip() for line in text[text.index('extern "C"') :].splitlines()] for one, text in texts.items()
    }


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_no_line_computes_with_nothing(kernel: tuple[str, str], bodies: dict[tuple[str, str], list[str]]) -> None:
    nothing = re.compile(r"(?<![\w.])0 [+*/%] |[-+] 0(?![\w.])|[*/] 1(?![\w.])|\b1 \* |\(0\)|; \w+ < 1; \+\+")
    assert not [line for line in bodies[kernel] if nothing.search(line.partition("//")[0])]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_what_is_stored_or_passed_stands_in_no_parentheses(
    kernel: tuple[str, str], bodies: dict[tuple[str, str], list[str]]
) -> None:
    for line in bodies[kernel]:
        found = re.fullmatch(r"(?!for ).* = (\(.*\));", line)
        assert not found or spelling.bare(found[1]) == found[1], line


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_no_braces_stand_around_braces_and_no_loop_is_empty(
    kernel: tuple[str, str], bodies: dict[tuple[str, str], list[str]]
) -> None:
    lines = [line for line in bodies[kernel] if not line.startswith("#")]
    for before, line in pairwise(lines):
        assert not (before.endswith("{") and line == "}"), (before, line)
        if before.startswith("if") and before.endswith("{"):
            assert line != "{", before


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_every_row_and_column_that_is_named_is_used(
    kernel: tuple[str, str], bodies: dict[tuple[str, str], list[str]]
) -> None:
    lines = bodies[kernel]
    for at, line in enumerate(lines):
        named = re.match(r"const int ([rc]) = ", line)
        if named:
            end = next((n for n in range(at + 1, len(lines)) if lines[n].startswith(line[:13])), len(lines))
            assert any(re.search(rf"\b{named[1]}\b", one) for one in lines[at + 1 : end]), line


def test_a_number_is_as_short_as_it_may_be() -> None:
    assert [spelling.real(number, "f32") for number in (0.1, -3.0e38, 1.0, 1e-5, 0.0)] == [
        "0.1f", "-3e+38f", "1.0f", "1e-05f", "0.0f"
    ]  # fmt: skip
    assert spelling.real(0.1, "f64") == "0.1"
    for bits in numpy.random.default_rng(1).integers(0, 0x7F800000, 2000):
        (number,) = struct.unpack("f", struct.pack("I", int(bits)))
        assert numpy.float32(spelling.real(number, "f32").removesuffix("f")) == numpy.float32(number)


def test_sums_products_and_parentheses() -> None:
    assert spelling.plus("a", 0, "0", 3, "b", "4") == "a + b + 7" and spelling.plus(0, "0") == "0"
    assert spelling.times("a", 1) == "a" and spelling.times("a", 0) == "0" and spelling.times("3", 4) == "12"
    assert spelling.times(spelling.factor("a + b"), 2) == "(a + b) * 2" and spelling.factor("(a)") == "(a)"
    assert spelling.bare("(a + b)") == "a + b" and spelling.bare("(a) + (b)") == "(a) + (b)"


def test_braces_stay_where_something_is_declared() -> None:
    out = Writer('"t.ph"')
    with out.scope(), out.rows("for (int i = 0; i < 4; ++i)"), out.naming("r", "const int r = i;"):
        out.line("x[i] = 1;")
    with out.scope():
        out.line("float t[2];")
    with out.scope(), out.naming("c", "const int c = tid;"):
        out.line("f(c);")
    assert out.text.split("\n") == [
        "#pragma unroll", "for (int i = 0; i < 4; ++i) {", "  x[i] = 1;", "}",
        "{", "  float t[2];", "}",
        "{", "  const int c = tid;", "  f(c);", "}", "",
    ]  # fmt: skip
