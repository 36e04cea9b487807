"""`make docs`: the site builds strictly, every link leads somewhere, and no page fetches anything from elsewhere."""

from __future__ import annotations

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


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Links]:
    found: dict[Path, Links] = {}
    for page in site.rglob("*.html"):
        found[page] = Links()
        found[page].feed(page.read_text(encoding="utf-8"))
    return found


def test_every_link_leads_somewhere(site: Path, pages: dict[Path, Links]) -> None:
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
            if not target.exists() or (to.fragment and target in pages and unquote(to.fragment) not in
                                       pages[target].names):  # fmt: skip
                dead.append(f"{page.relative_to(site)} -> {link}")
    assert not dead


def test_nothing_is_fetched_from_elsewhere(site: Path, pages: dict[Path, Links]) -> None:
    for page, links in pages.items():
        assert not [link for link in links.loaded if urlsplit(link).netloc], page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet.name


def test_there_is_a_page_for_each_rule_and_an_entry_for_each_built_in(site: Path) -> None:
    for code in registry.stems():
        assert registry.rule(code).name in (site / f"rules/{code}.html").read_text(encoding="utf-8")
    text = (site / "builtins.html").read_text(encoding="utf-8")
    assert all(f"<code>{name}</code>" in text for name in BUILTINS)


def test_the_pictures_are_drawn_from_runs(site: Path) -> None:
    for name, words in {"hang": ("block 0", "waits", "has left the kernel"), "strides": ("tile 10", "block 3")}.items():
        text = (site / f"pictures/{name}.svg").read_text(encoding="utf-8")
        ET.fromstring(text)
        assert all(word in text for word in words)
