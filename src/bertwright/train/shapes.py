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


_LongText = Annotated[str, Field(strict=True, max_length=2**24)]


class Start(TypedDict):
    """Values recorded for each start of the program."""

    from_step: Count
    ranks: Count
    threads: _Threads
    free_cores: NotRequired[Number]
    waiting: NotRequired[Text]
    micro_batches: NotRequired[list[_MicroBatches]]
    attention: NotRequired[Text]
    attention_reason: NotRequired[Text]
    engine: NotRequired[Text]
    graph: NotRequired[Text]
    precision: NotRequired[Text]
    precision_reason: NotRequired[Text]
    bf16_speedup: NotRequired[Number]
    graph_reason: NotRequired[Text]
    weights: NotRequired[Text]
    deterministic: NotRequired[Flag]
    hours: NotRequired[list[Number | None]]
    isa: NotRequired[Text]
    device: Text
    machine: Text
    torch: Text
    init: NotRequired[dict[Text, Text]]
    new_rows: NotRequired[_LongText]
    """Which entries got new rows at the first start (`marks`)."""
    plugins: NotRequired[dict[Text, Text]]


class AveragingCounts(TypedDict):
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
"""Batches that training skipped, up to `to` without it."""


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
    averaging: AveragingCounts
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


class MetricsRow(TypedDict, total=False):
    """A row of metrics.jsonl: one logged step of training, or the reason why training stopped.

    Losses are in nats, accuracies and shares from 0 to 1; losses and norms are means over the updates since the
    previous row. None means not a number (NaN), as for losses when no update was applied. A term of the loss has no
    keys in a training without it, and accuracies none in a row of a step in which they were not counted.
    """

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]

    time: Text
    """When the row was written (ISO, UTC)."""
    phase: Count
    """Index of the phase, from 0."""
    step: Count
    """Steps completed in the phase."""
    steps: Count
    """Total steps of the phase."""
    total_steps: Required[Count]
    """Steps completed over all phases."""
    optimizer_step: Count
    """Updates applied in the phase."""
    skipped: Count
    """Updates dropped since the previous row."""
    batch: Text
    """Hash of the last global batch."""
    mlm_loss: Score
    """Training loss of the masked tokens."""
    mlm_accuracy: Score
    """Share of the masked tokens of the last step that were predicted correctly, with dropout."""
    nsp_loss: Score
    """Training loss of next-sentence prediction."""
    nsp_accuracy: Score
    """Share of the pairs of the last step whose label was predicted correctly, with dropout."""
    sop_loss: Score
    """Training loss of sentence-order prediction."""
    sop_accuracy: Score
    """The same share for sentence-order prediction."""
    classification_loss: Score
    """Training loss of the classes."""
    classification_accuracy: Score
    """Share of the texts of the last step whose class was predicted correctly, with dropout."""
    labels_loss: Score
    """Training loss of the labels of texts that may have several."""
    labels_accuracy: Score
    """Share of the texts of the last step whose labels were all predicted correctly, with dropout."""
    regression_loss: Score
    """Mean squared error of predicted numbers in training."""
    tagging_loss: Score
    """Training loss of the tags of words."""
    tagging_accuracy: Score
    """Share of the words of the last step whose tag was predicted correctly, with dropout."""
    start_loss: Score
    """Training loss of the first tokens of answers."""
    start_accuracy: Score
    """Share of the windows of the last step whose first token was predicted correctly, with dropout."""
    end_loss: Score
    end_accuracy: Score
    soft_loss: Score
    """Cross-entropy with a teacher's softened probabilities."""
    soft_accuracy: Score
    """Share of the masked tokens of the last step for which the best guess equals the teacher's."""
    hidden_loss: Score
    """1 - cosine similarity with a teacher's hidden states, from 0 to 2."""
    grad_norm: Score
    """Norm of the gradient before clipping."""
    learning_rate: Number
    """Learning rate of the step."""
    loss_scale: Number
    """Loss scale; present if float16 needs one."""
    tokens_seen: Count
    """Real (not padding) tokens since the start of training."""
    tokens_per_second: Number
    """Real tokens trained on per second."""
    tflops_per_second: Score
    """10^12 floating-point operations of the model per second, over all ranks (`model.flops`)."""
    floor_ratio: Score
    """Step time over the time of its operations at the speed of the matrix products alone, measured at the start."""
    memory_bytes: Count
    """Peak memory of rank 0 so far, in bytes: reserved by torch on a GPU, else resident memory."""
    data_wait_share: Number
    """Share of the time that the model waited for data."""
    seconds: Number
    """Seconds of training so far."""
    remaining_seconds: Number
    """Estimated seconds to the end of the last phase, including the score after it."""
    remaining_low_seconds: Number
    """The same if all remaining steps are as fast as the fastest tenth of the last 200."""
    remaining_high_seconds: Number
    """The same for the slowest tenth."""
    heldout_sequences: Count
    """Number of held-out texts scored; this and the next keys exist if the model was scored at the step."""
    heldout_predictions: Count
    """Number of held-out masked tokens scored."""
    heldout_pairs: Count
    """Number of held-out pairs scored."""
    heldout_mlm_loss: Score
    heldout_mlm_accuracy: Score
    heldout_nsp_loss: Score
    heldout_nsp_accuracy: Score
    heldout_sop_loss: Score
    heldout_sop_accuracy: Score
    heldout_classification_loss: Score
    heldout_classification_accuracy: Score
    heldout_labels_loss: Score
    heldout_labels_accuracy: Score
    heldout_regression_loss: Score
    heldout_tagging_loss: Score
    heldout_tagging_accuracy: Score
    heldout_start_loss: Score
    heldout_start_accuracy: Score
    heldout_end_loss: Score
    heldout_end_accuracy: Score
    heldout_soft_loss: Score
    heldout_soft_accuracy: Score
    heldout_hidden_loss: Score
    heldout_accuracy: Score
    """This and the next are scores of a task with files of its own, by their names in `evaluate`."""
    heldout_f1: Score
    heldout_f1_weighted: Score
    heldout_f1_micro: Score
    heldout_f1_macro: Score
    heldout_matthews: Score
    heldout_pearson: Score
    heldout_spearman: Score
    heldout_precision: Score
    heldout_recall: Score
    heldout_f1_conlleval: Score
    heldout_exact: Score
    saved: Flag
    """Whether a checkpoint was saved after the step."""
    outside_band: Text
    """How the loss or the time of a step is outside its expected band."""
    stopped: Text
    """Why training stopped, in a row of its own, which describes no step."""


@cache
def row_type() -> TypeAdapter[MetricsRow]:
    """Return the validator of a row; built on first use, because that takes longer than loading everything else
    here."""
    return TypeAdapter(MetricsRow)
