"""What is wrong with a text, in words: one function a kind of mistake, each making one `SyntaxProblem`.

A message says what was expected and what was found; help says what to write instead. A fix is given only where
one text must have been meant.
"""

from __future__ import annotations

from phobos.syntax.advice import JOINED, Fix, advice, nearest
from phobos.syntax.build import number_problem
from phobos.syntax.shapes import Failure
from phobos.syntax.tokens import BOOL, END, FLOAT, INT, NAME, UNKNOWN, Token, Tokens
from phobos.syntax.tree import Assign, Attribute, SyntaxProblem

_CLOSER = {"(": ")", "[": "]", "{": "}", "<": ">"}
_OPERAND_ENDS = frozenset((NAME, INT, FLOAT, BOOL, ")", "]"))
_HEADERS = ("for_header", "while_header", "if_header", "kernel_header", "function_header")
_SHOWN = {
    "RPAR": "`)`", "RSQB": "`]`", "COMMA": "`,`", "SPAN": "`:+`", "COLON": "`:`", "EQUAL": "`=`", "IN": "`in`",
    "LPAR": "`(`", "LSQB": "`[`", "LESSTHAN": "`<`", "MORETHAN": "`>`", "ARROW": "`->`", "KERNEL": "`kernel`",
    "FN": "`fn`", "AT": "`@`",
}  # fmt: skip
_OPERATORS = ("LSQB", "LPAR", "DOT", "LESSTHAN", "MORETHAN", "EQUAL", "SPAN", "COLON")  # said as "an operator"


# --- whole items ------------------------------------------------------------------------------------------------


def not_an_item(tokens: Tokens, index: int) -> SyntaxProblem:
    start, end, text = tokens.list[index]
    kind = tokens.kinds[index]
    if kind == "}":
        return SyntaxProblem(
            "PH001", "`}` closes nothing", start, end, label="no `{` is open here",
            help="remove it, or look for a `}` too many above",
        )  # fmt: skip
    if kind == UNKNOWN:
        return _stray(tokens.list[index], "expected `kernel`, `fn` or an attribute, found")
    near = nearest(text, ("kernel", "fn"))
    said = _KERNEL if text in ("def", "void", "__global__") else f"did you mean `{near}`?" if near else _OUTSIDE
    if joined := JOINED.get(text + tokens.list[index + 1][2] if index + 1 < len(tokens.list) else ""):
        said = joined
    return SyntaxProblem(
        "PH001", f"expected `kernel`, `fn` or an attribute, found {show(text)}", start, end,
        help=said,
    )  # fmt: skip


_KERNEL = "a kernel begins with `kernel`: `kernel name(X: tensor<f32>[N]) { ... }`; what it calls, with `fn`"
_OUTSIDE = "an attribute begins with `@`; statements stand inside the braces of a kernel or a function"


def attributes_alone(tokens: Tokens) -> SyntaxProblem:
    start = tokens.list[0][0]
    last = next(t for t, k in zip(reversed(tokens.list), reversed(tokens.kinds)) if k != END)
    return SyntaxProblem(
        "PH001", "expected `kernel` after the attributes", start, last[1], label="these belong to no kernel",
        help="attributes stand directly above a kernel, or on its line",
    )  # fmt: skip


def expected_kernel(tokens: Tokens, index: int) -> SyntaxProblem:
    token = tokens.list[index]
    if tokens.kinds[index] == UNKNOWN:
        return _stray(token, "expected `kernel` after the attributes, found")
    near = nearest(token[2], ("kernel",))
    return SyntaxProblem(
        "PH001", f"expected `kernel` after the attributes, found {show(token[2])}", token[0], token[1],
        help="did you mean `kernel`?" if near else "attributes stand directly above a kernel, or on its line",
    )  # fmt: skip


def attribute_on_function(attribute: Attribute) -> SyntaxProblem:
    return SyntaxProblem(
        "PH001", "a function takes no attributes", attribute.start, attribute.end,
        help="a function is inlined into the kernels that call it: put the attribute above those",
    )  # fmt: skip


