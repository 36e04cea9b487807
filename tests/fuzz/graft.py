"""Pieces of trees in place of others of their kind: expressions, subscripts, statements, types, attributes, whole
blocks, from the same text or another, with the names of the place they come to. What comes out mostly parses, and
is near to something that a rule looks at.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from phobos.language.builtins import BUILTINS
from phobos.language.scalars import SCALARS
from phobos.syntax import parse, tree
from phobos.syntax.tokens import KEYWORDS

KINDS: dict[str, tuple[type[tree.Node], ...]] = {
    "expression": (
        tree.Name, tree.Int, tree.Float, tree.Bool, tree.Unary, tree.Binary, tree.Call, tree.Subscript, tree.Member,
        tree.Paren,
    ),
    "index": (tree.Point, tree.SpanOf, tree.Range),
    "statement": (
        tree.Let, tree.Var, tree.Assign, tree.For, tree.While, tree.If, tree.Break, tree.Continue, tree.Return,
        tree.ExprStmt,
    ),
    "type": (tree.ScalarType, tree.TensorType, tree.TileType),
    "attribute": (tree.Attribute,),
    "block": (tree.Block,),
}  # fmt: skip
_KIND = {kind: name for name, kinds in KINDS.items() for kind in kinds}
_WORD = re.compile(r"(?<![\w.@])[^\W\d]\w*")
_OWN = frozenset((*KEYWORDS, *BUILTINS, *SCALARS, "ctx", "range", "tensor", "tile", "unroll"))


@lru_cache(4096)
def places(text: str) -> dict[str, list[tuple[int, int]]]:
    """Where the nodes of each kind stand in a text."""
    found: dict[str, list[tuple[int, int]]] = {}
    for offset, item in parse(text).items:
        for kind, node in _nodes(item.node):
            if node.end > node.start:
                found.setdefault(kind, []).append((offset + node.start, offset + node.end))
    return found


def _nodes(root: Any) -> Iterator[tuple[str, tree.Node]]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting += node
        elif isinstance(node, tree.Node):
            kind = _KIND.get(type(node))
            if kind is not None:
                yield kind, node
            children = [getattr(node, name) for name in type(node).__dataclass_fields__ if name not in ("start", "end")]
            if isinstance(node, tree.Call | tree.Member | tree.Let | tree.Var | tree.Param | tree.Kernel):
                children = [child for child in children if not isinstance(child, tree.Name)]
            waiting += children


def grafted(rng: random.Random, text: str, donor: str) -> str:
    """`text` with one piece of `donor` in place of one of its own, or beside it."""
    own, other = places(text), places(donor)
    kinds = [kind for kind in KINDS if kind in own and kind in other]
    if not kinds:
        return text
    kind = rng.choice([*kinds, *[k for k in ("expression", "index", "statement") if k in kinds] * 2])
    start, end = rng.choice(own[kind])
    first, last = rng.choice(other[kind])
    piece = renamed(rng, donor[first:last], text) if donor != text else donor[first:last]
    if kind == "expression" and " " in piece and rng.random() < 0.7:
        piece = f"({piece})"
    if kind in ("statement", "attribute") and rng.random() < 0.5:
        return f"{text[:start]}{piece}\n{text[start:]}"
    if kind == "expression" and rng.random() < 0.3:
        return f"{text[:start]}{text[start:end]} {rng.choice('+-*/%')} {piece}{text[end:]}"
    return text[:start] + piece + text[end:]


def renamed(rng: random.Random, piece: str, text: str) -> str:
    """The piece with names of `text`: tensors for what is subscripted, others for others; now and then its own."""
    tensors = re.findall(r"([^\W\d]\w*)\s*:\s*tensor\b", text) or ["X"]
    others = [word for word in set(_WORD.findall(text)) if word not in _OWN and word not in tensors]
    others.sort()
    means: dict[str, str] = {}

    def mine(match: re.Match[str]) -> str:
        word = match.group()
        if word in _OWN:
            return word
        if word not in means:
            subscripted = match.end() < len(piece) and piece[match.end()] == "["
            choice = tensors if subscripted or not others else others
            means[word] = rng.choice(choice) if rng.random() < 0.9 else word
        return means[word]

    return _WORD.sub(mine, piece)
