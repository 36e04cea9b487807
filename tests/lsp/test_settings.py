"""Configuration files, client settings, commands and lenses: what is asked for, and what is done about it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phobos.check import baseline, findings
from phobos.codegen import nvrtc
from phobos.lsp.uris import key_of, path_of, uri_of
from tests.lsp.editors import plain
from tests.lsp.test_behaviour import GOOD, HANG, PUBLISH, URI, at, codes
from tests.lsp.wire import ServerError, Wire

Start = Callable[..., Wire]
PROGRAM_ID = "kernel k(X: tensor<f32>[N]) {\n  let p = program_id(0)\n  X[p] = 1.0\n}\n"
STAGED = (Path(__file__).parents[2] / "examples" / "staged.ph").read_text(encoding="utf-8")


def answers(settings: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
    replies: dict[str, Any] = {"workspace/configuration": [settings], "window/showDocument": {"success": True}}
    return lambda request: replies.get(request["method"])


def vscode(wire: Wire, settings: dict[str, Any], folder: Path | None = None) -> None:
    """A client with everything, whose user has set `settings`."""
    wire.answer = answers(settings)
    wire.start(plain("vscode"), folders=[folder.as_uri()] if folder else [])
    while not any(r["method"] == "workspace/configuration" for r in wire.requests):
        wire._next()
    wire.at("hover", URI, 0, 0)  # the answer to it has been read


def change(wire: Wire, settings: dict[str, Any]) -> None:
    before = sum(r["method"] == "workspace/configuration" for r in wire.requests)
    wire.answer = answers(settings)
    wire.notify("workspace/didChangeConfiguration", {"settings": None})
    while sum(r["method"] == "workspace/configuration" for r in wire.requests) == before:
        wire._next()
    wire.at("hover", URI, 0, 0)


def wait_for_request(wire: Wire, method: str, seen: int = 0) -> None:
    while sum(r["method"] == method for r in wire.requests) <= seen:
        wire._next()


# --- configuration files ----------------------------------------------------------------------------------


def test_a_changed_configuration_is_noticed_without_watching(start: Start, tmp_path: Path) -> None:
    uri = (tmp_path / "a.ph").as_uri()
    wire = start()
    wire.start(folders=[tmp_path.as_uri()])
    wire.open(uri, PROGRAM_ID)
    assert "PH601" in codes(wire.wait_for(PUBLISH)["diagnostics"])
    (tmp_path / "phobos.toml").write_text('ignore = ["PH601"]\n')
    wire.at("hover", uri, 0, 0)  # which reads the new configuration, and must not keep it for itself
    assert "PH601" not in codes(wire.wait_for(PUBLISH)["diagnostics"])  # nobody edited, nobody told
    (tmp_path / "phobos.toml").unlink()
    assert "PH601" in codes(wire.wait_for(PUBLISH)["diagnostics"])


def test_a_watching_client_is_asked_to_pull_again(start: Start, tmp_path: Path) -> None:
    uri = (tmp_path / "a.ph").as_uri()
    wire = start()
    vscode(wire, {}, tmp_path)
    wait_for_request(wire, "client/registerCapability")
    watched = next(r for r in wire.requests if r["method"] == "client/registerCapability")["params"]["registrations"][0]
    assert any("phobos.toml" in w["globPattern"] for w in watched["registerOptions"]["watchers"])
    wire.open(uri, PROGRAM_ID)
    first = wire.about("diagnostic", uri)
    (tmp_path / "phobos.toml").write_text('ignore = ["PH601"]\n')
    config = (tmp_path / "phobos.toml").as_uri()
    wire.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": config, "type": 1}]})
    wait_for_request(wire, "workspace/diagnostic/refresh")
    second = wire.about("diagnostic", uri, previousResultId=first["resultId"])
    assert second["kind"] == "full" and "PH601" in codes(first["items"]) and "PH601" not in codes(second["items"])


LOOKS_OFTEN = "import phobos.lsp.publishing as publishing\npublishing.WATCH_SECONDS = 0.05"


def test_a_configuration_above_the_folder_is_noticed_though_the_client_watches(start: Start, tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    uri = (tmp_path / "kernels" / "a.ph").as_uri()
    wire = start(prelude=LOOKS_OFTEN)
    vscode(wire, {}, tmp_path / "kernels")
    wire.open(uri, PROGRAM_ID)
    assert "PH601" in codes(wire.about("diagnostic", uri)["items"])
    before = sum(r["method"] == "workspace/diagnostic/refresh" for r in wire.requests)
    (tmp_path / "phobos.toml").write_text('ignore = ["PH601"]\n')
    wait_for_request(wire, "workspace/diagnostic/refresh", before)
    assert "PH601" not in codes(wire.about("diagnostic", uri)["items"])


def test_a_baseline_that_is_written_anew_is_noticed(start: Start, tmp_path: Path) -> None:
    path, known = tmp_path / "a.ph", tmp_path / "known.json"
    (tmp_path / "phobos.toml").write_text('baseline = "known.json"\n')
    known.write_text(baseline.dump(str(known), []))
    wire = start(prelude=LOOKS_OFTEN)
    wire.start(folders=[tmp_path.as_uri()])
    wire.open(path.as_uri(), PROGRAM_ID)
    assert "PH601" in codes(wire.wait_for(PUBLISH)["diagnostics"])
    known.write_text(baseline.dump(str(known), [(str(path), PROGRAM_ID, findings(str(path), PROGRAM_ID))]))
    assert wire.wait_for(PUBLISH)["diagnostics"] == []
    known.unlink()
    wire.wait_for("window/showMessage", lambda p: "cannot read the baseline" in p["message"])
    assert "PH601" in codes(wire.wait_for(PUBLISH, lambda p: p["uri"] == path.as_uri())["diagnostics"])


def test_a_bad_configuration_is_said_once_and_stands_in_its_file(start: Start, tmp_path: Path) -> None:
    config = tmp_path / "phobos.toml"
    config.write_text('ignore = ["PH112"]\nseverty = "error"\n')
    wire = start()
    wire.start(folders=[tmp_path.as_uri()])
    uri = (tmp_path / "a.ph").as_uri()
    wire.open(uri, HANG)
    assert "phobos.toml:2" in wire.wait_for("window/showMessage")["message"]
    stands = wire.wait_for(PUBLISH, lambda p: p["uri"] == config.as_uri())["diagnostics"]
    assert stands[0]["range"]["start"] == at(1, 0) and "did you mean `severity`" in stands[0]["message"]
    assert "PH203" in codes(wire.wait_for(PUBLISH, lambda p: p["uri"] == uri)["diagnostics"])
    wire.change(uri, 2, {"text": HANG + "\n"})
    wire.wait_for(PUBLISH, lambda p: p["uri"] == uri)
    assert not [n for n in wire.notifications if n["method"] == "window/showMessage"]
    config.write_text("")
    assert wire.wait_for(PUBLISH, lambda p: p["uri"] == config.as_uri())["diagnostics"] == []


# --- client settings --------------------------------------------------------------------------------------


def test_a_setting_that_is_something_else_is_said_and_ignored(start: Start) -> None:
    wire = start()
    wire.start(options={"codeLens": {"enable": "yes"}, "debounceMs": True, "cards": "h200"})
    said = [wire.wait_for("window/showMessage")["message"] for _ in range(3)]
    assert sorted(m.split("`")[1] for m in said) == ["phobos.cards", "phobos.codeLens.enable", "phobos.debounceMs"]
    wire.open(URI, GOOD)
    assert wire.about("codeLens", URI)


def test_hints_and_lenses_can_be_switched(start: Start) -> None:
    whole = {"start": at(0, 0), "end": at(99, 0)}
    text = "kernel k(X: tensor<f32>[N]) {\n  let p = ctx.block.x\n  X[p] = 1.0\n}\n"
    wire = start()
    vscode(wire, {})
    wire.open(URI, text)
    assert [h["label"] for h in wire.about("inlayHint", URI, range=whole)] == ["≠", ": index"]
    change(wire, {"inlayHints": {"types": False}})
    assert [h["label"] for h in wire.about("inlayHint", URI, range=whole)] == ["≠"]
    change(wire, {"inlayHints": {"types": False, "blockVarying": False}, "codeLens": {"enable": False}})
    assert not wire.about("inlayHint", URI, range=whole)
    assert not wire.about("codeLens", URI)
    assert any(r["method"] == "workspace/inlayHint/refresh" for r in wire.requests)


@pytest.mark.parametrize("how", ["{}", "elsewhere.toml"])
def test_a_configuration_that_the_user_names_is_used_for_every_file(start: Start, tmp_path: Path, how: str) -> None:
    named = tmp_path / "elsewhere.toml"
    named.write_text('ignore = ["PH601"]\n')
    wire = start()
    wire.start(options={"configuration": how.format(named)}, folders=[tmp_path.as_uri()])
    wire.open(URI, PROGRAM_ID)
    assert "PH601" not in codes(wire.wait_for(PUBLISH)["diagnostics"])


def test_settings_pushed_by_a_client_that_cannot_be_asked(start: Start) -> None:
    wire = start()
    wire.start(plain("emacs") | {"workspace": {}})
    wire.open(URI, GOOD)
    assert wire.about("codeLens", URI)
    wire.notify("workspace/didChangeConfiguration", {"settings": {"phobos": {"codeLens": {"enable": False}}}})
    assert not wire.about("codeLens", URI)


# --- commands ---------------------------------------------------------------------------------------------


def run(wire: Wire, command: str, *arguments: Any) -> Any:
    return wire.request("workspace/executeCommand", {"command": command, "arguments": list(arguments)})


def test_choosing_cards_changes_lenses_and_findings(start: Start) -> None:
    wire = start()
    vscode(wire, {"nvrtc": {"enable": False}})
    wire.open(URI, STAGED)
    known = run(wire, "phobos.chooseCards")
    assert {"h200", "a100"} <= set(known["known"]) and known["chosen"] == []
    first = wire.about("diagnostic", URI)
    assert run(wire, "phobos.chooseCards", ["a100", "t4"])["chosen"] == ["a100", "t4"]
    titles = [lens["command"]["title"] for lens in wire.about("codeLens", URI)]
    assert titles[0].startswith("a100: ") and titles[1].startswith("t4: ") and "estimate" in titles[0]
    assert wire.about("diagnostic", URI, previousResultId=first["resultId"])["kind"] == "full"
    with pytest.raises(ServerError, match="no such card: voodoo2"):
        run(wire, "phobos.chooseCards", "voodoo2")


def test_explaining_a_rule_opens_its_page(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    wire = start()
    vscode(wire, {})
    page = run(wire, "phobos.explainRule", "barrier-in-divergent-control-flow")
    assert page["code"] == "PH203" and "## Why it is bad" in page["markdown"]
    wait_for_request(wire, "window/showDocument")
    shown = next(r for r in wire.requests if r["method"] == "window/showDocument")["params"]["uri"]
    assert shown.endswith("PH203.md") and page["markdown"] in Path(shown.removeprefix("file://")).read_text()
    with pytest.raises(ServerError, match="no rule is called"):
        run(wire, "phobos.explainRule", "PH999")


def test_running_a_kernel_as_its_header_says(start: Start) -> None:
    wire = start()
    vscode(wire, {})
    text = "// run: kernel=k N=16 X=zeros device=cpu\n// expect: X[3] = 2.0\n" + (
        "kernel k(X: tensor<f32>[N]) {\n  for i in range(0, N) {\n    X[i] = 2.0\n  }\n}\n"
    )
    wire.open("untitled:Untitled-1", text)
    done = run(wire, "phobos.runKernel", "untitled:Untitled-1", "k")
    assert done["exitCode"] == 0, done["output"]
    wire.change("untitled:Untitled-1", 2, {"text": text.replace("X[i] = 2.0", "X[i + 1] = 2.0")})
    stopped = run(wire, "phobos.runKernel", "untitled:Untitled-1", "k")["output"]
    assert "--> untitled:Untitled-1:5:" in stopped and "/phobos-" not in stopped, "of the document, not of a copy of it"
    wire.change("untitled:Untitled-1", 3, {"text": text.replace("= 2.0\nkernel", "= 3.0\nkernel")})
    assert run(wire, "phobos.runKernel", "untitled:Untitled-1", "k")["exitCode"] == 1
    ended = [n for n in wire.notifications if n["method"] == "$/progress" and n["params"]["value"]["kind"] == "end"]
    assert len(ended) == 3


def test_a_hang_can_be_seen(start: Start) -> None:
    wire = start()
    vscode(wire, {})
    hang = (Path(__file__).parents[2] / "examples" / "hang.ph").read_text(encoding="utf-8")
    wire.open(URI, hang)
    place = hang.index("grid_barrier(BAR)\n")
    line = hang.count("\n", 0, place)
    found = wire.about(
        "codeAction", URI, range={"start": at(line, 4), "end": at(line, 4)}, context={"diagnostics": []}
    )
    action = next(a for a in found if "happen" in a["title"])
    done = run(wire, action["command"]["command"], *action["command"]["arguments"])
    assert "deadlock" in done["output"]


def test_what_an_untrusted_workspace_may_not_do(start: Start) -> None:
    wire = start()
    vscode(wire, {"run": {"enable": False}, "nvrtc": {"enable": False}})
    wire.open(URI, HANG)
    with pytest.raises(ServerError, match="running kernels is switched off"):
        run(wire, "phobos.runKernel", URI, "leader")
    with pytest.raises(ServerError, match="compiling is switched off"):
        run(wire, "phobos.showCuda", URI, "leader")
    assert "PH203" in codes(wire.about("diagnostic", URI)["items"])


def test_showing_what_a_kernel_compiles_to(start: Start) -> None:
    wire = start()
    vscode(wire, {})
    wire.open(URI, STAGED)
    shown = run(wire, "phobos.showCuda", URI, "staged")["text"]
    assert "__global__" in shown and f'"{path_of(URI)}"' in shown, "unsaved as it is, `#line` names its own file"
    assert '"kernel": "staged"' in run(wire, "phobos.showFacts", URI, "staged")["text"]
    with pytest.raises(ServerError, match="nosuch"):
        run(wire, "phobos.showCuda", URI, "nosuch")
    with pytest.raises(ServerError, match="no such document"):
        run(wire, "phobos.showCuda", "file:///nowhere.ph", "staged")


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b.ph", "/a/b.ph"),
        ("FILE://LocalHost/a/b.ph", "/a/b.ph"),
        ("file://server/share/b.ph", "//server/share/b.ph"),
        ("file:///a/%62.ph", "/a/b.ph"),
        ("file:///a%00b.ph", None),
        ("untitled:Untitled-1", None),
        ("file://[a/b.ph", None),
        ("file://", None),
    ],
)
def test_the_file_that_a_uri_names(uri: str, path: str | None) -> None:
    assert path_of(uri) == path


def test_a_file_name_that_is_no_text_has_a_uri_of_its_own() -> None:
    path = os.fsdecode(b"/work/by\xffte.ph")
    assert uri_of(path) == "file:///work/by%FFte.ph" and path_of(uri_of(path)) == path
    assert key_of("file:///work/by%FFte.ph") != key_of("file:///work/by%FEte.ph")


def test_restarting_keeps_the_documents(start: Start) -> None:
    wire = start()
    vscode(wire, {})
    wire.open(URI, GOOD)
    wire.change(URI, 2, {"text": HANG})
    assert run(wire, "phobos.restart") is None
    assert "PH203" in codes(wire.about("diagnostic", URI)["items"])


def test_an_unknown_command_and_wrong_arguments(start: Start) -> None:
    wire = start()
    wire.start()
    with pytest.raises(ServerError, match="-32602"):
        run(wire, "phobos.teleport")
    with pytest.raises(ServerError, match="-32602"):
        run(wire, "phobos.showCuda", URI)


@pytest.mark.parametrize("how", ["button", "request"])
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to see the process")
def test_cancelling_a_run_ends_its_process(start: Start, how: str) -> None:
    wire = start()
    vscode(wire, {})
    text = "// run: kernel=k N=4000000 X=zeros device=cpu\n" + (
        "kernel k(X: tensor<f32>[N]) {\n  for i in range(0, N) {\n    X[i] = X[i] + 2.0\n  }\n}\n"
    )
    wire.open("untitled:Untitled-2", text)
    number = wire.ask(
        "workspace/executeCommand", {"command": "phobos.runKernel", "arguments": ["untitled:Untitled-2", "k"]}
    )
    begun = wire.wait_for("$/progress", lambda p: p["value"]["kind"] == "begin")
    if how == "button":
        wire.notify("window/workDoneProgress/cancel", {"token": begun["token"]})
    else:
        wire.notify("$/cancelRequest", {"id": number})
    with pytest.raises(ServerError, match="-32800"):
        wire.reply(number)
    wire.wait_for("$/progress", lambda p: p["value"]["kind"] == "end")
    children = Path(f"/proc/{wire.process.pid}/task/{wire.process.pid}/children")
    deadline = time.monotonic() + 10
    while children.read_text().strip():
        assert time.monotonic() < deadline, "the run goes on"
        time.sleep(0.02)


# --- lenses -----------------------------------------------------------------------------------------------


@pytest.mark.skipif(nvrtc.location() is None, reason="needs NVRTC (extra `nvrtc`)")
def test_a_lens_tells_an_estimate_and_then_what_the_compiler_says(start: Start) -> None:
    wire = start()
    vscode(wire, {"cards": ["h200"]})
    wire.open(URI, STAGED)
    first = wire.about("codeLens", URI)[0]["command"]["title"]
    assert "estimate" in first
    asked = sum(r["method"] == "workspace/codeLens/refresh" for r in wire.requests)
    wait_for_request(wire, "workspace/codeLens/refresh", asked)
    second = wire.about("codeLens", URI)[0]["command"]["title"]
    assert "registers" in second and "estimate" not in second
    wire.change(URI, 2, {"text": STAGED + "\n"})
    assert "estimate" in wire.about("codeLens", URI)[0]["command"]["title"]  # of another text nothing is known yet


# --- proofs -----------------------------------------------------------------------------------------------


def test_proofs_come_after_saving_and_go_with_the_next_edit(start: Start) -> None:
    hang = (Path(__file__).parents[2] / "examples" / "hang.ph").read_text(encoding="utf-8")
    wire = start()
    wire.start(options={"proveOnSave": True})
    wire.open(URI, hang)
    plainly = wire.wait_for(PUBLISH)["diagnostics"]
    wire.notify("textDocument/didSave", {"textDocument": {"uri": URI}})
    proved = wire.wait_for(PUBLISH)["diagnostics"]
    assert codes(proved) == codes(plainly)
    assert [d["range"] for d in proved] == [d["range"] for d in plainly]
    longer = next(d["message"] for d in proved if d["code"] == "PH205")
    assert len(longer) > len(next(d["message"] for d in plainly if d["code"] == "PH205"))
    wire.change(URI, 2, {"text": hang + "\n"})
    assert [d["message"] for d in wire.wait_for(PUBLISH)["diagnostics"]] == [d["message"] for d in plainly]
