"""Initial weights from a network trained before: one of this project, or one that transformers wrote.

Either all of its layers, or those that `train.init_layers` chooses (Sanh et al. 2019 §3: every second one). Heads that
it does not have keep their random weights, and heads that this network does not have are left out; the log and the
manifest say which. A classifier is taken over only if it distinguishes the same classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.log import Log
from bertwright.model.interop.stock import load_tensors
from bertwright.model.model import Model
from bertwright.model.pretrained_config import check_vocabulary, read_pretrained
from bertwright.model.transfer_config import Transfer, transfer
from bertwright.train.config import TrainConfig

KEY = "train.init_from"
_NO_TOKEN = -10_000.0
"""Bias of rows that belong to no entry, which gives them no probability."""


def start_from(model: Model, given: Path, config: TrainConfig, vocab: Artifact, log: Log) -> dict[str, str]:
    """Load into `model` the tensors that it shares with the network in `given`; returns what the two do not share, for
    the manifest.

    Raises `ArtifactError` if that network was trained with another vocabulary than `vocab`, or does not fit.
    """
    if not config.phases[0].restart_bias_correction:
        raise ArtifactError(
            f"train.phases.0.restart_bias_correction false needs optimizer moments, but {KEY} {given} has only "
            "weights. Give a checkpoint, or leave the key out."
        )
    other, entries = read_pretrained(given), int(vocab.counts["entries"])
    check_vocabulary(other, vocab, KEY)
    found = transfer(model.config, other, entries, config.init_layers)
    if found.faults:
        raise ArtifactError(
            f"{KEY} {given} is another network: {found.faults[0]} ({len(found.faults)} tensors differ). Set [model] in "
            "the recipe to that network."
        )
    model.load_state_dict(taken(model.state_dict(), load_tensors(other), found, entries))
    log.say("; ".join([f"train: starting from {given}", *found.notes]))
    parts = {"drawn": found.drawn, "left_out": found.unused}
    return {name: ", ".join(modules) for name, modules in parts.items() if modules}


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
