"""Characters to tokens: the words of Phobos and where a newline ends a statement.

One compiled `re` cuts the text; a table says what each word is. A token is `(start, end, text)`, and its kind
is one letter, so that the kinds of a stretch of tokens are a `str`: it can be searched, and it is the key under
which the parser keeps what it learnt about that stretch (`pieces.py`).
"""

from __future__ import annotations

import re
from functools import lru_cache

from phobos.syntax.tree import Comment
from phobos.value import value

Token = tuple[int, int, str]

NAME, INT, FLOAT, BOOL, MISSING, UNKNOWN, END = "n", "i", "d", "b", "_", "?", ";"
COMMENT, NEWLINE = "#", "\n"

KEYWORDS = {
    "kernel": "K", "fn": "F", "let": "L", "var": "V", "if": "I", "else": "E", "for": "R", "in": "N", "while": "W",
    "break": "B", "continue": "C", "return": "T", "true": BOOL, "false": BOOL,
}  # fmt: skip

_OPERATORS = {
    "==": "q", "!=": "q", "<=": "o", ">=": "o", "<<": "h", ">>": "h", "*": "*", "/": "*", "%": "*", "!": "!", "~": "!",
    "+=": "a", "-=": "a", "*=": "a", "/=": "a", "%=": "a", ":+": "s", "->": "r", "&&": "A", "||": "O",
    **{c: c for c in "(){}[],:;@.=<>+-&|^"},
}  # fmt: skip

TERMINALS = {
    NAME: "NAME", INT: "INT", FLOAT: "FLOAT", BOOL: "BOOL", MISSING: "MISSING", END: "END",
    "K": "KERNEL", "F": "FN", "L": "LET", "V": "VAR", "I": "IF", "E": "ELSE", "R": "FOR", "N": "IN", "W": "WHILE",
    "B": "BREAK", "C": "CONTINUE", "T": "RETURN",
    "q": "EQUALITY", "o": "ORDER", "h": "SHIFT", "*": "PRODUCT", "!": "PREFIX", "a": "ASSIGN",
    "(": "LPAR", ")": "RPAR", "[": "LSQB", "]": "RSQB", "{": "LBRACE", "}": "RBRACE", ",": "COMMA", ":": "COLON",
    "@": "AT", ".": "DOT", "=": "EQUAL", "<": "LESSTHAN", ">": "MORETHAN", "+": "PLUS", "-": "MINUS",
    "&": "AMPERSAND", "|": "VBAR", "^": "CIRCUMFLEX",
    "s": "SPAN", "r": "ARROW", "A": "AND", "O": "OR",
}  # fmt: skip
"""Kind to the name of the terminal in `grammar.lark`. `?` (a character that starts no token) has none."""

_ENDERS = frozenset((NAME, INT, FLOAT, BOOL, ")", "]", "}", "B", "C", "T"))

_SCAN = re.compile(
    r"""([^\S\r\n]*+)              # blanks of any kind
    ( [^\W\d]\w*                   # a name or keyword
    | //[^\r\n]*                   # a comment
    | 0[xX]\w*                     # numbers take what is glued to them, so that one message can say so
    | [0-9][0-9_]*(?:\.[0-9_]*(?:[eE][+-]?[0-9])?|[eE][+-]?[0-9])\w*
    | [0-9]\w*
    | [\r\n]\s*                    # one or more line ends
    | :\+ | -> | [-+*/%=!<>]= | << | >> | && | \|\|
    | . )""",
    re.VERBOSE | re.DOTALL,
)


class _Kinds(dict[str, str]):
    """Word to kind. What is not in the table is told by its first character, and kept within bounds."""

    def __missing__(self, word: str) -> str:
        kind = _kind_of(word)
        if kind not in (COMMENT, UNKNOWN) and len(word) <= 40:
            if len(self) > 20_000:
                self.clear()
                self.update(KEYWORDS)
                self.update(_OPERATORS)
            self[word] = kind
        return kind


def _kind_of(word: str) -> str:
    first = word[0]
    if first == "_" or first.isalpha():
        return NAME
    if first in "0123456789":
        return FLOAT if word[:2] not in ("0x", "0X") and _FLOAT.match(word) else INT
    if first == "/":
        return COMMENT
    return NEWLINE if first in "\r\n" else UNKNOWN


_FLOAT = re.compile(r"[0-9][0-9_]*(?:\.|[eE][+-]?[0-9])")
_KINDS = _Kinds({**KEYWORDS, **_OPERATORS})


@value
class Tokens:
    """The tokens of a text: `kinds[i]` is the kind of `list[i]`. A statement end is a token, written or not."""

    text: str
    kinds: str
    list: list[Token]
    comments: tuple[Comment, ...]

    def first_of_line(self, index: int) -> bool:
        """Whether token `index` has a line end between it and the token before it."""
        if index and self.kinds[index - 1] == END and self.list[index - 1][2] != ";":
            return True
        before = self.list[index - 1][1] if index else 0
        between = self.text[before : self.list[index][0]]
        return index == 0 or "\n" in between or "\r" in between


def tokenize(text: str) -> Tokens:
    """Tokens and comments of `text`. Characters that start no token are tokens of kind `?`, runs of them one."""
    kinds: list[str] = []
    tokens: list[Token] = []
    comments: list[Comment] = []
    table = _KINDS
    enders = _ENDERS
    add_kind = kinds.append
    add = tokens.append
    last = ""
    position = 0
    marked = -1  # where a name ends whose last character is a mark
    for blank, word in _SCAN.findall(text.rstrip()):
        start = position + len(blank)
        position = start + len(word)
        kind = table[word]
        if kind == NEWLINE:
            if last in enders:
                add_kind(END)
                add((start, start + 1, word))
                last = END
        elif kind == COMMENT:
            comments.append(Comment(start, position, word))
        elif kind == UNKNOWN and tokens and _belongs(tokens[-1], last, start, word):
            tokens[-1] = (tokens[-1][0], position, tokens[-1][2] + word)
            marked = position if last == NAME else -1
        elif start == marked and (word[0].isalnum() or word[0] == "_"):
            tokens[-1] = (tokens[-1][0], position, tokens[-1][2] + word)  # a name goes on behind its mark
        else:
            add_kind(kind)
            add((start, position, word))
            last = kind
    if last in enders:
        add_kind(END)
        add((len(text), len(text), ""))
    return Tokens(text, "".join(kinds), tokens, tuple(comments))


def ends_statement(kind: str) -> bool:
    """Whether a line end behind a token of this kind ends a statement."""
    return kind in _ENDERS


@lru_cache(maxsize=8)
def tokens_of(text: str) -> Tokens:
    """`tokenize`, of an item that parser and editor answers ask for one after the other. Not to be changed."""
    return tokenize(text)


def _belongs(before: Token, kind: str, start: int, word: str) -> bool:
    """Whether a stray character is part of the token before it: a mark of its name, or a stray beside a stray."""
    return before[1] == start and (kind == UNKNOWN or (kind == NAME and ("a" + word).isidentifier()))
