"""`// phobos: assume uniform(x)`: which statement each comment stands above."""

from __future__ import annotations

from phobos.semantics.build_broken import statements as all_statements
from phobos.semantics.build_context import Build
from phobos.syntax import tree
from phobos.syntax.pragmas import pragmas


def assumptions(b: Build, item: tree.Item, owner: str | None) -> None:
    """Note what an item's comments assume, by the statement that follows each. Once for an item."""
    if owner in b.assumes_of:
        return
    b.assumes_of.add(owner)
    if not item.comments or item.node is None or "assume" not in item.text:
        return
    names = [
        tree.Name(word.start, word.end, word.text)
        for pragma in pragmas(item.comments)
        if pragma.kind == "assume-uniform"
        for word in pragma.words
    ]
    if not names:
        return
    # The outermost statement of those that start at one place comes first.
    statements = sorted(all_statements(item.node.body.statements), key=lambda node: (node.start, -node.end))
    for name in names:
        follows = next((node for node in statements if node.start >= name.end), None)
        if follows is not None:
            b.assumes.setdefault(follows, []).append(name)
