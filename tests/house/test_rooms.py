"""The rules of the house: who may import whom, and what a command may load."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PHOBOS = ROOT / "phobos"

# From the top: a module imports only rooms that stand above its own (docs/architecture.md).
ROOMS = (
    "value", "diagnostic", "errors", "files", "processes", "syntax", "language", "semantics", "lowering", "codegen",
    "check", "ide", "lsp", "runtime", "runtime.reference", "runtime.cuda", "cli",
)  # fmt: skip
TOP = ("value", "diagnostic", "errors", "files", "processes")

# What a room may reach that stands below it, and why.
ALLOWED = {
    ("runtime", "runtime.reference"),  # `Kernel` runs on both of its two engines
    ("runtime", "runtime.cuda"),
}


def room_of(module: str) -> str | None:
    """The room of `phobos.a.b`; None for the package itself."""
    parts = module.split(".")[1:]
    if not parts:
        return None
    two = ".".join(parts[:2])
    return two if two in ROOMS else parts[0]


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PHOBOS.rglob("*.py")):
        parts = list(path.relative_to(ROOT).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        yield ".".join(parts), path


@cache
def imports(path: Path) -> tuple[tuple[str, int], ...]:
    """Every module that a file imports, wherever in it, with the line."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            yield str(node.module), node.lineno
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno


@cache
def known() -> set[str]:
    return {name for name, _ in modules()}


def test_every_module_stands_in_a_room() -> None:
    others = {room_of(name) for name, _ in modules()} - set(ROOMS) - {None, "__main__", "notebook", "pygments_lexer"}
    assert not others


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_rooms_above_it(room: str) -> None:
    names = known()
    wrong: list[str] = []
    for module, path in modules():
        if room_of(module) != room:
            continue
        for imported, line in imports(path):
            if not imported.startswith("phobos.") or (imported not in names and imported.rpartition(".")[0] in names):
                continue
            target = room_of(imported)
            if target is None or target == room or (room in TOP and target in TOP) or (room, target) in ALLOWED:
                continue
            if ROOMS.index(target) > ROOMS.index(room):
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {room} imports {imported}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "package, rooms",
    [
        ("pygls", ("lsp",)),
        ("lsprotocol", ("lsp",)),
        ("cupy", ("runtime.cuda",)),
        ("lark", ("syntax",)),
        ("cuda", ("codegen",)),
        ("dask", ("runtime.cluster",)),
        ("distributed", ("runtime.cluster",)),
    ],
)
def test_a_library_has_one_home(package: str, rooms: tuple[str, ...]) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}"
        for module, path in modules()
        for imported, line in imports(path)
        if imported.split(".")[0] == package and not module.startswith(tuple(f"phobos.{room}" for room in rooms))
    ]
    assert not wrong


def test_the_judge_shares_nothing_with_what_it_judges() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {imported}"
        for module, path in modules()
        if room_of(module) == "runtime.reference"
        for imported, line in imports(path)
        if room_of(imported) in ("lowering", "codegen") and imported.startswith("phobos.")
    ]
    assert not wrong


def loaded_by(code: str) -> set[str]:
    """The top-level packages that a program has loaded when it ends."""
    shown = subprocess.run(
        [sys.executable, "-c", code + "\nimport sys; print('LOADED', *{m.split('.')[0] for m in sys.modules})"],
        capture_output=True, text=True, cwd=ROOT, check=True,
    ).stdout  # fmt: skip
    return set(shown.rpartition("LOADED ")[2].split())


HEAVY = {"pygls", "lsprotocol", "cupy", "cuda", "numpy", "ml_dtypes", "rich", "pathspec", "asyncio", "tomllib"}
HEAVY |= {"dask", "distributed", "tornado"}


def test_checking_loads_nothing_heavy() -> None:
    check = "from phobos.cli import main; main(['check', '--isolated', 'examples/staged.ph', 'examples/gemm.ph'])"
    assert not loaded_by(check) & HEAVY
    assert not loaded_by("import phobos; phobos.check('kernel k(X: tensor<f32>[N]) {}')") & HEAVY


SLOW = {"dataclasses", "inspect", "ast", "shutil", "difflib"}  # each milliseconds of every start


def test_checking_loads_no_slow_part_of_the_standard_library() -> None:
    check = "from phobos.cli import main; main(['check', '--isolated', 'examples/staged.ph', 'examples/gemm.ph'])"
    loaded_by(check)  # what is met for the first time is learnt with lark, which loads some of these
    assert not (loaded_by(check) - loaded_by("pass")) & SLOW


def test_checking_does_not_load_what_only_other_commands_need() -> None:
    code = (
        "from phobos.cli import main; main(['check', '--isolated', 'examples/staged.ph'])\n"
        "import sys; print('MODULES', *[m for m in sys.modules if m.startswith('phobos.')])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True).stdout
    modules = shown.rpartition("MODULES ")[2].split()
    unwanted = ("phobos.lowering", "phobos.codegen", "phobos.ide", "phobos.lsp", "phobos.runtime")
    assert not [module for module in modules if module.startswith(unwanted)]


def test_the_server_loads_no_array_library() -> None:
    loaded = loaded_by("import phobos.cli.lsp, phobos.lsp")
    assert not loaded & {"dask", "distributed", "cupy", "cuda", "numpy", "ml_dtypes"}


def test_every_file_begins_by_saying_what_it_knows() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for _, path in modules()
        if path.read_text(encoding="utf-8").strip()
        and not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not silent


LONG = 600


def test_a_file_is_as_long_as_one_can_keep_in_mind() -> None:
    """Whoever writes a longer one looks for the two things that it knows."""
    long = {path.stem for _, path in modules() if path.read_text(encoding="utf-8").count("\n") > LONG}
    assert not long


@cache
def importers() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {name: set() for name in known()}
    for module, path in modules():
        for imported, _ in imports(path):
            if imported in found and imported != module:
                found[imported].add(module)
    return found


FOUND_BY_NAME = ("phobos.check.rules.", "phobos.check.render.", "phobos.cli.", "phobos.runtime.tuning.worker")


def test_every_module_is_used() -> None:
    """By another, or by its name: rules, renderers, commands, what a process begins with, what a library looks up."""
    alone = {name for name, others in importers().items() if not others and not name.startswith(FOUND_BY_NAME)}
    assert alone == {"phobos.__main__", "phobos.pygments_lexer"}


def test_the_list_in_the_documentation_is_the_one_that_is_tested() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    at = [text.index(f"`{room.replace('.', '/')}") for room in ROOMS if room not in TOP]
    assert at == sorted(at)
