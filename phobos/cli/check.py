"""Find what is wrong with kernels: barriers that not every block reaches, races, broken promises, type errors.

PATHS are .ph files and directories (searched for *.ph, .gitignore respected); `-` is standard input; the
current directory when there are none.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable

from phobos.check import registry
from phobos.check.configuration import DEFAULT, Configuration, from_file, of_file, words_of
from phobos.check.project import Source, find, read, read_stdin, write
from phobos.cli.arguments import add_order, add_set, files_apart, kernel_name, order_for, positive, use_colour
from phobos.cli.output import document
from phobos.cli.progress import Progress
from phobos.diagnostic import SEVERITIES, Diagnostic, Severity
from phobos.errors import InputError
from phobos.value import replace, value

EXAMPLE = """
phobos check kernels/                              everything below a directory
phobos check sweep.ph --severity info              notes too
phobos check sweep.ph --target h200 --set N=4096   for a card, at a size
phobos check --fix --diff kernels/                 what `--fix` would change
"""

FORMATS = ("full", "concise", "json", "json-lines", "github", "gitlab", "junit", "sarif")
_FORMATS_WITH_NOTES = ("json", "json-lines", "sarif")
_RANK = {severity: rank for rank, severity in enumerate(SEVERITIES)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files, directories, or - for standard input")
    shown = parser.add_argument_group("what is shown")
    shown.add_argument("--output-format", choices=FORMATS, metavar="FORM", help=", ".join(FORMATS))
    shown.add_argument("--output-file", metavar="FILE", help="write the report there")
    shown.add_argument(
        "--severity", choices=SEVERITIES, help="the least to report (default warning; info in JSON and SARIF)"
    )
    shown.add_argument("--statistics", action="store_true", help="count findings by rule instead of listing them")
    shown.add_argument("--fail-on", choices=SEVERITIES, help="the least that makes the exit code 1 (default warning)")
    shown.add_argument("--exit-zero", action="store_true", help="exit 0 even with findings")
    rules = parser.add_argument_group("which rules (codes, names or prefixes like PH2, separated by commas)")
    rules.add_argument("--select", action="append", metavar="CODES", help="only these")
    rules.add_argument("--extend-select", action="append", metavar="CODES", help="these as well")
    rules.add_argument("--ignore", action="append", metavar="CODES", help="not these")
    change = parser.add_argument_group("changing files")
    change.add_argument("--fix", action="store_true", help="apply safe fixes")
    change.add_argument(
        "--unsafe-fixes", action="store_true", help="with --fix or --diff: also fixes that may change the meaning"
    )
    change.add_argument("--diff", action="store_true", help="show what --fix would change, and change nothing")
    change.add_argument(
        "--add-ignore", action="store_true", help="silence every finding shown by a comment on its line"
    )
    change.add_argument("--baseline", metavar="FILE", help="report only what this file does not hold")
    change.add_argument("--write-baseline", metavar="FILE", help="keep today's findings in this file")
    kernel = parser.add_argument_group("for which launch")
    kernel.add_argument(
        "--prove", action="store_true", help="run the reference to show the launch at which each error happens"
    )
    kernel.add_argument("--plot", metavar="FILE", help="with --prove: draw those launches, as SVG")
    kernel.add_argument(
        "--kernel", type=kernel_name, metavar="K", help="only this kernel (K1+K2: these, and their fusion)"
    )
    add_order(kernel)
    kernel.add_argument(
        "--target", action="append", metavar="CARDS", help="cards to check residency and memory for: h200,a100"
    )
    add_set(kernel, "fix a constant, an extent or an integer parameter")
    run = parser.add_argument_group("configuration and running")
    run.add_argument("--config", metavar="FILE", help="read this configuration instead of the nearest phobos.toml")
    run.add_argument("--isolated", action="store_true", help="read no configuration")
    run.add_argument("--show-settings", action="store_true", help="print the configuration of each file and stop")
    run.add_argument("--show-files", action="store_true", help="print the files that would be checked and stop")
    run.add_argument("--stdin-filename", metavar="NAME", help="the name standard input is reported by")
    run.add_argument("--watch", action="store_true", help="check again whenever a file changes")
    run.add_argument("--jobs", type=positive, metavar="N", help="processes (default: by the number of files and cores)")


@value
class Checked:
    """A source with its findings: those to be shown, those below the severity, how many of these are grave enough to
    fail the check, how many findings were known, and whether any fails it."""

    source: Source
    shown: tuple[Diagnostic, ...]
    hidden: tuple[Diagnostic, ...]
    failing: int
    baselined: int
    fails: bool
    configuration: Configuration


def run(arguments: argparse.Namespace) -> int:
    settle(arguments)
    if arguments.watch:
        from phobos.cli.watch import watch

        return watch(arguments)
    return check_once(arguments)


def check_once(arguments: argparse.Namespace) -> int:
    """One round over all files: read, check, change or print; the exit code."""
    configuration_of = configurations(arguments)
    if arguments.show_settings or arguments.show_files:
        return _show(arguments, configuration_of)
    sources, unreadable = sources_of(arguments, configuration_of)
    if unreadable and not sources:
        return 2
    written = {
        "--output-file": arguments.output_file, "--write-baseline": arguments.write_baseline, "--plot": arguments.plot,
    }  # fmt: skip
    if any(written.values()):
        files_apart({option: path for option, path in written.items() if path}, [source.name for source in sources])
    if arguments.fix or arguments.diff:
        from phobos.cli.change import fix

        sources, code = fix(arguments, sources, configuration_of)
        if arguments.diff:
            return 2 if unreadable else code
    otherwise: Severity = "info" if arguments.output_format in _FORMATS_WITH_NOTES else "warning"
    checked = check_all(sources, configuration_of, otherwise, arguments.jobs)
    if arguments.prove:
        from phobos.cli.proving import with_proofs

        checked = with_proofs(checked, arguments.plot)
    if arguments.write_baseline:
        from phobos.cli.change import write_baseline

        code = write_baseline(arguments.write_baseline, checked)
        return 2 if unreadable else code
    if arguments.add_ignore:
        from phobos.cli.change import add_ignore

        code = add_ignore(checked, arguments.exit_zero)
        return 2 if unreadable else code
    problems = _configuration_findings(sources, configuration_of, otherwise)
    emit(arguments, report_text(arguments, checked, problems))
    if unreadable:
        return 2
    fails = any(one.fails for one in checked) or any(one.fails for one in problems)
    return 1 if fails and not arguments.exit_zero else 0


# --- what was asked for -------------------------------------------------------------------------------


def settle(arguments: argparse.Namespace) -> None:
    """Fill in what depends on the surroundings, and refuse what cannot be meant."""
    for option in ("select", "extend_select", "ignore"):
        words = words_of(getattr(arguments, option) or ())
        for word in words:
            if registry.expand(word) is None:
                near = registry.nearest(word)
                hint = f"did you mean `{near}`?" if near else "`phobos rule --all` lists them"
                raise InputError(f"--{option.replace('_', '-')}: no rule is called `{word}`; {hint}")
        setattr(arguments, option, words)
    arguments.target = words_of(arguments.target or ())
    if arguments.config and arguments.isolated:
        raise InputError("--config and --isolated exclude each other")
    if arguments.statistics and arguments.output_format in ("github", "gitlab", "junit", "sarif"):
        raise InputError(f"--statistics counts, and {arguments.output_format} lists findings: leave one of them out")
    if arguments.output_format is None:
        arguments.output_format = (
            "full" if sys.stdout.isatty() and not arguments.output_file
            else "github" if os.environ.get("GITHUB_ACTIONS") == "true"
            else "concise"
        )  # fmt: skip
    if arguments.unsafe_fixes and not (arguments.fix or arguments.diff):
        raise InputError("--unsafe-fixes says what --fix and --diff may do as well; give one of them")
    if arguments.plot is not None and not arguments.prove:
        raise InputError("--plot draws what --prove shows; give both")
    if arguments.write_baseline and arguments.baseline:
        raise InputError("--write-baseline keeps all of today's findings, and --baseline leaves some out; give one")
    if arguments.write_baseline and arguments.add_ignore:
        raise InputError("--write-baseline and --add-ignore both silence today's findings; give one")
    for option in ("write_baseline", "add_ignore", "prove", "output_file") if arguments.diff else ():
        if getattr(arguments, option):
            also = f"--{option.replace('_', '-')}"
            raise InputError(f"--diff shows what --fix would change and does nothing else: leave {also} out")
    if arguments.prove and (arguments.write_baseline or arguments.add_ignore):
        raise InputError("--prove explains findings, which --write-baseline and --add-ignore do not print; give one")
    order_for(arguments)
    if "-" in arguments.paths and len(arguments.paths) > 1:
        raise InputError("standard input (`-`) cannot be checked together with files")
    if "-" in arguments.paths and (arguments.add_ignore or arguments.watch):
        raise InputError("--add-ignore and --watch need files, not standard input")


class configurations:
    """The configuration of a file with the options laid over it, kept by what was read."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.fixed = from_file(arguments.config) if arguments.config else DEFAULT if arguments.isolated else None
        self.known: dict[Configuration, Configuration] = {}

    def __call__(self, path: str) -> Configuration:
        read = self.fixed if self.fixed is not None else of_file(path)
        if read not in self.known:
            self.known[read] = self._overlay(read)
        return self.known[read]

    def _overlay(self, read: Configuration) -> Configuration:
        a = self.arguments
        sizes = dict(read.sizes) | dict(a.set)
        target = a.target or read.target
        if a.target:
            from phobos.codegen.cards import UnknownTarget
            from phobos.codegen.cards import target as card

            for name in target:
                try:
                    card(name)
                except UnknownTarget as error:
                    raise InputError(f"--target: {error}") from None
        return replace(
            read,
            select=a.select or read.select,
            extend_select=read.extend_select + a.extend_select,
            ignore=read.ignore + a.ignore,
            severity=a.severity or read.severity,
            fail_on=a.fail_on or read.fail_on,
            target=tuple(target),
            measure=bool(target),
            sizes=tuple(sorted(sizes.items())),
            constants=tuple(sorted(dict(a.set).items())),
            baseline=None if a.write_baseline else a.baseline or read.baseline,  # what is written holds all of today
            kernel=a.kernel,
            order=a.order or "ask",
        )


