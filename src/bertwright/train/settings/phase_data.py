"""Opens the data that a phase trains on and is scored on: the run's examples, its own, labelled texts, or imported
data.

Does not import torch.
"""

from __future__ import annotations

import numpy as np

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.errors import ArtifactError
from bertwright.examples.batch import MicroBatch
from bertwright.examples.config import PlanSet
from bertwright.examples.loader import Heldout, Loader, LoaderSettings
from bertwright.examples.planned import heldout_batches, open_loader
from bertwright.examples.store import Store
from bertwright.tasks.members import task_of
from bertwright.train.config import TrainConfig
from bertwright.train.memory.kept_numbers import HELDOUT_MICRO_BATCH
from bertwright.train.settings.phase_config import PhaseConfig


def loader_of(config: TrainConfig, index: int, settings: LoaderSettings, examples: Artifact, vocab: Artifact) -> Loader:
    """Return the loader of the training batches of phase `index`.

    Raises `ArtifactError` if they contain documents that the run holds out.
    """
    if files := task_of(config.objective).own_examples:
        return Loader(files.open(examples, "train", settings.length, vocab), settings)
    if own := [data for data in config.imported_data() if data.phase == index]:
        # Imported only for data in other formats, to load few modules otherwise.
        from bertwright.examples.imported import open_imported

        return open_imported(examples, own[0], settings, vocab)
    phase = config.phases[index]
    source = examples if phase.data is None else _own_data(phase, index, examples)
    return open_loader(source, PlanSet(length=phase.length, document_range=phase.document_range), settings, vocab)


def _own_data(phase: PhaseConfig, index: int, examples: Artifact) -> Artifact:
    """Return the phase's own examples; raise `ArtifactError` if they contain documents that the run holds out."""
    assert phase.data is not None
    own = open_artifact(phase.data, "examples")
    # Compared by text hash: a document keeps its hash if another run or dump numbers it differently.
    leaked = int(np.isin(Store.open(own).hashes, Store.open(examples, "heldout").hashes).sum())
    if leaked:
        raise ArtifactError(
            f"train.phases.{index}.data {phase.data} trains on {leaked:,} documents that this run holds out, so its "
            "held-out scores would be wrong. Make that data with an examples.heldout at least as large as this run's."
        )
    return own


def heldout_of(config: TrainConfig, phase: PhaseConfig, examples: Artifact) -> list[MicroBatch]:
    """Return the run's held-out batches, also for a phase with its own data: all phases are scored on the same
    documents."""
    length, masking, most = phase.length, phase.masking, config.heldout_sequences
    if files := task_of(config.objective).own_examples:
        heldout = Heldout.evenly(files.open(examples, "heldout", length), most)
        return list(heldout.batches(HELDOUT_MICRO_BATCH))
    # Always the rate of the first step, even if a schedule changes it: scores of all steps use the same masks.
    rate = masking.rate_at(0)
    return list(heldout_batches(examples, length, masking.most(length), rate, HELDOUT_MICRO_BATCH, most))
