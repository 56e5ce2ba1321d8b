"""Types of the counts that `train` writes to its manifest, and of a row of `metrics.jsonl`."""

from __future__ import annotations

from functools import cache
from typing import Annotated, NotRequired, Required

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

from bertwright.core.shapes import Count, Flag, Number, Score, Text, Unfinished


class _Network(TypedDict):
    num_hidden_layers: Count
    hidden_size: Count
    num_attention_heads: Count
    intermediate_size: Count
    max_position_embeddings: Count
    vocab_size: Count
    hidden_dropout_prob: Number
    next_sentence: Flag


class _NetworkWithLabels(_Network, total=False):
    labels: list[Text]
    """The classes of a classifier."""


NETWORK = tuple(_Network.__annotations__)
"""Network values recorded for every family."""


_Threads = Annotated[int, Field(strict=True, ge=1, le=2**16)]


class _MicroBatches(TypedDict):
    micro_batch: Annotated[int, Field(strict=True, ge=1, lt=2**31)]
    row_tokens: NotRequired[Count]
    micro_tokens: NotRequired[Count]
    found: NotRequired[Flag]


class Start(TypedDict):
    """Values recorded for each start of the program."""

    from_step: Count
    ranks: Count
    threads: _Threads
    free_cores: NotRequired[Number]
    waiting: NotRequired[Text]
    micro_batches: NotRequired[list[_MicroBatches]]
    attention: NotRequired[Text]
    engine: NotRequired[Text]
    graph: NotRequired[Text]
    precision: NotRequired[Text]
    weights: NotRequired[Text]
    deterministic: NotRequired[Flag]
    hours: NotRequired[list[Number | None]]
    isa: NotRequired[Text]
    device: Text
    machine: Text
    torch: Text
    init: NotRequired[dict[Text, Text]]
    plugins: NotRequired[dict[Text, Text]]


class _Averaging(TypedDict):
    """The kind of average, of which weights it consists, its held-out scores and those of the last weights, which of
    the two (average, last) is better, and which of them the model has."""

    kind: Text
    description: Text
    heldout: dict[Text, Score]
    trained_heldout: dict[Text, Score]
    better: Text
    kept: Text


_Extension = TypedDict("_Extension", {"phase": Count, "step": Count, "from": Count, "to": Count})
"""A phase that was lengthened after a step, from and to a number of steps."""
_Range = TypedDict("_Range", {"phase": Count, "from": Count, "to": Count})
"""Batches that training left out, up to `to` without it."""


_Pair = Annotated[list[Number], Field(min_length=2, max_length=2)]


class _Counts(TypedDict, total=False):
    """Counts of the entire training, over all its starts."""

    parameters: Count
    network: _NetworkWithLabels
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
    extensions: list[_Extension]
    left_out: list[_Range]
    sessions: list[Start]
    unfinished: Unfinished
    vocabulary: Text
    weights: Text
    peak_memory_bytes: Count | None
    device: Text
    ranks: Count
    threads: Count
    torch: Text


def _of_all_phases(counts: _Counts) -> _Counts:
    if len(counts.get("phase_steps", ())) != len(counts.get("phase_ends", ())):
        raise ValueError("phase_steps and phase_ends must have a number for each phase")
    return counts


Counts = Annotated[_Counts, AfterValidator(_of_all_phases)]
"""The counts of a training, checked as a whole."""


class _Kind(TypedDict, total=False):
    kind: Text


class _Objective(_Kind, total=False):
    task: Text | None
    pair: Text


class _Optim(_Kind, total=False):
    weight_decay: Number


class _Masking(TypedDict, total=False):
    rate: Number | list[_Pair]
    """A constant, or each first step with its rate."""


class _Phase(TypedDict, total=False):
    length: Count
    batch: Count
    batch_warmup: list[_Pair]
    learning_rate: Number
    warmup: Number
    schedule: _Kind
    masking: _Masking


class _Train(TypedDict, total=False):
    phases: list[_Phase]
    objective: _Objective


class Settings(TypedDict, total=False):
    """The settings of a training that others read."""

    train: _Train
    model: _Kind
    optim: _Optim


class _Row(TypedDict, total=False):
    """A row of metrics.jsonl."""

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]

    phase: Count
    step: Count
    steps: Count
    total_steps: Required[Count]
    time: Text
    optimizer_step: Count
    skipped: Count
    batch: Text
    grad_norm: Score
    nsp_accuracy: Score
    sop_loss: Score
    sop_accuracy: Score
    remaining_seconds: Number
    classification_loss: Score
    classification_accuracy: Score
    regression_loss: Score
    soft_loss: Score
    soft_accuracy: Score
    hidden_loss: Score
    heldout_nsp_loss: Score
    heldout_sop_loss: Score
    heldout_classification_loss: Score
    heldout_classification_accuracy: Score
    heldout_regression_loss: Score
    heldout_soft_loss: Score
    heldout_soft_accuracy: Score
    heldout_hidden_loss: Score
    heldout_sequences: Count
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
    """Return the validator of a row; built on first use, because that takes longer than loading everything else
    here."""
    return TypeAdapter(_Row)
