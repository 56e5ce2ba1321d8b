"""The types of what `summary.json` holds."""

from __future__ import annotations

from bertwright.evaluate.shapes import Counts
from bertwright.tasks.shapes import Epochs
from bertwright.train.shapes import AveragingCounts


class Summary(Counts, total=False):
    """The headline numbers of a run, with its held-out scores."""

    title: str
    """Title of the report."""
    model: str
    """What the model is."""
    verdict: str
    """How good it is, in sentences."""
    labels: list[str]
    """The classes in the order of their ids; a single name means that labels are numbers."""
    heldout_overlap: float | None
    """Share of the longer held-out sentences that share a run of words with the training text."""
    parameters: int
    """Number of trained weights."""
    steps: int
    """Number of optimizer steps."""
    tokens_seen: int
    """Real tokens trained on, over all starts."""
    tokens_per_second: float
    """Real tokens trained on per second."""
    train_seconds: float
    """Seconds spent in training steps, without scoring and saving, over all starts."""
    sequences_per_second: float
    """Sequences (samples) trained on per second of these."""
    tflops_done: float
    """10^12 floating-point operations of the model in training, over all starts."""
    hours: float
    """Hours of training, including scoring and saving, over all starts."""
    seconds: float
    """Total seconds of all stages."""
    forecast: dict[str, dict[str, float | None]]
    """The forecast (`expected`), the measurement (`actual`) and their difference relative to the forecast (`error`, a
    share); absent if no forecast was stored."""
    outside_band: list[str]
    """How losses left the range that the recipe expects; absent if none did."""
    epochs: Epochs
    """The last and the best of the official scores that training took of the held-out examples."""
    averaging: AveragingCounts
    """Present if an average of the weights was compared with the last weights."""
    recipe_sha256: str
    """SHA-256 of recipe.toml at the time the report was written."""
    stages: dict[str, dict[str, str | int | float]]
    """Version, fingerprint and seconds of each stage; the report has no seconds, which would differ every time."""
