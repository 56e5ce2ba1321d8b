"""A training batch as text, for `bertwright inspect RUN --batch STEP`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bertwright.core.errors import RecipeError
from bertwright.examples.batch import MicroBatch, batch_hash, hash_digits
from bertwright.pipeline.run_folder import RunFolder, recorded_recipe
from bertwright.vocab.tokenizer import load_tokenizer

SHOWN_SEQUENCES = 4
_LABELS = {False: ("next", "random next"), True: ("in order", "swapped")}
"""The meaning of the pair labels 0 and 1: for next-sentence pairs (False) and for sentence order (True)."""


def describe_batch(folder: Path, phase: int, step: int) -> dict[str, Any]:
    """The first sequences of a training batch, masked tokens as [MASK=word], from the sealed settings and the store.

    `step` counts from 1, as in the training log. The returned `hash` equals `batch` in the step's row of metrics.jsonl,
    for any number of ranks and any split into micro-batches.
    """
    (recipe, different), run = recorded_recipe(folder), RunFolder(folder)
    phases = run.phases(recipe)
    if not 0 <= phase < len(phases) or not 1 <= step <= phases[phase].steps:
        spans = ", ".join(f"phase {p.index}: 1 to {p.steps}" for p in phases)
        raise RecipeError(f"there is no step {step} in phase {phase}; the steps are {spans}.")
    (batch,) = phases[phase].loader.step(step - 1)
    facts: dict[str, Any] = {
        "what": f"training batch of phase {phase}, step {step}",
        "sequences": batch.counts.sequences,
        "tokens": batch.counts.tokens,
        "masked": batch.counts.predictions,
        "hash": hash_digits(batch_hash(batch)),
    }
    if different:
        facts["recipe.toml differs"] = "\n".join(different)
    files = recipe.task.files
    labels = files.labels if files else _LABELS[recipe.examples.plan == "sentence-order"]
    return {**facts, **_sequences(batch, load_tokenizer(run.artifact("vocab")).vocabulary, labels)}


def _sequences(batch: MicroBatch, vocabulary: list[str], labels: Sequence[str]) -> dict[str, str]:
    """The first sequences as words; those with a label show its name in `labels`, or the number."""
    predicted = dict(zip(batch.prediction_positions.tolist(), batch.labels.tolist(), strict=True))
    shown = {}
    for number, (start, end) in enumerate(itertools.pairwise(batch.cu_seqlens.tolist()[: SHOWN_SEQUENCES + 1])):
        words = [_token(vocabulary, int(batch.token_ids[i]), predicted.get(i)) for i in range(start, end)]
        label = f" ({_label(batch.sequence_labels[number], labels)})" if batch.sequence_weights[number] else ""
        shown[f"sequence {number}{label}"] = " ".join(words)
    return shown


def _label(label: Any, labels: Sequence[str]) -> str:
    """The name of a class, a number or the numbers of an answer's tokens, or the names of several labels."""
    if len(labels) == 1:
        return " to ".join(f"{number:g}" for number in np.atleast_1d(label))
    if np.ndim(label) == 0:
        return labels[int(label)]
    return ", ".join(name for name, has in zip(labels, label, strict=True) if has) or "no label"


def _token(vocabulary: list[str], token: int, label: int | None) -> str:
    return vocabulary[token] if label is None else f"[{vocabulary[token].strip('[]')}={vocabulary[label]}]"
