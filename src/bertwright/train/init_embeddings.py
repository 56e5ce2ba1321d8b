"""Initial token embeddings from the text: entries with the same neighbours start with similar vectors.

The positive pointwise mutual information of entries and their neighbours is factorised by its largest singular values
(Levy and Goldberg 2014 §3): E = U·√S, so that the products of two rows are large for entries that occur in the same
contexts. As in their later work (Levy et al. 2015 §3), contexts are smoothed by an exponent of 0.75. We differ in that
neighbours before and after an entry are distinct contexts, and that E is rotated at random, because AdamW would treat
the axes of singular vectors differently.

A training with random embeddings spends its first tokens on what this counts in seconds. The decoder is tied to the
embeddings, so that a state near those of the neighbours also predicts entries that fit between them.

Names carry shapes: V vocabulary, H hidden, C contexts.
"""

from __future__ import annotations

import math
import time

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertwright.core.log import Log
from bertwright.examples.cooccurrence import cooccurrences, read_text
from bertwright.examples.loader import Loader
from bertwright.model.pretraining import PreTrainingModel
from bertwright.train.ranks import Ranks

TOKENS = 1 << 24
"""Most tokens that are read."""
LOGIT_STD = 1.7
"""Standard deviation of the first logits: that of the embeddings is LOGIT_STD / √H, since the states that they are
multiplied with are normalised."""
_SMOOTHING = 0.75
_OVERSAMPLING = 16
"""Additional dimensions of the randomised decomposition (Halko et al. 2011 §4.2)."""


def start_from_text(model: PreTrainingModel, loader: Loader, ranks: Ranks, seed: int, log: Log) -> float:
    """Set the token embeddings from the text of `loader`, the same on all ranks; returns the seconds that it took.

    Entries that do not occur keep the weights drawn for them.
    """
    weight_VH, began = model.encoder.token_weight, time.perf_counter()
    if ranks.first:
        # By one rank only: on different processors the decompositions would differ in their last bits.
        with ranks.busy():
            text = read_text(loader, TOKENS)
            made_VH = embeddings(cooccurrences(text, len(weight_VH)), weight_VH.shape[1], seed)
            with torch.no_grad():
                weight_VH.copy_(torch.where(made_VH.any(1, keepdim=True), made_VH, weight_VH.cpu()))
    ranks.send([weight_VH], 0)
    (spent,) = ranks.all_reduce_async([int(1e6 * (time.perf_counter() - began)) if ranks.first else 0]).result()
    if ranks.first:
        log.say(f"train: token embeddings from the neighbours of {len(text.ids_T):,} tokens, in {spent / 1e6:.0f} s")
    return spent / 1e6


def embeddings(counts: NDArray[np.float32], width: int, seed: int) -> Tensor:
    """Return [V, H] embeddings from the counts of neighbours [V, C], which are overwritten; 0 for entries without
    any."""
    occurs_V = torch.from_numpy(counts.any(axis=1, keepdims=True)).flatten()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        rank = min(width, *counts.shape)
        oversampled = min(rank + _OVERSAMPLING, *counts.shape)
        u_VR, s_R, _ = torch.svd_lowrank(torch.from_numpy(mutual_information(counts)), oversampled)
        # A small table has fewer singular values than the embeddings have dimensions.
        e_VH = torch.zeros(len(counts), width)
        e_VH[:, :rank] = u_VR[:, :rank] * s_R[:rank].sqrt()
        e_VH @= torch.nn.init.orthogonal_(torch.empty(width, width))
    # Of the others alone: a network may have many rows for which there is no entry.
    return e_VH * (LOGIT_STD / math.sqrt(width) / e_VH[occurs_V].std())


def mutual_information(counts: NDArray[np.float32]) -> NDArray[np.float32]:
    """Replace counts [V, C] by their positive pointwise mutual information, max(0, log p(v, c) / (p(v)·p(c))), in
    nats, in place."""
    rows_V, contexts_C = counts.sum(1, dtype=np.float64), counts.sum(0, dtype=np.float64) ** _SMOOTHING
    with np.errstate(divide="ignore", invalid="ignore"):  # a pair that does not occur has the information -∞, and so 0
        np.log(counts, out=counts)
        counts -= np.log(rows_V).astype(np.float32)[:, None]
        counts -= np.log(contexts_C / contexts_C.sum()).astype(np.float32)
    # An entry that does not occur has -∞ + ∞.
    return np.nan_to_num(np.maximum(counts, 0, out=counts), copy=False, nan=0.0)
