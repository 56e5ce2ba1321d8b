"""Warnings about settings that run but contradict published practice or the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bertwright.check.resources import BYTES_A_TOKEN
from bertwright.check.verdict import Verdict, warning
from bertwright.recipe import Recipe
from bertwright.train.phase_config import PhaseConfig

READINGS = 40
"""Number of times that BERT's own training read its text (Devlin et al. 2019 §A.2)."""
_NEARLY = 0.9
"""Share of the masking rate below which a limit on predictions lowers it; above it, as 76 of 512, it rounds it."""
_SHORT = 128
"""Sequence length of the first published phase."""


def advice(recipe: Recipe, stages: Sequence[str], text: float | None) -> Iterator[Verdict]:
    """Yield warnings about the training of `recipe`, if it is among `stages`; `text` is the bytes of its text, None if
    unknown.
    """
    if "train" not in stages:
        return
    for i, phase in enumerate(recipe.train.phases):
        yield from _few_predictions(f"train.phases.{i}.masking.max_predictions", phase)
    yield from _long_from_the_start(recipe)
    yield from _read_often(recipe)
    if text:
        yield from _repetitions(recipe, text)


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
        and not recipe.labels
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
        if recipe.labels and phase.epochs is not None and phase.epochs > READINGS and not timed:
            text = f"each labelled text is read {phase.epochs:,g} times, and repeated text is worth less each time."
            yield warning(f"train.phases.{i}.epochs", text, "Fine-tuning takes 2 to 5 epochs of train.init_from.")


def _repetitions(recipe: Recipe, text: float) -> Iterator[Verdict]:
    """Warn about text that is read more often than BERT's own training read its text."""
    tokens = text / BYTES_A_TOKEN
    # Phases with data of their own do not read the corpus.
    read = sum(_tokens(phase, tokens) for phase in recipe.train.phases if phase.data is None)
    if read > READINGS * tokens:
        said = (
            f"about {_short(read)} tokens are trained on, {read / tokens:,.0f} times the {_short(tokens)} of the corpus"
        )
        text_ = (
            f"{said}; the original BERT training read its text {READINGS} times, and repeated text is worth less "
            "each time."
        )
        yield warning("train.phases", text_, "Use more text (corpus.source), or fewer steps.")


def _tokens(phase: PhaseConfig, corpus: float) -> float:
    """Return the maximum tokens of a phase, without padding; 0 if hours end it, because that depends on the machine."""
    low, high = phase.document_range
    if phase.hours is not None:
        return 0
    if phase.tokens is not None:
        return phase.tokens
    if phase.epochs is not None:
        return phase.epochs * corpus * (high - low)
    return (phase.samples or (phase.end_after or phase.steps or 0) * phase.batch) * phase.length


def _short(number: float) -> str:
    return f"{number / 1e9:,.1f} billion" if number >= 1e9 else f"{number / 1e6:,.1f} million"
