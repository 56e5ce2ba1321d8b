"""Pseudo-log-likelihood: how probable a model finds a sentence, each word predicted from all others, or a phrase in
its sentence.

Each piece is masked in a copy of its own, together with the later pieces of its word or phrase: otherwise the rest of a
long word gives it away, and long words look too easy (Kauf and Ivanova 2023, "PLL-word-l2r").

Names carry shapes: S sentences, C copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    """The pseudo-log-likelihoods of sentences, or of phrases."""

    sums: NDArray[np.float64]
    """[S] sum over the pieces of each, in nats; 0 for one without pieces."""
    pieces: NDArray[np.int64]
    """[S] pieces of each; a sentence that is too long for the model is cut."""


class Phrase(NamedTuple):
    """Words within a sentence."""

    before: str
    text: str
    after: str


def pseudo_likelihoods(encoder: Encoder, sentences: Sequence[str]) -> Likelihoods:
    """Score sentences by a pre-trained model; raises `RecipeError` if it has no head for masked tokens."""
    continues, room = encoder.tokenizer.continuation, encoder.model.config.max_position_embeddings - 2
    ids = [pieces[:room] for pieces in _pieces(encoder, sentences)]
    hidden = [_by_word(pieces, continues) for pieces in ids]
    return _likelihoods(encoder, ids, hidden)


def phrase_likelihoods(encoder: Encoder, phrases: Sequence[Phrase]) -> Likelihoods:
    """Score phrases in their sentences, as `pseudo_likelihoods`: each piece is predicted from the rest of the sentence
    and from the pieces of the phrase before it. A sentence that is too long for the model is cut at its ends."""
    room = encoder.model.config.max_position_embeddings - 2
    ids, hidden = list[list[int]](), list[list[_Hidden]]()
    parts = iter(_pieces(encoder, [part for phrase in phrases for part in phrase]))
    for before, text, after in zip(parts, parts, parts, strict=True):
        text = text[:room]
        # Half of what remains for either side, and more if the other is shorter.
        rest = room - len(text)
        begin = min(len(before), max(rest // 2, rest - len(after)))
        before, after = before[len(before) - begin :], after[: rest - begin]
        ids.append([*before, *text, *after])
        end = begin + len(text)
        hidden.append([_Hidden(place, end) for place in range(begin, end)])
    return _likelihoods(encoder, ids, hidden)


class _Hidden(NamedTuple):
    """The pieces that a copy hides, of which the first is predicted."""

    place: int
    end: int


def _pieces(encoder: Encoder, texts: Sequence[str]) -> Iterator[list[int]]:
    flat, counts = encoder.tokenizer.encode_texts(texts)
    ends = np.cumsum(counts)
    return (flat[end - count : end].tolist() for end, count in zip(ends, counts, strict=True))


def _by_word(pieces: Sequence[int], continues: NDArray[np.bool_]) -> list[_Hidden]:
    """What is hidden for each piece: itself and the later pieces of its word."""
    hidden: list[_Hidden] = []
    for place in reversed(range(len(pieces))):
        is_inside = place + 1 < len(pieces) and continues[pieces[place + 1]]
        hidden.append(_Hidden(place, hidden[-1].end if is_inside else place + 1))
    return hidden[::-1]


def _likelihoods(encoder: Encoder, ids: Sequence[list[int]], hidden: Sequence[list[_Hidden]]) -> Likelihoods:
    model = encoder.model
    if not isinstance(model, PreTrainingModel):
        raise RecipeError("this model has no head that predicts masked tokens, so it gives words no probability.")
    entries, sums = len(encoder.tokenizer.vocabulary), np.zeros(len(ids))
    for owners, labels, batch in _batches(encoder, ids, hidden):
        with torch.inference_mode():
            logits, _ = model(to_device(batch, encoder.device))
            # Rows that only pad the embedding have no entry.
            log_p = logits[:, :entries].float().log_softmax(-1)
        found = log_p.gather(1, torch.from_numpy(labels).to(log_p.device)[:, None])[:, 0]
        np.add.at(sums, owners, found.double().cpu().numpy())
    return Likelihoods(sums, np.array([len(each) for each in hidden], np.int64))


class _Copy(NamedTuple):
    sentence: int
    piece: int
    """The hidden piece."""
    place: int
    """Its index among `ids`."""
    ids: list[int]


def _batches(
    encoder: Encoder, ids: Sequence[list[int]], hidden: Sequence[list[_Hidden]]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], PackedBatch]]:
    """Masked copies of sentences of similar length: the sentence of each, its predicted piece [C], and the batch."""
    cls, sep, mask = map(encoder.tokenizer.ids, (CLS, SEP, MASK))
    order = np.argsort([len(each) for each in ids], kind="stable")
    rows: list[_Copy] = []
    tokens = 0
    for sentence in order.tolist():
        pieces = ids[sentence]
        for place, end in hidden[sentence]:
            if rows and tokens + len(pieces) + 2 > TOKENS:
                yield _batch(rows, mask)
                rows, tokens = [], 0
            masked = [cls, *pieces[:place], *[mask] * (end - place), *pieces[end:], sep]
            rows.append(_Copy(sentence, pieces[place], place + 1, masked))
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
