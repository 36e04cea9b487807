"""What a kernel holds that no GPU code is written for, by the name the user gave it."""

from __future__ import annotations

from math import prod

from phobos.diagnostic import Span
from phobos.language.builtins import BUILTINS
from phobos.lowering import walk
from phobos.lowering.stretches import is_stretch, read_elsewhere
from phobos.semantics import ir
from phobos.semantics.program import Program
from phobos.semantics.values import values_of
from phobos.value import value

MOST_NESTED = 10  # loops inside one another: where threads wait is found by walking each twice, and what is in it
MOST_REACHED = 1 << 30  # cells of one statement: threads count them in 32 bits
MOST_HELD = 1024  # elements of a tile for a thread of 255 registers: laying out more takes the compiler minutes


@value
class Missing:
    what: str
    span: Span
    label: str


def missing(program: Program) -> list[Missing]:
    """Everything that keeps a program from being compiled; empty where it can be."""
    found: list[Missing] = []
    deepest = _too_deep(program.body)
    if deepest is not None:
        found.append(Missing(f"its loops are nested more than {MOST_NESTED} deep", deepest, "one loop too many"))
    for statement in walk.statements(program.body):
        if isinstance(statement, ir.UnsupportedCall):
            found.append(_call(statement.name, statement.span))
        if isinstance(statement, ir.Store) and is_stretch(statement):
            views = {s.variable: s.access for s in walk.statements(program.body) if isinstance(s, ir.DefineView)}
            elsewhere = read_elsewhere(statement, views, values_of(program))
            if elsewhere is not None:
                what = "a statement that reads its own tensor at another place, over a length known only when run"
                found.append(Missing(what, elsewhere.span, "copy it in tiles of a fixed length"))
        found += _too_large(statement, program.launch.threads)
        for root in walk.expressions(statement):
            for one in walk.every(root):
                if isinstance(one, ir.ThreadValue):
                    found.append(Missing(f"`{one.name}` is per-thread code, which is not supported", one.span, ""))
                elif isinstance(one, ir.Unsupported):
                    found.append(_call(one.name, one.span))
                elif isinstance(one, ir.Error):
                    found.append(Missing("it has errors", one.span, ""))
    return found


def _too_deep(body: ir.Block) -> Span | None:
    """The first loop that stands inside too many others."""
    waiting: list[tuple[ir.Block, int]] = [(body, 0)]
    while waiting:
        block, depth = waiting.pop()
        for statement in block.statements:
            inside = depth + isinstance(statement, (ir.For, ir.While))
            if inside > MOST_NESTED:
                return statement.span
            waiting += [(inner, inside) for inner in walk.blocks(statement)]
    return None


def _too_large(statement: ir.Statement, threads: int) -> list[Missing]:
    """A tile that no block could hold, or more cells than one statement can reach."""
    tiles = [one.type for root in walk.expressions(statement) for one in walk.every(root)]
    if isinstance(statement, ir.Define):
        tiles.append(statement.variable.type)
        held = _cells(statement.variable.type)
        if MOST_HELD * threads < held <= MOST_REACHED:
            what = f"a tile of {held} elements: {threads} threads hold at most {MOST_HELD * threads}"
            return [Missing(what, statement.span, "go over it in smaller tiles")]
    reached = max(map(_cells, tiles), default=0)
    if isinstance(statement, ir.Store):
        reached = max(reached, prod(sub.static or 1 for sub in statement.access.subs if isinstance(sub, ir.SliceSub)))
    if reached <= MOST_REACHED:
        return []
    what = f"a statement over {reached} cells: at most {MOST_REACHED} are reached by one"
    return [Missing(what, statement.span, "go over them in smaller tiles")]


def _cells(kind: ir.Type) -> int:
    """Elements of a tile, as far as its lengths are known when compiled."""
    return prod(n for n in kind.shape if isinstance(n, int)) if isinstance(kind, ir.TileT) else 0


def _call(name: str, span: Span) -> Missing:
    if name in BUILTINS:
        return Missing(f"`{name}` is known by name, and is not executed here", span, "checked, but not executable yet")
    return Missing(f"`{name}` is no function of this file and no built-in", span, "nothing of this name is known")
