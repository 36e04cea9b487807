"""`phobos check --output-format json`, `check.findings` and what each client receives are the same, in every case.

Cases are the examples, the manual's bad and good code, and texts that exercise places and notes, under nested
configurations, outside of the workspace, and unsaved.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phobos.check import registry
from phobos.cli import main as phobos
from phobos.syntax.lines import LineIndex
from tests.lsp.editors import EDITORS, ENCODINGS, plain
from tests.lsp.wire import Wire

ROOT = Path(__file__).resolve().parents[2]
SEVERITY = {"error": 1, "warning": 2, "info": 4}

ODD = """\
// 𝛼 before everything
@persistent
kernel größe(X: tensor<f32>[N], BAR: tensor<i32>[2]) { // 𝛼
  let 𝛽 = 1; let p = ctx.block.x; if p == 0 { grid_barrier(BAR) }
  X[0 :+ 8] = 1.0 +
}
"""


def _texts() -> dict[str, str]:
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").glob("*.ph"))}
    for code in registry.stems():
        manual = registry.manual(code)
        for kind, examples in (("bad", manual.bad), ("good", manual.good)):
            for number, text in enumerate(examples):
                texts[f"{code}-{kind}-{number}.ph"] = text
    texts["odd.ph"] = ODD
    texts["crlf.ph"] = ODD.replace("\n", "\r\n")
    texts["empty.ph"] = ""
    return texts


TEXTS = _texts()
NESTED = {  # directory: configuration file, its contents
    "": ("phobos.toml", 'severity = "info"\nignore = ["PH112"]\n'),
    "strict": ("phobos.toml", 'severity = "warning"\n'),
    "errors": ("pyproject.toml", '[tool.phobos]\nseverity = "error"\n'),
    "narrow": ("phobos.toml", 'select = ["PH2"]\n[per-file-ignores]\n"*-bad-0.ph" = ["PH203"]\n'),
    "plain": (".keep", ""),
}


def checked(path: Path, text: str | None = None) -> list[dict[str, Any]]:
    """What the command says; with `text` as if the file held it."""
    out = io.StringIO()
    arguments = ["check", "--output-format", "json"]
    if text is None:
        arguments.append(str(path))
    else:
        arguments += ["--stdin-filename", str(path), "-"]
    stdin = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO((text or "").encode()), encoding="utf-8", newline="")
    try:
        with contextlib.redirect_stdout(out):
            assert phobos(arguments) in (0, 1)
    finally:
        sys.stdin = stdin
    found = json.loads(out.getvalue())
    assert isinstance(found, list)
    return found


def as_received(found: list[dict[str, Any]], text: str, encoding: str) -> list[tuple[object, ...]]:
    """The command's findings as a client of that encoding must receive them."""
    lines = LineIndex(text)

    def place(at: dict[str, Any]) -> tuple[tuple[int, int], ...]:
        offsets = (lines.offset(at[k]["row"] - 1, at[k]["column"] - 1) for k in ("location", "end_location"))
        return tuple(lines.position(offset, encoding) for offset in offsets)  # type: ignore[arg-type]

    def chain(one: dict[str, Any]) -> tuple[object, ...]:
        return tuple((place(r), r["message"]) for r in one["related"])

    return sorted((place(f), f["code"], SEVERITY[f["severity"]], f["message"], chain(f)) for f in found)


def received(diagnostics: list[dict[str, Any]], related: bool) -> list[tuple[object, ...]]:
    def place(range: dict[str, Any]) -> tuple[tuple[int, int], ...]:
        return tuple((range[k]["line"], range[k]["character"]) for k in ("start", "end"))

    found = []
    for d in diagnostics:
        chain = tuple((place(r["location"]["range"]), r["message"]) for r in d.get("relatedInformation") or ())
        found.append((place(d["range"]), d["code"], d["severity"], d["message"].split("\n")[0], chain))
        assert related or not chain
    return sorted(found)


class Client:
    def __init__(self, start: Callable[..., Wire], editor: str, folder: Path) -> None:
        self.editor = editor
        self.encoding = ENCODINGS[editor]
        self.wire = start()
        settings = {"workspaceDiagnostics": False}  # what is asked about is opened
        self.wire.answer = lambda request: [settings] if request["method"] == "workspace/configuration" else None
        capabilities = plain(editor)
        self.wire.start(capabilities, settings, folders=[folder.as_uri()])
        self.pulls = "diagnostic" in capabilities["textDocument"]
        self.related = bool(capabilities["textDocument"]["publishDiagnostics"].get("relatedInformation"))

    def findings(self, uri: str) -> list[dict[str, Any]]:
        if self.pulls:
            found = self.wire.about("diagnostic", uri)["items"]
        else:
            found = self.wire.wait_for("textDocument/publishDiagnostics", lambda p: p["uri"] == uri)["diagnostics"]
        assert isinstance(found, list)
        return found

    def compare(self, path: Path, text: str, told: list[dict[str, Any]]) -> None:
        got = received(self.findings(path.as_uri()), self.related)
        expected = as_received(told, text, self.encoding)
        if not self.related:  # the chain is in the message, see `test_behaviour.py`
            expected = [(*one[:4], ()) for one in expected]
        assert got == expected, path


