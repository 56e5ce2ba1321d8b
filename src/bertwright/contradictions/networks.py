"""Contradictions between a recipe and another network that training starts from or learns from; `Recipe.check` runs
these checks with all others if there is one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bertwright.contradictions.folders import wrong_folder
from bertwright.contradictions.sections import Mistake
from bertwright.core.artifact import MANIFEST, open_artifact
from bertwright.core.errors import BertwrightError
from bertwright.model.config import NetworkConfig, network_of, varlen_heads
from bertwright.objectives.config import DistillationConfig
from bertwright.objectives.teacher_config import (
    NO_HEAD,
    entries_of,
    misfits,
    other_entries,
    other_vocabulary,
    read_teacher,
)
from bertwright.optim.config import OptimConfig, other_moments
from bertwright.train.config import TrainConfig
from bertwright.vocab.config import VocabConfig


def wrong_init_layers(train: TrainConfig, network: NetworkConfig) -> Iterator[Mistake]:
    """Yield `init_layers` that the network in `init_from` does not have, or that do not fit the one of `[model]`."""
    if not train.init_layers or train.init_from is None:
        return
    try:
        given = read_teacher(train.init_from)
    except BertwrightError as error:
        yield "train.init_from", str(error)
        return
    if given.is_classifier:
        yield "train.init_from", f"{train.init_from} {NO_HEAD}"
        return
    deeper = given.network
    own, depth, layers = network.num_hidden_layers, deeper.num_hidden_layers, train.init_layers
    if len(layers) != own or max(layers) > depth:
        text = f"{list(layers)} must be {own} numbers from 1 to {depth}, one for each layer of [model]"
        yield "train.init_layers", f"{text}, each a layer of train.init_from ({train.init_from})"
    if deeper.hidden_size != network.hidden_size:
        text = (
            f"the layers of train.init_from ({train.init_from}) are {deeper.hidden_size} wide, but those of [model] are"
        )
        yield (
            "train.init_layers",
            f"{text} {network.hidden_size}; choose a model of the same width, or leave init_layers out",
        )
    elif deeper.num_attention_heads != network.num_attention_heads:
        text = f"the layers of train.init_from ({train.init_from}) have {deeper.num_attention_heads} attention heads"
        text += (
            f", but those of [model] have {network.num_attention_heads}, which would interpret the same weights "
            "differently"
        )
        yield "train.init_layers", f"{text}; choose a model with the same number, or leave init_layers out"


def wrong_teacher(train: TrainConfig, network: NetworkConfig, vocab: VocabConfig, pairs: bool) -> Iterator[Mistake]:
    """Yield a teacher that is invalid, or does not match the network, its data, or the given vocabulary."""
    if not isinstance(config := train.objective, DistillationConfig):
        return
    for i, phase in enumerate(train.phases):
        if phase.micro_batch == "auto":
            text = "auto considers only the network, but train.objective also has a teacher in memory"
            yield f"train.phases.{i}.micro_batch", f"{text}; give a number of sequences"
    try:
        teacher = read_teacher(config.teacher)
        difference = other_entries(teacher, entries_of(vocab.file)) if vocab.file else ""
    except BertwrightError as error:
        yield "train.objective.teacher", str(error)
        return
    lengths = {f"train.phases.{i}.length": phase.length for i, phase in enumerate(train.phases)}
    # Imported data may hold pairs, whatever the plan of the recipe is.
    segments = 2 if pairs or train.imported_data() else 1
    yield from misfits(config, teacher, network, lengths, segments)
    # The teacher computes with the network's kernel.
    if train.attention == "varlen" and (text := varlen_heads(teacher.network, "train.objective.teacher")):
        yield "train.attention", f"varlen {text}"
    if difference:
        yield "train.objective.teacher", other_vocabulary(teacher, f"vocab.file {vocab.file}", difference)


def wrong_pretrained(train: TrainConfig, network: NetworkConfig, optim: OptimConfig) -> Iterator[Mistake]:
    """Yield a network to start from that is invalid, differs from the one of `[model]`, or has no moments for the
    optimizer."""
    if train.init_from is None or train.init_layers:
        return
    if not network.labels and wrong_folder(train.init_from, "train", "checkpoint"):
        return  # `wrong_folders` reports it
    try:
        checkpoint = _checkpoint_in(train.init_from)
        if wrong := _wrong_start(train.init_from, checkpoint, network, optim):
            yield "train.init_from", wrong
            return
        other = read_teacher(train.init_from).network if checkpoint is None else network_of(checkpoint)
    except BertwrightError as error:
        yield "train.init_from", str(error)
        return
    if other.family != network.family:
        text = f"{train.init_from} is a {other.title} but [model] is a {network.title}"
        yield "train.init_from", f"{text}; set model.kind={other.family}"
        return
    # The shapes of the weights do not reveal every difference: they would load, but compute another function.
    for name in (each for each in type(network).model_fields if each not in network.may_differ):
        theirs, own = getattr(other, name), getattr(network, name)
        if theirs != own:
            text = f"{name} is {theirs} in {train.init_from} but {own} in [model]"
            yield (
                "train.init_from",
                f"{text}; set the size of that network in the recipe, or set model.config to its config.json",
            )
            # One is enough: a network of another size differs in most of them.
            return


def _checkpoint_in(path: Path) -> Mapping[str, Any] | None:
    """Return the sections that a checkpoint was trained with; None if `path` is not a checkpoint."""
    if not (path / MANIFEST).is_file() or (artifact := open_artifact(path)).manifest["stage"] != "checkpoint":
        return None
    sections: Mapping[str, Any] = artifact.manifest["config"]
    return sections


def _wrong_start(path: Path, checkpoint: Mapping[str, Any] | None, network: NetworkConfig, optim: OptimConfig) -> str:
    """Return why training cannot start from `path`, whose sections are `checkpoint` if it is one; "" if it can."""
    if network.labels and checkpoint is not None:
        return (
            f"{path} is a checkpoint, but a classifier starts from a finished model; give the train folder of that "
            "training once it is finished, or the folder that bertwright export makes of it, also before"
        )
    if network.labels:
        return ""
    if checkpoint is None:
        return f"{path} {NO_HEAD}" if read_teacher(path).is_classifier else ""
    # Older checkpoints may lack sections, and then nothing is known of them.
    if checkpoint.get("train", {}).get("objective", {}).get("kind") == "classification":
        return f"{path} {NO_HEAD}"
    wrong = other_moments(optim.kind, checkpoint.get("optim", {}).get("kind", optim.kind))
    return f"{path} {wrong}" if wrong else ""
