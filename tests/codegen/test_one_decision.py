"""The rules and the emitter read one decision: what a rule says of a kernel is what its CUDA text shows."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from phobos.check.rule import Context
from phobos.check.rules import (
    ph402_shared_memory_exceeded,
    ph404_tensorcore_fallback,
    ph405_pipeline_not_possible,
)
from phobos.diagnostic import Diagnostic
from phobos.errors import LaunchError
from phobos.lowering.decide import decisions_of, lower
from phobos.lowering.options import Options
from phobos.lowering.support import missing
from phobos.runtime import compiling
from phobos.semantics.module import Module, Unit, analyse

ROOT = Path(__file__).resolve().parents[2]
FILES = [path for folder in ("examples", "tests") for path in sorted((ROOT / folder).rglob("*.ph"))]
ROUNDS = """
kernel k(A: tensor<{dtype}>[M, K], B: tensor<{dtype}>[K, N], C: tensor<f32>[M, N]) {{
  let r = ctx.block.x * {rows}
  var acc: tile<f32>[{rows}, {columns}] = 0.0
  for k in range(0, K, {depth}) {{
    {first}
    acc += dot(A[r :+ {rows}, k :+ {depth}], B[k :+ {depth}, 0 :+ {columns}]){after}
  }}
  C[r :+ {rows}, 0 :+ {columns}] = acc
}}
"""
TRANSPOSES = """
kernel k(X: tensor<f32>[M, N], Y: tensor<f32>[N, M]) {{
  var t: tile<f32>[{rows}, {columns}] = X[0 :+ {rows}, 0 :+ {columns}]
  Y[0 :+ {columns}, 0 :+ {rows}] = transpose(t) * rowsum(transpose(t))
}}
"""


def products() -> list[str]:
    shape = {"dtype": "f16", "rows": 64, "columns": 64, "depth": 32, "first": "", "after": ""}
    others: list[dict[str, object]] = [
        {}, {"dtype": "f32"}, {"dtype": "f64"}, {"rows": 24}, {"columns": 36}, {"depth": 8}, {"depth": 64},
        {"depth": 128}, {"dtype": "f32", "depth": 64}, {"first": "acc = acc * 0.5"},
        {"after": " + dot(A[r :+ 64, 0 :+ 4], B[0 :+ 4, 0 :+ 64])"}, {"rows": 256, "columns": 128, "depth": 64},
    ]  # fmt: skip
    return [ROUNDS.format(**{**shape, **other}) for other in others]


@cache
def kernels() -> list[tuple[str, str, Module, Unit]]:
    """All kernels of the project that have no error of the language, and the products above."""
    texts = [(str(path.relative_to(ROOT)), path.read_text()) for path in FILES]
    texts += [(f"product {number}", text) for number, text in enumerate(products())]
    found = []
    for name, text in texts:
        module = analyse(name, text)
        found += [(f"{name}:{k}", text, module, unit) for k, unit in module.kernels.items() if is_sound(unit)]
    return found


def is_sound(unit: Unit) -> bool:
    return not any(p.severity == "error" for p in unit.program.problems)


def asking(attribute: str) -> list[tuple[str, Module, Unit]]:
    """The same kernels, each with an attribute."""
    found = []
    for name, text, _, unit in kernels():
        if missing(unit.program):
            continue
        start = text.index(f"kernel {unit.program.name}(") if f"kernel {unit.program.name}(" in text else None
        if start is None:
            continue
        changed = f"{text[:start]}{attribute}\n{text[start:]}"
        module = analyse(name, changed)
        unit = module.kernels[unit.program.name]
        if is_sound(unit):
            found.append((name, module, unit))
    return found


def reported(rule: object, unit: Unit) -> list[Diagnostic]:
    return list(rule.check(Context(unit.program)))  # type: ignore[attr-defined]


def test_a_kernel_keeps_off_tensor_cores_where_the_rule_says_so() -> None:
    seen = set()
    for name, module, unit in asking("@tensorcore"):
        found = reported(ph404_tensorcore_fallback, unit)
        text = compiling.spelled(module, unit, Options()).text
        body = text[text.index("__global__") :]
        dots = decisions_of(unit.program).products
        on_units = len(re.findall(r"\bph_multiply_\w+\(", body))
        assert bool(found) == (on_units < len(dots) or not dots), name
        seen.add((bool(found), bool(dots)))
    assert seen == {(True, True), (True, False), (False, True)}


def test_a_loop_is_double_buffered_unless_the_rule_says_so() -> None:
    seen = set()
    for name, module, unit in asking("@pipeline"):
        found = reported(ph405_pipeline_not_possible, unit)
        text = compiling.spelled(module, unit, Options()).text
        ahead = "auto fetch = " in text or "auto aim = " in text  # at once, or in pieces
        assert bool(found) == (not ahead), name
        seen.add(found[0].severity if found else None)
    assert seen == {"error", None}


@pytest.mark.parametrize("attribute", ["", "@dynshared\n"])
def test_shared_memory_is_what_the_rule_counts_and_what_the_emitter_adds(attribute: str) -> None:
    units = [(name, module, unit) for name, _, module, unit in kernels() if not missing(unit.program)]
    for rows, columns in ((64, 64), (96, 128), (96, 129), (111, 110), (128, 128)):
        module = analyse("t", attribute + TRANSPOSES.format(rows=rows, columns=columns))
        units.append((f"{rows} x {columns}", module, module.kernels["k"]))
    refused = 0
    for name, module, unit in units:
        counted = ph402_shared_memory_exceeded.most_live(unit.program).bytes
        shared = lower(unit.program).shared
        try:
            made = compiling.spelled(module, unit, Options())
        except LaunchError:
            assert any(one.severity == "error" for one in reported(ph402_shared_memory_exceeded, unit)), name
            refused += 1
            continue
        assert not any(one.severity == "error" for one in reported(ph402_shared_memory_exceeded, unit)), name
        assert made.static_shared_bytes + made.dynamic_shared_bytes == shared.bytes >= counted, name
        places = shared.places
        if all(thing in dict(decisions_of(unit.program).most_tiles) for thing in places):
            padding = sum(place.bytes for place in places.values()) - counted
            assert shared.bytes == counted + padding and 0 <= padding <= counted // 4 + 64, name
    assert refused == (0 if attribute else 2)


def test_what_the_emitter_adds_to_tiles_at_the_limit_does_not_refuse_them() -> None:
    text = """
    kernel k(X: tensor<f32>[M, N], Y: tensor<f32>[M, N]) {
      var t: tile<f32>[1, 12288] = X[0 :+ 1, 0 :+ 12288]
      t[0, 5] = 1.0
      Y[0 :+ 1, 0 :+ 12288] = t / rowsum(t)
    }
    """
    module = analyse("t", text)
    unit = module.kernels["k"]
    assert not reported(ph402_shared_memory_exceeded, unit)
    made = compiling.spelled(module, unit, Options())
    assert ph402_shared_memory_exceeded.most_live(unit.program).bytes == 48 * 1024
    assert made.static_shared_bytes == 0 and made.dynamic_shared_bytes > 48 * 1024
