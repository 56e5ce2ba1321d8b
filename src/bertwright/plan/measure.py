"""How long this machine takes for a recipe's own forward and backward passes, measured in some seconds.

The network, the optimizer and how they are computed are the recipe's; the text is random numbers, whose values change
no time. One file of this room imports torch, and it is loaded for a measurement alone.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

import numpy as np
import torch

from bertwright.core.errors import RecipeError
from bertwright.examples.batch import MicroBatch
from bertwright.examples.config import PAIRS
from bertwright.examples.padding import Room
from bertwright.model.batch import PackedBatch
from bertwright.objectives.config import PreTrainingConfig
from bertwright.plan.kept import Measured, key_of, today
from bertwright.plan.work import PhaseWork
from bertwright.recipe import Recipe
from bertwright.train.engine.single import Single
from bertwright.train.network import build_network
from bertwright.train.ranks import Ranks
from bertwright.train.start import torch_set_for, training_device
from bertwright.train.step import StepSettings, train_step
from bertwright.train.trained import Trained

SECONDS = 20.0
"""That all phases together are measured for, about; a phase has three steps at least, however long they are."""
_LEAST = 3


def measure(recipe: Recipe, works: Sequence[PhaseWork], ranks: int, seconds: float = SECONDS) -> dict[str, Measured]:
    """Measure the passes of each phase on one device as one of so many ranks, by `key_of`.

    `RecipeError` where the recipe trains beside a teacher, or where this machine cannot compute as it asks.
    """
    config = recipe.train
    if not isinstance(config.objective, PreTrainingConfig):
        raise RecipeError("--measure knows no teacher, and train.objective has one. Leave --measure out.")
    with torch_set_for(config):
        trained = _trained(recipe)
        return {
            key_of(recipe, work, sequences): _measured(trained, recipe, work, sequences, seconds / len(works))
            for work in works
            for sequences in [work.micro_sequences(ranks)]
        }


def _trained(recipe: Recipe) -> Trained:
    network = build_network(recipe.network(), recipe.train, training_device(recipe.train.device))
    return network.trained(Single(network.model, recipe.optim), Ranks(), PAIRS.get(recipe.examples.plan, "nsp"))


def _measured(trained: Trained, recipe: Recipe, work: PhaseWork, sequences: int, seconds: float) -> Measured:
    """The difference of a step of two micro-batches and one of one is a micro-batch; the rest is the update."""
    batch = synthetic(recipe, work, sequences)
    room = Room(sequences, work.phase.length, work.phase.masking.most(work.phase.length))
    began = time.perf_counter()
    taken: tuple[list[float], list[float]] = ([], [])
    _step(trained, batch, room, 1)  # compilers, caches, memory that is touched first
    while len(taken[1]) < _LEAST or time.perf_counter() - began < seconds:
        for number in (1, 2):
            taken[number - 1].append(_step(trained, batch, room, number))
    one, two = map(statistics.median, taken)
    # A machine that other programs use may be slower for the shorter one.
    each = min(max(two - one, 0.5 * one), one)
    return Measured(each, max(one - each, 0.0), today())


def _step(trained: Trained, batch: MicroBatch, room: Room, number: int) -> float:
    """Seconds of a step of so many equal micro-batches."""
    batches: list[PackedBatch] = [trained.read(batch, room) for _ in range(number)]
    totals = {term: number * getattr(batch.counts, _COUNTED[what]) for term, what in trained.objective.counted.items()}
    _wait(trained.precision.device)
    began = time.perf_counter()
    train_step(trained, batches, totals, StepSettings(learning_rate=1e-6, dropout_key=1))
    _wait(trained.precision.device)
    return time.perf_counter() - began


_COUNTED = {"predictions": "predictions", "pairs": "sequences", "sequences": "sequences"}


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def synthetic(recipe: Recipe, work: PhaseWork, sequences: int) -> MicroBatch:
    """So many sequences of the mean length, of random tokens, with as many predictions as the phase has."""
    length = max(4, round(work.mean_length))
    masked = min(max(1, round(work.predictions)), length - 2)
    tokens, entries = sequences * length, recipe.network().vocab_size
    random = np.random.default_rng(1)
    ends = np.arange(sequences + 1, dtype=np.int32) * length
    places = (ends[:-1, None] + 1 + np.arange(masked)).reshape(-1).astype(np.int64)
    return MicroBatch(
        token_ids=random.integers(5, entries, tokens),
        position_ids=np.tile(np.arange(length), sequences),
        segment_ids=np.zeros(tokens, np.int64),
        cu_seqlens=ends,
        cu_rows=ends,
        max_row=length,
        prediction_positions=places,
        labels=random.integers(5, entries, len(places)),
        weights=np.ones(len(places), np.float32),
        sequence_labels=np.zeros(sequences, np.int64),
        sequence_weights=np.ones(sequences, np.float32),
    )
