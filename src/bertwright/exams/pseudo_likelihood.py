"""Pseudo-log-likelihood: how probable a model finds a sentence, each word predicted from all others.

Each piece is masked in a copy of its own, together with the later pieces of its word: otherwise the rest of a long word
gives it away, and long words look too easy (Kauf and Ivanova 2023, "PLL-word-l2r").

Names carry shapes: S sentences, C copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from bertwright.core.errors import RecipeError
from bertwright.model.batch import PackedBatch, packed_sequences, to_device
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.text_encoder import Encoder
from bertwright.vocab.entries import CLS, MASK, SEP

TOKENS = 4_096
"""Tokens of a batch."""


class Likelihoods(NamedTuple):
    """The pseudo-log-likelihoods of sentences."""

    sums: NDArray[np.float64]
    """[S] sum over the pieces of each sentence, in nats; 0 for one without pieces."""
    pieces: NDArray[np.int64]
    """[S] pieces of each sentence; one that is too long for the model is cut."""


def pseudo_likelihoods(
    encoder: Encoder, sentences: Sequence[str], progress: Callable[[int, int], None] = lambda done, of: None
) -> Likelihoods:
    """Score sentences by a pre-trained model; raises `RecipeError` if it has no head for masked tokens."""
    model = encoder.model
    if not isinstance(model, PreTrainingModel):
        raise RecipeError("this model has no head that predicts masked tokens, so it gives words no probability.")
    tokenizer, entries = encoder.tokenizer, len(encoder.tokenizer.vocabulary)
    room = model.config.max_position_embeddings - 2
    flat, counts = tokenizer.encode_texts(sentences)
    ends = np.cumsum(counts)
    ids = [flat[end - count : end][:room] for end, count in zip(ends, counts, strict=True)]
    sums, done = np.zeros(len(sentences)), 0
    copies = sum(map(len, ids))
    for owners, labels, batch in _batches(encoder, ids):
        with torch.inference_mode():
            logits, _ = model(to_device(batch, encoder.device))
            # Rows that only pad the embedding have no entry.
            log_p = logits[:, :entries].float().log_softmax(-1)
        found = log_p.gather(1, torch.from_numpy(labels).to(log_p.device)[:, None])[:, 0]
        np.add.at(sums, owners, found.double().cpu().numpy())
        done += len(owners)
        progress(done, copies)
    return Likelihoods(sums, np.array([len(each) for each in ids], np.int64))


class _Copy(NamedTuple):
    sentence: int
    piece: int
    """The hidden piece."""
    place: int
    """Its index among `ids`."""
    ids: list[int]


def _batches(
    encoder: Encoder, ids: Sequence[NDArray[np.uint32]]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], PackedBatch]]:
    """Masked copies of sentences of similar length: the sentence of each, its hidden piece [C], and the batch."""
    cls, sep, mask = map(encoder.tokenizer.ids, (CLS, SEP, MASK))
    continues = encoder.tokenizer.continuation
    order = np.argsort([len(each) for each in ids], kind="stable")
    rows: list[_Copy] = []
    tokens = 0
    for sentence in order.tolist():
        pieces = ids[sentence].tolist()
        for place, piece in enumerate(pieces):
            end = place + 1
            while end < len(pieces) and continues[pieces[end]]:
                end += 1
            if rows and tokens + len(pieces) + 2 > TOKENS:
                yield _batch(rows, mask)
                rows, tokens = [], 0
            masked = [cls, *pieces[:place], *[mask] * (end - place), *pieces[end:], sep]
            rows.append(_Copy(sentence, piece, place + 1, masked))
            tokens += len(masked)
    if rows:
        yield _batch(rows, mask)


def _batch(copies: Sequence[_Copy], mask: int) -> tuple[NDArray[np.int64], NDArray[np.int64], PackedBatch]:
    batch = packed_sequences([(each.ids, ()) for each in copies], mask)
    # Only one mask of each copy is predicted; the others hide the rest of its word.
    places = torch.tensor([each.place for each in copies]) + batch.cu_seqlens[:-1]
    labels = torch.tensor([each.piece for each in copies])
    chosen = replace(batch, prediction_positions=places, labels=labels, weights=torch.ones(len(copies)))
    return np.array([each.sentence for each in copies], np.int64), labels.numpy(), chosen
