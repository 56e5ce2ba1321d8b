"""Device memory of a training phase by purpose: the rules of `train.sizes`, split into parts."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from bertwright.check.work import PhaseWork
from bertwright.recipe import Recipe
from bertwright.train.memory.held_tensors import held_bytes
from bertwright.train.memory.kept_numbers import HELDOUT_MICRO_BATCH, Pass, scoring_bytes
from bertwright.train.memory.rank_memory import PROGRAM_BYTES, computing_of, pass_bytes, share_of, training_bytes

_DRAWN = 32
"""Bytes per token of a batch: ids, positions, segments and packing boundaries, as drawn and as tensors."""


@dataclass(frozen=True)
class Memory:
    """Bytes per device."""

    weights: float
    """Includes their copies in 16 bits and those that weight averaging keeps."""
    gradients: float
    optimizer: float
    """Moments, scratch space of a step, and the state gathered or copied for a checkpoint."""
    activations: float
    """What a forward pass keeps for its backward pass, logits and their gradients; or the memory of scoring, if that is
    larger."""
    batches: float
    """The current step and the one that is drawn ahead; a GPU holds only one micro-batch."""
    teacher: float
    program: float
    """Memory of torch and its libraries."""

    @property
    def total(self) -> float:
        """Sum of all parts."""
        return float(sum(asdict(self).values()))


def memory_of(recipe: Recipe, work: PhaseWork, ranks: int, gpu: bool) -> Memory:
    """Memory that each of `ranks` ranks holds in the phase of `work`."""
    network, computing = recipe.network(), computing_of(recipe.train, recipe.optim, ranks, gpu)
    share = share_of(work.phase, ranks)
    given = work.phase.micro_batch
    sequences = 1 if given == "auto" else min(given or share, share)
    held = held_bytes(network, computing.sharing, sequences < share)
    weights = held.weights + computing.copies * network.parameters
    activations = max(
        pass_bytes(network, work.phase, computing, work.largest_pass(computing)),
        scoring_bytes(network, work.phase, _scored(recipe, work, computing.full_rows)),
    )
    beside = PROGRAM_BYTES + weights + held.gradients + activations
    drawn = sequences if gpu else 2 * share
    return Memory(
        weights=weights,
        gradients=held.gradients,
        optimizer=training_bytes(network, work.phase, computing, activations) - beside,
        activations=activations,
        batches=_DRAWN * drawn * work.mean_length,
        teacher=_teacher(recipe, work, ranks),
        program=PROGRAM_BYTES,
    )


def _teacher(recipe: Recipe, work: PhaseWork, ranks: int) -> float:
    if recipe.task.taught_by is None:
        return 0.0
    from bertwright.check.pretrained import teacher_bytes  # reads the folders of other programs

    return float(teacher_bytes(recipe, recipe.network(), work.phase, ranks))


def _scored(recipe: Recipe, work: PhaseWork, full_rows: bool) -> Pass:
    """A batch of held-out sequences; every rank scores all batches one after another."""
    sequences = min(HELDOUT_MICRO_BATCH, recipe.train.heldout_sequences)
    return Pass.full(sequences, work.phase.length, 0.0 if full_rows else sequences * work.mean_length)
