"""Walking trees: the children of any node, the nodes around an offset, every node of an item. No recursion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from phobos.syntax import tree

_FIELDS: dict[type, tuple[str, ...]] = {}


def children(node: tree.Node) -> Iterator[tree.Node]:
    """The nodes directly inside `node`, in the order of its fields."""
    kind = type(node)
    names = _FIELDS.get(kind)
    if names is None:
        names = _FIELDS[kind] = tuple(f.name for f in fields(kind) if f.name not in ("start", "end"))
    for name in names:
        inside = getattr(node, name)
        if isinstance(inside, tree.Node):
            yield inside
        elif isinstance(inside, tuple):
            for part in inside:
                if isinstance(part, tree.Node):
                    yield part


def path_to(root: tree.Node, offset: int) -> list[tree.Node]:
    """The nodes that hold `offset`, outermost first; a node that ends there counts where no other begins."""
    path: list[tree.Node] = []
    node: tree.Node | None = root if root.start <= offset <= root.end else None
    while node is not None:
        path.append(node)
        inner = None
        for child in children(node):
            if child.start <= offset < child.end:
                inner = child
                break
            if offset == child.end and (inner is None or child.start > inner.start):
                inner = child
        node = inner
    return path


def every(root: tree.Node) -> Iterator[tree.Node]:
    """All nodes, parents before children, in no promised order otherwise."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(children(node))
