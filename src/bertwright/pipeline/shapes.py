"""The types of what a `RunFolder` reads: metrics, scores and summary.

Losses are in nats, accuracies and shares from 0 to 1. More keys may stand beside these.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict


class MetricsRow(TypedDict):
    """One logged step of training; losses and norms are means over the updates since the row before.

    None is no number (NaN), as of losses where no update was applied.
    """

    time: str
    """When the row was written (ISO, UTC)."""
    phase: int
    """Number of the phase, from 0."""
    step: int
    """Steps done in the phase."""
    steps: int
    """Steps that the phase has."""
    total_steps: int
    """Steps done over all phases."""
    mlm_loss: NotRequired[float | None]
    """Training loss of the masked tokens; absent where texts are classified."""
    classification_loss: NotRequired[float | None]
    """Training loss of the classes; absent without them."""
    classification_accuracy: NotRequired[float | None]
    """Share of the texts of the last step whose class was guessed right, with dropout; absent where it was not
    counted."""
    regression_loss: NotRequired[float | None]
    """Mean squared error of numbers in training; absent without them."""
    nsp_loss: NotRequired[float | None]
    """Training loss of the next sentence; absent without such pairs."""
    sop_loss: NotRequired[float | None]
    """Training loss of the sentence order; absent without such pairs."""
    soft_loss: NotRequired[float | None]
    """Cross-entropy with a teacher's softened probabilities; absent without a teacher."""
    hidden_loss: NotRequired[float | None]
    """1 - the cosine with a teacher's hidden states, from 0 to 2; absent without a teacher."""
    mlm_accuracy: NotRequired[float | None]
    """Share of the masked tokens of the last step that were guessed right, with dropout; absent where it was not
    counted."""
    nsp_accuracy: NotRequired[float | None]
    """The same of the next sentence."""
    sop_accuracy: NotRequired[float | None]
    """The same of the sentence order."""
    soft_accuracy: NotRequired[float | None]
    """Share of the masked tokens of the last step for which the teacher's best guess was made."""
    grad_norm: float | None
    """Norm of the gradient before clipping."""
    learning_rate: float
    """Learning rate of the step."""
    loss_scale: NotRequired[float]
    """Factor of the loss, where float16 needs one."""
    tokens_seen: int
    """Real (not padding) tokens since the start of training."""
    tokens_per_second: float
    """Real tokens trained on in a second."""
    tflops_per_second: float
    """10^12 floating-point operations of the model in a second, all ranks together (`model.flops`)."""
    floor_ratio: float | None
    """Time over what these operations would take at the speed of the matrix products alone, measured at the start."""
    memory_bytes: int
    """The most memory that the first rank has held so far: of a GPU in tensors, else resident."""
    data_wait_share: float
    """Share of the time in which the model waited for data."""
    seconds: float
    """Seconds of training so far."""
    remaining_seconds: float
    """Seconds to the end of the last phase and of the score that follows, as far as can be told."""
    remaining_low_seconds: float
    """The same if all steps to come are as fast as the last 200 were in their fastest tenth."""
    remaining_high_seconds: float
    """The same by their slowest tenth."""
    heldout_mlm_loss: NotRequired[float | None]
    """The held-out loss of the masked tokens; absent where the model was not scored."""
    heldout_mlm_accuracy: NotRequired[float]
    """The held-out share of masked tokens guessed right."""
    heldout_classification_loss: NotRequired[float | None]
    """The held-out loss of the classes; absent where the model was not scored."""
    heldout_classification_accuracy: NotRequired[float]
    """The held-out share of texts whose class is guessed right."""
    heldout_regression_loss: NotRequired[float | None]
    """The held-out mean squared error of numbers."""


class Scores(TypedDict):
    """Held-out scores of the finished model beside their baselines, on the same tokens and pairs, or texts: those of
    pre-training, of classes, or of numbers."""

    mlm_loss: NotRequired[float | None]
    """Cross-entropy of the masked tokens."""
    mlm_accuracy: NotRequired[float]
    """Share of masked tokens whose best guess is right."""
    perplexity: NotRequired[float | None]
    """e to the power of `mlm_loss`."""
    bits_per_character: NotRequired[float | None]
    """The loss in bits by the characters of the masked tokens, white space not counted; absent in older scores."""
    unigram_loss: NotRequired[float]
    """`mlm_loss` of the training tokens' frequencies alone."""
    most_common_token_accuracy: NotRequired[float]
    """`mlm_accuracy` of always guessing the commonest token."""
    nsp_accuracy: NotRequired[float | None]
    """Share of pairs labelled right; None without pairs of a next sentence."""
    nsp_majority: NotRequired[float | None]
    """Share of pairs with the commoner label; None without pairs of a next sentence."""
    sop_accuracy: NotRequired[float | None]
    """The same of pairs whose order is told; absent without them."""
    sop_majority: NotRequired[float | None]
    """Share of those pairs with the commoner label; absent without them."""
    classification_loss: NotRequired[float | None]
    """Cross-entropy of the classes of texts; this and what follows is of a classifier alone."""
    accuracy: NotRequired[float]
    """Share of texts whose class is guessed right."""
    f1: NotRequired[float]
    """F1 of class 1 where there are two, else the mean of all."""
    matthews: NotRequired[float | None]
    """Matthews' correlation of classes, from -1 to 1."""
    majority: NotRequired[float]
    """`accuracy` of always guessing the commonest class of the training texts."""
    majority_label: NotRequired[str]
    """That class."""
    labels: NotRequired[list[str]]
    """The classes in the order of their numbers; one name: labels are numbers."""
    regression_loss: NotRequired[float | None]
    """Mean squared error of numbers; this and what follows is of numbers alone."""
    pearson: NotRequired[float | None]
    """Pearson's correlation, from -1 to 1."""
    spearman: NotRequired[float | None]
    """Spearman's correlation of ranks, from -1 to 1."""
    constant_loss: NotRequired[float]
    """`regression_loss` of always saying the mean of the training labels."""


class Summary(Scores):
    """The headline numbers of a run."""

    title: str
    """Title of the report."""
    parameters: int
    """Trained weights."""
    steps: int
    """Optimizer steps."""
    tokens_seen: int
    """Real tokens trained on."""
    tokens_per_second: float
    """Real tokens trained on in a second."""
    tflops_done: float | None
    """10^12 floating-point operations of the model in training, over all starts; None where they were not counted."""
    hours: float | None
    """Hours of training with scoring and saving, over all starts; None where they were not counted."""
    seconds: float
    """Seconds of all stages together."""
    forecast: NotRequired[dict[str, dict[str, float | None]]]
    """The forecast (`expected`), what was measured (`actual`) and how much more that is, as a share of the forecast
    (`error`); absent where no forecast was kept."""
    recipe_sha256: str
    """SHA-256 of recipe.toml as it was when the report was written."""
    stages: dict[str, dict[str, str | int | float]]
    """Version, fingerprint and seconds of each stage."""
