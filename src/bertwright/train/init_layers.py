"""Initial weights from selected layers of a deeper network (Sanh et al. 2019 §3: every second one).

Embeddings and heads are copied unchanged. Tensors that only the deeper network has are ignored: for example, the
segment embeddings and pooler of a BERT when a DistilBERT starts from it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.model.pretraining import PreTrainingModel
from bertwright.objectives.teacher import load_weights
from bertwright.objectives.teacher_config import check_vocabulary, read_teacher

_LAYER = re.compile(r"^layers\.(\d+)\.")


def start_from_layers(model: PreTrainingModel, given: Path, layers: Sequence[int], vocab: Artifact) -> None:
    """Load into `model` the weights of the network in `given`, using its layers with these numbers, counted from 1.

    Raises `ArtifactError` if that network was trained with another vocabulary than `vocab`, or lacks a tensor of the
    required shape.
    """
    deeper = read_teacher(given)
    check_vocabulary(deeper, vocab, "train.init_from")
    model.load_state_dict(chosen_layers(load_weights(deeper), model, layers, given))


def chosen_layers(
    deeper: PreTrainingModel, model: PreTrainingModel, layers: Sequence[int], given: Path
) -> dict[str, Tensor]:
    """Return the tensors of `deeper`, read from `given`, under their names in `model`."""
    theirs, chosen = deeper.state_dict(), dict[str, Tensor]()
    for name, own in model.state_dict().items():
        source = _name_there(name, model.config.family, deeper.config.family, layers)
        if source not in theirs or theirs[source].shape != own.shape:
            there = tuple(theirs[source].shape) if source in theirs else "absent"
            raise ArtifactError(
                f"train.init_layers: {name} is {tuple(own.shape)} here, and {source} is {there} in train.init_from "
                f"{given}. Set a [model] that differs from that network only in its number of layers, or leave "
                "init_layers and init_from out."
            )
        chosen[name] = theirs[source]
    return chosen


def _name_there(name: str, family: str, other: str, layers: Sequence[int]) -> str:
    """Return the name, in the deeper network of family `other`, of a tensor of a network of `family`."""
    if not name.startswith(f"{family}."):
        return name  # a head
    inner = _LAYER.sub(lambda found: f"layers.{layers[int(found[1])] - 1}.", name.removeprefix(f"{family}."))
    return f"{other}.{inner}"
