"""`// run:` and `// expect:` comments: what they may say, and what is refused with its line."""

from __future__ import annotations

import pytest

from phobos.check.headers import fixed_grid
from phobos.errors import InputError
from phobos.runtime.headers import runs_of


def test_a_run_splits_at_spaces_and_the_first_equals_sign() -> None:
    (run,) = runs_of("k.ph", "// run: kernel=k M=1 X=random:seed=1 alpha=2.5 grid=4 arg.seed=7 l2_group=2\n")
    assert run.line == 1 and run.kernel == "k"
    assert run.options == {"grid": "4", "l2_group": "2"}
    assert run.names == {"M": "1", "X": "random:seed=1", "alpha": "2.5", "seed": "7"}


def test_each_run_has_the_expectations_up_to_the_next() -> None:
    text = f"""// prose
// run: N=1
// expect: X[0, 3] = -2.5e3
// expect: Y sha256={"0a" * 32}

// run: N=2
// expect: fault=deadlock
kernel k() {{}}
// run: N=3
"""
    one, two = runs_of("k.ph", text)
    cell, digest = one.expectations
    assert (cell.kind, cell.tensor, cell.index, cell.wanted, cell.line) == ("cell", "X", (0, 3), -2500.0, 3)
    assert (digest.kind, digest.tensor, digest.wanted) == ("sha256", "Y", "0a" * 32)
    assert one.fault is None and two.fault == "deadlock" and two.line == 6


@pytest.mark.parametrize(
    ("text", "line", "named"),
    [
        ("// run: N\n", 1, "'N'"),
        ("// run: =3\n", 1, "'=3'"),
        ("// run: a-b=3\n", 1, "'a-b'"),
        ("// run: N=1 grid=2 N=3\n", 1, "gives `N` twice"),
        ("// run: kernel=a kernel=b\n", 1, "gives `kernel` twice"),
        ("// run: l2-group=2\n", 1, "did you mean `l2_group`?"),
        ("// run: N=1 grid=2 grid=2\n", 1, "gives `grid` twice"),
        ("\n// expect: X[0] = 1\n", 2, "before any"),
        ("// run: N=1\n// expect: X[0] = many\n", 2, "X[0] = many"),
        ("// run: N=1\n// expect: X[i] = 1\n", 2, "X[i]"),
        ("// run: N=1\n// expect: X[\N{SUPERSCRIPT TWO}] = 1\n", 2, "X[\N{SUPERSCRIPT TWO}]"),
        ("// run: N=1\n// expect: fault=hang\n", 2, "'hang'"),
        ("// run: N=1\n// expect: X sha256=12\n", 2, "sha256=12"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(text: str, line: int, named: str) -> None:
    with pytest.raises(InputError) as caught:
        runs_of("k.ph", text)
    assert str(caught.value).startswith(f"k.ph:{line}:") and named in str(caught.value)


def test_a_header_has_the_lines_of_the_text_and_no_others() -> None:
    (run,) = runs_of("k.ph", "// a\u2028b\x0cc\r// run: N=1\r\n// expect: X[0] = 1\r")
    assert (run.line, [one.line for one in run.expectations]) == (2, [3])


def test_the_checker_reads_the_same_headers() -> None:
    kernel = "kernel k(X: tensor<f32>[N]) {\n  // run: grid=7\n  X[ctx.block.x * 64 :+ 64] = 1.0\n}\n// run: grid=9\n"
    assert fixed_grid(kernel, "k") is None and runs_of("k.ph", kernel) == (), "below the top there are none"
    for end in ("\n", "\r\n", "\r"):
        text = f"// one \f and \u2028 the same line{end}// run: grid=2{end}// run: grid=3,1{end}" + kernel
        grid = fixed_grid(text, "k")
        assert grid is not None and grid.blocks == (3, 1)
        assert [(run.line, run.options["grid"]) for run in runs_of("k.ph", text)] == [(2, "2"), (3, "3,1")]
