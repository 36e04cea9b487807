"""How a file likes to be run: the `// run:` and `// expect:` comments at its top.

A header is read into names and texts. What a name means is the kernel's business, and is settled where it runs.
"""

from __future__ import annotations

import re
from typing import Literal

from phobos.errors import InputError
from phobos.syntax.headers import OPTIONS, HeaderLine, header_lines, header_words
from phobos.value import value

_SHA = re.compile(r"([^\W\d]\w*)\s+sha256\s*=\s*([0-9a-fA-F]{64})\Z")
_CELL = re.compile(r"([^\W\d]\w*)\s*\[([^\]]*)\]\s*=\s*(\S+)\Z")
_FAULT = re.compile(r"fault\s*=\s*([a-z-]+)\Z")
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?([eE][-+]?\d+)?|inf|nan)\Z")


@value
class Expectation:
    """One `// expect:` line. `tensor`, `index` and `wanted` of a cell; `tensor` and `wanted` of a digest; a fault."""

    line: int
    text: str
    kind: Literal["cell", "sha256", "fault"]
    tensor: str
    index: tuple[int, ...]
    wanted: float | str


@value
class Run:
    """One `// run:` line with the expectations up to the next. Without a header `line` is 0 and all is empty.

    `options` are those of `syntax.headers`, `names` extents, constants and parameters, both as written.
    """

    line: int
    kernel: str | None
    options: dict[str, str]
    names: dict[str, str]
    expectations: tuple[Expectation, ...]

    @property
    def fault(self) -> str | None:
        """The kind of fault that is expected."""
        return next((str(e.wanted) for e in self.expectations if e.kind == "fault"), None)


def runs_of(path: str, text: str) -> tuple[Run, ...]:
    """The runs that a file asks for, in order; none where it has no header. Raises InputError with the line."""
    runs: list[Run] = []
    for line in header_lines(text):
        if line.key == "run":
            runs.append(_run(path, line))
        else:
            if not runs:
                raise InputError(f"{path}:{line.line}: `// expect:` stands before any `// run:`")
            expectation = _expectation(path, line.line, line.text.strip())
            last = runs[-1]
            runs[-1] = Run(last.line, last.kernel, last.options, last.names, (*last.expectations, expectation))
    return tuple(runs)


def _run(path: str, header: HeaderLine) -> Run:
    line = header.line
    options: dict[str, str] = {}
    names: dict[str, str] = {}
    for word in header_words(header):
        if not word.key or not word.given:
            written = word.key if word.given is None else f"{word.key}={word.given}"
            raise InputError(f"{path}:{line}: {written!r} in the `// run:` header is not KEY=VALUE")
        if word.is_option:
            _once(path, line, word.key, options)
            options[word.key] = word.given
        else:
            if not word.name.isidentifier():
                meant = word.key.lstrip("-").replace("-", "_")
                hint = f"; did you mean `{meant}`?" if meant in OPTIONS else ""
                raise InputError(f"{path}:{line}: {word.key!r} in the `// run:` header is no name{hint}")
            _once(path, line, word.name, names)
            names[word.name] = word.given
    return Run(line, options.pop("kernel", None), options, names, ())


def _once(path: str, line: int, key: str, known: dict[str, str]) -> None:
    if key in known:
        raise InputError(f"{path}:{line}: the `// run:` header gives `{key}` twice")


def _expectation(path: str, line: int, text: str) -> Expectation:
    from phobos.runtime.faults import KINDS

    if found := _SHA.match(text):
        return Expectation(line, text, "sha256", found[1], (), found[2].lower())
    if found := _FAULT.match(text):
        if found[1] not in KINDS:
            raise InputError(f"{path}:{line}: no fault is called {found[1]!r}: choose {', '.join(KINDS)}")
        return Expectation(line, text, "fault", "", (), found[1])
    if found := _CELL.match(text):
        index = [part.strip() for part in found[2].split(",")]
        if all(part.isdecimal() for part in index):
            truth = {"true": 1.0, "false": 0.0}.get(found[3])
            if truth is not None or _NUMBER.match(found[3]):
                wanted = float(found[3]) if truth is None else truth
                return Expectation(line, text, "cell", found[1], tuple(int(part) for part in index), wanted)
    raise InputError(
        f"{path}:{line}: cannot read the expectation {text!r}: write `X[0, 3] = 2.5`, `X sha256=...` or "
        "`fault=deadlock`"
    )
