"""Where a configuration is looked for, and where in it a mistake is said to be: however the file is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from phobos.check.configuration import DEFAULT, forget, of_file, parse
from phobos.check.toml_lines import lines_of
from phobos.errors import InputError
from tests.command import phobos


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    forget()
    (tmp_path / "k.ph").write_text("kernel k(X: tensor<f32>[N]) {\n  X[ctx.block.x * 64 :+ 64] = 1.0\n}\n")
    return tmp_path


OTHERS = '[tool.other]\nselect = "x"\nignore = ["PHY"]\nN = 1\n'


@pytest.mark.parametrize(
    ("name", "text", "line", "said"),
    [
        ("phobos.toml", "ignore = []\nsizes = { M = 4, N = -1 }\n", 2, "`N` must be an integer"),
        ("phobos.toml", "\nsizes.N = -1\n", 2, "`N` must be an integer"),
        ("phobos.toml", f"sizes.N = {1 << 63}\n", 1, "fits in 64 bits"),
        ("phobos.toml", 'ignore = []\nper-file-ignores = { "a" = ["PH1"], "b" = 5 }\n', 2, "`b` must be a list"),
        ("phobos.toml", 'known-functions = [\n  "a",\n  "b",\n]\nselect = 3\n', 5, "`select` must be a list"),
        ("phobos.toml", 'known-functions = """\nselect = 3\n"""\nselect = 3\n', 4, "`select` must be a list"),
        ("phobos.toml", '\nselect = [\n  "PH1",\n  3,\n]\n', 2, "`select` must be a list"),
        ("phobos.toml", '\r\n\r\n"select" = 3\r\n', 3, "`select` must be a list"),
        ("pyproject.toml", OTHERS + "[tool.phobos]\nselect = 3\n", 6, "`select` must be a list"),
        ("pyproject.toml", OTHERS + "[tool.phobos.sizes]\nN = -1\n", 6, "`N` must be an integer"),
        ("pyproject.toml", OTHERS + "[tool]\nphobos = 3\n", 6, "`tool.phobos` must be a table"),
        ("pyproject.toml", OTHERS + "[[tool.phobos]]\n", 5, "`tool.phobos` must be a table"),
    ],
)
def test_a_mistake_has_the_line_that_it_stands_on(name: str, text: str, line: int, said: str) -> None:
    with pytest.raises(InputError) as raised:
        parse(name, text)
    assert str(raised.value).startswith(f"{name}:{line}: ") and said in str(raised.value)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (OTHERS + '[tool.phobos]\n# "PHY"\nignore = [\n  "PHY"]\n', ['\n  "|PHY']),
        (
            OTHERS + '[tool.phobos]\nper-file-ignores = { "a" = ["PHY"], "b" = ["PH1", "PHY"] }\n',
            ['"a" = ["|PHY', '"PH1", "|PHY'],
        ),
        (OTHERS + '[tool.phobos]\nignore = "PH1, PHY"\n', ["PH1, |PHY"]),
    ],
)
def test_an_unknown_rule_is_found_in_its_own_value(text: str, places: list[str]) -> None:
    found = [problem.span.start for problem in parse("pyproject.toml", text).problems]
    assert found == [text.rindex(place.replace("|", "")) + place.index("|") for place in places]


@pytest.mark.parametrize(
    "text",
    [
        '[tool.phobos]\nignore = ["PH2"]\n',
        '[ tool . "phobos" ]\nignore = ["PH2"]\n',
        '[tool]\nphobos = { ignore = ["PH2"] }\n',
        'tool.phobos.ignore = ["PH2"]\n',
    ],
)
def test_a_table_counts_however_it_is_written(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(text)
    assert of_file("k.ph").ignore == ("PH2",)


@pytest.mark.parametrize("text", ["[tool.phobosaurus]\nx = 1\n", "# [tool.phobos] stands above\n", ""])
def test_what_only_looks_like_one_hides_none_above(folder: Path, text: str) -> None:
    (folder / "phobos.toml").write_text('ignore = ["PH2"]\n')
    (folder / "sub").mkdir()
    (folder / "sub/pyproject.toml").write_text(text)
    assert of_file("sub/k.ph").ignore == ("PH2",)


def test_settings_that_are_shown_can_be_given_back(folder: Path) -> None:
    (folder / "again.toml").write_text(phobos("check", "--show-settings", "k.ph").stdout)
    read = parse("again.toml", (folder / "again.toml").read_text())
    assert (read.baseline, read.select, read.line_length) == (None, DEFAULT.select, DEFAULT.line_length)
    assert phobos("check", "--config", "again.toml", "k.ph").returncode == 0


@pytest.mark.parametrize("text", ["[" * 200_000, '{"version": 1, "files": {"k.ph": {"x": 1e400}}}', "[1]"])
def test_what_is_no_baseline_is_said_to_be_none(folder: Path, text: str) -> None:
    (folder / "b.json").write_text(text)
    done = phobos("check", "--baseline", "b.json", "k.ph")
    assert done.returncode == 2 and "b.json: not a baseline" in done.stderr


def test_where_values_stand() -> None:
    text = 'a = 1\n[b]\nc = [\n 1,\n 2 ]\nd = { e = """\n""" }\n'
    assert lines_of(text, ("a",)) == (1, 1)
    assert lines_of(text, ("b",)) == (2, 2)
    assert lines_of(text, ("b", "c")) == (3, 5)
    assert lines_of(text, ("b", "d", "e")) == (6, 7)
