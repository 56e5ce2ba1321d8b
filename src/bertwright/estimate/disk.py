"""The disk space that each stage takes: at its peak, and after the run; finished stages count with their actual size.

Measured on three dumps: a corpus takes 1.15 times its text (result and scratch), a token is 5 bytes of text; examples
take 2.1 bytes a token and 16 bytes a plan of each pass, and the same again during the build. A checkpoint has 12 bytes
a parameter; at most `train.keep_checkpoints`, the best one, one a phase and one being written exist at a time. The
model and its export have 4 bytes a parameter each. The estimates are right within a factor of two.
"""

from __future__ import annotations

from collections.abc import Sequence

from bertwright.estimate.example_lengths import BYTES_A_TOKEN
from bertwright.estimate.known_data import Data
from bertwright.estimate.work import PhaseWork
from bertwright.recipe import Recipe
from bertwright.train.memory.rank_memory import averaged_copies

_PACKED = 0.35
"""Size of a finished corpus relative to its text: zstd of prose."""


def disk_of(recipe: Recipe, data: Data) -> dict[str, float | None]:
    """Approximate peak bytes on disk of each stage while it runs; None if they depend on a text of unknown size."""
    expected = run_bytes(recipe, data.text)
    return {stage: data.disk.get(stage, expected.get(stage)) for stage in _stages(recipe, data)}


def disk_left(recipe: Recipe, data: Data, works: Sequence[PhaseWork]) -> dict[str, float | None]:
    """Approximate bytes of each stage after the run: without scratch files and deleted checkpoints."""
    from bertwright.estimate.hours import count_events  # numpy, which a check does not need

    text, each, train = data.text, checkpoint_bytes(recipe), recipe.train
    # The last checkpoint of each phase stays; the best one is nearly always among the newest.
    kept = train.keep_checkpoints + len(works) - 1
    if None not in [work.steps for work in works]:
        kept = min(kept, sum(count_events(train.checkpoint_every, work.steps or 1, work.epochs) for work in works))
    left = {
        "corpus": None if text is None else _PACKED * text,
        "examples": None if text is None else examples_bytes(recipe, text),
        "train": each * kept + 4.0 * recipe.network().parameters,
        "export": 4.0 * recipe.network().parameters,
    }
    return {stage: data.disk.get(stage, left[stage]) for stage in _stages(recipe, data)}


def _stages(recipe: Recipe, data: Data) -> list[str]:
    stages = ["examples", "train", "export"]
    # If the examples were made elsewhere, the corpus may not be here.
    if recipe.corpus is not None and ("corpus" in data.disk or "examples" not in data.disk):
        stages.insert(0, "corpus")
    return stages


def run_bytes(recipe: Recipe, text: float | None) -> dict[str, float]:
    """Return the approximate maximum bytes of each stage on disk; without `text`, corpus and examples are left out."""
    parameters, train = recipe.network().parameters, recipe.train
    sizes: dict[str, float] = {}
    if text is not None:
        sizes = {"corpus": 1.15 * text, "examples": 2 * examples_bytes(recipe, text)}
    # Besides those that are kept, there are the best one and the one being written.
    checkpoints = train.keep_checkpoints + 2 + len(train.phases)
    size = checkpoint_bytes(recipe) * checkpoints + 4 * parameters
    return {**sizes, "train": size, "export": 4.0 * parameters}


def examples_bytes(recipe: Recipe, text: float) -> float:
    """Return the approximate bytes of the finished examples of `text` bytes of text."""
    tokens = text / BYTES_A_TOKEN
    plans = sum(tokens / plan.length for plan in recipe.plan_sets()) * recipe.examples.passes
    return 2.1 * tokens + 16 * plans


def checkpoint_bytes(recipe: Recipe) -> float:
    """Return the bytes of a checkpoint, without the headers of its files."""
    return (12.0 + 4 * averaged_copies(recipe.train.averaging)) * recipe.network().parameters
