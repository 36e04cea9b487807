"""What an input goes through: parser, formatter, checker, fixes, renderers, editor answers, emitter, reference
runtime, server.

A stage may answer with any of the errors that are made for people; whatever else it raises is a defect, and so is a
text that takes longer than it should. Every input is parsed, formatted and checked; a share goes on to the others.
"""

from __future__ import annotations

import json
import math
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from phobos.check import findings
from phobos.check.fixes import add_ignores, fix_all
from phobos.check.render import FORMATS, render
from phobos.check.render.report import Listing, Report
from phobos.codegen import nvrtc
from phobos.codegen.contract import contract_of
from phobos.codegen.facts import facts_of
from phobos.diagnostic import Diagnostic
from phobos.errors import KernelFault, LaunchError, PhobosError
from phobos.ide.document import Document
from phobos.lowering.options import Options
from phobos.runtime import gate
from phobos.runtime.compiling import lowered_for, spelled
from phobos.runtime.faults import KINDS as FAULTS
from phobos.runtime.given import arguments
from phobos.runtime.kernel import Kernel, Kernels
from phobos.semantics import ir
from phobos.semantics.fusion import parts_of
from phobos.semantics.module import Module, Unit
from phobos.semantics.report import report as told
from phobos.syntax import parse, pieces
from phobos.syntax.format import FormatError, format_text
from phobos.syntax.lines import LineIndex
from phobos.syntax.tokens import END, tokenize
from phobos.syntax.tree import File
from phobos.value import value
from tests.fuzz.conversation import converse
from tests.fuzz.inputs import Input, input_of
from tests.ide.answers import ANSWERS
from tests.ide.fixture import document

STAGES = (
    "parsed", "formatted", "edited", "checked", "rendered", "mended", "answered", "accepted", "emitted", "compiled",
    "explained", "run", "faulted", "conversed",
)  # fmt: skip
MOST_CELLS = 1 << 20  # of the tensors of a run: larger ones cost time and tell nothing more
SECONDS = 20.0  # of the processor; the slowest inputs take about five. `pool.HANGS` is for what waits
MENDS_NOTHING = ("PH0", "PH901", "PH902", "PH903")  # what a suppression is not for


class TooLong(Exception):
    """A text took longer than it should."""


@value
class Tried:
    """What became of an input: the stages it came through, the codes that were raised, and what went wrong.

    `said` tells what the checker said, for comparing with what it says of the same input at another time.
    """

    number: int
    way: str
    stages: tuple[str, ...]
    codes: tuple[str, ...]
    said: str
    seconds: dict[str, float]
    wrong: str = ""


def tried(number: int) -> Tried:
    return tried_input(input_of(number))


def tried_input(given: Input) -> Tried:
    stages: list[str] = []
    found: list[Diagnostic] = []
    seconds: Counter[str] = Counter()
    wrong = ""
    before = time.perf_counter()
    try:
        with limit(SECONDS):
            for stage in _through(given, random.Random(given.number), found):
                stages.append(stage)
                now = time.perf_counter()
                seconds[stage] += now - before
                before = now
    except Exception as error:
        where = stages[-1] if stages else "the beginning"
        wrong = f"after {where}: {type(error).__name__}: {error}"[:400]
    said = " ".join(f"{one.code}{one.severity[0]}{one.span.start}" for one in found)
    return Tried(given.number, given.way, tuple(stages), tuple({one.code for one in found}), said, dict(seconds), wrong)


