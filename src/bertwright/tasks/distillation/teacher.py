"""Loads the teacher network."""

from __future__ import annotations

from pathlib import Path

from bertwright.model.interop.stock import load_stock
from bertwright.model.pretrained_config import Pretrained
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import load_model, model_from


def load_teacher(teacher: Pretrained, like: PreTrainingModel) -> PreTrainingModel:
    """The teacher's network with only the masked-token head, without dropout and gradients.

    Has the device, dtype and attention kernel of `like`. Draws no numbers from torch's random generator.
    """
    model = without_next_sentence(load_weights(teacher))
    model.encoder.kernel = like.encoder.kernel
    weight = like.encoder.token_weight
    return model.to(weight.device, weight.dtype).eval().requires_grad_(False)


def load_weights(teacher: Pretrained) -> PreTrainingModel:
    """The network in the teacher's folder with all its heads, on the CPU; the files of an artifact are verified."""
    if teacher.artifact is not None:
        prefix = Path(teacher.folder).relative_to(teacher.path).as_posix()
        for name in teacher.artifact.names(f"{prefix}/"):
            teacher.artifact.file(name)
    return load_stock(teacher.source) if teacher.stock else load_model(teacher.folder)


def without_next_sentence(model: PreTrainingModel) -> PreTrainingModel:
    """The network without its next-sentence head, so that its last layer computes only the predicted tokens."""
    if model.nsp is None:
        return model
    heads = ("nsp.", f"{model.config.family}.pooler.")
    kept = {name: tensor for name, tensor in model.state_dict().items() if not name.startswith(heads)}
    return model_from(model.config.model_copy(update={"next_sentence": False}), kept)