@pytest.mark.parametrize("editor", EDITORS)
def test_every_case_in_every_encoding(start: Callable[..., Wire], tmp_path: Path, editor: str) -> None:
    client = Client(start, editor, tmp_path)
    (tmp_path / "phobos.toml").write_text("")
    seen = set()
    for name, text in TEXTS.items():
        path = tmp_path / name
        path.write_bytes(text.encode())
        told = checked(path)
        seen |= {found["code"] for found in told}
        client.wire.open(path.as_uri(), text)
        client.compare(path, text, told)
        client.wire.notify("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}})
        if not client.pulls:
            client.wire.wait_for("textDocument/publishDiagnostics", lambda p: not p["diagnostics"])
    assert len(seen) > 40, "the cases show too few rules"


@pytest.mark.parametrize("editor", EDITORS)
def test_nested_configurations_a_file_outside_and_unsaved_text(
    start: Callable[..., Wire], tmp_path: Path, editor: str
) -> None:
    root, outside = tmp_path / "workspace", tmp_path / "elsewhere" / "strict"
    outside.mkdir(parents=True)
    (outside / "phobos.toml").write_text('severity = "warning"\nextend-select = []\nignore = ["PH2"]\n')
    names = [n for n in ("hang.ph", "odd.ph", "PH203-bad-0.ph", "PH601-bad-0.ph") if n in TEXTS]
    assert len(names) >= 3
    places = [outside]
    for directory, (file, contents) in NESTED.items():
        folder = root / directory
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(contents)
        places += [folder, folder / "deeper"] if directory else [folder]
        (folder / "deeper").mkdir(exist_ok=True)
    client = Client(start, editor, root)
    shown = set()
    for folder in places:
        for name in names:
            path = folder / name
            path.write_text("kernel saved() {\n}\n")  # what is on disk is not what is asked about
            text = TEXTS[name] + "\n// not saved\n"
            told = checked(path, text)
            shown.add(json.dumps([f["code"] for f in told]))
            client.wire.open(path.as_uri(), text)
            client.compare(path, text, told)
    assert len(shown) > len(names), "the configurations make no difference"


def test_a_baseline_is_kept_to(start: Callable[..., Wire], tmp_path: Path) -> None:
    path = tmp_path / "hang.ph"
    path.write_text(TEXTS["hang.ph"])
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        phobos(["check", "--severity", "info", "--write-baseline", str(tmp_path / "known.json"), str(path)])
    assert checked(path)
    (tmp_path / "phobos.toml").write_text('baseline = "known.json"\n')
    from phobos.check import configuration

    configuration.forget()
    client = Client(start, "vscode", tmp_path)
    client.wire.open(path.as_uri(), TEXTS["hang.ph"])
    client.compare(path, TEXTS["hang.ph"], checked(path))
    assert client.findings(path.as_uri()) == []


# --- files that are not open ---------------------------------------------------------------------------------

QUICK = "import phobos.lsp.sweeping as sweeping\nsweeping.SOON_SECONDS = 0.05"
PUBLISH = "textDocument/publishDiagnostics"


@pytest.mark.parametrize("editor", EDITORS)
@pytest.mark.parametrize("pulls", [True, False])
def test_files_that_are_not_open(start: Callable[..., Wire], tmp_path: Path, editor: str, pulls: bool) -> None:
    """Every editor, as it is and as it was before it could pull: the findings of the command, cleared as they go."""
    capabilities = plain(editor)
    if not pulls:
        capabilities["textDocument"].pop("diagnostic", None)
    elif "diagnostic" not in capabilities["textDocument"]:
        return  # that editor is in the other half
    encoding = ENCODINGS[editor]
    related = bool(capabilities["textDocument"]["publishDiagnostics"].get("relatedInformation"))
    texts: dict[Path, str] = {}
    for directory, (file, contents) in NESTED.items():
        (tmp_path / directory).mkdir(exist_ok=True)
        (tmp_path / directory / file).write_text(contents)
        for name in ("hang.ph", "odd.ph", "empty.ph"):
            path = tmp_path / directory / name
            path.write_text(TEXTS[name], encoding="utf-8")
            texts[path] = TEXTS[name]
    told = {path: checked(path) for path in texts}
    assert any(told.values()) and not all(told.values())

    def expected(path: Path) -> list[tuple[object, ...]]:
        found = as_received(told[path], texts[path], encoding)
        return found if related else [(*one[:4], ()) for one in found]

    wire = start(prelude=QUICK)
    wire.answer = lambda request: [{}] if request["method"] == "workspace/configuration" else None
    wire.start(capabilities, folders=[tmp_path.as_uri()])
    if pulls:
        items = wire.request("workspace/diagnostic", {"previousResultIds": []})["items"]
        assert {item["uri"] for item in items} == {path.as_uri() for path in texts}
        for path in texts:
            (found,) = (item["items"] for item in items if item["uri"] == path.as_uri())
            assert received(found, related) == expected(path), path
        return

    def published(path: Path) -> list[dict[str, Any]]:
        found = wire.wait_for(PUBLISH, lambda p: p["uri"] == path.as_uri())["diagnostics"]
        assert isinstance(found, list)
        return found

    for path in texts:
        if told[path]:
            assert received(published(path), related) == expected(path), path
    fixed, deleted, opened = tmp_path / "hang.ph", tmp_path / "plain" / "odd.ph", tmp_path / "plain" / "hang.ph"
    fixed.write_text("")
    deleted.unlink()
    wire.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": fixed.as_uri(), "type": 2}]})
    assert published(fixed) == [] and published(deleted) == []
    wire.open(opened.as_uri(), "")
    assert published(opened) == []  # the text in the editor counts
    wire.notify("textDocument/didClose", {"textDocument": {"uri": opened.as_uri()}})
    assert published(opened) == []
    assert received(published(opened), related) == expected(opened)  # and now the one on disk
    assert not [n for n in wire.notifications if n["method"] == PUBLISH], "something was said twice, or of nothing"
