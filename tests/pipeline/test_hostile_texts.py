"""Markup in every text of a sealed run folder: pages and model cards show it, and gain no element and no attribute."""

import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import yaml
from markdown_it import MarkdownIt
from tests.pipeline.conftest import Call
from tests.pipeline.test_distillation import beside
from tests.pipeline.test_families import overrides
from tests.pipeline.test_strangers import seal
from tests.unit.test_classification import recipe, texts

from bertwright import Recipe, run
from bertwright.core.artifact import MANIFEST
from bertwright.core.files import sha256_of

PLAIN = "word"
EVIL = (
    "</style></title></pre></td></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'><svg onload=alert(1)>"
    "\n---\n# x\n| a | ![](x) [x](javascript:alert(1)) `` ``` <https://x> ** __ &lt;b&gt; \u202e javascript:alert(1)"
)
COMPARED = {"vocabulary", "weights", "device", "kind"}
"""Counts that other files have to agree with, or that choose what is shown."""
NUMBERED = {"sequences", "rows", "phases", "imported"}
"""Objects whose keys are lengths and phases: others are refused."""


class Structure(HTMLParser):
    """Elements with the names of their attributes, and the values that a browser acts upon."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, ...]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        acted_upon = (f"{name}={value}" for name, value in attrs if name in {"href", "src", "style", "class", "id"})
        acted_upon = (re.sub(r"^style=--share:[\d.]+%$", "a share", each) for each in acted_upon)  # time differs
        self.elements.append((tag, *(name for name, _ in attrs), *acted_upon))

    def handle_comment(self, data: str) -> None:
        self.elements.append(("comment", data))

    def handle_decl(self, decl: str) -> None:
        self.elements.append(("declaration", decl))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1] == ("style",):
            self.elements.append(("sheet", data))
        else:
            self.text += data


def planted(value: Any, text: str, name: str = "") -> Any:
    """A JSON value with `text` after each of its texts, and as the name of another member of each object of any
    names."""
    if name in COMPARED:
        return value
    if isinstance(value, str):
        return f"{value}{text}"
    if isinstance(value, list):
        return [planted(each, text, name) for each in value]
    if isinstance(value, dict):
        changed = {key: planted(each, text, key) for key, each in value.items()}
        same = len({type(each) for each in value.values()}) == 1
        return {**changed, **({text: list(changed.values())[-1]} if same and name not in NUMBERED else {})}
    return value


def plant(folder: Path, text: str) -> None:
    """Write `text` into every text of the run that a page or a card reads, and seal the artifacts again."""
    for path in folder.rglob("predictions.json"):
        path.write_text(json.dumps(planted(json.loads(path.read_text()), text)))
    for path in folder.rglob("forecast.json"):
        value = json.loads(path.read_text())
        del value["sha256"]
        value = planted(value, text)
        path.write_text(json.dumps({**value, "sha256": sha256_of(value)}))
    for path in folder.rglob("metrics.jsonl"):
        rows = [planted(json.loads(line), text) for line in path.read_text().splitlines()]
        rows[0][f"{text}_loss"] = 1.0
        rows[-1] |= {"stopped": text, "outside_band": text}
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for path in folder.rglob(MANIFEST):
        value = json.loads(path.read_text())
        path.write_text(json.dumps({**value, "counts": planted(value["counts"], text)}))
        seal(path.parent)


def structure(path: Path) -> Structure:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        return Structure(text)
    head, _, body = text.removeprefix("---\n").partition("\n---\n")
    page = Structure(MarkdownIt("commonmark").enable("table").render(body))
    page.elements += [("front matter", key, type(value).__name__) for key, value in yaml.safe_load(head).items()]
    return page


def assert_same_structure(hostile: Path, plain: Path, *pages: str) -> None:
    for page in pages:
        found, wanted = structure(hostile / page), structure(plain / page)
        assert found.elements == wanted.elements
        assert found.text.count("<script>alert(1)") >= 2 and "onerror" in found.text, "shown as text"


PAGE, CARD = "report.html", "export/hf/README.md"


def both(finished: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Copies of a finished run with each of the two texts planted; and that text."""
    for name, text in (("hostile", EVIL), ("plain", PLAIN)):
        copy = Path(shutil.copytree(finished, folder / name))
        plant(copy, text)
        yield text, copy


def test_the_page_of_a_run(finished: Path, tmp_path: Path, call: Call, small_recipe: Path) -> None:
    for text, folder in both(finished, tmp_path):
        done = call("report", small_recipe, f"report.title={text}", "--out", folder)
        assert done.code == 0, done.err
    assert_same_structure(tmp_path / "hostile", tmp_path / "plain", PAGE)


def test_the_model_card(finished: Path, tmp_path: Path, call: Call, small_recipe: Path) -> None:
    for _, folder in both(finished, tmp_path):
        done = call("run", small_recipe, "export.name=b", "--until", "export", "--out", folder)
        assert done.code == 0, done.err
    assert_same_structure(tmp_path / "hostile", tmp_path / "plain", CARD)


def test_the_page_that_compares_runs(finished: Path, tmp_path: Path, call: Call) -> None:
    for text, folder in both(finished, tmp_path):
        manifest = json.loads((folder / "corpus" / MANIFEST).read_text())
        manifest["config"]["corpus"]["source"] = [{"kind": text, "path": text}]  # settings are shown if they differ
        (folder / "corpus" / MANIFEST).write_text(json.dumps(manifest))
        seal(folder / "corpus")
        named = folder.rename(folder.with_name(text.replace("/", "")))
        done = call("report", named, finished, "--out", folder)
        assert done.code == 0, done.err
    assert_same_structure(tmp_path / "hostile", tmp_path / "plain", "comparison.html")


def test_the_page_and_the_card_of_an_unfinished_run(
    finished: Path, tmp_path: Path, call: Call, small_recipe: Path
) -> None:
    shown = []
    for _, folder in both(finished, tmp_path):
        for stage in ("evaluate", "export"):
            shutil.rmtree(folder / stage)
        (folder / "train" / MANIFEST).unlink()
        for verb in ("export", "report"):
            done = call(verb, small_recipe, "--out", folder)
            assert done.code == 0, done.err
        shown += folder.glob("unfinished/*")
    assert_same_structure(*shown, PAGE, CARD)


def test_the_page_and_the_card_of_a_classifier(tmp_path: Path, call: Call) -> None:
    classifier = run(recipe(tmp_path, 'labels = ["poor", "fine"]', texts()), tmp_path / "run").path
    for text, folder in both(classifier, tmp_path):
        about = [f"texts.{key}={json.dumps(text)}" for key in ("language", "licence")]
        done = call("run", tmp_path / "recipe.toml", *about, "--out", folder)
        assert done.code == 0, done.err
    assert_same_structure(tmp_path / "hostile", tmp_path / "plain", PAGE, CARD)


def test_the_page_of_a_distillation(finished: Path, small_recipe: Path, tmp_path: Path, call: Call) -> None:
    words = [*overrides("distilbert", tmp_path), beside(finished / "train"), "model.attention_dropout=0"]
    distilled = run(Recipe.load(small_recipe, words), tmp_path / "run").path
    for text, folder in both(distilled, tmp_path):
        done = call("report", small_recipe, *words, f"report.title={text}", "--out", folder)
        assert done.code == 0, done.err
    assert_same_structure(tmp_path / "hostile", tmp_path / "plain", PAGE)
