"""Lay out .ph files in the one canonical style, which docs/formatting.md describes.

PATHS are .ph files and directories (searched for *.ph, .gitignore respected); `-` is standard input, and the
result goes to standard output. Comments and meaning are kept; a file that does not parse is left as it is.
Exit 0: formatted, or nothing to do. 1: --check or --diff found something to change. 2: a file could not be
read, written or parsed.
"""

from __future__ import annotations

import argparse

from phobos.check.configuration import of_file
from phobos.check.project import Source, find, read, read_stdin, write
from phobos.check.render.text import clean
from phobos.cli import complain
from phobos.cli.output import document, unified, with_mark
from phobos.errors import InputError
from phobos.syntax.format import FormatError, format_range, format_text
from phobos.syntax.lines import LineIndex

EXAMPLE = """
phobos fmt kernels/                     format everything below a directory
phobos fmt --check kernels/             for CI: exit 1 when a file would change
phobos fmt --diff sweep.ph              show what would change
phobos fmt - < sweep.ph                 from standard input to standard output
"""

Lines = tuple[int, int]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files, directories, or - for standard input")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="change nothing; name the files that would change")
    mode.add_argument("--diff", action="store_true", help="change nothing; show what would change")
    parser.add_argument("--lines", type=_lines, metavar="FIRST-LAST", help="only these lines of the one file")
    parser.add_argument(
        "--line-length", type=_line_length, metavar="N", help="wrap lines longer than this (default 120)"
    )
    parser.add_argument(
        "--stdin-filename", metavar="NAME", help="the name standard input is reported and configured by"
    )


def run(arguments: argparse.Namespace) -> int:
    sources, failed = _sources(arguments)
    if arguments.lines and len(sources) + failed != 1:
        raise InputError("--lines needs exactly one file")
    changed = unchanged = 0
    for source in sources:
        try:
            text = _formatted(source, arguments)
        except FormatError as error:
            complain(f"{source.name}:{error}; the file is left as it is")
            failed += 1
            continue
        changed += text != source.text
        unchanged += text == source.text
        if not (arguments.check or arguments.diff):
            if arguments.paths == ["-"]:
                document(with_mark(source, text))
            elif text != source.text:
                write(source.name, text, source.bom)
        elif text != source.text:
            if arguments.diff:
                document(unified(source.name, source.text, text))
            else:
                print(f"would format {clean(source.name)}")
    if arguments.paths != ["-"] and not arguments.diff:
        print(_summary(changed, unchanged, failed, would=arguments.check))
    if failed:
        return 2
    return 1 if changed and (arguments.check or arguments.diff) else 0


def _formatted(source: Source, arguments: argparse.Namespace) -> str:
    length = arguments.line_length or of_file(source.name).line_length
    if not arguments.lines:
        return format_text(source.text, length)
    first, last = arguments.lines
    index = LineIndex(source.text)
    start, end = index.offset(first - 1, 0), index.line_end(min(last, len(index.starts)) - 1)
    text = source.text
    for edit in reversed(format_range(text, start, end, length)):
        text = text[: edit.start] + edit.content + text[edit.end :]
    return text


def _sources(arguments: argparse.Namespace) -> tuple[list[Source], int]:
    """What is to be formatted, and how many files could not be read (each has been told of)."""
    if "-" in arguments.paths:
        if arguments.paths != ["-"]:
            raise InputError("`-` (standard input) excludes other paths")
        return [read_stdin(arguments.stdin_filename or "-")], 0
    sources: list[Source] = []
    failed = 0
    names = find(arguments.paths)
    if not names:
        raise InputError(f"no .ph files under {', '.join(arguments.paths)}")
    for name in names:
        try:
            sources.append(read(name))
        except InputError as error:
            complain(str(error))
            failed += 1
    return sources, failed


def _summary(changed: int, unchanged: int, failed: int, *, would: bool) -> str:
    def files(number: int) -> str:
        return f"{number} file" + "s" * (number != 1)

    parts: list[str] = []
    if changed:
        parts.append(f"{files(changed)} {'would be formatted' if would else 'formatted'}")
    if unchanged:
        parts.append(f"{files(unchanged)} already formatted")
    if failed:
        parts.append(f"{files(failed)} with errors")
    return ", ".join(parts) + "."


def _lines(text: str) -> Lines:
    first, dash, last = text.partition("-")
    if not (first.isdecimal() and (last.isdecimal() or not dash)):
        raise argparse.ArgumentTypeError(f"`{text}` is not FIRST-LAST, like 3-9")
    lines = int(first), int(last or first)
    if not 1 <= lines[0] <= lines[1]:
        raise argparse.ArgumentTypeError(f"`{text}`: lines count from 1, and the first is not after the last")
    return lines


def _line_length(text: str) -> int:
    if not text.isdecimal() or not 20 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number from 20 to 1000")
    return int(text)
