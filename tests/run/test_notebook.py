"""The cell magic and what a notebook shows, in a real IPython shell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.lib.pretty import pretty
from IPython.utils.capture import capture_output

import phobos

DOUBLE = """%%phobos{line}
kernel double(X: tensor<f32>[N]) {{
  X[ctx.block.x * 4 :+ 4] = X[ctx.block.x * 4 :+ 4] * {factor}
}}
"""
HANG = """%%phobos
@persistent
kernel stuck(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  if ctx.block.x < 1 { grid_barrier(BAR) }
  X[ctx.block.x] = 1.0
}
"""


@pytest.fixture
def shell(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "phobos")
    yield shell
    InteractiveShell.clear_instance()


def test_a_cells_kernels_are_called_by_name(shell: InteractiveShell) -> None:
    with capture_output() as said:
        shell.run_cell(DOUBLE.format(line="", factor="2.0"))
    assert "kernels: double" in said.stdout and not said.outputs
    x = numpy.arange(8, dtype=numpy.float32)
    shell.user_ns["double"](x)
    assert x.tolist() == [0, 2, 4, 6, 8, 10, 12, 14]
    shell.run_cell(DOUBLE.format(line=" --quiet", factor="0.5"))
    shell.user_ns["double"](x)
    assert x.tolist() == list(range(8))


def test_a_cell_under_a_name(shell: InteractiveShell) -> None:
    with capture_output():
        shell.run_cell(DOUBLE.format(line=" tools", factor="2.0"))
    assert shell.user_ns["tools"].double.name == "double" and "double" not in shell.user_ns
    with capture_output() as said:
        shell.run_cell(DOUBLE.format(line=" 3x", factor="2.0"))
    assert "'3x' is not understood" in said.stdout


def test_a_hang_is_shown_under_its_cell(shell: InteractiveShell) -> None:
    with capture_output() as said:
        shell.run_cell(HANG)
    (shown,) = said.outputs
    html = shown.data["text/html"]
    assert "PH203" in html and "<pre" in html and "if ctx.block.x &lt; 1" in html
    assert "error[PH203]" in shown.data["text/plain"] and "^^^" in shown.data["text/plain"]


def test_findings_print_as_the_command_does() -> None:
    found = phobos.check(HANG.partition("\n")[2], "k.ph")
    assert "error[PH203]" in str(found) and " --> k.ph:3:24" in str(found)
    assert str(phobos.check("")) == "nothing found" and phobos.check("") == []


def test_a_prompt_shows_what_print_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHOBOS_CACHE", str(tmp_path))
    double = phobos.kernel(DOUBLE.format(line="", factor="2.0").partition("\n")[2])
    x = numpy.zeros(8, "f4")
    for made in (double.plan(x), double.tune(x, budget=0)):
        assert pretty(made) == str(made) and "double" in str(made)
    ran = pretty(double.reference(x))
    assert ran.startswith("<double in the reference runtime: grid 2 x 1 x 1, 2 of 2 block-phases in batches, ")


def test_what_a_kernel_holds_cannot_break_out_of_the_page() -> None:
    found = phobos.check("kernel k(X: tensor<f32>[N]) { X[0] = nothing } // </pre><script>alert(1)</script>")
    assert found and "<script" not in found._repr_html_()
    plan = phobos.kernel(DOUBLE.format(line="", factor="2.0").partition("\n")[2]).plan(numpy.zeros(8, "f4"))
    assert "<td" in plan._repr_html_() and str(plan.rows()[0][1]) in plan._repr_html_()
