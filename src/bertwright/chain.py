"""What each artifact of a run is a function of, reckoned from the recipe, and whether a run folder holds just that.

A stage started by itself must not be given what other settings made. So the identities of everything before it are
reckoned first, from the source to the stage, without torch up to training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from bertwright.core.artifact import MANIFEST, Artifact, Identity, changes, open_artifact
from bertwright.core.errors import ArtifactError, DataError
from bertwright.recipe import Recipe

INPUTS: dict[str, tuple[str, ...]] = {
    "corpus": (),
    "vocab": ("corpus",),
    "examples": ("corpus", "vocab"),
    "train": ("examples", "vocab"),
    "evaluate": ("train", "examples", "vocab"),
    "export": ("train", "vocab", "evaluate", "corpus"),
    "report": ("corpus", "vocab", "examples", "train", "evaluate", "export"),
}
"""The artifacts that each stage is made of, where there is a corpus."""
WITHOUT_CORPUS = {**INPUTS, "export": ("train", "vocab", "evaluate", "examples")}
"""The same without one: the model card tells of the examples then."""


def needed_by(stage: str, recipe: Recipe) -> tuple[str, ...]:
    """The artifacts that a stage of the recipe is made of."""
    if recipe.corpus is not None:
        return INPUTS[stage]
    return tuple(name for name in WITHOUT_CORPUS[stage] if name != "corpus")


def inputs_of(
    stage: str, recipe: Recipe, folder: Path, made_now: Mapping[str, str] | None = None
) -> dict[str, Artifact]:
    """The artifacts in `folder` that `stage` is made of, by name.

    `made_now` has the fingerprints of those that this walk has made of the same recipe: they are not reckoned again,
    which for a corpus means opening its sources. Raises `ArtifactError` when an artifact is missing, or was made with
    other settings than the recipe's: it names the changed keys and the command to run.
    """
    needed = needed_by(stage, recipe)
    made = {name: finished_artifact(folder, name) for name in needed}
    if not needed:
        return made
    last = max(needed, key=list(INPUTS).index)
    for name, expected in identities(recipe, folder, last, made_now).items():
        if _is_finished(folder, name) and (different := _differences(folder, name, expected)):
            raise ArtifactError(
                f"{folder / name} was made with other settings ({different}). Make it first: "
                f"bertwright run RECIPE --until {last} --out {folder}"
            )
    return made


def finished_artifact(folder: Path, stage: str) -> Artifact:
    """The finished artifact of a stage in `folder`, whatever its settings; an error names the verb that makes it."""
    if not _is_finished(folder, stage):
        raise ArtifactError(
            f"{folder / stage} is not finished. Make it first: bertwright {stage} RECIPE --out {folder}"
        )
    return open_artifact(folder / stage, stage)


def refuse_other_training(recipe: Recipe, folder: Path) -> None:
    """Raise `ArtifactError` when the checkpoints in `folder` may not be continued with the settings of the recipe.

    The message names the changed keys, also those of the stages before training.
    """
    from bertwright.train.claim import CHECKPOINTS, checkpoint_identity, refuse_other_settings

    expected = identities(recipe, folder, "examples")
    run = training_identity(recipe, {name: identity.fingerprint for name, identity in expected.items()}, folder)
    if words := _words_of(folder / "train" / CHECKPOINTS):
        run = replace(run, inputs={**run.inputs, "vocabulary": words})
    if not any((folder / "train" / CHECKPOINTS).glob("step-*")) and _is_finished(folder, "train"):
        if different := _differences(folder, "train", identities(recipe, folder, "train")["train"]):
            raise ArtifactError(
                f"{folder / 'train'} holds a model of other settings, and trained weights are not thrown away: "
                f"{different}. Set these back, or train elsewhere (--out DIR), or move {folder / 'train'} away."
            )
        return
    sections = recipe.train, recipe.model, recipe.optim, recipe.examples.pairs
    try:
        refuse_other_settings(folder / "train", checkpoint_identity(*sections, run))
    except ArtifactError as error:
        before = [f"{name} ({d})" for name in expected if (d := _differences(folder, name, expected[name]))]
        raise ArtifactError(f"{error} Changed before it: {', '.join(before)}." if before else str(error)) from None


def _words_of(checkpoints: Path) -> str:
    """The hash of the vocabulary's entries that the checkpoints carry.

    A vocabulary knows it only when it is built. Nothing is lost by taking it from there: it follows from the
    vocabulary's fingerprint, which is compared.
    """
    for path in sorted(checkpoints.glob("step-*"), reverse=True):
        with suppress(ArtifactError):
            return str(open_artifact(path, "checkpoint").manifest["inputs"].get("vocabulary", ""))
    return ""


def identities(
    recipe: Recipe, folder: Path, last: str, made_now: Mapping[str, str] | None = None
) -> dict[str, Identity]:
    """The identity of each artifact up to the stage `last`, in travel order, without those of `made_now`.

    The source may be gone when a stage after the corpus runs: the corpus then counts as what stands in `folder`, and
    has no identity here.
    """
    found: dict[str, Identity] = {}
    known = dict(made_now or {})
    for name in [*takewhile(last.__ne__, _RECKON), last]:
        if name in known or (name == "corpus" and recipe.corpus is None):
            continue
        try:
            found[name] = _RECKON[name](recipe, known, folder)
            known[name] = found[name].fingerprint
        except DataError:
            if name != "corpus" or (standing := _standing_corpus(folder)) is None:
                raise
            known[name] = standing
    return found


def _differences(folder: Path, name: str, expected: Identity) -> str:
    """How the finished artifact in `folder` differs from the expected one, one phrase per key; "" if it does not."""
    standing = open_artifact(folder / name, name) if _is_finished(folder, name) else None
    if standing is None or standing.fingerprint == expected.fingerprint:
        return ""
    return "; ".join(changes(standing, expected))


def _is_finished(folder: Path, name: str) -> bool:
    return (folder / name / MANIFEST).is_file()


def _standing_corpus(folder: Path) -> str | None:
    if _is_finished(folder, "corpus"):
        return open_artifact(folder / "corpus", "corpus").fingerprint
    if _is_finished(folder, "vocab"):
        return str(open_artifact(folder / "vocab", "vocab").manifest["inputs"]["corpus"])
    return None


def _corpus(recipe: Recipe, inputs: Mapping[str, str], folder: Path) -> Identity:
    from bertwright.corpus.config import VERSION
    from bertwright.corpus.run import identity

    assert recipe.corpus is not None
    try:
        return identity(recipe.corpus)
    except DataError:  # the source is gone or was never copied here, but its settings are known: they are compared
        if not _is_finished(folder, "corpus"):
            raise
        made = open_artifact(folder / "corpus", "corpus").manifest["inputs"]
        return Identity("corpus", VERSION, {"corpus": recipe.corpus}, made)


def _vocab(recipe: Recipe, inputs: Mapping[str, str], folder: Path) -> Identity:
    from bertwright.vocab.run import identity

    return identity(recipe.vocab, inputs)


def _examples(recipe: Recipe, inputs: Mapping[str, str], folder: Path) -> Identity:
    from bertwright.examples.foreign_files import find, find_tests, known_by
    from bertwright.examples.run import identity

    known, foreign = dict(inputs), recipe.train.foreign_data()
    for data in foreign:
        if data.path.exists():
            found = find(data)
            known |= known_by(data, found, () if recipe.corpus else find_tests(data, found))
        elif _is_finished(folder, "examples"):  # the files are gone, what was made of them is not
            known = {**open_artifact(folder / "examples", "examples").manifest["inputs"], **known}
    foreign = tuple(data for data in foreign if data.input in known)
    return identity(recipe.examples, recipe.plan_sets(), known, foreign)


def training_identity(recipe: Recipe, inputs: Mapping[str, str], folder: Path) -> Identity:
    """What training is a function of; `inputs` has the fingerprints of "examples" and "vocab"."""
    from bertwright.train.claim import identity

    ours = {name: inputs[name] for name in INPUTS["train"]}
    return identity(recipe.train, recipe.model, recipe.optim, recipe.examples.pairs, ours, folder / "train")


def _train(recipe: Recipe, inputs: Mapping[str, str], folder: Path) -> Identity:
    from bertwright.train.claim import extended

    settings = training_identity(recipe, inputs, folder)
    standing = open_artifact(folder / "train", "train") if _is_finished(folder, "train") else None
    if standing is None or standing.manifest["version"] != settings.version:
        return settings
    return extended(settings, standing.counts["extensions"], standing.counts["weights"])


def _evaluate(recipe: Recipe, inputs: Mapping[str, str], folder: Path) -> Identity:
    from bertwright.evaluate.run import identity

    return identity(recipe.evaluate, recipe.evaluate_length(), inputs)


def _export(recipe: Recipe, inputs: Mapping[str, str], folder: Path) -> Identity:
    from bertwright.export.run import identity

    return identity(recipe.export, inputs, recipe.texts)


_RECKON: dict[str, Callable[[Recipe, Mapping[str, str], Path], Identity]] = {
    "corpus": _corpus,
    "vocab": _vocab,
    "examples": _examples,
    "train": _train,
    "evaluate": _evaluate,
    "export": _export,
}
