"""The keywords and the words that open a type, with what is shown for them."""

from __future__ import annotations

from phobos.value import value


@value
class Keyword:
    """`form` is how it is written; `snippet` the same with places to fill in; `where`: "item", "statement", ..."""

    form: str
    documentation: str
    snippet: str
    where: str


KEYWORDS: dict[str, Keyword] = {
    "kernel": Keyword(
        "kernel NAME(parameters) { ... }",
        "A program that every block of a grid runs. Attributes stand before it.",
        "kernel ${1:name}(${2:X}: tensor<${3:f32}>[${4:N}]) {\n  $0\n}", "item",
    ),
    "fn": Keyword(
        "fn NAME(parameters) -> type { ... }",
        "A function, inlined where it is called. Scalars and tiles are passed by value, tensors by name.",
        "fn ${1:name}(${2:x}: ${3:f32}) -> ${4:f32} {\n  return $0\n}", "item",
    ),
    "let": Keyword(
        "let NAME = expression",
        "Names a value, once. A slice is named as a read-only view: its elements are read where the name is used.",
        "let ${1:name} = $0", "statement",
    ),
    "var": Keyword(
        "var NAME: type = expression",
        "A variable that can be assigned. Only a tile may lack its value; reading it before writing is an error.",
        "var ${1:name} = $0", "statement",
    ),
    "if": Keyword(
        "if condition { ... } else { ... }",
        "Runs one of two blocks. The `{` and `else` stay on the line of the token before them. A `grid_barrier` "
        "inside needs a condition that is the same in every block.",
        "if ${1:condition} {\n  $0\n}", "statement",
    ),
    "else": Keyword("if condition { ... } else { ... }", "The other branch of an `if`.", "else {\n  $0\n}", "else"),
    "for": Keyword(
        "for NAME in range(lo, hi, step) { ... }",
        "Counts from `lo` up to, not including, `hi`; `step` is 1 unless given. `for<unroll 4>` asks for unrolling.",
        "for ${1:i} in range(${2:0}, ${3:N}) {\n  $0\n}", "statement",
    ),
    "in": Keyword(
        "for NAME in range(lo, hi)", "Between a loop variable and its range.",
        "in range(${1:0}, ${2:N}) {\n  $0\n}", "in",
    ),
    "while": Keyword(
        "while condition { ... }", "Repeats as long as the condition holds.",
        "while ${1:condition} {\n  $0\n}", "statement",
    ),
    "break": Keyword("break", "Leaves the innermost loop.", "break", "loop"),
    "continue": Keyword("continue", "Goes on with the next round of the innermost loop.", "continue", "loop"),
    "return": Keyword(
        "return expression",
        "Leaves a function with its value; in a kernel it takes none and ends this block's work.",
        "return $0", "statement",
    ),
    "true": Keyword("true", "The bool that holds.", "true", "expression"),
    "false": Keyword("false", "The bool that does not hold.", "false", "expression"),
    "range": Keyword(
        "range(lo, hi, step)",
        "The numbers that a `for` walks: from `lo` while below `hi`, by `step` (1 unless given).",
        "range(${1:0}, ${2:N})", "range",
    ),
    "tensor": Keyword(
        "tensor<f32>[M, N]",
        "Global memory, row-major; a parameter's type only. A dim is a literal, a constant or a symbol that is bound "
        "to the extent at launch.",
        "tensor<${1:f32}>[${2:M}, ${3:N}]", "type",
    ),
    "tile": Keyword(
        "tile<f32>[16, 64]",
        "Storage of one block. Every dim is known when compiled.",
        "tile<${1:f32}>[${2:16}, ${3:64}]", "type",
    ),
    "unroll": Keyword("for<unroll 4> NAME in range(lo, hi)", "Asks that a loop be unrolled.", "unroll ${1:4}", "hint"),
}  # fmt: skip
