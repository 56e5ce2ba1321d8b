"""How good a model of masked tokens is, in a sentence, by the rules stated here; decision 0060 has the measurements
behind their thresholds.

A loss less than 0.2 nats below that of word frequencies is no use of the context (`untrained`). Otherwise the share of
masked tokens that are guessed right decides: below 30 % a beginning, below 50 % fit for experiments, above it a good
model of its kind of text. (MLPerf's BERT-large is trained to 72 % on Wikipedia.) An overlap of held-out and training
sentences of 10 % or more is always said with it, because scores of repeated text show memory. So is a mean cosine of
unrelated sentences above 0.9, because people compare texts by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bertwright.core.numbers import percent

UNTRAINED = 0.2
"""Minimum difference, in nats, between the unigram loss and the loss of a model that uses the context."""
BEGINNING, EXPERIMENTS = 0.3, 0.5
OVERLAP = 0.1
ALIKE = 0.9
"""A mean cosine of unrelated sentences above which vectors hardly tell texts apart (Ethayarajh 2019)."""


def untrained(loss: float | None, unigram: float) -> bool:
    """Whether a held-out loss shows no use of the context; a loss of None (not a number) counts as untrained."""
    return loss is None or loss > unigram - UNTRAINED


def verdict_on_tokens(scores: Mapping[str, Any]) -> Iterator[str]:
    """Yield the sentences; `scores` have the `overlap` of the held-out sentences with the training text."""
    loss, unigram, accuracy = scores["mlm_loss"], scores["unigram_loss"], scores["mlm_accuracy"]
    if untrained(loss, unigram):
        said = "NaN" if loss is None else f"{loss:.2f} nats"
        yield "The model has not learned to use the context."
        yield (
            f"Its held-out loss, {said}, is not clearly below {unigram:.2f}, the loss of word frequencies alone: its "
            "guesses are those of an untrained model."
        )
        return
    if accuracy < BEGINNING:
        yield "A beginning: the model uses the context, but knows little of the language."
    elif accuracy < EXPERIMENTS:
        yield "Fit for experiments: the model knows common words and phrases, but no more."
    else:
        yield "A good model of its kind of text."
    common = scores.get("most_common_token_accuracy")
    beside = "" if common is None else f", where the commonest token alone would be right for {percent(common)}"
    yield f"Its first guess is right for {percent(accuracy)} of the masked tokens{beside}."
    overlap = scores.get("overlap", {})
    if (share := overlap.get("share", 0)) >= OVERLAP:
        run = overlap.get("run", "13 words")
        yield (
            f"But {percent(share)} of the held-out sentences of {run} or more share {run} in a row with the training "
            "text, so a part of this is memory."
        )
    if (cosine := scores.get("unrelated_cosine") or 0.0) > ALIKE:
        yield said_of_vectors(cosine)


def said_of_vectors(cosine: float) -> str:
    """What to do where unrelated sentences have this mean cosine, above `ALIKE`."""
    return (
        f"Unrelated sentences have a mean cosine of {cosine:.2f}: do not compare them by it; train vectors with "
        "`bertwright embed RUN`, or subtract the mean vector."
    )
