"""The three descriptions of tokens for editors and pages: TextMate grammar, Vim syntax, Pygments lexer.

The first two are written from the project's tables; here it is checked that they are what would be written now, and
the grammar is asked, by VS Code's own engine, for the scope of every kind of token.
"""

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import Error, Name, Number, Operator

from phobos.language.builtins import BUILTINS
from tests.editors.parts import ROOT, node_environment, npm_folder


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("script", ["editors/vscode/grammar.py", "editors/nvim/generate.py"])
def test_generated_description_is_what_the_tables_say(script: str) -> None:
    module = load(ROOT / script)
    assert module.FILE.read_text() == module.text(), f"run {script}"


def test_grammar_scopes_of_every_kind_of_token() -> None:
    extension = npm_folder()
    done = subprocess.run(
        ["node", "node_modules/vscode-tmgrammar-test/dist/unit.js", "test/grammar/*.test.ph"],
        cwd=extension, env=node_environment(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tokens.test.ph run successfuly" in done.stdout


def kernels() -> list[Path]:
    return sorted([*ROOT.glob("examples/*.ph"), *ROOT.glob("tests/corpus/*.ph")])


@pytest.mark.parametrize("path", kernels(), ids=lambda path: path.stem)
def test_lexer_knows_every_character_of_real_kernels(path: Path) -> None:
    text = path.read_text()
    tokens = list(get_lexer_for_filename(path.name).get_tokens(text))
    assert "".join(value for _, value in tokens) == text
    assert [value for kind, value in tokens if kind is Error] == []


def test_lexer_tells_kinds_apart() -> None:
    lexer = get_lexer_by_name("phobos")
    text = "kernel k(X: tensor<f32>[N]) { X[i :+ 4] = exp(x) + 1.5e3 + 0x1f }"
    kinds = {value: kind for kind, value in lexer.get_tokens(text)}
    assert kinds["k"] is Name.Function
    assert kinds["exp"] is Name.Builtin and kinds["x"] is Name
    assert kinds[":+"] is Operator
    assert kinds["1.5e3"] is Number.Float and kinds["0x1f"] is Number.Hex


@pytest.mark.parametrize("name", ["grid_barrier", "dot_t", "rowargmax"])
def test_a_built_in_name_is_one_only_where_it_is_called(name: str) -> None:
    lexer = get_lexer_by_name("phobos")
    assert name in BUILTINS
    called = {value: kind for kind, value in lexer.get_tokens(f"{name}(a)")}
    named = {value: kind for kind, value in lexer.get_tokens(f"{name} + a")}
    assert called[name] is Name.Builtin
    assert named[name] is Name
