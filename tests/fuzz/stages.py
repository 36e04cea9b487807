"""What a text goes through: parser, formatter, checker, editor answers, emitter, reference runtime.

A stage may answer with any of the errors that are made for people; whatever else it raises is a defect, and so is a
text that takes longer than it should.
"""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from phobos.check import check
from phobos.errors import KernelFault, PhobosError
from phobos.ide.document import Document
from phobos.lowering.options import Options
from phobos.runtime import gate
from phobos.runtime.compiling import spelled
from phobos.runtime.given import arguments
from phobos.runtime.kernel import Kernels
from phobos.syntax import parse
from phobos.syntax.format import FormatError, format_text
from phobos.value import value
from tests.fuzz.inputs import text_of
from tests.ide.answers import ANSWERS
from tests.ide.fixture import document

STAGES = ("parsed", "formatted", "checked", "answered", "accepted", "emitted", "run")
SECONDS = 30.0  # on a busy machine; the slowest text takes about one


class TooLong(Exception):
    """A text took longer than it should."""


@value
class Tried:
    """What became of a seed: the stages it came through, the codes that were raised, and what went wrong."""

    seed: int
    stages: tuple[str, ...]
    codes: tuple[str, ...]
    wrong: str = ""


def tried(seed: int) -> Tried:
    text = text_of(seed)
    stages: list[str] = []
    codes: set[str] = set()
    stage = "parsed"
    try:
        with limit(SECONDS):
            for stage in _through(text, random.Random(seed), codes):
                stages.append(stage)
    except Exception as error:
        where = stages[-1] if stages else "the beginning"
        return Tried(seed, tuple(stages), tuple(codes), f"after {where}: {type(error).__name__}: {error}"[:400])
    return Tried(seed, tuple(stages), tuple(codes))


def _through(text: str, rng: random.Random, codes: set[str]) -> Iterator[str]:
    """The stages that the text reaches, each when it is through."""
    problems = [problem for _, item in parse(text).items for problem in item.problems]
    if not problems:
        yield "parsed"
    try:
        once = format_text(text)
        if format_text(once) != once:
            raise AssertionError("formatting twice is not formatting once")
        yield "formatted"
    except FormatError:
        pass
    found = check(text)
    codes.update(one.code for one in found)
    for one in found:
        if not 0 <= one.span.start <= one.span.end <= len(text):
            raise AssertionError(f"{one.code} lies outside the text")
    yield "checked"
    _answers(document(text), rng)
    yield "answered"
    if problems or any(one.severity == "error" and one.code[2] in "014" for one in found):
        return
    kernels = Kernels("<text>", text)
    if not kernels.names:
        return
    yield "accepted"
    kernel = kernels[rng.choice(kernels.names)]
    try:
        module, unit = kernel.analysed()
        gate.demand_program(module, unit, kernel.name)
        spelled(module, unit, Options(arch=rng.choice(("sm_75", "sm_80", "sm_90a", "sm_120"))))
        yield "emitted"
    except PhobosError:
        pass
    try:
        program = kernel.analysed()[1].program
        given = {name: str(rng.choice((1, 3, 4, 8))) for name in program.dims}
        given |= {one.name: "random:seed=1" if one.name in program.tensors else "2" for one in program.parameters}
        ready = arguments(program, given, 0, dict.fromkeys(given, "."), {})
        kernel.reference(**ready.arrays, **ready.numbers, grid=2, detect="races", timeout=2.0)
        yield "run"
    except KernelFault:
        yield "run"
    except PhobosError:
        pass  # refused, with a reason


def _answers(seen: Document, rng: random.Random) -> None:
    for feature in rng.sample(sorted(ANSWERS), 3):
        at = [rng.randint(0, len(seen.text))]
        if feature in ("tokens", "format"):
            at.append(rng.randint(at[0], len(seen.text)))
        options = {"new": "renamed"} | ({"typed": "}"} if feature == "format" else {})
        ANSWERS[feature](seen, at, options)


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise TooLong in what takes longer. In the main thread of a process alone, where signals arrive."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(number: int, frame: FrameType | None) -> None:
        raise TooLong(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
