"""As much of an item as decides what the names in sight at an offset are.

What a name is (its type, the length of a tile) is settled by its declaration and by the values that integers have
there. So of the statements those count that declare something in sight, that assign to a whole variable or that may
leave the way to the offset; what is stored to tensors, waited for or done in blocks without such statements does not.
A program built of the rest knows the names in sight as the whole one does, and is made in a fraction of the time.
"""

from __future__ import annotations

from phobos.semantics.build_broken import statements
from phobos.syntax import tree
from phobos.value import replace


def in_sight(item: tree.Item, offset: int) -> tree.Item:
    """The item with the statements that bear on the names in sight at `offset`; nodes that stay are the item's own."""
    node = item.node
    if node is None:
        return item
    body = _block(node.body, offset, False)
    return tree.Item(item.text, replace(node, body=body), item.problems, item.comments)


def _block(block: tree.Block, offset: int, repeats: bool) -> tree.Block:
    """`repeats`: what stands behind the offset comes before it too, in the next round."""
    kept: list[tree.Stmt] = []
    for statement in block.statements:
        if statement.start >= offset:
            if repeats and _bears(statement):
                kept.append(statement)
        elif isinstance(statement, (tree.Let, tree.Var)):
            kept.append(statement)
        elif statement.end >= offset:
            kept.append(_around(statement, offset, repeats))
        elif _bears(statement):
            kept.append(statement)
    return tree.Block(block.start, block.end, tuple(kept))


def _around(statement: tree.Stmt, offset: int, repeats: bool) -> tree.Stmt:
    """A statement that the offset lies in."""
    match statement:
        case tree.For(body=body) | tree.While(body=body):
            return replace(statement, body=_block(body, offset, True))
        case tree.Block():
            return _block(statement, offset, repeats)
        case tree.If():
            arms = [statement]
            while isinstance(last := arms[-1].otherwise, tree.If):  # a chain may be longer than Python likes to recurse
                arms.append(last)
            rest: tree.Block | tree.If | None = None if last is None else _arm(last, offset, repeats)
            for arm in reversed(arms):
                rest = replace(arm, then=_arm(arm.then, offset, repeats), otherwise=rest)
            assert rest is not None
            return rest
    return statement


def _arm(block: tree.Block, offset: int, repeats: bool) -> tree.Block:
    """A block of a branch, which the offset may lie in."""
    if block.start <= offset <= block.end:
        return _block(block, offset, repeats)
    return block if any(map(_bears, block.statements)) else tree.Block(block.start, block.end, ())


def _bears(statement: tree.Stmt) -> bool:
    """Whether a statement beside the way can change what the names in sight are."""
    return any(_changes(one) for one in statements((statement,)))


def _changes(statement: tree.Stmt) -> bool:
    match statement:
        case tree.Assign(target=tree.Name()) | tree.Return() | tree.Break() | tree.Continue() | tree.Broken():
            return True
    return False
