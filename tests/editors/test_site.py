"""The page of the site that runs the checker in the browser, in a real one: from loading to a mended kernel.

site/try.mjs does what a visitor does and writes down what it saw; it is judged here.
"""

import functools
import http.server
import json
import os
import runpy
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import phobos
from phobos.check import registry
from tests.docs.test_site import dead_links, fetched_from_elsewhere
from tests.editors.parts import ROOT, node_environment, pyodide
from tests.editors.test_vscode import Tour, script

HANG = (ROOT / "examples/hang.ph").read_text(encoding="utf-8")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Generator[str, None, None]:
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pyodide()
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PHOBOS_DOCS_BROWSER": "yes"},
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def visit(site: Path, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Tour:
    with served(site) as address:
        variables = {"PHOBOS_SITE": address, "PHOBOS_FILE": (site / "try.html").as_uri()}
        tour = Tour(script("../site/try.mjs", tmp_path_factory.mktemp("visit"), variables, 600))
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(f"\nthe checker in the browser: {tour['first findings']['seconds']:.1f} s to the first findings")
    return tour


def test_the_hang_is_found_as_on_a_terminal(visit: Tour) -> None:
    seen = visit["first findings"]
    assert seen["squiggled"] == "grid_barrier(BAR)"
    assert seen["related"].startswith("for")
    found = [one for one in phobos.check(HANG, "kernel.ph") if one.severity != "info"]
    full = str(phobos.check(HANG, "kernel.ph"))
    assert len(found) == 1 and full.strip() in seen["report"]
    assert "Found 1 error in 1 file checked" in seen["status"]
    assert "MB" in seen["loading"]


def test_the_short_form_is_that_of_the_command(visit: Tour) -> None:
    assert visit["concise"].startswith("kernel.ph:19:5: error[PH205] some blocks go round")


def test_a_finding_leads_to_its_place(visit: Tour) -> None:
    assert visit["a finding leads to its place"] == "grid_barrier(BAR)"


def test_a_syntax_error_is_found_while_typing(visit: Tour) -> None:
    seen = visit["a syntax error while typing"]
    assert "error[PH001]" in seen["report"] and seen["squiggled"]
    assert "PH001" not in seen["after"] and "PH205" in seen["after"]


def test_squiggles_move_with_the_text_before_it_is_checked_again(visit: Tour) -> None:
    assert visit["squiggles stay in place while a text is typed above"] == "grid_barrier(BAR)"


def test_the_mended_kernel_has_no_finding(visit: Tour) -> None:
    seen = visit["mended"]
    assert seen["status"].startswith("All good: 1 file checked.")
    assert "  }\n  grid_barrier(BAR)\n}" in seen["text"]  # Enter took over the indent
    assert not [one for one in phobos.check(seen["text"]) if one.severity != "info"]


def test_the_browsers_undo_takes_back_what_was_typed(visit: Tour) -> None:
    assert visit["undo"] != visit["mended"]["text"]


def test_checking_holds_nothing_up(visit: Tour) -> None:
    seen = visit["typing is not held up"]
    assert seen["shown"].rstrip().endswith("// typed meanwhile") and seen["answers"] == 0
    assert seen["status"].startswith("Found 120 errors")


def test_a_text_is_formatted(visit: Tour) -> None:
    wanted = "kernel loose(X: tensor<f32>[N]) {\n  X[0 :+ 4] = X[0 :+ 4] * 2.0  // \U0001f600\n}\n"
    assert visit["format"] == wanted


def test_a_fix_is_applied_and_places_count_what_the_browser_counts(visit: Tour) -> None:
    assert visit["fix"]["squiggle"] == "program_id(0)"
    assert "  X[ctx.block.x] = 1.0\n" in visit["fix"]["text"]


def test_deep_texts_are_answered_as_on_a_terminal(visit: Tour) -> None:
    """A worker's stack is smaller than a terminal's: what nests as deep as may be must still fit."""
    seen = visit["deep"]
    assert "PH0" not in seen["250"] and "error" not in seen["250"]
    assert "error[PH001]" in seen["5000"] and "256" in seen["5000"]
    assert "error" not in seen["blocks"]


def test_another_example_is_chosen(visit: Tour) -> None:
    seen = visit["another example"]
    assert seen["text"] == (ROOT / "examples/saxpy.ph").read_text(encoding="utf-8")
    assert seen["status"].startswith("All good")


def test_a_link_holds_the_text(visit: Tour) -> None:
    assert visit["a link holds the text"]["value"] == "kernel shared() { 100% }\n"
    assert visit["a link holds the text"]["hash"].startswith("#text=kernel%20shared")


def test_the_page_follows_the_theme_and_fits_a_telephone(visit: Tour) -> None:
    seen = visit["dark and narrow"]
    red = int(seen["dark"].split("(")[1].split(",")[0])
    assert red < 80 and seen["wide"] <= 390 and seen["squiggled"] == "grid_barrier(BAR)"


def test_all_of_it_is_reached_by_keys(visit: Tour) -> None:
    order = visit["by keys alone"]
    assert order[0] == "example" and "format" in order and "TEXTAREA" in order
    assert order.index("TEXTAREA") < len(order) - 1  # Tab leaves it


def test_nothing_is_fetched_from_elsewhere(visit: Tour) -> None:
    (origin,) = visit["where it came from"]
    assert origin.startswith("http://127.0.0.1:")


def test_what_is_missing_is_said(visit: Tour) -> None:
    assert "python3 -m http.server" in visit["as a file"]
    assert "pyodide.asm.wasm answers 404" in visit["without WebAssembly's file"]
    assert "worker.mjs" in visit["without the worker"]


def test_the_site_with_the_page_is_whole(site: Path, visit: Tour) -> None:
    assert not dead_links(site) and not fetched_from_elsewhere(site)
    loaded = [site / "browser/worker.mjs", site / "browser/phobos.zip", *(site / "browser/pyodide").iterdir()]
    megabytes = sum(file.stat().st_size for file in loaded) / 1e6
    assert f"The first visit loads {megabytes:.1f} MB" in (site / "try.html").read_text(encoding="utf-8")
    assert f"of {megabytes:.1f} MB" in visit["first findings"]["loading"]
    assert "Open the example in the browser" in (site / "rules/PH203.html").read_text(encoding="utf-8")


def test_a_rules_page_opens_its_example(visit: Tour) -> None:
    assert visit["from a rule"] == registry.manual("PH203").bad[0]


def test_what_it_says_is_what_is_said_here(site: Path, tmp_path: Path) -> None:
    """Word for word, notes too, on the examples, some of the corpus and every rule's own examples: another Python,
    another word size (32 bits), the same answers."""
    files = [*(ROOT / "examples").glob("*.ph"), *sorted((ROOT / "tests/corpus").glob("*.ph"))[::8]]
    texts = [file.read_text(encoding="utf-8") for file in files]
    for code in registry.stems():
        texts += [*registry.manual(code).bad, *registry.manual(code).good]
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    done = subprocess.run(
        ["node", str(Path(__file__).parent / "site/same.mjs")],
        env={
            **node_environment(), "PHOBOS_PYODIDE": str(pyodide()), "PHOBOS_TEXTS": str(tmp_path / "texts.json"),
            "PHOBOS_ARCHIVE": str(site / "browser/phobos.zip"),
        },
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout)
    here = runpy.run_path(str(ROOT / "editors/browser/answers.py"))
    for text, got in zip(texts, answer["got"], strict=True):
        assert got["check"] == json.loads(here["check"](text, True))
        assert got["formatted"] == json.loads(here["formatted"](text))
    assert len(texts) > 150 and answer["version"].startswith("3.14")