def misspelt_keyword(token: Token, meant: str) -> SyntaxProblem:
    return SyntaxProblem(
        "PH001", f"expected `{meant}`, found {show(token[2])}", token[0], token[1], help=f"did you mean `{meant}`?"
    )


# --- blocks -----------------------------------------------------------------------------------------------------


def expected_block(tokens: Tokens, keyword: int, end: int) -> SyntaxProblem:
    """The `{` that should stand at token `end` does not."""
    word = tokens.list[keyword][2]
    what = "function" if word == "fn" else word
    place = _place(tokens, end)
    return SyntaxProblem(
        "PH001", f"expected `{{` and the body of the `{what}`, found {found(tokens, end)}", place[0], place[1],
        label="the `{` belongs here" if _ends_line(tokens, end) else "",
    )  # fmt: skip


def bare_block(tokens: Tokens, index: int) -> SyntaxProblem:
    start, end, _ = tokens.list[index]
    return SyntaxProblem(
        "PH001", "expected a statement, found `{`", start, end,
        help="a block stands behind `if`, `else`, `for` or `while`, on the same line",
    )  # fmt: skip


def else_alone(tokens: Tokens, index: int) -> SyntaxProblem:
    start, end, _ = tokens.list[index]
    return SyntaxProblem("PH001", "`else` without an `if`", start, end, help="`else` stands behind the `}` of an `if`")


def unclosed_block(tokens: Tokens, opening: int, at: int) -> SyntaxProblem:
    """The `{` at `opening` should have been closed before token `at`."""
    start, end, _ = tokens.list[opening]
    if at < len(tokens.list):
        closing = tokens.list[at]
        where = (closing[0], closing[1], "this `}` is indented like an outer block")
    else:
        last = max(start, len(tokens.text.rstrip()) - 1)
        where = (last, last + 1, "nothing up to here closes it")
    return SyntaxProblem(
        "PH002", "this `{` is never closed", start, end, label="opened here", related=(where,), help="add a `}`"
    )


def too_deep(token: Token, limit: int) -> SyntaxProblem:
    return SyntaxProblem(
        "PH001", f"nested deeper than {limit} levels, which is the limit", token[0], token[1],
        label="too deep from here on", help="name parts of it with `let`, or move them into a function",
    )  # fmt: skip


def deepest(tokens: list[Token], kinds: str, limit: int) -> Token:
    """The bracket that passes the limit, else (operators do) the first token."""
    depth = 0
    for token, kind in zip(tokens, kinds):
        depth += (kind in "([") - (kind in ")]")
        if depth > limit:
            return token
    return tokens[0]


# --- newlines ---------------------------------------------------------------------------------------------------


def newline_ends(tokens: Tokens, breaks: list[int]) -> SyntaxProblem:
    """Newlines (the statement ends at token indices `breaks`) that cut what must have been meant as one."""
    index = breaks[0]
    before, after = tokens.list[index - 1], tokens.list[index + 1]
    kind = tokens.kinds[index + 1]
    word = after[2]
    if kind == "{":
        label, help = "move this up", "the `{` of a block stays on the line of the token before it"
    elif kind == "E":
        label, help = "move this up behind the `}`", "`else` stays on the line of the `}` before it"
    elif kind in ")]":
        label = "move this up"
        help = f"a line may break after `,`, an operator or an opening bracket, not before `{word}`"
    else:
        label, help = "move this up", f"break the line after {show(word)} instead of before it"
    if kind in _OPERAND_ENDS and kind not in ")]":
        label, help = "", "break the line after a `,`, an operator or an opening bracket"
    return SyntaxProblem(
        "PH003", f"the newline before {show(word)} ends the statement", after[0], after[1], label=label,
        related=((before[0], before[1], "the statement ends here"),), help=help, fix=_join(tokens, breaks),
    )  # fmt: skip


