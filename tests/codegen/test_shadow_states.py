"""What a cell's shadow remembers is enough: the search sees a race exactly where there is one, in every order of steps.

The device code itself is run (`shadow_harness`). Without atomics its verdict must be the reference runtime's; with
them, what it says must be true.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from itertools import combinations, product

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phobos.diagnostic import Span
from phobos.runtime.reference.faults import Fault
from phobos.runtime.reference.machine import Buffer, Place
from phobos.runtime.reference.races import Phases
from phobos.runtime.reference.windows import Piece
from tests.codegen import host
from tests.codegen.shadow_harness import ATOMIC, HERE, LOAD, STORE, Shadow, Step, schedules

pytestmark = pytest.mark.skipif(host.COMPILER is None, reason="no C++ compiler (g++)")
ONE = Piece(None, 1, None, (1,), (0,), None, None)
MANY = int(os.environ.get("PHOBOS_EXAMPLES", "300"))
PLACE = Place(Span(None, 0, 1), (), "X")


def judged(phases: list[list[Step]]) -> bool:
    """Whether the reference sees a race when the steps of each phase happen in this order."""
    buffer = Buffer("X", "i32", numpy.full(1, -1, numpy.int32))
    detector = Phases([buffer])
    try:
        for phase in phases:
            for step in phase:
                who = numpy.array([step.block])
                if step.what == LOAD:
                    detector.read(None, buffer, ONE, who, PLACE)  # type: ignore[arg-type]
                else:
                    value = numpy.full((1, 1), step.value, numpy.int32)
                    detector.write(None, buffer, ONE, who, value, PLACE)  # type: ignore[arg-type]
                    buffer.array[0] = step.value
            detector.barrier()
    except Fault:
        return True
    return False


plain = st.builds(Step, st.sampled_from([LOAD, STORE, STORE]), st.integers(0, 3), st.integers(0, 1))


@settings(max_examples=MANY // 2)
@given(st.lists(st.lists(st.lists(plain, max_size=3), min_size=1, max_size=4), min_size=1, max_size=4), st.data())
def test_the_verdict_is_the_references(phases: list[list[list[Step]]], data: st.DataObject) -> None:
    """Threads, each of any blocks, over phases; `limit` makes marks be wiped out now and then."""
    shadow = Shadow(limit=data.draw(st.sampled_from([1, 2, 1000])))
    for threads in phases:
        shadow.play(threads, data.draw(st.lists(st.integers(0, 3), max_size=30)))
        shadow.barrier()
    assert shadow.seen == judged([[step for thread in threads for step in thread] for threads in phases])
    if shadow.seen:
        assert len(set(shadow.blocks)) == 2


PAIRS = list(product((LOAD, STORE), (0, 1), (0, 1)))


@pytest.mark.parametrize("first", PAIRS)
@pytest.mark.parametrize("second", PAIRS)
def test_of_two_accesses_one_sees_the_other_in_every_order(
    first: tuple[int, int, int], second: tuple[int, int, int]
) -> None:
    threads = [[Step(*first)], [Step(*second)]]
    want = judged([[Step(*first), Step(*second)]])
    assert {shadow.seen for shadow in schedules(threads)} == {want}


@pytest.mark.parametrize("limit", [1, 2, 3, 1000])
def test_a_barrier_separates_and_the_next_phase_is_looked_at(limit: int) -> None:
    for first, second in product(PAIRS, PAIRS):
        shadow = Shadow(limit=limit)
        for step in (first, second, first, second, first):
            shadow.play([[Step(*step)]], [])
            assert not shadow.seen
            shadow.barrier()
        shadow.play([[Step(*first)], [Step(*second)]], [])
        assert shadow.seen == judged([[Step(*first), Step(*second)]])


THREE = [
    [Step(STORE, 0, 1), Step(STORE, 1, 1), Step(LOAD, 0)],
    [Step(STORE, 0, 1), Step(STORE, 1, 1), Step(STORE, 0, 2)],
    [Step(LOAD, 0), Step(LOAD, 1), Step(STORE, 0, 1)],
    [Step(STORE, 0, 1), Step(STORE, 1, 1), Step(STORE, 2, 1)],
    [Step(LOAD, 0), Step(LOAD, 1), Step(LOAD, 2)],
]


@pytest.mark.parametrize("steps", THREE)
def test_of_three_accesses_the_second_block_of_a_kind_is_enough(steps: list[Step]) -> None:
    """Those that need to know of a second block; as many orders as there are with the first of them done before."""
    want = judged([steps])
    for before in range(3):
        rest = [step for n, step in enumerate(steps) if n != before]
        for schedule in product(range(2), repeat=10):
            shadow = Shadow()
            shadow.play([[steps[before]]], [])
            shadow.play([[step] for step in rest], schedule)
            assert shadow.seen == want
            assert not want or len(set(shadow.blocks)) == 2


# --- with atomics: never a word that is not true ----------------------------------------------------------------


def unordered(threads: list[list[Step]], order: list[int]) -> bool:
    """Whether two blocks (here: threads) touch the cell, one by a store, ordered by no chain of atomics; two stores
    only where they differ. Vector clocks over the atomics in the order in which they happened."""
    clocks = [[0] * len(threads) for _ in threads]
    released: dict[object, list[int]] = {}
    at = [0] * len(threads)
    accesses: list[tuple[int, Step, list[int], int]] = []  # thread, step, its clock, its own time

    def walk(thread: int) -> None:
        while at[thread] < len(threads[thread]) and threads[thread][at[thread]].what < ATOMIC:
            step = threads[thread][at[thread]]
            accesses.append((thread, step, list(clocks[thread]), clocks[thread][thread] + 1))
            at[thread] += 1

    for thread in range(len(threads)):
        walk(thread)
    for thread in order:
        step = threads[thread][at[thread]]
        on = step.value if step.what == ATOMIC else "the cell"
        joined = [max(a, b) for a, b in zip(clocks[thread], released.get(on, clocks[thread]), strict=True)]
        joined[thread] += 1
        clocks[thread] = joined
        released[on] = list(joined)
        if step.what == HERE:
            accesses.append((thread, step, list(joined), joined[thread]))
        at[thread] += 1
        walk(thread)
    for (a, one, mine, now), (b, two, theirs, then) in combinations(accesses, 2):
        if a != b and mine[b] < then and theirs[a] < now:
            stores = (one.what == STORE) + (two.what == STORE)
            if stores == 1 or (stores == 2 and one.value != two.value):
                return True
    return False


def test_with_atomics_what_is_said_is_true_and_most_is_said() -> None:
    """Random programs; each thread goes some steps at a time, so that others fall far behind."""
    found = unsaid = 0
    for seed in range(5 * MANY):
        draw = random.Random(seed)
        kinds = (LOAD, STORE, STORE, ATOMIC, HERE)
        threads = [
            [Step(draw.choice(kinds), block, draw.randint(0, 1)) for _ in range(draw.randint(1, 5))]
            for block in range(draw.choice((2, 2, 3, 4)))
        ]
        schedule: list[int] = []
        while len(schedule) < 120:
            schedule += [draw.randrange(len(threads))] * draw.choice((1, 1, 2, 5, 12))
        shadow = Shadow(epochs=draw.choice((0, 1, 2, 10)))
        _, order = shadow.play(threads, schedule)
        racing = unordered(threads, order)
        assert racing or not shadow.seen, (threads, order, schedule)
        found += shadow.seen
        unsaid += racing and not shadow.seen
    assert found > 6 * unsaid  # eight times as many, over 130 000 programs


def some(threads: list[list[Step]]) -> Iterator[tuple[bool, list[int]]]:
    """Whether a race was seen, and the order of the atomics, in orders drawn by lot."""
    for seed in range(400):
        draw = random.Random(seed)
        shadow = Shadow(epochs=4)
        _, order = shadow.play(threads, [draw.randrange(len(threads)) for _ in range(60)])
        yield shadow.seen, order


def test_a_block_without_atomics_is_ordered_after_nobody() -> None:
    threads = [[Step(STORE, 0, 1), Step(ATOMIC, 0)], [Step(LOAD, 1)]]
    assert all(found for found, _ in some(threads))


def test_an_atomic_before_the_first_of_two_accesses_excuses_nothing() -> None:
    """As where each block draws a ticket first: only what comes between can order the two."""
    tickets = [[Step(ATOMIC, 0), Step(STORE, 0, 1)], [Step(ATOMIC, 1), Step(LOAD, 1)]]
    assert all(found for found, _ in some(tickets))
    handed = [[Step(STORE, 0, 1), Step(ATOMIC, 0)], [Step(ATOMIC, 1), Step(LOAD, 1)]]
    verdicts = {(found, unordered(handed, order)) for found, order in some(handed)}
    assert verdicts == {(True, True), (False, True), (False, False)}


def test_an_atomic_on_the_cell_itself_hands_it_over() -> None:
    """Whoever stores after an atomic that came behind another's is ordered behind that; before it, not."""
    threads = [[Step(HERE, 0)], [Step(HERE, 1), Step(STORE, 1, 1)]]
    verdicts = {(found, unordered(threads, order)) for found, order in some(threads)}
    assert verdicts == {(False, True), (False, False)}
    late = [[Step(HERE, 0)], [Step(STORE, 1, 1)]]
    assert {found for found, _ in some(late)} == {True}
