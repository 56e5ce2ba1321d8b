"""Hours by stage, from measured rates and the forecast time of a step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bertwright.estimate.known_data import Data
from bertwright.estimate.machine import Machine, workers_of
from bertwright.estimate.work import PhaseWork
from bertwright.recipe import Recipe
from bertwright.train.settings.forecast import FORWARD
from bertwright.train.settings.phases import PARTS_OF_A_PHASE

# Bytes of text per second and worker, on two shared cores (docs/results.md, "Speed beside the original recipe").
_CORPUS, _VOCAB, _EXAMPLES = 2.2e6, 6e6, 9e6
_FIXED = 3.0
"""Fixed seconds of each stage: starting Python, libraries and workers."""
_DISK = 400e6
"""Bytes per second at which a checkpoint is written."""
_SCORED = 20_000
"""Held-out sequences scored by `evaluate` if they are not counted yet and the recipe sets no limit."""


@dataclass(frozen=True)
class PhaseTime:
    """The duration of a phase."""

    steps: int
    """Number of steps that fit into its time limit."""
    seconds: float
    """Seconds of its steps."""
    scoring: float
    saving: float

    @property
    def total(self) -> float:
        """Seconds including scoring and saving."""
        return self.seconds + self.scoring + self.saving


def score_seconds(training: float) -> float:
    """Seconds of scoring sequences whose training takes `training` seconds."""
    return FORWARD * training


def phase_time(recipe: Recipe, work: PhaseWork, step: float, data: Data, gpu: bool) -> PhaseTime | None:
    """The duration of a phase on a GPU or a CPU, given the seconds of a step; None if the length of the phase is not
    known."""
    if work.steps is None or work.sequences is None:
        return None
    # While the batch is still growing, steps are shorter in proportion.
    seconds = work.sequences / work.phase.batch * step
    steps = work.steps
    if (budget := 3600 * (work.phase.hours or 0)) and seconds > budget:
        steps, seconds = max(1, round(steps * budget / seconds)), budget
    heldout = data.heldout.get(f"{work.phase.length}", recipe.train.heldout_sequences)
    score = score_seconds(step) * min(heldout, recipe.train.heldout_sequences) / work.phase.batch
    network = recipe.network()
    # 12 bytes a parameter: the weights and two moments in float32. Training does not wait for what is saved beside it.
    save = 0.0 if recipe.train.saves_beside(gpu) else 12.0 * network.parameters / _DISK
    scores, saves = (
        count_events(every, steps, work.epochs)
        for every in (recipe.train.evaluate_every, recipe.train.checkpoint_every)
    )
    return PhaseTime(steps, seconds, scores * score, saves * save)


def count_events(every: int | Literal["epoch"], steps: int, epochs: float | None) -> int:
    """How often something happens in a phase that occurs every `every` steps (0: ten times per phase; or after every
    epoch, of which it has `epochs`) and at the end."""
    if every == "epoch":
        return min(steps, math.ceil(epochs or 1))
    return -(-steps // (every or max(1, -(-steps // PARTS_OF_A_PHASE))))


def stage_seconds(
    recipe: Recipe, data: Data, machine: Machine, training: float | None, scoring: float, done: Sequence[str]
) -> dict[str, float | None]:
    """Seconds of each stage that is still to be made; None if not known.

    `training` is the time of all phases, `scoring` that of one held-out sequence.
    """
    corpus, examples = workers_of(recipe, machine)
    text, most = data.text, recipe.evaluate.max_sequences
    scored = data.heldout.get(f"{recipe.evaluate_length()}", most or _SCORED)
    learnt = None if text is None else min(text, recipe.vocab.sample_bytes) / _VOCAB
    made = {
        "corpus": None if text is None else text / _CORPUS / corpus,
        "vocab": 0.0 if recipe.vocab.file else learnt,
        "examples": None if text is None else text / _EXAMPLES / examples * (1 + recipe.examples.passes / 10),
        "train": training,
        "evaluate": scoring * min(scored, most or scored),
        # The weights are read and written, 4 bytes each.
        "export": 8.0 * recipe.network().parameters / _DISK,
    }
    if recipe.corpus is None:
        del made["corpus"]
    return {name: None if value is None else value + _FIXED for name, value in made.items() if name not in done}
