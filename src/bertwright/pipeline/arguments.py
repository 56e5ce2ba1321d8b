"""The arguments of each stage's function: its recipe sections, its input artifacts and its context."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_typed
from bertwright.core.log import Log
from bertwright.core.stage_context import STAGE_NAMES, StageContext
from bertwright.core.tasks import Executor
from bertwright.core.work_split import SINGLE, WorkSplit
from bertwright.evaluate.config import Inputs as EvaluateInputs
from bertwright.examples.run_tasks import Inputs as ExamplesInputs
from bertwright.export.config import Inputs as ExportInputs
from bertwright.recipe import Recipe
from bertwright.train.settings.identity import Inputs as TrainInputs
from bertwright.train.settings.identity import Settings


@dataclass(frozen=True)
class Work:
    """Everything needed to start a stage."""

    recipe: Recipe
    made: Mapping[str, Artifact]
    """The input artifacts, by stage name."""
    folder: Path
    """The run folder, or another folder with the same parts."""
    log: Log
    executor: Executor | None = None
    share: WorkSplit = SINGLE
    saved: Callable[[Path], None] = lambda _: None
    """Called with the path of each new checkpoint, and again with the newest one if training diverges."""

    def context(self, stage: str) -> StageContext:
        """The context of the stage with this name, which includes its folder."""
        return StageContext(self.folder / stage, self.log, self.executor, self.share)


def corpus(work: Work) -> dict[str, Any]:
    """The arguments of `corpus.run.run`."""
    workers = {"executor": work.executor, "share": work.share}
    return {"config": work.recipe.corpus, "out": work.folder / "corpus", "log": work.log, **workers}


def vocab(work: Work) -> dict[str, Any]:
    """The arguments of `vocab.run.run`."""
    out = work.folder / "vocab"
    return {"config": work.recipe.vocab, "corpus": work.made.get("corpus"), "out": out, "log": work.log}


def examples(work: Work) -> dict[str, Any]:
    """The arguments of the functions that make examples: `examples.run.run`, `formats.imported.run.run` with external
    data, or the one that the task names."""
    recipe = work.recipe
    inputs = ExamplesInputs(work.made.get("corpus"), work.made["vocab"], recipe.train.imported_data())
    context = work.context("examples")
    return {"config": recipe.examples, "sets": recipe.plan_sets(), "inputs": inputs, "context": context}


def train(work: Work) -> dict[str, Any]:
    """The arguments of `train.run.run`."""
    return {
        "settings": train_settings(work.recipe),
        "inputs": TrainInputs(work.made["examples"], work.made["vocab"]),
        "context": work.context("train"),
        "scored_after": _scored_after(work.recipe, work.made["examples"]),
        "saved": work.saved,
        "step_bands": step_bands(work.folder),
    }


def train_settings(recipe: Recipe) -> Settings:
    """The sections that determine what is trained."""
    return Settings(recipe.train, recipe.model, recipe.optim, recipe.evaluate)


def _scored_after(recipe: Recipe, examples: Artifact) -> int:
    """Tokens, with padding, of the held-out sequences that the stage `evaluate` scores."""
    length = recipe.evaluate_length()
    # Held-out documents have plans for only one pass, so there is a single number.
    (sequences,) = examples.counts["heldout"]["rows"][f"{length}"]
    return length * min(int(sequences), recipe.evaluate.max_sequences or int(sequences))


def evaluate(work: Work) -> dict[str, Any]:
    """The arguments of `evaluate.run.run`."""
    return {
        "config": work.recipe.evaluate,
        "length": work.recipe.evaluate_length(),
        "inputs": EvaluateInputs(work.made["train"], work.made["examples"], work.made["vocab"]),
        "context": work.context("evaluate"),
        "general": work.recipe.general_texts(),
    }


def export(work: Work) -> dict[str, Any]:
    """The arguments of `export.run.run`."""
    made, source = work.made, work.made[work.recipe.source]
    return {
        "config": work.recipe.export,
        "inputs": ExportInputs(made["train"], made["vocab"], made["evaluate"], source),
        "context": work.context("export"),
        "texts": work.recipe.described_texts(),
        "heldout": work.recipe.examples.heldout,
    }


def report(work: Work) -> dict[str, Any]:
    """The arguments of `report.run.run`; its page is written next to the folders of the stages, not into its own."""
    artifacts = {name: work.made[name] for name in STAGE_NAMES if name in work.made}
    return {"config": work.recipe.report, "folder": work.folder, "artifacts": artifacts, "log": work.log}


FORECAST = "forecast.json"


def step_bands(folder: Path) -> tuple[tuple[float, float], ...]:
    """The bounds of the seconds of a step of each phase, by the forecast in a run folder; empty if it has none, or one
    without hours, or if it is damaged, which the report says."""
    from bertwright.forecast_shapes import PLAN

    with suppress(ArtifactError, FileNotFoundError):
        plan = read_typed(folder / FORECAST, PLAN)
        total, low, high = plan["total_hours"], plan["low_hours"], plan["high_hours"]
        if total and low is not None and high is not None:
            seconds = [phase["step_seconds"] for phase in plan["phases"]]
            return tuple((each * low / total, each * high / total) for each in seconds)
    return ()
