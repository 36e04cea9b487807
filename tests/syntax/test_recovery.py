"""One mistake, one diagnostic, at its place; what stands around it is understood as if it were not there."""

from __future__ import annotations

import pytest

from phobos.syntax import parse, tree
from tests.syntax.trees import body, nodes_of, problems, sketch, statements

# Statements in a kernel (line 2 on), and every problem: code, line, marked text.
STATEMENTS = {
    # a newline too early
    "let x = a\n* b": [("PH003", 3, "*")],
    "let x = a // c\n  / b\n  % c": [("PH003", 3, "/")],
    "let y = f(a\n, b\n)": [("PH003", 3, ",")],
    "let y = (a\n- b)": [("PH003", 3, "-")],
    "let y = f(a,\nb\n)": [("PH003", 4, ")")],
    "X[i\n] = 1": [("PH003", 3, "]")],
    "X[i]\n= 1": [("PH003", 3, "=")],
    "X\n[i] = 1": [("PH003", 3, "[")],
    "X[p\n:+ 4] = 1": [("PH003", 3, ":+")],
    "let x = a\n|| b\n&& c": [("PH003", 3, "||")],
    "let p = ctx\n.block.x": [("PH003", 3, ".")],
    "if p {\n}\nelse {\n}": [("PH003", 4, "else")],
    "if p {\n} // c\nelse if q {\n}": [("PH003", 4, "else")],
    "if p\n{\n}": [("PH003", 3, "{")],
    "while p // c\n{\n}": [("PH003", 3, "{")],
    "for i in range(0, 3)\n{\n}": [("PH003", 3, "{")],
    "for i in range(0\n, 3) {\n}": [("PH003", 3, ",")],
    "if p\n&& q {\n}": [("PH003", 3, "&&")],
    "let x = a\n+": [("PH003", 3, "+")],
    # something missing at the end of a line
    "let p = ctx.": [("PH001", 2, ".")],
    "X[p * ": [("PH001", 2, "*")],
    "X[p * \nlet y = 1": [("PH001", 2, "*")],
    "X[p * \nY[0] = 1": [("PH001", 2, "*")],
    "let p = ctx.\nX[p :+ 4] = 1": [("PH001", 2, ".")],
    "x ==\nlet y = 1": [("PH001", 2, "==")],
    "x = ": [("PH001", 2, "=")],
    "let": [("PH001", 2, "let")],
    "let x": [("PH001", 2, "x")],
    "let x: f32": [("PH001", 2, "f32")],
    "exp(": [("PH001", 2, "(")],
    "exp(a, ": [("PH001", 2, ",")],
    "exp(a": [("PH002", 2, "(")],
    "X[b :+ 32 = 0.0": [("PH002", 2, "[")],
    "X[b = Y[0]": [("PH002", 2, "[")],
    "foo(a = 3)": [("PH001", 2, "=")],
    "X[f(b] += 0.0": [("PH002", 2, "(")],
    "x = [3": [("PH001", 2, "[")],
    "let y = dot(a,\n   b\nlet z = 3": [("PH002", 2, "(")],
    "if p < {\n}": [("PH001", 2, "{")],
    "if p <": [("PH001", 2, "<")],
    "if": [("PH001", 2, "if")],
    "if p": [("PH001", 2, "p")],
    "if p\nx = 1": [("PH001", 2, "p")],
    "while\nx = 1": [("PH001", 2, "while")],
    "for": [("PH001", 2, "for")],
    "for i": [("PH001", 2, "i")],
    "for i in range(0, ": [("PH001", 2, ",")],
    "for i in range(0, 3 {\n}": [("PH002", 2, "(")],
    "if p { } else": [("PH001", 2, "else")],
    # something too much
    "let x = 3 4": [("PH001", 2, "4")],
    "let x = 1 let y = 2": [("PH001", 2, "let")],
    "foo(a b)": [("PH001", 2, "b")],
    "foo(a,)": [("PH001", 2, ")")],
    "X[a, ] = 1": [("PH001", 2, "]")],
    "X[] = 1": [("PH001", 2, "]")],
    "foo(a]": [("PH002", 2, "(")],
    "foo(a))": [("PH001", 2, ")")],
    ")": [("PH001", 2, ")")],
    "a + * b": [("PH001", 2, "*")],
    "return 1 2": [("PH001", 2, "2")],
    "break 3": [("PH001", 2, "3")],
    "A[1:2:3]": [("PH001", 2, ":")],
    "f(x)(y)": [("PH001", 2, "(")],
    "(f)(x)": [("PH001", 2, "(")],
    "x = ? 3": [("PH001", 2, "?")],
    "x = a ? b : c": [("PH001", 2, "?")],
    'let s = "abc"': [("PH001", 2, '"')],
    "# comment": [("PH001", 2, "#")],
    "x = \0\0": [("PH001", 2, "\0\0")],
    "{ let x = 1 }": [("PH001", 2, "{")],
    "foo(x) {\n}": [("PH001", 2, "{")],
    "else { }": [("PH001", 2, "else")],
    "@unroll\nfor i in range(0, 3) { }": [("PH001", 2, "@")],
    # other languages' habits
    "iff p < 3 {\n}": [("PH001", 2, "p")],
    "elif p { }": [("PH001", 2, "p")],
    "if a and b { }": [("PH001", 2, "and")],
    "if p = 3 { }": [("PH001", 2, "=")],
    "if p:\nx = 1": [("PH001", 2, ":")],
    "i++": [("PH001", 2, "+")],
    "let if = 3": [("PH001", 2, "if")],
    "let kernel = 3": [("PH001", 2, "kernel")],
    "kernel = 3": [("PH001", 2, "kernel")],
    "fn += f(x)": [("PH001", 2, "fn")],
    "let x = if p { 1 } else { 2 }": [("PH001", 2, "if")],
    "for i in 0:4 {\n}": [("PH001", 2, "0")],
    "for i in range(4) {\n}": [("PH001", 2, ")")],
    "for i in rnge(0, 4) {\n}": [("PH001", 2, "rnge")],
    "for<unrol 4> i in range(0, 4) {\n}": [("PH001", 2, "unrol")],
    # what the grammar takes and the language does not
    "let z = a < b < c": [("PH001", 2, "<")],
    "let z = a <= b > c == d": [("PH001", 2, ">")],
    "1 = 2": [("PH001", 2, "1")],
    "X[i][j] = 3": [("PH001", 2, "X[i][j]")],
    "f(x) += 1": [("PH001", 2, "f(x)")],
    "let x: tensor = 3": [("PH001", 2, "tensor")],
    "let t: til<f32>[2] = 3": [("PH001", 2, "til")],
    "let t: tile<f33>[2] = 3": [("PH001", 2, "f33")],
    "let t: float = 3": [("PH001", 2, "float")],
    # numbers
    "x = 9223372036854775808": [("PH005", 2, "9223372036854775808")],
    "x = 5abc": [("PH005", 2, "a")],
    "x = 1e5x": [("PH005", 2, "x")],
    "x = 1e": [("PH005", 2, "e")],
    "x = 0x1g": [("PH005", 2, "g")],
    "x = 0x": [("PH005", 2, "x")],
    "x = 1__0": [("PH005", 2, "_")],
    "x = 1_": [("PH005", 2, "_")],
    "x = 1._5": [("PH005", 2, "_")],
    "x = 8²": [("PH005", 2, "²")],
    "x = ٣": [("PH001", 2, "٣")],
    "x = 1e999": [("PH005", 2, "1e999")],
    "let 5x = 3": [("PH005", 2, "x")],
    "x = 1.5.2": [("PH001", 2, "2")],
    # several, each once
    "let x = 3 4\nlet y = a\n* b\nfoo(": [("PH001", 2, "4"), ("PH003", 4, "*"), ("PH001", 5, "(")],
}

