"""Trees as the tests need them: compared without positions, printed as text, and made up at random."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from phobos.syntax import parse, pieces, tree
from phobos.syntax.tokens import KEYWORDS

# --- comparing ----------------------------------------------------------------------------------------------------


def sketch(node: Any, positions: bool = False) -> Any:
    """A node as nested tuples: class, then fields; offsets only if asked for."""
    if isinstance(node, tuple):
        return tuple(sketch(n, positions) for n in node)
    if isinstance(node, tree.Node | tree.SyntaxProblem | tree.Comment | tree.Item):
        names = type(node).__dataclass_fields__
        places = ("start", "end", "op_start", "else_start")
        kept = [n for n in names if positions or n not in places]
        return (type(node).__name__, *(sketch(getattr(node, n), positions) for n in kept))
    return node


def nodes_of(text: str) -> list[Any]:
    """The kernels and functions of a text, as sketches."""
    return [sketch(item.node) for _, item in parse(text).items if item.node is not None]


def whole(text: str) -> Any:
    """Everything `parse` says of a text, with all positions."""
    return [(offset, sketch(item, positions=True)) for offset, item in parse(text).items]


def problems(text: str) -> list[tuple[str, int, str]]:
    """(code, line from 1, marked text) of every problem, in order."""
    found = []
    for offset, item in parse(text).items:
        for p in item.problems:
            start, end = offset + p.start, offset + p.end
            found.append((p.code, text.count("\n", 0, start) + 1, text[start:end]))
    return found


def body(lines: str) -> str:
    """Statements in a kernel; they begin on line 2."""
    return "kernel k(X: tensor<f32>[N]) {\n" + lines + "\n}\n"


def statements(lines: str) -> tuple[Any, ...]:
    """The statements that `lines` make in a kernel, as nodes."""
    (_, item), *_ = parse(body(lines)).items
    assert isinstance(item.node, tree.Kernel)
    return item.node.body.statements


def forget() -> None:
    """Parse as a process does that has parsed nothing yet (but has the grammar)."""
    import phobos.syntax

    phobos.syntax._items.clear()
    phobos.syntax._kept = 0
    pieces._shapes.clear()


# --- printing -----------------------------------------------------------------------------------------------------


def show(node: Any) -> str:
    """A node as text. Nothing but `Paren` makes parentheses."""
    match node:
        case tree.Name():
            return node.text
        case tree.Int():
            return str(node.value)
        case tree.Float():
            return node.text
        case tree.Bool():
            return "true" if node.value else "false"
        case tree.Unary():
            return node.op + show(node.operand)
        case tree.Binary():
            return f"{show(node.left)} {node.op} {show(node.right)}"
        case tree.Call():
            return f"{show(node.callee)}({listed(node.arguments)})"
        case tree.Subscript():
            return f"{show(node.base)}[{listed(node.subscripts)}]"
        case tree.Member():
            return f"{show(node.base)}.{show(node.name)}"
        case tree.Paren():
            return f"({show(node.inner)})"
        case tree.Point():
            return show(node.value)
        case tree.SpanOf():
            return f"{show(node.first)} :+ {show(node.length)}"
        case tree.Range():
            return f"{show(node.lo) if node.lo else ''}:{show(node.hi) if node.hi else ''}"
        case tree.ScalarType():
            return node.name
        case tree.TensorType():
            return f"tensor<{show(node.element)}>[{listed(node.dims)}]"
        case tree.TileType():
            return f"tile<{show(node.element)}>[{listed(node.dims)}]"
        case tree.Param():
            return f"{show(node.name)}: {show(node.type)}"
        case tree.SearchArg():
            return f"{show(node.name)} in [{listed(node.values)}]"
        case tree.KeywordArg():
            return f"{show(node.name)} = {show(node.value)}"
        case tree.PlainArg():
            return show(node.value)
        case tree.Attribute():
            return f"@{show(node.name)}" + (f"({listed(node.arguments)})" if node.parenthesised else "")
        case tree.Kernel():
            attributes = "".join(show(a) + "\n" for a in node.attributes)
            return f"{attributes}kernel {show(node.name)}({listed(node.params)}) {show(node.body)}\n"
        case tree.Function():
            result = f" -> {show(node.result)}" if node.result else ""
            return f"fn {show(node.name)}({listed(node.params)}){result} {show(node.body)}\n"
        case tree.Block():
            return "{\n" + "".join(show(s) + "\n" for s in node.statements) + "}"
        case tree.Let() | tree.Var():
            word = "let" if isinstance(node, tree.Let) else "var"
            type = f": {show(node.type)}" if node.type else ""
            given = f" = {show(node.value)}" if node.value else ""
            return f"{word} {show(node.name)}{type}{given}"
        case tree.Assign():
            return f"{show(node.target)} {node.op} {show(node.value)}"
        case tree.For():
            unroll = f"<unroll {node.unroll.value}>" if node.unroll else ""
            step = f", {show(node.step)}" if node.step else ""
            head = f"for{unroll} {show(node.variable)} in range({show(node.lo)}, {show(node.hi)}{step})"
            return f"{head} {show(node.body)}"
        case tree.While():
            return f"while {show(node.condition)} {show(node.body)}"
        case tree.If():
            otherwise = f" else {show(node.otherwise)}" if node.otherwise else ""
            return f"if {show(node.condition)} {show(node.then)}{otherwise}"
        case tree.Break():
            return "break"
        case tree.Continue():
            return "continue"
        case tree.Return():
            return f"return {show(node.value)}" if node.value else "return"
        case tree.ExprStmt():
            return show(node.value)
    raise AssertionError(f"no text for {node!r}")


def listed(nodes: tuple[Any, ...]) -> str:
    return ", ".join(show(n) for n in nodes)


# --- making up ----------------------------------------------------------------------------------------------------

_LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"),
           ("*", "/", "%"))  # fmt: skip
_COMPARES = 6

words = st.from_regex(r"[a-zA-Z_é][a-zA-Z0-9_é]{0,5}", fullmatch=True).filter(lambda w: w not in KEYWORDS)
names = st.one_of(words, st.sampled_from(["range", "tile", "tensor", "unroll", "ctx", "exp", "f32", "X", "p"])).map(
    lambda w: tree.Name(0, 0, w)
)
ints = st.one_of(st.integers(0, 20), st.just(2**63 - 1)).map(lambda n: tree.Int(0, 0, n))
floats = st.sampled_from(["1.0", "7.", "0.5", "1e-5", "2.5E+3", "1_0.0_1", "3.e2"]).map(
    lambda w: tree.Float(0, 0, float(w), w)
)
bools = st.booleans().map(lambda b: tree.Bool(0, 0, b))
literals = st.one_of(names, ints, floats, bools)


@st.composite
def expressions(draw: Any, level: int = 0, fuel: int = 3) -> Any:
    """An expression that needs no parentheses where an operand of `level` stands."""
    if level < len(_LEVELS):
        if fuel and draw(st.integers(0, 3)) == 0:
            op = draw(st.sampled_from(_LEVELS[level]))
            left = draw(expressions(level + (level == _COMPARES), fuel - 1))
            return tree.Binary(0, 0, op, 0, left, draw(expressions(level + 1, fuel - 1)))
        return draw(expressions(level + draw(st.integers(1, len(_LEVELS) - level)), fuel))
    if not fuel:
        return draw(literals)
    match draw(st.integers(0, 6)):
        case 0:
            return tree.Unary(0, 0, draw(st.sampled_from("-!~")), draw(expressions(len(_LEVELS), fuel - 1)))
        case 1:
            return tree.Paren(0, 0, draw(expressions(0, fuel - 1)))
        case 2:
            return tree.Call(0, 0, draw(names), tuple(draw(st.lists(expressions(0, fuel - 1), max_size=3))))
        case 3:
            some = st.lists(subscripts(fuel - 1), min_size=1, max_size=3)
            return tree.Subscript(0, 0, draw(names), tuple(draw(some)))
        case 4:
            return tree.Member(0, 0, tree.Member(0, 0, draw(names), draw(names)), draw(names))
        case _:
            return draw(literals)


def subscripts(fuel: int) -> st.SearchStrategy[Any]:
    e = expressions(0, fuel)
    ends = st.one_of(st.none(), e)
    return st.one_of(
        e.map(lambda v: tree.Point(0, 0, v)),
        st.builds(lambda a, b: tree.SpanOf(0, 0, a, b), e, e),
        st.builds(lambda a, b: tree.Range(0, 0, a, b), ends, ends),
    )


scalars = st.sampled_from(["f16", "bf16", "f32", "f64", "i8", "u8", "i32", "i64", "bool"]).map(
    lambda w: tree.ScalarType(0, 0, w)
)
dims = st.lists(st.one_of(names, ints), min_size=1, max_size=3).map(tuple)
types = st.one_of(
    scalars,
    st.builds(lambda e, d: tree.TensorType(0, 0, e, d), scalars, dims),
    st.builds(lambda e, d: tree.TileType(0, 0, e, d), scalars, dims),
)
params = st.lists(st.builds(lambda n, t: tree.Param(0, 0, n, t), names, types), max_size=3).map(tuple)
attributes = st.builds(
    lambda n, a, p: tree.Attribute(0, 0, n, tuple(a) if p else (), p),
    names,
    st.lists(
        st.one_of(
            st.builds(lambda n, v: tree.SearchArg(0, 0, n, tuple(v)), names, st.lists(ints, max_size=3)),
            st.builds(lambda n, v: tree.KeywordArg(0, 0, n, v), names, literals),
            literals.map(lambda v: tree.PlainArg(0, 0, v)),
        ),
        max_size=3,
    ),
    st.booleans(),
)


@st.composite
def blocks(draw: Any, fuel: int = 2) -> tree.Block:
    return tree.Block(0, 0, tuple(draw(st.lists(stmts(fuel), max_size=3))))


@st.composite
def stmts(draw: Any, fuel: int) -> Any:
    e = expressions(0, 2)
    kind = draw(st.integers(0, 10 if fuel else 6))
    match kind:
        case 0:
            return tree.Let(0, 0, draw(names), draw(st.one_of(st.none(), types)), draw(e))
        case 1:
            type = draw(st.one_of(st.none(), types))
            return tree.Var(0, 0, draw(names), type, draw(st.one_of(st.none(), e) if type else e))
        case 2 | 3:
            points = st.lists(subscripts(1), min_size=1, max_size=2).map(tuple)
            target = draw(st.one_of(names, st.builds(lambda n, s: tree.Subscript(0, 0, n, s), names, points)))
            return tree.Assign(0, 0, target, draw(st.sampled_from(["=", "+=", "-=", "*=", "/=", "%="])), 0, draw(e))
        case 4:
            return draw(st.sampled_from([tree.Break(0, 0), tree.Continue(0, 0), tree.Return(0, 0, None)]))
        case 5:
            return tree.Return(0, 0, draw(e))
        case 6:
            return tree.ExprStmt(0, 0, draw(e))
        case 7:
            step = draw(st.one_of(st.none(), e))
            unroll = draw(st.one_of(st.none(), ints))
            return tree.For(0, 0, draw(names), draw(e), draw(e), step, unroll, draw(blocks(fuel - 1)))
        case 8:
            return tree.While(0, 0, draw(e), draw(blocks(fuel - 1)))
        case _:
            chained = stmts(fuel - 1).filter(lambda s: isinstance(s, tree.If))
            otherwise = draw(st.one_of(st.none(), blocks(fuel - 1), chained))
            return tree.If(0, 0, draw(e), draw(blocks(fuel - 1)), otherwise, None)


kernels = st.builds(
    lambda a, n, p, b: tree.Kernel(0, 0, tuple(a), n, p, b), st.lists(attributes, max_size=2), names, params, blocks()
)
functions = st.builds(
    lambda n, p, r, b: tree.Function(0, 0, n, p, r, b), names, params, st.one_of(st.none(), types), blocks()
)
files = st.lists(st.one_of(kernels, functions), max_size=3)
