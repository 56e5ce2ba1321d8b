"""Finds where to resume training: the run's newest valid checkpoint, the recipe's `train.init_from`, or step 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError, CheckpointError
from bertwright.core.files import sha256_of
from bertwright.core.log import Log
from bertwright.model.model import Model
from bertwright.optim.config import other_moments
from bertwright.train.averaging.averaging import Averaging
from bertwright.train.checkpoints import checkpoint as checkpoints
from bertwright.train.monitor.metrics import saved_before
from bertwright.train.ranks.agreement import assert_equal
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup.job import TrainJob
from bertwright.train.state import State
from bertwright.transfer.parts import CHECKPOINTS


@dataclass(frozen=True)
class Start:
    """The state to resume from, besides the weights."""

    state: State
    moments: Mapping[str, torch.Tensor]
    """The complete optimizer state by name (`optim.state`)."""
    init: Mapping[str, str] = field(default_factory=dict)
    """At step 0, what the network that training starts from and this one do not have in common, as recorded."""
    new_V: NDArray[np.bool_] | None = None
    """[V] at step 0, which entries of the vocabulary that network does not have, if it may have another one."""


def find_start(job: TrainJob, model: Model, averaging: Averaging | None, ranks: Ranks, log: Log) -> Start:
    """Return the state to resume from, the same on all ranks, with weights and average loaded.

    Raises `CheckpointError` if the checkpoints of an earlier start are missing or damaged: training never silently
    restarts from step 0.
    """
    out = job.out
    # Each rank looks for itself; on a shared disk with delays, one rank may see an older checkpoint than another.
    ours = checkpoints.newest_valid(out / CHECKPOINTS, log)
    known = f"{ours.path.name} ({sha256_of(ours.manifest['files'])[:12]})" if ours else "none"
    assert_equal(ranks, known, f"the checkpoint to continue from in {out / CHECKPOINTS}")
    if ours is not None:
        return _resume(ours, job, model, averaging, log)
    if saved_before(out / "metrics.jsonl") or (out / "model").is_dir():  # never train over a finished model
        raise CheckpointError(
            f"{out / 'metrics.jsonl'} lists checkpoints, but {out / CHECKPOINTS} has none. Restore them to continue, "
            f"or move {out} away to start again from step 0."
        )
    return _start_anew(job, model, log)


def _resume(ours: Artifact, job: TrainJob, model: Model, averaging: Averaging | None, log: Log) -> Start:
    """Return the state and moments of a checkpoint, after loading its weights and average."""
    state, weights, moments = checkpoints.load(ours)
    if state.phase >= len(job.config.phases):
        raise CheckpointError(
            f"{ours.path} is in phase {state.phase}, but the recipe has only {len(job.config.phases)} phases, counted "
            "from 0. Restore the checkpoint from a copy, or move it away to continue from an older one."
        )
    _load_weights(model, weights, f"the checkpoint {ours.path}")
    if averaging:
        averaging.load(checkpoints.load_average(ours), model.state_dict())
    log.say(f"train: resuming from {ours.path.name} (phase {state.phase}, step {state.data_step:,})")
    return Start(state, moments)


def _start_anew(job: TrainJob, model: Model, log: Log) -> Start:
    """Return the state at step 0, after loading the weights of `train.init_from`, if the recipe has one."""
    config = job.config
    moments: Mapping[str, torch.Tensor] = {"step": torch.tensor(0)}
    if config.init_from is None:
        return Start(State(), moments)
    # Not imported by a training that starts from random weights.
    from bertwright.model.transfer_config import no_moments
    from bertwright.train.setup.initial_weights import start_from

    if (checkpoint := config.init_checkpoint()) is not None:
        if config.init_embeddings != "random":
            raise ArtifactError(f"train.init_embeddings {config.init_embeddings} {no_moments(config.init_from)}.")
        log.say(f"train: starting from {config.init_from}")
        return Start(State(), _load_checkpoint(checkpoint, job, model))
    return Start(State(), moments, *start_from(model, config.init_from, config, job.vocab, log))


def _load_checkpoint(given: Artifact, job: TrainJob, model: nn.Module) -> Mapping[str, torch.Tensor]:
    """Load the weights of another training's checkpoint with the same vocabulary and network, and return the
    moments."""
    given.verify()
    words, ours = given.manifest["inputs"]["vocabulary"], job.checkpoint.inputs["vocabulary"]
    if words != ours:
        raise ArtifactError(
            f"train.init_from {given.path} was trained with another vocabulary ({words[:12]} instead of {ours[:12]}): "
            "its embeddings would belong to other words. Set vocab.file to the vocabulary of that training."
        )
    if wrong := other_moments(job.optim.kind, given.manifest["config"].get("optim", {}).get("kind", job.optim.kind)):
        raise ArtifactError(f"train.init_from {given.path} {wrong}.")
    _, weights, moments = checkpoints.load(given)
    _load_weights(model, weights, f"train.init_from {given.path}")
    # The moments fit these weights, but the update count belongs to a schedule that this training may not continue.
    restart = job.config.phases[0].restart_bias_correction
    return moments | {"step": torch.tensor(0)} if restart else moments


def _load_weights(model: nn.Module, weights: Mapping[str, torch.Tensor], source: str) -> None:
    # Compare shapes first: torch's own message lists every tensor and does not say what to do.
    own = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    given = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    differing = [name for name in sorted(own.keys() | given.keys()) if own.get(name) != given.get(name)]
    if differing:
        name = differing[0]
        raise ArtifactError(
            f"{source} is another network: {name} is {given.get(name, 'absent')} there and {own.get(name, 'absent')} "
            f"here ({len(differing)} tensors differ). Set [model] in the recipe to that network."
        )
    model.load_state_dict(weights)
