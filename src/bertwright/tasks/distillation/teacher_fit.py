"""Checks a teacher against the network that learns from it. Does not import torch, so that checking a recipe stays
fast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bertwright.core.artifact import Artifact
from bertwright.core.errors import RecipeError
from bertwright.model.config import NetworkConfig
from bertwright.model.pretrained_config import Pretrained, check_vocabulary, read_pretrained
from bertwright.tasks.distillation.config import DistillationConfig

KEY = "train.objective.teacher"


def check_teacher(config: DistillationConfig, network: NetworkConfig, lengths: Sequence[int], vocab: Artifact) -> None:
    """Raise `RecipeError` if the teacher is invalid or unsuitable for training `network` on the phases' `lengths`, and
    `ArtifactError` if it was not trained with the vocabulary `vocab`."""
    teacher = read_pretrained(config.teacher)
    keys = {f"train.phases.{number}.length": length for number, length in enumerate(lengths)}
    for key, sentence in misfits(config, teacher, network, keys, 2 if network.next_sentence else 1):
        raise RecipeError(f"{key}: {sentence}.")
    check_vocabulary(teacher, vocab, KEY)


def misfits(
    config: DistillationConfig, teacher: Pretrained, network: NetworkConfig, lengths: Mapping[str, int], segments: int
) -> Iterator[tuple[str, str]]:
    """Yield the recipe keys whose values do not fit this teacher for training `network`, each with a message.

    `lengths` are the sequence lengths that the teacher has to read, by recipe key; `segments` is the number of segments
    per sequence.
    """
    theirs, key = teacher.network, "train.objective"
    if teacher.other_task or teacher.lacks_head:
        yield f"{key}.teacher", teacher.other_task or teacher.lacks_head
        return
    for length_key, length in lengths.items():
        if length > theirs.max_position_embeddings:
            text = f"{length} is longer than the {theirs.max_position_embeddings} positions of {key}.teacher"
            yield length_key, f"{text} {teacher.path}; shorten it, or give a teacher with as many positions"
    if 0 < theirs.segments < segments:
        text = f"{teacher.path} distinguishes {theirs.segments} segment, but sentence pairs have {segments}"
        yield f"{key}.teacher", f"{text}; give another teacher, or set examples.plan=doc-sentences"
    if not config.hidden_weight:
        return
    own, depth = network.num_hidden_layers, theirs.num_hidden_layers
    if theirs.hidden_size != network.hidden_size:
        text = f"the hidden states of {teacher.path} have {theirs.hidden_size} numbers, but those of [model] have"
        remedy = "so their cosine cannot be computed; set hidden_weight=0, or choose a model of the teacher's width"
        yield f"{key}.hidden_weight", f"{text} {network.hidden_size}, {remedy}"
    if config.layers and (len(config.layers) != own or max(config.layers) > depth):
        text = f"{list(config.layers)} must be {own} numbers from 0 to {depth}, one for each layer of [model], each a"
        yield f"{key}.layers", f"{text} layer of train.objective.teacher ({teacher.path}) or 0 for none"
