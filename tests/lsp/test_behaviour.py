"""What a user relies on unawares: any order of messages, any text, a crash that costs one answer, a clean end."""

from __future__ import annotations

import os
import pty
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.editors import plain
from tests.lsp.wire import ServerError, Wire

Start = Callable[..., Wire]
URI = "file:///code/x/test.ph"
HANG = """\
@persistent
kernel leader(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let p = ctx.block.x
  if p == 0 {
    grid_barrier(BAR)
  }
  X[0 :+ 8] = 1.0
}
"""
GOOD = "kernel k(X: tensor<f32>[N]) {\n  let abc = 1\n  X[abc] = 2.0\n}\n"
PUBLISH = "textDocument/publishDiagnostics"


def at(line: int, character: int) -> dict[str, int]:
    return {"line": line, "character": character}


def codes(diagnostics: list[dict[str, Any]]) -> list[str]:
    return sorted(d["code"] for d in diagnostics)


# --- order of messages ------------------------------------------------------------------------------------


def test_a_request_before_initialize_is_refused(start: Start) -> None:
    wire = start()
    with pytest.raises(ServerError, match="-32002"):
        wire.at("hover", URI, 0, 0)
    wire.start()
    assert wire.at("hover", URI, 0, 0) is None


def test_a_second_initialize_is_refused(start: Start) -> None:
    wire = start()
    wire.start()
    with pytest.raises(ServerError, match="-32600"):
        wire.start()


def test_a_request_after_shutdown_is_refused_and_exit_ends_in_order(start: Start) -> None:
    wire = start()
    wire.start()
    wire.request("shutdown")
    with pytest.raises(ServerError, match="-32600"):
        wire.at("hover", URI, 0, 0)
    wire.notify("exit")
    assert wire.process.wait(10) == 0


def test_exit_without_shutdown_ends_with_1(start: Start) -> None:
    wire = start()
    wire.start()
    wire.notify("exit")
    assert wire.process.wait(10) == 1


@pytest.mark.parametrize("last", [b"", b"Content-Le", b"Content-Length: 400\r\n\r\n{"])
def test_the_server_ends_when_the_editor_is_gone(start: Start, last: bytes) -> None:
    wire = start()
    wire.start()
    assert wire.process.stdin is not None
    wire.process.stdin.write(last)  # gone in the middle of a message, perhaps
    wire.process.stdin.close()
    assert wire.process.wait(10) == 1
    assert "Traceback" not in wire.errors


def test_changes_closes_and_saves_of_what_was_never_opened(start: Start) -> None:
    wire = start()
    wire.start()
    wire.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    wire.notify("textDocument/didSave", {"textDocument": {"uri": URI}})
    wire.change(URI, 2, {"text": GOOD})
    assert "let abc" in str(wire.at("hover", URI, 1, 7))
    wire.open(URI, "kernel other(Y: tensor<f32>[M]) {\n}\n")  # opened after all, with another text
    assert "kernel other" in str(wire.at("hover", URI, 0, 8))
    wire.open(URI, GOOD)  # and once more
    assert "let abc" in str(wire.at("hover", URI, 1, 7))
    wire.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    wire.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    assert wire.at("hover", URI, 1, 7) is None


def test_answers_are_of_the_newest_text(start: Start) -> None:
    wire = start()
    wire.start()
    wire.open(URI, GOOD)
    for number in range(20):
        name = f"abc{number}"
        wire.change(URI, number + 2, {"text": GOOD.replace("abc", name)})
        assert f"let {name}: index" in str(wire.at("hover", URI, 1, 7))


# --- messages that are wrong ------------------------------------------------------------------------------


def test_parameters_that_cannot_be_understood_are_answered(start: Start) -> None:
    wire = start()
    wire.start()
    with pytest.raises(ServerError, match="-32602"):
        wire.request("textDocument/hover", {"textDocument": 3, "position": []})
    with pytest.raises(ServerError, match="-32602"):
        wire.request("textDocument/definition", None)
    assert wire.at("hover", URI, 0, 0) is None


def test_an_unknown_method_is_answered(start: Start) -> None:
    wire = start()
    wire.start()
    with pytest.raises(ServerError, match="-32601"):
        wire.request("textDocument/teleport", {})
    wire.notify("$/whatever", {})
    assert wire.at("hover", URI, 0, 0) is None


def test_garbage_on_the_wire_is_survived(start: Start) -> None:
    wire = start()
    wire.start()
    for garbage in (b"{", b"[]", b"null", b'"x"', b'{"jsonrpc": "2.0"}', b'{"jsonrpc": "1.0", "id": 1}', b"\xff\xfe"):
        wire.send(garbage)
    assert wire.at("hover", URI, 0, 0) is None


