"""Pages that are made from the tables and from runs: one for each rule, built-ins, attributes, and the pictures.

mkdocs calls `on_files` with what it found in `docs/`; what is added here exists in the built site alone.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from phobos.check import registry
from phobos.language.attributes import ATTRIBUTES
from phobos.language.builtins import BUILTINS
from phobos.language.members import MEMBERS
from phobos.language.scalars import SCALARS

ROOT = Path(__file__).resolve().parents[1]
GROUPS = {
    "0": "PH0xx: syntax",
    "1": "PH1xx: names, types and shapes",
    "2": "PH2xx: barriers and persistent grids",
    "3": "PH3xx: promises",
    "4": "PH4xx: launch and resources",
    "5": "PH5xx: races between blocks",
    "6": "PH6xx: style and speed",
    "9": "PH9xx: suppressions and configuration",
}
FAMILIES = {
    "core": "Built-ins of the language",
    "quantised": "Quantised products (checked, not executed)",
    "thread": "Per-thread code (checked, not executed)",
    "library": "Library names of later levels (checked, not executed)",
}


def on_files(files: Files, config: Any) -> Files:
    made = {"rules/index.md": rules(), "builtins.md": builtins(), "attributes.md": attributes()}
    made |= {f"rules/{code}.md": registry.page(code) for code in registry.stems()}
    made |= {f"pictures/{name}.svg": text for name, text in pictures().items()}
    made["performance.md"] = performance()
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def rules() -> str:
    lines = ["# Rules", "", "Codes are a contract: a code keeps its meaning, and is never used again for another.", ""]
    group = ""
    for code in registry.stems():
        rule = registry.rule(code)
        if GROUPS[code[2]] != group:
            group = GROUPS[code[2]]
            lines += ["", f"## {group}", "", "| code | name | severity | says |", "|---|---|---|---|"]
        says = _cell(registry.manual(code).summary)
        lines.append(f"| [{code}]({code}.md) | {rule.name} | {', '.join(rule.severities)} | {says} |")
    return "\n".join(lines) + "\n"


def builtins() -> str:
    lines = ["# Built-ins", "", "From the table that checker, editor and runtimes read.", ""]
    for family, title in FAMILIES.items():
        lines += [f"## {title}", ""]
        for one in BUILTINS.values():
            if one.family != family:
                continue
            lines += [f"### `{one.name}`", "", f"`{one.signature}` (level {one.level})", "", one.documentation, ""]
            lines += [f"- `{p.label}`: {p.documentation}" for p in one.parameters] + [""]
            if one.example:
                lines += [f"Example: `{one.example}`", ""]
    return "\n".join(lines)


def attributes() -> str:
    lines = ["# Attributes, `ctx` and types", "", "## Attributes", ""]
    for one in ATTRIBUTES.values():
        lines += [f"### `@{one.name}`", "", f"`{one.signature}` (level {one.level})", "", one.documentation, ""]
        lines += [f"Example: `{one.example}`", ""]
    lines += ["## `ctx`", "", "| member | axes | executed here | meaning |", "|---|---|---|---|"]
    for member in MEMBERS.values():
        axes, runs = ("yes" if flag else "no" for flag in (member.axes, member.executed))
        lines.append(f"| `ctx.{member.name}` | {axes} | {runs} | {_cell(member.documentation)} |")
    lines += ["", "## Types of elements", "", "| type | bits | level | meaning |", "|---|---|---|---|"]
    for scalar in SCALARS.values():
        lines.append(f"| `{scalar.name}` | {scalar.bits} | {scalar.level} | {_cell(scalar.documentation)} |")
    return "\n".join(lines) + "\n"


def performance() -> str:
    """The tables as they were measured, under a title of the site's own."""
    text = (ROOT / "benchmarks/RESULTS.md").read_text(encoding="utf-8")
    return "# Performance\n" + text.partition("\n")[2]


def pictures() -> dict[str, str]:
    """Drawings of runs: nothing in them is made up."""
    from phobos.cli import main

    made: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, kernel in {"hang": "examples/hang.ph"}.items():
            target = Path(folder, f"{name}.svg")
            said = str(Path(folder, "said"))
            main(["check", "--prove", "--plot", str(target), "--output-file", said, str(ROOT / kernel)])
            made[name] = target.read_text(encoding="utf-8").replace(str(ROOT) + "/", "")
    made["strides"] = strides(tiles=11, workers=4)
    return made | traces()


def traces() -> dict[str, str]:
    """What `phobos trace` draws of the kernels of the page `model.md`, and of an example."""
    import numpy

    from phobos.runtime.kernel import kernel, load

    def zeros(cells: int) -> Any:
        return numpy.zeros(cells, numpy.float32)

    phases = kernel(_shown("two_phases")).trace(zeros(11 * 256), zeros(11 * 256), grid=4)
    ordinary = kernel(_shown("ordinary"))
    staged = load(str(ROOT / "examples/staged.ph")).staged
    return {
        "phases": phases.to_svg(),
        "waves": ordinary.trace(zeros(14 * 256), resident=4).to_svg(),
        "workers": ordinary.trace(zeros(14 * 256), resident=4, schedule="persistent-interleaved").to_svg(),
        "barrier": staged.trace(zeros(1300).reshape(1, -1), grid=4, constants={"TILE": 1024}).to_svg(),
    }


def _shown(name: str) -> str:
    """The listing of `model.md` that holds a kernel: what is drawn is what the reader reads."""
    for listing in re.findall(r"^```ph\n(.*?)^```$", (ROOT / "docs/model.md").read_text("utf-8"), re.M | re.S):
        if f"kernel {name}(" in listing:
            return str(listing)
    raise LookupError(f"docs/model.md shows no kernel {name}")


def strides(tiles: int, workers: int) -> str:
    """Which block of a grid-stride loop has which tile: asked of the reference runtime, which stores block numbers."""
    import numpy

    from phobos.runtime.drawing import Drawing, colour
    from phobos.runtime.kernel import kernel

    owner = kernel(
        "@persistent\nkernel owner(OWNER: tensor<i32>[T]) {\n"
        "  for t in range(ctx.block.x, T, ctx.blocks.x) { OWNER[t] = ctx.block.x }\n}\n"
    )
    owners = numpy.zeros(tiles, numpy.int32)
    owner(owners, grid=workers)
    width = 76
    title = f"range(ctx.block.x, {tiles}, ctx.blocks.x) with {workers} blocks"
    out = Drawing(width * tiles + 20, 92, title, ".in{font-size:12px}")
    out.text(10, 20, title)
    for tile, block in enumerate(owners.tolist()):
        x = 10 + tile * width
        out.box(colour(block), x, 32, width - 4, 30)
        out.text(x + 8, 52, f"block {block}", "in")
        out.text(x + 8, 80, f"tile {tile}")
    return out.document


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
