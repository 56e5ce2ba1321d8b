"""How well a model predicts masked pieces of texts, by what it sees in their place.

Of the pieces 15 % are predicted, by the rules of training and a fixed key: of these 80 % are shown as [MASK], 10 % as a
random piece, 10 % as they are. The three tell different faults apart: a model that copies its input is nearly always
right on kept pieces and hardly ever on masked ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from bertwright.core.errors import RecipeError
from bertwright.core.rng import fold, key
from bertwright.examples.config import MaskingConfig
from bertwright.examples.masking import Masking
from bertwright.examples.vocabulary import Vocabulary
from bertwright.exams.exam import Score, TextExam
from bertwright.model.batch import PackedBatch, packed_sequences, to_device
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.text_encoder import Encoder
from bertwright.tasks.pretraining.scores import bits_per_character, entry_lengths
from bertwright.vocab.entries import CLS, MASK, SEP

KINDS = ("masked", "random", "kept")
"""What is shown instead of a predicted piece."""
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
        yield from (
            Score(self.title, name, scores[number], healthy=said, share=False) for number, name, said in numbers
        )
        shares = (
            ("mlm_accuracy", "accuracy", "30 to 70 %"),
            ("masked_accuracy", "of masked pieces", ""),
            ("random_accuracy", "of random pieces", ""),
            ("kept_accuracy", "of kept pieces", "near 100 % while the others are low: the model copies its input"),
            ("commonest_answer", "commonest answer", "below 20 %; above 50 % only frequencies are learned"),
        )
        for share, name, said in shares:
            if scores[share] is not None:
                yield Score(self.title, name, scores[share], healthy=said)


def masked_scores(encoder: Encoder, texts: Sequence[str]) -> dict[str, Any]:
    """Scores of the masked pieces of texts: loss (nats) and accuracy, of all and by kind; bits per character; and the
    share of the commonest answer, which is high in a model that has learned only frequencies.

    Texts are cut to the positions of the model. Raises `RecipeError` if it has no head for masked tokens.
    """
    model = encoder.model
    if not isinstance(model, PreTrainingModel):
        raise RecipeError("this model has no head that predicts masked tokens.")
    entries, mask = encoder.tokenizer.vocabulary, encoder.tokenizer.ids(MASK)
    parts = []
    for batch in _batches(encoder, texts):
        with torch.inference_mode():
            logits, _ = model(to_device(batch, encoder.device))
        # Rows that only pad the embedding have no entry.
        log_p = logits[:, : len(entries)].float().log_softmax(-1).cpu()
        losses = -log_p.gather(1, batch.labels[:, None])[:, 0]
        shown = batch.token_ids[batch.prediction_positions]
        kinds = torch.where(shown == mask, 0, torch.where(shown == batch.labels, 2, 1))
        parts.append(torch.stack([kinds, losses.double(), log_p.argmax(1), batch.labels]).numpy())
    kinds, losses, answers, labels = np.concatenate(parts, axis=1)
    right = answers == labels
    mean = float(losses.mean())
    scores: dict[str, Any] = {"predictions": len(labels), "mlm_loss": mean, "mlm_accuracy": float(right.mean())}
    for number, kind in enumerate(KINDS):
        chosen = kinds == number
        scores[f"{kind}_loss"] = float(losses[chosen].mean()) if chosen.any() else None
        scores[f"{kind}_accuracy"] = float(right[chosen].mean()) if chosen.any() else None
    scores["bits_per_character"] = bits_per_character(mean, labels.astype(np.int64), entry_lengths(entries))
    scores["commonest_answer"] = float(np.bincount(answers.astype(np.int64)).max() / len(answers))
    return scores


def _batches(encoder: Encoder, texts: Sequence[str]) -> Iterator[PackedBatch]:
    """Batches of texts of similar length, masked by the rules of training; the same ones for every model of a
    vocabulary."""
    tokenizer, room = encoder.tokenizer, encoder.model.config.max_position_embeddings - 2
    masking = Masking.at(MaskingConfig(), 0, room + 2, Vocabulary.of(tokenizer))
    cls, sep, mask = map(tokenizer.ids, (CLS, SEP, MASK))
    flat, counts = tokenizer.encode_texts(texts)
    ends = np.cumsum(counts)
    order = np.argsort(counts, kind="stable")
    for start in range(0, len(order), BATCH):
        rows = order[start : start + BATCH]
        sequences = [np.array([cls, *flat[ends[i] - counts[i] : ends[i]][:room], sep], np.int64) for i in rows]
        lengths = np.array([len(each) for each in sequences])
        place = np.arange(lengths.max())
        special = (place == 0) | (place >= lengths[:, None] - 1)
        keys = fold(key("exam", "masked words"), rows)
        sequence, position = masking.choose(keys, lengths, special, np.concatenate(sequences))
        where = np.append(0, np.cumsum(lengths))[sequence] + position
        packed = packed_sequences([(each.tolist(), ()) for each in sequences], mask)
        labels = packed.token_ids[where]
        packed.token_ids[where] = torch.from_numpy(masking.replace(keys[sequence], position, labels.numpy()))
        yield replace(
            packed,
            prediction_positions=torch.from_numpy(where),
            labels=labels,
            weights=torch.ones(len(where)),
        )
