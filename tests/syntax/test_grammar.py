"""`grammar.lark` describes whole files, and the parser, which reads them in pieces, agrees with it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from lark import Lark
from lark.exceptions import UnexpectedToken

from phobos.syntax import build, table, tree
from phobos.syntax.tokens import KEYWORDS, NAME, TERMINALS, tokenize
from tests.syntax.trees import files, nodes_of, problems, show, sketch

ROOT = Path(__file__).resolve().parents[2]


class _Whole:
    """Builds nodes for whole files as `parser.py` does for pieces, so that lark can be asked for a file at once."""

    def __getattr__(self, rule: str) -> Any:
        if rule not in build.RULES:
            raise AttributeError(rule)
        return lambda children: build.RULES[rule]([], *children)

    def file(self, children: list[Any]) -> list[Any]:
        found, attributes = [], []
        for child in children:
            match child:
                case tree.Attribute():
                    attributes.append(child)
                case tree.Kernel():
                    child.attributes = tuple(attributes)  # type: ignore[misc]
                    found.append(child)
                    attributes = []
                case tree.Function():
                    found.append(child)
        return found

    def kernel(self, children: list[Any]) -> tree.Kernel:
        header, block = children
        return tree.Kernel(0, 0, (), header.name, header.params, block)

    def function(self, children: list[Any]) -> tree.Function:
        header, block = children
        return tree.Function(0, 0, header.name, header.params, header.result, block)

    def block(self, children: list[Any]) -> tree.Block:
        return tree.Block(0, 0, tuple(s for c in children for s in _flat(c) if isinstance(s, tree.Node)))

    def for_(self, children: list[Any]) -> tree.For:
        h, block = children
        return tree.For(0, 0, h.variable, h.lo, h.hi, h.step, h.unroll, block)

    def while_(self, children: list[Any]) -> tree.While:
        return tree.While(0, 0, children[0].condition, children[1])

    def if_(self, children: list[Any]) -> tree.If:
        otherwise = children[3] if len(children) > 2 else None
        return tree.If(0, 0, children[0].condition, children[1], otherwise, None)


def _flat(child: Any) -> list[Any]:
    return child.children if hasattr(child, "children") else [child]


class _Token(tuple[int, int, str]):
    type: str


def at_once(lark: Lark, text: str) -> Any:
    """What lark makes of a whole text with our tokens; its error token's start when it makes nothing."""
    tokens = []
    kinds = tokenize(text)
    for kind, token in zip(kinds.kinds, kinds.list):
        tokens.append(_Token(token))
        tokens[-1].type = TERMINALS.get(kind, kind)
    state: Any = lark.parse_interactive(None, "file").parser_state
    end = _Token((len(text), len(text), ""))
    end.type = "$END"
    for token in tokens:
        state.feed_token(token)
    return state.feed_token(end, True)


@pytest.fixture(scope="module")
def lark() -> Lark:
    return table.build(["file"], _Whole())


@given(files)
@settings(max_examples=20)
def test_lark_reads_whole_files_as_the_parser_does(nodes: list[Any]) -> None:
    text = "\n".join(show(n) for n in nodes)
    assert [sketch(n) for n in at_once(_lark(), text)] == nodes_of(text)


@pytest.mark.parametrize(
    "text",
    ["kernel k() {\nx = \n}", "kernel k() {\nf(a\n, b)\n}", "kernel k()\n{ }",
     "kernel k() {\nif p { }\nelse { }\n}", "kernel k() {\nlet x = 1 let y = 2\n}", "@a", "x = 1", "kernel k() {",
     "kernel k() {\nf(a,)\n}", "kernel k() { } }",
     "kernel k() {\nx[]\n}", "fn f() -> { }", "kernel k(a: f32,) { }", "kernel k() {\nlet kernel = 1\n}"],
)  # fmt: skip
def test_what_the_grammar_refuses_the_parser_complains_of(lark: Lark, text: str) -> None:
    with pytest.raises(UnexpectedToken):
        at_once(lark, text)
    assert problems(text)


def _lark() -> Lark:
    if "whole" not in _kept:
        _kept["whole"] = table.build(["file"], _Whole())
    return _kept["whole"]


_kept: dict[str, Lark] = {}


def test_every_terminal_of_the_grammar_has_a_kind_and_every_rule_a_builder(lark: Lark) -> None:
    known = set(TERMINALS.values()) | {"COMMENT", "MISSING"}
    assert {t.name for t in lark.terminals if not t.name.startswith("__IGNORE")} <= known
    named = {r.alias or r.origin.name for r in table.build(table.STARTS).rules}
    built = {n for n in named if not n.startswith("_") and n not in _TRANSPARENT}
    assert built == set(build.RULES)


_TRANSPARENT = {
    "expr", "and_", "or_bits", "xor_bits", "and_bits", "equality", "order", "shift", "sum", "product", "postfix",
    "index", "literal", "simple", "type", "attribute_argument",
    "block", "statement", "for_", "while_", "if_",  # of whole files
}  # fmt: skip


