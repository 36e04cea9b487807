"""A file is analysed item by item, once per meaning: what an edit costs, and where problems stand afterwards."""

from __future__ import annotations

import pytest

from phobos.diagnostic import Span
from phobos.semantics.module import Module, analyse, analysed_items
from phobos.semantics.program import Settings

FUNCTION = "fn half(x: f32) -> f32 {\n  return x * 0.5\n}\n"


def kernel(number: int, body: str = "  X[0] = 1.0\n") -> str:
    return f"// kernel {number}\nkernel k{number}(X: tensor<f32>[N]) {{\n{body}}}\n"


def twenty(tag: str, edited: int | None = None) -> str:
    return "".join(
        kernel(number, f"  X[{number}] = {tag}{'1' if number == edited else ''}.0\n") for number in range(20)
    )


def analysed(text: str, settings: Settings = Settings()) -> tuple[Module, int]:  # noqa: B008
    before = analysed_items()
    module = analyse("f.ph", text, settings)
    return module, analysed_items() - before


def test_an_edit_in_one_kernel_of_twenty_analyses_one() -> None:
    analysed(twenty("101"))
    module, count = analysed(twenty("101", edited=7))
    assert count == 1
    assert len(module.units) == 20


def test_a_line_inserted_above_analyses_none_and_moves_places() -> None:
    text = twenty("102") + "kernel bad(X: tensor<f32>[N]) {\n  X[0] = q\n}\n"
    before, _ = analysed(text)
    after, count = analysed("// inserted\n\n" + text)
    assert count == 0
    unit = after.units[-1]
    span = after.absolute(unit, unit.problems[0].span)
    assert span == Span("f.ph", span.start, span.end) or (span.owner, span.end - span.start) == ("f.ph", 1)
    assert after.file.text[span.start : span.end] == "q"
    old = before.absolute(before.units[-1], before.units[-1].problems[0].span)
    assert span.start == old.start + len("// inserted\n\n")


def test_an_edit_in_a_function_analyses_it_and_its_callers() -> None:
    outer = "fn outer(x: f32) -> f32 {\n  return half(x) + 0.25\n}\n"
    rest = outer + twenty("103") + kernel(21, "  X[0] = half(2.0)\n") + kernel(22, "  X[0] = outer(2.0)\n")
    analysed(FUNCTION + rest)
    _, count = analysed(FUNCTION.replace("0.5", "0.75") + rest)
    assert count == 4  # half, outer, k21, k22


def test_order_of_items_does_not_matter() -> None:
    first, second = kernel(31), kernel(32)
    analysed(first + second)
    assert analysed(second + first)[1] == 0


def test_settings_are_part_of_the_key() -> None:
    text = "@autotune(T in [8, 16])\nkernel t(X: tensor<f32>[N]) {\n  let v = X[0 :+ T]\n  X[0 :+ T] = v\n}\n"
    analysed(text)
    module, count = analysed(text, Settings(constants=(("T", 16),)))
    assert count == 1
    assert module.kernels["t"].program.constants["T"].value == 16


def test_known_functions_are_not_called_unknown() -> None:
    text = kernel(41, "  X[0] = mystery(1.0)\n")
    assert [p.code for p in analysed(text)[0].units[0].problems] == ["PH107"]
    assert analysed(text, Settings(known_functions=("mystery",)))[0].units[0].problems == ()


def test_a_function_that_appears_makes_an_unknown_call_known() -> None:
    text = kernel(42, "  X[0] = hallf(2.0)\n")
    assert [p.severity for p in analysed(text)[0].units[0].problems] == ["warning"]
    (problem,) = analysed(FUNCTION + text + kernel(43, "  X[0] = half(2.0)\n"))[0].kernels["k42"].problems
    assert problem.severity == "error"
    assert problem.help == "did you mean `half`?"


def test_a_place_in_a_function_is_found_from_its_caller() -> None:
    text = "\n\n" + "fn put(X: tensor<f32>[n], at: i32) {\n  X[at] = 1.0\n}\n" + (
        "kernel k(X: tensor<f32>[4]) {\n  put(X, 1)\n  put(X, 9)\n}\n"
    )
    module, _ = analysed(text)
    unit = module.kernels["k"]
    (problem,) = unit.problems
    span = module.absolute(unit, problem.span)
    assert (problem.code, text[span.start : span.end]) == ("PH115", "at")
    chain = [module.absolute(unit, related.span) for related in problem.related]
    assert text[chain[0].start : chain[0].end] == "put(X, 9)"
    assert problem.related[0].message == "called from here"


