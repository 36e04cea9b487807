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

from lark import Lark, Tree

from phobos.syntax import build, table
from phobos.syntax.tokens import BOOL, MISSING, NAME, TERMINALS, Token
from phobos.syntax.tree import SyntaxProblem
from phobos.value import value

DEPTH = 256
"""The deepest nesting of brackets, operators and blocks. Who walks a tree may rely on it."""

_KEPT_SHAPES = 20_000
_KEPT_LENGTH = 1_000  # longer pieces are not kept: they hardly come again
_LEVELS = 10  # of infix operators: in a row of n, n / 10 at least are nested
_INFIX = frozenset("OA|^&q<>oh+-*")
_OPERAND_ENDS = frozenset("nidb_)]")
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


class _Token:
    """What lark is fed: the kind of a token and the index of its value."""

    __slots__ = ("index", "type")

    def __init__(self, type: str, index: int) -> None:
        self.type = type
        self.index = index


_lark: Lark | None = None
_ORDER = (MISSING, ")", "]", NAME, "R", "N", "=", ",", ":", ">", "(", "[", "<", "i", "L")
# What recovery may put in, the best guess first.


def _learn(start: str, kinds: str) -> Shape:
    global _learnt, _lark
    _learnt += 1
    if _surely_too_deep(kinds):
        return _too_deep(len(kinds))
    if _lark is None:
        _lark = table.kept()
    state: Any = _lark.parse_interactive(None, start).parser_state
    tokens = [_Token(TERMINALS.get(k, k), i) for i, k in enumerate(kinds)]
    end = _Token("$END", len(kinds))
    added: list[tuple[str, int]] = []
    failure: Failure | None = None
    count = len(tokens)
    at = dropped = 0
    rest = count
    while True:
        try:
            while at < count:
                state.feed_token(tokens[at])
                at += 1
            root = state.feed_token(end, True)
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
                state.feed_token(_Token(TERMINALS[kind], len(tokens) + len(added)))
                added.append((kind, at))
    return _shape(root, len(tokens), tuple(added), rest, failure)


def _shape(
    root: Tree[Any], count: int, added: tuple[tuple[str, int], ...], rest: int, failure: Failure | None
) -> Shape:
    """The steps that make lark's tree, children before parents."""
    order: list[Tree[Any]] = []
    waiting = [root]
    while waiting:
        tree = waiting.pop()
        order.append(tree)
        waiting += [child for child in tree.children if isinstance(child, Tree)]
    steps: list[Step] = []
    chained: list[int] = []
    targets: list[int] = []
    places: dict[int, tuple[int, int]] = {}  # of a tree: the index of its value, and its height
    base = count + len(added)
    for tree in reversed(order):
        rule = tree.data
        children = [places[id(c)] if isinstance(c, Tree) else (c.index, 0) for c in tree.children]
        height = 1 + max(height for _, height in children)
        if height > DEPTH:
            return _too_deep(count)
        if rule == "comparison" and tree.children[0].data == "comparison":
            chained.append(children[1][0])
        elif rule == "assign" and not _assignable(tree.children[0]):
            targets.append(children[1][0])
        places[id(tree)] = base + len(steps), height
        steps.append((build.RULES[rule], tuple(index for index, _ in children)))
    return Shape(tuple(steps), added, rest, failure, places[id(root)][1], tuple(chained), tuple(targets))


def _assignable(target: Tree[Any]) -> bool:
    if target.data == "subscript":
        target = target.children[0]
    return target.data in ("name", "missing")


def _too_deep(count: int) -> Shape:
    return Shape((), (), count, None, DEPTH + 1, (), ())


def _surely_too_deep(kinds: str) -> bool:
    """Whether a glance shows that the tree would be too deep, so that lark is not asked for a huge one."""
    if len(kinds) <= DEPTH:
        return False
    infix, postfix, prefix = [0], [0], 0  # in a row, the first two for each open bracket
    before = ""
    for kind in kinds:
        if kind in "([":
            infix.append(0)
            postfix.append(0)
        elif kind in ")]." and len(infix) > (kind != "."):
            if kind != ".":
                infix.pop()
                postfix.pop()
            postfix[-1] += 1
        elif kind in "-!" and before not in _OPERAND_ENDS:
            prefix += 1
        elif kind in _INFIX:
            infix[-1] += 1
            postfix[-1] = 0
        else:
            prefix = 0
            if before != ".":
                postfix[-1] = 0
            if kind in ",:s=a":
                infix[-1] = 0
        if max(len(infix) - 1, postfix[-1], prefix) > DEPTH or infix[-1] > DEPTH * _LEVELS:
            return True
        before = kind
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
            probe.feed_token(_Token(terminal, -1), terminal == "$END")
    except table.Unexpected:
        return False
    return True


def _accepted(state: Any, candidates: set[str]) -> frozenset[str]:
    return frozenset(t for t in candidates if _fits(state, t))


__all__ = ["BOOL", "DEPTH", "Failure", "Shape", "learnt", "make", "shape_of"]
