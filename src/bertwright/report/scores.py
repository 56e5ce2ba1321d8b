"""The results sections: headline numbers with their baselines, and sample predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bertwright.core.numbers import duration, percent, short_count
from bertwright.page.markup import Content, Element, b, bar, code, div, element, p, small, table
from bertwright.report.facts import Facts
from bertwright.tasks.section import epochs_of
from bertwright.vocab.entries import MASK


def warnings(facts: Facts) -> list[Content]:
    """Warnings to read before any number: that the run is unfinished or has failed."""
    warned: list[Content] = []
    # Comes first: readers must know which checkpoint the numbers are of.
    if (state := facts.unfinished) is not None:
        warned.append(
            (
                (b("Unfinished."), " This page describes the checkpoint ", code(state["checkpoint"])),
                f": step {state['step']:,} of {state['steps']:,}, in phase {state['phase']}. While training runs, it "
                "rewrites the page of the run at every checkpoint.",
            )
        )
        if facts.metrics and (why := facts.metrics[-1].get("stopped")):
            warned.append((b("Training has stopped:"), f" {why}"))
    return warned + [
        (b("Outside of what the recipe expects."), f" {message[0].upper()}{message[1:]}.")
        for row in facts.metrics
        if (message := row.get("outside_band"))
    ]


def headline(numbers: Mapping[str, Any], facts: Facts) -> Content:
    """Cards with the headline numbers."""
    cards = facts.section.cards(facts)
    cards += [
        ("tokens seen", short_count(numbers["tokens_seen"]), f"in {numbers['steps']:,} optimizer steps"),
        ("speed", f"{short_count(numbers['tokens_per_second'])}/s", "real tokens, during training"),
        ("time", duration(numbers["seconds"]), "all stages together"),
    ]
    shown = [div(p(name), element("strong", value), p(note), class_="card") for name, value, note in cards]
    return (
        div(shown, class_="cards"),
        p(_scored_texts(facts), class_="note"),
        _epochs(facts),
        facts.section.tables(facts.scores),
    )


def _epochs(facts: Facts) -> Content:
    """The last and the best of the official scores that training took, if they differ."""
    epochs = epochs_of(facts.metrics, facts.section.official)
    if epochs is None or epochs["best"]["score"] <= epochs["last"]["score"]:
        return ()
    title = next(score.title for score in facts.section.compared if score.key == epochs["name"])
    best, last = epochs["best"], epochs["last"]
    return p(
        f"During training, {title} was {percent(best['score'])} after step {best['step']:,}, its best, and "
        f"{percent(last['score'])} at the end, which is the result; {epochs['note']}."
    )


def _scored_texts(facts: Facts) -> Content:
    """What was scored, and where the exported model is."""
    sentence = facts.section.scored(facts)
    if "export" in facts.stages:
        place = element("a", "export/hf", href="export/hf/")
        return sentence, " The model for ", code("transformers"), " lies in ", place, "."
    return sentence


def predictions(facts: Facts) -> Content:
    """Texts with the model's answers, and the right answer if it is known."""
    section = facts.section
    if not facts.predictions:
        if "evaluate" not in facts.stages:
            return p("The stage evaluate has not run yet.")
        return p(section.no_answers(facts.stages["evaluate"].manifest["config"]["evaluate"]))
    rows = [(_mark_mask(line["text"]), line["gold"] or "–", _guesses(line)) for line in facts.predictions]
    untrained = (" ", b("They are those of an untrained model.")) if facts.scores.get("untrained") else ""
    about = (_count_right(facts), section.about_answers(), untrained)
    return p(about), table((*section.answered, "guesses"), rows, "predictions")


def _count_right(facts: Facts) -> Content:
    """How many of the shown answers are right, where the right one is known."""
    known = [line for line in facts.predictions if line["gold"] is not None]
    tops = [(line["gold"], [guess["token"] for guess in line["top"]]) for line in known]
    ranks = [top.index(gold) for gold, top in tops if gold in top]
    return (b(f"{facts.section.right_answers(ranks, len(known))}."), " ") if known else ""


def errors(facts: Facts) -> Content:
    """The worst errors, with what is right and what was answered."""
    section = facts.section
    text, answer = section.answered
    about = (
        b(f"The {len(facts.errors):,} wrong answers with the highest loss"),
        " of the right one: ambiguous texts, wrong labels, and what the model cannot do. They are also in ",
        code("evaluate/errors.jsonl"),
        f". {section.about_answers()}",
    )
    rows = [
        (line["text"], line["gold"] or "–", line["answer"], f"{line['loss']:.3g}", _guesses(line))
        for line in facts.errors
    ]
    return p(about), table((text, f"right {answer}", "answer", "loss", "guesses"), rows, "predictions errors")


def _mark_mask(text: str) -> Content:
    before, mask, after = text.partition(MASK)
    return (before, element("mark", MASK), after) if mask else text


def _guesses(line: Mapping[str, Any]) -> Element:
    items = []
    for guess in line["top"]:
        shown = element("b" if guess["token"] == line["gold"] else "span", guess["token"])
        chance = guess["probability"]
        items.append(element("li", shown, bar(chance), small(percent(chance))))
    return element("ol", items)