def test_an_unknown_name_is_told_once_a_file() -> None:
    text = kernel(51, "  X[0] = mystery(1.0)\n") + kernel(52, "  X[0] = mystery(1.0)\n")
    module, _ = analysed(text)
    assert [len(unit.problems) for unit in module.units] == [1, 0]


def test_duplicate_kernels_point_at_each_other() -> None:
    text = kernel(61) + "\n" + kernel(61, "  X[1] = 2.0\n")
    module, _ = analysed(text)
    unit = module.units[1]
    (problem,) = unit.problems
    first = module.absolute(unit, problem.related[0].span)
    second = module.absolute(unit, problem.span)
    assert text[first.start : first.end] == text[second.start : second.end] == "k61"
    assert first.start < second.start
    assert module.kernels["k61"] is module.units[0]


@pytest.mark.parametrize("text", ["", "\n", "// only a comment\n", "kernel", "fn", "@", "{}", "kernel k(", "\0"])
def test_any_text_is_analysed(text: str) -> None:
    analyse("f.ph", text)


def test_deep_expressions_are_analysed() -> None:
    chain = " + ".join(["1.0"] * 250)
    nested = "(" * 250 + "1.0" + ")" * 250
    negated = "-" * 250 + "1.0"
    calls = "exp(" * 250 + "1.0" + ")" * 250
    blocks = "if n > 0 {\n" * 200 + "X[0] = 1.0\n" + "}\n" * 200
    for number, value in enumerate((chain, nested, negated, calls)):
        (unit,) = analyse("f.ph", kernel(710 + number, f"  X[0] = {value}\n")).units
        assert (unit.item.problems, unit.problems) == ((), ())
    text = f"kernel deep(X: tensor<f32>[N], n: i32) {{\n{blocks}}}\n"
    (unit,) = analyse("f.ph", text).units
    assert (unit.item.problems, unit.problems) == ((), ())


def test_calls_in_calls_are_limited() -> None:
    levels = "".join(f"fn g{n}(x: f32) -> f32 {{\n  return g{n + 1}(x) + 1.0\n}}\n" for n in range(90))
    text = levels + "fn g90(x: f32) -> f32 {\n  return x\n}\n"
    shallow = analyse("f.ph", text + kernel(82, "  X[0] = g30(1.0)\n")).kernels["k82"]
    assert shallow.problems == ()
    deep = analyse("f.ph", text + kernel(83, "  X[0] = g0(1.0)\n"))
    assert any("more than 64 deep" in p.message for unit in deep.units for p in unit.problems)


def test_a_chain_of_calls_is_told_outermost_first() -> None:
    text = (
        "fn inner(X: tensor<f32>[n], at: i32) {\n  X[at] = 1.0\n}\n"
        "fn outer(X: tensor<f32>[n], at: i32) {\n  inner(X, at + 1)\n}\n"
        "kernel k(X: tensor<f32>[4]) {\n  outer(X, 8)\n}\n"
    )
    module = analyse("f.ph", text)
    unit = module.kernels["k"]
    (problem,) = unit.problems
    places = [module.absolute(unit, related.span) for related in problem.related]
    assert [text[p.start : p.end] for p in places[:2]] == ["outer(X, 8)", "inner(X, at + 1)"]


def test_calls_that_double_are_limited() -> None:
    levels = "".join(f"fn g{n}(x: f32) -> f32 {{\n  return g{n + 1}(x) + g{n + 1}(x)\n}}\n" for n in range(11))
    text = levels + "fn g11(x: f32) -> f32 {\n  return x\n}\n" + kernel(81, "  X[0] = g0(1.0)\n")
    module = analyse("f.ph", text)
    assert any("inlining makes more than" in p.message for unit in module.units for p in unit.problems)


def test_a_file_of_more_kernels_than_are_kept_is_kept() -> None:
    text = "".join(kernel(10_000 + number, f"  X[{number}] = 1.0\n") for number in range(520))
    analysed(text)
    assert analysed("\n" + text)[1] == 0
