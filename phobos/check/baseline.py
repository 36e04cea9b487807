"""Findings known before: a file of fingerprints that do not change when lines move.

A fingerprint is made of the rule, the kernel or function, and the words of the line: inserting lines, moving
a kernel or indenting it differently changes none. Equal fingerprints are counted, so that a second mistake of
the same kind on an equal line is new.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable

from phobos.check.configuration import relative_to
from phobos.diagnostic import Diagnostic
from phobos.errors import InputError
from phobos.files import contents

_ITEM = re.compile(r"(?:^[^\S\n]*@[^\n]*\n)*^[^\S\n]*(?:@.*)?(?:kernel|fn)\s+(\w+)", re.MULTILINE)
_LINE_END = re.compile(r"\r\n|\r|\n")
VERSION = 1


class Fingerprints:
    """The fingerprints of one file's findings."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.items = [(found.start(), found.group(1)) for found in _ITEM.finditer(text)]
        self.seen: Counter[str] = Counter()

    def of(self, diagnostic: Diagnostic) -> str:
        """What stays the same of a finding while the text around it moves."""
        start = diagnostic.span.start
        item = ""
        for at, found in self.items:
            if at <= start:
                item = found
        begin = max(self.text.rfind("\n", 0, start), self.text.rfind("\r", 0, start)) + 1
        line = _LINE_END.split(self.text[begin:], maxsplit=1)[0].partition("//")[0]
        return f"{diagnostic.code} {item or '-'} {''.join(line.split())}"

    def unique(self, diagnostic: Diagnostic) -> str:
        """A hash that tells findings of one report apart."""
        import hashlib

        key = f"{self.name.replace(os.sep, '/')} {self.of(diagnostic)}"
        self.seen[key] += 1
        return hashlib.sha256(f"{key} {self.seen[key]}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Baseline:
    """Counts of fingerprints by file, file names relative to the baseline's own directory."""

    def __init__(self, path: str, files: dict[str, Counter[str]]) -> None:
        self.root = os.path.dirname(os.path.abspath(path))
        self.files = files

    def unknown(self, name: str, text: str, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Those findings of a file that the baseline does not hold."""
        left = Counter(self.files.get(relative_to(name, self.root), Counter()))
        prints = Fingerprints(name, text)
        new: list[Diagnostic] = []
        for diagnostic in diagnostics:
            key = prints.of(diagnostic)
            if left[key] > 0:
                left[key] -= 1
            else:
                new.append(diagnostic)
        return new


def load(path: str) -> Baseline:
    """Read a baseline. Raises InputError where it is none."""
    try:
        if os.path.exists(path) and not os.path.isfile(path):  # a configuration names it: a pipe may never end
            raise InputError(f"{path}: not a file, so no baseline; `--write-baseline` makes one")
        data = json.loads(contents(path))
        if data["version"] != VERSION:
            raise InputError(f"{path}: a baseline of version {data['version']!r:.40}, this program reads {VERSION}")
        files = {str(name): Counter({str(k): int(n) for k, n in kept.items()}) for name, kept in data["files"].items()}
    except OSError as error:
        raise InputError(f"{path}: cannot read the baseline: {error.strerror}; `--write-baseline` makes one") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise InputError(f"{path}: not a baseline of `phobos check`; `--write-baseline` makes one") from None
    return Baseline(path, files)


def dump(path: str, found: Iterable[tuple[str, str, Iterable[Diagnostic]]]) -> str:
    """The text of a baseline at `path` that holds these findings: (file name, text, diagnostics)."""
    root = os.path.dirname(os.path.abspath(path))
    files: dict[str, dict[str, int]] = {}
    for name, text, diagnostics in found:
        prints = Fingerprints(name, text)
        counts = Counter(prints.of(diagnostic) for diagnostic in diagnostics)
        if counts:
            files[relative_to(name, root)] = dict(sorted(counts.items()))
    return json.dumps({"version": VERSION, "files": dict(sorted(files.items()))}, indent=1, ensure_ascii=False) + "\n"
