"""The server's one door to `phobos.check`: a document's configuration, its findings, and whether either changed.

Configuration files are read again as soon as one on the way up from a document, or the baseline that it names,
appears, changes or goes: a few `stat` calls a check, so that no client has to watch files for us.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from functools import lru_cache

from phobos.check import baseline, engine
from phobos.check import configuration as files
from phobos.check.configuration import Configuration
from phobos.diagnostic import SEVERITIES, Diagnostic
from phobos.errors import InputError
from phobos.semantics.module import Module, analyse
from phobos.semantics.program import Settings
from phobos.value import replace, value

_NAMES = ("phobos.toml", "pyproject.toml")
_PLACE = ":"

Stamp = tuple[tuple[str, int, int], ...]


@value
class BadConfiguration:
    """A configuration file that cannot be used: where, on which line from 0, and why."""

    path: str
    line: int
    message: str


@value
class Rules:
    """What decides the findings of one document besides its text. `stamp` differs when the files did change."""

    configuration: Configuration
    bad: BadConfiguration | None
    stamp: str

    @property
    def settings(self) -> Settings:
        """What the analysis itself is told."""
        return engine.settings_of(self.configuration)


class Configurations:
    """Configurations by document, kept until a file they came from changes."""

    def __init__(self) -> None:
        self._stamps: dict[str, Stamp] = {}
        self._good: dict[str, Configuration] = {}
        self._baselines: dict[str, Stamp] = {}  # by path
        self._news = False  # a request met a file that had changed before `changed` was asked

    def rules(self, path: str, override: str | None = None) -> Rules:
        """The rules for the document at `path`; `override` is a configuration file that the user named."""
        directory = os.path.dirname(os.path.abspath(path))
        stamp = _stamp(directory, override)
        where = override or directory
        known = self._stamps.get(where)
        if known != stamp:
            self._news = self._news or known is not None
            self._stamps[where] = stamp
            files.forget()
        bad = None
        try:
            configuration = files.from_file(override) if override is not None else files.of_file(path)
            self._good[where] = configuration
            if configuration.baseline:
                mark = _stats([configuration.baseline])
                if self._baselines.setdefault(configuration.baseline, mark) != mark:
                    self._baselines[configuration.baseline] = mark
                    self._news = True
                stamp += (("baseline", 0, 0), *mark)
                _kept_baseline(configuration.baseline, mark)
        except InputError as error:
            bad = _placed(error, override or directory)
            configuration = self._good.get(where, files.DEFAULT)  # the last one that could be read
        return Rules(configuration, bad, repr(stamp))

    def changed(self) -> bool:
        """Whether any file that a configuration came from (or would come from) is another than when last asked."""
        news, self._news = self._news, False
        for where, known in self._stamps.items():
            override = where if os.path.isfile(where) else None
            if _stamp(where if os.path.isdir(where) else os.path.dirname(where), override) != known:
                self._stamps.clear()  # whatever asks next reads them anew
                files.forget()
                return True
        for path, mark in self._baselines.items():
            if _stats([path]) != mark:
                self._baselines.clear()
                return True
        return news

    def forget(self) -> None:
        self._stamps.clear()
        self._good.clear()
        self._baselines.clear()
        files.forget()


def check(path: str, text: str, rules: Rules, targets: tuple[str, ...] = ()) -> tuple[Diagnostic, ...]:
    """What `phobos check --output-format json` shows of `text` under the name `path`."""
    return check_module(analyse(path, text, rules.settings), rules, targets)


def check_module(module: Module, rules: Rules, targets: tuple[str, ...]) -> tuple[Diagnostic, ...]:
    """The same of a file that was analysed with the settings of `rules`."""
    configuration = _for_cards(rules.configuration, targets)
    return shown(module.path, module.file.text, engine.findings_of(module, configuration), configuration)


def steps(module: Module, rules: Rules, targets: tuple[str, ...]) -> Iterator[None]:
    """The work of `check_module` in pieces of some milliseconds; after them it has little left to do."""
    return engine.steps(module, _for_cards(rules.configuration, targets))


def _for_cards(configuration: Configuration, targets: tuple[str, ...]) -> Configuration:
    """With the cards that the editor's user chose, unless the configuration names its own."""
    return replace(configuration, target=targets) if targets and not configuration.target else configuration


def shown(
    path: str, text: str, found: list[Diagnostic], configuration: Configuration
) -> tuple[Diagnostic, ...]:
    """Without what the baseline holds, and without what is below the severity (everything, unless it is set)."""
    if configuration.baseline:
        with contextlib.suppress(InputError):  # `BadConfiguration` says so; without a baseline everything is new
            kept = _kept_baseline(configuration.baseline, _stats([configuration.baseline]))
            found = kept.unknown(path, text, found)
    least = SEVERITIES.index(configuration.severity or "info")
    return tuple(d for d in found if SEVERITIES.index(d.severity) <= least)


@lru_cache(maxsize=8)
def _kept_baseline(path: str, mark: Stamp) -> baseline.Baseline:
    return baseline.load(path)


def result_id(text: str, rules: Rules, further: str = "") -> str:
    """The same while nothing that decides the findings has changed."""
    sum = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12)
    sum.update(rules.stamp.encode("utf-8", "surrogatepass"))
    sum.update(further.encode())
    return sum.hexdigest()


def _stamp(directory: str, override: str | None) -> Stamp:
    if override is not None:
        candidates = [override]
    else:
        candidates = []
        while True:
            candidates += [os.path.join(directory, name) for name in _NAMES]
            parent = os.path.dirname(directory)
            if parent == directory:
                break
            directory = parent
    return _stats(candidates)


def _stats(candidates: list[str]) -> Stamp:
    found = []
    for path in candidates:
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            continue
        found.append((path, status.st_mtime_ns, status.st_size))
    return tuple(found)


def _placed(error: InputError, fallback: str) -> BadConfiguration:
    """`path:line: reason` taken apart."""
    text = str(error)
    path, _, rest = text.partition(_PLACE)
    if len(path) == 1:  # a drive letter
        drive, (path, _, rest) = path, rest.partition(_PLACE)
        path = f"{drive}:{path}"
    number, _, reason = rest.partition(_PLACE)
    if number.strip().isdecimal():
        return BadConfiguration(path, max(0, int(number) - 1), reason.strip())
    return BadConfiguration(path if os.path.exists(path) else fallback, 0, rest.strip() or text)
