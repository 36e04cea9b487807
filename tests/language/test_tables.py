"""The tables of the language: complete, consistent, and their examples are what they say they are."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phobos.language import attributes, builtins, members, near, scalars, search
from phobos.semantics.module import analyse

HEAD = (
    "X: tensor<f32>[N], TABLE: tensor<f32>[N], NEXT: tensor<i32>[2], LOCK: tensor<i32>[2], BAR: tensor<i32>[2], "
    "A: tensor<f32>[64, 64], I: tensor<i32>[64, 64], f: f32"
)
SETUP = """
  var t: tile<f32>[64, 64] = 0.0
  var m: tile<f32>[64, 1] = 0.0
  var s: tile<f32>[64, 64] = 0.0
  var acc: tile<f32>[64, 64] = 0.0
  let a = A[:, :]
  let b = A[:, :]
  let q = A[:, :]
  let k = A[:, :]
  let x = t
  let c = t > 0.0
  let ia = I[:, :]
  let ib = I[:, :]
  let idx = I[:, :]
"""


@pytest.mark.parametrize("entry", builtins.CORE.values(), ids=lambda entry: entry.name)
def test_the_example_of_a_built_in_is_accepted_and_uses_it(entry: builtins.Builtin) -> None:
    first = "m = rowmax(t)\n  " if entry.name == "tmin" else ""
    example = entry.example.replace("tmin(m, t)", "tmin(m, rowmax(t))")
    module = analyse("x.ph", f"@persistent\nkernel k({HEAD}) {{{SETUP}  if f > 0.0 {{\n  {first}{example}\n  }}\n}}\n")
    (unit,) = module.units
    assert unit.item.problems == ()
    assert [p.message for p in unit.problems if p.code != "PH112"] == []
    assert f"{entry.name}(" in entry.example


@pytest.mark.parametrize("entry", builtins.CORE.values(), ids=lambda entry: entry.name)
def test_one_argument_too_many_names_the_signature(entry: builtins.Builtin) -> None:
    inside = ", ".join(["1"] * (len(entry.parameters) + 1))
    (unit,) = analyse("x.ph", f"kernel k(X: tensor<f32>[N]) {{\n  {entry.name}({inside})\n}}\n").units
    (problem,) = [p for p in unit.problems if p.code == "PH107"]
    assert problem.help == f"write `{entry.signature}`"


def test_every_entry_says_something() -> None:
    for entry in builtins.BUILTINS.values():
        assert entry.documentation.endswith((".", "`")), entry.name
        assert entry.signature.startswith(f"{entry.name}(") and "`" not in entry.signature, "it is shown as code"
        assert entry.executed == entry.core
        assert all(p.label and p.documentation for p in entry.parameters)
        assert len({p.label for p in entry.parameters}) == len(entry.parameters)


def test_the_built_ins_of_the_language_are_all_there() -> None:
    names = (
        "program_id extent grid_barrier atomic_add atomic_cas exp log sqrt tanh round pow tmax tmin where iota argsel "
        "rowmax rowsum rowargmax cumsum tril transpose flat gather dot dot_t f16 bf16 f32 f64 i8 u8 i32 i64"
    )
    assert set(builtins.CORE) == set(names.split())


@pytest.mark.parametrize("entry", attributes.ATTRIBUTES.values(), ids=lambda entry: entry.name)
def test_the_example_of_an_attribute_is_accepted(entry: attributes.AttributeEntry) -> None:
    body = "X[0 :+ TILE] = 1.0\n  X[0 :+ STEPS] = 1.0" if entry.name == "autotune" else "X[0] = 1.0"
    (unit,) = analyse("x.ph", f"{entry.example}\nkernel k(X: tensor<f32>[N]) {{\n  {body}\n}}\n").units
    assert unit.item.problems == ()
    assert unit.problems == ()
    assert entry.example.startswith(f"@{entry.name}")
    assert entry.documentation.endswith(".")


@pytest.mark.parametrize("spelling", members.spellings())
def test_every_member_of_ctx_is_an_index(spelling: str) -> None:
    (unit,) = analyse("x.ph", f"kernel k(X: tensor<f32>[N]) {{\n  let y = {spelling}\n  X[y] = 1.0\n}}\n").units
    executed = members.MEMBERS[spelling.split(".")[1]].executed
    assert [p.code for p in unit.problems] == ([] if executed else ["PH114"])


@pytest.mark.parametrize(
    ("left", "right", "joined"),
    [
        ("f32", "f64", "f64"), ("f16", "f32", "f32"), ("f16", "bf16", "f32"), ("bf16", "bf16", "bf16"),
        ("i8", "u8", "i32"), ("i8", "i32", "i32"), ("i32", "i64", "i64"), ("i64", "index", "index"),
        ("i32", "f32", None), ("index", "f64", None), ("bool", "bool", "bool"), ("bool", "i8", None),
    ],
)  # fmt: skip
def test_joins(left: str, right: str, joined: str | None) -> None:
    assert scalars.join(left, right) == scalars.join(right, left) == joined


def test_stores() -> None:
    every = [*scalars.SCALARS, "index"]
    for source in every:
        allowed = {target for target in every if scalars.stores(source, target)}
        kind = scalars.scalar(source).kind
        numbers = {name for name in every if name != "bool"}
        assert allowed == {"float": set(scalars.FLOATS), "integer": numbers, "bool": {"bool"}}[kind]


@given(st.integers(-(2**70), 2**70), st.sampled_from(sorted(scalars.INTEGERS)))
def test_wrapping_stays_in_range_and_keeps_the_remainder(number: int, name: str) -> None:
    entry = scalars.scalar(name)
    wrapped = scalars.wrap(number, name)
    assert entry.low <= wrapped <= entry.high
    assert (wrapped - number) % (1 << entry.bits) == 0


@pytest.mark.parametrize(
    ("listed", "choices"),
    [
        ((16, 256), (16, 32, 64, 128, 256)), ((64, 100), (64, 100)), ((64, 200), (64, 128, 200)),
        ((64, 128), (64, 128)), ((32, 16), (32, 16)), ((8, 8), (8, 8)), ((0, 8), (0, 8)), ((7,), (7,)),
        ((1, 2, 9), (1, 2, 9)), ((), ()),
    ],
)  # fmt: skip
def test_what_a_search_list_stands_for(listed: tuple[int, ...], choices: tuple[int, ...]) -> None:
    assert search.choices(listed) == choices


def test_the_last_name_varies_fastest() -> None:
    space = {"A": (1, 2), "B": (3, 4)}
    found = [(point["A"], point["B"]) for point in search.combinations(space)]
    assert found == [(1, 3), (1, 4), (2, 3), (2, 4)]
    assert search.points(space) == 4


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("grid_barier", "grid_barrier"), ("ezp", "exp"), ("dott", "dot"), ("rowsmu", "rowsum"), ("EXP", "exp"),
        ("mystery", None), ("x", None), ("softmaxx", None),
    ],
)  # fmt: skip
def test_near_names(name: str, meant: str | None) -> None:
    assert near.nearest(name, builtins.CORE, most=1) == meant


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("A", ("B",), None), ("A", ("a", "B"), "a"), ("n", ("M", "N"), "N"), ("ab", ("ba", "cb"), "ba"),
        ("TILE", ("TIEL", "TILES"), "TIEL"), ("A", ("AB",), None), ("BAR", ("bar",), "bar"),
    ],
)  # fmt: skip
def test_a_name_of_one_letter_is_misspelt_in_its_case_alone(name: str, known: tuple[str, ...], meant: str) -> None:
    assert near.nearest(name, known) == meant


@given(st.text("abcDE_", max_size=8), st.text("abcDE_", max_size=8))
def test_distance_is_symmetric_and_bounded(left: str, right: str) -> None:
    there = near.distance(left, right, limit=16)
    assert there == near.distance(right, left, limit=16)
    assert abs(len(left) - len(right)) <= there <= max(len(left), len(right))
    assert (there == 0) == (left == right)


def test_the_tables_are_cheap_to_load() -> None:
    code = (
        "import sys; from phobos.language import attributes, builtins, members, near, scalars, search; "
        "print(sorted({'lark', 'numpy', 'rich', 'pygls'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