def test_a_reply_that_cannot_be_understood_keeps_nobody_waiting(start: Start) -> None:
    wire = start()
    wire.answer = lambda request: 7
    wire.start(plain("vscode"))
    wire.open(URI, GOOD)
    wire.wait_for_log("the client does not tell its settings")
    assert "let abc" in str(wire.at("hover", URI, 1, 7))


def test_a_late_reply_to_a_question_nobody_waits_for(start: Start) -> None:
    wire = start()
    wire.start()
    wire.send({"id": "never-asked", "result": None})
    wire.send({"id": "never-asked", "error": {"code": 1, "message": "no"}})
    assert wire.at("hover", URI, 0, 0) is None


# --- texts that are strange -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["", "\n", "\r\r\n", "\ufeff" + GOOD, "\0", "{" * 3000, "}" * 3000, "(" * 3000, "@" * 300, GOOD.replace("\n", "\r"),
     "kernel\u2028k(\u0085X\f: 𝛼", "// 𝛼\n" * 50 + GOOD, "kernel k(" + "X, " * 2000],
    ids=lambda text: repr(text[:12]),
)  # fmt: skip
def test_every_request_takes_any_text(start: Start, text: str) -> None:
    wire = start()
    wire.start(plain("vscode"))
    wire.open(URI, text)
    whole = {"start": at(0, 0), "end": at(10**6, 10**6)}
    for line, character in ((0, 0), (0, 5), (1, 2), (10**6, 10**6)):
        for method in ("hover", "definition", "typeDefinition", "documentHighlight", "completion", "signatureHelp"):
            wire.at(method, URI, line, character)
        wire.at("references", URI, line, character, context={"includeDeclaration": True})
        wire.at("prepareCallHierarchy", URI, line, character)
        wire.about("selectionRange", URI, positions=[at(line, character)])
        wire.at("onTypeFormatting", URI, line, character, ch="\n", options={"tabSize": 2, "insertSpaces": True})
    for method in ("documentSymbol", "foldingRange", "semanticTokens/full", "codeLens", "documentLink", "diagnostic"):
        wire.about(method, URI)
    wire.about("semanticTokens/range", URI, range=whole)
    wire.about("inlayHint", URI, range=whole)
    wire.about("codeAction", URI, range=whole, context={"diagnostics": []})
    wire.about("formatting", URI, options={"tabSize": 2, "insertSpaces": True})
    assert wire.stop() == 0


# --- a crash ----------------------------------------------------------------------------------------------

BROKEN = """
import phobos.lsp.requests.hover as request
def broken(document, offset):
    print("this must not reach the wire")
    raise RuntimeError("a defect of ours")
request.hover = broken
"""


BROKEN_CHECK = """
import phobos.lsp.checking as checking
def broken(*arguments):
    raise RuntimeError("a defect of the rules")
checking.check_module = broken
"""


def test_a_crash_costs_one_answer(start: Start) -> None:
    wire = start(prelude=BROKEN)
    wire.start()
    wire.open(URI, GOOD)
    with pytest.raises(ServerError, match="a defect of ours"):
        wire.at("hover", URI, 1, 7)
    assert wire.at("definition", URI, 2, 5)["range"]["start"] == at(1, 6)
    assert wire.stop() == 0
    wire.wait_for_log("a defect of ours")
    wire.wait_for_log("this must not reach the wire")
    assert not [n for n in wire.notifications if n["method"] == "window/showMessage"]


def test_a_crash_of_the_check_leaves_the_server_alive(start: Start) -> None:
    wire = start(prelude=BROKEN_CHECK)
    wire.start()
    wire.open(URI, GOOD)
    wire.wait_for_log("a defect of the rules")
    assert "let abc" in str(wire.at("hover", URI, 1, 7))
    assert wire.stop() == 0


TOLD = """
import sys
from phobos.lsp.requests import lifecycle
from phobos.syntax import pieces
lifecycle.PREPARE_SECONDS = 0
prepare = pieces.prepare
def told():
    loaded = "lark" in sys.modules
    prepare()
    from phobos.syntax import learning
    print("before", loaded, "then", learning._lark is not None, file=sys.stderr)
pieces.prepare = told
"""


def test_what_the_first_new_statement_needs_is_loaded_before_it(start: Start) -> None:
    wire = start(prelude=TOLD)
    wire.start()
    wire.wait_for_log("before False then True")
    assert wire.stop() == 0


# --- findings ---------------------------------------------------------------------------------------------


def test_findings_are_pushed_with_the_version_and_cleared_on_close(start: Start) -> None:
    wire = start()
    wire.start(plain("emacs"))
    wire.open(URI, HANG, version=7)
    found = wire.wait_for(PUBLISH)
    assert (found["uri"], found["version"]) == (URI, 7)
    assert "PH203" in codes(found["diagnostics"])
    wire.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    assert wire.wait_for(PUBLISH) == {"uri": URI, "diagnostics": []}


