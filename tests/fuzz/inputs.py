"""Texts to try: kernels as they are, and the same with letters, tokens or whole pieces of others in the wrong place.

Everything is a function of a seed. Half of the texts and more are to parse, so that what lies behind the parser is
tried, too: a change of one token for another of its kind leaves most kernels whole.
"""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

from phobos.language.attributes import ATTRIBUTES
from phobos.language.builtins import BUILTINS
from phobos.language.members import MEMBERS
from tests.truth.generator import generate

ROOT = Path(__file__).resolve().parents[2]
TOKEN = re.compile(r"//[^\n]*|[^\W\d]\w*|\d[\w.]*|:\+|[-+*/<>=!&|]=|&&|\|\||\s+|.", re.S)
SHORT = 4_000  # letters of a text that is taken as it is
NUMBERS = ("0", "1", "2", "3", "4", "7", "8", "64", "0.5", "1e30", "9223372036854775807", "4294967296", "1e999", "0x10")
NAMES = ("X", "Y", "N", "T", "p", "t", "ctx", "x", "BAR", "𝛼", "größe", *BUILTINS, *MEMBERS)
WORDS = ("if", "else", "for", "in", "while", "let", "var", "return", "break", "continue", "kernel", "fn", "range")
SIGNS = (*"+-*/%<:,()[]{}=@.", "<=", "==", "!=", "&&", "||", ":+", "+=")
ODD = ("\0", "\ufeff", "\r", "\u2028", "\ud800", "\u0301", "\u202e", "'", '"', "\\", "`", "#", ";", "\t", "\x1b[31m")


@cache
def kept() -> tuple[str, ...]:
    """Kernels of this project: examples, corpus, the listings of suites and of rules."""
    whole = [path for folder in ("examples", "tests/corpus") for path in sorted((ROOT / folder).glob("*.ph"))]
    texts = [path.read_text(encoding="utf-8") for path in whole]
    pages = [*sorted((ROOT / "tests/check").glob("*.md")), *sorted((ROOT / "phobos/check/rules").glob("*.py"))]
    for page in pages:
        texts += re.findall(r"^```ph[^\n]*\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    return tuple(text for text in texts if len(text) <= SHORT)


def text_of(seed: int) -> str:
    """The text of a seed."""
    rng = random.Random(seed)
    text = _kernel(rng)
    match rng.choice(("whole", *["alike"] * 6, "lines", "tokens", "letters", "noise")):
        case "alike":
            return _alike(rng, text, rng.choice((1, 1, 2, 4)))
        case "lines":
            return _lines(rng, text)
        case "tokens":
            return _tokens(rng, text, rng.choice((1, 2, 5, 20)))
        case "letters":
            return _letters(rng, text, rng.choice((1, 3, 30)))
        case "noise":
            size = rng.choice((0, 1, 10, 200))
            return "".join(rng.choice((*NUMBERS, *NAMES, *WORDS, *SIGNS, *ODD, " ", "\n")) for _ in range(size))
    return text


def _kernel(rng: random.Random) -> str:
    if rng.random() < 0.4:
        return generate(rng.randrange(10**6)).text
    text = rng.choice(kept())
    return text + "\n" + rng.choice(kept()) if rng.random() < 0.1 else text


def _alike(rng: random.Random, text: str, changes: int) -> str:
    """Tokens in place of others of their kind: names for names, numbers for numbers, operators for operators."""
    tokens = TOKEN.findall(text)
    own = [t for t in tokens if re.match(r"[^\W\d]", t) and t not in WORDS]
    for _ in range(changes):
        at = rng.randrange(len(tokens)) if tokens else 0
        for index in range(at, len(tokens)):
            token = tokens[index]
            if token in WORDS or token.isspace() or token.startswith("//"):
                continue
            if re.match(r"[^\W\d]", token):
                tokens[index] = rng.choice(own if own and rng.random() < 0.7 else [*NAMES, *ATTRIBUTES])
            elif token[0].isdigit():
                tokens[index] = rng.choice(NUMBERS)
            elif token in ("+", "-", "*", "/", "%"):
                tokens[index] = rng.choice(("+", "-", "*", "/", "%"))
            elif token in ("<", "<=", ">", ">=", "==", "!="):
                tokens[index] = rng.choice(("<", "<=", ">", ">=", "==", "!="))
            elif token in (":", ":+"):
                tokens[index] = rng.choice((":", ":+"))
            else:
                continue
            break
    return "".join(tokens)


def _lines(rng: random.Random, text: str) -> str:
    """Lines left out, doubled, moved, or brought from another kernel."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(lines)) if lines else 0
        match rng.randrange(4):
            case 0 if lines:
                del lines[at]
            case 1 if lines:
                lines.insert(at, lines[at])
            case 2 if lines:
                lines.insert(rng.randrange(len(lines)), lines.pop(at))
            case _:
                lines.insert(at, rng.choice(rng.choice(kept()).split("\n")))
    return "\n".join(lines)


def _tokens(rng: random.Random, text: str, changes: int) -> str:
    tokens = TOKEN.findall(text)
    for _ in range(changes):
        at = rng.randrange(len(tokens)) if tokens else 0
        match rng.randrange(3):
            case 0 if tokens:
                del tokens[at]
            case 1 if tokens:
                tokens[at] = rng.choice(tokens)
            case _:
                tokens.insert(at, rng.choice((*SIGNS, *WORDS, *NAMES, *NUMBERS, *ODD)))
    return "".join(tokens)


def _letters(rng: random.Random, text: str, changes: int) -> str:
    letters = list(text)
    for _ in range(changes):
        at = rng.randrange(len(letters)) if letters else 0
        if letters and rng.random() < 0.5:
            del letters[at]
        else:
            any_letter = chr(rng.choice((rng.randrange(128), rng.randrange(0x110000))))
            letters.insert(at, rng.choice((*ODD, *SIGNS, any_letter)))
    return "".join(letters)
