"""A smaller kernel that goes wrong in the same way: fewer lines, blocks without heads, expressions without parts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

from tests.dataflow.check import kind_of, smaller, wrong_with
from tests.dataflow.sample import Sample


def shrunk(sample: Sample, said: str, seconds: float = 60.0) -> Sample:
    """The smallest text found in that many seconds."""
    ends = time.monotonic() + seconds
    kind = kind_of(said)

    def fails(text: str) -> bool:
        return kind_of(wrong_with(smaller(sample, text))) == kind

    text = sample.text
    changed = True
    while changed and time.monotonic() < ends:
        changed = False
        for ways in (_without_lines, _without_heads, _without_parts, _without_parameters):
            better = _first(text, ways, fails, ends)
            if better != text:
                text, changed = better, True
    return smaller(sample, text)


def _first(text: str, ways: Callable[[str], Iterator[str]], fails: Callable[[str], bool], ends: float) -> str:
    """As small as one kind of step makes it."""
    again = True
    while again:
        again = False
        for candidate in ways(text):
            if time.monotonic() > ends:
                return text
            if candidate != text and fails(candidate):
                text, again = candidate, True
                break
    return text


def _blocks(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Lines that can go together: (first, behind the last). Larger ones first."""
    found = []
    for i, line in enumerate(lines):
        margin = len(line) - len(line.lstrip())
        if line.strip().startswith("}"):
            continue
        if line.rstrip().endswith("{"):
            end = next(j for j in range(i + 1, len(lines)) if lines[j] == " " * margin + "}")
            if not line.startswith(("kernel", "}")):
                found.append((i, end + 1))
        else:
            found.append((i, i + 1))
    return iter(sorted(found, key=lambda one: one[0] - one[1]))


def _without_lines(text: str) -> Iterator[str]:
    lines = text.splitlines()
    n = len(lines)
    size = n // 3
    while size >= 3:  # stretches at one margin
        for at in range(n - size, -1, -size):
            cut = lines[at : at + size]
            margins = [len(line) - len(line.lstrip()) for line in cut]
            if cut and min(margins) == margins[0] >= 2 and not cut[0].strip().startswith("}") and _balanced(cut):
                yield "\n".join(lines[:at] + lines[at + size :]) + "\n"
        size //= 2
    for first, end in sorted(_blocks(lines), key=lambda one: (one[0] - one[1], -one[0])):
        yield "\n".join(lines[:first] + lines[end:]) + "\n"


def _balanced(lines: list[str]) -> bool:
    deep = 0
    for line in lines:
        deep += line.count("{") - line.count("}")
        if deep < 0 or (line.strip().startswith("} else") and deep < 1):
            return False
    return deep == 0


def _without_heads(text: str) -> Iterator[str]:
    """The body of a block in place of it; a loop variable is then its first value."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        head = line.strip()
        if not head.endswith("{") or head.startswith(("kernel", "fn", "}")):
            continue
        margin = " " * (len(line) - len(line.lstrip()))
        end = next(j for j in range(i + 1, len(lines)) if lines[j].startswith(margin + "}"))
        body = [one[2:] if one.startswith("  ") else one for one in lines[i + 1 : end]]
        first = re.match(r"for\S*(?: \d+>)? (\w+) in range\(([^,]*),", head)
        start = [f"{margin}let {first[1]} = {first[2]}"] if first else []
        if lines[end].strip() == "}":
            yield "\n".join(lines[:i] + start + body + lines[end + 1 :]) + "\n"
        else:
            close = next(j for j in range(end + 1, len(lines)) if lines[j] == margin + "}")
            other = [one[2:] for one in lines[end + 1 : close]]
            yield "\n".join(lines[:i] + body + lines[close + 1 :]) + "\n"
            yield "\n".join(lines[:i] + other + lines[close + 1 :]) + "\n"
            yield "\n".join([*lines[:end], margin + "}", *lines[close + 1 :]]) + "\n"


def _without_parts(text: str) -> Iterator[str]:
    """What stands in brackets replaced by one of its parts, or by a number."""
    spans = []
    stack = []
    for at, letter in enumerate(text):
        if letter in "([":
            stack.append(at)
        elif letter in ")]" and stack:
            spans.append((stack.pop(), at))
    for open_, close in sorted(spans, key=lambda one: one[0] - one[1]):
        if text[open_] != "(":
            continue
        word = re.search(r"\w*$", text[:open_])
        assert word is not None
        start = word.start()
        if text.rfind("\n", 0, start) + 1 == start or text[:start].rstrip().endswith(("fn", "kernel", "@launch", "@")):
            continue
        for part in _parts(text[open_ + 1 : close]):
            yield text[:start] + part + text[close + 1 :]
        if "\n" not in text[open_:close]:
            for number in ("1", "1.0", "0"):
                yield text[:start] + number + text[close + 1 :]
    for found in re.finditer(r"(?<![\w.])(\w+(?:\[[^\]\n]*\])?) ([-+*]) (\w+(?:\[[^\]\n]*\])?)", text):
        yield text[: found.start()] + found[1] + text[found.end() :]
        yield text[: found.start()] + found[3] + text[found.end() :]


def _parts(inside: str) -> Iterator[str]:
    """Operands and arguments at the outermost level."""
    deep, start = 0, 0
    for found in re.finditer(r"[()\[\]]|, | (?:[-+*/%^&|<>]|<<|>>|&&|\|\||==|!=|<=|>=) ", inside):
        if found[0] in "([":
            deep += 1
        elif found[0] in ")]":
            deep -= 1
        elif not deep:
            yield inside[start : found.start()]
            start = found.end()
    yield inside[start:]


def _without_parameters(text: str) -> Iterator[str]:
    found = re.search(r"kernel k\((.*)\) \{", text)
    if found is None:
        return
    body = text[found.end() :]
    inside = re.split(r", (?=\w+: )", found[1])
    used = [one for one in inside if re.search(rf"\b{re.escape(one.split(':')[0])}\b", body)]
    if len(used) < len(inside):
        yield f"{text[: found.start()]}kernel k({', '.join(used)}) {{{body}"
    for line in [line for line in text.splitlines() if line.startswith("@") and not line.startswith("@persistent")]:
        yield text.replace(line + "\n", "", 1)
