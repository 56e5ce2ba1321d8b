"""One training as the stage passes it to its ranks: settings, phases, identity, output folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bertwright.core.artifact import Artifact
from bertwright.core.config import Identity
from bertwright.examples.batch import MicroBatch
from bertwright.examples.config import PAIRS
from bertwright.model.config import NetworkConfig
from bertwright.model.flops import step_flops
from bertwright.optim.config import OptimConfig
from bertwright.tasks.task import Asked
from bertwright.train.checkpoints.checkpoint import worth_keeping
from bertwright.train.config import TrainConfig
from bertwright.train.monitor.expected import Bands
from bertwright.train.monitor.metrics import rows_beside
from bertwright.train.settings.identity import Inputs, Settings, checkpoint_identity, identity
from bertwright.train.settings.phases import Phase, resolve_phases
from bertwright.train.state import state_of

if TYPE_CHECKING:  # imported only if requested
    from bertwright.transfer.mirror import MirroredTraining


_SAMPLE = 64
"""Number of examples by which the operations of a phase are estimated."""


@dataclass(frozen=True)
class TrainJob:
    """One training, identical on all ranks and at every start."""

    config: TrainConfig
    network: NetworkConfig
    optim: OptimConfig
    vocab: Artifact
    phases: list[Phase]
    identity: Identity
    """Identity of the run."""
    checkpoint: Identity
    """Identity of its checkpoints: without the lengths of phases."""
    out: Path
    pair_task: str
    """Name of the loss term for sentence pairs: nsp or sop; empty if there are no pairs."""
    scored_after: int
    """Token slots of the held-out sequences that are scored afterwards, for the forecast of the remaining time."""
    saved: Callable[[Path], None]
    """Called on rank 0 with the path of each new checkpoint."""
    step_bands: Bands = ()
    """Expected seconds of a step of each phase."""
    choices: Mapping[str, Any] = field(default_factory=dict)
    """How settings `auto` were resolved, as the record of this start says it."""
    fills_rows: bool = False
    """Whether micro-batches of a compiled network are packed into full rows whatever the recipe says."""
    questions: Asked | None = None
    """What the network is asked at every checkpoint."""

    def in_full_rows(self, phase: Phase, world: int) -> Phase:
        """Return a phase of a compiled network in micro-batches of full rows; one whose recipe says how many rows a
        micro-batch has, and that it is compiled, as it is."""
        config, settings = self.config.phases[phase.index], phase.loader.settings
        fixed = config.micro_batch not in (0, "auto")
        if phase.loader.examples.most_sequences > 1 or (fixed and not self.fills_rows):
            return phase
        packing = self.fills_rows or config.packing or config.micro_tokens > 0
        rows = settings.micro_batching.micro_batch
        if config.micro_tokens:
            rows = config.micro_tokens // settings.length
        elif fixed and packing and not config.packing:
            # As many tokens as the recipe's sequences have, so that memory suffices.
            rows = int(rows * phase.loader.examples.mean_tokens / settings.length)
        return replace(phase, loader=phase.loader.in_full_rows(world, max(1, rows), packing))

    def flops_of(self, phase: Phase, done: int = 0) -> float:
        """Return the operations of the steps of a phase after the first `done`, estimated by some of its examples."""
        batches = phase.loader.settings.batches
        some = min(_SAMPLE, batches.at(0))
        left = batches.before(phase.steps) - batches.before(min(done, phase.steps))
        return left * self.flops_of_batch(phase.loader.batch(0, some), phase.only_new_rows) / some

    def flops_of_batch(self, batch: MicroBatch, only_rows: bool = False) -> float:
        """Return the operations of the forward and backward passes over a batch, as `step_flops`."""
        return float(step_flops(self.network, np.diff(batch.cu_seqlens), batch.counts.predictions, only_rows))

    def mirrored_training(self, prune: bool) -> MirroredTraining:
        """Return what is copied to the recipe's mirror, and whether checkpoints that are not kept here are removed
        there."""
        from bertwright.transfer.mirror import MirroredTraining

        kept = partial(worth_keeping, keep=self.config.keep_checkpoints) if prune else None
        return MirroredTraining(self.config.mirror, self.out, self.checkpoint, state_of, rows_beside, kept)


def job_of(
    settings: Settings, inputs: Inputs, out: Path, scored_after: int, saved: Callable[[Path], None], step_bands: Bands
) -> TrainJob:
    """Build the `TrainJob` of these sections and `inputs` in the folder `out`; other arguments as in `TrainJob`."""
    config = settings.train
    plan = inputs.examples.manifest["config"]["examples"]["plan"]
    pairs = config.objective.next_sentence(plan in PAIRS)
    run = identity(settings, pairs, inputs.fingerprints, out)
    # The vocabulary's own hash, so that weights are never read with another vocabulary: see `resume`.
    words = {"vocabulary": str(inputs.vocab.counts["vocabulary"])}
    return TrainJob(
        config=config,
        network=config.objective.network(settings.model, int(inputs.vocab.counts["entries"]), pairs),
        optim=settings.optim,
        vocab=inputs.vocab,
        phases=resolve_phases(config, inputs.examples, inputs.vocab),
        identity=run,
        checkpoint=checkpoint_identity(settings, pairs, replace(run, inputs={**run.inputs, **words})),
        out=out,
        pair_task=PAIRS.get(plan, ""),
        scored_after=scored_after,
        saved=saved,
        step_bands=step_bands,
    )
