"""Next sentence: whether the second of two sentences follows the first, for models with a head that says so.

Of consecutive sentences of held-out documents every second pair has the first sentence of another document's pair
instead of its own second. A head that was trained on the order of sentences has learned another question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import torch
from pydantic import Field

from bertwright.core.errors import DataError, RecipeError
from bertwright.core.rng import key
from bertwright.exams.exam import Exam, Score, share_of
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.text_encoder import Encoder

PAIRS = 200


class NextSentence(Exam):
    """Whether a sentence follows another one."""

    kind: Literal["next"] = "next"
    pairs: tuple[tuple[str, str, bool], ...] = Field((), repr=False)
    """Two sentences, and whether the second follows the first."""

    def take(self, encoder: Encoder) -> Iterator[Score]:
        """As `Exam.take`."""
        if not self.pairs:
            raise DataError(f"{self.title}: there are no pairs of sentences to score a model on.")
        follows = np.array([follow for *_, follow in self.pairs])
        said = answers(encoder, [(first, second) for first, second, _ in self.pairs])
        healthy = "80 to 98 %; 50 %: the head has learned nothing; 100 %: other things give the answer away"
        yield share_of(said == follows, self.title, "next sentence", 0.5, healthy)
        yield Score(self.title, "answers yes", float(said.mean()), healthy="near 50 %; 0 or 100 %: one answer to all")


def answers(encoder: Encoder, pairs: Sequence[tuple[str, str]]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """[N] whether the model says that the second text follows the first; `RecipeError` if it has no head for that."""
    model = encoder.model
    if not isinstance(model, PreTrainingModel) or model.nsp is None:
        raise RecipeError("this model has no head for the next sentence.")
    found = np.zeros(len(pairs), np.bool_)
    for places, batch in encoder.batches(pairs):
        with torch.inference_mode():
            _, logits = model(batch)
        assert logits is not None
        found[places] = (logits.argmax(-1) == 0).cpu().numpy()
    return found


def make_pairs(documents: Sequence[list[str]], most: int = PAIRS) -> tuple[tuple[str, str, bool], ...]:
    """Pairs of neighbouring sentences, one or more of each document in turn, and as many of different documents."""
    drawn: list[list[tuple[int, str, str]]] = []
    for number, document in enumerate(documents):
        places = range(0, len(document) - 1, 2)
        if places:
            first = key("next sentence", number) % len(places)
            drawn.append([(number, document[i], document[i + 1]) for i in (*places[first:], *places[:first])])
    ranks = range(max(map(len, drawn), default=0))
    found = [pairs[rank] for rank in ranks for pairs in drawn if len(pairs) > rank][:most]
    if len(drawn) < 2:
        return ()
    pairs: list[tuple[str, str, bool]] = []
    for i, (number, first_sentence, second) in enumerate(found):
        later = (*found[i + 1 :], *found[:i])
        other = second if i % 2 == 0 else next(other for of, _, other in later if of != number)
        pairs.append((first_sentence, other, i % 2 == 0))
    return tuple(pairs)
