"""Colours for `.ph` in documentation and notebooks: a Pygments lexer, found by its entry point under the name `phobos`.

It knows what a token is, and the names that `language` lists; nothing else of the project.
"""

from __future__ import annotations

from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    Text,
    Whitespace,
)

from phobos.language.attributes import ATTRIBUTES
from phobos.language.builtins import BUILTINS
from phobos.language.scalars import SCALARS

_NAME = r"[^\W\d]\w*"
_CALL = r"(?=\s*\()"


class PhobosLexer(RegexLexer):
    """Phobos kernels, persistent or not."""

    name = "Phobos"
    aliases = ["phobos", "ph"]
    filenames = ["*.ph"]
    mimetypes = ["text/x-phobos"]

    tokens = {
        "root": [
            (r"\s+", Whitespace),
            (r"(//\s*)((?:run|expect):)(.*)$", bygroups(Comment.Single, Comment.Special, Comment.Single)),
            (r"//\s*phobos:.*$", Comment.Special),
            (r"//.*$", Comment.Single),
            (rf"@(?:{'|'.join(ATTRIBUTES)})\b", Name.Decorator),
            (r"@\w*", Name.Decorator),
            (rf"(kernel|fn)(\s+)({_NAME})", bygroups(Keyword.Declaration, Whitespace, Name.Function)),
            (words(("kernel", "fn", "let", "var"), suffix=r"\b"), Keyword.Declaration),
            (words(("if", "else", "for", "in", "while", "break", "continue", "return"), suffix=r"\b"), Keyword),
            (r"(true|false)\b", Keyword.Constant),
            (r"(tensor|tile)(?=\s*<)", Keyword.Type),
            (words(tuple(SCALARS), suffix=r"\b"), Keyword.Type),
            (r"(ctx)(\.)(\w+)", bygroups(Name.Builtin.Pseudo, Punctuation, Name.Variable.Magic)),
            (r"range" + _CALL, Name.Builtin),
            (words(tuple(BUILTINS), suffix=r"\b" + _CALL), Name.Builtin),
            (_NAME + _CALL, Name.Function),
            (_NAME, Name),
            (r"0[xX][0-9A-Fa-f_]+", Number.Hex),
            (r"\d[\d_]*(\.[\d_]*([eE][+-]?\d+)?|[eE][+-]?\d+)", Number.Float),
            (r"\d[\d_]*", Number.Integer),
            (r":\+|->|&&|\|\||<<|>>|[<>=!+\-*/%]=|[<>=!+\-*/%&|^~]", Operator),
            (r"[{}()\[\],:;.]", Punctuation),
            (r".", Text),
        ]
    }
