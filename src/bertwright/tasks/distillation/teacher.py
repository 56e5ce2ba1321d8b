"""The teacher network: loads it, and reads hidden states of it and of the network that learns from it.

Names carry shapes: P predictions, H hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from bertwright.model.batch import PackedBatch
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
    return load_stock(teacher.folder) if teacher.stock else load_model(teacher.folder)


def without_next_sentence(model: PreTrainingModel) -> PreTrainingModel:
    """The network without its next-sentence head, so that its last layer computes only the predicted tokens."""
    if model.nsp is None:
        return model
    heads = ("nsp.", f"{model.config.family}.pooler.")
    kept = {name: tensor for name, tensor in model.state_dict().items() if not name.startswith(heads)}
    return model_from(model.config.model_copy(update={"next_sentence": False}), kept)


@contextmanager
def layer_states(model: PreTrainingModel, batch: PackedBatch, layers: Collection[int]) -> Iterator[dict[int, Tensor]]:
    """Yield a dict that a forward pass of `batch` within the block fills: for each of `layers`, counted from 1, the
    states [P, H] of the predicted tokens after that layer.

    For the last layer these are the states that the heads read, so for a pre-layer-norm network after its final norm.
    Uses hooks, so that no family needs code for this and other forward passes cost nothing. Without `layers`, `model`
    may be any module with the same outputs.
    """
    states = dict[int, Tensor]()
    if not layers:
        yield states
        return
    encoder, last = model.get_submodule(model.config.family), model.config.num_hidden_layers
    inner: Any = encoder.layers if any(number < last for number in layers) else ()

    def keep(number: int) -> Callable[[nn.Module, Any, Tensor], None]:
        def hook(module: nn.Module, given: Any, out: Tensor) -> None:
            # The output of the last layer begins with the predicted tokens (decision 0028).
            places = batch.prediction_positions
            states[number] = out[: len(places)] if number == last else out.index_select(0, places)

        return hook

    handles = [
        (encoder if number == last else inner[number - 1]).register_forward_hook(keep(number)) for number in layers
    ]
    try:
        yield states
    finally:
        for handle in handles:
            handle.remove()
