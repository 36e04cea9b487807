"""`phobos check` where it changes files: `--fix`, `--diff`, `--add-ignore`, `--write-baseline`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from phobos.check.fixes import add_ignores, fix_all
from phobos.check.project import Source, write
from phobos.check.render.text import enumerate_words
from phobos.check.suppressions import MENDED
from phobos.cli.output import document, unified, with_mark
from phobos.diagnostic import plural
from phobos.syntax.lines import LineIndex

if TYPE_CHECKING:
    from phobos.cli.check import Checked, configurations


def fix(
    arguments: argparse.Namespace, sources: list[Source], configuration_of: configurations
) -> tuple[list[Source], int]:
    """Mend every source; the sources as they are now, and with `--diff` the exit code."""
    mended: list[Source] = []
    counts: dict[str, int] = {}
    changed = 0
    for source in sources:
        fixed = fix_all(source.name, source.text, configuration_of(source.name), arguments.unsafe_fixes)
        for code, number in fixed.counts.items():
            counts[code] = counts.get(code, 0) + number
        if fixed.text != source.text:
            changed += 1
            if arguments.diff:
                document(unified(source.name, source.text, fixed.text))
            elif source.name == "-" or arguments.paths == ["-"]:
                document(with_mark(source, fixed.text))
            else:
                write(source.name, fixed.text, source.bom)
        elif arguments.paths == ["-"] and not arguments.diff:
            document(with_mark(source, source.text))
        mended.append(Source(source.name, fixed.text, source.bom))
    total = sum(counts.values())
    if total:
        listed = enumerate_words(
            [f"{code} x {number}" if number > 1 else code for code, number in sorted(counts.items())]
        )
        verb = "Would fix" if arguments.diff else "Fixed"
        print(f"{verb} {plural(total, 'finding')} in {plural(changed, 'file')}: {listed}.", file=sys.stderr)
    return mended, 1 if changed and arguments.diff and not arguments.exit_zero else 0


def add_ignore(checked: list[Checked], exit_zero: bool) -> int:
    """Silence every finding that is shown and can be; the others are named, and make the exit code 1."""
    total = files = 0
    left: list[str] = []
    for one in checked:
        lines = LineIndex(one.source.text)
        mended = [found for found in one.shown if found.code in MENDED]
        left += [f"{one.source.name}:{lines.line_of(f.span.start) + 1} ({f.code})" for f in mended]
        text = add_ignores(one.source.text, one.shown)
        if text != one.source.text:
            write(one.source.name, text, one.source.bom)
            files += 1
            total += len(one.shown) - len(mended)
    reason = "; write the reason after each bracket" if total else ""
    print(f"Silenced {plural(total, 'finding')} in {plural(files, 'file')}{reason}.")
    if left:
        verb = "is" if len(left) == 1 else "are"
        print(f"To be mended, not silenced, {verb} {plural(len(left), 'finding')}: {enumerate_words(left)}.")
    return 1 if left and not exit_zero else 0


def write_baseline(path: str, checked: list[Checked]) -> int:
    """Keep all that is shown now as known."""
    from phobos.check.baseline import dump

    write(path, dump(path, [(one.source.name, one.source.text, one.shown) for one in checked]))
    print(f"Wrote {plural(sum(len(one.shown) for one in checked), 'finding')} to {path}.")
    return 0
