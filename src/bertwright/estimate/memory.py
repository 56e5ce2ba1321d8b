"""Device memory of a training phase by purpose: the rules of `train/memory`, split into parts."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from bertwright.core.errors import BertwrightError
from bertwright.estimate.work import PhaseWork
from bertwright.model.config import NetworkConfig
from bertwright.recipe import Recipe
from bertwright.train.memory.held_tensors import held_bytes
from bertwright.train.memory.kept_numbers import HELDOUT_MICRO_BATCH, Pass, scoring_bytes
from bertwright.train.memory.rank_memory import PROGRAM_BYTES, computing_of, pass_bytes, share_of, training_bytes
from bertwright.train.precision.config import AutoPrecisionConfig, Bf16Config, Fp32Config, PrecisionConfig
from bertwright.train.settings.phase_config import PhaseConfig

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
    """Memory that each of `ranks` ranks holds in the phase of `work`; where a CPU may train in one of two precisions
    (`train.precision = auto`), in the one that takes more."""
    if gpu or not isinstance(recipe.train.precision, AutoPrecisionConfig):
        return _memory_of(recipe, work, ranks, gpu)
    either = (with_precision(recipe, precision) for precision in (Fp32Config(), Bf16Config()))
    return max((_memory_of(each, work, ranks, gpu) for each in either), key=lambda memory: memory.total)


def with_precision(recipe: Recipe, precision: PrecisionConfig) -> Recipe:
    """Return the recipe with another precision."""
    return recipe.model_copy(update={"train": recipe.train.model_copy(update={"precision": precision})})


def _memory_of(recipe: Recipe, work: PhaseWork, ranks: int, gpu: bool) -> Memory:
    network, computing = recipe.network(), computing_of(recipe.train, recipe.optim, ranks, gpu)
    share = share_of(work.phase, ranks)
    given = work.phase.micro_batch
    sequences = 1 if given == "auto" else min(given or share, share)
    held = held_bytes(network, computing.sharing, sequences < share, work.only_rows)
    weights = held.weights + computing.copies * network.parameters
    activations = max(
        pass_bytes(network, work.phase, computing, work.largest_pass(computing)),
        scoring_bytes(network, work.phase, _scoring_batch(recipe, work, computing.full_rows)),
    )
    beside = PROGRAM_BYTES + weights + held.gradients + activations
    drawn = sequences if gpu else 2 * share
    return Memory(
        weights=weights,
        gradients=held.gradients,
        optimizer=training_bytes(network, work.phase, computing, activations) - beside,
        activations=activations,
        batches=_DRAWN * drawn * work.mean_length,
        teacher=teacher_bytes(recipe, network, work.phase, ranks),
        program=PROGRAM_BYTES,
    )


def _scoring_batch(recipe: Recipe, work: PhaseWork, full_rows: bool) -> Pass:
    """A batch of held-out sequences; every rank scores all batches one after another."""
    sequences = min(HELDOUT_MICRO_BATCH, recipe.train.heldout_sequences)
    return Pass.full(sequences, work.phase.length, 0.0 if full_rows else sequences * work.mean_length)


def teacher_bytes(recipe: Recipe, network: NetworkConfig, phase: PhaseConfig, ranks: int = 1) -> float:
    """Return the approximate bytes that a teacher adds on each rank in a phase; 0 without a teacher.

    4 bytes a parameter; one layer of states during its forward pass, none of which is kept for a backward pass; and for
    each prediction its logits and the gradient of the soft term.
    """
    teacher = recipe.task.taught_by
    if teacher is None:
        return 0.0
    from bertwright.model.pretrained_config import read_pretrained  # reads the folders of other programs

    try:
        theirs = read_pretrained(teacher).network
    except BertwrightError:
        return 0.0  # another verdict reports it
    share = share_of(phase, ranks)
    # `auto` is rejected with a teacher.
    sequences = share if phase.micro_batch == "auto" else min(phase.micro_batch or share, share)
    tokens = phase.micro_tokens or sequences * phase.length
    predictions = phase.masking.most(phase.length) * tokens / phase.length
    layer = tokens * (2 * theirs.intermediate_size + 8 * theirs.hidden_size)
    return 4.0 * (theirs.parameters + layer + predictions * (theirs.vocab_size + network.vocab_size))
