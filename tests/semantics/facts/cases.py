"""Kernels whose facts stand beside the lines they are about, read from the Markdown files here.

A heading names a case, its fenced `.ph` is the kernel, and a comment `//! ...` lists everything the analysis says
of that line, separated by commas: nothing may be said that is not listed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from phobos.diagnostic import Span
from phobos.semantics.conflicts import conflicts_of
from phobos.semantics.masks import masks_of, points_of
from phobos.semantics.module import analyse
from phobos.semantics.program import Program
from phobos.semantics.uniformity import uniformity_of

HERE = Path(__file__).parent
CASE = re.compile(r"^## (?P<name>.+?)$.*?^```ph\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Case:
    name: str
    text: str

    @property
    def wanted(self) -> dict[int, list[str]]:
        """What each line (from 1) expects."""
        found: dict[int, list[str]] = {}
        for number, line in enumerate(self.text.splitlines(), 1):
            if "//!" in line:
                found[number] = sorted(part.strip() for part in line.split("//!")[1].split(","))
        return found


def cases(file: str) -> list[Case]:
    found = [Case(m["name"], m["text"]) for m in CASE.finditer((HERE / file).read_text())]
    assert found, file
    return found


def program(text: str, name: str | None = None) -> Program:
    """The only kernel of a text, or the one named; the text must be right."""
    kernels = analyse("case.ph", text).kernels
    unit = kernels[name] if name else next(iter(kernels.values()))
    errors = [p.message for p in unit.program.problems if p.severity == "error" and p.code < "PH115"]
    assert not errors, errors
    return unit.program


def line_in(text: str, span: Span) -> int:
    """The line of a place: of the kernel, or of the function it is in."""
    module = analyse("case.ph", text)
    unit = next(iter(module.kernels.values())) if span.owner is None else module.functions[span.owner]
    return text.count("\n", 0, unit.offset + span.start) + 1


def by_line(found: list[tuple[int, str]]) -> dict[int, list[str]]:
    lines: dict[int, list[str]] = {}
    for line, said in found:
        lines.setdefault(line, []).append(said)
    return {line: sorted(said) for line, said in lines.items()}


def divergences(text: str) -> dict[int, list[str]]:
    """Per line of a barrier how it diverges, E, W or I, and the line of the construct."""
    found = []
    for divergence in uniformity_of(program(text)).divergences:
        grave = {"witness": "E", "data": "W", "none": "I"}[divergence.ground]
        at = line_in(text, divergence.construct)
        found.append((line_in(text, divergence.barrier.span), f"{divergence.kind} {grave} by {at}"))
        for other in divergence.others:
            found.append((line_in(text, other.span), "other arm"))
    return by_line(found)


def conflicts(text: str) -> dict[int, list[str]]:
    """Per line of the later access the conflicts it is in, each kind once; aliases are not listed."""
    found = set()
    for conflict in conflicts_of(program(text)):
        if conflict.kind != "alias":
            grave = "" if conflict.kind == "unknown" else " E" if conflict.certain else " W"
            found.add((line_in(text, conflict.second.access.span), conflict.kind + grave))
    return by_line(sorted(found))


def masks(text: str) -> dict[int, list[str]]:
    """Per line what its accesses are: `x: inside`, `x: masked`, `x: peeled`, `x: outside` for axis x."""
    found = set()
    shared = program(text)
    for access, axes in masks_of(shared).items():
        for axis, mask in enumerate(axes):
            if mask is not None and not mask.reason.startswith("`:`"):
                said = "outside" if mask.outside else "peeled" if mask.peeled else "masked" if mask.needed else "inside"
                said += " by promise" * bool(mask.promises) + " by grid" * mask.uses_grid
                found.add((line_in(text, access.span), f"{axis}: {said}"))
    for access, bounds in points_of(shared).items():
        for axis, bound in enumerate(bounds):
            if bound is not None:
                said = bound.state + " by promise" * bool(bound.promises) + " by grid" * bound.uses_grid
                found.add((line_in(text, access.span), f"{axis}: point {said}"))
    return by_line(sorted(found))
