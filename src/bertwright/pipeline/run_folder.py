"""The folder of a run: its metrics, scores and summary, and the settings that it was made with.

These are the settings sealed in its artifacts, even if recipe.toml has changed since: a later stage with other
settings, or an editor, may have rewritten it. Code that shows or regenerates examples must therefore not rely on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.config import GIVEN, differences
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.core.files import read_json
from bertwright.pipeline.lineage import command_in, finished_artifact
from bertwright.recipe import Recipe
from bertwright.train.monitor.metrics import read_rows
from bertwright.train.settings.identity import checkpoints_in

if TYPE_CHECKING:  # needed only by readers of a run's files
    from bertwright.evaluate.shapes import Counts as Scores
    from bertwright.examples.batch import MicroBatch
    from bertwright.page.picture import Pictures
    from bertwright.report.shapes import Summary
    from bertwright.train.settings.phases import Phase
    from bertwright.train.shapes import MetricsRow


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run, finished or not; every run has the same parts. `RunFolder(path)` reads nothing yet."""

    path: Path

    def __init__(self, path: Path | str) -> None:
        object.__setattr__(self, "path", Path(path))

    @property
    def begun(self) -> bool:
        """Whether training has begun, so that its starting weights are no longer needed."""
        train = self.path / "train"
        return (train / MANIFEST).is_file() or bool(checkpoints_in(train))

    @property
    def unread(self) -> Collection[str]:
        """The recipe's keys whose files training no longer reads, because the finished stage `examples` contains them;
        none if it is not finished or damaged."""
        with suppress(ArtifactError):  # the stage that reads it says what is wrong with it
            names = (name.split() for name in self.artifact("examples").manifest["inputs"])
            return {f"train.phases.{rest[0]}.data" for kind, *rest in names if kind == "data"}
        return ()

    @property
    def metrics(self) -> list[MetricsRow]:
        """The logged steps of training so far, in order; also available while training runs."""
        rows = read_rows(self._existing("train/metrics.jsonl", "train"))
        # The row that says why training stopped does not describe steps.
        return cast("list[MetricsRow]", [row for row in rows if "stopped" not in row])

    @property
    def scores(self) -> Scores:
        """The held-out scores of the finished model, with their baselines; an error if they are those of an earlier
        model."""
        evaluate, train = self.artifact("evaluate"), self.artifact("train")
        # Extending a training leaves the scores of the shorter one in place.
        if evaluate.manifest["inputs"]["train"] != train.fingerprint:
            raise ArtifactError(
                f"{evaluate.path} holds the scores of an earlier model than {train.path}. Make them anew: "
                f"{command_in(self.path, 'evaluate RECIPE')}"
            )
        return cast("Scores", read_json(evaluate.file("scores.json")))

    @property
    def summary(self) -> Summary:
        """The headline numbers of the finished run."""
        return cast("Summary", read_json(self._existing("summary.json", "report")))

    def phases(self, recipe: Recipe | None = None) -> list[Phase]:
        """The phases of the training, resolved to steps; their loaders draw whole steps, however training divided them.

        `recipe` is the recorded one, if it is known (`recorded_recipe`).
        """
        from bertwright.train.settings.phases import resolve_phases

        # Not the current recipe.toml: training used the batches of the sealed settings.
        train = (recipe or recorded_recipe(self.path)[0]).train
        undivided = {"micro_batch": 0, "micro_tokens": 0, "packing": False}
        phases = tuple(phase.model_copy(update=undivided) for phase in train.phases)
        train = train.model_copy(update={"phases": phases})
        return resolve_phases(train, self.artifact("examples"), self.artifact("vocab"))

    def batches(self, phase: int = 0) -> Iterator[MicroBatch]:
        """The batches of a phase in the order of training, one for each step, with the masks that training drew.

        Needs the stages `vocab` and `examples`, not a finished training. The arrays are numpy's;
        `batch.map(torch.from_numpy)` makes them tensors, which is what a network reads.
        """
        phases = self.phases()
        if not 0 <= phase < len(phases):
            raise RecipeError(f"there is no phase {phase}; the training has the phases 0 to {len(phases) - 1}.")
        for step in range(phases[phase].steps):
            yield from phases[phase].loader.step(step)

    def documents(self, dropped: bool = False) -> Iterator[dict[str, Any]]:
        """The documents of the corpus in order, or those that it `dropped`, each with its `reason`: a dictionary with
        the `text`, a sentence a line, and what is known of it, such as `title`, `url`, `source` and `licence`.

        Needs the stage `corpus`. A document that is repeated, because its source has a weight, comes once.
        """
        from bertwright.corpus.articles import read_articles
        from bertwright.corpus.dropped import read_dropped

        corpus = self.artifact("corpus")
        if dropped:
            yield from read_dropped(corpus)
        else:
            for article in read_articles(corpus):
                yield {**article.facts, "text": "\n".join(article.sentences)}

    @property
    def curves(self) -> Pictures:
        """The charts of training so far by title, each as an SVG picture that needs no other file: of the losses, the
        accuracies, the gradient norm and the learning rate. A notebook shows them; also available while training runs.
        """
        from bertwright.page.picture import Pictures, picture
        from bertwright.report.curves import charts
        from bertwright.tasks.members import task_of

        section, rows = task_of(recorded_recipe(self.path)[0].task).section, self.metrics
        scores: Mapping[str, Any] = section.taken(rows, self.artifact("examples").counts)
        with suppress(ArtifactError):  # not scored yet
            scores = self.artifact("evaluate").counts
        return Pictures((chart.title, picture(chart)) for chart in charts(section, rows, scores))

    def artifact(self, stage: str) -> Artifact:
        """The finished artifact of a stage, whatever its settings; an error names the command that makes it."""
        return finished_artifact(self.path, stage)

    def _existing(self, name: str, stage: str) -> Path:
        if not (self.path / name).is_file():
            raise ArtifactError(
                f"{self.path / name} does not exist. Make it first: {command_in(self.path, f'{stage} RECIPE')}"
            )
        return self.path / name


