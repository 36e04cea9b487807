"""Run the project's benchmarks: times against budgets, ratios to opponents, and what changed since the last time.

They belong to the source checkout, not to the installed package. Parts that need a GPU run where one answers.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from phobos.cli.output import document
from phobos.errors import InputError

EXAMPLE = """
phobos bench                          all that can run here
phobos bench start frontend --quick   two parts, in seconds
phobos bench --results                put the tables into benchmarks/RESULTS.md
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("parts", nargs="*", metavar="PART", help="which (default: all; --list shows them)")
    parser.add_argument("--list", action="store_true", help="the parts, and stop")
    parser.add_argument("--quick", action="store_true", help="few rounds on small inputs: a look, not a measurement")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--markdown", action="store_true", help="the tables as Markdown on stdout")
    parser.add_argument("--results", action="store_true", help="put the tables into benchmarks/RESULTS.md too")
    parser.add_argument("--fail-on-budget", action="store_true", help="exit 1 where a budget is missed")


def run(arguments: argparse.Namespace) -> int:
    from phobos.check.project import read, write
    from phobos.codegen import cache
    from phobos.runtime.device import driver

    suite = _suite()
    if arguments.list:
        for part in suite.PARTS:
            print(f"{part.name:<12}{part.about}{' (needs a GPU)' if part.needs_gpu else ''}")
        return 0
    try:
        parts = suite.chosen(arguments.parts)
    except ValueError as error:
        raise InputError(str(error)) from None
    count, said = driver()
    results: list[Any] = []
    try:
        for result in suite.run(parts, quick=arguments.quick, gpu=(count > 0, said), say=_say):
            results.append(result)
    finally:  # also after Ctrl-C: what was measured is told and kept
        suite.compared(cache.root(), results, quick=arguments.quick)
        _print(arguments, suite, results)
        if arguments.results and not arguments.quick:
            path = os.path.join(_folder(), "RESULTS.md")
            write(path, suite.put_into(read(path).text, results))
    if any(result.failed for result in results):
        return 2
    return 1 if arguments.fail_on_budget and suite.missed(results) else 0


def _print(arguments: argparse.Namespace, suite: Any, results: list[Any]) -> None:
    if arguments.json:
        parts = [suite.as_dict(result) for result in results]
        document(json.dumps({"quick": arguments.quick, "parts": parts}, indent=2, ensure_ascii=False) + "\n")
    elif arguments.markdown:
        document(suite.markdown(results))
    else:
        print(suite.text(results), end="")


def _say(what: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what} ...", end="\n", file=sys.stderr, flush=True)


def _folder() -> str:
    """The benchmarks of the checkout that this package runs from. Raises InputError."""
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    folder = os.path.join(here, "benchmarks")
    if not os.path.isfile(os.path.join(folder, "suite.py")):
        raise InputError(
            f"the benchmarks belong to the source checkout, and phobos-tools is installed without one (in {here}): "
            "run `make bench` in a checkout"
        )
    return folder


def _suite() -> Any:
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("phobos_benchmark_suite", os.path.join(_folder(), "suite.py"))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
