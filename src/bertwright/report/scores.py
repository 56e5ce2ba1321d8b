"""The sections of results: headline numbers beside their baselines, and sample predictions."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from bertwright.report.facts import Facts
from bertwright.report.words import bar, duration, large, percent, table

MASK = "[MASK]"


def headline(numbers: Mapping[str, Any], facts: Facts) -> str:
    """Cards with the numbers to look at first."""
    loss, unigram = numbers["mlm_loss"], numbers["unigram_loss"]
    cards = [
        ("masked-token loss", f"{loss:.2f} nats", _gap(unigram - loss, unigram)),
        ("masked-token accuracy", percent(numbers["mlm_accuracy"]), _commonest(facts)),
    ]
    if numbers["nsp_accuracy"] is not None:
        always = f"always guessing the commoner label: {percent(numbers['nsp_majority'])}"
        cards.append(("next-sentence accuracy", percent(numbers["nsp_accuracy"]), always))
    cards += [
        ("tokens seen", large(numbers["tokens_seen"]), f"in {numbers['steps']:,} optimizer steps"),
        ("speed", f"{large(numbers['tokens_per_second'])}/s", "real tokens, during training"),
        ("time", duration(numbers["seconds"]), "all stages together"),
    ]
    scores = facts.counts("evaluate")
    shown = "".join(
        f'<div class="card"><p>{escape(name)}</p><strong>{escape(value)}</strong><p>{escape(note)}</p></div>'
        for name, value, note in cards
    )
    return (
        f'<div class="cards">{shown}</div><p class="note">Scores are of {scores["predictions"]:,} masked tokens in '
        f"{scores['sequences']:,} sequences from held-out documents, which training never saw.</p>"
    )


def _gap(gap: float, unigram: float) -> str:
    direction = "better" if gap >= 0 else "worse"
    return f"word frequencies alone: {unigram:.2f}, so {abs(gap):.2f} {direction}"


def _commonest(facts: Facts) -> str:
    scores = facts.counts("evaluate")
    return f"always guessing “{scores['commonest_token']}”: {percent(scores['commonest_accuracy'])}"


def predictions(facts: Facts) -> str:
    """Sentences with a masked word, the word itself where it is known, and the five best guesses."""
    if not facts.predictions:
        return "<p>None were asked for (evaluate.cloze, evaluate.samples).</p>"
    rows = [(_masked(line["text"]), escape(line["gold"] or "–"), _guesses(line)) for line in facts.predictions]
    return (
        "<p>The marked word was hidden from the model. Its five best guesses stand beside it with their probability; "
        "the right one is set in bold.</p>" + table(("sentence", "word", "guesses"), rows, "predictions")
    )


def _masked(text: str) -> str:
    before, _, after = text.partition(MASK)
    return f"{escape(before)}<mark>{MASK}</mark>{escape(after)}"


def _guesses(line: Mapping[str, Any]) -> str:
    items = []
    for guess in line["top"]:
        token = escape(guess["token"])
        shown = f"<b>{token}</b>" if guess["token"] == line["gold"] else f"<span>{token}</span>"
        chance = guess["probability"]
        items.append(f"<li>{shown}{bar(chance)}<small>{percent(chance)}</small></li>")
    return f"<ol>{''.join(items)}</ol>"
