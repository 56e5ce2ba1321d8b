"""The hidden states of words after each layer of an encoder.

Names carry shapes: P words, T tokens of all sequences together, L layers, H hidden.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertwright.model.batch import PackedBatch, packed_sequences, to_device
from bertwright.model.text_encoder import Encoder
from bertwright.vocab.entries import CLS, MASK, SEP, UNK

BATCH = 32


def word_states(encoder: Encoder, sentences: Sequence[Sequence[str]]) -> NDArray[np.float32]:
    """[L + 1, P, H] the state of the last piece of each word of the sentences: of the embeddings, then of each layer.

    The last piece, because it has read the others: it tells more of inflected words than the first (Ács et al. 2021).
    Words beyond the positions of the model have states of 0.
    """
    config = encoder.model.config
    words = sum(map(len, sentences))
    states = np.zeros((config.num_hidden_layers + 1, words, config.hidden_size), np.float32)
    for some in _batches(encoder, sentences):
        layers = _layers(encoder.model.encoder, to_device(some.batch, encoder.device), some.pieces.to(encoder.device))
        states[:, some.words] = torch.stack(layers).float().cpu().numpy()
    return states


class _Words(NamedTuple):
    batch: PackedBatch
    pieces: Tensor
    """[N] the token of each word's last piece."""
    words: NDArray[np.int64]
    """[N] the number of each word."""


def _batches(encoder: Encoder, sentences: Sequence[Sequence[str]]) -> Iterator[_Words]:
    """Sentences of similar length together, each as [CLS] pieces [SEP]."""
    tokenizer, room = encoder.tokenizer, encoder.model.config.max_position_embeddings - 2
    cls, sep, mask, unknown = map(tokenizer.ids, (CLS, SEP, MASK, UNK))
    flat, counts = tokenizer.encode_texts([word for words in sentences for word in words])
    ends = np.cumsum(counts)
    ids = [flat[end - count : end].tolist() or [unknown] for end, count in zip(ends, counts, strict=True)]
    first = np.cumsum([0, *map(len, sentences)]).tolist()
    order = sorted(range(len(sentences)), key=lambda i: int(counts[first[i] : first[i + 1]].sum()))
    for start in range(0, len(order), BATCH):
        sequences, pieces, words, begin = [], list[int](), list[int](), 0
        for i in order[start : start + BATCH]:
            sequence = [cls]
            for word in range(first[i], first[i + 1]):
                if len(sequence) + len(ids[word]) > room + 1:
                    break
                sequence += ids[word]
                pieces.append(begin + len(sequence) - 1)
                words.append(word)
            sequences.append(([*sequence, sep], ()))
            begin += len(sequence) + 1
        yield _Words(
            packed_sequences(sequences, mask), torch.tensor(pieces, dtype=torch.int64), np.array(words, np.int64)
        )


@torch.inference_mode()
def _layers(encoder: Any, batch: PackedBatch, pieces_N: Tensor) -> list[Tensor]:
    """The states [N, H] of tokens before the first layer and after each; those of the last are what heads read."""
    states: list[Tensor] = []

    def before(module: nn.Module, given: tuple[Any, ...]) -> None:
        states.append(given[0][pieces_N])

    def after(module: nn.Module, given: tuple[Any, ...], out: Tensor) -> None:
        states.append(out[pieces_N])

    handles = [encoder.layers[0].register_forward_pre_hook(before)]
    handles += [layer.register_forward_hook(after) for layer in encoder.layers[:-1]]
    try:
        last_TH = encoder(batch)
    finally:
        for handle in handles:
            handle.remove()
    return [*states, last_TH[pieces_N]]
