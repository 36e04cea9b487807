"""Writes syntaxes/phobos.tmLanguage.json from the project's own tables, so that no editor knows other names.

Run it after a change in `phobos/language`; a test compares the file with what this would write.
"""

import json
import sys
from pathlib import Path

from phobos.language import attributes, builtins, scalars

HERE = Path(__file__).resolve().parent
FILE = HERE / "syntaxes" / "phobos.tmLanguage.json"


def words(names: object) -> str:
    return "|".join(sorted(names, key=lambda name: (-len(name), name)))  # type: ignore[call-overload]


def grammar() -> dict[str, object]:
    scalar = words(scalars.SCALARS)
    core = words(name for name in builtins.CORE if name not in scalars.SCALARS)
    later = words(name for name, builtin in builtins.BUILTINS.items() if not builtin.core)
    name = r"[A-Za-z_][A-Za-z0-9_]*"
    return {
        "$schema": "https://json.schemastore.org/tmlanguage.json",
        "name": "Phobos",
        "scopeName": "source.phobos",
        "fileTypes": ["ph"],
        "patterns": [{"include": "#item"}, {"include": "#statement"}],
        "repository": {
            "item": {"patterns": [{"include": "#comment"}, {"include": "#attribute"}, {"include": "#head"}]},
            "comment": {
                "patterns": [
                    {
                        "name": "comment.line.double-slash.header.phobos",
                        "match": r"(//)\s*((run|expect)(:))(.*)$",
                        "captures": {
                            "1": {"name": "punctuation.definition.comment.phobos"},
                            "3": {"name": "keyword.other.header.phobos"},
                            "4": {"name": "punctuation.separator.header.phobos"},
                            "5": {"name": "string.unquoted.header.phobos"},
                        },
                    },
                    {
                        "name": "comment.line.double-slash.directive.phobos",
                        "match": r"(//)\s*(phobos:)\s*(ignore-file|ignore|assume)\b(.*)$",
                        "captures": {
                            "1": {"name": "punctuation.definition.comment.phobos"},
                            "2": {"name": "keyword.other.directive.phobos"},
                            "3": {"name": "keyword.control.directive.phobos"},
                        },
                    },
                    {
                        "name": "comment.line.double-slash.phobos",
                        "match": r"(//).*$",
                        "captures": {"1": {"name": "punctuation.definition.comment.phobos"}},
                    },
                ]
            },
            "attribute": {
                "patterns": [
                    {
                        "name": "meta.attribute.phobos",
                        "begin": rf"(@)({name})\s*(\()",
                        "beginCaptures": {
                            "1": {"name": "punctuation.definition.attribute.phobos"},
                            "2": {"patterns": [{"include": "#attribute-name"}]},
                            "3": {"name": "punctuation.section.group.begin.phobos"},
                        },
                        "end": r"\)|(?=^\s*(kernel|fn|@))",
                        "endCaptures": {"0": {"name": "punctuation.section.group.end.phobos"}},
                        "patterns": [
                            {"include": "#comment"},
                            {"name": "keyword.operator.word.in.phobos", "match": r"\bin\b"},
                            {"name": "keyword.operator.assignment.phobos", "match": r"="},
                            {"name": "variable.other.constant.phobos", "match": rf"\b{name}(?=\s*(in\b|=))"},
                            {"name": "constant.language.flag.phobos", "match": r"\b(wmma|sync)\b"},
                            {"include": "#literal"},
                            {"include": "#punctuation"},
                            {"name": "variable.other.phobos", "match": name},
                        ],
                    },
                    {
                        "name": "meta.attribute.phobos",
                        "match": rf"(@)({name})",
                        "captures": {
                            "1": {"name": "punctuation.definition.attribute.phobos"},
                            "2": {"patterns": [{"include": "#attribute-name"}]},
                        },
                    },
                ]
            },
            "attribute-name": {
                "patterns": [
                    {
                        "name": "entity.name.function.decorator.phobos",
                        "match": rf"\b({words(attributes.ATTRIBUTES)})\b",
                    },
                    {"name": "entity.name.function.decorator.unknown.phobos", "match": name},
                ]
            },
            "head": {
                "name": "meta.function.phobos",
                "begin": rf"\b(kernel|fn)\s+({name})\s*(\()",
                "beginCaptures": {
                    "1": {"name": "storage.type.function.phobos"},
                    "2": {"name": "entity.name.function.phobos"},
                    "3": {"name": "punctuation.section.parameters.begin.phobos"},
                },
                "end": r"\)|(?=\{)",
                "endCaptures": {"0": {"name": "punctuation.section.parameters.end.phobos"}},
                "patterns": [
                    {"include": "#comment"},
                    {"name": "variable.parameter.phobos", "match": rf"\b{name}(?=\s*:)"},
                    {"include": "#type"},
                    {"include": "#literal"},
                    {"include": "#punctuation"},
                    {"name": "variable.parameter.dimension.phobos", "match": name},
                ],
            },
            "statement": {
                "patterns": [
                    {"include": "#comment"},
                    {"include": "#keyword"},
                    {"include": "#type"},
                    {"include": "#literal"},
                    {"include": "#place"},
                    {"include": "#call"},
                    {"include": "#operator"},
                    {"include": "#punctuation"},
                    {"name": "variable.other.phobos", "match": name},
                ]
            },
            "keyword": {
                "patterns": [
                    {"name": "storage.type.function.phobos", "match": r"\b(kernel|fn)\b"},
                    {"name": "storage.type.phobos", "match": r"\b(let|var)\b"},
                    {"name": "keyword.control.conditional.phobos", "match": r"\b(if|else)\b"},
                    {"name": "keyword.control.loop.phobos", "match": r"\b(for|while|break|continue)\b"},
                    {"name": "keyword.operator.word.in.phobos", "match": r"\bin\b"},
                    {"name": "keyword.control.return.phobos", "match": r"\breturn\b"},
                    {"name": "storage.modifier.unroll.phobos", "match": r"(?<=[<])\s*unroll\b"},
                ]
            },
            "type": {
                "patterns": [
                    {
                        "match": rf"\b(tensor|tile)\s*(<)\s*({scalar})\s*(>)",
                        "captures": {
                            "1": {"name": "storage.type.aggregate.phobos"},
                            "2": {"name": "punctuation.definition.typeparameters.begin.phobos"},
                            "3": {"name": "support.type.primitive.phobos"},
                            "4": {"name": "punctuation.definition.typeparameters.end.phobos"},
                        },
                    },
                    {"name": "support.type.primitive.phobos", "match": rf"\b({scalar})\b"},
                ]
            },
            "literal": {
                "patterns": [
                    {"name": "constant.language.boolean.phobos", "match": r"\b(true|false)\b"},
                    {"name": "constant.numeric.hex.phobos", "match": r"\b0[xX][0-9A-Fa-f_]+\b"},
                    {
                        "name": "constant.numeric.float.phobos",
                        "match": r"\b[0-9][0-9_]*(\.[0-9_]*([eE][+-]?[0-9_]+)?|[eE][+-]?[0-9_]+)",
                    },
                    {"name": "constant.numeric.integer.phobos", "match": r"\b[0-9][0-9_]*\b"},
                ]
            },
            "place": {
                "match": r"\b(ctx)(\.)(block|blocks|thread|threads|warp|lane)\b(?:(\.)([xyz])\b)?",
                "captures": {
                    "1": {"name": "variable.language.ctx.phobos"},
                    "2": {"name": "punctuation.accessor.phobos"},
                    "3": {"name": "support.variable.property.phobos"},
                    "4": {"name": "punctuation.accessor.phobos"},
                    "5": {"name": "support.variable.property.phobos"},
                },
            },
            "call": {
                "patterns": [
                    {"name": "support.function.barrier.phobos", "match": r"\bgrid_barrier\b(?=\s*\()"},
                    {"name": "support.function.builtin.phobos", "match": rf"\b({core}|range)\b(?=\s*\()"},
                    {"name": "support.function.library.phobos", "match": rf"\b({later})\b(?=\s*\()"},
                    {"name": "entity.name.function.call.phobos", "match": rf"\b{name}\b(?=\s*\()"},
                ]
            },
            "operator": {
                "patterns": [
                    {"name": "keyword.operator.span.phobos", "match": r":\+"},
                    {"name": "keyword.operator.arrow.phobos", "match": r"->"},
                    {
                        "name": "keyword.operator.comparison.phobos",
                        "match": r"==|!=|<=|>=|(?<![<])<(?![<])|(?<![>])>(?![>])",
                    },
                    {"name": "keyword.operator.assignment.compound.phobos", "match": r"[+\-*/%]="},
                    {"name": "keyword.operator.assignment.phobos", "match": r"="},
                    {"name": "keyword.operator.logical.phobos", "match": r"&&|\|\||!"},
                    {"name": "keyword.operator.bitwise.phobos", "match": r"<<|>>|[&|^~]"},
                    {"name": "keyword.operator.arithmetic.phobos", "match": r"[+\-*/%]"},
                ]
            },
            "punctuation": {
                "patterns": [
                    {"name": "punctuation.separator.comma.phobos", "match": r","},
                    {"name": "punctuation.terminator.statement.phobos", "match": r";"},
                    {"name": "punctuation.separator.colon.phobos", "match": r":"},
                    {"name": "punctuation.section.block.phobos", "match": r"[{}]"},
                    {"name": "punctuation.section.brackets.phobos", "match": r"[\[\]]"},
                    {"name": "punctuation.section.parens.phobos", "match": r"[()]"},
                ]
            },
        },
    }


def text() -> str:
    return json.dumps(grammar(), indent=2) + "\n"


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(text())
    sys.exit(0)