def _join(tokens: Tokens, breaks: list[int]) -> Fix | None:
    """Move what begins the next line to the end of the one before it."""
    edits: list[tuple[int, int, str]] = []
    for index in breaks:
        before, after = tokens.list[index - 1], tokens.list[index + 1]
        kind = tokens.kinds[index + 1]
        between = tokens.text[before[1] : after[0]]
        if kind in _OPERAND_ENDS or (kind in "{E" and not between.strip()):
            if between.strip():
                return None  # a comment is in the way
            edits.append((before[1], after[0], " " if kind in "{E" else ""))
            continue
        word = after[2] if kind in ",.([" else " " + after[2]
        end = after[1]
        while tokens.text[end : end + 1] in (" ", "\t"):
            end += 1
        edits += [(before[1], before[1], word), (after[0], end, "")]
    first = tokens.list[breaks[0] + 1][2]
    return (f"move {show(first)} to the line before", tuple(edits))


# --- pieces -----------------------------------------------------------------------------------------------------


def unexpected(
    tokens: Tokens, rule: str, failure: Failure, piece: list[Token], kinds: str, after: int
) -> SyntaxProblem:
    """A piece (its tokens and kinds) that fails at one of them, or at its end, where token `after` follows."""
    at = failure.at
    before = kinds[at - 1] if at else ""
    if at < len(piece):
        start, end, text = piece[at]
        kind, what = kinds[at], show(text)
        if kind == UNKNOWN:
            return _stray(piece[at], "unexpected")
        if kind in (INT, FLOAT) and (malformed := number_problem(piece[at])):
            return malformed
    else:
        start, end = _place(tokens, after)
        kind = tokens.kinds[after] if after < len(tokens.kinds) else END
        what = found(tokens, after)
    closes = "RPAR" in failure.expected or "RSQB" in failure.expected
    ends = at == len(piece) or kind in ")]" or (kind in "=a" and not _closed_later(kinds, at))
    if failure.open >= 0 and closes and before in _OPERAND_ENDS and ends:
        return _unclosed(piece[failure.open], (start, end), kind, what)
    if kind in ")]" and failure.open < 0 and (at == 0 or "MISSING" not in failure.expected):
        opener = "(" if kind == ")" else "["
        return SyntaxProblem("PH001", f"{what} closes nothing", start, end, label=f"no `{opener}` is open here")
    wanted = _wanted(rule, failure, kinds, before)
    behind = f" after {show(piece[at - 1][2])}" if at and "MISSING" in failure.expected else ""
    help, fix = advice(rule, failure, piece, kinds, kind)
    return SyntaxProblem("PH001", f"expected {wanted}{behind}, found {what}", start, end, help=help, fix=fix)


def statement_goes_on(tokens: Tokens, index: int) -> SyntaxProblem:
    """A statement is complete and token `index` follows on its line."""
    start, end, text = tokens.list[index]
    return SyntaxProblem(
        "PH001", f"expected the end of the statement, found {show(text)}", start, end,
        help="begin a new line here, or put a `;` before it",
    )  # fmt: skip


def chained(piece: list[Token], operators: tuple[int, ...]) -> SyntaxProblem:
    start, end, _ = piece[operators[0]]
    return SyntaxProblem(
        "PH001", "comparisons do not chain", start, end, label="the left side is already a comparison",
        help="compare twice: `a < b && b < c`",
    )  # fmt: skip


def not_assignable(node: Assign, operator: Token) -> SyntaxProblem:
    return SyntaxProblem(
        "PH001", "only a name or a subscripted name can be assigned to", node.target.start, node.target.end,
        label=f"this stands left of `{operator[2]}`",
    )  # fmt: skip


def _unclosed(opening: Token, place: tuple[int, int], kind: str, what: str) -> SyntaxProblem:
    closer = _CLOSER[opening[2]]
    if kind in ")]":
        return SyntaxProblem(
            "PH002", f"`{opening[2]}` is closed by {what}", opening[0], opening[1], label="opened here",
            related=((*place, f"expected `{closer}`"),),
        )  # fmt: skip
    return SyntaxProblem(
        "PH002", f"this `{opening[2]}` is never closed", opening[0], opening[1], label="opened here",
        related=((*place, f"expected `{closer}` before {what}" if kind != END else f"expected `{closer}` here"),),
        help=f"add a `{closer}`; a line may break only after `,`, an operator or an opening bracket",
    )  # fmt: skip


