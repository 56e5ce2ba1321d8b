"""The scores of masked tokens and pairs, beside those of guessing without context on the same tokens.

Bits per character are a masked-token loss relative to the text of the masked tokens, however it is tokenized. White
space is not counted: no entry contains it, and its position follows from the script. This is not a compression rate,
because the tokens around the masked ones are given. It brings losses of different vocabularies closer together but does
not make them comparable: an entry that is half a word has the other half next to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.json_values import json_number
from bertwright.core.log import Log
from bertwright.examples.batch import MicroBatch
from bertwright.examples.config import PAIRS
from bertwright.examples.frequencies import log_probabilities, training_counts
from bertwright.examples.planned import open_heldout
from bertwright.examples.store import Store
from bertwright.model.batch import PackedBatch, packed
from bertwright.model.model import Model
from bertwright.model.pretraining import PreTrainingModel
from bertwright.tasks.objective import score
from bertwright.tasks.pretraining.forgetting import losses_by_text
from bertwright.tasks.pretraining.objective import PreTraining
from bertwright.tasks.pretraining.questions import answer, cloze_question, evaluated, heldout_questions
from bertwright.tasks.pretraining.table import before_and_after
from bertwright.tasks.pretraining.vectors import unrelated_cosine
from bertwright.tasks.pretraining.verdict import untrained
from bertwright.tasks.task import Evaluation, HeldOut, Scoring
from bertwright.vocab.entries import CONTINUATION, SPECIALS
from bertwright.vocab.tokenizer import load_tokenizer


def evaluate(model: Model, heldout: HeldOut, settings: Scoring) -> Evaluation:
    """Score masked tokens and pairs, and fill in masked words; see `Task.evaluate`.

    Raises `RecipeError` for a cloze line longer than the model's positions.
    """
    assert isinstance(model, PreTrainingModel)
    # Of every length: the scores depend on what is held out.
    examples, length = heldout.verified("plans/heldout/", "store/heldout."), heldout.length
    store, tokenizer = Store.open(examples, "heldout", heldout.vocab), load_tokenizer(heldout.vocab)
    positions = model.config.max_position_embeddings
    questions = [cloze_question(line, tokenizer, positions) for line in settings.cloze]
    questions += heldout_questions(store, tokenizer, settings.samples, positions)
    # The rate is a setting of the stage, independent of training, so that runs with the same rate can be compared.
    most = settings.max_sequences or None
    own = open_heldout(examples, length, length, settings.mask_rate, most)
    batches = list(own.batches(settings.batch))
    task = PAIRS.get(examples.manifest["config"]["examples"]["plan"], "nsp")
    scores = _scores(model, task, batches, training_counts(examples), heldout.log)
    scores["most_common_token"] = tokenizer.vocabulary[scores.pop("most_common_id")]
    scores["untrained"] = untrained(scores["mlm_loss"], scores["unigram_loss"])
    labels = np.concatenate([batch.labels for batch in batches])
    scores["bits_per_character"] = bits_per_character(scores["mlm_loss"], labels, entry_lengths(tokenizer.vocabulary))
    # Copied here: readers of the scores alone must see how much of the text was repeated.
    scores["overlap"] = examples.counts["heldout_contamination"]
    scores |= losses_by_text(model, heldout, own, scores, settings)
    for line in before_and_after(scores):
        heldout.log.say(f"evaluate: {line}")
    loss = "NaN" if scores["mlm_loss"] is None else f"{scores['mlm_loss']:.3f}"
    scores["unrelated_cosine"] = evaluated(model, lambda: unrelated_cosine(model, store, tokenizer))
    summary = f"loss {loss} (unigram {scores['unigram_loss']:.3f})"
    return Evaluation(scores, answer(model, questions, tokenizer), summary)


def _scores(
    model: PreTrainingModel, task: str, batches: Sequence[MicroBatch], counts: NDArray[np.int64], log: Log
) -> dict[str, Any]:
    """The model's scores with baselines on exactly the same masked tokens and pairs; `task` names the meaning of the
    pair labels, and `counts` [V] has the frequency of each entry in the training text."""
    objective = PreTraining(model.nsp is not None, task)
    scores: dict[str, Any] = dict(score(objective, model, _on_device(batches, model, log)))
    scores["sequences"] = sum(len(batch.sequence_weights) for batch in batches)
    scores["perplexity"] = json_number(float(np.exp(scores["mlm_loss"])))
    scores |= {
        name: json_number(value) for name, value in scores.items() if name.endswith("_loss") and value is not None
    }
    # On exactly the masked tokens: scores on other tokens would not be comparable.
    scores |= baselines(counts, np.concatenate([batch.labels for batch in batches]))
    pairs = np.concatenate([batch.sequence_labels[batch.sequence_weights > 0] for batch in batches])
    # Keys are always present, possibly null, so that readers find the same keys in every run.
    none = dict.fromkeys(("nsp_loss", "nsp_accuracy", "nsp_majority", "nsp_label_share"))
    if model.nsp is None or not len(pairs):
        return scores | none
    labels = {f"{task}_majority": majority(pairs), f"{task}_label_share": round(float(pairs.mean()), 4)}
    return scores | ({} if task == "nsp" else none) | labels


def _on_device(batches: Sequence[MicroBatch], model: PreTrainingModel, log: Log) -> Iterator[PackedBatch]:
    device = next(model.parameters()).device
    for number, batch in enumerate(batches, start=1):
        yield packed(batch, device)
        log.progress("evaluate", number, len(batches), "batches")


def baselines(training: NDArray[np.int64], labels: NDArray[np.int64]) -> dict[str, float | int]:
    """Scores of the training tokens' distribution, given its counts [V], on held-out `labels` [N].

    `unigram_loss` is the mean of -log p(label) in nats, with one added to every count in p (so that entries unseen in
    training have a probability); `most_common_token_accuracy` is the share of labels equal to the most common training
    token.
    """
    log_p = log_probabilities(training)
    # From the training text: a guesser does not know the most common held-out token.
    commonest = int(training.argmax())
    return {
        "unigram_loss": -float(log_p[labels].mean()),
        "most_common_token_accuracy": float((labels == commonest).mean()),
        "most_common_id": commonest,
    }


def majority(labels: Iterable[int]) -> float:
    """The share of the more common of two labels, which always guessing it would score."""
    share = float(np.mean(np.fromiter(labels, np.int64)))
    return max(share, 1 - share)


def entry_lengths(vocabulary: Sequence[str]) -> NDArray[np.int64]:
    """[V] characters of text in each entry, without ##; 0 for special entries such as [UNK]."""
    # The text behind [UNK] is not known. Counting none makes the bits of a text with many of them too high, never too
    # low.
    texts = ("" if entry in SPECIALS else entry.removeprefix(CONTINUATION) for entry in vocabulary)
    return np.fromiter(map(len, texts), np.int64, len(vocabulary))


def bits_per_character(loss: float | None, labels: NDArray[np.int64], lengths: NDArray[np.int64]) -> float | None:
    """Bits per character of the masked tokens `labels` [P], given their mean loss in nats and `entry_lengths` [V]; None
    if there is no loss or no character."""
    characters = int(lengths[labels].sum())
    return None if loss is None or not characters else loss * len(labels) / math.log(2) / characters
