"""Good kernels with one thing broken, and who notices: the checker, the launch, the reference runtime, the result.

`all_mutants` breaks every kernel of `examples/` and `tests/corpus/` (but the one that is there to hang) in each way
of `BREAKS`, at up to `PLACES` places each. `judged` runs the `// run:` headers of the file on a mutant, then the same
with other contents, sizes and grids beside the good kernel. One that nobody notices must stand in `EQUIVALENT` with
the reason; one where the reference runtime shows a deadlock, a race or an uninitialised read and the checker has no
word is a miss.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from phobos.check import findings
from phobos.check.configuration import DEFAULT
from phobos.errors import PhobosError
from phobos.language.scalars import FLOATS
from phobos.runtime.binding import barrier_tensors
from phobos.runtime.headers import Run, runs_of
from phobos.runtime.kernel import Kernels
from phobos.runtime.session import Request, perform
from phobos.semantics.values import written_tensors
from tests.truth.equivalent import EQUIVALENT

ROOT = Path(__file__).parents[2]
PLACES = 2
AT_LAUNCH = ("aligned-broken", "not-resident", "grid-too-large", "bad-barrier-tensor")
SILENT = ("PH112", "PH113", "PH6", "PH9")  # of style, whatever is broken
SAY = ("deadlock", "race", "uninitialised")  # faults of which the checker must have a word
FATES = ("checker", "launch", "reference", "result", "survived")


@dataclass(frozen=True)
class Mutant:
    """`path` of the good kernel, how and in which line it was broken, and the text that came of it."""

    path: str
    how: str
    line: int
    text: str


@dataclass(frozen=True)
class Fate:
    """Who noticed first (of `FATES`), by which codes, fault or expectation; `gave_up`: by PH506 or PH508 alone.

    `missed` is the fault that the checker has no word of.
    """

    by: str
    said: str
    gave_up: bool
    missed: str


def good_kernels() -> list[Path]:
    return [
        path
        for path in [*sorted((ROOT / "examples").glob("*.ph")), *sorted((ROOT / "tests/corpus").glob("*.ph"))]
        if path.stem != "hang"
    ]


def all_mutants() -> Iterator[Mutant]:
    for path in good_kernels():
        yield from mutants_of(path)


def mutants_of(path: Path, places: int = PLACES) -> Iterator[Mutant]:
    """The mutants of one file, the same ones each time."""
    text = path.read_text("utf-8")
    seen = {text}
    for how, break_ in BREAKS.items():
        made = [(line, broken) for line, broken in break_(text.splitlines()) if broken not in seen]
        for line, broken in random.Random(f"{path.stem} {how}").sample(made, min(places, len(made))):
            if broken not in seen:
                seen.add(broken)
                yield Mutant(str(path.relative_to(ROOT)), how, line, broken)


# --- ways to break a kernel -------------------------------------------------------------------------------------

Broken = Iterator[tuple[int, str]]


def _with(lines: list[str], at: int, *replaced: str, until: int | None = None) -> tuple[int, str]:
    changed = [*lines[:at], *replaced, *lines[at + 1 if until is None else until :]]
    return at + 1, "\n".join(changed) + "\n"


def _code(lines: list[str]) -> Iterator[tuple[int, str]]:
    return ((at, line) for at, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("//"))


def _barriers(lines: list[str]) -> Iterator[int]:
    return (at for at, line in _code(lines) if line.strip().startswith("grid_barrier("))


def _drop_barrier(lines: list[str]) -> Broken:
    for at in _barriers(lines):
        yield _with(lines, at)


def _move_barrier(lines: list[str]) -> Broken:
    for at in _barriers(lines):
        for beside in (at - 1, at + 1):
            low, high = sorted((at, beside))
            if high < len(lines):
                yield at + 1, _with(lines, low, lines[high], lines[low], until=high + 1)[1]


def _guard_barrier(lines: list[str]) -> Broken:
    for at in _barriers(lines):
        yield _with(lines, at, "if ctx.block.x == 0 {", lines[at], "}")


def _swap_buffers(lines: list[str]) -> Broken:
    tensors = re.findall(r"(\w+): (tensor<\w+>\[[^\]]*\])", "\n".join(line for _, line in _code(lines)))
    for at, line in _code(lines):
        for name, type_ in tensors:
            for other, same in tensors:
                if other != name and same == type_ and re.search(rf"\b{name}\[", line):
                    yield _with(lines, at, re.sub(rf"\b{name}\[", f"{other}[", line, count=1))


def _shift_index(lines: list[str]) -> Broken:
    for at, line in _code(lines):
        for found in re.finditer(r" :\+ ", line):
            yield _with(lines, at, line[: found.start()] + " + 1" + line[found.start() :])
        for found in re.finditer(r"\b[A-Z]\w*\[\w+\]", line):
            yield _with(lines, at, line[: found.end() - 1] + " + 1" + line[found.end() - 1 :])


def _change_stride(lines: list[str]) -> Broken:
    for at, line in _code(lines):
        found = re.match(r"(\s*for .* in range\([^,]+,[^,]+, )([^,]+)(\) \{)$", line)
        if found is not None:
            for step in (f"({found[2]}) * 2", f"({found[2]}) + 1"):
                yield _with(lines, at, found[1] + step + found[3])


def _remove_persistent(lines: list[str]) -> Broken:
    for at, line in _code(lines):
        if line.strip() == "@persistent":
            yield _with(lines, at)


def _add_axis(lines: list[str]) -> Broken:
    for at, line in _code(lines):
        if "ctx.block.x" in line:
            yield _with(lines, at, line.replace("ctx.block.x", "(ctx.block.x + ctx.block.y)", 1))


def _shrink_barrier(lines: list[str]) -> Broken:
    names = {lines[at].strip()[len("grid_barrier(") :].split(")")[0] for at in _barriers(lines)}
    for at, line in _code(lines):
        for name in names:
            if re.search(rf"\b{name}: tensor<i32>\[\w+", line):
                yield _with(lines, at, re.sub(rf"(\b{name}: tensor<i32>\[)\w+", r"\g<1>1", line))


def _break_promise(lines: list[str]) -> Broken:
    for at, line in _code(lines):
        if line.startswith("@aligned("):
            for found in re.finditer(r"(\w+) = (\w+)", line):
                for wrong in ("7", "4096"):
                    yield _with(lines, at, line[: found.start(2)] + wrong + line[found.end(2) :])


BREAKS: dict[str, Callable[[list[str]], Broken]] = {
    "drop a barrier": _drop_barrier,
    "move a barrier": _move_barrier,
    "put a barrier under a condition": _guard_barrier,
    "swap buffers": _swap_buffers,
    "shift an index": _shift_index,
    "change a stride": _change_stride,
    "remove @persistent": _remove_persistent,
    "add an axis": _add_axis,
    "shrink the barrier tensor": _shrink_barrier,
    "break a promise": _break_promise,
}


# --- who notices ------------------------------------------------------------------------------------------------


def judged(mutant: Mutant) -> Fate:
    """Checker and runs; who comes first in `FATES` has noticed."""
    found = findings(mutant.path, mutant.text, DEFAULT)
    codes = sorted({d.code for d in found if d.severity != "info" and not d.code.startswith(SILENT)})
    gave_up = sorted({d.code for d in found if d.severity == "info" and d.code in ("PH506", "PH508")})
    if codes:
        return Fate("checker", ", ".join(codes), False, "")
    by, said = _run(mutant)
    if by == "survived":
        by, said = _beside_the_good_one(mutant)
    missed = said if by == "reference" and said.startswith(SAY) and not gave_up else ""
    return Fate(by, said, bool(gave_up), missed)


def _run(mutant: Mutant) -> tuple[str, str]:
    try:
        kernels = Kernels(mutant.path, mutant.text)
        runs = runs_of(mutant.path, mutant.text)
        for header in runs:
            for scheduler in (None, "adversarial") if "atomic_" in mutant.text else (None,):
                report = perform(_request(kernels, header, scheduler))
                if report.findings:
                    return "checker", ", ".join(sorted({d.code for d in report.findings}))
                if report.fault is not None:
                    kind, message = report.fault.kind, report.fault.message
                    return ("launch" if kind in AT_LAUNCH else "reference"), f"{kind}: {message}"
                unmet = [one.said for one in report.judged if one.met is False]
                if unmet:
                    return "result", unmet[0]
    except PhobosError as error:
        return "launch", str(error)
    return "survived", ""


def _beside_the_good_one(mutant: Mutant) -> tuple[str, str]:
    """Both kernels with other contents, sizes and grids: who notices where the good one runs."""
    good = Kernels(mutant.path, (ROOT / mutant.path).read_text("utf-8"))
    broken = Kernels(mutant.path, mutant.text)
    for header in runs_of(mutant.path, mutant.text):
        for launch in _others(header, good):
            written = written_tensors(good.one(launch.kernel).analysed()[1].program)
            was = _left(good, launch, written)
            if isinstance(was, str):
                continue  # a launch that nobody promised
            now = _left(broken, launch, written)
            at = " ".join(f"{name}={value}" for name, value in (launch.names | launch.options).items())
            if isinstance(now, str):
                return ("reference" if now.startswith(SAY) else "launch"), f"{now} with {at}"
            for name, array in was.items():
                if not np.allclose(array, now[name], rtol=1e-5, atol=1e-6, equal_nan=True):
                    return "result", f"another {name} with {at}"
    return "survived", ""


def _left(kernels: Kernels, launch: Run, written: frozenset[str]) -> dict[str, np.ndarray] | str:
    """What a launch leaves in those tensors, or why there is nothing."""
    with TemporaryDirectory() as folder:
        paths = {name: str(Path(folder) / f"{name}.npy") for name in written}
        try:
            report = perform(replace(_request(kernels, launch, None), outputs=paths))
        except PhobosError as error:
            return str(error)
        if report.fault is not None:
            return f"{report.fault.kind}: {report.fault.message}"
        if report.findings:
            return "refused by the checker"
        return {name: np.load(path) for name, path in paths.items()}


def _others(header: Run, good: Kernels) -> Iterator[Run]:
    """The launch of a header with other contents, on other grids, with all extents shorter and longer."""
    program = good.one(header.kernel).analysed()[1].program
    floats = {name for name, tensor in program.tensors.items() if tensor.dtype in FLOATS}
    inputs = floats - written_tensors(program)
    changes = (lambda n: n, lambda n: n - 1, lambda n: n // 2, lambda n: n * (60 if n < 8 else 5))
    for number, change in enumerate(changes):
        sizes = {name: str(change(int(text))) for name, text in header.names.items() if name in program.dims}
        for grid, seed in ((None, 3), ("3", number)):
            options = header.options if grid is None else header.options | {"grid": grid}
            filled = {
                name: f"random:seed={seed}" if (name in floats and text in ("ones", "iota")) or name in inputs else text
                for name, text in header.names.items()
            }
            yield Run(header.line, header.kernel, options, filled | sizes, ())


def unexplained(mutants: list[Mutant], fates: list[Fate]) -> list[str]:
    """Survivors that `EQUIVALENT` does not name, and names of mutants that did not survive."""
    survived = {name_of(mutant) for mutant, fate in zip(mutants, fates, strict=True) if fate.by == "survived"}
    others = {name_of(mutant) for mutant in mutants} - survived
    found = [f"survived, and nobody says why: {name}" for name in sorted(survived - EQUIVALENT.keys())]
    return found + [f"noticed, though called equivalent: {name}" for name in sorted(others & EQUIVALENT.keys())]


def name_of(mutant: Mutant) -> str:
    """The file, the line, the way of breaking, and how the first line that is another begins."""
    good = (ROOT / mutant.path).read_text("utf-8").splitlines()
    broken = mutant.text.splitlines()
    at = next((at for at, (a, b) in enumerate(zip(good, broken)) if a != b), min(len(good), len(broken)) - 1)
    return f"{mutant.path}:{mutant.line}: {mutant.how}: {broken[at].strip()[:50]}"


def _request(kernels: Kernels, header: Run, scheduler: str | None) -> Request:
    options = header.options
    grid = tuple(int(part) for part in options["grid"].split(",")) if options.get("grid", "auto") != "auto" else None
    kernel = kernels.one(header.kernel)
    # A tensor that lost its barrier is still passed, so that what the barrier kept apart can be seen to meet.
    unused = {name: "zeros" for name, tensor in kernel.analysed()[1].program.tensors.items() if tensor.dtype == "i32"}
    barriers = barrier_tensors(kernel.analysed()[1].program)
    return Request(
        kernel=kernel,
        names={name: fill for name, fill in unused.items() if name not in barriers} | header.names,
        directory=str(ROOT),
        command_line=frozenset(),
        outputs={},
        device="cpu",
        grid=grid,
        resident=int(options["resident"]) if "resident" in options else None,
        schedule=None,
        l2_group=None,
        keep=True,
        repeat=1,
        timeout=20.0,
        debug=False,
        unchecked=False,
        scheduler=scheduler,
        seed=int(options.get("seed", "0")),
        detect=("races",),
        plan_only=False,
        verify=False,
        tuned=False,
        expectations=header.expectations,
    )


def table(mutants: list[Mutant], fates: list[Fate]) -> str:
    """Who noticed what, by way of breaking; then what the checker missed, and what nobody noticed."""
    counts: dict[str, Counter[str]] = {how: Counter() for how in BREAKS}
    for mutant, fate in zip(mutants, fates, strict=True):
        counts[mutant.how][fate.by] += 1
        counts[mutant.how]["gave up"] += fate.gave_up and fate.by == "reference"
    lines = [
        "| broken | mutants | checker | launch | reference | of these PH506/PH508 | wrong result | survived |",
        "|---|---|---|---|---|---|---|---|",
    ]
    whole: Counter[str] = sum(counts.values(), Counter())
    for how, count in [*counts.items(), ("**all**", whole)]:
        numbers = [count["checker"], count["launch"], count["reference"], count["gave up"], count["result"]]
        total = sum(count[by] for by in FATES)
        lines.append(f"| {how} | {total} | {' | '.join(map(str, numbers))} | {count['survived']} |")
    missed = [
        f"- {mutant.path}:{mutant.line}, {mutant.how}: {' '.join(fate.missed.split())}"
        for mutant, fate in zip(mutants, fates, strict=True)
        if fate.missed
    ]
    survived = [
        f"- {mutant.path}:{mutant.line}, {mutant.how}: {EQUIVALENT.get(name_of(mutant), '**nobody says why**')}"
        for mutant, fate in zip(mutants, fates, strict=True)
        if fate.by == "survived"
    ]
    lines += ["", f"Faults that the checker has no word of: {len(missed)}.", "", *missed]
    lines += ["", f"Survived, with the reason why nothing changes: {len(survived)}.", "", *survived]
    return "\n".join(lines)