def _closed_later(kinds: str, at: int) -> bool:
    """Whether the bracket open at `at` is closed from there on."""
    depth = 1
    for kind in kinds[at:]:
        depth += (kind in "([") - (kind in ")]")
        if not depth:
            return True
    return False


def _stray(token: Token, what: str) -> SyntaxProblem:
    start, end, text = token
    many = "character" if len(text) == 1 else "characters"
    article = "the " if what.endswith("found") else ""
    return SyntaxProblem("PH001", f"{what} {article}{many} {show(text)}", start, end, help=_STRAY.get(text[0]))


_STRAY = {
    "?": "choose with `where(condition, a, b)` or an `if`",
    "#": "a comment begins with `//`",
    "\N{LEFT DOUBLE QUOTATION MARK}": "there are no strings",
    "\N{LEFT SINGLE QUOTATION MARK}": "there are no strings",
    '"': "there are no strings",
    "'": "there are no strings",
    "\\": "a line goes on by itself after an operator, a `,` or an opening bracket",
    "\ufeff": "a byte order mark may stand at the start of a file only",
}


def _wanted(rule: str, failure: Failure, kinds: str, before: str) -> str:
    expected = failure.expected
    if "LET" in expected:
        return "a statement"
    if "MISSING" in expected:
        if before == "(" and "RPAR" in expected:
            return "an argument or `)`"
        if failure.open >= 0 and kinds[failure.open] == "[" and before in "[,":
            return "a subscript"
        return "an expression"
    if expected <= {"NAME", "INT", "FLOAT", "BOOL"} and "NAME" in expected:
        if "FLOAT" in expected:
            return "a number, a name, `true` or `false`"
        if "INT" in expected:
            return "a dimension (a name or a number)"
        return _name_wanted(rule, before)
    words: list[str] = []
    operators = "PLUS" in expected
    for terminal, word in _SHOWN.items():
        if terminal in expected and not (operators and terminal in _OPERATORS):
            words.append(word)
    if "NAME" in expected:
        words.insert(0, {"kernel_header": "a parameter", "function_header": "a parameter"}.get(rule, "a name"))
    if "INT" in expected:
        words.insert(0, "a number")
    if operators:
        words.insert(0, "an operator")
    if "$END" in expected:
        words.append("`{`" if rule in _HEADERS else "`kernel`" if rule == "attribute" else "the end of the statement")
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def _name_wanted(rule: str, before: str) -> str:
    match before:
        case ".":
            return "the name of a member"
        case "L" | "V":
            return "the name of the variable"
        case "K":
            return "the name of the kernel"
        case "F":
            return "the name of the function"
        case "@":
            return "the name of an attribute"
        case "R" | ">":
            return "the name of the loop variable"
        case "N":
            return "`range(`"
        case ":" | "r":
            return "a type"
        case "<":
            return "`unroll`" if rule == "for_header" else "an element type"
        case "(" | ",":
            return "an argument" if rule == "attribute" else "a parameter"
    return "a name"


# --- words ------------------------------------------------------------------------------------------------------


def show(text: str) -> str:
    """A token as a message shows it: in backticks, short, and printable."""
    shown = "".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in text[:24])
    return f"`{shown}{'...' if len(text) > 24 else ''}`"


def found(tokens: Tokens, index: int) -> str:
    """What stands at a token index, in words."""
    if index >= len(tokens.list):
        return "the end of the text"
    if index and tokens.first_of_line(index) and tokens.kinds[index - 1] != END:
        return "the end of the line"
    if tokens.kinds[index] == END:
        return {";": "`;`", "": "the end of the text"}.get(tokens.list[index][2], "the end of the line")
    return show(tokens.list[index][2])


def _ends_line(tokens: Tokens, index: int) -> bool:
    return index >= len(tokens.list) or (tokens.kinds[index] == END and tokens.list[index][2] != ";")


def _place(tokens: Tokens, index: int) -> tuple[int, int]:
    """Where to point for token `index`: a line end and what follows it are shown at the token before."""
    if index and (_ends_line(tokens, index) or tokens.first_of_line(index)):
        index -= 1
    start, end, _ = tokens.list[min(index, len(tokens.list) - 1)]
    return start, end
