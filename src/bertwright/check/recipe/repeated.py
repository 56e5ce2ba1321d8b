"""Warns about a training whose first phase would read what the first phase of its donor (the training that it starts
from) has read, in the same order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bertwright.check.verdict import Verdict, warning
from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.config import fingerprinted
from bertwright.core.errors import BertwrightError
from bertwright.recipe import Recipe
from bertwright.train.settings.identity import checkpoints_in

_ORDER = ("length", "document_range", "data")
"""Keys of a phase that decide which sequences it reads, and in which order; the batch only cuts them into steps."""


def repeated(recipe: Recipe, out: Path, stages: Sequence[str]) -> Iterator[Verdict]:
    """Yield a warning if the recipe's training, if it is among `stages` and has not begun in the run folder `out`,
    starts from a training with the same seed and data, and with the same first phase in what decides its order.

    Sequences, masks and dropout are a function of the seed, the phase's index and the step within the phase.
    """
    start = recipe.train.init_from
    # The layers of a deeper network are chosen for a new training, which may well read the same.
    if "train" not in stages or start is None or recipe.train.init_layers or recipe.task.texts:
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
    ours: dict[str, Any] = fingerprinted(recipe.train.phases[0])
    same = [
        _shown(ours.get(name)) == _shown(phase.get(name)) for phase in theirs.get("phases", [])[:1] for name in _ORDER
    ]
    return theirs.get("seed") == recipe.train.seed and all(same)


def _shown(value: Any) -> Any:
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
    return fingerprinted(sections), sources, recipe.train.phases[0].data