def recorded_recipe(folder: Path) -> tuple[Recipe, list[str]]:
    """The recipe of the run in `folder` with the settings of all its artifacts, and the keys in which recipe.toml
    differs, each as `key: sealed value -> value in recipe.toml`.

    Settings of stages not yet made, and settings that do not affect results, come from recipe.toml. Raises
    `ArtifactError` if recipe.toml cannot belong to the artifacts.
    """
    if not (folder / "recipe.toml").is_file():
        raise RecipeError(f"{folder} is no run folder: it has no recipe.toml. Give the folder of a run.")
    # What training started from and was made of may no longer exist; nothing is started or made here.
    recipe = Recipe.load(folder / "recipe.toml", given=False, unread=("vocab.file", "model.config"))
    written = recipe.model_dump(mode="json")
    artifacts = _artifacts(folder)
    values = {
        **written,
        **{key: _overlaid(written[key], sealed) for key, sealed in _settings(artifacts, written).items()},
    }
    _restore_own_data(folder, values, artifacts)
    try:
        return Recipe.model_validate(values), differences(values, written)
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(map(str, fault["loc"]))
        raise ArtifactError(
            f"the settings recorded in {folder} do not match this version or {folder / 'recipe.toml'}: {key}: "
            f"{fault['msg']}. Restore recipe.toml, or make a new run."
        ) from error


def is_trained(folder: Path) -> bool:
    """Whether training has sealed its settings: it is finished or has a checkpoint."""
    return "train" in _artifacts(folder)


def _artifacts(folder: Path) -> dict[str, Artifact]:
    """The artifacts of the stages whose settings matter; for an unfinished training, its newest checkpoint."""
    stages = ("corpus", "vocab", "examples", "train")
    artifacts = {name: open_artifact(folder / name, name) for name in stages if (folder / name / MANIFEST).is_file()}
    if "train" not in artifacts:
        # One is enough: training rejects a folder whose checkpoints have other settings. Damaged checkpoints are
        # skipped, as training does when it resumes.
        for path in checkpoints_in(folder / "train"):
            with suppress(ArtifactError):
                artifacts["train"] = open_artifact(path, "checkpoint")
                break
    return artifacts


def _settings(artifacts: dict[str, Artifact], written: dict[str, Any]) -> dict[str, Any]:
    """The sealed settings by recipe section."""
    settings: dict[str, Any] = {}
    for name, artifact in artifacts.items():
        config = artifact.manifest["config"]
        sections = ("train", "model", "optim") if name == "train" else (name,)
        settings |= {section: dict(config[section]) for section in sections if section in config}
    if written["corpus"] is None:
        settings.pop("corpus", None)  # left by an earlier run in this folder
    if "corpus" in settings and len(settings["corpus"]["source"]) != len(written["corpus"]["source"]):
        del settings["corpus"]["source"]  # the location of texts is not sealed
    return settings


def _restore_own_data(folder: Path, values: dict[str, Any], artifacts: dict[str, Artifact]) -> None:
    """Restore which phases have their own data; that is sealed, but the location of the data is not."""
    if "train" not in artifacts:
        return
    inputs = {key for artifact in artifacts.values() for key in artifact.manifest["inputs"]}
    for index, phase in enumerate(values["train"]["phases"]):
        own = not inputs.isdisjoint((f"train.phases.{index}.data", f"data {index}"))
        # recipe.toml may name data that this run did not use.
        if not own:
            phase |= {"data": None, "quarantine": False}
        elif phase.get("data") in (None, GIVEN):
            raise ArtifactError(
                f"phase {index} of the run in {folder} was trained on its own data, but {folder / 'recipe.toml'} no "
                f"longer contains that key. Add train.phases.{index}.data there again."
            )


def _overlaid(old: Any, new: Any) -> Any:
    """`old` overwritten with all values in `new`; lists of tables are merged element by element."""
    if isinstance(old, dict) and isinstance(new, dict) and new.get("kind") in (None, old.get("kind")):
        return {**old, **{key: _overlaid(old.get(key), value) for key, value in new.items()}}
    # The sealed list may be longer: phases deleted from recipe.toml were trained all the same.
    if isinstance(old, list) and isinstance(new, list):
        return [_overlaid(a, b) for a, b in zip_longest(old[: len(new)], new)]
    return old if new == GIVEN and old is not None else new