AROUND = "let before = 1\n{}\nlet after = 2"


@pytest.mark.parametrize("lines", STATEMENTS)
def test_one_mistake_one_diagnostic(lines: str) -> None:
    assert problems(body(lines)) == STATEMENTS[lines]


@pytest.mark.parametrize("lines", STATEMENTS)
def test_the_statements_around_a_mistake_are_understood(lines: str) -> None:
    first, *_, last = statements(AROUND.format(lines))
    assert sketch(first) == sketch(statements("let before = 1")[0])
    # What was left open at the mistake may hold what follows; it is there all the same, and no second mistake.
    assert "('Name', 'after')" in str(sketch(last))
    expected = [(code, line + 1, text) for code, line, text in STATEMENTS[lines]]
    assert problems(body(AROUND.format(lines))) == expected


@pytest.mark.parametrize("lines", STATEMENTS)
def test_the_kernel_after_a_broken_one_is_understood(lines: str) -> None:
    good = "@persistent\nkernel good() {\n  let x = 1\n}\n"
    assert nodes_of(body(lines) + good)[-1] == nodes_of(good)[0]


# Whole files.
FILES = {
    "kernal a() { }": [("PH001", 1, "kernal")],
    "@persistent\nkernl a() {\n  let x = 1\n}": [("PH001", 2, "kernl")],
    "def f(x: f32) { }": [("PH001", 1, "def")],
    "def f(x):\n  return x": [("PH001", 1, "def")],
    "@persistent": [("PH001", 1, "@persistent")],
    "@launch(256": [("PH002", 1, "(")],
    "@launch(256,)\nkernel a() { }": [("PH001", 1, ")")],
    "@launch(256\n)\nkernel a() { }": [("PH003", 2, ")")],
    "@launch 256\nkernel a() { }": [("PH001", 1, "256")],
    "@autotune(T = [3])\nkernel a() { }": [("PH001", 1, "[")],
    "@aligned(N = -1) kernel a() { }": [("PH001", 1, "-")],
    "@\nkernel a() { }": [("PH001", 1, "@")],
    "kernel": [("PH001", 1, "kernel")],
    "kernel a": [("PH001", 1, "a")],
    "kernel a(": [("PH001", 1, "(")],
    "kernel a(X": [("PH001", 1, "X")],
    "kernel a(X:": [("PH001", 1, ":")],
    "kernel a(X: tensor<": [("PH001", 1, "<")],
    "kernel a(X: tensor<f32>[": [("PH001", 1, "[")],
    "kernel a(X: tensor<f32>[N]\n) { }": [("PH003", 2, ")")],
    "kernel a()\n{\n}": [("PH003", 2, "{")],
    "fn f() -> f32\n{\n  return 1.0\n}": [("PH003", 2, "{")],
    "kernel a(b: f32,) { }": [("PH001", 1, ")")],
    "kernel a(x: f32 y: f32) { }": [("PH001", 1, "y")],
    "kernel 3a() { }": [("PH005", 1, "a")],
    "kernel a() let x = 1 }": [("PH001", 1, "let")],
    "fn f() -> { }": [("PH001", 1, "{")],
    "@x fn f() { }": [("PH001", 1, "@x")],
    "kernel a() { } }": [("PH001", 1, "}")],
    "let x = 1\nlet y = 2\nkernel b() { }": [("PH001", 1, "let")],
    "hello world\nfoo\n": [("PH001", 1, "hello")],
    "\0\1\2 binary \xff": [("PH001", 1, "\0\1\2")],
    "kernel a() {": [("PH002", 1, "{")],
    "kernel a() {\n  let x = 1\n\n// doc\nkernel b() {\n}": [("PH002", 1, "{")],
    "kernel a() {\n  if x {\n    y = 1\n}\nkernel b() { }": [("PH002", 2, "{")],
    "kernel a() {\n  for i in range(0, 3) {\n    if x {\n    y = 1\n  }\n}\nkernel b() { }": [("PH002", 3, "{")],
    "kernel a(\nkernel b() { }": [("PH001", 1, "(")],
    "@persistent(\nkernel a() { }": [("PH001", 1, "(")],
    "kernel a() { let x = 1\n@persistent\nkernel b() { }": [("PH002", 1, "{")],
}


