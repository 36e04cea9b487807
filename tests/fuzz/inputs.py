"""Inputs: texts as they are, and the same with letters, tokens, lines or pieces of their trees in the wrong place.

Everything is a function of a number. The first inputs are the seeds themselves. Half of the texts and more are to
parse, so that what lies behind the parser is tried, too: a change of one token for another of its kind, or of one
piece of a tree for another, leaves most kernels whole.
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Mapping
from typing import Any

from phobos.check import Configuration
from phobos.check.configuration import DEFAULT, parse
from phobos.language.attributes import ATTRIBUTES
from phobos.language.builtins import BUILTINS
from phobos.language.members import MEMBERS
from phobos.value import replace, value
from tests.fuzz import derive
from tests.fuzz.graft import grafted
from tests.fuzz.seeds import Seed, seeds
from tests.truth.generator import generate

TOKEN = re.compile(r"//[^\n]*|[^\W\d]\w*|\d[\w.]*|:\+|[-+*/<>=!&|]=|&&|\|\||\s+|.", re.S)
NUMBERS = ("0", "1", "2", "3", "4", "7", "8", "64", "0.5", "1e30", "9223372036854775807", "4294967296", "1e999", "0x10")
NAMES = ("X", "Y", "N", "T", "p", "t", "ctx", "x", "BAR", "𝛼", "größe", *BUILTINS, *MEMBERS)
WORDS = ("if", "else", "for", "in", "while", "let", "var", "return", "break", "continue", "kernel", "fn", "range")
SIGNS = (*"+-*/%<:,()[]{}=@.", "<=", "==", "!=", "&&", "||", ":+", "+=")
ODD = (
    "\0", "\ufeff", "\r", "\u2028", "\ud800", "\u0301", "\u202e", "'", '"', "\\", "`", "#", ";", "\t", "\x1b[31m",
    "\x0b", "\x0c", "\x1c", "\x85", "\u2060", "\U000e0001", "𒐫", "ﬃ", "İ", "ß", "٣", "²", "/*", "*/", "//", "??/",
    "// phobos: ignore[PH203]", "// phobos: ignore-file[PH5]", "// phobos: assume uniform(p)", "// run: grid=4",
    "// phobos: ignore", "// expect: fault=race",
)  # fmt: skip
CARDS = ("h200", "a100", "t4", "rtx4090", "sm_120", "b200")
# How often each way of making a text is taken. What parses nearly always stands first.
WAYS = {
    "alike": 26, "graft": 24, "generated": 8, "derived": 6, "whole": 4,
    "lines": 9, "tokens": 9, "letters": 6, "noise": 4, "blanks": 3, "deep": 0.6, "huge": 0.15,
}  # fmt: skip


@value
class Input:
    """A text, how it came about, and the configuration to check it with."""

    number: int
    way: str
    text: str
    configuration: Configuration


def input_of(number: int) -> Input:
    """The input of a number."""
    if number < len(seeds()):
        seed = seeds()[number]
        return Input(number, "seed", seed.text, seed.configuration)
    rng = random.Random(number)
    (way,) = rng.choices(list(WAYS), list(WAYS.values()))
    seed = _seed(rng)
    text = _made(rng, way, seed.text)
    return Input(number, way, text, _configuration(rng, text, seed.configuration))


def as_json(given: Input) -> dict[str, object]:
    """An input as it is, for a number means another text when seeds change."""
    own = given.configuration
    base = _base(own.source, own.text)
    differs = {name: getattr(own, name) for name in fields() if getattr(own, name) != getattr(base, name)}
    return {
        "number": given.number, "way": given.way, "text": given.text, "toml": own.text, "source": own.source,
        "configuration": differs,
    }  # fmt: skip


def from_json(kept: Mapping[str, Any]) -> Input:
    configuration = replace(
        _base(kept["source"], kept["toml"]), **{name: _tuples(one) for name, one in kept["configuration"].items()}
    )
    return Input(kept["number"], kept["way"], kept["text"], configuration)


def _base(source: str | None, text: str) -> Configuration:
    return parse(source or "phobos.toml", text) if text else DEFAULT


def fields() -> list[str]:
    """Of a configuration, but those that follow from its text."""
    return [one.name for one in dataclasses.fields(Configuration) if one.name not in ("text", "source", "problems")]


def _tuples(one: Any) -> Any:
    return tuple(map(_tuples, one)) if isinstance(one, list) else one


def _made(rng: random.Random, way: str, text: str) -> str:
    match way:
        case "alike":
            return _alike(rng, text, rng.choice((1, 1, 2, 4)))
        case "graft":
            for _ in range(rng.choice((1, 1, 1, 2, 3))):
                text = grafted(rng, text, text if rng.random() < 0.4 else _seed(rng).text)
            return text
        case "generated":
            return generate(rng.randrange(10**6)).text
        case "derived":
            return derive.file(rng)
        case "lines":
            return _lines(rng, text)
        case "tokens":
            return _tokens(rng, text, rng.choice((1, 2, 5, 20)))
        case "letters":
            return _letters(rng, text, rng.choice((1, 3, 30)))
        case "noise":
            size = rng.choice((0, 1, 10, 200))
            return "".join(rng.choice((*NUMBERS, *NAMES, *WORDS, *SIGNS, *ODD, " ", "\n")) for _ in range(size))
        case "blanks":
            return _blanks(rng, text)
        case "deep":
            return _deep(rng, text)
        case "huge":
            return _huge(rng)
    return text


def _seed(rng: random.Random) -> Seed:
    if rng.random() < 0.2:
        return Seed(generate(rng.randrange(10**6)).text)
    seed = rng.choice(seeds())
    return Seed(seed.text + "\n" + rng.choice(seeds()).text, seed.configuration) if rng.random() < 0.1 else seed


def _configuration(rng: random.Random, text: str, own: Configuration) -> Configuration:
    """Mostly the seed's own; else with `--set`, `--target` and sizes as a user may give them."""
    if rng.random() < 0.8:
        return own
    names = sorted(set(re.findall(r"\b[A-Z]\w*\b", text)))[:8] or ["N"]
    numbers = (0, 1, 2, 3, 8, 31, 64, 128, 4096, 2**31, 2**63 - 1)
    match rng.randrange(4):
        case 0:
            return replace(own, constants=((rng.choice(names), rng.choice(numbers)),))
        case 1:
            return replace(own, target=tuple(rng.sample(CARDS, rng.choice((1, 2)))))
        case 2:
            return replace(own, sizes=tuple((name, rng.choice(numbers)) for name in rng.sample(names, 1)))
    kernels = re.findall(r"\bkernel\s+(\w+)", text)
    return replace(own, kernel="+".join(kernels[:2])) if len(set(kernels)) == len(kernels) and kernels else DEFAULT


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
                lines.insert(at, rng.choice(rng.choice(seeds()).text.split("\n")))
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


