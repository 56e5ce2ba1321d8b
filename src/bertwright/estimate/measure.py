"""Measure, in some seconds, how long this machine takes for a recipe's forward and backward passes.

Network, teacher, optimizer and computation settings are the recipe's; tokens and labels are random, because their
values do not affect the time. This is the only module of the package that imports torch, and it is loaded only to
measure.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bertwright.estimate.measurement_cache import Measured, key_of, today
from bertwright.estimate.work import PhaseWork
from bertwright.examples.batch import MicroBatch
from bertwright.examples.config import PAIRS
from bertwright.examples.padding import Room
from bertwright.model.batch import PackedBatch
from bertwright.model.config import has_row_per_entry
from bertwright.model.family import ANSWERS
from bertwright.model.pretrained_config import read_pretrained
from bertwright.recipe import Recipe
from bertwright.train.engine.chosen_rows import Rows
from bertwright.train.engine.single import Single
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup.trainee import Trainee, build_network
from bertwright.train.setup.training_environment import torch_set_for, training_device
from bertwright.train.step import StepSettings, train_step

SECONDS = 20.0
"""Approximate total measuring time of all phases; each phase runs at least three steps, however long they take."""
_LEAST = 3


def measure(recipe: Recipe, works: Sequence[PhaseWork], ranks: int, seconds: float = SECONDS) -> dict[str, Measured]:
    """Measure the passes of each phase on one device, as one of `ranks` ranks; results are keyed by `key_of`.

    Raises `RecipeError` if this machine does not support the recipe's settings, and as `read_pretrained` does.
    """
    with torch_set_for(recipe.train):
        trained = _build_trainee(recipe)
        return {
            key_of(recipe, work, sequences): _measure_phase(trained, recipe, work, sequences, seconds / len(works))
            for work in works
            for sequences in [work.micro_sequences(ranks)]
        }


def _build_trainee(recipe: Recipe) -> Trainee:
    network = build_network(recipe.network(), recipe.train, training_device(recipe.train.device))
    return network.trainee(Single(network.model, recipe.optim), Ranks(), PAIRS.get(recipe.examples.plan, "nsp"))


def _measure_phase(trained: Trainee, recipe: Recipe, work: PhaseWork, sequences: int, seconds: float) -> Measured:
    """Time steps of one and of two micro-batches: the difference is one micro-batch, the rest is the update."""
    trained.train_rows(_all_rows(trained) if work.only_rows else None)
    batch = synthetic(recipe, work, sequences)
    rows = len(batch.cu_rows) - 1
    room = Room(rows, work.phase.length, 2 * rows, max(1, len(batch.labels)))
    began = time.perf_counter()
    taken: tuple[list[float], list[float]] = ([], [])
    _step(trained, batch, room, 1)  # warm up compilers, caches and first touches of memory
    while len(taken[1]) < _LEAST or time.perf_counter() - began < seconds:
        # In turn, so that both kinds of step meet the same load of the machine.
        for number in (1, 2):
            taken[number - 1].append(_step(trained, batch, room, number))
    one, two = map(statistics.median, taken)
    # Under other load, the step of one micro-batch may be measured as slower.
    each = min(max(two - one, 0.5 * one), one)
    return Measured(each, max(one - each, 0.0), today())


def _all_rows(trained: Trainee) -> Rows:
    """The rows of all entries: how many of them are new is known only when training starts."""
    named = {name: each for name, each in trained.model.named_parameters() if has_row_per_entry(name)}
    return {name: torch.arange(len(each)) for name, each in named.items()}


def _step(trained: Trainee, batch: MicroBatch, room: Room, number: int) -> float:
    """Seconds of a step of `number` equal micro-batches."""
    batches: list[PackedBatch] = [trained.read(batch, lambda: room) for _ in range(number)]
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
    """A micro-batch of `sequences` sequences of random tokens and labels, with the lengths and predictions of the
    phase."""
    lengths = lengths_like(work.mean_length, work.examples.longest, sequences)
    # An example longer than the phase allows is several sequences.
    if (each := math.ceil(work.examples.longest / work.phase.length)) > 1:
        lengths = np.repeat(np.maximum(lengths // each, 3), each)
    masked = np.clip(np.rint(work.predictions * lengths / work.mean_length), 1, lengths - 2).astype(np.int64)
    network = recipe.network()
    masked = np.minimum(masked, work.phase.masking.most(work.phase.length) if network.predicts_tokens else 0)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    random, entries = np.random.default_rng(1), _entries(recipe)
    classes = 0 if network.predicts_tokens else network.sequence_logits
    labels: NDArray[Any] = random.integers(max(classes, 1), size=len(lengths))
    if network.head in ANSWERS:  # the ends of answers; or choices, each the only one of its question
        labels = np.ones((len(lengths), 2), np.int64)
    elif network.gives_vectors:  # in pairs of texts that belong together
        pair = np.arange(len(lengths)) // 2
        labels = np.stack([np.arange(len(lengths)) % 2 + 1, pair, np.arange(len(lengths))], 1)
        # A text that is left over is a negative.
        labels[len(lengths) // 2 * 2 :, :2] = 3, max(0, len(lengths) // 2 - 1)
    elif network.head == "several":
        labels = np.eye(classes, dtype=np.float32)[labels]
    elif classes == 1:  # targets of a regression are floats
        labels = labels.astype(np.float32)
    return MicroBatch(
        token_ids=random.integers(5, entries, ends[-1]),
        position_ids=_ranges(lengths),
        segment_ids=np.zeros(ends[-1], np.int64),
        cu_seqlens=ends,
        cu_rows=ends,
        max_row=int(lengths.max()),
        prediction_positions=np.repeat(ends[:-1] + 1, masked) + _ranges(masked),
        labels=random.integers(5, entries, masked.sum()),
        weights=np.ones(masked.sum(), np.float32),
        sequence_labels=labels,
        sequence_weights=np.ones(len(lengths), np.float32),
    )


def _entries(recipe: Recipe) -> int:
    """The number of ids that every network that reads the batch has a row for."""
    own, teacher = recipe.network().vocab_size, recipe.task.taught_by
    if teacher is None:
        return own
    return min(own, read_pretrained(teacher).network.vocab_size)


def lengths_like(mean: float, longest: int, sequences: int) -> NDArray[np.int64]:
    """Return `sequences` lengths, [sequences], with this mean: some are `longest`, the others spread evenly over the
    shorter lengths, as in `plan.calls.distinct_lengths`."""
    shorter = round(sequences * min(1.0, 2 - 2 * mean / longest))
    lengths = np.full(sequences, float(longest if shorter else mean))
    if shorter:
        steps = np.arange(1, shorter + 1)
        lengths[-shorter:] = (sequences * mean - (sequences - shorter) * longest) * steps / steps.sum()
    rounded: NDArray[np.int64] = np.clip(np.rint(lengths), 4, longest).astype(np.int64)
    return rounded


def _ranges(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 0 to length - 1 for each length, one after another: [sum of lengths]."""
    return np.concatenate([np.arange(length) for length in lengths])