def test_keywords_of_the_tokenizer_are_those_of_the_grammar(lark: Lark) -> None:
    for word, kind in KEYWORDS.items():
        terminal = next(t for t in lark.terminals if t.name == TERMINALS[kind])
        assert word in terminal.pattern.value
        assert tokenize(word).kinds[0] == kind != NAME


# --- what is kept between processes -----------------------------------------------------------------------------

TEXT = "".join(p.read_text(encoding="utf-8") for p in sorted((ROOT / "examples").glob("*.ph")))
PARSE = """
import sys
from pathlib import Path
from phobos.syntax import parse
print(parse(Path(sys.argv[1]).read_text(encoding="utf-8")).items, "lark" in sys.modules)
"""


@pytest.fixture
def parse(tmp_path: Path) -> Callable[[], tuple[str, bool]]:
    """Parse the examples in a process of its own: what it made of them, and whether it needed lark."""
    file = tmp_path / "text.ph"
    file.write_text(TEXT, encoding="utf-8")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def run() -> tuple[str, bool]:
        command = [sys.executable, "-c", PARSE, str(file)]
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        made, _, needed = done.stdout.strip().rpartition(" ")
        return made, needed == "True"

    return run


def kept(tmp_path: Path, kind: str) -> Path:
    (file,) = (tmp_path / "cache" / "phobos-tools").glob(f"*.{kind}")
    return file


def test_what_one_process_learnt_the_next_one_knows(tmp_path: Path, parse: Callable[[], tuple[str, bool]]) -> None:
    made, needed = parse()
    assert needed
    written = [kept(tmp_path, kind).stat().st_mtime_ns for kind in ("table", "shapes")]
    assert parse() == (made, False)
    kept(tmp_path, "shapes").unlink()
    assert parse() == (made, True)
    assert kept(tmp_path, "table").stat().st_mtime_ns == written[0]
    assert len(list((tmp_path / "cache" / "phobos-tools").iterdir())) == 2


@pytest.mark.parametrize("kind", ["table", "shapes"])
@pytest.mark.parametrize("content", ["half", "nonsense", "another version"])
def test_a_file_that_is_not_ours_to_read_is_made_anew(
    tmp_path: Path, parse: Callable[[], tuple[str, bool]], kind: str, content: str
) -> None:
    made, _ = parse()
    file = kept(tmp_path, kind)
    good = file.read_bytes()
    bad = {"half": good[: len(good) // 2], "nonsense": b"nonsense", "another version": good.replace(b"3.1", b"3.9", 1)}
    bad["another version"] = b"0" + good[1:] if kind == "table" else bad["another version"]
    file.write_bytes(bad[content])
    if kind == "table":
        kept(tmp_path, "shapes").unlink()
    assert parse() == (made, True)
    assert file.read_bytes() != bad[content]
    written = file.stat().st_mtime_ns
    assert parse() == (made, False)
    assert file.stat().st_mtime_ns == written


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
@pytest.mark.parametrize("kind", ["table", "shapes"])
def test_a_file_that_others_may_write_is_not_read(
    tmp_path: Path, parse: Callable[[], tuple[str, bool]], kind: str
) -> None:
    made, _ = parse()
    file = kept(tmp_path, kind)
    file.chmod(0o666)
    file.write_bytes(b"trap")
    if kind == "table":
        kept(tmp_path, "shapes").unlink()
    assert parse() == (made, True)
    assert file.read_bytes() == b"trap"


def test_no_place_to_keep_anything_is_no_reason_to_fail(tmp_path: Path, parse: Callable[[], tuple[str, bool]]) -> None:
    (tmp_path / "cache").write_text("a file")
    made, needed = parse()
    assert needed and "Kernel" in made


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere platformdirs is asked")
@pytest.mark.parametrize("value", [None, "", " ", "/tmp/of mine", "relative"])
def test_the_folder_is_that_of_platformdirs(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    from platformdirs import user_cache_dir

    from phobos.syntax.memory import cache_folder

    if value is None:
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert cache_folder() == user_cache_dir("phobos-tools", appauthor=False)


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from phobos.syntax import memory

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full)
    memory.replace_file(str(tmp_path / "kept"), b"content")
    assert list(tmp_path.iterdir()) == []


def test_what_is_new_joins_what_is_kept(tmp_path: Path, parse: Callable[[], tuple[str, bool]]) -> None:
    parse()
    before = len(kept(tmp_path, "shapes").read_bytes())
    (tmp_path / "text.ph").write_text("kernel k() {\n  let only_here = ((((1))))\n}\n", encoding="utf-8")
    assert parse()[1]
    assert len(kept(tmp_path, "shapes").read_bytes()) > before
    (tmp_path / "text.ph").write_text(TEXT, encoding="utf-8")
    assert not parse()[1]
