"""A short run of the fuzzer, and its teeth."""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from phobos.check import registry
from phobos.check.configuration import DEFAULT
from phobos.value import replace
from tests.fuzz import conversation, pool, results, run, shrink, stages
from tests.fuzz.inputs import Input, as_json, from_json, input_of
from tests.fuzz.pool import Sums, Wrong, all_tried
from tests.fuzz.results import ALIKE, Total
from tests.fuzz.seeds import raising, seeds
from tests.fuzz.stages import STAGES, Tried, limit, tried

SHORT = 200


@pytest.mark.filterwarnings("ignore")
def test_the_seeds_raise_every_rule_and_some_inputs_behind_them_raise_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The short run: the seeds that raise a rule each, then inputs of every kind."""
    sums = Total()
    for first, count in ((0, raising()), (len(seeds()), SHORT)):
        sums.add(pool.work(first, count))
    print(sums.table())
    assert not sums.wrong and not sums.complaints(), capsys.readouterr().out
    assert all(sums.counts[f"stage {stage}"] for stage in STAGES if stage != "compiled"), sums.table()
    assert sums.counts["stage parsed"] > sums.inputs / 2


def test_an_input_is_its_number() -> None:
    first, again = input_of(5_011), input_of(5_011)
    assert (first.text, first.configuration.constants) == (again.text, again.configuration.constants)
    assert len({input_of(number).text for number in range(5_000, 5_050)}) > 45


def test_seeds_stand_before_everything_that_grows_from_them() -> None:
    assert raising() >= len(registry.stems())
    assert input_of(0).text == seeds()[0].text and input_of(len(seeds())).way != "seed"


def broken(*_: object) -> list[object]:
    raise ZeroDivisionError("planted")


def test_a_defect_is_named_with_its_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "findings", broken)
    assert all("ZeroDivisionError: planted" in tried(number).wrong for number in range(5))


def test_a_defect_is_shrunk_to_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = stages.findings

    def picky(path: str, text: str, configuration: object) -> object:
        if "grid_barrier" in text and "persistent" in text:
            raise ZeroDivisionError(f"at {len(text)}")
        return whole(path, text, configuration)  # type: ignore[arg-type]

    monkeypatch.setattr(stages, "findings", picky)
    given = next(one for one in map(input_of, range(200)) if tried(one.number).wrong)
    small = shrink.shrunk(given, tried(given.number).wrong)
    assert "grid_barrier" in small and "persistent" in small and len(small) < 120, small


def test_what_takes_too_long_is_ended() -> None:
    with pytest.raises(stages.TooLong), limit(0.05):
        while True:
            pass


@pytest.mark.parametrize("what", ["hangs", "dies"])
def test_a_process_that_hangs_or_dies_is_named_and_replaced(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no signal helps: the input is named, those before and behind it are tried all the same."""

    def bad(given: Input) -> Tried:
        if given.number == 7:
            time.sleep(60) if what == "hangs" else os._exit(3)
        return Tried(given.number, "planted", (), (), "", {})

    monkeypatch.setattr(pool, "tried_input", bad)
    monkeypatch.setattr(pool, "HANGS", 1.5)
    sums = Total()
    for done in all_tried([(0, 5), (5, 5)], 1):
        sums.add(done)
    assert sums.covered == [(0, 10)] and [*sums.wrong] == [7]
    assert sums.counts["way planted"] == 9


def test_a_conversation_without_an_answer_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    from phobos.lsp.server import Protocol

    def silent(self: Protocol, msg_id: object, *_: object, **__: object) -> None:
        """Sends nothing."""

    monkeypatch.setattr(Protocol, "_send_handler_result", silent)
    monkeypatch.setattr(conversation, "SECONDS", 0.5)
    with pytest.raises(conversation.Lost, match="has no answer"):
        conversation.converse("kernel k() {\n}\n", random.Random(3))


def test_a_conversation_that_loses_an_edit_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    from phobos.lsp.session import Opened

    monkeypatch.setattr(Opened, "change", lambda *_: None)
    lost = 0
    for number in range(12):
        try:
            conversation.converse("kernel k() {\n}\n", random.Random(number))
        except conversation.Lost as error:
            lost += "holds another text" in str(error)
    assert lost > 2


def test_a_run_that_is_too_tame_fails() -> None:
    tame = Total(covered=[(0, 10_000)], counts=Counter({"stage parsed": 4_000}))
    assert any("texts parse" in said for said in tame.complaints())
    assert any("never raised: PH001" in said for said in tame.complaints())


