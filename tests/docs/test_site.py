"""`make docs`: the site builds strictly, every link leads somewhere, and no page fetches anything from elsewhere."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from phobos.check import registry
from phobos.language.builtins import BUILTINS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
        env={**os.environ, "PHOBOS_DOCS_BROWSER": "no"},  # tests/editors has the site with that page
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, text in attrs:
            if name == "id" and text:
                self.names.add(text)
            if name in ("href", "src") and text:
                (self.links if tag == "a" else self.loaded).append(text)


def pages_of(site: Path) -> dict[Path, Links]:
    found: dict[Path, Links] = {}
    for page in site.rglob("*.html"):
        found[page] = Links()
        found[page].feed(page.read_text(encoding="utf-8"))
    return found


def dead_links(site: Path) -> list[str]:
    """Links of all pages that lead nowhere, `page -> link` each."""
    pages = pages_of(site)
    dead: list[str] = []
    for page, links in pages.items():
        if page.name == "404.html":  # its links are those of a server's root
            continue
        for link in links.links + links.loaded:
            to = urlsplit(link)
            if to.scheme or to.netloc:
                continue
            target = (page.parent / unquote(to.path)).resolve() if to.path else page
            if target.is_dir():
                target /= "index.html"
            # `#text=` is what the page with the checker reads, not a place in it.
            place = "" if to.fragment.startswith("text=") else unquote(to.fragment)
            if not target.exists() or (place and target in pages and place not in pages[target].names):
                dead.append(f"{page.relative_to(site)} -> {link}")
    return dead


def fetched_from_elsewhere(site: Path) -> list[str]:
    """What pages and style sheets would load from another place than the site."""
    found = [link for links in pages_of(site).values() for link in links.loaded if urlsplit(link).netloc]
    for sheet in site.rglob("*.css"):
        found += re.findall(r"url\(\s*['\"]?(?:https?:)?//[^)]*", sheet.read_text(encoding="utf-8"))
    return found


def test_every_link_leads_somewhere(site: Path) -> None:
    assert not dead_links(site)


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    assert not fetched_from_elsewhere(site)


def test_without_the_checker_its_page_says_so(site: Path) -> None:
    text = (site / "try.html").read_text(encoding="utf-8")
    assert "built without the checker" in text and "{megabytes}" not in text and "phobos-editor" not in text
    assert not (site / "browser").exists()


def test_what_the_checker_in_the_browser_needs_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without npm's package the build stops and says what to do; that it goes without is never its own idea."""
    found = importlib.util.spec_from_file_location("hook", ROOT / "editors/browser/hook.py")
    assert found is not None and found.loader is not None
    hook = importlib.util.module_from_spec(found)
    found.loader.exec_module(hook)
    monkeypatch.setattr(hook, "PYODIDE", tmp_path)
    monkeypatch.delenv("PHOBOS_DOCS_BROWSER", raising=False)
    with pytest.raises(hook.PluginError, match="`make docs BROWSER=no` builds the site without"):
        hook.wanted()
    monkeypatch.setenv("PHOBOS_DOCS_BROWSER", "no")
    assert not hook.wanted()


def test_there_is_a_page_for_each_rule_and_an_entry_for_each_built_in(site: Path) -> None:
    for code in registry.stems():
        assert registry.rule(code).name in (site / f"rules/{code}.html").read_text(encoding="utf-8")
    text = (site / "builtins.html").read_text(encoding="utf-8")
    assert all(f"<code>{name}</code>" in text for name in BUILTINS)


def test_the_pictures_are_drawn_from_runs(site: Path) -> None:
    told = {
        "hang": ("block 0", "waits", "has left the kernel"),
        "strides": ("tile 10", "block 3"),
        "waves": ("place 3", "14 blocks go through in 4 waves of 4, the last of 2"),
        "workers": ("worker 3", "ordinary 13"),
        "phases": ("block 3: waits, line 6, 3 steps from 6 steps", "line 6 to the end"),
        "barrier": ("block 3: waits, line 27, 16 steps", "in 7 of 7 rounds"),
    }
    assert {path.stem for path in (site / "pictures").glob("*.svg")} == set(told)
    for name, words in told.items():
        text = (site / f"pictures/{name}.svg").read_text(encoding="utf-8")
        ET.fromstring(text)
        assert all(word in text for word in words), name
        assert f"pictures/{name}.svg" in (site / "model.html").read_text(encoding="utf-8") or name == "hang"