@pytest.mark.parametrize("text", FILES)
def test_one_mistake_in_a_file(text: str) -> None:
    assert problems(text) == FILES[text]


@pytest.mark.parametrize("text", [t for t in FILES if "(" in t and t != "@launch(256"])
def test_the_next_kernel_keeps_its_attributes(text: str) -> None:
    good = "// about it\n@persistent\nkernel good() {\n  let x = 1\n}\n"
    assert nodes_of(text + "\n" + good)[-1] == nodes_of(good)[0]


def test_a_misspelt_kernel_is_a_kernel_all_the_same() -> None:
    (found,) = nodes_of("@persistent\nkernal a(x: f32) {\n  let y = x\n}")
    (meant,) = nodes_of("@persistent\nkernel a(x: f32) {\n  let y = x\n}")
    assert found == meant


def test_a_brace_that_its_indentation_shows_missing_does_not_swallow_what_follows() -> None:
    (kernel,) = nodes_of("kernel a() {\n  if x {\n    y = 1\n}\n")
    (meant,) = nodes_of("kernel a() {\n  if x {\n    y = 1\n  }\n}\n")
    assert kernel == meant


def test_indentation_is_believed_once_for_each_missing_brace() -> None:
    good = "kernel a() {\n  while a {\n    if x {\n      y = 1\n    }\n  }\n"
    odd = "  while b {\n      if c {\n      z = 1\n  }\n  }\n  let last = 1\n}\n"
    text = good.replace("    }\n", "") + odd
    assert problems(text) == [("PH002", 3, "{")]
    assert nodes_of(text) == nodes_of(good + odd)


