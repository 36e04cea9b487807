"""Schedules: every block once, in the order that the formulas give. Numbers written out by hand or by Helion's own."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phobos.semantics.schedules import (
    BLOCKED,
    FLAT,
    INTERLEAVED,
    KINDS,
    MOST_BLOCKS,
    PERSISTENT,
    XYZ,
    Phase,
    Root,
    Schedule,
    ScheduleError,
    Work,
    form_of,
    rounds,
    schedule_called,
    share,
    share_out,
)

EXTENTS = st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(0, 5))


def all_of(grid: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    return sorted(product(*map(range, grid)))


def numbers(root: Root) -> list[int]:
    """The number of the block at each local id."""
    return [root.number(root.coordinates(local)) for local in range(root.total)]


# --- names --------------------------------------------------------------------------------------------------


def test_a_schedule_has_a_name_in_two_spellings() -> None:
    for kind in KINDS:
        assert schedule_called(kind).kind == kind
        assert schedule_called(kind.replace("-", "_")).kind == kind
    assert schedule_called(None).kind == FLAT and schedule_called(None).l2_group == 1
    assert schedule_called("persistent_blocked", 8).l2_group == 8
    assert str(schedule_called("flat")) == "flat"
    assert str(schedule_called("persistent_blocked", 8)) == "persistent-blocked, in bands of 8"


@pytest.mark.parametrize("name", ["", "blocked", "persistent", "Flat", "persistent-balanced"])
def test_an_unknown_schedule_is_refused_by_name(name: str) -> None:
    with pytest.raises(ScheduleError, match="choose flat, xyz, persistent-blocked, persistent-interleaved"):
        schedule_called(name)


@pytest.mark.parametrize("group", [0, -2, True, 2.0, "4"])
def test_a_group_is_a_whole_number(group: object) -> None:
    with pytest.raises(ScheduleError, match="whole number of at least 1"):
        schedule_called("flat", group)  # type: ignore[arg-type]


# --- one kernel's grid --------------------------------------------------------------------------------------


def test_the_order_in_bands() -> None:
    """5 blocks along x, 3 along y, bands of 2: the last band is one high."""
    root = Root((5, 3, 1), 2)
    assert [root.coordinates(local)[:2] for local in range(15)] == [
        (0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 0), (3, 0), (2, 1), (3, 1), (2, 2), (3, 2), (4, 0), (4, 1),
        (4, 2),
    ]  # fmt: skip
    assert numbers(root) == [0, 1, 5, 6, 10, 11, 2, 3, 7, 8, 12, 13, 4, 9, 14]


def test_a_last_band_that_is_lower_keeps_its_own_order() -> None:
    """7 along x in bands of 4: the last band has 3, and its offset counts from its own start, not from the grid's."""
    root = Root((7, 2, 1), 4)
    assert [root.coordinates(local)[:2] for local in range(8, 14)] == [(4, 0), (5, 0), (6, 0), (4, 1), (5, 1), (6, 1)]


def test_without_bands_x_goes_fastest() -> None:
    root = Root((3, 2, 2), 1)
    assert [root.coordinates(local) for local in range(7)] == [
        (0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 1, 0), (1, 1, 0), (2, 1, 0), (0, 0, 1),
    ]  # fmt: skip
    assert numbers(root) == list(range(12))


def test_a_band_as_high_as_the_grid_is_no_band() -> None:
    for grid in ((5, 3, 2), (1, 6, 1), (4, 1, 1)):
        assert numbers(Root(grid, 5)) == numbers(Root(grid, 1))


@given(EXTENTS, st.integers(1, 9))
def test_an_order_visits_every_block_once(grid: tuple[int, int, int], group: int) -> None:
    root = Root(grid, group)
    seen = [root.coordinates(local) for local in range(root.total)]
    assert sorted(seen) == all_of(grid)
    assert sorted(numbers(root)) == list(range(root.total))


def test_the_order_of_many_ids_at_once_is_that_of_each() -> None:
    numpy = pytest.importorskip("numpy")
    for grid, group in (((5, 3, 2), 2), ((7, 2, 1), 4), ((4, 4, 2), 2), ((3, 2, 2), 1), ((0, 3, 1), 2)):
        root = Root(grid, group)
        assert root.number(root.coordinates(numpy.arange(root.total))).tolist() == numbers(root)


# --- sharing ids out ----------------------------------------------------------------------------------------


def test_ten_ids_for_four_workers() -> None:
    interleaved = [list(share(INTERLEAVED, worker, 4, 10)) for worker in range(4)]
    assert interleaved == [[0, 4, 8], [1, 5, 9], [2, 6], [3, 7]]
    blocked = [list(share(BLOCKED, worker, 4, 10)) for worker in range(4)]
    assert blocked == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]


