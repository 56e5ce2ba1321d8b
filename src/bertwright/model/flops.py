"""Floating-point operations of a network for a batch, computed from shapes only. Does not import torch.

Counts the products that the model defines, each as a multiplication and an addition: those of its linear maps and those
of attention. Element-wise operations, norms, softmax and embedding look-ups are left out, as usual (Kaplan et al. 2020
§2.1), and so is everything that an implementation adds: padding, masked positions, recomputation. For T tokens in
sequences of n tokens each, N of them read after the last layer, P predictions, H hidden, V vocabulary, and layers with
W1 weights up to attention and W2 after it (`layer_products`):

    forward = 2·[T·(L·W1 + (L - 1)·W2) + N·W2]    linear maps of L layers; after the last attention only what is read
            + Σ layers Σ sequences 4·H·pairs(n)     queries with keys, weights with values; pairs(n) = n², or fewer in a
                                                    window
            + 2·P·(H² + H·V)                        transform and decoder of the masked tokens
            + 2·B·(H² + C·H)                        pooler (or transform) and classifier of B sequences, with a
                                                    next-sentence head (C = 2) or a classifier of C classes

The last layer is counted as every kernel computes it (docs/decisions/0028): N = P, plus B with such a head; N = T for
vectors, the means of all states. The kernel
for CPUs takes the queries of these tokens alone, too, which saves up to 3 % of a small network's step. The rule of
thumb 6·parameters·T counts the last layer in full, includes the embeddings, and ignores attention. The backward pass
takes two products for each product of the forward pass, so a step costs three times as much as a forward pass; where
only the rows of new entries are trained, it takes no gradients of weights but those of the decoder.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.model.config import NetworkConfig

STEP = 3
"""Cost of a forward and a backward pass, in forward passes."""


def forward_flops(network: NetworkConfig, lengths: NDArray[np.integer[Any]], predictions: int) -> int:
    """Return the operations of a forward pass over sequences of `lengths` [B] (tokens) with `predictions` masked
    tokens in total."""
    return sum(_forward_flops(network, lengths, predictions))


def step_flops(
    network: NetworkConfig, lengths: NDArray[np.integer[Any]], predictions: int, only_rows: bool = False
) -> int:
    """Return the operations of a forward and a backward pass over sequences of `lengths` [B] (tokens), as
    `forward_flops`; `only_rows`: if nothing but the rows of entries is trained."""
    weights, others = _forward_flops(network, lengths, predictions)
    return (STEP - only_rows) * weights + STEP * others


def _forward_flops(network: NetworkConfig, lengths: NDArray[np.integer[Any]], predictions: int) -> tuple[int, int]:
    """Return the operations of the linear maps but the decoder, and those of attention and the decoder."""
    lengths_B: NDArray[np.int64] = lengths.astype(np.int64)
    hidden, layers, tokens = network.hidden_size, network.num_hidden_layers, int(lengths_B.sum())
    before, after = network.layer_products
    classes = network.sequence_logits
    predictions = predictions if network.predicts_tokens else 0
    sequences = len(lengths) if classes else 0
    read = tokens if network.gives_vectors else predictions + sequences
    linear = tokens * (layers * before + (layers - 1) * after) + read * after
    pairs = 0
    for window in network.windows:
        pairs += _pairs(lengths_B, window)
    heads = predictions * hidden * hidden + sequences * (hidden * hidden + classes * hidden)
    return 2 * (linear + heads), 2 * predictions * hidden * network.vocab_size + 4 * hidden * pairs


def _pairs(lengths: NDArray[np.int64], window: int | None) -> int:
    """Return the number of pairs of a query and a key that it sees, summed over sequences of `lengths` [B]."""
    if window is None:
        return int((lengths * lengths).sum())
    # Keys are missing at both ends of a sequence: 1 at distance reach - 1 from the end, up to `reach` at the end.
    reach = np.minimum(window // 2, lengths - 1)
    return int(np.where(lengths > 0, lengths * (2 * reach + 1) - reach * (reach + 1), 0).sum())
