"""Reads the small kernels of `kernels/*.md`: what each means, and what must be said of it.

A fence `lines` holds a kernel a line: statements, put into a kernel with the parameters of the fence (its rest) or
the usual ones, and behind `//` what is expected, parts separated by ` | `: `y: tile<f32>[64]` (the type of a name),
`E PH104 "1.0 + n"` (a finding and exactly the text that it marks), or nothing. A fence `ph` is a whole file, in which
a comment line marks what stands above: `//     ^^^ E PH104 part of the message`. Every finding must be listed;
PH112 is listed only where a case is about it (`PH112` in the fence's first line makes it so).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from phobos.semantics import ir
from phobos.semantics.module import Module, analyse
from phobos.semantics.types import type_text

KERNELS = Path(__file__).parent / "kernels"

USUAL = (
    "X: tensor<f32>[N], Y: tensor<f32>[N], A: tensor<f32>[64, 64], W: tensor<f32>[64, 32], H: tensor<f16>[64, 64], "
    "G: tensor<bf16>[64, 64], D: tensor<f64>[64, 64], I: tensor<i32>[N], J: tensor<i8>[64, 64], Q: tensor<u8>[64, 64], "
    "P: tensor<i32>[64, 64], L: tensor<i64>[64], C: tensor<i32>[4], V: tensor<bool>[64], R: tensor<f32>[M, K], "
    "a: f32, d: f64, h: f16, n: i32, l: i64, yes: bool"
)


@dataclass(frozen=True)
class Finding:
    severity: str
    code: str
    start: int
    end: int


@dataclass(frozen=True)
class Case:
    """One kernel: its text, the findings expected (with the text they mark), the types of names."""

    name: str
    text: str
    findings: tuple[tuple[str, str, str], ...]  # severity, code, marked text
    messages: tuple[str, ...]
    types: tuple[tuple[str, str], ...]
    unused_too: bool
    at: tuple[tuple[int, int], ...] = ()  # exact places, in whole files


def cases() -> list[Case]:
    found: list[Case] = []
    for path in sorted(KERNELS.glob("*.md")):
        found += read(path)
    return found


def read(path: Path) -> list[Case]:
    made: list[Case] = []
    heading = ""
    lines = path.read_text(encoding="utf-8").split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("#"):
            heading = line.lstrip("# ").strip()
        fence = re.match(r"```(lines|ph)\s*(.*)$", line)
        if fence:
            end = lines.index("```", at)
            body = lines[at + 1 : end]
            if fence[1] == "lines":
                for number, one in enumerate(body, at + 2):
                    if one.strip():
                        made.append(_line(f"{path.stem}:{number} {heading}", one, fence[2]))
            else:
                made.append(_file(f"{path.stem}:{at + 1} {heading}", body, "PH112" in fence[2]))
            at = end
        at += 1
    return made


_FINDING = re.compile(r'([EWI]) (PH\d\d\d) "(.*)"$')


def _line(name: str, line: str, signature: str) -> Case:
    code, _, wanted = line.partition("  // ")
    unused_too = "PH112" in wanted
    findings: list[tuple[str, str, str]] = []
    types: list[tuple[str, str]] = []
    for part in filter(None, (p.strip() for p in wanted.split(" | "))):
        finding = _FINDING.match(part)
        if finding:
            findings.append((finding[1], finding[2], finding[3]))
        else:
            variable, _, type_ = part.partition(": ")
            assert type_, f"{name}: cannot read the expectation {part!r}"
            types.append((variable, type_))
    body = code.rstrip().replace("\\n", "\n")
    text = f"@autotune(T in [16, 32], Z in [0, 1])\nkernel k({signature or USUAL}) {{\n{body}\n}}\n"
    return Case(name, text, tuple(findings), (), tuple(types), unused_too)


def _file(name: str, body: list[str], unused_too: bool) -> Case:
    text = "\n".join(body) + "\n"
    findings: list[tuple[str, str, str]] = []
    messages: list[str] = []
    places: list[tuple[int, int]] = []
    offset, above = 0, 0
    for line in body:
        mark = re.match(r"\s*//\s*(\^+)(\.*) ([EWI]) (PH\d\d\d)\s*(.*)$", line)
        if mark:
            start, end = above + mark.start(1), above + mark.end(1)
            findings.append((mark[3], mark[4], text[start:end]))
            places.append((start, end))
            messages.append(mark[5])
        else:
            above = offset
        offset += len(line) + 1
    return Case(name, text, tuple(findings), tuple(messages), (), unused_too, tuple(places))


def said(case: Case) -> tuple[Module, list[tuple[Finding, str]]]:
    """The module of a case, and what is said of it in order of place: findings with their messages."""
    module = analyse("case.ph", case.text)
    found: list[tuple[Finding, str]] = []
    for unit in module.units:
        assert not unit.item.problems, f"does not parse: {unit.item.problems[0].message}"
        for problem in unit.problems:
            if problem.code == "PH112" and not case.unused_too:
                continue
            span = module.absolute(unit, problem.span)
            found.append((Finding(problem.severity[0].upper(), problem.code, span.start, span.end), problem.message))
    return module, sorted(found, key=lambda pair: (pair[0].start, pair[0].code))


def type_of(module: Module, name: str) -> str:
    """The type of the last variable of that name."""
    variables = [
        variable for unit in module.units for variable in unit.program.variables if variable.name == name
    ]
    assert variables, f"no variable is called {name}"
    kind = "view " if variables[-1].kind == "view" else ""
    return kind + type_text(variables[-1].type)


__all__ = ["Case", "Finding", "cases", "ir", "said", "type_of"]
