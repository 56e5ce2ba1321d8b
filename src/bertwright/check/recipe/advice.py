"""Warnings about settings that run but contradict published practice or the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bertwright.check.verdict import Verdict, warning
from bertwright.core.numbers import amount, large
from bertwright.estimate.known_data import Data, examples_of, sequences_seen
from bertwright.recipe import Recipe
from bertwright.train.settings.phase_config import PhaseConfig

READINGS = 40
"""Number of times that BERT's own training read its text (Devlin et al. 2019 §A.2)."""
_NEARLY = 0.9
"""Share of the masking rate below which a limit on predictions lowers it; above it, as 76 of 512, it rounds it."""
_SHORT = 128
"""Sequence length of the first published phase."""


def advice(recipe: Recipe, stages: Sequence[str], data: Data | None) -> Iterator[Verdict]:
    """Yield warnings about the training of `recipe`, if it is among `stages`; `data` is what is known about its text,
    None if nothing is.
    """
    if "train" not in stages:
        return
    for i, phase in enumerate(recipe.train.phases):
        yield from _few_predictions(f"train.phases.{i}.masking.max_predictions", phase)
    yield from _long_from_the_start(recipe)
    yield from _read_often(recipe)
    if data is not None:
        yield from _repetitions(recipe, data)


def _few_predictions(key: str, phase: PhaseConfig) -> Iterator[Verdict]:
    """Warn if the limit on predictions is below the masking rate for a full-length sequence."""
    most, rate = phase.masking.most(phase.length), phase.masking.rate_at(0)
    wanted = phase.masking.model_copy(update={"max_predictions": 0}).most(phase.length)
    # Of 16 tokens, 2 predictions are 12.5 %, and a third would be more than 15 %.
    if most < min(wanted, _NEARLY * rate * phase.length):
        text = (
            f"{most} predictions per sequence of {phase.length} tokens are {100 * most / phase.length:.1f} % of its "
            f"tokens, but masking.rate is {100 * rate:g} %."
        )
        yield warning(key, text, f"Leave it out, or set it to {wanted}, unless you want so few predictions.")


def _long_from_the_start(recipe: Recipe) -> Iterator[Verdict]:
    """Warn about long pairs for a network that has seen no short ones: the published phase 2 without its phase 1."""
    shortest, train = min(phase.length for phase in recipe.train.phases), recipe.train
    if (
        recipe.model.kind == "bert"
        and recipe.examples.pairs
        and not recipe.task.texts
        and train.init_from is None
        and shortest > _SHORT
    ):
        text = (
            f"training starts from random weights with sequences of {shortest}, as in the second phase of the "
            f"published recipes; their first phase, with {_SHORT}, does most of the steps, each in a fraction of the "
            "time."
        )
        yield warning(
            "train.phases",
            text,
            "Add such a phase before it, or set train.init_from to a network that was trained with one.",
        )


def _read_often(recipe: Recipe) -> Iterator[Verdict]:
    """Warn about labelled texts that are read too often: fine-tuned networks see them two to five times."""
    for i, phase in enumerate(recipe.train.phases):
        timed = phase.hours is not None  # then epochs are only an upper limit
        if recipe.task.texts and phase.epochs is not None and phase.epochs > READINGS and not timed:
            text = f"each labelled text is read {phase.epochs:,g} times, and repeated text is worth less each time."
            yield warning(f"train.phases.{i}.epochs", text, "Fine-tuning takes 2 to 5 epochs of train.init_from.")


def _repetitions(recipe: Recipe, data: Data) -> Iterator[Verdict]:
    """Warn about text that is read more often than BERT's own training read its text."""
    tokens = epochs = 0.0
    for i, phase in enumerate(recipe.train.phases):
        # Phases with data of their own do not read the corpus; of those that hours end, the machine decides the length.
        if phase.data is not None or phase.hours is not None:
            continue
        examples = examples_of(recipe, i, data)
        seen = sequences_seen(phase, examples)
        if seen is not None and (read := examples.epochs(seen)) is not None:
            low, high = phase.document_range
            tokens, epochs = tokens + seen * examples.mean_length, epochs + read * (high - low)
    if epochs > READINGS and data.tokens:
        said = (
            f"about {large(tokens)} tokens are trained on, {amount(epochs)} epochs of the {large(data.tokens)} of the "
            "corpus"
        )
        text = (
            f"{said}; the original BERT training read its text {READINGS} times, and repeated text is worth less "
            "each time."
        )
        yield warning("train.phases", text, "Use more text (corpus.source), or fewer steps.")
