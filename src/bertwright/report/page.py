"""The page: one self-contained HTML file that loads nothing and has no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from bertwright.report import classified
from bertwright.report.chart import figure
from bertwright.report.corpus import corpus
from bertwright.report.curves import curves
from bertwright.report.data import examples, vocabulary
from bertwright.report.facts import Facts
from bertwright.report.forecast import forecast
from bertwright.report.provenance import machine, model, stages
from bertwright.report.scores import headline, predictions, warnings


def page(facts: Facts, numbers: Mapping[str, Any], written: str) -> str:
    """The complete page of a run; `numbers` is its summary, `written` the current time (ISO, UTC)."""
    sections = [
        ("results", "Results", headline(numbers, facts)),
        ("training", "Training", f'<div class="charts">{"".join(map(figure, curves(facts)))}</div>'),
        ("predictions", "What the model guesses", predictions(facts)),
        *([("corpus", "Corpus", corpus(facts))] if "corpus" in facts.stages else []),
        ("vocabulary", "Vocabulary", vocabulary(facts)),
        ("examples", "Examples", classified.examples(facts) if facts.labels else examples(facts)),
        ("model", "Model and phases", model(facts)),
        ("stages", "Stages", stages(facts, numbers["seconds"])),
        ("machine", "Machine", machine(facts)),
        *([("forecast", "Forecast", forecast(facts))] if facts.forecast else []),
        ("recipe", "Recipe", f"<p>Every setting of this run, defaults included.</p>{_scrolling(facts.recipe)}"),
    ]
    introduction = f"A BERT trained by bertwright on {_texts(facts)}. Written {time_of(written)}."
    return document(facts.title, introduction, sections, warnings(facts))


def document(title: str, introduction: str, sections: Sequence[tuple[str, str, str]], warned: str = "") -> str:
    """A complete page from its title (text), an introduction (HTML), sections as id, title and content (HTML), and
    warnings shown before the sections (HTML)."""
    links = "".join(f'<a href="#{name}">{title}</a>' for name, title, _ in sections)
    body = "".join(f'<section id="{name}"><h2>{title}</h2>{content}</section>' for name, title, content in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_style()}</style>\n</head>\n<body>\n"
        f"<header><h1>{escape(title)}</h1><p>{introduction}</p><nav>{links}</nav></header>\n"
        f"<main>{warned}{body}</main>\n</body>\n</html>\n"
    )


def _texts(facts: Facts) -> str:
    """What was trained on, and its language if known."""
    language = facts.language
    if facts.labels:
        return f"texts labelled with {', '.join(map(escape, facts.labels))}"
    if "corpus" not in facts.stages:
        return "examples made elsewhere" + (f", in the language <b>{escape(language)}</b>" if language else "")
    return f"text in the language <b>{escape(language)}</b>"


def _scrolling(text: str) -> str:
    """A scrollable box that is reachable by keyboard."""
    # A scrollable box must be reachable without a mouse (WCAG 2.1.1).
    return f'<pre tabindex="0" role="region" aria-label="recipe">{escape(text)}</pre>'


def time_of(written: str) -> str:
    """A time (ISO, UTC) as HTML."""
    shown = escape(written).replace("T", "\u00a0").replace("Z", "\u00a0UTC")
    return f'<time datetime="{escape(written)}">{shown}</time>'


def _style() -> str:
    # Inlined in the page: it must look the same when mailed or opened without a network.
    return files("bertwright.report").joinpath("style.css").read_text(encoding="utf-8")
