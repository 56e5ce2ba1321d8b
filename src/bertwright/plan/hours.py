"""Hours by stage, and how wrong they may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bertwright.plan.data import Data
from bertwright.plan.machine import Machine, workers_of
from bertwright.plan.work import PhaseWork
from bertwright.recipe import Recipe
from bertwright.train.forecast import FORWARD
from bertwright.train.phases import PARTS_OF_A_PHASE

# Bytes of text a second and worker, on two shared cores (docs/results.md, "Speed beside the original recipe").
_CORPUS, _VOCAB, _EXAMPLES = 2.2e6, 6e6, 9e6
_FIXED = 3.0
"""Seconds that a stage takes whatever it reads: Python, libraries, workers."""
_DISK = 400e6
"""Bytes a second that a checkpoint is written with."""
_SCORED = 20_000
"""Held-out sequences that `evaluate` scores where they are not counted yet and the recipe sets no bound."""


@dataclass(frozen=True)
class PhaseTime:
    """How long a phase takes."""

    steps: int
    """That it has time for."""
    seconds: float
    """Of its steps."""
    scoring: float
    saving: float

    @property
    def total(self) -> float:
        """Seconds with scores and checkpoints."""
        return self.seconds + self.scoring + self.saving


def score_seconds(training: float) -> float:
    """Seconds of scoring what is trained on in so many."""
    return FORWARD * training


def phase_time(recipe: Recipe, work: PhaseWork, step: float, data: Data, gpu: bool) -> PhaseTime | None:
    """How long a phase takes whose steps take so many seconds each, on a GPU or a CPU; None where its length is not
    known."""
    if work.steps is None or work.sequences is None:
        return None
    # Steps of a batch that is still growing are as much shorter as they are smaller.
    seconds = work.sequences / work.phase.batch * step
    steps = work.steps
    if (budget := 3600 * (work.phase.hours or 0)) and seconds > budget:
        steps, seconds = max(1, round(steps * budget / seconds)), budget
    heldout = data.heldout.get(f"{work.phase.length}", recipe.train.heldout_sequences)
    score = score_seconds(step) * min(heldout, recipe.train.heldout_sequences) / work.phase.batch
    network = recipe.network()
    save = 0.0 if recipe.train.saves_beside(gpu) else 12.0 * network.parameters / _DISK
    scores, saves = (times(every, steps) for every in (recipe.train.evaluate_every, recipe.train.checkpoint_every))
    return PhaseTime(steps, seconds, scores * score, saves * save)


def times(every: int, steps: int) -> int:
    """How often what happens every so many steps (0: ten times) and at the end happens in a phase."""
    return -(-steps // (every or max(1, -(-steps // PARTS_OF_A_PHASE))))


def stage_seconds(
    recipe: Recipe, data: Data, machine: Machine, training: float | None, scoring: float, done: Sequence[str]
) -> dict[str, float | None]:
    """Seconds of each stage that is still to be made; None where they are not known.

    `training` is those of all phases, `scoring` of one held-out sequence.
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
        "export": 8.0 * recipe.network().parameters / _DISK,
    }
    if recipe.corpus is None:
        del made["corpus"]
    return {name: None if value is None else value + _FIXED for name, value in made.items() if name not in done}
