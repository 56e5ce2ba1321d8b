"""Initial weights from a network trained before, and initial token embeddings from the text.

**From a network** of this project, or one that transformers wrote: either all of its layers, or those that
`train.init_layers` chooses (Sanh et al. 2019 §3: every second one). Heads that it does not have keep their random
weights, and heads that this network does not have are left out; the log and the manifest say which. A classifier is
taken over only if it distinguishes the same classes. If the vocabularies differ, new entries get rows made from those
of that network (`new_rows`).

**From the text**: entries with the same neighbours start with similar vectors. The positive pointwise mutual
information of entries and their neighbours is factorised by its largest singular values as E = U·√S (Levy and Goldberg
2014 §4.2), so that the products of two rows are large for entries that occur in the same contexts. Contexts are
smoothed by an exponent of 0.75 (Levy et al. 2015 §3.2). We differ in that neighbours before and after an entry are
distinct contexts, and that E is rotated at random, because AdamW would treat the axes of singular vectors differently.

With random embeddings, a training learns from its first million tokens what is counted here in seconds. The decoder is
tied to the embeddings, so that a state near those of the neighbours also predicts entries that fit between them.

Names carry shapes: V vocabulary, H hidden, C contexts, R rank.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.core.log import Log
from bertwright.examples.cooccurrence import cooccurrences, read_text
from bertwright.examples.loader import Loader
from bertwright.model.config import has_row_per_entry
from bertwright.model.importers.origin import origin_of
from bertwright.model.interop.stock import load_tensors
from bertwright.model.model import Model
from bertwright.model.pretrained_config import NEW_ROWS, check_vocabulary, read_pretrained, vocabulary_of
from bertwright.model.transfer_config import Transfer, correspondence, repeated_layers, transfer
from bertwright.train.config import TrainConfig
from bertwright.train.ranks.ranks import Ranks

KEY = "train.init_from"
_NO_TOKEN = -10_000.0
"""Bias of rows that belong to no entry, which gives them no probability."""


class Beginning(NamedTuple):
    """What a network and the one that it starts from do not have in common, and where that one comes from."""

    facts: dict[str, str]
    """Which parts were drawn or left out, and where the other network comes from, for the manifest."""
    new_V: NDArray[np.bool_] | None = None
    """[V] which entries of the vocabulary got new rows; None if the two have the same vocabulary."""


def start_from(model: Model, given: Path, config: TrainConfig, vocab: Artifact, log: Log) -> Beginning:
    """Load into `model` the tensors that it shares with the network in `given`, and rows made from that network's if
    the recipe says so and the vocabularies differ.

    Raises `ArtifactError` if the vocabularies must be the same and are not, or the network does not fit.
    """
    if not config.phases[0].restart_bias_correction:
        raise ArtifactError(
            f"train.phases.0.restart_bias_correction false needs optimizer moments, but {KEY} {given} has only "
            "weights. Give a checkpoint, or leave the key out."
        )
    other, entries = read_pretrained(given), int(vocab.counts["entries"])
    new_rows = config.init_embeddings != "random"
    if not new_rows:
        check_vocabulary(other, vocab, KEY, NEW_ROWS)
    own, layers = model.config, list(config.init_layers)
    if config.init_tiled:
        layers = layers or repeated_layers(own, other.network)
    found = transfer(own, other, entries, layers, new_rows, config.init_tiled)
    if found.faults:
        raise ArtifactError(
            f"{KEY} {given} is another network: {found.faults[0]} ({len(found.faults)} tensors differ). Set [model] in "
            "the recipe to that network."
        )
    theirs, new_V = load_tensors(other), None
    if new_rows:
        # Not imported by a training that keeps the vocabulary.
        from bertwright.model.new_rows import composed

        made = correspondence(other, vocabulary_of(vocab))
        for source in filter(has_row_per_entry, found.taken.values()):
            # Rows beyond the entries of that vocabulary belong to none.
            theirs[source] = composed(theirs[source][: made.older], made, config.seed)
        new_V = made.new_V
        log.say(f"train: {made.note}")
        if not new_V.any() and any(phase.trains == "new-rows" for phase in config.phases):
            raise ArtifactError(
                f"train.phases.N.trains new-rows, but {KEY} {given} has all {entries:,} entries of this vocabulary: no "
                "row is new. Leave the phase out."
            )
    if config.init_tiled:
        from bertwright.model.tiling import tiled

        theirs = tiled(own, other.network, theirs, found.taken, config.seed)
        found = replace(found, taken={name: name for name in theirs})
        log.say(f"train: weights of a smaller network are repeated, layers as {layers}")
    model.load_state_dict(taken(model.state_dict(), theirs, found, entries))
    log.say("; ".join([f"train: starting from {given}", *found.notes]))
    parts = {"drawn": found.drawn, "left_out": found.unused}
    origin = origin_of(other)
    known = origin.facts() if origin else {}
    return Beginning({name: ", ".join(modules) for name, modules in parts.items() if modules} | known, new_V)


def taken(own: Mapping[str, Tensor], theirs: Mapping[str, Tensor], found: Transfer, entries: int) -> dict[str, Tensor]:
    """Return the tensors of a network, those that it shares with another network replaced by that network's.

    Of tables with a row per entry, rows beyond the `entries` of the vocabulary get no probability if the other network
    has fewer of them.
    """
    tensors = dict(own)
    for name, source in found.taken.items():
        tensor = theirs[source]
        if tensor.shape != own[name].shape:
            rows = own[name].clone()
            rows[entries:] = _NO_TOKEN if name == "mlm.bias" else 0.0
            rows[: len(tensor)] = tensor[: len(rows)]
            tensor = rows
        tensors[name] = tensor
    return tensors


TOKENS = 1 << 24
"""Tokens that are read, about, if the first epoch has as many."""
LOGIT_STD = 1.7
"""Standard deviation of the first logits: that of the embeddings is LOGIT_STD / √H, since the states that they are
multiplied with are normalised."""
_SMOOTHING = 0.75
_OVERSAMPLING = 16
"""Additional dimensions of the randomised decomposition (Halko et al. 2011)."""


def start_from_text(
    model: Model, loader: Loader, ranks: Ranks, seed: int, log: Log, new_V: NDArray[np.bool_] | None = None
) -> float:
    """Set the token embeddings from the text of `loader`, the same on all ranks; returns the seconds that it took.

    Entries that do not occur, such as [MASK], keep the weights drawn for them. With `new_V` [V], only the rows of these
    entries are set, and mapped to the space of the others.
    """
    weight_VH, began = model.encoder.token_weight, time.perf_counter()
    if ranks.first:
        # By one rank only: on different processors the decompositions would differ in their last bits.
        with ranks.busy():
            text = read_text(loader, TOKENS)
            made_VH = embeddings(cooccurrences(text, len(weight_VH)), weight_VH.shape[1], seed)
            occurs_V, which = made_VH.any(1), ""
            if new_V is not None:
                from bertwright.model.new_rows import projected

                new = torch.zeros(len(made_VH), dtype=torch.bool)
                new[: len(new_V)] = torch.from_numpy(new_V)
                made_VH = projected(made_VH, weight_VH.detach().cpu(), ~new)
                occurs_V &= new
                which = f" of {int(occurs_V.sum()):,} new entries"
            with torch.no_grad():
                weight_VH.copy_(torch.where(occurs_V[:, None], made_VH, weight_VH.cpu()))
        log.say(
            f"train: token embeddings{which} from the neighbours of {len(text.ids_T):,} tokens, in "
            f"{time.perf_counter() - began:.0f} s"
        )
    ranks.send([weight_VH], 0)
    return ranks.each(int(1e6 * (time.perf_counter() - began)))[0] / 1e6


def embeddings(counts: NDArray[np.float32], width: int, seed: int) -> Tensor:
    """Return [V, H] embeddings from the counts of neighbours [V, C], which are overwritten; 0 for entries without
    any.

    Raises `RecipeError` if no entries are neighbours more often than by chance.
    """
    occurs_V1 = torch.from_numpy(counts.any(axis=1, keepdims=True))
    rank = min(width, *counts.shape)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        oversampled = min(rank + _OVERSAMPLING, *counts.shape)
        u_VR, s_R, _ = torch.svd_lowrank(torch.from_numpy(mutual_information(counts)), oversampled)
        rotation_HH = torch.nn.init.orthogonal_(torch.empty(width, width))
    # A small table has fewer singular values than the embeddings have dimensions. U has rounding errors where the table
    # has rows of zeros.
    e_VH = torch.where(occurs_V1, (u_VR * s_R.sqrt())[:, :rank] @ rotation_HH[:rank], 0.0)
    if not e_VH.any():
        raise RecipeError(
            "train.init_embeddings text found no entries in the text of the first phase that are neighbours more often "
            "than by chance; give more text, or set train.init_embeddings=random"
        )
    return e_VH * (LOGIT_STD / math.sqrt(width) / e_VH[occurs_V1.flatten()].std())


def mutual_information(counts: NDArray[np.float32]) -> NDArray[np.float32]:
    """Replace counts [V, C] by their positive pointwise mutual information, max(0, log p(v, c) / (p(v)·p(c))), in
    nats, in place."""
    rows_V, contexts_C = counts.sum(1, dtype=np.float64), counts.sum(0, dtype=np.float64) ** _SMOOTHING
    with np.errstate(divide="ignore", invalid="ignore"):  # -∞ for a pair that does not occur; NaN for such an entry
        np.log(counts, out=counts)
        counts -= np.log(rows_V).astype(np.float32)[:, None]
        counts -= np.log(contexts_C / contexts_C.sum()).astype(np.float32)
    counts[~(counts > 0)] = 0
    return counts
