"""What comes out of a run: when two results agree, and whether a file could be written, said before the run."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from phobos.errors import InputError
from phobos.runtime.output import writable
from phobos.runtime.tolerance import Tolerance, compare

NAN, INF = float("nan"), float("inf")
LARGEST = Tolerance(0.0, 0.01, "a hundredth of the largest cell")


@pytest.mark.parametrize(
    ("got", "wanted", "first"),
    [
        ([1.0, NAN, INF, -INF], [1.0, NAN, INF, -INF], None),
        ([1.0, NAN], [1.0, 1.0], 1),
        ([1.0, 1.0], [1.0, NAN], 1),
        ([INF, 1.0], [-INF, 1.0], 0),
        ([1.0, INF], [1.0, 3.0e38], 1),
        ([100.0, 0.9], [100.0, 0.0], None),
        ([100.0, 1.1], [100.0, 0.0], 1),
        ([INF, 1.1], [INF, 1.0], 1),
        ([NAN, 1.1], [NAN, 1.0], 1),
        ([NAN, INF], [NAN, INF], None),
    ],
)
def test_what_is_no_number_agrees_with_itself_alone_and_allows_no_more(
    got: list[float], wanted: list[float], first: int | None
) -> None:
    found = compare(np.array(got, np.float32), np.array(wanted, np.float32), LARGEST)
    assert (None if found is None else found.index[0]) == first


def test_integers_agree_to_the_last_bit() -> None:
    whole = np.array([3, 5], np.int64)
    assert compare(whole, whole.copy(), LARGEST) is None
    found = compare(whole, whole + np.array([0, 1]), LARGEST)
    assert found is not None and (found.index, found.cells, found.largest) == ((1,), 1, 1.0)


def test_a_folder_that_cannot_be_written_to_is_said_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writable(str(tmp_path / "x.npy"))
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # who runs the tests may be allowed everything
    with pytest.raises(InputError, match="cannot be written to"):
        writable(str(tmp_path / "x.npy"))
