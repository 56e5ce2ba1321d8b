"""Activation checkpointing: layers that are computed again on the way back (Chen et al. 2016).

Of a layer only its input is kept, so memory grows by H numbers a token and layer in place of some dozen times as many,
and a step takes about a third longer. The second pass gives the bits of the first one: dropout draws from torch's
generators, whose states are kept with the input, and autocast is as it was.
"""

from __future__ import annotations

from functools import partial

from torch.utils.checkpoint import checkpoint

from bertwright.model.encoder import Encoder


def recompute_layers(encoder: Encoder) -> None:
    """From now on each layer of the encoder is computed again when its gradients are; no number changes."""
    for layer in encoder.layers:
        # On the instance: a module around it would put its own name into the names of the tensors.
        layer.__dict__["forward"] = partial(checkpoint, layer.forward, use_reentrant=False)