def test_unclosed_shows_both_ends() -> None:
    text = body("let y = f(a, (b)")
    ((_, item),) = parse(text).items
    (problem,) = item.problems
    assert problem.code == "PH002" and text[problem.start : problem.end] == "("
    ((start, end, _),) = problem.related
    assert (start, text[start:end]) == (text.index("(b)") + 2, ")")


def test_a_broken_brace_shows_both_ends() -> None:
    text = "kernel a() {\n  if x {\n    y = 1\n}\n"
    ((_, item),) = parse(text).items
    (problem,) = item.problems
    ((start, end, message),) = problem.related
    assert text[start:end] == "}" and "outer" in message


# What a fix makes of the statements it is for.
FIXES = {
    "let x = a\n  * b": "let x = a *\n  b",
    "let x = a // c\n* b": "let x = a * // c\nb",
    "let y = f(a\n  , b\n  )": "let y = f(a,\n  b)",
    "X[i]\n  = 1": "X[i] =\n  1",
    "if p {\n}\nelse {\n}": "if p {\n} else {\n}",
    "if p {\n} // c\nelse {\n}": "if p {\n} else // c\n{\n}",
    "if p\n{\n}": "if p {\n}",
    "if p // c\n{\n}": "if p { // c\n\n}",
    "for i in range(0, 3)\n{\n}": "for i in range(0, 3) {\n}",
    "foo(a, )": "foo(a )",
}


@pytest.mark.parametrize("lines", FIXES)
def test_fixes_make_the_text_parse(lines: str) -> None:
    text = body(lines)
    ((_, item),) = parse(text).items
    (problem,) = item.problems
    assert problem.fix is not None
    for start, end, content in sorted(problem.fix[1], reverse=True):
        text = text[:start] + content + text[end:]
    assert text == body(FIXES[lines])
    assert problems(text) == []


def test_a_comment_in_the_way_of_a_closing_bracket_means_no_fix() -> None:
    ((_, item),) = parse(body("f(a // c\n)")).items
    (problem,) = item.problems
    assert problem.code == "PH003" and problem.fix is None


# Words of messages that tell what was expected and what to do.
MESSAGES = {
    "let x = ": ("expected an expression after `=`, found the end of the line", None),
    "X[": ("expected a subscript after `[`, found the end of the line", None),
    "foo(": ("expected an argument or `)` after `(`, found the end of the line", None),
    "ctx.": ("expected the name of a member, found the end of the line", None),
    "let = 3": ("expected the name of the variable, found `=`", None),
    "let x: = 3": ("expected a type, found `=`", None),
    "let x: tile<> = 3": ("expected an element type, found `>`", None),
    "let x: tile<f32>[] = 3": ("expected a dimension (a name or a number), found `]`", None),
    "let x 3": ("expected `:` or `=`, found `3`", "`let` needs a value"),
    "let if = 3": ("expected the name of the variable, found `if`", "`if` is a keyword"),
    "let x = if p { 1 } else { 2 }": ("expected an expression after `=`, found `if`", "where(condition, a, b)"),
    "if a and b { }": ("expected an operator or `{`, found `and`", "`&&`"),
    "if p = 3 { }": ("expected `{`, found `=`", "`==` compares"),
    "for i in 3 { }": ("expected `range(`, found `3`", "range(first, end)"),
    "for i in range(4) { }": ("expected `,`, found `)`", "range(0, n)"),
    "i++": ("expected an expression after `+`, found `+`", "x += 1"),
    "retrun x": ("expected an operator or the end of the statement, found `x`", "`return`"),
    "x = a ? b : c": ("unexpected character `?`", "where"),
    "x = \u200b3": ("unexpected character `<U+200B>`", None),
    "let z = a < b < c": ("comparisons do not chain", "a < b && b < c"),
    "x = 99999999999999999999": ("`99999999999999999999` does not fit in 64 bits", "9223372036854775807"),
    "let t: double = 1.0": ("unknown type `double`", "`f64`"),
    "foo(a))": ("`)` closes nothing", None),
    ")": ("`)` closes nothing", None),
    "f(x)(y)": ("expected an operator or the end of the statement, found `(`", "only a name can be called"),
    "x = y = 3": ("expected the end of the statement, found `=`", "one name at a time"),
    "x = .5": ("expected an expression after `=`, found `.`", "`0.5`"),
    "x = [1, 2]": ("expected an expression after `=`, found `[`", "tile<f32>"),
    "x = a ** b": ("expected an expression after `*`, found `*`", "pow(a, b)"),
    "x = 1.0f": ("`f` is glued to a number", "no suffix"),
    "x = 0b11": ("`b` is glued to a number", "`0x`"),
    "let x == 1": ("expected `:` or `=`, found `==`", "`let x = ...`"),
    "let x: f32[4] = 1.0": ("expected `=` or `<`, found `[`", "tile<f32>"),
    "let x: tile<f32> = 1.0": ("expected `[`, found `=`", "dimensions"),
    "let x: tile<f32>[N + 1] = 1.0": ("expected `]` or `,`, found `+`", "not an expression"),
    "for (i in range(0, 3)) { }": ("expected a name or `<`, found `(`", "without parentheses"),
    "for i in range(0, 3, 1, 2) { }": ("expected `)`, found `,`", "at most"),
}


