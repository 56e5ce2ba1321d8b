"""The site of the documents: every link leads somewhere, nothing is loaded from a network, and it is complete."""

import html
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.browser import browsing, needs_browser
from tests.pipeline.command import ROOT
from tests.pipeline.conftest import Call

import bertwright
from bertwright import plugins
from bertwright.shipped import shipped

pytest.importorskip("material", reason="mkdocs-material is not installed: pip install 'bertwright[docs]'")
pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` makes it: a link, an anchor or a page that leads nowhere is an error."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Loaded(HTMLParser):
    """Collects the addresses that a browser loads for a page, where they lead out of the site."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        names = ["src", "srcset", "poster", "data"] + ["href"] * (tag in ("link", "use", "image"))
        found = [given[name] for name in names if name in given and not (tag == "link" and given["rel"] == "canonical")]
        styles = re.findall(r"url\(([^)]*)\)", given.get("style", ""))
        self.addresses += [each for each in [*found, *styles] if re.match(r"\s*(\w+:)?//", each)]
        assert "mermaid" not in given.get("class", ""), "the theme loads a program for diagrams from a network"


def test_no_page_loads_anything_from_a_network(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 150
    for page in pages:
        loaded = Loaded()
        loaded.feed(page.read_text(encoding="utf-8"))
        assert loaded.addresses == [], page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(\w+:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_every_public_name_has_its_docstring_on_the_page_of_the_api(site: Path) -> None:
    page = (site / "api.html").read_text(encoding="utf-8")
    names = [f"bertwright.{name}" for name in bertwright.__all__ if name != "__version__"]
    names += [f"bertwright.plugins.{name}" for name in plugins.__all__ if name != "Section"]
    for name in names:
        # A name is found below its heading, by where it is defined.
        entry = re.search(
            rf'<span class="doc doc-object-name[^"]*">{re.escape(name)}</span>.*?(?=<h[23]|\Z)', page, re.DOTALL
        )
        assert entry, name
        said = re.sub(r"<[^>]+>|\s+", " ", re.split(r'class="doc doc-contents[^>]*>', entry[0])[1])
        assert len(said.strip()) > 40, name
    assert all(f'.{member}" class="doc' in page for member in ("fill_mask", "choose", "evaluate", "record"))


def test_every_recipe_has_a_page_with_what_plan_says(site: Path, call: Call) -> None:
    listed = (site / "recipes.html").read_text(encoding="utf-8")
    for name in shipped():
        assert f'href="recipes/{name}.html"' in listed
        shown = text_of(site / "recipes" / f"{name}.html")
        command = re.search(r"^\$ bertwright (plan .*)$", shown, re.MULTILINE)
        assert command and "memory per device" in shown, name
        if "--place" in command[1]:  # and of this machine else
            done = call(*command[1].split())
            # Words of a sentence are in lines of the terminal's width there.
            assert " ".join(done.out.split()[4:]) in " ".join(shown.split()), name


def text_of(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


def test_links_out_of_the_documents_lead_to_pages(site: Path) -> None:
    contributing = (site / "contributing.html").read_text(encoding="utf-8")
    assert 'href="how-to/add-a-source.html"' in contributing
    assert 'href="../contributing.html#what-is-generated-from-the-sections"' in (
        site / "how-to" / "add-a-task.html"
    ).read_text(encoding="utf-8")
    assert "LionConfig" in text_of(site / "notebooks" / "own_optimizer.html")


@needs_browser
def test_pages_in_files_are_seen_and_searched(site: Path, tmp_path: Path) -> None:
    with browsing(tmp_path) as page:
        for name in ("index", "how-to/plan", "api", "recipes", "recipes/demo", "hu/index"):
            for width, dark in ((360, True), (1280, False)):
                page.size(width, 900, dark)
                page.open((site / f"{name}.html").as_uri())
                # Links within a sentence are as high as its letters.
                assert [flaw for flaw in page.flaws() if not flaw.startswith("small")] == [], (name, width)
        for word in ("perplexity", "szójegyzék"):
            page.press("/")
            page.wait("document.activeElement.matches('.md-search__input')")
            page.value("document.activeElement.select()")
            page.type(word)
            page.press("End")  # the theme searches when a key is released
            found = "[...document.querySelectorAll('.md-search-result__item mark')].map(e => e.innerText.toLowerCase())"
            page.wait(f"{found}.includes('{word}')")
            page.press("Escape")
        assert page.faults == [] and {address.partition(":")[0] for address in page.asked} <= {"file", "data"}


def test_no_markdown_is_left(site: Path) -> None:
    """A list or table that the site reads otherwise than a host of repositories does, such as within a list."""
    for page in site.rglob("*.html"):
        article = page.read_text(encoding="utf-8").partition("<article")[2].partition("</article>")[0]
        article = re.sub(r"<(pre|code)\b.*?</\1>", "", article, flags=re.DOTALL)
        left = re.findall(
            r"^(?:- |#+ |\s*\||.*(?:\]\(|\*\*|```|:::)).*", html.unescape(re.sub(r"<[^>]+>", "", article)), re.M
        )
        assert left == [], page.name
