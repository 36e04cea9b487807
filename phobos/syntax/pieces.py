"""Pieces of a file to nodes: lark's LALR parser, asked once for each *shape*.

How a piece derives from the grammar depends on the kinds of its tokens alone. So lark is asked once for a
string of kinds, what it did is kept as a list of steps (`Shape`), and every later piece of those kinds is built
by taking the same steps on its own tokens. That holds for wrong pieces too: where the parse fails, what was
expected there, and which tokens to put in or leave out so that the rest still gives nodes, are part of the shape.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from lark import Lark

from phobos.syntax import build, table
from phobos.syntax.tokens import BOOL, MISSING, NAME, TERMINALS, Token
from phobos.syntax.tree import SyntaxProblem
from phobos.value import value

DEPTH = 256
"""The deepest nesting of brackets, operators and blocks. Who walks a tree may rely on it."""

_KEPT_SHAPES = 20_000
_KEPT_LENGTH = 1_000  # longer pieces are not kept: they hardly come again
_REPAIRS = 12  # in one piece; after that its remaining tokens are left out

Step = tuple[Callable[..., Any], tuple[int, ...]]


@value
class Failure:
    """Where the first token stands that fits nowhere (the piece's length: at its end) and what would have fitted.

    `open` is the index of the bracket that is open there, -1 when none is.
    """

    at: int
    expected: frozenset[str]
    open: int


@value
class Shape:
    """How to build the node of a piece.

    Step `k` applies its function to earlier values: values 0.. are the tokens, then come the tokens of `added`
    (kind, index of the token it stands before), then the results of steps. `rest` is the first token not used.
    `depth` is the height of the tree; `steps` are empty when it is too deep. `chained` are the operators of
    chained comparisons, `targets` of assignments to something that cannot be assigned.
    """

    steps: tuple[Step, ...]
    added: tuple[tuple[str, int], ...]
    rest: int
    failure: Failure | None
    depth: int
    chained: tuple[int, ...]
    targets: tuple[int, ...]


def shape_of(start: str, kinds: str) -> Shape:
    """The shape of a piece that begins with rule `start`. Learnt once, then remembered."""
    key = (start, kinds)
    shape = _SHAPES.get(key)
    if shape is None:
        with _LOCK:
            shape = _learn(start, kinds)
            if len(kinds) <= _KEPT_LENGTH:
                if len(_SHAPES) >= _KEPT_SHAPES:
                    _SHAPES.clear()
                _SHAPES[key] = shape
    return shape


def make(shape: Shape, tokens: list[Token], end: int, problems: list[SyntaxProblem]) -> Any:
    """The node that `shape` makes of `tokens`; `end` is where an added token stands that comes after them all."""
    values: list[Any] = tokens
    if shape.added:
        values = tokens + [_added(kind, index, tokens, end) for kind, index in shape.added]
    else:
        values = tokens.copy()
    add = values.append
    for function, indices in shape.steps:
        add(function(problems, *[values[i] for i in indices]))
    return values[-1]


def _added(kind: str, index: int, tokens: list[Token], end: int) -> Token:
    """An empty token. It stands where the gap begins: behind the token before it."""
    at = tokens[index - 1][1] if index else (tokens[0][0] if tokens else end)
    return at, at, ""


def learnt() -> int:
    """How many shapes lark has parsed in this process; for tests and benchmarks."""
    return _learnt


_SHAPES: dict[tuple[str, str], Shape] = {}
_LOCK = threading.RLock()
_learnt = 0


# --- learning a shape -------------------------------------------------------------------------------------------


class _Value:
    """What stands on lark's value stack while a shape is learnt: the index of a value, not the value."""

    __slots__ = ("depth", "index", "rule", "type")

    def __init__(self, type: str, index: int, depth: int = 0, rule: str = "") -> None:
        self.type = type
        self.index = index
        self.depth = depth
        self.rule = rule


class _TooDeep(Exception):
    pass


class Recorder:
    """Given to lark as its transformer: notes down each reduction as a step."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.steps: list[tuple[Callable[..., Any], tuple[_Value, ...]]] = []
        self.results: list[_Value] = []
        self.chained: list[int] = []
        self.targets: list[int] = []

    def __getattr__(self, rule: str) -> Callable[[list[_Value]], _Value]:
        if rule not in build.RULES:
            raise AttributeError(rule)
        function = build.RULES[rule]

        def reduce(children: list[_Value]) -> _Value:
            depth = 1 + max(c.depth for c in children)
            if depth > DEPTH:
                raise _TooDeep
            if rule == "comparison" and children[0].rule == "comparison":
                self.chained.append(children[1].index)
            elif rule == "assign" and not self._assignable(children[0]):
                self.targets.append(children[1].index)
            result = _Value("", -1, depth, rule)
            self.steps.append((function, tuple(children)))
            self.results.append(result)
            return result

        return reduce

    def _assignable(self, target: _Value) -> bool:
        if target.rule in ("name", "missing"):
            return True
        if target.rule != "subscript":
            return False
        base = self.steps[self.results.index(target)][1][0]
        return base.rule in ("name", "missing")


_recorder = Recorder()
_lark: Lark | None = None
_ORDER = (MISSING, ")", "]", NAME, "R", "N", "=", ",", ":", ">", "(", "[", "<", "i", "L")
# What recovery may put in, the best guess first.


def _learn(start: str, kinds: str) -> Shape:
    global _learnt, _lark
    _learnt += 1
    if _brackets_too_deep(kinds):
        return _too_deep(kinds)
    if _lark is None:
        _lark = table.load(table.STARTS, _recorder, table.cache_file())
    _recorder.reset()
    state: Any = _lark.parse_interactive(None, start).parser_state
    tokens = [_Value(TERMINALS.get(k, k), i) for i, k in enumerate(kinds)]
    end = _Value("$END", len(kinds))
    added: list[tuple[str, int]] = []
    extra: list[_Value] = []
    failure: Failure | None = None
    count = len(tokens)
    at = dropped = 0
    rest = count
    try:
        while True:
            try:
                while at < count:
                    state.feed_token(tokens[at])
                    at += 1
                state.feed_token(end, True)
                break
            except table.Unexpected as error:
                if failure is None:
                    failure = Failure(at, _accepted(state, error.expected), _open_bracket(kinds, at))
                if at < count and _fits(state, "$END"):
                    rest = count = at
                    continue
                if at < count and len(added) + dropped >= _REPAIRS:
                    at = count  # the piece makes no sense: complete what there is
                    continue
                following = tokens[at].type if at < count else "$END"
                kind = next((k for k in _ORDER if _fits(state, TERMINALS[k], following)), None)
                if kind == ")" and at and kinds[at - 1] == "(" and _fits(state, "MISSING"):
                    kind = MISSING  # `exp(` has an argument still to come
                if kind is None and at == count:
                    kind = next((k for k in _ORDER if _fits(state, TERMINALS[k])), None)
                    if kind is None or len(added) > 3 * DEPTH:
                        raise AssertionError(f"no way to complete {start} {kinds[:80]!r}") from None
                if kind is None:
                    at += 1  # leave the token out
                    dropped += 1
                else:
                    token = _Value(TERMINALS[kind], -1)
                    added.append((kind, at))
                    extra.append(token)
                    state.feed_token(token)
    except _TooDeep:
        return _too_deep(kinds)
    base = len(tokens)
    for offset, token in enumerate(extra):
        token.index = base + offset
    base += len(extra)
    for offset, result in enumerate(_recorder.results):
        result.index = base + offset
    steps = tuple((function, tuple(c.index for c in children)) for function, children in _recorder.steps)
    depth = _recorder.results[-1].depth if steps else 0
    return Shape(
        steps, tuple(added), rest, failure, depth, tuple(_recorder.chained), tuple(_recorder.targets)
    )


def _too_deep(kinds: str) -> Shape:
    return Shape((), (), len(kinds), None, DEPTH + 1, (), ())


def _brackets_too_deep(kinds: str) -> bool:
    if len(kinds) <= DEPTH:
        return False
    depth = 0
    for kind in kinds:
        if kind in "([":
            depth += 1
            if depth > DEPTH:
                return True
        elif kind in ")]":
            depth -= 1
    return False


def _open_bracket(kinds: str, at: int) -> int:
    stack: list[int] = []
    for index, kind in enumerate(kinds[:at]):
        if kind in "([":
            stack.append(index)
        elif kind in ")]" and stack:
            stack.pop()
    return stack[-1] if stack else -1


def _fits(state: Any, *terminals: str) -> bool:
    """Whether the terminals could come next, in this order."""
    probe = table.probe(state)
    try:
        for terminal in terminals:
            probe.feed_token(_Value(terminal, -1), terminal == "$END")
    except table.Unexpected:
        return False
    return True


def _accepted(state: Any, candidates: set[str]) -> frozenset[str]:
    return frozenset(t for t in candidates if _fits(state, t))


__all__ = ["BOOL", "DEPTH", "Failure", "Recorder", "Shape", "learnt", "make", "shape_of"]
