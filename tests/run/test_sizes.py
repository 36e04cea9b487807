"""Bytes, times and rates as people write them."""

from __future__ import annotations

import pytest

from phobos.runtime.sizes import duration, nanoseconds, rate, short_duration, size


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (duration(0.0472), "0.0472 ms"),
        (duration(999.4), "999 ms"),
        (duration(999.6), "1 s"),
        (duration(1.25e6), "1 250 s"),
        (short_duration(0.0023846), "2.38 us"),
        (short_duration(0.9999), "1 ms"),
        (short_duration(4.2e6), "4 200 s"),
        (nanoseconds(999.9), "1 us"),
        (nanoseconds(12_340), "12.3 us"),
        (nanoseconds(2.5e13), "25 000 s"),
        (rate(4123.4), "4 120 GB/s"),
        (rate(0.04651), "0.0465 GB/s"),
        (rate(5.9e-7), "under 0.001 GB/s"),
        (rate(0.0), "0 GB/s"),
        (size(640 * 1024), "640 KiB"),
        (size(1023.99 * 1024), "1 MiB"),
        (size(1000), "1 000 bytes"),
        (size(12345 * 2**30), "12 340 GiB"),
    ],
)
def test_three_figures_and_no_exponent(said: str, wanted: str) -> None:
    assert said == wanted
