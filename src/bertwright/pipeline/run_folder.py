"""The folder of a run and its readable contents: metrics, scores and summary."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from bertwright.core.artifact import MANIFEST, Artifact
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.core.files import read_json
from bertwright.pipeline.lineage import command_in, finished_artifact
from bertwright.train.monitor.metrics import read_rows
from bertwright.train.settings.identity import checkpoints_in

if TYPE_CHECKING:  # needed only by readers of a run's files
    from bertwright.evaluate.shapes import Counts as Scores
    from bertwright.examples.batch import MicroBatch
    from bertwright.recipe import Recipe
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

        `recipe` is the sealed one, if it is known (`pipeline.recorded_recipe`)."""
        from bertwright.pipeline.recorded_recipe import sealed_recipe
        from bertwright.train.settings.phases import resolve_phases

        # Not the current recipe.toml: training used the batches of the sealed settings.
        train = (recipe or sealed_recipe(self.path)[0]).train
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

    def artifact(self, stage: str) -> Artifact:
        """The finished artifact of a stage, whatever its settings; an error names the command that makes it."""
        return finished_artifact(self.path, stage)

    def _existing(self, name: str, stage: str) -> Path:
        if not (self.path / name).is_file():
            raise ArtifactError(
                f"{self.path / name} does not exist. Make it first: {command_in(self.path, f'{stage} RECIPE')}"
            )
        return self.path / name