def _through(given: Input, rng: random.Random, found: list[Diagnostic]) -> Iterator[str]:
    """The stages that the input reaches, each when it is through."""
    text = given.text
    file = parse(text)
    problems = [problem for _, item in file.items for problem in item.problems]
    _inside(file)
    if not problems:
        yield "parsed"
    if _formatted(text, rng, bool(problems)):
        yield "formatted"
    if rng.random() < 0.06:
        _edited(text, rng)
        yield "edited"
    found += findings("<text>", text, given.configuration)
    for one in found:
        for span in (one.span, *(related.span for related in one.related)):
            if not 0 <= span.start <= span.end <= len(text):
                raise AssertionError(f"{one.code} lies outside the text")
    yield "checked"
    if rng.random() < 0.08 and not any("\ud800" <= letter <= "\udfff" for letter in text):  # no file holds those
        _rendered(text, found, rng.choice(FORMATS))
        yield "rendered"
    if rng.random() < 0.12 and any(one.fix is not None for one in found):
        _mended(given, found, rng)
        yield "mended"
    if rng.random() < 0.2:
        _answers(document(text), rng)
        yield "answered"
    if rng.random() < 0.04:
        converse(text, rng)
        yield "conversed"
    if problems or any(one.severity == "error" and one.code[2] in "014" for one in found):
        return
    kernels = Kernels("<text>", text)
    if not kernels.names or rng.random() < 0.4:
        return
    yield "accepted"
    yield from _run(kernels[rng.choice(kernels.names)], rng)


def _inside(file: File) -> None:
    end = 0
    for offset, item in file.items:
        if offset < end or file.text[offset : offset + len(item.text)] != item.text:
            raise AssertionError("an item is not where it says")
        end = offset + len(item.text)
        for problem in item.problems:
            if not 0 <= problem.start < problem.end <= len(item.text):
                raise AssertionError(f"{problem.code} lies outside its item")


def _formatted(text: str, rng: random.Random, broken: bool) -> bool:
    """Formatting loses no word and is done once; what does not parse is refused."""
    length = rng.choice((20, 60, 120, 120))
    try:
        once = format_text(text, length)
    except FormatError:
        if not broken:
            raise
        return False
    if broken:
        raise AssertionError("formatted, though it does not parse")
    if format_text(once, length) != once:
        raise AssertionError("formatting twice is not formatting once")
    if _words(once) != _words(text):
        raise AssertionError("formatting changed a word or a comment")
    return True


def _words(text: str) -> tuple[list[str], list[str]]:
    tokens = tokenize(text.removeprefix("\ufeff"))
    words = [token[2] for token, kind in zip(tokens.list, tokens.kinds, strict=True) if kind != END]
    return words, [comment.text.rstrip() for comment in tokens.comments]


def _edited(text: str, rng: random.Random) -> None:
    """Edits one after another, with what was learnt on the way, give what the last text gives a process that is new."""
    for _ in range(rng.choice((1, 2, 5))):
        at, length = rng.randrange(len(text) + 1), rng.choice((0, 0, 1, 7, 60))
        new = rng.choice(
            ("", "", "}", "{", "(", " x", "\n", "let y = 1\n", "kernel z() {\n}\n", "@persistent\n", "// ")
        )
        text = text[:at] + new + text[at + length :]
        after = parse(text)
    with _nothing_known():
        anew = parse(text)
    if _tree(after) != _tree(anew):
        raise AssertionError(f"edits give another tree than their last text: {text!r}")


def _tree(file: File) -> str:
    return "\n".join(f"{offset} {item.node!r} {item.problems!r}" for offset, item in file.items)


@contextmanager
def _nothing_known() -> Iterator[None]:
    """As in a process that has parsed nothing yet."""
    import phobos.syntax

    known = phobos.syntax._items, phobos.syntax._kept, pieces._shapes
    phobos.syntax._items, phobos.syntax._kept, pieces._shapes = {}, 0, {}
    try:
        yield
    finally:
        phobos.syntax._items, phobos.syntax._kept, pieces._shapes = known


def _rendered(text: str, found: list[Diagnostic], form: str) -> None:
    listing = Listing("a\n|.ph", text, LineIndex(text), tuple(found))
    shown = render(Report((listing,), 1), form)
    shown.encode("utf-8", "backslashreplace")
    if form in ("json", "sarif", "gitlab"):
        json.loads(shown)
    if "\x1b" in shown or "\0" in shown:
        raise AssertionError(f"{form} hands on what a terminal obeys")