def test_equal_chunks_leave_workers_idle() -> None:
    def idle(total: int, workers: int) -> int:
        return sum(not share(BLOCKED, worker, workers, total) for worker in range(workers))

    assert idle(9, 8) == 3
    assert idle(133, 132) == 65
    assert max(len(share(BLOCKED, worker, 132, 133)) for worker in range(132)) == 2
    assert sum(len(share(INTERLEAVED, worker, 132, 133)) == 2 for worker in range(132)) == 1


@pytest.mark.parametrize("kind", PERSISTENT)
def test_every_id_is_shared_out_once(kind: str) -> None:
    for total, workers in product(range(60), (1, 2, 3, 7, 16, 132)):
        shares = [list(share(kind, worker, workers, total)) for worker in range(workers)]
        assert sorted(n for mine in shares for n in mine) == list(range(total)), (kind, total, workers)
        assert all(mine == sorted(mine) for mine in shares)
        longest = max(map(len, shares))
        assert longest == -(-total // workers)


@pytest.mark.parametrize("kind", KINDS)
def test_rounds_and_workers_are_the_shares_seen_from_the_other_side(kind: str) -> None:
    for total, most in product(range(1, 40), (1, 2, 3, 7, 16)):
        workers = min(most, total) if kind in PERSISTENT else total
        work = Work(kind, (Phase((Root((total, 1, 1), 1),)),), (workers, 1, 1))
        shares = [list(work.share(worker, 0)) for worker in range(workers)]
        turns = [list(ids) for ids in rounds(kind, workers, total)]
        assert turns == [[mine[turn] for mine in shares if len(mine) > turn] for turn in range(max(map(len, shares)))]
        assert all(work.worker_of(0, block) == worker for worker, mine in enumerate(shares) for block in mine)


@pytest.mark.parametrize("kind", PERSISTENT)
def test_one_worker_runs_everything_in_order(kind: str) -> None:
    assert list(share(kind, 0, 1, 5)) == [0, 1, 2, 3, 4]


# --- a launch -----------------------------------------------------------------------------------------------


@given(st.lists(st.lists(EXTENTS, min_size=1, max_size=3), min_size=1, max_size=3), st.integers(1, 40),
       st.integers(1, 5), st.sampled_from(PERSISTENT))  # fmt: skip
def test_a_launch_runs_every_block_of_every_root_once(
    phases: list[list[tuple[int, int, int]]], resident: int, group: int, kind: str
) -> None:
    work = share_out(Schedule(kind, group), phases, resident)
    assert work.workers <= resident and work.launched[1:] == (1, 1)
    for phase, roots in enumerate(phases):
        seen = sorted(visit for worker in range(work.workers) for visit in work.visits(worker, phase))
        assert seen == sorted((root, block) for root, grid in enumerate(roots) for block in all_of(grid))
        shares = [len(work.share(worker, phase)) for worker in range(work.workers)]
        assert work.most_in(phase) == max(shares, default=0)


@given(EXTENTS, st.integers(1, 5), st.sampled_from([FLAT, XYZ]))
def test_other_schedules_launch_a_worker_for_each_block(grid: tuple[int, int, int], group: int, kind: str) -> None:
    work = share_out(Schedule(kind, group), [[grid]])
    assert work.workers == work.blocks == grid[0] * grid[1] * grid[2]
    assert sorted(b for worker in range(work.workers) for _, b in work.visits(worker, 0)) == all_of(grid)


def test_workers_are_as_many_as_fit_and_have_work() -> None:
    assert share_out(Schedule(BLOCKED, 1), [[(1000, 1, 1)]], 264).launched == (264, 1, 1)
    assert share_out(Schedule(BLOCKED, 1), [[(10, 2, 1)]], 264).launched == (20, 1, 1)
    assert share_out(Schedule(INTERLEAVED, 1), [[(3, 1, 1)], [(40, 1, 1)]], 264).launched == (40, 1, 1)
    assert share_out(Schedule(INTERLEAVED, 1), [[(0, 4, 1)]], 264).launched == (0, 1, 1)
    with pytest.raises(ScheduleError, match="none fits"):
        share_out(Schedule(INTERLEAVED, 1), [[(3, 1, 1)]], 0)


def test_roots_share_the_ids_of_their_phase() -> None:
    phase = Phase((Root((6, 1, 1), 1), Root((2, 2, 1), 1), Root((2, 1, 1), 1)))
    assert phase.starts == (0, 6, 10) and phase.total == 12
    assert [phase.locate(block)[0] for block in range(12)] == [0] * 6 + [1] * 4 + [2] * 2
    assert phase.locate(9) == (1, (1, 1, 0)) and phase.locate(10) == (2, (0, 0, 0))
    for outside in (12, -1):
        with pytest.raises(IndexError):
            phase.locate(outside)


def test_each_phase_is_shared_out_by_itself() -> None:
    """What one partition of all phases together would do: busy workers in each phase, and the blocks in a row."""
    for totals, busy_together, together, apart in (
        ((132, 132), [66, 66], 4, 2),
        ((1000, 50), [125, 7], 16, 9),
        ((64, 512, 64), [13, 104, 13], 15, 6),
    ):
        work = share_out(Schedule(BLOCKED, 1), [[(total, 1, 1)] for total in totals], 132)
        assert work.workers == 132
        assert work.longest == apart
        starts = [sum(totals[:n]) for n in range(len(totals) + 1)]
        shares = [share(BLOCKED, worker, 132, sum(totals)) for worker in range(132)]
        spread = [[len([n for n in mine if a <= n < b]) for mine in shares] for a, b in pairwise(starts)]
        assert [sum(map(bool, counts)) for counts in spread] == busy_together
        assert sum(map(max, spread)) == together


def test_a_grid_is_launched_as_it_is_where_that_says_the_same() -> None:
    assert share_out(Schedule(FLAT, 1), [[(5, 3, 2)]]).launched == (5, 3, 2)
    assert share_out(Schedule(XYZ, 4), [[(5, 3, 2)]]).launched == (5, 3, 2)
    assert share_out(Schedule(FLAT, 4), [[(5, 3, 2)]]).launched == (30, 1, 1)
    assert share_out(Schedule(FLAT, 1), [[(2, 70000, 1)]]).launched == (140000, 1, 1)
    assert share_out(Schedule(FLAT, 1), [[(5, 3, 2), (4, 1, 1)]]).launched == (34, 1, 1)


def test_the_code_knows_all_of_a_schedule_but_its_numbers() -> None:
    def form(kind: str, group: int, *phases: list[tuple[int, int, int]]) -> str | None:
        made = form_of(share_out(Schedule(kind, group), phases, 8))
        return None if made is None else made.key

    for kind in (FLAT, XYZ):
        assert form(kind, 1, [(5, 3, 2)]) is None
        assert form(kind, 2, [(5, 3, 2)]) == f"{kind}:3/2"
    assert form(FLAT, 1, [(2, 70000, 1)]) == "flat:2/1"
    assert form(FLAT, 1, [(5, 3, 1), (4, 1, 1)]) == "flat:2/1+1/1"
    assert form(FLAT, 2, [(5, 1, 1)]) is form(FLAT, 5, [(5, 3, 1)]) is None
    assert form(BLOCKED, 4, [(2, 3, 1), (5, 3, 1)]) == f"{BLOCKED}:2/1+2/4"
    assert form(BLOCKED, 1, [(5, 1, 1)]) == form(BLOCKED, 1, [(4, 1, 1)]) == f"{BLOCKED}:1/1"
    assert form(BLOCKED, 1, [(5, 1, 1)], [(1, 1, 3), (1, 2, 1)]) == f"{BLOCKED}:1/1;3/1+2/1"


def test_what_a_schedule_cannot_do_is_refused() -> None:
    def refused(kind: str, phases: list[list[tuple[int, int, int]]]) -> str:
        with pytest.raises(ScheduleError) as error:
            share_out(Schedule(kind, 1), phases, 8)
        return str(error.value)

    assert "at most 65535" in refused(XYZ, [[(2, 70000, 1)]]) and "choose flat" in refused(XYZ, [[(1, 1, 65536)]])
    assert "one kernel, these are 2" in refused(XYZ, [[(2, 1, 1), (2, 1, 1)]])
    for kind in (FLAT, XYZ):
        text = refused(kind, [[(2, 1, 1)], [(2, 1, 1)]])
        assert "no grid barrier" in text and "persistent-blocked or persistent-interleaved" in text
    for kind in KINDS:
        assert str(MOST_BLOCKS) in refused(kind, [[(2**16, 2**15, 1)]])


def test_a_launch_says_how_much_one_worker_does() -> None:
    work: Work = share_out(Schedule(INTERLEAVED, 1), [[(7, 3, 1), (2, 1, 1)], [(5, 1, 1)]], 4)
    assert (work.blocks, work.most_in(0), work.most_in(1), work.longest) == (28, 6, 2, 8)
