"""What `train` counts, as its manifest has it, and a row of `metrics.jsonl`."""

from __future__ import annotations

from functools import cache
from typing import Required

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from bertwright.core.shapes import Count, Flag, Number, Score, Text


class _Network(TypedDict):
    num_hidden_layers: Count
    hidden_size: Count
    num_attention_heads: Count
    intermediate_size: Count
    max_position_embeddings: Count
    vocab_size: Count
    hidden_dropout_prob: Number
    next_sentence: Flag


NETWORK = tuple(_Network.__annotations__)
"""What is written of a network of any family."""


class Start(TypedDict):
    """What is written of each start of the program, beside what only its own training asks for."""

    from_step: Count
    ranks: Count
    threads: Count
    device: Text
    machine: Text
    torch: Text


class Unfinished(TypedDict):
    """The checkpoint that stands for a training which has not ended, its step, and the steps of the whole."""

    checkpoint: Text
    step: Count
    steps: Count
    phase: Count


class _Averaging(TypedDict):
    """The average that the model is, and the held-out scores of the weights that were trained."""

    kind: Text
    trained_heldout: dict[Text, Score]


class Counts(TypedDict, total=False):
    """Of the whole training, over all its starts."""

    parameters: Count
    network: _Network
    init: dict[Text, Text] | None
    steps: Count
    phase_steps: list[Count]
    phase_ends: list[Count]
    sequences_seen: Count
    tokens_seen: Count
    tflops_done: Number
    hours: Number
    train_seconds: Number
    tokens_per_second: Number
    heldout: dict[Text, Score]
    averaging: _Averaging
    extensions: list[dict[Text, Count]]
    left_out: list[dict[Text, Count]]
    sessions: list[Start]
    unfinished: Unfinished
    vocabulary: Text
    weights: Text
    peak_memory_bytes: Count | None
    device: Text
    ranks: Count
    threads: Count
    torch: Text


class _Row(TypedDict, total=False):
    """A row of metrics.jsonl."""

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]

    phase: Count
    step: Count
    steps: Count
    total_steps: Required[Count]
    saved: Flag
    mlm_loss: Score
    mlm_accuracy: Score
    nsp_loss: Score
    learning_rate: Number
    loss_scale: Number
    tokens_seen: Count
    seconds: Number
    tokens_per_second: Number
    tflops_per_second: Score
    floor_ratio: Score
    data_wait_share: Number
    memory_bytes: Count
    remaining_low_seconds: Number
    remaining_high_seconds: Number
    heldout_mlm_loss: Score
    heldout_mlm_accuracy: Score
    heldout_nsp_accuracy: Score
    heldout_sop_accuracy: Score
    stopped: Text
    outside_band: Text


@cache
def row_type() -> TypeAdapter[_Row]:
    """What checks a row; made with the first one, as it takes longer than all else that is loaded with it."""
    return TypeAdapter(_Row)
