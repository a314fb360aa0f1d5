"""The site is built from the pages without a network and without a warning, and asks nobody else for anything."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from docs.blocks import ROOT

pytest.importorskip("material", reason="needs the extra `docs`")
LOADED = re.compile(r"<(?:script|img|link|source|iframe)\b[^>]*?\b(?:src|href|srcset)=\"?((?:https?:)?//[^\s\">]+)")

_FALSE_LIST = re.compile(r"<p>(?:(?!</p>).)*^(?:- |\d+\. |\|).*?</p>", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stdout, built.stderr) == (0, "", "")
    return folder


def test_every_page_of_the_docs_and_every_readme_is_in_it(site: Path) -> None:
    pages = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")]
    pages += [
        Path("inside") / page.relative_to(ROOT) for page in ROOT.glob("[!.]*/README.md") if page.parent.name != "docs"
    ]
    made = [page.with_name("index.html") if page.stem == "README" else page.with_suffix(".html") for page in pages]
    assert [page for page in made if not (site / page).is_file()] == []


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    found = {page.name: LOADED.findall(page.read_text(encoding="utf-8")) for page in site.rglob("*.html")}
    assert len(found) > 20
    assert {name: urls for name, urls in found.items() if urls} == {}


def test_every_page_leads_to_every_section(site: Path) -> None:
    text = (site / "guides" / "audit-a-day.html").read_text(encoding="utf-8")
    for page in (
        "../index.html",
        "../start.html",
        "protect-an-openai-app.html",
        "../operating.html",
        "../comparison.html",
    ):
        assert f'href="{page}"' in text


def test_lists_and_tables_are_lists_and_tables(site: Path) -> None:
    """What the repository shows as one: Markdown in Python wants more empty lines and spaces."""
    paragraphs = {
        page.name: re.findall(
            r"<p>(?:(?!</p>).)*^(?:- |\d+\. |\|).*?</p>", page.read_text(encoding="utf-8"), re.M | re.S
        )
        for page in site.rglob("*.html")
    }
    assert {name: found for name, found in paragraphs.items() if found} == {}


def test_a_new_page_finds_its_place_by_itself() -> None:
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "docs" / "site" / "pages.py")
    assert spec is not None
    assert spec.loader is not None
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    named = ["guides/a-new-one.md", "guides/what-if.md", "guides/protect-an-openai-app.md", "index.md", "new/one.md"]
    assert pages.order(named) == [
        "index.md",
        "new/one.md",
        {"Guides": ["guides/protect-an-openai-app.md", "guides/a-new-one.md", "guides/what-if.md"]},
    ]
