"""Times forward and backward passes of a training in one precision, in its own process (`choose_precision`).

python -m bertwright.train.setup.time_passes

The first line of standard input is a JSON object: the network, the section `[train]` with a precision, and a
micro-batch. It is answered after a first pass; each further line is answered with the seconds of some passes.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from bertwright.examples.batch import MicroBatch
from bertwright.model.batch import host_tensors
from bertwright.model.config import NETWORKS
from bertwright.model.dropout import seed_dropout
from bertwright.optim.config import AdamWConfig
from bertwright.train.config import TrainConfig
from bertwright.train.engine.single import Single
from bertwright.train.graph.recorded import Scales
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup.trainee import build_network
from bertwright.train.setup.training_environment import torch_set_for
from bertwright.train.step import run_pass

_BLOCK = 0.5
"""Seconds of passes that are answered together."""


def main() -> None:
    """Answer each line of standard input with a line of JSON."""
    out, sys.stdout = sys.stdout, sys.stderr  # keep library output out of the answers
    request = json.loads(sys.stdin.readline())
    config = TrainConfig.model_validate(request["train"])
    with torch_set_for(config):
        one_pass = _pass_of(request, config)
        one_pass()
        print("[]", file=out, flush=True)
        for _ in sys.stdin:
            print(json.dumps(_block(one_pass)), file=out, flush=True)


def _block(one_pass: Callable[[], None]) -> list[float]:
    taken: list[float] = []
    while sum(taken) < _BLOCK:
        began = time.perf_counter()
        one_pass()
        taken.append(time.perf_counter() - began)
    return taken


def _pass_of(request: dict[str, Any], config: TrainConfig) -> Callable[[], None]:
    """Return a function that computes the gradients of the micro-batch."""
    family = next(network for network in NETWORKS if network.family == request["family"])
    cpu = torch.device("cpu")
    network = build_network(family.model_validate(request["network"]), config, cpu)
    # The engine is not used: nothing is updated.
    trainee = network.trainee(Single(network.model, AdamWConfig()), Ranks(), request["pair_task"])
    arrays = {name: np.array(values, dtype) for name, (dtype, values) in request["arrays"].items()}
    batch = host_tensors(trainee.precision.fit(MicroBatch(max_row=request["max_row"], **arrays)), cpu)
    scales = Scales(dict.fromkeys(trainee.objective.counted, 1))

    def one_pass() -> None:
        trainee.model.zero_grad(set_to_none=True)
        seed_dropout(cpu, 1)
        run_pass(trainee, trainee.network(), batch, scales)

    return one_pass


if __name__ == "__main__":
    main()
