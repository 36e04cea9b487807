"""A file's programs: every kernel and every function, analysed once per text and kept.

The one cache of facts: keyed by (item text, texts of the functions it inlines, settings), so that a line
inserted above twenty kernels analyses none again and an edit in a function exactly its callers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from phobos.diagnostic import Related, Span
from phobos.language.builtins import BUILTINS, CORE
from phobos.language.near import nearest
from phobos.semantics.build import build
from phobos.semantics.program import DEFAULTS, Problem, Program, Settings
from phobos.semantics.sight import in_sight
from phobos.syntax import parse, tree
from phobos.syntax.lines import line_at
from phobos.value import value


@value
class Unit:
    """One kernel or function of a file with its program and where it stands.

    `problems` is what to tell of it: those of the program, without the ones already told of an earlier unit (a
    function's own mistake, found again where it is inlined; an unknown name a second time), and with those that
    only the whole file shows (two kernels of one name, a function nobody calls).
    """

    offset: int
    item: tree.Item
    program: Program
    problems: tuple[Problem, ...] = ()


class Module:
    """A file. `kernels` and `functions` by name (the first of a name), `units` in file order.

    What `read` gives is parsed, and each item is analysed when something first asks of it.
    """

    __slots__ = ("_found", "_items", "_settings", "_units", "file", "path")

    def __init__(self, path: str, file: tree.File, settings: Settings) -> None:
        self.path = path
        self.file = file
        self._settings = settings
        self._found: dict[int, Program] = {}  # by the offset of the item
        self._units: tuple[tuple[Unit, ...], dict[str, Unit], dict[str, Unit]] | None = None
        self._items: dict[str, tree.Item] = {}  # of functions, by name
        for _, item in file.items:
            if isinstance(item.node, tree.Function):
                self._items.setdefault(item.node.name.text, item)

    @property
    def units(self) -> tuple[Unit, ...]:
        return self._analysed()[0]

    @property
    def kernels(self) -> dict[str, Unit]:
        return self._analysed()[1]

    @property
    def functions(self) -> dict[str, Unit]:
        return self._analysed()[2]

    def _analysed(self) -> tuple[tuple[Unit, ...], dict[str, Unit], dict[str, Unit]]:
        if self._units is None:
            items = [(offset, item) for offset, item in self.file.items if item.node is not None]
            units = _units([(offset, item, self.program(offset, item)) for offset, item in items], self.file)
            kernels: dict[str, Unit] = {}
            functions: dict[str, Unit] = {}
            for unit in units:
                (kernels if unit.program.owner is None else functions).setdefault(unit.program.name, unit)
            self._units = units, kernels, functions
        return self._units

    def program(self, offset: int, item: tree.Item) -> Program:
        """The program of one item of the file, which begins at `offset` and holds a kernel or a function."""
        found = self.known_program(offset, item)
        return self.new_program(offset, item) if found is None else found

    def new_program(self, offset: int, item: tree.Item) -> Program:
        """The same, made anew of the very nodes of `item`."""
        found = self._found[offset] = _made(item, self._items, self._settings)
        return found

    def known_program(self, offset: int, item: tree.Item) -> Program | None:
        """The same where it was made before, of this file or of an earlier text."""
        found = self._found.get(offset)
        if found is None:
            found = _known(_key(item, self._items, self._settings))
            if found is not None:
                self._found[offset] = found
        return found

    def in_sight(self, offset: int, item: tree.Item, inside: int) -> Program:
        """A program of the item that knows what the names in sight at `inside` are, and need not know anything else."""
        known = self.known_program(offset, item)
        return known if known is not None else build(in_sight(item, inside), self._items, self._settings)

    def absolute(self, unit: Unit, span: Span) -> Span:
        """A span of `unit`'s facts as one of the file: owner becomes `path`, offsets count from the file's start."""
        offset = unit.offset
        if span.owner is not None and span.owner != unit.program.owner:
            if span.owner == self.path:
                return span
            function = self.functions.get(span.owner)
            if function is not None:
                offset = function.offset
        return Span(self.path, span.start + offset, span.end + offset)

    def line(self, unit: Unit, span: Span) -> int:
        """The line of the file, from 1, on which a span of `unit`'s facts begins."""
        return line_at(self.file.text, self.absolute(unit, span).start)


def analyse(path: str, text: str, settings: Settings = DEFAULTS) -> Module:
    """Parse and analyse a whole file. Never raises for what the text holds."""
    module = read(path, text, settings)
    module._analysed()
    return module


def read(path: str, text: str, settings: Settings = DEFAULTS) -> Module:
    """Parse a file; its items are analysed as they are asked for. Never raises for what the text holds."""
    global _room
    file = parse(text)
    _room = max(_room, 3 * len(file.items))
    return Module(path, file, settings)


# --- the cache ----------------------------------------------------------------------------------------

LEAST_KEPT = 256
"""Programs kept, or three times those of the largest file, if that is more; the ones used longest ago go first."""

_room = LEAST_KEPT
_programs: dict[object, Program] = {}
_analysed = 0
_lock = threading.Lock()


def analysed_items() -> int:
    """How many items this process has analysed (not taken from the cache) so far; for tests and benchmarks."""
    return _analysed


def _made(item: tree.Item, functions: Mapping[str, tree.Item], settings: Settings) -> Program:
    """A new program, which is kept."""
    global _analysed
    program = build(item, functions, settings)
    with _lock:
        _analysed += 1
        _programs[_key(item, functions, settings)] = program
        while len(_programs) > _room:
            del _programs[next(iter(_programs))]
    return program


def _known(key: object) -> Program | None:
    """A program that is kept, which is then the one used last."""
    with _lock:
        program = _programs.pop(key, None)
        if program is not None:
            _programs[key] = program
        return program


def _key(item: tree.Item, functions: Mapping[str, tree.Item], settings: Settings) -> object:
    """All that a program depends on: its text, those of the functions it reaches, and the settings.

    Of a call to a name that nothing has, it depends on which function's name is near.
    """
    reached: dict[str, str | None] = {}
    stack = [item]
    while stack:
        for name in _called(stack.pop()):
            if name in reached:
                continue
            callee = functions.get(name)
            if callee is not None:
                reached[name] = callee.text
                stack.append(callee)
            elif name not in BUILTINS:
                near = nearest(name, functions, most=1)
                reached[name] = None if near is None else f"near {near}"
    texts = tuple(sorted(reached.items(), key=repr)) if reached else ()
    fixed = settings.constants, settings.sizes
    return item.text, texts, *(tuple(sorted(each)) if each else () for each in fixed), settings.known_functions


_calls: dict[tree.Item, tuple[str, ...]] = {}
_CALL_NOTHING = frozenset({tree.Name, tree.Int, tree.Float, tree.Bool, tree.Member, tree.Missing})


def _called(item: tree.Item) -> tuple[str, ...]:
    """The names that an item calls, each once."""
    known = _calls.get(item)
    if known is None:
        if len(_calls) > 2 * _room:
            _calls.clear()
        known = _calls[item] = tuple(dict.fromkeys(_callees(item.node)))
    return known


def _callees(root: tree.Kernel | tree.Function | None) -> Iterable[str]:
    stack: list[object] = [root.body] if root is not None else []
    while stack:
        node = stack.pop()
        if type(node) in _CALL_NOTHING:  # most of what is met
            continue
        match node:
            case tree.Binary(left=left, right=right):
                stack += (left, right)
            case tree.Call(callee=callee, arguments=arguments):
                yield callee.text
                stack += arguments
            case tree.Block(statements=inner):
                stack += inner
            case tree.Let(value=inner_value) | tree.ExprStmt(value=inner_value) | tree.Point(value=inner_value):
                stack.append(inner_value)
            case tree.Var(value=maybe) | tree.Return(value=maybe):
                if maybe is not None:
                    stack.append(maybe)
            case tree.Assign(target=target, value=assigned):
                stack += (target, assigned)
            case tree.For(lo=lo, hi=hi, step=step, body=body):
                stack += (lo, hi, body)
                if step is not None:
                    stack.append(step)
            case tree.While(condition=condition, body=body):
                stack += (condition, body)
            case tree.If(condition=condition, then=then, otherwise=otherwise):
                stack += (condition, then)
                if otherwise is not None:
                    stack.append(otherwise)
            case tree.Broken(parts=parts):
                stack += parts
            case tree.Unary(operand=operand):
                stack.append(operand)
            case tree.Subscript(base=base, subscripts=subscripts):
                stack.append(base)
                stack += subscripts
            case tree.SpanOf(first=first, length=length):
                stack += (first, length)
            case tree.Range(lo=start, hi=end):
                stack += [part for part in (start, end) if part is not None]
            case tree.Paren(inner=within):
                stack.append(within)


# --- what to tell -------------------------------------------------------------------------------------


def _units(found: list[tuple[int, tree.Item, Program]], file: tree.File) -> tuple[Unit, ...]:
    told: set[object] = set()
    problems: dict[int, list[Problem]] = {}
    # A function's own mistakes are told without the calls that led there, so functions come first.
    order = sorted(range(len(found)), key=lambda at: found[at][2].owner is None)
    for at in order:
        problems[at] = []
        program = found[at][2]
        for problem in program.problems:
            root = problem.root
            if root is not None and _is_shared(root, problem):
                if root in told:
                    continue
                told.add(root)
            problems[at].append(problem)
    _duplicates(found, problems)
    _uncalled(found, problems, file)
    return tuple(Unit(offset, item, program, tuple(problems[at])) for at, (offset, item, program) in enumerate(found))


def _is_shared(root: object, problem: Problem) -> bool:
    """Whether another unit can have the same problem: it lies in a function, or is told once a file."""
    if isinstance(root, tuple) and root and root[0] in ("unknown-function", "later", "thread", "recursion"):
        return True
    return problem.span.owner is not None


def _duplicates(found: list[tuple[int, tree.Item, Program]], problems: dict[int, list[Problem]]) -> None:
    first: dict[tuple[bool, str], int] = {}
    for at, (_, _, program) in enumerate(found):
        name = program.name
        if not name:
            continue
        before = first.setdefault((program.owner is None, name), at)
        if before == at or found[before][1].problems:
            continue  # what did not parse need not be what it is called
        what = "kernels" if program.owner is None else "functions"
        place, other = program.kernel.name, found[before][2].kernel.name
        # The other item's offset is not this one's: give it relative to this item, as every span here is.
        shift = found[before][0] - found[at][0]
        problems[at].append(
            Problem(
                "PH102",
                "error",
                f"two {what} are called `{name}`",
                Span(program.owner, place.start, place.end),
                "defined again here",
                related=(Related(Span(program.owner, other.start + shift, other.end + shift), "first defined here"),),
                help="rename one of them",
            )
        )


def _uncalled(found: list[tuple[int, tree.Item, Program]], problems: dict[int, list[Problem]], file: tree.File) -> None:
    """Functions that no kernel reaches. Where some text did not parse nobody knows who calls what."""
    kernels = [item for _, item, program in found if program.owner is None]
    if not kernels or any(item.problems for _, item in file.items):
        return
    by_name = {program.name: item for _, item, program in reversed(found) if program.owner is not None}
    reached: set[str] = set()
    stack = list(kernels)
    while stack:
        for name in _called(stack.pop()):
            if name in by_name and name not in reached:
                reached.add(name)
                stack.append(by_name[name])
    for at, (_, _, program) in enumerate(found):
        name = program.name
        if program.owner is None or name in reached or not name or name.startswith("_"):
            continue
        place = program.kernel.name
        hidden = name in CORE
        problems[at].append(
            Problem(
                "PH112",
                "warning",
                f"`{name}(..)` always means the built-in, so this function is never called"
                if hidden
                else f"no kernel calls the function `{name}`",
                Span(program.owner, place.start, place.end),
                "never called",
                help="give it another name" if hidden else f"remove it, or call it `_{name}` to keep it",
                tags=("unnecessary",),
            )
        )