def sources_of(arguments: argparse.Namespace, configuration_of: configurations) -> tuple[list[Source], bool]:
    """What is to be checked; whether a file could not be read (said on stderr, the others are checked)."""
    from phobos.cli import complain

    if arguments.paths == ["-"]:
        return [read_stdin(arguments.stdin_filename or "-")], False
    paths = arguments.paths or ["."]
    names = find(paths, configuration_of)
    if not names:
        raise InputError(f"no .ph files under {', '.join(paths)}")
    sources: list[Source] = []
    unreadable = False
    for name in names:
        try:
            sources.append(read(name))
        except InputError as error:
            complain(str(error))
            unreadable = True
    return sources, unreadable


def _show(arguments: argparse.Namespace, configuration_of: configurations) -> int:
    names = (
        [arguments.stdin_filename or "-"]
        if arguments.paths == ["-"]
        else find(arguments.paths or ["."], configuration_of)
    )
    if arguments.show_files:
        from phobos.check.render.text import shown_name

        sys.stdout.write("".join(shown_name(name) + "\n" for name in names))
        return 0
    shown: Configuration | None = None
    for name in names or ["."]:
        configuration = configuration_of(name)
        if configuration is not shown:
            print(settings_text(name, configuration), end="")
        shown = configuration
    return 0


