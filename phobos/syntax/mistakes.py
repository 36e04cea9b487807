"""What is wrong with a text, in words: one function a kind of mistake, each making one `SyntaxProblem`."""

from __future__ import annotations

from difflib import get_close_matches

from phobos.syntax.pieces import Failure
from phobos.syntax.tokens import END, Token, Tokens
from phobos.syntax.tree import Assign, Attribute, SyntaxProblem

_CLOSERS = {"(": ")", "[": "]", "{": "}"}


def show(text: str) -> str:
    """A token as a message shows it: in backticks, short, and printable."""
    shown = "".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in text[:24])
    return f"`{shown}{'...' if len(text) > 24 else ''}`"


def found(tokens: Tokens, index: int) -> str:
    """What stands at a token index, in words."""
    if index >= len(tokens.list):
        return "the end of the text"
    if tokens.kinds[index] == END and tokens.list[index][2] != ";":
        return "the end of the line"
    return show(tokens.list[index][2])


def not_an_item(tokens: Tokens) -> SyntaxProblem:
    start, end, text = tokens.list[0]
    if tokens.kinds[0] == "}":
        return SyntaxProblem("PH002", "`}` closes nothing", start, end, label="no `{` is open here", help="remove it, or look for a `}` too many above")
    near = get_close_matches(text, ("kernel", "fn"), 1)
    return SyntaxProblem(
        "PH001", f"expected `kernel`, `fn` or an attribute, found {show(text)}", start, end,
        help=f"did you mean `{near[0]}`?" if near else "statements stand inside a kernel or a function",
    )  # fmt: skip


def attributes_alone(tokens: Tokens) -> SyntaxProblem:
    start, end, _ = tokens.list[0]
    last = next(t for t, k in zip(reversed(tokens.list), reversed(tokens.kinds)) if k != END)
    return SyntaxProblem("PH001", "expected `kernel` after the attributes", start, last[1], help="attributes stand directly above a kernel")


def expected_kernel(tokens: Tokens, index: int) -> SyntaxProblem:
    start, end, text = tokens.list[index]
    return SyntaxProblem("PH001", f"expected `kernel` after the attributes, found {show(text)}", start, end)


def attribute_on_function(attribute: Attribute) -> SyntaxProblem:
    return SyntaxProblem("PH001", "a function takes no attributes", attribute.start, attribute.end, help="put them above the kernel that calls it")


def misspelt_keyword(token: Token) -> SyntaxProblem:
    word = "fn" if token[2].startswith("f") else "kernel"
    return SyntaxProblem(
        "PH001", f"expected `{word}`, found {show(token[2])}", token[0], token[1],
        fix=(f"write `{word}`", ((token[0], token[1], word),)),
    )  # fmt: skip


def expected_block(tokens: Tokens, start: int, end: int) -> SyntaxProblem:
    keyword = tokens.list[start][2]
    before = tokens.list[end - 1]
    return SyntaxProblem("PH001", f"expected `{{` and the body of this `{keyword}`", before[0], before[1], label="the `{` belongs behind this")


def bare_block(tokens: Tokens, index: int) -> SyntaxProblem:
    start, end, _ = tokens.list[index]
    return SyntaxProblem("PH001", "a block needs `if`, `else`, `for` or `while` before it", start, end)


def unclosed_block(tokens: Tokens, opening: int, at: int) -> SyntaxProblem:
    start, end, _ = tokens.list[opening]
    if at < len(tokens.list):
        where = (tokens.list[at][0], tokens.list[at][1], "this closes an outer block, by its indentation")
    else:
        last = max(0, len(tokens.text.rstrip()) - 1)
        where = (last, last + 1, "the text ends here")
    return SyntaxProblem("PH002", "this `{` is never closed", start, end, label="opened here", related=(where,), help="add a `}`")


def too_deep(token: Token, limit: int) -> SyntaxProblem:
    return SyntaxProblem(
        "PH001", f"nested deeper than {limit} levels", token[0], token[1], label="too deep from here",
        help="name parts of it with `let`, or move them into a function",
    )  # fmt: skip


def deepest(tokens: list[Token], kinds: str, limit: int) -> Token:
    depth = 0
    for token, kind in zip(tokens, kinds):
        depth += (kind in "([") - (kind in ")]")
        if depth > limit:
            return token
    return tokens[0]


def else_on_next_line(tokens: Tokens, index: int) -> SyntaxProblem:
    closing, word = tokens.list[index - 1], tokens.list[index + 1]
    return SyntaxProblem("PH003", "the newline before `else` ends the `if`", word[0], word[1], label="move this up behind the `}`", related=((closing[0], closing[1], "the `if` ends here"),))


def brace_on_next_line(tokens: Tokens, index: int) -> SyntaxProblem:
    before, brace = tokens.list[index - 1], tokens.list[index + 1]
    return SyntaxProblem("PH003", "the newline before `{` ends the statement", brace[0], brace[1], label="move this up", related=((before[0], before[1], "the statement ends here"),))


def newline_in_statement(tokens: Tokens, breaks: list[int]) -> SyntaxProblem:
    index = breaks[0]
    before, after = tokens.list[index - 1], tokens.list[index + 1]
    return SyntaxProblem("PH003", f"the newline before {show(after[2])} ends the statement", after[0], after[1], label="break the line after an operator or a comma instead", related=((before[0], before[1], "the statement ends here"),))


def unexpected(tokens: Tokens, rule: str, failure: Failure, piece: list[Token], kinds: str) -> SyntaxProblem:
    at = failure.at
    if at < len(piece):
        start, end, text = piece[at]
        what = show(text)
    else:
        start, end, _ = piece[-1]
        what = "the end of the line"
    if failure.open >= 0 and (at == len(piece) or kinds[at] in ")]") and at and kinds[at - 1] in "nidb)]":
        opening = piece[failure.open]
        closer = _CLOSERS[opening[2]]
        return SyntaxProblem("PH002", f"expected `{closer}`, found {what}", opening[0], opening[1], label="opened here", related=((start, end, f"`{closer}` expected here"),))
    return SyntaxProblem("PH001", f"expected {', '.join(sorted(failure.expected))}, found {what}", start, end)


def chained(tokens: list[Token], kinds: str, operators: tuple[int, ...]) -> SyntaxProblem:
    start, end, text = tokens[operators[0]]
    return SyntaxProblem("PH001", "comparisons do not chain", start, end, help="write `a < b && b < c`")


def not_assignable(node: Assign, operator: Token) -> SyntaxProblem:
    return SyntaxProblem("PH001", "only a name or a subscripted name can be assigned to", node.target.start, node.target.end)
