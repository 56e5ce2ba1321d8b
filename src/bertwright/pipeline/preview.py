"""Previews a run whose training is unfinished: `evaluate`, `export` and `report` on its newest valid checkpoint.

The run is not modified and its lock is not taken, so a running training can be inspected. The results are written to a
separate folder, `unfinished/after-step-N/`, with the same parts as a run folder, and are marked as unfinished
everywhere. While training runs, it also writes such a page itself (the run's `report.html`) at every checkpoint and
when it has diverged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.errors import ArtifactError, BertwrightError
from bertwright.core.files import make_folder
from bertwright.core.log import Log
from bertwright.core.work_split import FolderLock
from bertwright.pipeline.arguments import Work
from bertwright.pipeline.lineage import finished_artifact, inputs_of, refuse_other_training, training_identity
from bertwright.pipeline.stage import STAGES
from bertwright.recipe import Recipe
from bertwright.train.settings.identity import checkpoints_in

if TYPE_CHECKING:
    from bertwright.train.checkpoints.unfinished import UnfinishedTraining

PREVIEWED = ("evaluate", "export", "report")
"""The stages that can run on the newest checkpoint of an unfinished training."""


def is_unfinished(folder: Path) -> bool:
    """Whether training in the run `folder` has checkpoints but has not finished."""
    train = folder / "train"
    return not (train / MANIFEST).is_file() and bool(checkpoints_in(train))


def preview(recipe: Recipe, folder: Path, stages: Sequence[str], log: Log) -> Path:
    """Run `stages`, a subset of `PREVIEWED`, on the newest valid checkpoint in the run `folder`; return the output
    folder.

    `export` needs scores and example texts, so it also evaluates. Raises `ArtifactError` if the run was made with other
    settings than the recipe's.
    """
    refuse_other_training(recipe, folder)
    # `evaluate` needs only the examples, so it also works where the corpus was not copied to the training machine.
    corpus = _corpus(recipe, folder) if {"export", "report"} & set(stages) else {}
    artifacts = {**corpus, **inputs_of("train", recipe, folder)}
    newest = _newest(recipe, folder, artifacts, log)
    state = newest.counts["unfinished"]
    out = make_folder(folder / "unfinished" / f"after-{newest.checkpoint.path.name}")
    of = f"{state['step']:,} of {state['steps']:,} steps"
    log.say(f"{', '.join(stages)}: training is not finished, so the newest checkpoint ({of}) is used, in {out}")
    # Locks the output folder, not the run, which may be training: two previews of one checkpoint exclude each other.
    with FolderLock(out):
        recipe.write(out / "recipe.toml")
        artifacts["train"] = newest.snapshot(out / "train", log)
        for name in ("evaluate", "export"):
            if name in stages or (name == "evaluate" and "export" in stages):
                STAGES[name].prepare(Work(recipe, artifacts, out, log))()
            if (out / name / MANIFEST).is_file():  # made from this checkpoint, now or earlier
                artifacts[name] = open_artifact(out / name, name)
        if "report" in stages:
            STAGES["report"].prepare(Work(recipe, artifacts, out, log))()
    return out


def _corpus(recipe: Recipe, folder: Path) -> dict[str, Artifact]:
    return {"corpus": finished_artifact(folder, "corpus")} if recipe.corpus else {}


def page_while_training(recipe: Recipe, folder: Path, made: Mapping[str, Artifact], log: Log) -> Callable[[Path], None]:
    """A function that writes the run's page into `folder`, given the path of its newest checkpoint.

    A page that cannot be written is logged, and training continues.
    """

    def write(checkpoint: Path) -> None:
        try:
            from bertwright.report.run import write_page  # no other stage needs it

            train = _standing(recipe, folder, made, open_artifact(checkpoint, "checkpoint")).artifact()
            artifacts = {**_corpus(recipe, folder), **made, "train": train}
            write_page(
                recipe.report, folder, {name: artifacts[name] for name in STAGES["report"].inputs if name in artifacts}
            )
        # The page is only for people: a missing page, even through a bug of ours, must not end days of training.
        except Exception as error:
            why = str(error) if isinstance(error, BertwrightError | OSError) else f"{type(error).__name__}: {error}"
            log.say(f"report: no page was made at {checkpoint.name}: {why}")

    return write


def _newest(recipe: Recipe, folder: Path, made: Mapping[str, Artifact], log: Log) -> UnfinishedTraining:
    from bertwright.train.checkpoints.checkpoint import newest_valid

    for last in (False, True):  # the newest checkpoint may be pruned while it is read
        try:
            newest = newest_valid(folder / "train" / "checkpoints", log)
            if newest is not None:
                return _standing(recipe, folder, made, newest)
        except (ArtifactError, FileNotFoundError):
            if last:
                raise
    raise ArtifactError(f"{folder / 'train'} has no checkpoint yet. Try again when training has saved one.")


def _standing(recipe: Recipe, folder: Path, made: Mapping[str, Artifact], checkpoint: Artifact) -> UnfinishedTraining:
    from bertwright.train.checkpoints.unfinished import unfinished_training

    inputs = {name: made[name].fingerprint for name in ("examples", "vocab")}
    network = recipe.task.network(recipe.model, int(made["vocab"].counts["entries"]), recipe.examples.pairs)
    return unfinished_training(
        checkpoint, training_identity(recipe, inputs, folder), network, made["vocab"], recipe.train.init_from
    )
