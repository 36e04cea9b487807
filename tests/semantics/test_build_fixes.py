"""A fix of the builder, applied, leaves a kernel of which that is no longer said."""

from __future__ import annotations

import pytest

from phobos.diagnostic import Edit
from phobos.semantics.module import analyse


def applied(text: str, code: str) -> tuple[str, str]:
    """The text with the first fix of that code made, and how safe it claims to be."""
    module = analyse("f.ph", text)
    for unit in module.units:
        for problem in unit.problems:
            if problem.code == code and problem.fix is not None:
                edits = [Edit(module.absolute(unit, edit.span), edit.content) for edit in problem.fix.edits]
                for edit in sorted(edits, key=lambda edit: -edit.span.start):
                    text = text[: edit.span.start] + edit.content + text[edit.span.end :]
                return text, problem.fix.applicability
    raise AssertionError(f"no fix for {code}")


def codes(text: str) -> list[str]:
    return [problem.code for unit in analyse("f.ph", text).units for problem in unit.problems]


@pytest.mark.parametrize(
    ("code", "body", "fixed", "how"),
    [
        ("PH103", "let y = 1; y = 2; X[y] = 1.0", "var y = 1; y = 2; X[y] = 1.0", "safe"),
        ("PH103", "let v = X[0 :+ 4]; v = 1.0; X[0 :+ 4] = v", "var v = X[0 :+ 4]; v = 1.0; X[0 :+ 4] = v", "unsafe"),
        ("PH104", "X[0] = X[0] * 2", "X[0] = X[0] * 2.0", "safe"),
        ("PH104", "X[0] = X[0] * n", "X[0] = X[0] * f32(n)", "unsafe"),
        ("PH104", "X[i32(n)] = 1.0", "X[i64(i32(n))] = 1.0", "unsafe"),
        ("PH104", "X[i32(n) + n] = 1.0", "X[i64(i32(n)) + n] = 1.0", "unsafe"),
        ("PH101", "let size = 4; X[0 :+ szie] = 1.0", "let size = 4; X[0 :+ size] = 1.0", "unsafe"),
        ("PH107", "X[0] = epx(1.0)", "X[0] = exp(1.0)", "unsafe"),
        ("PH106", "A[n, 0 :+ 4] = 1.0", "A[n :+ 1, 0 :+ 4] = 1.0", "unsafe"),
        ("PH111", "let v = X[0 :+ 4]; X[0 :+ 4] = 0.0; X[4 :+ 4] = v",
         "var v = X[0 :+ 4]; X[0 :+ 4] = 0.0; X[4 :+ 4] = v", "unsafe"),
        ("PH112", "let y = 1", "let _y = 1", "unsafe"),
    ],
)  # fmt: skip
def test_in_a_body(code: str, body: str, fixed: str, how: str) -> None:
    head = "kernel k(X: tensor<f32>[N], A: tensor<f32>[8, 8], n: i32) {\n  "
    tail = "\n  X[n] = A[0, 0]\n}\n"
    text, applicability = applied(head + body + tail, code)
    assert text == head + fixed + tail
    assert applicability == how
    assert code not in codes(text)


@pytest.mark.parametrize(
    ("code", "attribute", "fixed"),
    [
        ("PH209", "@persistent(48)", "@persistent"),
        ("PH406", "@persistant", "@persistent"),
        ("PH301", "@aligned(n = 4)", "@aligned(N = 4)"),
        ("PH407", "@dynshared(1, 2)", "@dynshared"),
    ],
)
def test_in_an_attribute(code: str, attribute: str, fixed: str) -> None:
    rest = "\nkernel k(X: tensor<f32>[N]) {\n  X[0] = 1.0\n}\n"
    text, _ = applied(attribute + rest, code)
    assert text == fixed + rest
    assert code not in codes(text)


def test_in_a_function_seen_from_a_kernel() -> None:
    text = (
        "// first\nfn f(x: f32) -> f32 {\n  let y = x\n  y = 2.0\n  return y\n}\n"
        "kernel k(X: tensor<f32>[N]) {\n  X[0] = f(1.0)\n}\n"
    )
    fixed, _ = applied(text, "PH103")
    assert fixed == text.replace("let y", "var y")
    assert codes(fixed) == []
