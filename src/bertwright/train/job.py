"""One training as the stage hands it to its ranks: settings, phases, identity, where it writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bertwright.core.artifact import Artifact
from bertwright.core.config import Identity
from bertwright.model.config import NetworkConfig
from bertwright.optim.config import OptimConfig
from bertwright.train.config import TrainConfig
from bertwright.train.phases import Phase


@dataclass(frozen=True)
class Job:
    """One training, the same on all ranks and at every start."""

    config: TrainConfig
    network: NetworkConfig
    optim: OptimConfig
    vocab: Artifact
    phases: list[Phase]
    identity: Identity
    """Of the run."""
    checkpoint: Identity
    """Of its checkpoints: without the lengths of phases."""
    out: Path
    pair_task: str
    """What the labels of pairs say, as a term of the loss is called: nsp or sop."""
    scored_after: int
    """Tokens of room of the held-out sequences that are scored afterwards, for the time that is left."""
    saved: Callable[[Path], None]
    """Takes the path of each new checkpoint, on the first rank."""
