"""The results sections: headline numbers with their baselines, and sample predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bertwright.core.markup import Content, Element, b, code, div, element, p, small
from bertwright.core.numbers import duration, large
from bertwright.report import classified
from bertwright.report.facts import Facts
from bertwright.report.formatting import NAN, bar, percent, table

MASK = "[MASK]"


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
        (b("Outside of what the recipe expects."), f" {left[0].upper()}{left[1:]}.")
        for row in facts.metrics
        if (left := row.get("outside_band"))
    ]


def headline(numbers: Mapping[str, Any], facts: Facts) -> Content:
    """Cards with the headline numbers."""
    cards = classified.cards(facts) if facts.labels else _of_pretraining(numbers, facts)
    cards += [
        ("tokens seen", large(numbers["tokens_seen"]), f"in {numbers['steps']:,} optimizer steps"),
        ("speed", f"{large(numbers['tokens_per_second'])}/s", "real tokens, during training"),
        ("time", duration(numbers["seconds"]), "all stages together"),
    ]
    shown = [div(p(name), element("strong", value), p(note), class_="card") for name, value, note in cards]
    return div(shown, class_="cards"), p(_scored(facts), class_="note")


def _of_pretraining(numbers: Mapping[str, Any], facts: Facts) -> list[tuple[str, str, str]]:
    loss, unigram = numbers["mlm_loss"], numbers["unigram_loss"]
    cards = [
        ("masked-token loss", _nats(loss), _gap(loss, unigram)),
        ("masked-token accuracy", percent(numbers["mlm_accuracy"]), f"{_commonest(facts)}{_overlap(facts)}"),
    ]
    if (accuracy := numbers[f"{facts.pair_task}_accuracy"]) is not None:
        cards.append((f"{_task(facts)} accuracy", percent(accuracy), _labels(facts)))
    return cards


def _scored(facts: Facts) -> Content:
    """What was scored, and where the exported model is."""
    scores = facts.scores
    if "evaluate" in facts.stages and facts.labels:
        sentence = classified.scored(facts)
    elif "evaluate" in facts.stages:
        sentence = (
            f"Scores are of {scores['predictions']:,} masked tokens in {scores['sequences']:,} sequences from held-out "
            f"{facts.heldout_unit}, which training never saw."
        )
        # Older runs do not have this score; for a NaN loss it is None.
        if (bits := scores.get("bits_per_character")) is not None:
            sentence += f" Their loss is {bits:.2f} bits a character, white space not counted."
    elif scores["step"] is None:
        sentence = "The model has not been scored yet."
    else:
        sentence = (
            f"Scores are those measured during training on held-out {facts.heldout_unit} at step {scores['step']:,}."
        )
    if "export" in facts.stages:
        place = element("a", "export/hf", href="export/hf/")
        return sentence, " The model for ", code("transformers"), " lies in ", place, "."
    return sentence


def _nats(loss: float | None) -> str:
    return NAN if loss is None else f"{loss:.2f} nats"


def _gap(loss: float | None, unigram: float) -> str:
    words = f"word frequencies alone: {unigram:.2f}"
    return (
        words if loss is None else f"{words}, so {abs(unigram - loss):.2f} {'better' if loss <= unigram else 'worse'}"
    )


def _commonest(facts: Facts) -> str:
    scores = facts.scores
    # Training does not take this score.
    if scores["most_common_token_accuracy"] is None:
        return "of the best guess"
    return f"always guessing “{scores['most_common_token']}”: {percent(scores['most_common_token_accuracy'])}"


def _overlap(facts: Facts) -> str:
    """How much of the scored text the model may have read: an accuracy on repeated text shows memory."""
    overlap = facts.scores.get("overlap", {})
    if not overlap.get("sentences"):
        return ""
    share, run = percent(overlap["share"]), overlap.get("run", "13 words")
    return f"; {share} of the longer held-out sentences share {run} in a row with the training text"


def _task(facts: Facts) -> str:
    return "sentence-order" if facts.plan == "sentence-order" else "next-sentence"


def _labels(facts: Facts) -> str:
    """The share of the labels in scored and training pairs: an accuracy means nothing without it."""
    label = "swapped" if facts.plan == "sentence-order" else "random"
    length = facts.scored_length
    task = facts.pair_task
    held, trained = facts.scores.get(f"{task}_label_share"), facts.label_share("train", length)
    # Scores taken during training have no label share; the held-out examples do.
    held = held if held is not None else facts.label_share("heldout", length)
    notes = [] if held is None else [f"{percent(held)} of these pairs are {label}"]
    notes += [] if trained is None else [f"{percent(trained)} of training's"]
    accuracy, majority = facts.scores[f"{task}_accuracy"], facts.scores.get(f"{task}_majority")
    if majority is not None:
        # An accuracy looks like success until the share of the more common label is known.
        than = ", so no better than that" if accuracy <= majority else ""
        notes.append(f"always guessing the more common label: {percent(majority)}{than}")
    return "; ".join(notes)


def predictions(facts: Facts) -> Content:
    """Sentences with a masked word, the word itself if known, and the five best guesses."""
    if not facts.predictions:
        return p(_no_predictions(facts))
    rows = [(_masked(line["text"]), line["gold"] or "–", _guesses(line)) for line in facts.predictions]
    untrained = (" ", b("They are those of an untrained model.")) if facts.scores.get("untrained") else ""
    if facts.labels:
        about = classified.GUESSES
        return p(_count_right(facts), about, untrained), table(("text", "class", "guesses"), rows, "predictions")
    about = (
        "The marked word was hidden from the model. Its five best guesses are shown with their probability; the "
        "right one is set in bold."
    )
    return p(_count_right(facts), about, untrained), table(("sentence", "word", "guesses"), rows, "predictions")


def _count_right(facts: Facts) -> Content:
    """How many of the shown guesses are right, where the right answer is known."""
    known = [line for line in facts.predictions if line["gold"] is not None]
    ranks = [[guess["token"] for guess in line["top"]].index(line["gold"]) for line in known if _is_guessed(line)]
    if not known:
        return ""
    first, of = (
        f"The first guess is right in {ranks.count(0):,} of {len(known):,}",
        "texts" if facts.labels else "sentences",
    )
    among = "" if facts.labels else f", and the word is among the five best in {len(ranks):,}"
    return b(f"{first} {of}{among}."), " "


def _is_guessed(line: Mapping[str, Any]) -> bool:
    return any(guess["token"] == line["gold"] for guess in line["top"])


def _no_predictions(facts: Facts) -> str:
    if "evaluate" not in facts.stages:
        return "The stage evaluate has not run yet."
    if len(facts.labels) == 1:
        return "The model predicts a number for each text, so it guesses no words and no classes."
    settings = facts.stages["evaluate"].manifest["config"]["evaluate"]
    if not settings.get("samples") and not settings.get("cloze"):
        return "None were requested (evaluate.cloze, evaluate.samples)."
    return (
        "None of the held-out sentences that were tried is suitable: neither short nor long, without unknown words, "
        "and with a word that is one entry of the vocabulary."
    )


def _masked(text: str) -> Content:
    before, mask, after = text.partition(MASK)
    return (before, element("mark", MASK), after) if mask else text


def _guesses(line: Mapping[str, Any]) -> Element:
    items = []
    for guess in line["top"]:
        shown = element("b" if guess["token"] == line["gold"] else "span", guess["token"])
        chance = guess["probability"]
        items.append(element("li", shown, bar(chance), small(percent(chance))))
    return element("ol", items)
