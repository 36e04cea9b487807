"""The page of the site that runs the checker in the browser: Pyodide from npm, the package and lark as one archive.

mkdocs calls `on_files` and `on_page_markdown`. All that the page loads lies beside it in the built site. Pyodide is
in node_modules, where `npm ci` puts it; without it the build stops, unless PHOBOS_DOCS_BROWSER=no asks for a site
whose page says that it was built without the checker.
"""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import lark
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

import phobos
from phobos.check import registry
from phobos.language.builtins import BUILTINS
from phobos.language.scalars import SCALARS
from phobos.syntax.tokens import KEYWORDS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PYODIDE = HERE / "node_modules" / "pyodide"
RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
OURS = ("page.js", "page.css", "worker.mjs")
ROOMS = ("syntax", "language", "semantics", "lowering", "codegen", "check")  # all that `phobos.check` can import
EXAMPLES = ("hang", "staged", "saxpy", "softmax")
PAGE = "try.md"
MARK = "<!-- the editor -->"
MISSING = (
    "the page that runs the checker in the browser needs the npm package pyodide, and it is not in "
    "editors/browser/node_modules. `make docs` fetches it; `make docs BROWSER=no` builds the site without the page."
)


def on_files(files: Files, config: Any) -> Files:
    if wanted():
        for name, content in contents().items():
            if isinstance(content, Path):
                files.append(File.generated(config, f"browser/{name}", abs_src_path=str(content)))
            else:
                files.append(File.generated(config, f"browser/{name}", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    rule = re.fullmatch(r"rules/(PH\d+)\.md", page.file.src_uri)
    if rule and wanted():
        return markdown + "".join(f"\n{link(text)}\n" for text in registry.manual(rule[1]).bad[:1])
    if page.file.src_uri != PAGE:
        return markdown
    if not wanted():
        return "# Try it here\n\nThis copy of the site was built without the checker: `make docs` builds it with it.\n"
    data = json.dumps(data_of_the_page()).replace("</", "<\\/")
    editor = (HERE / "page.html").read_text(encoding="utf-8")  # no blank line, which would end the HTML for Markdown
    editor += f'<script type="application/json" id="phobos-data">{data}</script>\n'
    editor += '<script src="browser/page.js"></script>\n'
    return markdown.replace(MARK, editor).replace("{megabytes}", f"{size() / 1e6:.1f}")


def link(text: str) -> str:
    """From a rule's page to this one, with a text in it. As HTML: Markdown's links are looked for in the page."""
    return f'<a href="../try.html#text={quote(text, safe="")}">Open the example in the browser</a>'


def wanted() -> bool:
    """Whether the site is to have the checker; an error if it cannot."""
    if os.environ.get("PHOBOS_DOCS_BROWSER") == "no":
        return False
    if not (PYODIDE / "pyodide.asm.wasm").exists():
        raise PluginError(MISSING)
    return True


def contents() -> dict[str, Path | bytes]:
    """What lies in `browser/` of the site, by name there."""
    made: dict[str, Path | bytes] = {f"pyodide/{name}": PYODIDE / name for name in RUNTIME}
    made |= {name: HERE / name for name in OURS}
    made["phobos.zip"] = archive()
    return made


def size() -> int:
    """How many bytes the page loads for Python and the checker, before any compression by the server."""
    files = (content for name, content in contents().items() if not name.startswith("page."))
    return sum(content.stat().st_size if isinstance(content, Path) else len(content) for content in files)


def data_of_the_page() -> dict[str, object]:
    texts = {name: (ROOT / "examples" / f"{name}.ph").read_text(encoding="utf-8") for name in EXAMPLES}
    builtins = [name for name in BUILTINS if name not in SCALARS]
    types = [*SCALARS, "tile", "tensor"]
    return {"bytes": size(), "examples": texts, "keywords": list(KEYWORDS), "types": types, "builtins": builtins}


def archive() -> bytes:
    """The checker, lark and what the worker calls, as Python would import them."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
        for name, file in sorted(sources()):
            # One date for all, so that the same sources make the same archive.
            made.writestr(zipfile.ZipInfo(name), file.read_bytes(), zipfile.ZIP_DEFLATED)
    return target.getvalue()


def sources() -> Iterator[tuple[str, Path]]:
    yield "answers.py", HERE / "answers.py"
    package = Path(phobos.__file__).parent
    for file in package.glob("*.py"):
        yield f"phobos/{file.name}", file
    for base, folders in ((package, ROOMS), (Path(lark.__file__).parent, ("",))):
        for folder in folders:
            for file in (base / folder).rglob("*"):
                if file.suffix in (".py", ".lark"):
                    yield file.relative_to(base.parent).as_posix(), file
