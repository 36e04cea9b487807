"""The one shape of a figure, whatever measured it: what `phobos bench` collects, compares and prints.

Every script ends with `finish(title, figures)`: that prints their table, and with `--json FILE` keeps them for others.
"""

from __future__ import annotations

import json
import math
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any


@dataclass(frozen=True)
class Figure:
    """`value` in `unit`; `ratio` to what `of` names, measured in the same run. `target` is of the ratio where there is
    one, else of the value; `at_most` says on which side of it the figure should be."""

    name: str
    value: float
    unit: str
    ratio: float | None = None
    of: str = ""
    target: float | None = None
    at_most: bool = True

    @property
    def is_met(self) -> bool | None:
        """None without a target."""
        if self.target is None:
            return None
        figure = self.value if self.ratio is None else self.ratio
        return figure <= self.target if self.at_most else figure >= self.target


def figure_of(kept: dict[str, Any]) -> Figure:
    return Figure(**{name: kept[name] for name in Figure.__dataclass_fields__ if name in kept})


def machine() -> dict[str, str]:
    """What figures of the processor were measured on."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        name = lines[0].partition(":")[2].strip() if lines else name
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return {
        "processor": name, "cores": str(os.cpu_count()), "python": platform.python_version(), "load": load,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }  # fmt: skip


def medians(works: Sequence[Callable[[], Any]], rounds: int, *, warm: int = 0) -> list[float]:
    """Median seconds of each of `works`, called in turns, so that a busy machine slows all of them; `warm` rounds of
    these are not counted."""
    times: list[list[float]] = [[] for _ in works]
    for turn in range(warm + rounds):
        for work, its in zip(works, times):
            begun = perf_counter()
            work()
            if turn >= warm:
                its.append(perf_counter() - begun)
    return [median(its) for its in times]


def number(value: float) -> str:
    """Three figures, or all of a whole number below a million; thousands apart, as people write them: `1 270`."""
    if not math.isfinite(value):
        return str(value)
    whole = value == int(value) and abs(value) < 1e6
    if not whole and abs(value) < 100:
        return f"{value:.3g}"
    return f"{value if whole else float(f'{value:.3g}'):,.0f}".replace(",", " ")


def cells(one: Figure) -> tuple[str, str, str, str, str]:
    """Name, value, ratio, target, and whether it is met, as text."""
    ratio = "" if one.ratio is None else f"{number(one.ratio)} of {one.of}" if one.of else number(one.ratio)
    target = "" if one.target is None else f"{'<=' if one.at_most else '>='} {number(one.target)}"
    mark = "" if one.is_met is None else "met" if one.is_met else "MISSED"
    return one.name, f"{number(one.value)} {one.unit}".strip(), ratio, target, mark


def table(figures: Sequence[Figure]) -> str:
    """A Markdown table."""
    lines = ["| | value | ratio | target | |", "|---|---|---|---|---|"]
    lines += ["| " + " | ".join(cells(one)) + " |" for one in figures]
    return "\n".join(lines) + "\n"


def shown(figures: Sequence[Figure], tables: Sequence[str]) -> str:
    """The Markdown that readers get: the tables and the figures with a target, or without tables all figures."""
    judged = [one for one in figures if one.target is not None] if tables else figures
    return "\n".join([*tables, *([table(judged)] if judged else [])])


def leaves(figures: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[Figure]:
    """Numbers under their keys, of which the outermost is the unit (`{"tflops": {"f32 4096": 37.0}}`); and of a table
    (`{"head": [..], "rows": [..]}`) the cells that were measured, which are the fractions, under the cells before."""
    for key, value in figures.items():
        if isinstance(value, dict) and set(value) == {"head", "rows"}:
            for row in value["rows"]:
                first = next((i for i, cell in enumerate(row) if isinstance(cell, float)), len(row))
                label = " ".join(str(cell) for cell in row[:first])
                for column, cell in zip(value["head"], row):
                    if isinstance(cell, float):
                        yield Figure(f"{key}: {label}: {column}", cell, "")
        elif isinstance(value, dict):
            yield from leaves(value, (*path, key))
        elif isinstance(value, int | float) and path:
            yield Figure(", ".join((*path[1:], key)), float(value), path[0])


def finish(
    title: str, figures: Sequence[Figure], where: dict[str, str] | None = None, tables: Sequence[str] = ()
) -> None:
    """Print the tables and the figures; `--json FILE` on the command line keeps them.

    `tables` are Markdown for readers, where figures stand better than in a line each: then readers get these, and of
    the figures only those with a target.
    """
    where = machine() if where is None else where
    print(f"\n## {title}\n\n" + ", ".join(f"{key} {text}" for key, text in where.items()) + "\n")
    print(shown(figures, tables))
    path = json_path()
    if path is not None:
        kept = {
            "title": title, "machine": where, "figures": [asdict(one) for one in figures], "tables": list(tables),
        }  # fmt: skip
        path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def cannot(why: str) -> None:
    """Instead of `finish`, where a script lacks what it measures with: says so, and is no failure."""
    print(f"not measured: {why}")
    path = json_path()
    if path is not None:
        path.write_text(json.dumps({"skipped": why}) + "\n", encoding="utf-8")


def json_path() -> Path | None:
    """The FILE of `--json FILE`."""
    words = sys.argv
    return Path(words[words.index("--json") + 1]) if "--json" in words[:-1] else None
