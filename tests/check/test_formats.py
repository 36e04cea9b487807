"""Every output format, read back by what its consumers rely on."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from phobos.check import findings, registry
from phobos.check.render import FORMATS, Listing, Report, full, render
from phobos.diagnostic import Diagnostic, Edit, Fix, Related, Span
from phobos.syntax.lines import LineIndex

TEXT = """@persistent(48)
kernel leader(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  let p = program_id(0)
  if p == 0 {
    X[0 :+ 32] = X[0 :+ 32] + 1.0
    grid_barrier(BAR)
  }
  let v = X[0 :+ 32]
  let v = X[32 :+ 32] +
    v
  X[0 :+ 32] = v
}
"""


def report(text: str = TEXT, name: str = "kernels/le ader.ph") -> Report:
    found = tuple(findings(name, text))
    clean = "kernel k(X: tensor<f32>[N]) {\n  X[0 :+ 32] = 1.0\n}\n"
    return Report((Listing(name, text, LineIndex(text), found), Listing("clean.ph", clean, LineIndex(clean), ())), 2)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_ends_in_a_line_end_and_names_every_finding(form: str) -> None:
    shown = render(report(), form)
    assert shown.endswith("\n")
    assert all(d.code in shown for d in findings("x.ph", TEXT))


@pytest.mark.parametrize("form", FORMATS)
def test_no_findings(form: str) -> None:
    shown = render(Report((), 0), form)
    expected = {"json": [], "gitlab": []}
    if form in expected:
        assert json.loads(shown) == expected[form]
    elif form in ("json-lines", "github"):
        assert shown == ""


def test_json_has_exactly_the_keys_that_are_promised() -> None:
    listed = json.loads(render(report(), "json"))
    keys = ["code", "name", "severity", "message", "filename", "location", "end_location", "related", "notes", "help"]
    assert all(list(found) == [*keys, "fix", "url"] for found in listed)
    assert [json.loads(line) for line in render(report(), "json-lines").splitlines()] == listed
    barrier = next(found for found in listed if found["code"] == "PH203")
    assert barrier["location"] == {"row": 6, "column": 5} and barrier["end_location"] == {"row": 6, "column": 22}
    assert [related["location"]["row"] for related in barrier["related"]] == [4, 4, 3]
    fix = next(found for found in listed if found["code"] == "PH209")["fix"]
    assert fix["applicability"] == "safe" and fix["edits"][0]["content"] == ""


def test_columns_are_code_points() -> None:
    text = "kernel k(X: tensor<f32>[N]) {  // 大大大 😀\n  let 大小 = 3; let b = 4\n  X[大小 :+ 32] = 1.0\n}\n"
    found = json.loads(render(report(text), "json"))
    assert [(f["code"], f["location"]["row"], f["location"]["column"]) for f in found if f["code"] == "PH112"] == [
        ("PH112", 2, 19)
    ]


def test_github_leaves_columns_out_where_a_finding_spans_lines() -> None:
    text = "kernel k(X: tensor<f32>[N], Y: tensor<f32>[N]) {\n  X[0 :+ 64] = Y[0 :+\n    32]\n}\n"
    (line,) = [line for line in render(report(text, "a,b:c.ph"), "github").splitlines() if "PH105" in line]
    properties, _, message = line.removeprefix("::error ").partition("::")
    assert "file=a%2Cb%3Ac.ph" in properties and message.startswith("a,b:c.ph:2:16: PH105 ")
    several = Diagnostic("PH105", "shape-mismatch", "error", "50% off\nhere", Span("a", 51, 72))
    shown = render(Report((Listing("a.ph", text, LineIndex(text), (several,)),), 1), "github")
    assert "line=2,endLine=3::" in shown and "col=" not in shown and "50%25 off%0Ahere" in shown


def test_gitlab_fingerprints_are_unique_and_do_not_move() -> None:
    def prints(text: str) -> list[str]:
        return [issue["fingerprint"] for issue in json.loads(render(report(text), "gitlab"))]

    first = prints(TEXT)
    assert len(set(first)) == len(first)
    assert prints("// a line\n\n" + TEXT) == first
    issue = json.loads(render(report(), "gitlab"))[0]
    assert set(issue) == {"type", "check_name", "description", "categories", "severity", "fingerprint", "location"}


def test_junit_is_xml_with_a_case_for_each_finding() -> None:
    text = TEXT.replace("let p", "// <&>\"' \x01\n  let p")
    root = ElementTree.fromstring(render(report(text), "junit"))
    suites = root.findall("testsuite")
    assert [suite.get("name") for suite in suites] == ["kernels/le ader.ph", "clean.ph"]
    failures = suites[0].findall("testcase/failure")
    assert len(failures) == len(findings("x", text)) == int(str(suites[0].get("failures")))
    assert suites[1].findall("testcase") and not suites[1].findall("testcase/failure")
    assert any("grid_barrier(BAR)" in str(failure.text) for failure in failures)


def closed(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object with these properties and no others."""
    properties = required | (optional or {})
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def some(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": 1}


WORD = {"type": "string", "minLength": 1}
COUNT = {"type": "integer", "minimum": 1}
MESSAGE = closed({"text": WORD})
ARTIFACT = closed({"uri": {"type": "string", "pattern": r"^[^ \\]+$"}})
REGION = closed({"startLine": COUNT, "startColumn": COUNT, "endLine": COUNT, "endColumn": COUNT}, {"snippet": MESSAGE})
PLACE = closed({"artifactLocation": ARTIFACT, "region": REGION})
LOCATION = closed({"physicalLocation": PLACE}, {"message": MESSAGE, "id": COUNT})
REPLACEMENT = closed({"deletedRegion": REGION, "insertedContent": closed({"text": {"type": "string"}})})
CHANGE = closed({"artifactLocation": ARTIFACT, "replacements": some(REPLACEMENT)})
LEVEL = {"enum": ["none", "note", "warning", "error"]}
RULE = closed({
    "id": {"type": "string", "pattern": r"^PH\d{3}$"}, "name": {"type": "string", "pattern": "^([A-Z][a-z]*)+$"},
    "shortDescription": MESSAGE, "fullDescription": MESSAGE, "help": closed({"text": WORD, "markdown": WORD}),
    "helpUri": {"type": "string", "pattern": "^[a-z]+://"}, "defaultConfiguration": closed({"level": LEVEL}),
    "properties": closed({"tags": some(WORD)}),
})  # fmt: skip
RESULT = closed(
    {
        "ruleId": WORD, "ruleIndex": {"type": "integer", "minimum": 0}, "level": LEVEL, "message": MESSAGE,
        "locations": some(LOCATION), "partialFingerprints": closed({"phobosFinding/v1": WORD}),
    },
    {
        "relatedLocations": some(LOCATION),
        "codeFlows": some(closed({"threadFlows": some(closed({"locations": some(closed({"location": LOCATION}))}))})),
        "fixes": some(closed({"description": MESSAGE, "artifactChanges": some(CHANGE)})),
    },
)  # fmt: skip
DRIVER = closed({
    "name": WORD, "version": WORD, "semanticVersion": {"type": "string", "pattern": r"^\d+\.\d+\.\d+"},
    "rules": {"type": "array", "items": RULE, "uniqueItems": True},
})  # fmt: skip
RUN = closed({
    "tool": closed({"driver": DRIVER}), "columnKind": {"const": "unicodeCodePoints"},
    "artifacts": {"type": "array", "items": closed({"location": ARTIFACT}), "uniqueItems": True},
    "results": {"type": "array", "items": RESULT},
})  # fmt: skip
SARIF = closed({"$schema": WORD, "version": {"const": "2.1.0"}, "runs": some(RUN)})
"""The part of SARIF 2.1.0 that is used here; sarif-multitool has judged the same output."""


def test_sarif_has_the_form_of_2_1_0() -> None:
    log = json.loads(render(report(), "sarif"))
    jsonschema.validate(log, SARIF, jsonschema.Draft7Validator)
    run = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    barrier = next(result for result in run["results"] if result["ruleId"] == "PH203")
    flow = barrier["codeFlows"][0]["threadFlows"][0]["locations"]
    rows = [step["location"]["physicalLocation"]["region"]["startLine"] for step in flow]
    assert rows == [3, 4, 4, 6], "from what varies to the barrier"
    assert barrier["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "kernels/le%20ader.ph"
    assert [related["id"] for related in barrier["relatedLocations"]] == [1, 2, 3]
    assert next(result for result in run["results"] if result["ruleId"] == "PH209")["fixes"]


def test_sarif_of_every_rule() -> None:
    for code in registry.stems():
        for example in registry.manual(code).bad:
            jsonschema.validate(json.loads(render(report(example), "sarif")), SARIF, jsonschema.Draft7Validator)


# --- full ------------------------------------------------------------------------------------------------


def shown(text: str, start: int, end: int, **more: Any) -> list[str]:
    return full(
        Diagnostic("PH001", "syntax-error", "error", "wrong", Span("a", start, end), **more), text, "a.ph"
    ).split("\n")


def test_carets_stand_under_what_is_meant() -> None:
    lines = shown("\tlet 大 = x;\n", 9, 10, label="here")
    assert lines[3:5] == ["1 |     let 大 = x;", "  |              ^ here"]
    assert shown("ab\n", 2, 2)[4] == "  |   ^"
    assert shown("ab\n", 3, 3)[3:5] == ["2 |", "  | ^"]
    assert shown("abc\ndef\n", 1, 6, label="both")[3:5] == ["1 | abc", "  |  ^^... both"]


def test_a_line_with_several_places_is_shown_once() -> None:
    related = (Related(Span("a", 0, 1), "first"), Related(Span("a", 4, 5), "elsewhere"))
    lines = shown("a b\nc\n", 2, 3, label="second", related=related)
    assert lines[3:8] == ["1 | a b", "  |   ^ second", "  | - first", "  |", "2 | c"]


def test_very_long_lines_are_cut_around_the_mark() -> None:
    lines = shown("x" * 5000 + "MARK" + "y" * 5000, 5000, 5004, label="here")
    assert "MARK" in lines[3] and len(lines[3]) < 180
    assert lines[4].index("^") == lines[3].index("M") and "^^^^ here" in lines[4]


def test_nothing_that_was_written_can_drive_the_terminal() -> None:
    shown_ = full(
        Diagnostic("PH001", "syntax-error", "error", "wrong \x1b[2J", Span("a", 0, 1), notes=("a\x07b",)),
        "\x1b]0;title\x07\x9b31m\n", "a\x1b.ph", colour=False,
    )  # fmt: skip
    assert all(c.isprintable() or c == "\n" for c in shown_)


def test_fixes_say_how_they_are_applied() -> None:
    edit = (Edit(Span("a", 0, 1), ""),)
    said = {how: shown("ab\n", 0, 1, fix=Fix("drop it", how, edit))[6] for how in ("safe", "unsafe", "display-only")}
    assert said == {
        "safe": "  = fix: drop it (`--fix` does it)",
        "unsafe": "  = fix: drop it (`--fix --unsafe-fixes` does it)",
        "display-only": "  = fix: drop it",
    }
