"""The hidden states of single layers of a network, for distillation and for probes.

Names carry shapes: P predictions, H hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from bertwright.model.batch import PackedBatch
from bertwright.model.model import HeadlessModel, Model


@contextmanager
def layer_states(
    model: Model | HeadlessModel, batch: PackedBatch, layers: Collection[int]
) -> Iterator[dict[int, Tensor]]:
    """Yield a dict that a forward pass of `batch` within the block fills: for each of `layers`, counted from 1, the
    states [P, H] of the predicted tokens after that layer; for 0 those of the embeddings.

    For the last layer these are the states that the heads read, so for a pre-layer-norm network after its final norm.
    Uses hooks, so that no family needs code for this and other forward passes cost nothing. Without `layers`, `model`
    may be any module with the same outputs.
    """
    states = dict[int, Tensor]()
    if not layers:
        yield states
        return
    encoder: Any = model.get_submodule(model.config.family)
    last = model.config.num_hidden_layers
    inner: Any = encoder.layers if any(number < last for number in layers) else ()

    def keep(number: int) -> Callable[[nn.Module, Any, Tensor], None]:
        def hook(module: nn.Module, given: Any, out: Tensor) -> None:
            # The output of the last layer begins with the predicted tokens (decision 0028).
            places = batch.prediction_positions
            states[number] = out[: len(places)] if number == last else out.index_select(0, places)

        return hook

    def keep_embeddings(module: nn.Module, given: tuple[Tensor, ...]) -> None:
        states[0] = given[0].index_select(0, batch.prediction_positions)

    handles = [
        (encoder if number == last else inner[number - 1]).register_forward_hook(keep(number))
        for number in layers
        if number
    ]
    if 0 in layers:
        handles.append(encoder.layers[0].register_forward_pre_hook(keep_embeddings))
    try:
        yield states
    finally:
        for handle in handles:
            handle.remove()
