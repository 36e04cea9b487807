"""The pages of the rules as files: written from the rules, and what every link opens.

`PHOBOS_UPDATE_SNAPSHOTS=1` writes them anew.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from phobos.check import registry, rule

PAGES = Path(rule.__file__).parent / "pages"


def test_each_rule_has_its_page_as_it_stands_in_the_rule() -> None:
    if os.environ.get("PHOBOS_UPDATE_SNAPSHOTS"):
        for old in PAGES.glob("*"):
            old.unlink()
        PAGES.mkdir(exist_ok=True)
        for code in registry.stems():
            (PAGES / f"{code}.md").write_text(registry.page(code), encoding="utf-8", newline="\n")
    kept = {page.stem: page.read_text(encoding="utf-8") for page in PAGES.iterdir()}
    stale = [code for code in registry.stems() if kept.get(code) != registry.page(code)]
    assert not stale and set(kept) == set(registry.stems()), f"PHOBOS_UPDATE_SNAPSHOTS=1 renews them: {stale}"


def test_a_link_opens_the_page() -> None:
    for code in registry.stems():
        link = urlsplit(rule.url(code))
        assert link.scheme == "file"
        assert Path(unquote(link.path)).read_text(encoding="utf-8").startswith(f"# {code} ")


@pytest.fixture
def forgotten() -> Iterator[None]:
    rule._site.cache_clear()
    yield
    rule._site.cache_clear()


@pytest.mark.usefixtures("forgotten")
def test_a_project_with_a_site_links_there(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = Message()
    declared["Project-URL"] = "Source, https://example.org/code"
    declared["Project-URL"] = "Documentation, https://example.org/phobos/"
    monkeypatch.setattr(importlib.metadata, "metadata", lambda name: declared)
    assert rule.url("PH205") == "https://example.org/phobos/rules/PH205.html"


@pytest.mark.usefixtures("forgotten")
def test_a_copy_without_metadata_links_to_its_own_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> Message:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "metadata", nothing)
    assert rule.url("PH205").endswith("/phobos/check/pages/PH205.md")
