"""One cluster of two workers of this machine for all tests that do not end a worker of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from phobos.runtime.cluster.connect import Cluster, cluster


@pytest.fixture(scope="session")
def two() -> Iterator[Cluster]:
    pytest.importorskip("distributed")
    with cluster("local:2") as found:
        yield found
