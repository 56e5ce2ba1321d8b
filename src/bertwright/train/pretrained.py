"""Initial weights for a classifier from a pre-trained network: one of this project or in the transformers format.

Parts without a counterpart in that network keep their random weights: the classifier itself, unless that network
distinguishes the same classes, and the module before it (the pooler, if a BERT was trained without one).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from torch import Tensor

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.log import Log
from bertwright.model.choice import Labels
from bertwright.model.classifier import SequenceClassifier
from bertwright.model.interop.stock import stock_tensors
from bertwright.model.saved import load_network
from bertwright.objectives.teacher_config import Teacher, check_vocabulary, read_teacher

_KEY = "train.init_from"


def start_from_pretrained(model: SequenceClassifier, given: Path, vocab: Artifact, log: Log) -> None:
    """Load into `model` the tensors it shares with the network in `given`, and log what keeps its random weights.

    Raises `ArtifactError` if that network was trained with another vocabulary than `vocab`, or lacks a tensor of the
    encoder in the required shape.
    """
    other = read_teacher(given)
    check_vocabulary(other, vocab, _KEY)
    theirs, labels = _tensors(other)
    if labels != model.config.labels:
        theirs = {name: tensor for name, tensor in theirs.items() if not name.startswith("classification.classifier.")}
    tensors, fresh = dict(model.state_dict()), set[str]()
    for name, own in tensors.items():
        source = next((theirs[there] for there in _names(model, name) if there in theirs), None)
        if source is not None and source.shape == own.shape:
            tensors[name] = source
        elif name.startswith(("classification.", f"{model.config.family}.pooler.")):
            fresh.add(name.rpartition(".")[0])
        else:
            there = "absent" if source is None else f"{tuple(source.shape)}"
            raise ArtifactError(
                f"{_KEY} {given} is another network: {name} is {there} there and {tuple(own.shape)} here. Set [model] "
                "in the recipe to that network."
            )
    model.load_state_dict(tensors)
    if fresh:
        log.say(f"train: random weights for {', '.join(sorted(fresh))}, which {given} does not contain")


def _names(model: SequenceClassifier, name: str) -> Iterator[str]:
    """Yield the names that a tensor of the classifier may have in the other network."""
    yield name
    if model.config.shares_transform and name.startswith("classification."):
        # As in transformers.
        yield f"mlm.{name.removeprefix('classification.')}"


def _tensors(other: Teacher) -> tuple[Mapping[str, Tensor], Labels]:
    """Return the tensors of a network under this project's names, in float32, and the classes it distinguishes; the
    files of an artifact are verified first."""
    if other.artifact is not None:
        prefix = other.folder.relative_to(other.path).as_posix()
        for name in other.artifact.names(f"{prefix}/"):
            other.artifact.file(name)
    if other.stock:
        return stock_tensors(other.folder)
    network = load_network(other.folder)
    return network.state_dict(), network.config.labels
