"""The network of a training, and what computes in its place: made once a start, for a precision and a device."""

from __future__ import annotations

import torch

from bertwright.model.config import Kernel
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.recompute import recompute_layers
from bertwright.train.graph.graph import wrap_graph
from bertwright.train.job import Job
from bertwright.train.precision.config import Fp8Config
from bertwright.train.precision.low_copy import LowCopy
from bertwright.train.precision.precision import Precision


def build_network(job: Job, precision: Precision, kernel: Kernel) -> tuple[PreTrainingModel, LowCopy | None]:
    """The network with the weights of the seed in float32, and its copy in low precision where that computes."""
    # Every rank draws the same initial weights from the seed, so none has to send them.
    torch.manual_seed(job.config.seed)
    model = PreTrainingModel(job.network, kernel)
    model.to(precision.device).train()
    if isinstance(precision.config, Fp8Config):
        # Only where it is chosen: torchao takes seconds to load.
        from bertwright.train.precision.fp8 import to_float8

        to_float8(model, emulate=precision.device.type == "cpu")
    low = LowCopy(model, precision.weights) if precision.weights else None
    computing = low.network if low else model
    if job.config.checkpoint_activations:
        recompute_layers(computing.encoder)
    wrap_graph(computing, job.config.graph, precision.device)
    return model, low
