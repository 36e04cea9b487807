"""Errors survive a process boundary: a pool that gets one back must not break on it."""

from __future__ import annotations

import importlib
import pickle
import pkgutil

import phobos
from phobos.errors import CheckError, KernelFault, LaunchError, PhobosError
from phobos.runtime.cuda.driver import DriverError


def every_kind(kind: type[PhobosError]) -> list[type[PhobosError]]:
    return [kind, *(below for each in kind.__subclasses__() for below in every_kind(each))]


def test_what_an_error_knows_comes_through() -> None:
    for error in (
        DriverError("out of memory", 2),
        KernelFault("stopped", "deadlock", None, [1, 2]),
        LaunchError("too large", "grid-too-large"),
        CheckError("no", []),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_no_kind_of_error_breaks_a_pool() -> None:
    for module in pkgutil.walk_packages(phobos.__path__, "phobos."):
        if not module.name.startswith("phobos.lsp") and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    kinds = every_kind(PhobosError)
    assert DriverError in kinds and len(kinds) > 6
    for kind in kinds:
        error = kind.__new__(kind, "said")
        error.__dict__["place"] = 3
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind and again.args == ("said",) and vars(again) == {"place": 3}