@pytest.mark.parametrize("lines", MESSAGES)
def test_messages_say_what_was_expected_and_what_to_do(lines: str) -> None:
    ((_, item),) = parse(body(lines)).items
    (problem,) = item.problems
    message, help = MESSAGES[lines]
    assert problem.message == message
    assert help is None or help in (problem.help or "")


def test_a_deep_nest_is_one_diagnostic_that_names_the_limit() -> None:
    for lines in (
        "let x = " + "(" * 10_000 + "1" + ")" * 10_000,
        "let x = " + "(" * 10_000,
        "let x = " + "-" * 10_000 + "1",
        "let x = " + "1 + " * 10_000 + "1",
        "x" + "[0]" * 10_000 + " = 1",
        "if x { " * 10_000 + "}" * 10_000,
        "if x { }" + " else if x { }" * 10_000,
        "{" * 300 + "}" * 300,
    ):
        ((_, item), *rest) = parse(body(lines)).items
        deep = [p for p in item.problems if "256" in p.message]
        assert len(deep) == 1 and deep[0].code == "PH001", lines[:40]
        assert len(item.problems) <= 2 and not rest


def test_nesting_up_to_the_limit_is_fine() -> None:
    assert problems(body("let x = " + "(" * 250 + "1" + ")" * 250)) == []
    assert problems(body("if x {\n" * 250 + "}\n" * 250)) == []
    assert problems(body("let x = " + "1 + " * 250 + "1")) == []


def test_no_tree_is_deeper_than_a_walk_by_recursion_can_take() -> None:
    lines = "if x {\n" * 200 + "let y = " + "(" * 200 + "1" + ")" * 200 + "\n}" * 200
    ((_, item),) = parse(body(lines)).items
    assert [p.code for p in item.problems] == ["PH001"]
    assert _height(item.node) <= 3 * 256 + 10  # a block is three levels: `If`, `Block`, its statements


def _height(node: object) -> int:
    height, level = 0, [node]
    while level:
        height += 1
        level = [
            child
            for n in level
            for child in ([getattr(n, f) for f in type(n).__dataclass_fields__] if isinstance(n, tree.Node) else n)
            if isinstance(child, tree.Node | tuple)
        ]  # type: ignore[union-attr]
    return height


def test_many_blanks_at_the_end_cost_no_more_than_elsewhere() -> None:
    ((_, item),) = parse("kernel k() {" + " " * 400_000).items  # a square of that would take minutes
    assert [p.code for p in item.problems] == ["PH002"]


@pytest.mark.parametrize(
    "unit",
    ["hello world foo\n", "foo(a\n", "+ a\n", "x = [3 +\n", "if x {\n", "}\n", "@a\n", "@", "kernel\n", "\0 ", ") ",
     "let ", "else ", "a ? b\n", "\r", "// c\n", "a.", "x = 1\n", "(", "5a ", "e\u0301", " "],
)  # fmt: skip
def test_a_large_text_of_nonsense_is_answered(unit: str) -> None:
    text = "kernel k() {\n" + unit * (20_000 // len(unit)) + "\nkernel after() { }"
    node = parse(text).items[-1][1].node
    assert isinstance(node, tree.Kernel) and node.name.text == "after"