def _blanks(rng: random.Random, text: str) -> str:
    """Other line ends, other indents, comments and marks of byte order where they may stand."""
    match rng.randrange(6):
        case 0:
            return text.replace("\n", "\r\n")
        case 1:
            return text.replace("\n", "\r")
        case 2:
            return "\ufeff" + text
        case 3:
            return re.sub(r"(?m)^ +", lambda m: rng.choice(("", "\t", "        ", "\u00a0")), text)
        case 4:
            return re.sub(r"\n", lambda m: rng.choice(("\n", "\n\n\n", "  // ü\n", " ;\n", "\n// \U0001f600\n")), text)
    return re.sub(r" ([-+*/=<>]+|:\+) ", lambda m: rng.choice((m[1], m[0], f"  {m[1]}\t")), text)


def _deep(rng: random.Random, text: str) -> str:
    """Nested as nobody writes: brackets, blocks, `else if`, operators, calls, subscripts."""
    depth = rng.choice((40, 250, 256, 257, 300, 2_000))
    inner = rng.choice(("1", "p", "X[0]", ""))
    expression = rng.choice((
        "(" * depth + inner + ")" * rng.choice((depth, depth, depth - 1, 0)),
        "X[" * depth + inner + "]" * depth,
        "-" * depth + inner,
        " + ".join([inner or "1"] * depth),
        "exp(" * depth + inner + ")" * depth,
        inner + ".x" * depth,
        " < ".join(["p"] * depth),
    ))  # fmt: skip
    head = "kernel k(X: tensor<f32>[N]) {\n  let p = ctx.block.x\n"
    match rng.randrange(4):
        case 0:
            return f"{head}  X[p] = {expression}\n}}\n"
        case 1:
            opened = rng.choice(("if p < 2 {", "while p < 2 {", "for i in range(0, 2) {", "{"))
            return head + f"{opened}\n" * depth + "X[p] = 1.0\n" + "}\n" * rng.choice((depth, depth, 1)) + "}\n"
        case 2:
            return head + "if p < 1 {\n}" + " else if p < 2 {\n}" * depth + "\n}\n"
    at = rng.randrange(len(text) + 1)
    return text[:at] + expression + text[at:]


def _huge(rng: random.Random) -> str:
    """Large files, long lines, long names."""
    match rng.randrange(5):
        case 0:
            return "\n".join(rng.choice(seeds()).text for _ in range(40))
        case 1:
            return "kernel k(X: tensor<f32>[N]) {\n" + "  X[0] = 1.0 + X[1]\n" * 800 + "}\n"
        case 2:
            return "kernel " + "k" * 50_000 + "(X: tensor<f32>[N]) {\n}\n"
        case 3:
            dims = ", ".join(f"N{i}" for i in range(300))
            return f"kernel k(X: tensor<f32>[{dims}]) {{\n  X[{dims}] = 0.0\n}}\n"
    return "// " + "x" * 200_000 + "\nkernel k(" + ", ".join(f"a{i}: i32" for i in range(2_000)) + ") {\n}\n"
