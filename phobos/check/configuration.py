"""What the user fixed beforehand: `phobos.toml`, or `[tool.phobos]` in `pyproject.toml`, of the nearest ancestor.

The same answer for command, server and Python. A bad file is an `InputError` that names its line; a rule it
names and nobody knows is a finding (PH902) in that file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, cast

from phobos.check import registry
from phobos.diagnostic import SEVERITIES, Diagnostic, Severity, Span
from phobos.errors import InputError
from phobos.files import contents
from phobos.value import replace, value

KEYS = (
    "select", "extend-select", "ignore", "per-file-ignores", "severity", "fail-on", "target", "sizes", "baseline",
    "known-functions", "line-length", "exclude",
)  # fmt: skip


@value
class Configuration:
    """Everything that decides what is found and shown.

    `severity` is the least that is shown, None where the output format decides. `kernel` (`a+b` for a fusion, with
    its `order`), `constants` and `measure` (compile for the targets, to count registers) come from options only.
    `root` is the directory that globs and the baseline are relative to; `source` the file it was read from, with its
    `text` and the `problems` (PH902) it has.
    """

    select: tuple[str, ...] = ("ALL",)
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    severity: Severity | None = None
    fail_on: Severity = "warning"
    target: tuple[str, ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()
    baseline: str | None = None
    known_functions: tuple[str, ...] = ()
    line_length: int = 120
    exclude: tuple[str, ...] = ()
    kernel: str | None = None
    order: str = "ask"
    constants: tuple[tuple[str, int], ...] = ()
    measure: bool = False
    root: str = ""
    source: str | None = None
    text: str = ""
    problems: tuple[Diagnostic, ...] = ()

    def enabled(self, path: str | None = None) -> frozenset[str]:
        """The codes that may be reported in the file at `path`. A longer selector beats a shorter one."""
        ignored = list(self.ignore)
        if path is not None and self.per_file_ignores:
            relative = relative_to(path, self.root)
            ignored += [word for glob, words in self.per_file_ignores if matches(relative, glob) for word in words]
        return _chosen(self.select + self.extend_select, tuple(ignored))


DEFAULT = Configuration()


@cache
def _chosen(select: tuple[str, ...], ignore: tuple[str, ...]) -> frozenset[str]:
    if select == ("ALL",) and not ignore:
        return frozenset(registry.stems())
    kept: dict[str, tuple[int, bool]] = {}
    for words, chosen in ((select, True), (ignore, False)):
        for word in words:
            codes = registry.expand(word) or frozenset()
            weight = 1000 - len(codes)  # fewer codes: more particular
            for code in codes:
                if code not in kept or weight >= kept[code][0]:
                    kept[code] = (weight, chosen)
    return frozenset(code for code, (_, chosen) in kept.items() if chosen)


def of_file(path: str) -> Configuration:
    """The configuration for the file at `path` (which need not exist)."""
    directory = os.path.dirname(os.path.abspath(path))
    return of_directory(directory)


@cache
def of_directory(directory: str) -> Configuration:
    """The configuration of the nearest of `directory` and its ancestors that holds one."""
    for name in ("phobos.toml", "pyproject.toml"):
        candidate = os.path.join(directory, name)
        if os.path.isfile(candidate):
            text = _read(candidate)
            if name == "phobos.toml" or ("phobos" in text and _table_of(candidate, text) is not None):
                return parse(candidate, text)
    parent = os.path.dirname(directory)
    return DEFAULT if parent == directory else of_directory(parent)


def forget() -> None:
    """Read configuration files anew: for `--watch` and for the server, when one changed."""
    of_directory.cache_clear()


def from_file(path: str) -> Configuration:
    """The configuration in a file the user named (`--config`)."""
    return parse(path, _read(path))


def parse(path: str, text: str) -> Configuration:
    """The configuration that `text`, the contents of `path`, holds. Raises InputError with the line."""
    table = _table_of(path, text)
    return _Reader(path, text, {} if table is None else table).configuration()


def _table_of(path: str, text: str) -> Any:
    """What stands for the configuration in `text`: all of it, in `pyproject.toml` `tool.phobos`, None without one."""
    import tomllib

    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        reason = str(error)
        line = text.count("\n") + 1
        if "(at line " in reason:
            reason, _, place = reason.partition(" (at line ")
            line = int(place.split(",")[0])
        raise InputError(f"{path}:{line}: not valid TOML: {reason[:1].lower()}{reason[1:]}") from None
    except RecursionError:
        raise InputError(f"{path}:1: its brackets nest too deep to be read") from None
    except ValueError:  # Python reads whole numbers of up to a few thousand digits, and names no place
        import re

        digits = re.search(r"[\d_]{1000,}", text)
        line = text.count("\n", 0, digits.start() if digits else 0) + 1
        raise InputError(f"{path}:{line}: a number has too many digits to be read") from None
    if not _is_project(path):
        return data
    tools = data.get("tool", {})
    if not isinstance(tools, Mapping):
        raise InputError(f"{path}:1: `tool` must be a table")
    return tools.get("phobos")


def _is_project(path: str) -> bool:
    return os.path.basename(path) == "pyproject.toml"


class _Reader:
    """Turns a table into a Configuration; knows where each key stands, for its complaints."""

    def __init__(self, path: str, text: str, data: Any) -> None:
        self.path = path
        self.text = text
        self.data = data
        self.above = ("tool", "phobos") if _is_project(path) else ()
        self.problems: list[Diagnostic] = []

    def configuration(self) -> Configuration:
        if not isinstance(self.data, Mapping):
            raise InputError(f"{self.path}:{self.line()}: `tool.phobos` must be a table")
        for key in self.data:
            if key not in KEYS:
                from difflib import get_close_matches

                near = get_close_matches(key, KEYS, 1)
                if key == "tool" and not _is_project(self.path):
                    hint = "`[tool.phobos]` is for pyproject.toml: here the keys stand by themselves"
                else:
                    hint = f"did you mean `{near[0]}`?" if near else "the keys are " + ", ".join(KEYS)
                raise self.bad(key, f"is not a key of the configuration; {hint}")
        base = DEFAULT
        return replace(
            base,
            select=self.rules("select") if "select" in self.data else base.select,
            extend_select=self.rules("extend-select"),
            ignore=self.rules("ignore"),
            per_file_ignores=self.per_file_ignores(),
            severity=self.level("severity", base.severity),
            fail_on=self.level("fail-on", base.fail_on) or base.fail_on,
            target=self.targets(),
            sizes=self.sizes(),
            baseline=self.baseline(),
            known_functions=self.words("known-functions"),
            line_length=self.line_length(),
            exclude=self.words("exclude"),
            root=os.path.dirname(os.path.abspath(self.path)),
            source=self.path,
            text=self.text,
            problems=tuple(self.problems),
        )

    def bad(self, *keys_and_complaint: str) -> InputError:
        """What is wrong with the value at some keys, the last of which is named."""
        *keys, complaint = keys_and_complaint
        return InputError(f"{self.path}:{self.line(*keys)}: `{keys[-1]}` {complaint}")

    def line(self, *keys: str) -> int:
        from phobos.check.toml_lines import lines_of

        return lines_of(self.text, (*self.above, *keys))[0]

    def words(self, key: str) -> tuple[str, ...]:
        found = self.data.get(key, [])
        if isinstance(found, str):
            found = [part.strip() for part in found.split(",") if part.strip()]
        if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
            raise self.bad(key, "must be a list of strings")
        return tuple(cast("list[str]", found))

    def targets(self) -> tuple[str, ...]:
        names = self.words("target")
        if names:
            from phobos.codegen.cards import UnknownTarget, target

            for name in names:
                try:
                    target(name)
                except UnknownTarget as error:
                    raise InputError(f"{self.path}:{self.line('target')}: `target`: {error}") from None
        return names

    def rules(self, key: str) -> tuple[str, ...]:
        words = self.words(key)
        for word in words:
            self.known_rule(word, key)
        return words

    def known_rule(self, word: str, *keys: str) -> None:
        if registry.expand(word) is not None:
            return
        near = registry.nearest(word)
        start = self.place(word, *keys)
        self.problems.append(
            Diagnostic(
                "PH902", registry.names().get("PH902", "unknown-rule"), "warning",
                f"no rule is called `{word}`", Span(self.path, start, start + len(word)),
                label="this selects nothing",
                help=f"did you mean `{near}`?" if near else "`phobos rule --all` lists the rules",
            )
        )  # fmt: skip

    def place(self, word: str, *keys: str) -> int:
        """The offset of a word in the value at some keys; of its line, where it is spelled with escapes."""
        from phobos.check.toml_lines import lines_of

        first, last = lines_of(self.text, (*self.above, *keys))
        lines = self.text.split("\n")
        start = sum(len(line) + 1 for line in lines[: first - 1])
        statement = "\n".join(lines[first - 1 : last])
        key = statement.find(keys[-1])
        value = key + len(keys[-1]) if key >= 0 else 0
        found = max(statement.find(quote + word + quote, value) for quote in "\"'")
        return start + (found + 1 if found >= 0 else max(statement.find(word, value), 0))

    def per_file_ignores(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        key = "per-file-ignores"
        table = self.data.get(key, {})
        if not isinstance(table, Mapping):
            raise self.bad(key, "must be a table of `glob = [codes]`")
        pairs: list[tuple[str, tuple[str, ...]]] = []
        for glob, words in table.items():
            if isinstance(words, str):
                words = [words]
            if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
                raise self.bad(key, glob, "must be a list of codes or names")
            for word in words:
                self.known_rule(word, key, glob)
            pairs.append((str(glob), tuple(words)))
        return tuple(pairs)

    def level(self, key: str, default: Severity | None) -> Severity | None:
        if key not in self.data:
            return default
        found = self.data[key]
        if found not in SEVERITIES:
            raise self.bad(key, 'must be "error", "warning" or "info"')
        return cast("Severity", found)

    def sizes(self) -> tuple[tuple[str, int], ...]:
        table = self.data.get("sizes", {})
        if not isinstance(table, Mapping):
            raise self.bad("sizes", "must be a table of `NAME = integer`")
        for name, size in table.items():
            if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 63:
                raise self.bad("sizes", name, "must be an integer that is not negative and fits in 64 bits")
        return tuple(sorted((str(name), int(size)) for name, size in table.items()))

    def baseline(self) -> str | None:
        found = self.data.get("baseline", "")
        if not isinstance(found, str):
            raise self.bad("baseline", "must be the path of a file")
        if not found:  # none, as `--show-settings` writes it
            return None
        return os.path.join(os.path.dirname(os.path.abspath(self.path)), found)

    def line_length(self) -> int:
        found = self.data.get("line-length", DEFAULT.line_length)
        if not isinstance(found, int) or isinstance(found, bool) or not 20 <= found <= 1000:
            raise self.bad("line-length", "must be an integer from 20 to 1000")
        return found


def _read(path: str) -> str:
    try:
        data = contents(path)
    except OSError as error:
        raise InputError(f"{path}: cannot read the configuration: {error.strerror}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1  # `object` is what stands behind a byte order mark
        raise InputError(f"{path}:{line}: the configuration is not UTF-8 text") from None


def relative_to(path: str, root: str) -> str:
    """`path` with forward slashes, relative to `root` where it lies below it."""
    absolute = os.path.abspath(path)
    if root:
        relative = os.path.relpath(absolute, root)
        if not relative.startswith(".."):
            absolute = relative
    return absolute.replace(os.sep, "/")


def matches(relative: str, glob: str) -> bool:
    """Whether a path matches a glob: without a slash any part of it may, with one the whole path must."""
    from fnmatch import fnmatchcase

    glob = glob.rstrip("/")
    if "/" not in glob:
        return any(fnmatchcase(part, glob) for part in relative.split("/"))
    glob = glob.lstrip("/").removeprefix("./")
    return fnmatchcase(relative, glob) or relative.startswith(glob + "/") or fnmatchcase(relative, glob + "/*")


def words_of(options: Iterable[str]) -> tuple[str, ...]:
    """`PH2,PH301` given once or several times, as words."""
    return tuple(word.strip() for option in options for word in option.split(",") if word.strip())
