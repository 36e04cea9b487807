"""Token by token from `grammar.lark`: what the grammar can say, whether it means anything or not.

Rules are chosen at random until the text has had its share, from then on those that end soonest. Blocks are joined
here, as in the parser; everything inside a piece comes from the rules.
"""

from __future__ import annotations

import random
from functools import cache

from phobos.language.attributes import ATTRIBUTES
from phobos.language.builtins import BUILTINS, CORE
from phobos.language.scalars import SCALARS
from phobos.syntax import table
from phobos.syntax.tokens import KEYWORDS, TERMINALS

NAMES = (*("X", "Y", "N", "T", "p", "t", "i", "BAR", "größe", *CORE) * 8, "ctx", "tensor", "range", *SCALARS, *BUILTINS)
WORDS = {
    "NAME": NAMES,
    "INT": ("0", "1", "2", "8", "32", "64", "1_000", "0x1F", "9223372036854775807"),
    "FLOAT": ("0.5", "1.", "2e3", "1e-5", "1_0.0_1", "3.5e38"),
    "BOOL": ("true", "false"),
    "ARROW": ("->",), "SPAN": (":+",), "OR": ("||",), "AND": ("&&",), "EQUALITY": ("==", "!="),
    "ORDER": ("<=", ">="), "SHIFT": ("<<", ">>"), "PRODUCT": ("*", "/", "%"), "PREFIX": ("!", "~"),
    "ASSIGN": ("+=", "-=", "*=", "/=", "%="), "<scalar>": tuple(SCALARS), "<shaped>": ("tensor", "tensor", "tile"),
    "<range>": ("range",), "<unroll>": ("unroll",),
}  # fmt: skip
_SPELLED = {
    **{TERMINALS[letter]: word for word, letter in KEYWORDS.items() if TERMINALS[letter] != "BOOL"},
    **{name: letter for letter, name in TERMINALS.items() if not letter.isalnum() and name not in WORDS},
}
_ENDLESS = 10**6


_Ways = dict[str, list[tuple[str, ...]]]


@cache
def _rules() -> tuple[_Ways, _Ways]:
    """The expansions of each rule, and of these the ones that end soonest."""
    expansions: dict[str, list[tuple[str, ...]]] = {"<target>": [("NAME",), ("NAME", "LSQB", "index", "RSQB")]}
    for rule in table.build(table.STARTS).rules:
        way = tuple(symbol.name for symbol in rule.expansion)
        if "MISSING" not in way:
            expansions.setdefault(rule.origin.name, []).append(_meant(rule.origin.name, way))
    least = dict.fromkeys(expansions, _ENDLESS)  # levels that a rule needs

    def levels(way: tuple[str, ...]) -> int:
        return max((least.get(symbol, 0) for symbol in way), default=0)

    for _ in expansions:
        for name, ways in expansions.items():
            least[name] = min(least[name], 1 + min(map(levels, ways)))
    soonest = {
        name: [way for way in ways if levels(way) == min(map(levels, ways))] for name, ways in expansions.items()
    }
    return expansions, soonest


def _meant(rule: str, way: tuple[str, ...]) -> tuple[str, ...]:
    """An expansion with what the parser asks for beyond the grammar: words, targets, comparisons that do not chain."""
    if rule == "order" and way[0] == "order":
        return ("shift", *way[1:])
    if rule == "simple" and ("EQUAL" in way or "ASSIGN" in way) and way[0] == "expr":
        return ("<target>", *way[1:])
    if rule == "type":
        return ("<scalar>",) if len(way) == 1 else ("<shaped>", way[1], "<scalar>", *way[3:])
    if rule == "for_header":
        loop = way.index("IN")
        return tuple(
            symbol if symbol != "NAME" else "<range>" if at > loop else "<unroll>" for at, symbol in enumerate(way)
        )
    return way


def piece(rng: random.Random, start: str, size: int) -> str:
    """A text that `start` derives, of about that many tokens."""
    expansions, soonest = _rules()
    out: list[str] = []
    waiting = [start]
    while waiting:
        symbol = waiting.pop()
        if symbol not in expansions:
            out.append(_SPELLED[symbol] if symbol in _SPELLED else rng.choice(WORDS[symbol]))
            continue
        ways = soonest if len(out) + len(waiting) >= size else expansions
        waiting += reversed(rng.choice(ways[symbol]))
    return " ".join(out)


def file(rng: random.Random) -> str:
    """Some kernels and functions."""
    items = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        attributes = [
            piece(rng, "attribute", rng.choice((2, 8))).replace("@ ", "@") for _ in range(rng.choice((0, 0, 1, 2)))
        ]
        if rng.random() < 0.7:
            attributes = [_known(rng, one) for one in attributes]
            header = "\n".join([*attributes, piece(rng, "kernel_header", rng.choice((4, 20, 40)))])
        else:
            header = piece(rng, "function_header", rng.choice((4, 20)))
        items.append(f"{header} {_block(rng, 3, 1)}\n")
    return "\n".join(items)


def _known(rng: random.Random, attribute: str) -> str:
    """Mostly one of the attributes that there are."""
    name, space, rest = attribute[1:].partition(" ")
    return f"@{rng.choice([*ATTRIBUTES, name])}{space}{rest}"


def _block(rng: random.Random, levels: int, depth: int) -> str:
    lines = []
    indent = "  " * depth
    for _ in range(rng.choice((0, 1, 2, 4))):
        kind = rng.choice(("simple", "simple", "simple", "for_header", "while_header", "if_header"))
        text = piece(rng, kind if levels else "simple", rng.choice((1, 4, 12, 30)))
        if levels and kind != "simple":
            text += " " + _block(rng, levels - 1, depth + 1)
            if kind == "if_header" and rng.random() < 0.4:
                text += " else " + _block(rng, levels - 1, depth + 1)
        lines.append(indent + text + "\n")
    return "{\n" + "".join(lines) + "  " * (depth - 1) + "}"
