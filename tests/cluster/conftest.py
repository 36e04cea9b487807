"""One cluster of two workers of this machine for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from phobos.runtime.cluster.connect import Cluster, cluster


@pytest.fixture
def mortal(two: Cluster) -> Iterator[Cluster]:
    """The same, for a test that ends workers of it: they are started anew, which the next test waits for."""
    yield two
    two.client.wait_for_workers(2, timeout=60)


@pytest.fixture(scope="session")
def two() -> Iterator[Cluster]:
    pytest.importorskip("distributed")
    with cluster("local:2") as found:
        yield found
