"""The benchmark suite: every script that can run here, one table, compared with what this machine measured last.

`phobos bench` calls `run`. A script runs in a process of its own and hands over figures of one shape (`figures.py`);
one that fails is a line of the report and not the end. Results are kept for each machine in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from figures import Figure, cells, figure_of, number, shown  # noqa: E402

from phobos.files import put  # noqa: E402

LIMIT_S = 1800.0
NOISE = 0.1  # a change smaller than this is none
KEPT = 20  # runs of a machine


@dataclass(frozen=True)
class Part:
    """One script. `quick` are its arguments where little time is to be spent; `needs` is a package that it cannot do
    without, and the extra that it comes with."""

    name: str
    script: str
    about: str
    arguments: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()
    needs_gpu: bool = False
    needs: tuple[str, str] | None = None


PARTS = (
    Part("start", "start.py", "start of check and run", (), ("--rounds", "3")),
    Part("frontend", "frontend.py", "parse, semantics, check; growth; edits", (), ("--lines", "200", "--repeat", "1")),
    Part("lsp", "lsp.py", "the language server in an editing session", (), ("--quick", "--keys", "40")),
    Part("reference", "reference.py", "the reference runtime against NumPy", (), ("--only", "saxpy")),
    Part(
        "cluster",
        "cluster.py",
        "two GPUs against one, or two processes of the reference runtime",
        (),
        ("--quick",),
        needs=("distributed", "cluster"),
    ),
    Part("barrier", "barrier.py", "grid barriers and stages between them", needs_gpu=True),
    Part("stream", "stream.py", "kernels that move memory", needs_gpu=True),
    Part("gemm", "gemm.py", "products", needs_gpu=True),
    Part("headers", "headers.py", "products by NVIDIA's header libraries", (), ("--no-compile",), needs_gpu=True),
    Part("attention", "attention.py", "attention", needs_gpu=True),
    Part("schedules", "schedules.py", "ordinary kernels by persistent workers", needs_gpu=True),
    Part("fusions", "fusions.py", "several kernels as one launch", needs_gpu=True),
    Part("launch", "gpu_launch.py", "what a launch costs the host", needs_gpu=True),
)


@dataclass
class Result:
    """What became of a part: figures, or why there are none (`skipped`, `failed`)."""

    name: str
    title: str = ""
    machine: dict[str, str] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    skipped: str = ""
    failed: str = ""
    before: dict[str, float] = field(default_factory=dict)  # by the name of a figure
    before_date: str = ""  # of the run that `before` is from
    kept: str = ""  # the file that the next run is compared with


def chosen(names: Sequence[str], parts: Sequence[Part] = PARTS) -> list[Part]:
    """The parts called so, in the order of the suite; all without names. Raises ValueError."""
    known = {part.name for part in parts}
    for name in names:
        if name not in known:
            raise ValueError(f"there is no benchmark `{name}`: choose {', '.join(part.name for part in parts)}")
    return [part for part in parts if not names or part.name in names]


def run(parts: Sequence[Part], *, quick: bool, gpu: tuple[bool, str], say: Callable[[str], None]) -> Iterator[Result]:
    """Run the parts one after another. `gpu` is whether a card answers, and what to say if not."""
    for part in parts:
        if part.needs_gpu and not gpu[0]:
            yield Result(part.name, skipped=gpu[1])
            continue
        if part.needs is not None and find_spec(part.needs[0]) is None:
            package, extra = part.needs
            yield Result(part.name, skipped=f"`{package}` is not installed (pip install 'phobos-tools[{extra}]')")
            continue
        say(f"{part.name}: {part.about}")
        yield one(part, quick=quick)


def one(part: Part, *, quick: bool) -> Result:
    words = part.quick if quick and part.quick else part.arguments
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figures.json"
        paths = [str(HERE.parent), str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
        command = [sys.executable, str(HERE / part.script), *words, "--json", str(path)]
        with tempfile.TemporaryFile() as said:
            child = subprocess.Popen(
                command, cwd=HERE.parent, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                stdout=said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            try:
                code = child.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                return Result(part.name, failed=f"it took longer than {LIMIT_S:g} s")
            finally:
                child.kill()
                child.wait()
            said.seek(0)
            lines = said.read().decode("utf-8", "replace").strip().splitlines()
        if code or not path.is_file():
            return Result(part.name, failed=f"exit code {code}: {lines[-1] if lines else 'it said nothing'}")
        kept = json.loads(path.read_text(encoding="utf-8"))
    if "skipped" in kept:
        return Result(part.name, skipped=kept["skipped"])
    return Result(
        part.name, kept["title"], kept["machine"], [figure_of(one) for one in kept["figures"]], kept["tables"]
    )


# --- what this machine measured before -------------------------------------------------------------------------


def history_file(root: Path, machine: dict[str, str], quick: bool) -> Path:
    """Of a machine: by what its figures hang on, and not on the day or the load."""
    lasting = {key: text for key, text in machine.items() if key not in ("date", "load", "command")}
    digest = hashlib.sha256(json.dumps([lasting, quick], sort_keys=True).encode()).hexdigest()[:16]
    return root / "bench" / f"{digest}.json"


def compared(root: Path, results: Sequence[Result], *, quick: bool) -> None:
    """Fill in what each part measured here the last time, and keep what it measured now."""
    for result in results:
        if not result.figures:
            continue
        path = history_file(root, result.machine, quick)
        try:
            runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
            last = next((r for r in reversed(runs) if r["part"] == result.name), None)
            if last is not None:
                result.before = {f["name"]: float(f["value"]) for f in last["figures"]}
                result.before_date = last["machine"].get("date", "an unknown day")
        except (OSError, ValueError, KeyError, TypeError):
            runs = []
        kept = {"part": result.name, "machine": result.machine, "figures": [asdict(one) for one in result.figures]}
        text = json.dumps({"runs": [*runs, kept][-KEPT * len(PARTS) :]}, indent=1).encode()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            put(str(path), lambda stream, text=text: stream.write(text))  # type: ignore[misc]
            result.kept = str(path)
        except OSError as error:
            print(f"these results are not kept: {error}", file=sys.stderr)


# --- what is printed -------------------------------------------------------------------------------------------


def as_dict(result: Result) -> dict[str, Any]:
    return {
        "part": result.name, "title": result.title, "machine": result.machine, "skipped": result.skipped,
        "failed": result.failed, "before_date": result.before_date or None, "kept": result.kept or None,
        "figures": [
            {**asdict(one), "met": one.is_met, "before": result.before.get(one.name)} for one in result.figures
        ],
    }  # fmt: skip


def missed(results: Sequence[Result]) -> list[tuple[Result, Figure]]:
    return [(result, one) for result in results for one in result.figures if one.is_met is False]


def markdown(results: Sequence[Result]) -> str:
    """The tables, a part each, with the machine and the day."""
    out = []
    for result in results:
        if not result.figures:
            continue
        script = next(part.script for part in PARTS if part.name == result.name)
        out.append(f"### {result.title} (`python benchmarks/{script}`)\n")
        out.append(", ".join(f"{key} {text}" for key, text in result.machine.items() if key != "command") + ".\n")
        out.append(shown(result.figures, result.tables))
    return "\n".join(out).rstrip() + "\n"


def text(results: Sequence[Result]) -> str:
    """For a terminal: the same, and what changed since the last time."""
    out: list[str] = []
    for result in results:
        if result.skipped:
            out += [f"{result.name}: skipped, {result.skipped}", ""]
            continue
        if result.failed:
            out += [f"{result.name}: FAILED, {result.failed}", ""]
            continue
        out.append(f"{result.title} ({', '.join(f'{k} {v}' for k, v in result.machine.items() if k != 'command')})")
        lines = [(*cells(one), change(one, result.before)) for one in result.figures]
        widths = [max(len(line[i]) for line in lines) for i in range(6)]
        out += ["  " + "  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() for line in lines]
        if result.before:
            out.append(f"  compared with the run of {result.before_date} on this machine")
        out.append("")
    over = missed(results)
    for result, one in over:
        out.append(f"budget missed: {result.name}: {one.name}: {' '.join(filter(None, cells(one)[1:4]))}")
    if not over and any(one.is_met for result in results for one in result.figures):
        out.append("every budget that was measured is met")
    kept = sorted({result.kept for result in results} - {""})
    if kept:
        out.append(f"the next run is compared with these figures, kept in {' and '.join(kept)}")
    return "\n".join(out).rstrip() + "\n"


def change(one: Figure, before: dict[str, float]) -> str:
    """`was 12 (-20 %)`, where it changed by more than noise."""
    last = before.get(one.name)
    if last is None or not last:
        return ""
    part = one.value / last - 1
    return f"was {number(last)} ({100 * part:+.0f} %)" if abs(part) > NOISE else "as before"


BEGIN, END = "<!-- phobos bench: {} -->", "<!-- end of phobos bench -->"


def put_into(document: str, results: Sequence[Result]) -> str:
    """RESULTS.md with the tables of these parts in place of theirs; behind all where it has none yet."""
    for result in results:
        if not result.figures:
            continue
        begin = BEGIN.format(result.name)
        block = f"{begin}\n{markdown([result])}{END}"
        start = document.find(begin)
        if start < 0:
            document = document.rstrip() + f"\n\n{block}\n"
            continue
        end = document.index(END, start) + len(END)
        document = document[:start] + block + document[end:]
    return document
