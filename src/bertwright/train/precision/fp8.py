"""Runs the linear layers of the encoder in float8 with torchao; both factors of each product are scaled by their
largest value.

Everything else is as under bfloat16; weights, moments and checkpoints are float32. Embeddings, heads and the decoder
stay in bfloat16, as torchao recommends for the last layer.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from torch import nn

from bertwright.core.errors import MissingExtraError
from bertwright.model.model import Model

MULTIPLE = 16
"""Float8 products need matrices whose sides are multiples of this."""


def refuse_without_torchao() -> None:
    """Raise `MissingExtraError` if torchao is not installed."""
    if find_spec("torchao") is None:
        raise MissingExtraError(
            "train.precision = fp8 computes with torchao, which is not installed: pip install 'bertwright[fp8]', or "
            "set train.precision=bf16."
        )


def to_float8(model: Model, emulate: bool) -> None:
    """Make the linear layers of the encoder compute in float8; names of tensors do not change.

    With `emulate`, products are computed in float32 from values that float8 can represent, on any device.
    """
    refuse_without_torchao()
    float8 = import_module("torchao.float8")
    # The number of tokens that are read is not a multiple of 16, and the last layer computes only those.
    config = float8.Float8LinearConfig(emulate=emulate, pad_inner_dim=True)
    for layer in model.encoder.layers:
        float8.convert_to_float8_training(layer, config=config, module_filter_fn=_fits)


def _fits(module: nn.Module, name: str) -> bool:
    return isinstance(module, nn.Linear) and not (module.in_features % MULTIPLE or module.out_features % MULTIPLE)
