"""What to leave unsaid where the text did not parse: the parser has spoken, and what follows from that is no mistake.

Nothing is said about the lines of a syntax problem, nor about a name that stands on them (it may have been defined
there), nor about a parameter that did not parse, nor where a variable is used whose value did not parse: that has the
type of what could be read. Where a name itself is missing, the head of an item did not parse or braces do not match, no
name is called undefined.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from phobos.diagnostic import Span
from phobos.semantics import ir
from phobos.semantics.build_context import Declared
from phobos.semantics.program import Problem
from phobos.syntax import tree

_WORD = re.compile(r"[^\W\d]\w*")
_LINE_END = re.compile(r"[\r\n]")

Range = tuple[int, int]


def broken_lines(item: tree.Item) -> tuple[Range, ...]:
    """The whole lines on which something did not parse."""
    found: list[Range] = []
    text = item.text
    places = [(problem.start, problem.end) for problem in item.problems]
    if item.problems and item.node is not None:
        inside = statements(item.node.body.statements)
        places += [(node.start, node.end) for node in inside if isinstance(node, tree.Broken)]
    for start, end in places:
        first = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
        last = _LINE_END.search(text, max(end, start))
        found.append((first, len(text) if last is None else last.start()))
    return tuple(found)


def lost_names(item: tree.Item) -> frozenset[str] | None:
    """Names that nothing is to be said of when they are undefined; None: of no name."""
    if not item.problems or item.node is None:
        return frozenset()
    if head_is_broken(item) or any(
        _is_structure(problem, item.text) for problem in item.problems
    ):
        return None
    for node in statements(item.node.body.statements):
        match node:
            case tree.Let(name=name) | tree.Var(name=name) | tree.For(variable=name):
                if not name.text:
                    return None
        if _lacks_its_block(node, item.text):
            return None
    return frozenset(word for start, end in broken_lines(item) for word in _WORD.findall(item.text[start:end]))


def head_is_broken(item: tree.Item) -> bool:
    """Whether the parameters or the result may not be what was meant: calls of it cannot be judged."""
    if not item.problems or item.node is None:
        return False
    return any(not param.name.text for param in item.node.params) or any(
        problem.start < item.node.body.start for problem in item.problems
    )


def _is_structure(problem: tree.SyntaxProblem, text: str) -> bool:
    """Whether a problem means that blocks are not what was meant, so that names are not in their scopes."""
    return text.startswith(("}", "else"), problem.start) or problem.code == "PH002"


def _lacks_its_block(node: tree.Stmt, text: str) -> bool:
    match node:
        case tree.For(body=body) | tree.While(body=body) | tree.If(then=body):
            return not text.startswith("{", body.start)
    return False


def is_broken(param: tree.Param, item: tree.Item) -> bool:
    """Whether a parameter stands where something did not parse."""
    return any(problem.start <= param.end and problem.end >= param.start for problem in item.problems)


Lines = Mapping[str | None, Sequence[Range]]
"""By owner: the lines that did not parse."""

Place = tuple[str | None, int]
"""An owner, and an offset in it."""


def uses_of_lost_values(
    declared: Mapping[ir.Variable, Declared], meanings: Iterable[object], lines: Lines
) -> tuple[Span, ...]:
    """Where a variable is read whose type nobody knows, since its value did not parse or was made of such a one."""
    reads: dict[Place, list[Span]] = {}  # by where the variable is defined
    for read in meanings:
        if isinstance(read, ir.VariableRef):
            reads.setdefault((read.variable.span.owner, read.variable.span.start), []).append(read.span)
    ends: dict[Place, tuple[int, Place]] = {}  # by where a definition without a type begins
    lost: set[Place] = set()  # where what is lost is defined
    for variable, written in declared.items():
        node, owner = written.node, written.owner
        if isinstance(node, (tree.Let, tree.Var)) and node.type is None:
            defined = variable.span.owner, variable.span.start
            ends[owner, node.start] = node.end, defined
            if any(first <= node.end and node.start <= last for first, last in lines.get(owner, ())):
                lost.add(defined)
    starts: dict[str | None, list[int]] = {}
    for owner, start in ends:
        starts.setdefault(owner, []).append(start)
    for each in starts.values():
        each.sort()
    found: list[Span] = []
    waiting = list(lost)
    while waiting:
        for use in reads.get(waiting.pop(), ()):
            found.append(use)
            known = starts.get(use.owner, [])
            at = bisect_right(known, use.start) - 1
            if at >= 0:
                end, defined = ends[use.owner, known[at]]
                if use.start < end and defined not in lost:
                    lost.add(defined)
                    waiting.append(defined)
    return tuple(found)


def speaks(problem: Problem, lines: Lines, lost: Sequence[Span]) -> bool:
    """Whether a problem is to be told, given the lines that did not parse and the uses of what was lost there."""
    spans = [problem.span, *(related.span for related in problem.related)]
    whole = problem.span
    return not any(
        first <= span.start <= last or (span.start < last and span.end > first)
        for span in spans
        if span.owner == whole.owner
        for first, last in lines.get(whole.owner, ())
    ) and not any(whole.owner == use.owner and whole.start <= use.start and use.end <= whole.end for use in lost)


def statements(nodes: Sequence[tree.Stmt]) -> Iterator[tree.Stmt]:
    """Every statement at any depth, in no promised order."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        match node:
            case tree.For(body=body) | tree.While(body=body):
                stack += body.statements
            case tree.If(then=then, otherwise=otherwise):
                stack += then.statements
                if isinstance(otherwise, tree.Block):
                    stack += otherwise.statements
                elif otherwise is not None:
                    stack.append(otherwise)
            case tree.Block(statements=inner):
                stack += inner
