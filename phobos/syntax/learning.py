"""Shapes learnt from lark: a string of token kinds goes in, the steps that make the node come out.

Where a piece is wrong, tokens are put in or left out until it parses, one at a time and the best guess first, so
that unfinished code gives nodes. This is the only module that runs lark; it is imported when a shape is new.
"""

from __future__ import annotations

from typing import Any

from lark import Lark, Tree

from phobos.syntax import build, table
from phobos.syntax.shapes import DEPTH, Failure, Shape, Step
from phobos.syntax.tokens import MISSING, NAME, TERMINALS

_LEVELS = 10  # of infix operators: in a row of n, n / 10 at least are nested
_INFIX = frozenset("OA|^&q<>oh+-*")
_OPERAND_ENDS = frozenset("nidb_)]")
_REPAIRS = 12  # in one piece; after that its remaining tokens are left out


class _Token:
    """What lark is fed: the kind of a token and the index of its value."""

    __slots__ = ("index", "type")

    def __init__(self, type: str, index: int) -> None:
        self.type = type
        self.index = index


_lark: Lark | None = None
_ORDER = (MISSING, ")", "]", NAME, "R", "N", "=", ",", ":", ">", "(", "[", "<", "i", "L")
# What recovery may put in, the best guess first.


def parser() -> Lark:
    """Lark's parser of pieces, made when it is first wanted."""
    global _lark
    if _lark is None:
        _lark = table.kept()
    return _lark


def learn(start: str, kinds: str) -> Shape:
    """What lark makes of a piece, mended where it is wrong."""
    if _surely_too_deep(kinds):
        return _too_deep(len(kinds))
    state: Any = parser().parse_interactive(None, start).parser_state
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
