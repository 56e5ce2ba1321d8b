"""Linear maps of the layers in float8, by torchao: both factors of each product are scaled by their largest number.

The rest is as under bfloat16, and weights, moments and checkpoints are float32. Embeddings, heads and the decoder stay
in bfloat16, as torchao recommends for the last layer.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from torch import nn

from bertwright.core.errors import MissingExtraError
from bertwright.model.model import Model

MULTIPLE = 16
"""Float8 products take matrices whose sides are multiples of this."""


def refuse_without_torchao() -> None:
    """`MissingExtraError` where torchao is not installed."""
    if find_spec("torchao") is None:
        raise MissingExtraError(
            "train.precision = fp8 computes with torchao, which is not installed: pip install 'bertwright[fp8]', or "
            "set train.precision=bf16."
        )


def to_float8(model: Model, emulate: bool) -> None:
    """Make the linear maps of the encoder's layers compute in float8; names of tensors stay.

    With `emulate` products are computed in float32 of numbers that float8 can hold, on any device.
    """
    refuse_without_torchao()
    float8 = import_module("torchao.float8")
    # Tokens that are read are not a multiple of 16, and of the last layer none else are computed.
    config = float8.Float8LinearConfig(emulate=emulate, pad_inner_dim=True)
    for layer in model.encoder.layers:
        float8.convert_to_float8_training(layer, config=config, module_filter_fn=_fits)


def _fits(module: nn.Module, name: str) -> bool:
    return isinstance(module, nn.Linear) and not (module.in_features % MULTIPLE or module.out_features % MULTIPLE)