def test_edits_in_quick_succession_are_checked_once(start: Start) -> None:
    wire = start()
    wire.start(options={"debounceMs": 300})
    wire.open(URI, HANG)
    wire.wait_for(PUBLISH)
    for version in range(2, 12):
        wire.change(URI, version, {"text": HANG + "\n" * version})
    assert wire.wait_for(PUBLISH)["version"] == 11
    wire.at("hover", URI, 0, 0)
    assert not [n for n in wire.notifications if n["method"] == PUBLISH]


def test_a_pulling_client_is_never_pushed_to(start: Start) -> None:
    wire = start()
    wire.start(plain("vscode"))
    wire.open(URI, HANG)
    report = wire.about("diagnostic", URI)
    assert report["kind"] == "full" and "PH203" in codes(report["items"])
    again = wire.about("diagnostic", URI, previousResultId=report["resultId"])
    assert again == {"kind": "unchanged", "resultId": report["resultId"]}
    wire.change(URI, 2, {"text": HANG + "\n"})
    assert wire.about("diagnostic", URI, previousResultId=report["resultId"])["kind"] == "full"
    time.sleep(0.5)  # time enough for a push that must not come
    wire.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    wire.at("hover", URI, 0, 0)
    assert not [n for n in wire.notifications if n["method"] == PUBLISH]


def test_a_client_without_related_places_reads_the_chain_in_the_message(start: Start) -> None:
    chain = start()
    chain.start()
    chain.open(URI, HANG)
    message = next(d for d in chain.wait_for(PUBLISH)["diagnostics"] if d["code"] == "PH203")["message"]
    related = start()
    related.start({"textDocument": {"publishDiagnostics": {"relatedInformation": True}}})
    related.open(URI, HANG)
    found = next(d for d in related.wait_for(PUBLISH)["diagnostics"] if d["code"] == "PH203")
    assert len(found["relatedInformation"]) >= 2
    for place in found["relatedInformation"]:
        line = place["location"]["range"]["start"]["line"] + 1
        assert f"line {line}: {place['message']}" in message
        assert f"line {line}: {place['message']}" not in found["message"]


def test_the_open_file_is_answered_while_the_workspace_is_scanned(start: Start, tmp_path: Path) -> None:
    for number in range(60):
        (tmp_path / f"k{number}.ph").write_text(HANG)
    wire = start()
    wire.answer = lambda request: [{}] if request["method"] == "workspace/configuration" else None
    wire.start(plain("vscode"), folders=[tmp_path.as_uri()])
    uri = (tmp_path / "k0.ph").as_uri()
    scan = wire.ask("workspace/diagnostic", {"previousResultIds": []})
    wire.open(uri, HANG + "// newer\n")
    begin = time.perf_counter()
    assert wire.about("diagnostic", uri)["kind"] == "full"
    assert time.perf_counter() - begin < 5  # the budget is 1 s on a quiet machine: benchmarks measure it
    report = wire.reply(scan, timeout=120)
    assert len(report["items"]) >= 59
    assert all(item["items"] and "PH203" in codes(item["items"]) for item in report["items"])
    known = [{"uri": item["uri"], "value": item["resultId"]} for item in report["items"]]
    again = wire.request("workspace/diagnostic", {"previousResultIds": known})
    assert [item["uri"] for item in again["items"] if item["kind"] == "full"] in ([], [uri])
    (tmp_path / "k7.ph").unlink()
    gone = wire.request("workspace/diagnostic", {"previousResultIds": known})
    assert [i["items"] for i in gone["items"] if i["uri"] == (tmp_path / "k7.ph").as_uri()] == [[]]
    begun = [n for n in wire.notifications if n["method"] == "$/progress" and n["params"]["value"]["kind"] == "begin"]
    ended = [n for n in wire.notifications if n["method"] == "$/progress" and n["params"]["value"]["kind"] == "end"]
    assert len(begun) == len(ended) == 1


def test_a_scan_can_be_cancelled(start: Start, tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"k{number}.ph").write_text(HANG.replace("leader", f"leader{number}"))
    wire = start()
    wire.start(plain("vscode"), folders=[tmp_path.as_uri()])
    scan = wire.ask("workspace/diagnostic", {"previousResultIds": []})
    wire.at("hover", URI, 0, 0)
    wire.notify("$/cancelRequest", {"id": scan})
    with pytest.raises(ServerError, match="-32800"):
        wire.reply(scan)
    assert wire.at("hover", URI, 0, 0) is None
    assert wire.stop() == 0


# --- large files ------------------------------------------------------------------------------------------


