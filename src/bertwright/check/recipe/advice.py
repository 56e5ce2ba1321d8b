"""Warnings about settings that run but contradict published practice or the data, or repeat another training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bertwright.check.verdict import Verdict, warning
from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.config import result_settings
from bertwright.core.errors import BertwrightError
from bertwright.core.numbers import amount, short_count
from bertwright.estimate.known_data import Data, examples_of, sequences_seen
from bertwright.recipe import Recipe
from bertwright.train.settings.identity import checkpoints_in
from bertwright.train.settings.phase_config import PhaseConfig

READINGS = 40
"""Number of times that BERT's own training read its text (Devlin et al. 2019 §A.2)."""
WORTHWHILE = 4
"""Number of readings up to which repeated text is worth nearly as much as new text (Muennighoff et al. 2023)."""
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
        and not recipe.task.files
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
        if recipe.task.files and phase.epochs is not None and phase.epochs > READINGS and not timed:
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
    again = recipe.train.init_from is not None and not recipe.train.init_layers
    if again and WORTHWHILE < epochs <= READINGS:
        text = (
            f"training goes on from {recipe.train.init_from} and reads the text {amount(epochs)} times; after "
            f"{WORTHWHILE} readings, repeated text is worth less each time, and the network forgets other text."
        )
        yield warning("train.phases", text, "Use more text (corpus.source), or fewer epochs.")
    if epochs > READINGS and data.tokens:
        amounts = (
            f"about {short_count(tokens)} tokens are trained on, {amount(epochs)} epochs of the "
            f"{short_count(data.tokens)} of the corpus"
        )
        text = (
            f"{amounts}; the original BERT training read its text {READINGS} times, and repeated text is worth less "
            "each time."
        )
        yield warning("train.phases", text, "Use more text (corpus.source), or fewer steps.")


_ORDER = ("length", "document_range", "data")
"""Keys of a phase that decide which sequences it reads, and in which order; the batch only cuts them into steps."""


def repeated_reading(recipe: Recipe, out: Path, stages: Sequence[str]) -> Iterator[Verdict]:
    """Yield a warning if the recipe's training, if it is among `stages` and has not begun in the run folder `out`,
    starts from a training with the same seed and data, and with the same first phase in what decides its order.

    Sequences, masks and dropout are a function of the seed, the phase's index and the step within the phase.
    """
    start = recipe.train.init_from
    # The layers of a deeper network are chosen for a new training, which may well read the same.
    if "train" not in stages or start is None or recipe.train.init_layers or recipe.task.files:
        return
    # Once it has begun, the seed cannot change any more.
    if not (start / MANIFEST).is_file() or checkpoints_in(out / "train"):
        return
    try:
        donor = open_artifact(start)
        again = _same_order(recipe, donor) and _same_examples(recipe, out, donor)
    except BertwrightError:
        return  # the folder is damaged or of another version: what reads it reports that
    if again:
        seed = recipe.train.seed
        text = (
            f"{seed} is also the seed of train.init_from ({start}), which has the same data: the first phase would "
            "read the same sequences as the first phase of that training, in the same order."
        )
        yield warning("train.seed", text, f"Set it to another number, such as train.seed={seed + 1}.")


def _same_order(recipe: Recipe, donor: Artifact) -> bool:
    """Whether both first phases read the rows of a plan of the same name in the same order."""
    if donor.manifest["stage"] not in ("checkpoint", "train"):
        return False
    theirs = donor.manifest["config"].get("train", {})
    ours: dict[str, Any] = result_settings(recipe.train.phases[0])
    same = [
        _as_list(ours.get(name)) == _as_list(phase.get(name))
        for phase in theirs.get("phases", [])[:1]
        for name in _ORDER
    ]
    return theirs.get("seed") == recipe.train.seed and all(same)


def _as_list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _same_examples(recipe: Recipe, out: Path, donor: Artifact) -> bool:
    """Whether the first phase reads the same examples, as far as the folders of both runs say."""
    named, inputs = recipe.train.phases[0].data, donor.manifest["inputs"]
    if named is not None and (named / MANIFEST).is_file():
        return bool(open_artifact(named).fingerprint == inputs.get("train.phases.0.data"))
    # RUN/train, or RUN/train/checkpoints/step-000000100
    run = donor.path.absolute().parents[0 if donor.manifest["stage"] == "train" else 2]
    if named is None and (out / "examples" / MANIFEST).is_file():
        ours = open_artifact(out / "examples", "examples")
        # The examples of a recipe with other phases have other sets of plans, but the common ones are the same.
        return ours.fingerprint == inputs.get("examples") or (
            (run / "examples" / MANIFEST).is_file() and _made_of(ours) == _made_of(open_artifact(run / "examples"))
        )
    if not (run / "recipe.toml").is_file():
        return False
    return _texts(recipe) == _texts(Recipe.load(run / "recipe.toml", given=False))


def _made_of(examples: Artifact) -> tuple[Any, ...]:
    """Return what the pairs are made of. Both trainings have the same vocabulary, or the weights would be refused."""
    return examples.manifest["config"]["examples"], examples.manifest["inputs"].get("corpus")


def _texts(recipe: Recipe) -> tuple[Any, ...]:
    """Return the settings of the examples and of their texts, with the paths of the texts."""
    corpus = recipe.corpus
    sources = [str(source.path) for source in corpus.source] if corpus else []
    sections = {"corpus": corpus, "examples": recipe.examples}
    return result_settings(sections), sources, recipe.train.phases[0].data