def _mended(given: Input, found: list[Diagnostic], rng: random.Random) -> None:
    """A fix breaks nothing that parsed; what is silenced is silent."""
    if rng.random() < 0.3:
        silenced = add_ignores(given.text, found)
        left = [d for d in findings("<text>", silenced, given.configuration) if not d.code.startswith(MENDS_NOTHING)]
        if left and not any(d.code.startswith("PH0") for d in found):
            raise AssertionError(f"{left[0].code} is reported though it was silenced")
        return
    fixed = fix_all("<text>", given.text, given.configuration, rng.random() < 0.5)
    before = [problem for _, item in parse(given.text).items for problem in item.problems]
    after = [problem for _, item in parse(fixed.text).items for problem in item.problems]
    if len(after) > len(before):
        raise AssertionError(f"fixes {fixed.counts} broke what parsed")
    again = fix_all("<text>", fixed.text, given.configuration, False)
    if again.counts:
        raise AssertionError(f"fixes {again.counts} are left to make")


def _answers(seen: Document, rng: random.Random) -> None:
    for feature in rng.sample(sorted(ANSWERS), 3):
        at = [rng.randint(0, len(seen.text))]
        if feature in ("tokens", "format"):
            at.append(rng.randint(at[0], len(seen.text)))
        options = {"new": "renamed"} | ({"typed": "}"} if feature == "format" else {})
        ANSWERS[feature](seen, at, options)


# --- the kernels ------------------------------------------------------------------------------------------------------


def _run(kernel: Kernel, rng: random.Random) -> Iterator[str]:
    options = Options(arch=rng.choice(("sm_75", "sm_80", "sm_90a", "sm_120")))
    try:
        module, unit = kernel.analysed()
        gate.demand_program(module, unit, kernel.name)
        made = spelled(module, unit, options)
        if not made.text.isascii():
            raise AssertionError("the CUDA text holds letters that are not ASCII")
        yield "emitted"
        if rng.random() < 0.015 and nvrtc.location() is not None:
            nvrtc.compile_text(made.text, "k.cu", options.arch)
            yield "compiled"
        if rng.random() < 0.1:
            _explained(module, unit, options)
            yield "explained"
    except nvrtc.CompileError:
        raise AssertionError("NVRTC does not take what was emitted") from None
    except PhobosError:
        pass
    try:
        program = kernel.analysed()[1].program
        sizes = {name: rng.choice((1, 3, 4, 8)) for name in program.dims}
        given = {name: str(size) for name, size in sizes.items()}
        given |= {one.name: "random:seed=1" if one.name in program.tensors else "2" for one in program.parameters}
        cells = [_cells(tensor, sizes) for tensor in program.tensors.values()]
        if sum(cells) > MOST_CELLS:
            return
        ready = arguments(program, given, 0, dict.fromkeys(given, "."), {})
        kernel.reference(
            **ready.arrays, **ready.numbers, grid=rng.choice((1, 2, 3, None)), detect=rng.choice(("", "races")),
            scheduler=rng.choice((None, None, "adversarial")), timeout=0.5, step_limit=5_000,
        )  # fmt: skip
        yield "run"
    except KernelFault as fault:
        _of_the_contract(fault.kind)
        yield "faulted"
    except LaunchError as refused:
        if refused.kind is not None:
            _of_the_contract(refused.kind)
    except PhobosError:
        pass  # refused, with a reason


def _cells(tensor: ir.Tensor, sizes: dict[str, int]) -> int:
    return math.prod(
        sizes[size.name] if isinstance(size, ir.Dim) else size if isinstance(size, int) else size.value
        for size in tensor.extents
    )


def _explained(module: Module, unit: Unit, options: Options) -> None:
    """What `emit --format facts` and `--format contract` say."""
    lines = LineIndex(module.file.text)

    def line_of(span: object) -> int:
        return lines.line_of(module.absolute(unit, span).start) + 1  # type: ignore[arg-type]

    told(unit.program, line_of)
    for part in parts_of(unit.program):
        json.dumps(facts_of(lowered_for(module, unit, part, options), line_of))
    json.dumps(contract_of(unit.program, spelled(module, unit, options), None, options, line_of))


def _of_the_contract(kind: str) -> None:
    if kind not in FAULTS:
        raise AssertionError(f"no documented fault is called {kind}")


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise TooLong in what takes more of the processor. In the main thread alone, where signals arrive."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(number: int, frame: FrameType | None) -> None:
        raise TooLong(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