def test_a_process_that_grows_without_end_fails() -> None:
    sums = Total()
    for n in range(100):
        sums.add(Sums(n * 64, 64, process=1, resident_bytes=(300 + 20 * n) << 20, stages=Counter(parsed=64)))
    assert any("grew from" in said for said in sums.complaints())


def test_sums_are_kept_and_added(tmp_path: Path) -> None:
    one, other = Total(), Total()
    wrong = Wrong(5, "after checked: KeyError: 'x'", None)
    one.add(Sums(0, 64, Counter(parsed=50), Counter(PH001=3), wrong=[wrong]))
    other.add(Sums(64, 64, Counter(parsed=60), Counter(PH001=1)))
    one.write(tmp_path / "one.md")
    known = results.read(tmp_path / "one.md")
    known.add_all(other)
    assert known.covered == [(0, 128)] and known.next() == 128 and known.inputs == 128
    assert known.counts["stage parsed"] == 110 and known.counts["code PH001"] == 4
    assert [(number, wrong.said) for number, wrong in known.wrong.items()] == [(5, "after checked: KeyError: 'x'")]
    with pytest.raises(ValueError, match="are in both"):
        known.add_all(other)


def test_inputs_come_back_from_the_file_as_they_were() -> None:
    for number in (*range(0, len(seeds()), 7), *range(10_000, 10_150)):
        given = input_of(number)
        back = from_json(json.loads(json.dumps(as_json(given))))
        assert (back.number, back.way, back.text) == (given.number, given.way, given.text)
        for name in (one.name for one in dataclasses.fields(given.configuration) if one.name != "problems"):
            assert getattr(back.configuration, name) == getattr(given.configuration, name), name
        assert list(map(str, back.configuration.problems)) == list(map(str, given.configuration.problems))


def test_what_goes_wrong_is_tried_again_by_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever its number means by now; of many that go wrong alike a few texts are kept, and stand for the others."""
    file = tmp_path / "sums.md"
    planted = Input(7, "planted", "kernel k() {\n}\n// --> not the end of the comment\n", DEFAULT)
    with monkeypatch.context() as patch:
        patch.setattr(stages, "findings", broken)
        said = stages.tried_input(planted).wrong
        sums = Total()
        sums.add(Sums(0, 64, wrong=[Wrong(n, said, replace(planted, number=n)) for n in range(7, 7 + 2 * ALIKE)]))
        sums.write(file)
        kept = results.read(file).wrong
        assert len(kept) == 2 * ALIKE and sum(one.given is not None for one in kept.values()) == ALIKE
        assert run.main(["--again", "7", "--file", str(file), "--jobs", "1"]) == 1
        assert "input 7: after formatted: ZeroDivisionError: planted" in capsys.readouterr().out
        assert run.main(["--again", "--file", str(file), "--jobs", "1"]) == 1
        assert len(results.read(file).wrong) == 2 * ALIKE
    assert run.main(["--again", "7", "--file", str(file), "--jobs", "1"]) == 0
    assert results.read(file).wrong  # only where all are tried does the file change
    assert run.main(["--again", "--file", str(file), "--jobs", "1"]) == 0
    assert not results.read(file).wrong and "- Nothing" not in file.read_text("utf-8")
    assert run.main(["--again", "8", "--file", str(file), "--jobs", "1"]) == 2


def test_what_the_checker_says_must_not_depend_on_what_it_saw_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "tried_input", lambda one: Tried(one.number, "", (), (), f"{time.monotonic()}", {}))
    assert run.run(Total(), 0, 128, 1, 60.0)
    monkeypatch.setattr(pool, "tried_input", lambda one: Tried(one.number, "", (), (), "same", {}))
    assert not run.run(Total(), 0, 128, 1, 60.0)


def test_every_stage_has_teeth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these breaks a promise, and an input goes wrong."""
    plants = {
        "format_text": lambda text, length=120: text + "\n//\n",
        "fix_all": broken,
        "render": broken,
        "document": broken,
        "spelled": broken,
        "arguments": broken,
        "parse": broken,
    }
    for name, plant in plants.items():
        with monkeypatch.context() as patch:
            patch.setattr(stages, name, plant)
            wrong = (stages.tried_input(replace(input_of(n), number=n)).wrong for n in range(400))
            assert next((said for said in wrong if said), None), name


def test_a_conversation_leaves_the_collector_as_it_was() -> None:
    """A server sets aside what is there, and has its process to itself: here nobody would look at that again."""
    before = gc.get_threshold()
    for number in range(3):
        conversation.converse("kernel k(X: tensor<f32>[N]) {\n  X[0] = 1.0\n}\n", random.Random(number))
    assert gc.get_threshold() == before and gc.get_freeze_count() == 0
