"""What holds for all tests: where they keep caches, which of them need a card, and what a skip means.

A test that cannot run for want of something skips and names it. In CI (`CI=true`) there is no want to have: such a
skip fails, except that of a test marked `gpu`. `--gpu` (`make test-gpu`) turns that round: a missing card or package
is then what fails.
"""

import ctypes
import gc
import os
import shutil
import tempfile
from collections.abc import Generator

import pytest

CACHE = "PHOBOS_TEST_CACHE"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--gpu", action="store_true", help="a card is expected: what a gpu test lacks makes it fail")


def pytest_configure(config: pytest.Config) -> None:
    # Workers of one run inherit the variable and share the folder; two runs never do.
    if CACHE not in os.environ:
        folder = tempfile.mkdtemp(prefix="phobos-tests-")
        os.environ[CACHE] = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    os.environ["XDG_CACHE_HOME"] = os.environ[CACHE]
    if config.pluginmanager.hasplugin("hypothesispytest"):
        import hypothesis

        # A machine that is busy with other things makes no test fail. Tests take what holds when they are defined.
        usual, slow = hypothesis.settings(), [hypothesis.HealthCheck.too_slow]
        hypothesis.settings.register_profile("patient", usual, deadline=None, suppress_health_check=slow)
        hypothesis.settings.load_profile("patient")
    # Colours and formats must not depend on where the tests run.
    for name in ("NO_COLOR", "FORCE_COLOR", "GITHUB_ACTIONS", "COLUMNS"):
        os.environ.pop(name, None)


# Fixtures that take seconds: an installed wheel, the site, a cluster, servers. `--dist loadgroup` keeps the tests that
# use one in one process, so that it is made once.
DEAR = ("tree", "site", "two", "servers", "client")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for name in DEAR:
            if name in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(name))
    if config.getoption("--gpu"):
        if cards_present() == 1:  # what needs two is not missing where one was asked for
            two = [item for item in items if item.get_closest_marker("two_gpus")]
            items[:] = [item for item in items if item not in two]
            config.hook.pytest_deselected(items=two)
        return
    wanted = [item for item in items if item.get_closest_marker("gpu")]
    if wanted and not card_present():
        for item in wanted:
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))


def pytest_collection_finish() -> None:
    """What was collected stays to the end: the collector need not look at it again and again, nor at what tests make
    as often as it would, which took a tenth of the time of those that only compute."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def card_present() -> bool:
    """Whether the driver library answers and sees a card."""
    return cards_present() > 0


def cards_present() -> int:
    """How many cards the driver library sees."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    answers = driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
    return count.value if answers else 0


def skip_is_failure(config: pytest.Config, gpu: bool) -> bool:
    if gpu:
        return bool(config.getoption("--gpu"))
    return os.environ.get("CI", "").lower() in ("1", "true")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        gpu = item.get_closest_marker("gpu") is not None
        if skip_is_failure(item.config, gpu):
            fail(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    # A module that skips itself as a whole: `pytest.importorskip` at its top.
    if report.skipped and skip_is_failure(collector.config, gpu=False):
        fail(report)
    return report


def fail(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"{reason} (a skip counts as a failure here)"
