"""How well a model predicts masked pieces of texts, by what it sees in their place.

Of the pieces 15 % are predicted, drawn by a fixed seed: of these 80 % are shown as [MASK], 10 % as a random piece, 10 %
as they are (Devlin et al. 2019 §3.1). The three tell different faults apart: a model that copies its input is nearly
always right on kept pieces and hardly ever on masked ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from bertwright.core.errors import RecipeError
from bertwright.exams.exam import Score, TextExam
from bertwright.model.batch import PackedBatch, packed_sequences, to_device
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.text_encoder import Encoder
from bertwright.vocab.entries import CLS, CONTINUATION, MASK, SEP, SPECIALS

RATE = 0.15
KINDS = ("masked", "random", "kept")
"""What is shown instead of a predicted piece."""
_SHARES = (0.8, 0.9)
BATCH = 32


class MaskedWords(TextExam):
    """How well masked pieces of texts are predicted, by what is shown in their place."""

    kind: Literal["masked"] = "masked"

    def take(self, encoder: Encoder) -> Iterator[Score]:
        """As `Exam.take`."""
        scores = masked_scores(encoder, self.read())
        numbers = (
            ("mlm_loss", "loss (nats)", "about 7 is the loss of word frequencies: nothing is learned"),
            ("bits_per_character", "bits per character", "1 to 2; the same for all vocabularies"),
        )
        yield from (Score(self.title, name, scores[key], healthy=said, share=False) for key, name, said in numbers)
        shares = (
            ("mlm_accuracy", "accuracy", "0.3 to 0.7"),
            ("masked_accuracy", "of masked pieces", ""),
            ("random_accuracy", "of random pieces", ""),
            ("kept_accuracy", "of kept pieces", "near 1 while the others are low: the model copies its input"),
            ("commonest_answer", "commonest answer", "below 0.2; above 0.5 only frequencies are learned"),
        )
        for key, name, said in shares:
            if scores[key] is not None:
                yield Score(self.title, name, scores[key], healthy=said)


def masked_scores(encoder: Encoder, texts: Sequence[str]) -> dict[str, Any]:
    """Scores of the masked pieces of texts: loss (nats) and accuracy, of all and by kind; bits per character; and the
    share of the commonest answer, which is high in a model that has learned only frequencies.

    Texts are cut to the positions of the model. Raises `RecipeError` if it has no head for masked tokens.
    """
    model = encoder.model
    if not isinstance(model, PreTrainingModel):
        raise RecipeError("this model has no head that predicts masked tokens.")
    entries = len(encoder.tokenizer.vocabulary)
    parts = []
    for kinds, batch in _batches(encoder, texts):
        with torch.inference_mode():
            logits, _ = model(to_device(batch, encoder.device))
        # Rows that only pad the embedding have no entry.
        log_p = logits[:, :entries].float().log_softmax(-1).cpu()
        losses = -log_p.gather(1, batch.labels[:, None])[:, 0]
        parts.append((kinds, losses.double().numpy(), log_p.argmax(1).numpy(), batch.labels.numpy()))
    kinds, losses, answers, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
    right = answers == labels
    scores: dict[str, Any] = {
        "predictions": len(labels),
        "mlm_loss": float(losses.mean()),
        "mlm_accuracy": float(right.mean()),
    }
    for number, kind in enumerate(KINDS):
        chosen = kinds == number
        scores[f"{kind}_loss"] = float(losses[chosen].mean()) if chosen.any() else None
        scores[f"{kind}_accuracy"] = float(right[chosen].mean()) if chosen.any() else None
    letters = sum(len(_letters(encoder.tokenizer.vocabulary[label])) for label in labels.tolist())
    scores["bits_per_character"] = float(losses.sum() / math.log(2) / max(letters, 1))
    scores["commonest_answer"] = float(np.bincount(answers).max() / len(answers))
    return scores


def _letters(entry: str) -> str:
    return "" if entry in SPECIALS else entry.removeprefix(CONTINUATION)


def _batches(encoder: Encoder, texts: Sequence[str]) -> Iterator[tuple[NDArray[np.int64], PackedBatch]]:
    """Batches of texts of similar length, with the kind of each prediction [P] (an index of `KINDS`)."""
    tokenizer, room = encoder.tokenizer, encoder.model.config.max_position_embeddings - 2
    cls, sep, mask = map(tokenizer.ids, (CLS, SEP, MASK))
    words = np.array([i for i, entry in enumerate(tokenizer.vocabulary) if entry not in SPECIALS])
    flat, counts = tokenizer.encode_texts(texts)
    ends, random = np.cumsum(counts), np.random.default_rng(0)
    draws = random.random((len(flat), 2))
    others = words[random.integers(len(words), size=len(flat))]
    order = np.argsort(counts, kind="stable").tolist()
    for start in range(0, len(order), BATCH):
        sequences, places, labels, kinds, begin = [], list[int](), list[int](), list[int](), 0
        for text in order[start : start + BATCH]:
            first = int(ends[text] - counts[text])
            pieces = flat[first : first + min(int(counts[text]), room)].tolist()
            for place, piece in enumerate(list(pieces)):
                chosen, how = draws[first + place]
                if chosen < RATE:
                    kind = int(np.searchsorted(_SHARES, how, side="right"))
                    pieces[place] = (mask, int(others[first + place]), piece)[kind]
                    places.append(begin + place + 1)
                    labels.append(piece)
                    kinds.append(kind)
            sequences.append(([cls, *pieces, sep], ()))
            begin += len(pieces) + 2
        batch = packed_sequences(sequences, mask)
        where, hidden = torch.tensor(places, dtype=torch.int64), torch.tensor(labels, dtype=torch.int64)
        yield (
            np.array(kinds, np.int64),
            replace(batch, prediction_positions=where, labels=hidden, weights=torch.ones(len(where))),
        )
