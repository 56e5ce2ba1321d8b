"""The page: one self-contained HTML file that loads nothing and has no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from bertwright.export.certify.table import certificate_section
from bertwright.page.chart import figure
from bertwright.page.markup import Content, Element, b, div, element, html, p
from bertwright.report.corpus import corpus, vocabulary
from bertwright.report.curves import curves, machine_curves
from bertwright.report.exams import exams
from bertwright.report.facts import Facts
from bertwright.report.forecast import forecast
from bertwright.report.provenance import machine, model, stages
from bertwright.report.scores import errors, headline, predictions, warnings


def page(facts: Facts, numbers: Mapping[str, Any], written: str) -> str:
    """The complete page of a run; `numbers` is its summary, `written` the current time (ISO, UTC)."""
    sections: list[Section] = [
        ("results", "Results", headline(numbers, facts)),
        *([("predictions", "What the model guesses", predictions(facts))] if _shows_others(facts) else []),
        *([("errors", "The worst errors", errors(facts))] if facts.errors else []),
        ("training", "Training", div(map(figure, curves(facts)), class_="charts")),
        *([("exams", "Exams", exams(facts))] if facts.exams else []),
        *([("runtimes", "In other programs", certificate_section(facts.certificate))] if facts.certificate else []),
        *([("corpus", "Corpus", corpus(facts))] if "corpus" in facts.stages else []),
        ("vocabulary", "Vocabulary", vocabulary(facts)),
        ("examples", "Examples", facts.section.examples(facts)),
        ("model", "Model and phases", model(facts)),
        ("stages", "Stages", stages(facts, numbers["seconds"])),
        ("machine", "Machine", (machine(facts), div(map(figure, machine_curves(facts)), class_="charts"))),
        *([("forecast", "Forecast", forecast(facts))] if facts.forecast else []),
        ("recipe", "Recipe", (p("Every setting of this run, defaults included."), _scrolling(facts.recipe))),
    ]
    made = ("Run ", b(facts.name), " of bertwright, from ", _texts(facts), ". Written ", time_of(written), ".")
    # A verdict on a model that has learned nothing is a warning.
    style = "verdict warning" if facts.scores.get("untrained") else "verdict"
    introduction = [
        p(f"{facts.model_title}.") if facts.title else (),
        p(facts.verdict, class_=style),
        p(made),
    ]
    return document(facts.title or facts.model_title, introduction, sections, warnings(facts))


def _shows_others(facts: Facts) -> bool:
    """Whether there are answers to show, or a reason why not, besides the worst errors."""
    texts = {line["text"] for line in facts.errors}
    return not facts.predictions or any(line["text"] not in texts for line in facts.predictions)


Section = tuple[str, str, Content]
"""Id, title and content of a section."""


def document(title: str, introduction: Content, sections: Sequence[Section], warned: Sequence[Content] = ()) -> str:
    """A complete page; what is `warned` of stands before the sections, the paragraphs of the introduction above it."""
    meta = {"viewport": "width=device-width, initial-scale=1", "color-scheme": "light dark"}
    links = [element("a", heading, href=f"#{name}") for name, heading, _ in sections]
    notes = [p(text, class_="warning", role="note") for text in warned]
    body = [element("section", element("h2", heading), content, id=name) for name, heading, content in sections]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        [element("meta", name=name, content=value) for name, value in meta.items()],
        element("title", title),
    )
    top = element("header", element("h1", title), introduction, element("nav", links))
    page = element("html", head, element("body", top, element("main", notes, body)), lang="en")
    # Inlined in the page: it must look the same when mailed or opened without a network.
    return html(page, files("bertwright.report").joinpath("style.css").read_text(encoding="utf-8"))


def _texts(facts: Facts) -> Content:
    """What was trained on, and its language if known."""
    language = facts.language
    if labelled := facts.section.trained_on():
        return labelled
    if "corpus" not in facts.stages:
        return ("examples made elsewhere", (", in the language ", b(language)) if language else "")
    return ("text in the language ", b(language))


def _scrolling(text: str) -> Element:
    """A scrollable box that is reachable by keyboard."""
    # A scrollable box must be reachable without a mouse (WCAG 2.1.1).
    return element("pre", text, tabindex="0", role="region", aria_label="recipe")


def time_of(written: str) -> Element:
    """A time (ISO, UTC)."""
    return element("time", written.replace("T", "\u00a0").replace("Z", "\u00a0UTC"), datetime=written)
