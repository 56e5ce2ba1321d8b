"""What the site adds to the documents, as a hook of MkDocs: guides by their groups, recipes with forecasts, notebooks.

The documents are Markdown that is read in the repository as it is. A link that leads out of `docs/` leads to a page
that is made here: of CONTRIBUTING.md and its like, of a recipe, or of a notebook.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertwright.cli.plan import plan_lines
from bertwright.core.numbers import amount, duration, size_of
from bertwright.estimate.machine import HardwareConfig, machine_of, read_place
from bertwright.forecast_shapes import Plan
from bertwright.plan.plan import make_plan
from bertwright.recipe import Recipe
from bertwright.shipped import shipped

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
BESIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
"""Documents in the repository's root, and their pages."""
GROUPS = ("how-to/README.md", "decisions/README.md")
"""Pages whose lists of links are also the navigation."""
FORECASTS = "<!-- The site has the forecasts here. -->"
SMALL = HardwareConfig(cores=2, memory_gb=8, cpu_isa="avx2")
"""The machine of recipes that name no other: a laptop's two cores."""
_LINK = re.compile(r"(!?\[[^\]]*\]\()(?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the guides and decisions into the navigation, in the groups of their README.md."""
    assert config.nav is not None
    for section in config.nav:
        for title, pages in section.items():
            if set(pages) <= set(GROUPS):
                section[title] = [page for index in pages for page in [index, *grouped(index)]]
            if "recipes.md" in pages:
                names = [{name: f"recipes/{name}.md"} for name in shipped()]
                pages[pages.index("recipes.md")] = {"The recipes": ["recipes.md", *names]}
            if "tutorial.md" in pages:
                books = [{_title(book): _page_of_book(book)} for book in _books()]
                pages.append({"Notebooks": books})
    return config


def grouped(index: str) -> list[Any]:
    """The pages that a list links to, as navigation: by the headings above them, where there are any."""
    text, folder = (ROOT / "docs" / index).read_text(encoding="utf-8"), posixpath.dirname(index)
    groups: list[tuple[str, list[Any]]] = []
    for line in text.splitlines():
        if line.startswith("## "):
            groups.append((line[3:], []))
        elif (link := re.match(r"- \[(.+?)\]\(([\w-]+\.md)\)", line)) is not None:
            if not groups:
                groups.append(("", []))
            groups[-1][1].append({link[1]: f"{folder}/{link[2]}"})
    return [page for heading, pages in groups for page in ([{heading: pages}] if heading else pages)]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of what is not in `docs/`."""
    from mkdocs.structure.files import File

    pages = {page: (ROOT / name).read_text(encoding="utf-8") for name, page in BESIDE.items()}
    pages |= {f"recipes/{name}.md": recipe_page(name) for name in shipped()}
    pages |= {_page_of_book(book): notebook_page(book) for book in _books()}
    for uri, text in pages.items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links out of `docs/` to their pages, and add the forecasts to the list of recipes."""
    uri = page.file.src_uri
    if uri == "recipes.md":
        assert FORECASTS in markdown
        markdown = markdown.replace(FORECASTS, "\n".join(forecast_table()))
    if uri == "index.md" or uri.startswith("recipes/"):
        page.meta["hide"] = ["toc"]  # what they show is wide
    inside = uri if uri.startswith(("recipes/", "notebooks/")) else f"docs/{uri}"
    here = {page: name for name, page in BESIDE.items()}.get(uri, inside)
    return _LINK.sub(lambda link: f"{link[1]}{_on_site(link[2], here, uri)}{link[3] or ''})", markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Say which language a page is in, for hyphens and screen readers."""
    return output.replace('<html lang="en"', '<html lang="hu"', 1) if page.file.src_uri.startswith("hu/") else output


def _on_site(target: str, here: str, page: str) -> str:
    """The relative address on the page `page` of what the document `here` of the repository links to."""
    found = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
    inner = re.fullmatch(r"docs/(.*)|((?:recipes|notebooks)/[\w-]+)\.(?:toml|ipynb)", found)
    uri = BESIDE.get(found) or ("index.md" if found == "README.md" else inner and (inner[1] or f"{inner[2]}.md"))
    return posixpath.relpath(uri, posixpath.dirname(page) or ".") if uri else target


RECIPE = """# {name}

{title}

```text
{head}
```

## Forecast

```text
$ bertwright {words}
{plan}
```

The hours are a range; the last lines say what they come from: see [what a run needs](../how-to/plan.md). {where}

## The file

```toml
{file}
```
"""


def recipe_page(name: str) -> str:
    """A recipe: what its head says, its forecast as `bertwright plan` prints it, and the file."""
    title, _, text = shipped()[name].read_text(encoding="utf-8").partition("\n")
    head, _, file = text.partition("\n\n")
    words, recipe, plan = forecast(name)
    return RECIPE.format(
        name=name,
        title=title.lstrip("# "),
        head="\n".join(re.sub("^# ?", "", line) for line in head.splitlines()).strip("\n"),
        words=words,
        plan="\n".join(plan_lines(name, recipe, plan)),
        where="" if "--place" in words else "This one is of a laptop with two cores (AVX2) and 8 GB.",
        file=file.strip(),
    )


@cache
def forecast(name: str) -> tuple[str, Recipe, Plan]:
    """A command: that in the head of a recipe, with a place, or else without; the recipe, and what it prints."""
    text = shipped()[name].read_text(encoding="utf-8")
    command = re.search(rf"bertwright (plan {name} --place ([\w-]+)(?: --nodes (\d+))?)", text)
    if command is None:
        recipe = Recipe.load(name)
        return f"plan {name}", recipe, make_plan(recipe, {}, machine_of(SMALL))
    place = read_place(command[2])
    machine = replace(place.machine, nodes=int(command[3])) if command[3] else place.machine
    recipe = Recipe.load(name, list(place.overrides))
    return command[1], recipe, make_plan(recipe, {}, machine)


def forecast_table() -> Iterator[str]:
    """What each recipe needs on the machines that its head names."""
    yield "| recipe | parameters | machine | memory of each | training | energy |"
    yield "|---|--:|---|--:|--:|--:|"
    for name in shipped():
        _, _, plan = forecast(name)
        machine, hours = plan["machine"], plan["hours"].get("train")
        nodes = f"{machine['nodes']} x " if machine["nodes"] > 1 else ""
        time = "?" if hours is None else duration(hours * 3600)
        energy = "" if plan["energy_kwh"] is None else f"{amount(plan['energy_kwh'])} kWh"
        cells = (f"{plan['parameters'] / 1e6:,.1f} M", f"{nodes}{machine['title']}", size_of(plan["memory_bytes"]))
        yield f"| [`{name}`](recipes/{name}.md) | {' | '.join(cells)} | {time} | {energy} |"


def notebook_page(book: Path) -> str:
    """A notebook as a page: its text, and its code in blocks."""
    cells = json.loads(book.read_text(encoding="utf-8"))["cells"]
    parts = ["".join(cell["source"]) for cell in cells]
    shown = [
        part if cell["cell_type"] == "markdown" else f"```python\n{part}\n```"
        for cell, part in zip(cells, parts, strict=True)
    ]
    return "\n\n".join([*shown, f"The notebook is `notebooks/{book.name}` in the repository; tests run it.", ""])


def _books() -> list[Path]:
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def _page_of_book(book: Path) -> str:
    return f"notebooks/{book.stem}.md"


def _title(book: Path) -> str:
    return notebook_page(book).partition("\n")[0].lstrip("# ")
