"""Sentences with one masked word, and a network's most probable words for it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch

from bertwright.core import rng
from bertwright.core.artifact import Artifact
from bertwright.core.errors import RecipeError
from bertwright.examples.shuffle import Permutation
from bertwright.examples.store import Store
from bertwright.model.batch import packed_sequences
from bertwright.model.pretraining import PreTrainingModel
from bertwright.tasks.pretraining.config import GAP
from bertwright.tasks.task import Scoring
from bertwright.vocab.entries import CLS, MASK, SEP, SPECIALS
from bertwright.vocab.tokenizer import Tokenizer, load_tokenizer

Result = TypeVar("Result")

BEST = 5
SHORTEST, LONGEST = 6, 48
TRIED_PER_SAMPLE = 200


@dataclass(frozen=True)
class Question:
    """A text with one [MASK]."""

    source: str
    """"cloze" for a line of the recipe, "held-out" for a sentence that is not in the training text."""
    text: str
    """The text that is shown."""
    ids: list[int]
    """[CLS] text [SEP], including the mask token."""
    gold: str | None
    """The original word, normalized as in the vocabulary; None if it is not known."""


@dataclass(frozen=True)
class Questions:
    """Questions that a network in training is asked; see `task.Asked`."""

    each: Sequence[Question]
    tokenizer: Tokenizer

    def answer(self, model: PreTrainingModel) -> list[dict[str, Any]]:
        """As `task.Asked.answer`."""
        return answer(model, self.each, self.tokenizer)


def questions_of(examples: Artifact, vocab: Artifact, settings: Scoring, positions: int) -> Questions:
    """The recipe's cloze lines or, without any, held-out sentences; see `task.AskingTask.ask`."""
    tokenizer = load_tokenizer(vocab)
    if settings.cloze:
        return Questions([cloze_question(line, tokenizer, positions) for line in settings.cloze], tokenizer)
    store = Store.open(examples, "heldout", vocab)
    return Questions(heldout_questions(store, tokenizer, settings.samples, positions), tokenizer)


def cloze_question(line: str, tokenizer: Tokenizer, positions: int) -> Question:
    """The question of a line with one [MASK]; raises `RecipeError` naming the line if it exceeds the model's
    positions."""
    before_gap, gold, after_gap = GAP.split(line)
    # Encoded in two parts: the tokenizer would split "[MASK]" in running text into brackets and letters.
    flat, lengths = tokenizer.encode_sentences([before_gap, after_gap])
    before, after = np.split(flat.astype(np.int64), [lengths[0]])
    ids = [tokenizer.ids(CLS), *before.tolist(), tokenizer.ids(MASK), *after.tolist(), tokenizer.ids(SEP)]
    if len(ids) > positions:
        raise RecipeError(
            f"evaluate.cloze: {line!r} has {len(ids)} tokens, but the model reads {positions}. Shorten it."
        )
    # Normalized as the model would predict it, for example in lower case or without accents.
    written = tokenizer.decode(tokenizer.encode_sentences([gold])[0]) if gold else None
    return Question("cloze", f"{before_gap}{MASK}{after_gap}", ids, written)


def heldout_questions(store: Store, tokenizer: Tokenizer, most: int, positions: int) -> list[Question]:
    """Up to `most` sentences of `store` in a fixed random order, each with one masked word.

    The word is a single entry, because one [MASK] is one token. Only sentences of 6 to 48 tokens with such a word and
    without unknown or other special tokens are used; the first 200 sentences per question are tried.
    """
    starts = np.concatenate([[0], np.cumsum(store.sentences, dtype=np.int64)])
    count = len(store.sentences)
    # A hashed order: the first sentences would all be from one article.
    order = Permutation(rng.key("evaluate", "sentences"), count)(np.arange(min(count, most * TRIED_PER_SAMPLE)))
    special = [tokenizer.ids(entry) for entry in SPECIALS]
    questions: list[Question] = []
    for sentence in order.tolist():
        if len(questions) == most:
            break
        ids = store.tokens[starts[sentence] : starts[sentence + 1]].astype(np.int64)
        if SHORTEST <= len(ids) <= min(LONGEST, positions - 2) and not np.isin(ids, special).any():
            words = _whole_words(ids, tokenizer)
            if words:
                chosen = words[int(rng.below(rng.key("evaluate", "word"), sentence, len(words))[0])]
                questions.append(_masked(ids.tolist(), chosen, tokenizer))
    return questions


def answer(model: PreTrainingModel, questions: Sequence[Question], tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """Each question with its most probable entries, best first; the model's training mode is restored."""
    if not questions:
        return []
    batch = packed_sequences([(question.ids, ()) for question in questions], tokenizer.ids(MASK))
    device = next(model.parameters()).device
    mlm_PV, _ = evaluated(model, lambda: model(batch.map(lambda tensor: tensor.to(device))))
    # Rows that only pad the embedding have no entry to show.
    best = mlm_PV[:, : len(tokenizer.vocabulary)].float().softmax(-1).topk(BEST)
    return [
        {
            "source": question.source,
            "text": question.text,
            "gold": question.gold,
            "top": [{"token": tokenizer.vocabulary[i], "probability": p} for p, i in zip(ps, ids, strict=True)],
        }
        for question, ps, ids in zip(questions, best.values.tolist(), best.indices.tolist(), strict=True)
    ]


# Not inference mode: an engine that shards weights allocates memory in its first forward pass that backward passes use.
@torch.no_grad()
def evaluated(model: PreTrainingModel, compute: Callable[[], Result]) -> Result:
    """The result of a computation with `model` without dropout; its training mode is restored."""
    # The model belongs to the caller and may be in training mode: dropout would change the result on each call.
    was_training = model.training
    model.eval()
    try:
        return compute()
    finally:
        model.train(was_training)


def _whole_words(ids: np.ndarray[Any, Any], tokenizer: Tokenizer) -> list[int]:
    """Positions of words that are one entry: of two or more characters, or an ideograph, which BERT always sets
    apart."""
    ends = [*~tokenizer.continuation[ids[1:]], True]
    entries = [tokenizer.vocabulary[i] for i in ids]
    words = [len(entry) > 1 or unicodedata.name(entry, "").startswith("CJK ") for entry in entries]
    # Of the first character only: isalpha rejects combining marks.
    return [i for i, entry in enumerate(entries) if ends[i] and words[i] and entry[0].isalpha()]


def _masked(ids: list[int], position: int, tokenizer: Tokenizer) -> Question:
    gold = tokenizer.vocabulary[ids[position]]
    masked = [*ids[:position], tokenizer.ids(MASK), *ids[position + 1 :]]
    return Question(
        "held-out", readable(tokenizer.decode(masked)), [tokenizer.ids(CLS), *masked, tokenizer.ids(SEP)], gold
    )


def readable(text: str) -> str:
    """Decoded text without the spaces around punctuation, where their removal is unambiguous."""
    closed = re.sub(r" (?=[.,;:!?%)\]}”»…])", "", text)
    return re.sub(r"(?<=[(\[{„«]) ", "", closed)
