"""The types of what a `RunFolder` reads: metrics, scores and summary.

Losses are in nats, accuracies and shares from 0 to 1. The files may contain further keys.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict


class MetricsRow(TypedDict):
    """One logged step of training; losses and norms are means over the updates since the previous row.

    None means not a number (NaN), as for losses when no update was applied.
    """

    time: str
    """When the row was written (ISO, UTC)."""
    phase: int
    """Index of the phase, from 0."""
    step: int
    """Steps completed in the phase."""
    steps: int
    """Total steps of the phase."""
    total_steps: int
    """Steps completed over all phases."""
    mlm_loss: NotRequired[float | None]
    """Training loss of the masked tokens; absent for a classifier."""
    classification_loss: NotRequired[float | None]
    """Training loss of the classes; absent without them."""
    classification_accuracy: NotRequired[float | None]
    """Share of the texts of the last step whose class was predicted correctly, with dropout; absent if not counted."""
    regression_loss: NotRequired[float | None]
    """Mean squared error of predicted numbers in training; absent without them."""
    nsp_loss: NotRequired[float | None]
    """Training loss of next-sentence prediction; absent without such pairs."""
    sop_loss: NotRequired[float | None]
    """Training loss of sentence-order prediction; absent without such pairs."""
    soft_loss: NotRequired[float | None]
    """Cross-entropy with a teacher's softened probabilities; absent without a teacher."""
    hidden_loss: NotRequired[float | None]
    """1 - cosine similarity with a teacher's hidden states, from 0 to 2; absent without a teacher."""
    mlm_accuracy: NotRequired[float | None]
    """Share of the masked tokens of the last step that were predicted correctly, with dropout; absent if not
    counted."""
    nsp_accuracy: NotRequired[float | None]
    """The same for next-sentence prediction."""
    sop_accuracy: NotRequired[float | None]
    """The same for sentence-order prediction."""
    soft_accuracy: NotRequired[float | None]
    """Share of the masked tokens of the last step for which the best guess equals the teacher's."""
    grad_norm: float | None
    """Norm of the gradient before clipping."""
    learning_rate: float
    """Learning rate of the step."""
    loss_scale: NotRequired[float]
    """Loss scale; present if float16 needs one."""
    tokens_seen: int
    """Real (not padding) tokens since the start of training."""
    tokens_per_second: float
    """Real tokens trained on per second."""
    tflops_per_second: float
    """10^12 floating-point operations of the model per second, over all ranks (`model.flops`)."""
    floor_ratio: float | None
    """Step time over the time of its operations at the speed of the matrix products alone, measured at the start."""
    memory_bytes: int
    """Peak memory of rank 0 so far, in bytes: allocated for tensors on a GPU, else resident memory."""
    data_wait_share: float
    """Share of the time that the model waited for data."""
    seconds: float
    """Seconds of training so far."""
    remaining_seconds: float
    """Estimated seconds to the end of the last phase, including the score after it."""
    remaining_low_seconds: float
    """The same if all remaining steps are as fast as the fastest tenth of the last 200."""
    remaining_high_seconds: float
    """The same for the slowest tenth."""
    heldout_mlm_loss: NotRequired[float | None]
    """The held-out loss of the masked tokens; absent if the model was not scored."""
    heldout_mlm_accuracy: NotRequired[float]
    """The held-out share of masked tokens predicted correctly."""
    heldout_classification_loss: NotRequired[float | None]
    """The held-out loss of the classes; absent if the model was not scored."""
    heldout_classification_accuracy: NotRequired[float]
    """The held-out share of texts whose class is predicted correctly."""
    heldout_regression_loss: NotRequired[float | None]
    """The held-out mean squared error of predicted numbers."""


class Scores(TypedDict):
    """Held-out scores of the finished model with their baselines, on the same tokens, pairs or texts: those of
    pre-training, of classes, or of numbers."""

    mlm_loss: NotRequired[float | None]
    """Cross-entropy of the masked tokens."""
    mlm_accuracy: NotRequired[float]
    """Share of masked tokens whose best guess is correct."""
    perplexity: NotRequired[float | None]
    """e to the power of `mlm_loss`."""
    bits_per_character: NotRequired[float | None]
    """The loss in bits per character of the masked tokens, white space not counted; absent in older scores."""
    unigram_loss: NotRequired[float]
    """`mlm_loss` of predicting the training tokens' frequencies."""
    most_common_token_accuracy: NotRequired[float]
    """`mlm_accuracy` of always guessing the most common token."""
    nsp_accuracy: NotRequired[float | None]
    """Share of pairs labelled correctly; None without next-sentence pairs."""
    nsp_majority: NotRequired[float | None]
    """Share of pairs with the more common label; None without next-sentence pairs."""
    sop_accuracy: NotRequired[float | None]
    """Share of sentence-order pairs labelled correctly; absent without them."""
    sop_majority: NotRequired[float | None]
    """Share of those pairs with the more common label; absent without them."""
    classification_loss: NotRequired[float | None]
    """Cross-entropy of the classes of texts; this and the following keys exist only for a classifier."""
    accuracy: NotRequired[float]
    """Share of texts whose class is predicted correctly."""
    f1: NotRequired[float]
    """F1 of class 1 if there are two classes, else the mean over all."""
    matthews: NotRequired[float | None]
    """Matthews' correlation of classes, from -1 to 1."""
    majority: NotRequired[float]
    """`accuracy` of always guessing the most common class of the training texts."""
    majority_label: NotRequired[str]
    """That class."""
    labels: NotRequired[list[str]]
    """The classes in the order of their ids; a single name means that labels are numbers."""
    regression_loss: NotRequired[float | None]
    """Mean squared error of predicted numbers; this and the following keys exist only if labels are numbers."""
    pearson: NotRequired[float | None]
    """Pearson's correlation, from -1 to 1."""
    spearman: NotRequired[float | None]
    """Spearman's correlation of ranks, from -1 to 1."""
    constant_loss: NotRequired[float]
    """`regression_loss` of always predicting the mean of the training labels."""


class Summary(Scores):
    """The headline numbers of a run."""

    title: str
    """Title of the report."""
    parameters: int
    """Number of trained weights."""
    steps: int
    """Number of optimizer steps."""
    tokens_seen: int
    """Real tokens trained on."""
    tokens_per_second: float
    """Real tokens trained on per second."""
    train_seconds: float
    """Seconds spent in training steps, without scoring and saving, over all starts."""
    sequences_per_second: float
    """Sequences (samples) trained on per second of these."""
    tflops_done: float | None
    """10^12 floating-point operations of the model in training, over all starts; None if they were not counted."""
    hours: float | None
    """Hours of training, including scoring and saving, over all starts; None if they were not counted."""
    seconds: float
    """Total seconds of all stages."""
    forecast: NotRequired[dict[str, dict[str, float | None]]]
    """The forecast (`expected`), the measurement (`actual`) and their difference relative to the forecast (`error`);
    absent if no forecast was stored."""
    recipe_sha256: str
    """SHA-256 of recipe.toml at the time the report was written."""
    stages: dict[str, dict[str, str | int | float]]
    """Version, fingerprint and seconds of each stage."""
