"""The editor's scoping and the builder's agree: what a name is shown to be is what it means."""

from __future__ import annotations

from pathlib import Path

import pytest

from phobos.ide.describe import meaning
from phobos.semantics import ir
from tests.ide.fixture import cases, document

ROOT = Path(__file__).resolve().parents[2]
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").glob("*.ph"))}
TEXTS |= {
    f"corpus/{path.name}": path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "tests" / "corpus").rglob("*.ph"))
}
TEXTS |= {f"{case.feature}: {case.name}": case.text for case in cases() if not case.broken}


@pytest.mark.parametrize("name", TEXTS)
def test_a_name_is_the_variable_that_the_builder_takes_it_for(name: str) -> None:
    seen = document(TEXTS[name])
    compared = 0
    for place in seen.places():
        program = seen.program(place)
        if program is None or program.owner is not None:
            continue
        for use in place.names.uses:
            made = program.node_types.get(use.node) if use.node is not None else None
            match made:
                case ir.VariableRef(variable=variable) if variable.name and not variable.calls:
                    taken: object = variable
                case ir.ParamRef(param=param):
                    taken = param
                case ir.DimRef(dim=dim):
                    taken = dim
                case ir.ConstantRef(constant=constant):
                    taken = constant
                case _:
                    continue
            assert use.symbol is not None, f"`{use.name}` is {taken!r} to the builder and nothing to the editor"
            if isinstance(taken, ir.Dim) and use.symbol.kind in ("parameter", "dimension"):
                assert taken.name == use.symbol.name  # an extent and the parameter that is passed equal to it
            else:
                assert meaning(program, use.symbol) is taken, f"`{use.name}` at {use.start}"
            compared += 1
    if name in ("staged.ph", "normalise.ph", "softmax.ph"):
        assert compared >= 8