def test_a_file_over_1_mb_is_analysed_on_save_only_and_it_says_so(start: Start) -> None:
    wire = start()
    wire.start()
    padding = "// padding\n" * 100_000
    wire.open(URI, HANG + padding)
    assert "over 1 MB" in wire.wait_for("window/showMessage")["message"]
    found = wire.wait_for(PUBLISH)
    assert "PH203" in [d.get("code") for d in found["diagnostics"]]
    assert "over 1 MB" in found["diagnostics"][0]["message"]
    wire.change(URI, 2, {"text": GOOD + padding})
    assert wire.at("hover", URI, 1, 7) is None
    assert not [n for n in wire.notifications if n["method"] == PUBLISH]
    wire.notify("textDocument/didSave", {"textDocument": {"uri": URI}})
    assert [d.get("code") for d in wire.wait_for(PUBLISH)["diagnostics"]] == [None]


# --- names of documents -----------------------------------------------------------------------------------


@pytest.mark.parametrize("other", ["file:///C:/k/a b.ph", "file:///c:/k/a%20b.ph", "file:///C%3A/k/a%20b.ph"])
def test_all_spellings_of_a_windows_uri_are_one_document(start: Start, other: str) -> None:
    wire = start()
    wire.start()
    wire.open("file:///c%3A/k/a%20b.ph", GOOD)
    assert "let abc" in str(wire.at("hover", other, 1, 7))
    wire.change(other, 2, {"text": GOOD.replace("abc", "xyz")})
    assert "let xyz" in str(wire.at("hover", "file:///c%3A/k/a%20b.ph", 1, 7))


def test_a_document_that_was_never_saved(start: Start) -> None:
    wire = start()
    wire.start()
    wire.open("untitled:Untitled-1", HANG)
    assert "PH203" in codes(wire.wait_for(PUBLISH)["diagnostics"])


def test_a_file_on_disk_is_read_for_a_request_and_a_missing_one_is_not_there(start: Start, tmp_path: Path) -> None:
    (tmp_path / "a.ph").write_text(GOOD)
    wire = start()
    wire.start()
    uri = (tmp_path / "a.ph").as_uri()
    assert "let abc" in str(wire.at("hover", uri, 1, 7))
    (tmp_path / "a.ph").write_text(GOOD.replace("abc", "changed"))
    assert "let changed" in str(wire.at("hover", uri, 1, 7))
    (tmp_path / "a.ph").write_bytes(b"\xff\xfe\0")
    assert wire.at("hover", uri, 1, 7) is None
    (tmp_path / "a.ph").unlink()
    assert wire.at("hover", uri, 1, 7) is None
    assert wire.about("documentSymbol", tmp_path.as_uri()) is None


# --- transports -------------------------------------------------------------------------------------------


def test_on_a_terminal_it_explains_itself() -> None:
    leader, follower = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "phobos", "lsp"], stdin=follower, capture_output=True, text=True, timeout=20
        )
    finally:
        os.close(leader)
        os.close(follower)
    assert done.returncode == 2
    assert "language server" in done.stderr and "phobos check" in done.stderr and not done.stdout


def test_over_tcp() -> None:
    command = [sys.executable, "-m", "phobos", "lsp", "--tcp", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        port = int(server.stderr.readline().rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port), 10) as connection:
            body = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{},"processId":1}}'
            connection.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            assert b'"hoverProvider":' in connection.recv(65536)
        assert server.wait(10) == 1  # gone without `shutdown`


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", ":"])
def test_a_bad_address_is_refused(address: str) -> None:
    done = subprocess.run([sys.executable, "-m", "phobos", "lsp", "--tcp", address], capture_output=True, text=True)
    assert done.returncode == 2 and "HOST:PORT" in done.stderr and "Traceback" not in done.stderr


def test_a_taken_port_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run([sys.executable, "-m", "phobos", "lsp", "--tcp", address], capture_output=True, text=True)
    assert done.returncode == 2 and f"cannot listen on {address}" in done.stderr and "Traceback" not in done.stderr


def test_a_log_file_on_request(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "phobos.log"
    wire = start(f"log_file={str(log)!r}", prelude=BROKEN)
    wire.start()
    wire.open(URI, GOOD)
    with pytest.raises(ServerError):
        wire.at("hover", URI, 1, 7)
    wire.stop()
    assert "a defect of ours" in log.read_text()


def test_what_cannot_be_done_as_asked_is_no_error_in_the_log(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "phobos.log"
    wire = start(f"log_file={str(log)!r}")
    wire.start()
    wire.open(URI, GOOD)
    with pytest.raises(ServerError, match="is a keyword"):
        wire.request("textDocument/rename", {"textDocument": {"uri": URI}, "position": at(1, 6), "newName": "for"})
    wire.about("documentSymbol", URI)
    assert " ERROR " not in log.read_text() and "Traceback" not in log.read_text()


def test_a_log_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "phobos", "lsp", "--stdio", "--log-file", str(tmp_path / "no" / "such.log")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 2 and "cannot write the log file" in done.stderr and "Traceback" not in done.stderr