def settings_text(name: str, configuration: Configuration) -> str:
    """The configuration of a file in the form it could be written in `phobos.toml`."""
    import json

    from phobos.check.render.text import clean

    c = configuration
    table = {
        "select": list(c.select), "extend-select": list(c.extend_select), "ignore": list(c.ignore),
        "severity": c.severity or "warning", "fail-on": c.fail_on, "target": list(c.target),
        "baseline": c.baseline or "", "known-functions": list(c.known_functions), "line-length": c.line_length,
        "exclude": list(c.exclude),
    }  # fmt: skip
    lines = [f"# {clean(name)}: {c.source or 'no configuration file, the defaults'}"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    sizes = ", ".join(f"{key} = {number}" for key, number in c.sizes)
    lines.append(f"sizes = {{ {sizes} }}" if sizes else "sizes = {}")
    globs = ", ".join(f"{json.dumps(glob)} = {json.dumps(list(words))}" for glob, words in c.per_file_ignores)
    lines.append(f"per-file-ignores = {{ {globs} }}" if globs else "per-file-ignores = {}")
    return "\n".join(lines) + "\n"


# --- checking -----------------------------------------------------------------------------------------


def check_all(
    sources: list[Source], configuration_of: configurations, otherwise: Severity, jobs: int | None = None
) -> list[Checked]:
    """All sources in order, in several processes when there are many. `otherwise`: the least to show, unless set."""
    work = [(source, configuration_of(source.name)) for source in sources]
    for configuration in {c for _, c in work}:
        _ensure_kernel_exists(configuration, sources)
        _ensure_names_exist(configuration, sources)
    if jobs is None:
        jobs = min(os.cpu_count() or 1, len(work) // 24) if len(work) >= 48 else 1
    progress = Progress(len(work), "files checked")
    found: list[list[Diagnostic]] = []

    def gather(results: Iterable[list[Diagnostic]]) -> None:
        for result in results:
            found.append(result)
            progress.step()

    if jobs > 1 and len(work) > 1:
        from concurrent.futures import ProcessPoolExecutor

        from phobos.processes import shield

        shield()
        with ProcessPoolExecutor(min(jobs, len(work))) as pool:
            gather(pool.map(_findings, work, chunksize=max(1, len(work) // (jobs * 8))))
    else:
        gather(map(_findings, work))
    progress.end()
    return [_sorted_out(source, c, told, otherwise) for (source, c), told in zip(work, found, strict=True)]


def _findings(work: tuple[Source, Configuration]) -> list[Diagnostic]:
    from phobos.check.engine import findings

    source, configuration = work
    try:
        return findings(source.name, source.text, configuration)
    except Exception as error:
        error.add_note(f"This happened while {source.name} was checked. It is a bug of Phobos tools: please report it.")
        raise


def _sorted_out(source: Source, configuration: Configuration, found: list[Diagnostic], otherwise: Severity) -> Checked:
    everything = found
    if configuration.baseline:
        from phobos.check.baseline import load

        found = load(configuration.baseline).unknown(source.name, source.text, found)
    least = _RANK[configuration.severity or otherwise]
    shown = tuple(d for d in found if _RANK[d.severity] <= least)
    hidden = tuple(d for d in found if _RANK[d.severity] > least)
    failing = [d for d in found if _RANK[d.severity] <= _RANK[configuration.fail_on]]
    unseen = sum(_RANK[d.severity] > least for d in failing)
    return Checked(source, shown, hidden, unseen, len(everything) - len(found), bool(failing), configuration)


def _ensure_names_exist(configuration: Configuration, sources: list[Source]) -> None:
    """What `--set` names must stand somewhere: a mistyped name would fix nothing."""
    if not configuration.constants:
        return
    import re
    from difflib import get_close_matches

    negative = {name: number for name, number in configuration.constants if number < 0}
    if negative:
        for source in sources:
            for name in sorted(negative.keys() & _extents(source.text)):
                raise InputError(f"--set: `{name}` is an extent of {source.name}, which cannot be {negative[name]}")
    for name, _ in configuration.constants:
        word = re.compile(rf"\b{re.escape(name)}\b")
        if not any(word.search(source.text) for source in sources):
            known = {n for source in sources for n in re.findall(r"\b[A-Z]\w*\b", source.text)}
            near = get_close_matches(name, known, 1)
            hint = f"; did you mean `{near[0]}`?" if near else ""
            raise InputError(f"--set: no kernel has a constant, extent or parameter called `{name}`{hint}")


def _extents(text: str) -> set[str]:
    """The names that stand as extents of tensor parameters."""
    from phobos.syntax import parse, tree

    items = [item.node for _, item in parse(text).items]
    types = [p.type for node in items if isinstance(node, tree.Kernel | tree.Function) for p in node.params]
    dims = [dim for one in types if isinstance(one, tree.TensorType) for dim in one.dims]
    return {dim.text for dim in dims if isinstance(dim, tree.Name)}


def _ensure_kernel_exists(configuration: Configuration, sources: list[Source]) -> None:
    if configuration.kernel is None:
        return
    import re
    from difflib import get_close_matches

    names = {n for source in sources for n in re.findall(r"^[^/\n]*\bkernel\s+(\w+)", source.text, re.MULTILINE)}
    for kernel in configuration.kernel.split("+"):
        if kernel not in names:
            near = get_close_matches(kernel, names, 1)
            hint = f"did you mean `{near[0]}`?" if near else "there are: " + (", ".join(sorted(names)) or "none")
            raise InputError(f"--kernel: no kernel is called `{kernel}`; {hint}")


# --- printing -----------------------------------------------------------------------------------------


def report_text(arguments: argparse.Namespace, checked: list[Checked], problems: list[Checked]) -> str:
    from phobos.check.render import Listing, Report, render
    from phobos.syntax.lines import LineIndex

    everything = [*problems, *checked]
    if arguments.statistics:
        from phobos.cli.statistics import table

        return table(everything, arguments.output_format)
    listings = tuple(
        Listing(one.source.name, one.source.text, LineIndex(one.source.text), one.shown) for one in everything
    )
    colour = use_colour() and not arguments.output_file
    report = Report(
        listings, len(checked), tuple(d for one in everything for d in one.hidden),
        0 if arguments.exit_zero else sum(one.failing for one in everything),
        sum(one.baselined for one in checked), colour, arguments.prove,
    )  # fmt: skip
    return render(report, arguments.output_format)


def _configuration_findings(
    sources: list[Source], configuration_of: configurations, otherwise: Severity
) -> list[Checked]:
    """What is wrong with the configuration files themselves, each once."""
    out: list[Checked] = []
    seen: set[str] = set()
    for source in sources:
        configuration = configuration_of(source.name)
        if configuration.problems and configuration.source and configuration.source not in seen:
            seen.add(configuration.source)
            name = os.path.relpath(configuration.source)
            wanted = [d for d in configuration.problems if d.code in configuration.enabled()]
            without = replace(configuration, baseline=None)
            out.append(_sorted_out(Source(name, configuration.text), without, wanted, otherwise))
    return out


def emit(arguments: argparse.Namespace, text: str) -> None:
    """Print a report, or put it where `--output-file` says."""
    if arguments.output_file:
        write(arguments.output_file, text)
    elif arguments.fix and arguments.paths == ["-"]:
        sys.stderr.write(text)  # standard output holds the mended text
    elif arguments.output_format in ("full", "concise"):
        sys.stdout.write(text)
    else:
        document(text)
