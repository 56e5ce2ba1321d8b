"""How alike the vectors of unrelated sentences are: the mean of the last hidden states of a network that only learned
to fill in masks points to nearly the same direction for every text, so its cosines say little (Ethayarajh 2019).

Names carry shapes: N sentences, T tokens, H hidden.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from bertwright.core import rng
from bertwright.examples.shuffle import Permutation
from bertwright.examples.store import Store
from bertwright.model.batch import packed_sequences
from bertwright.model.pretraining import PreTrainingModel
from bertwright.vocab.entries import CLS, MASK, SEP
from bertwright.vocab.tokenizer import Tokenizer

SENTENCES = 256
"""Sentences that are compared, at most: some minutes of a large network would be too much for one number."""
_SHORTEST = 6
_AT_ONCE = 32


def unrelated_cosine(model: PreTrainingModel, store: Store, tokenizer: Tokenizer) -> float | None:
    """The mean cosine of the vectors of all pairs of sentences of a store: means of the last hidden states, [CLS] and
    [SEP] included; None if there are fewer than two sentences of six tokens, or the vectors are not numbers."""
    room = model.config.max_position_embeddings - 2
    starts = np.concatenate([[0], np.cumsum(store.sentences, dtype=np.int64)])
    order = Permutation(rng.key("evaluate", "vectors"), len(store.sentences))(np.arange(len(store.sentences)))
    chosen = list(islice((i for i in order.tolist() if store.sentences[i] >= _SHORTEST), SENTENCES))
    if len(chosen) < 2:
        return None
    cls, sep, mask = map(tokenizer.ids, (CLS, SEP, MASK))
    sequences = [([cls, *store.tokens[starts[i] : starts[i + 1]].tolist()[:room], sep], ()) for i in chosen]
    vectors_NH = np.concatenate(
        [_means(model, sequences[first : first + _AT_ONCE], mask) for first in range(0, len(sequences), _AT_ONCE)]
    )
    return mean_of_cosines(vectors_NH)


def mean_of_cosines(vectors_NH: NDArray[np.float64]) -> float | None:
    """The mean cosine of all pairs of different vectors [N, H]; None if they are not numbers."""
    unit_NH = vectors_NH / np.maximum(np.linalg.norm(vectors_NH, axis=1, keepdims=True), 1e-12)
    count = len(unit_NH)
    # The squared length of the sum is the sum over all pairs, each vector with itself included.
    mean = (float(np.square(unit_NH.sum(0)).sum()) - count) / (count * (count - 1))
    return mean if np.isfinite(mean) else None


def _means(model: PreTrainingModel, sequences: list[tuple[list[int], tuple[()]]], mask: int) -> NDArray[np.float64]:
    device = next(model.parameters()).device
    batch = packed_sequences(sequences, mask).map(lambda tensor: tensor.to(device))
    with torch.inference_mode():
        hidden_TH = model.encoder(batch).double().cpu()
    return np.stack([each.mean(0).numpy() for each in torch.split(hidden_TH, batch.cu_seqlens.diff().tolist())])
