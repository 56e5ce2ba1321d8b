"""Check without torch the networks that a training starts from or learns from: whether they have the run's vocabulary,
and which of their parts are used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bertwright.check.recipe.data import trained_vocabulary
from bertwright.check.verdict import Verdict, error, from_exception, ok, warning
from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError, BertwrightError
from bertwright.export.hub_terms import NO_DERIVATIVES
from bertwright.model.importers.origin import origin_of
from bertwright.model.pretrained_config import (
    NEW_ROWS,
    Pretrained,
    check_vocabulary,
    own_vocabulary,
    read_pretrained,
    vocabulary_of,
)
from bertwright.model.transfer_config import correspondence, repeated_layers, transfer
from bertwright.recipe import Recipe
from bertwright.tasks.distillation.teacher_fit import KEY
from bertwright.train.settings.identity import checkpoints_in

_START = "train.init_from"


def pretrained(recipe: Recipe, out: Path, stages: Sequence[str]) -> Iterator[Verdict]:
    """Yield a verdict on each network that a pending training starts from or learns from: whether it has the vocabulary
    of the run folder `out`, and which parts are used.

    Whether it matches the network of `[model]`, and a given `vocab.file`, is checked on the recipe itself
    (`contradictions`).
    """
    if "train" not in stages:
        return
    teacher, start = recipe.task.taught_by, recipe.train.init_from
    if teacher is not None:
        yield _verdict(KEY, teacher, recipe, out, stages)
    # Once training has begun, it continues from its own checkpoints.
    if start is None or checkpoints_in(out / "train"):
        return
    try:
        checkpoint = recipe.train.init_checkpoint()
    except BertwrightError as cause:
        yield from_exception(_START, cause)
        return
    if checkpoint is None:
        yield _verdict(_START, start, recipe, out, stages)
        yield from _licence(start)
    else:
        yield _of_checkpoint(checkpoint, recipe, out)


def _verdict(key: str, path: Path, recipe: Recipe, out: Path, stages: Sequence[str]) -> Verdict:
    try:
        found = read_pretrained(path)
        ours = None if recipe.vocab.file is not None else trained_vocabulary(recipe, out)
        other_entries = key == _START and recipe.train.init_embeddings != "random"
        if ours is not None and not other_entries:
            check_vocabulary(found, ours, key, NEW_ROWS if key == _START else "")
        what = f"{path}: {found.network.title}, {found.network.parameters:,} parameters"
        # What is not used of the network that training starts from, and what it does not have.
        tiled, notes = recipe.train.init_tiled, list[str]()
        layers = recipe.train.init_layers
        if key == _START:
            own = recipe.network()
            layers = layers or (tuple(repeated_layers(own, found.network)) if tiled else ())
            notes = transfer(
                own, found, None if other_entries else len(found.entries), layers, other_entries, tiled
            ).notes
        if other_entries:
            return _new_rows(key, found, recipe, ours, [what, *notes])
    except BertwrightError as cause:
        return from_exception(key, cause)
    if ours is not None or recipe.vocab.file is not None:
        return ok(key, "; ".join([f"{what}, with the vocabulary of this run", *notes]))
    remedy = f"{own_vocabulary(found)}."
    if found.artifact is None:
        # It would be refused only after the corpus, which may take hours.
        text = f"{path} has a vocabulary, but this run would train another, whose ids belong to other words."
        return error(key, text, remedy)
    text = f"{what}; the vocabulary of this run is not trained yet, and must then be identical to that of {path}."
    return warning(key, text, remedy)


def _licence(start: Path) -> Iterator[Verdict]:
    """Warn about weights whose licence is known to forbid passing on what is made from them."""
    try:
        origin = origin_of(read_pretrained(start))
    except BertwrightError:
        return  # reported above
    if origin is not None and origin.licence in NO_DERIVATIVES:
        text = f"{origin.name or start} has the licence {origin.licence}, which allows no derivatives to be passed on."
        remedy = "Keep what you train from it to yourself, ask its owner, or start from another network."
        yield warning(_START, text, remedy)


def _new_rows(key: str, found: Pretrained, recipe: Recipe, ours: Artifact | None, said: Sequence[str]) -> Verdict:
    """Return the verdict on a network whose vocabulary may differ: how many rows are copied and made, where the run's
    vocabulary `ours`, or that of the recipe, is known."""
    vocab = recipe.vocab if ours is None else vocabulary_of(ours)
    if vocab.file is None:
        return ok(key, "; ".join([*said, "rows for the entries of this run's vocabulary, once it is trained"]))
    made = correspondence(found, vocab)
    if made.numbers[0] == 0:
        text = f"no entry of {vocab.file} is one of {found.path}: nothing would show which rows belong to which words."
        return error(key, text, "Give a network of a language in the same script, or leave train.init_from out.")
    return ok(key, "; ".join([*said, made.note]))


def _of_checkpoint(checkpoint: Artifact, recipe: Recipe, out: Path) -> Verdict:
    """Return the verdict on the vocabulary of a checkpoint that training starts from."""
    try:
        ours = None if recipe.vocab.file is not None else trained_vocabulary(recipe, out)
    except BertwrightError as cause:
        return from_exception(_START, cause)
    what = f"{checkpoint.path} is a checkpoint, whose moments are read too"
    if ours is not None and ours.counts["vocabulary"] != checkpoint.manifest["inputs"]["vocabulary"]:
        text = f"{checkpoint.path} was trained with another vocabulary than {ours.path}: its ids belong to other words."
        return error(_START, text, "Set vocab.file to the vocabulary of that training.", ArtifactError)
    if ours is not None or recipe.vocab.file is not None:
        return ok(_START, f"{what}, with the vocabulary of this run")
    text = (
        f"{what}; the vocabulary of this run is not trained yet, and must then be identical to that of the checkpoint."
    )
    return warning(_START, text, "Set vocab.file to the vocabulary of that training.")
