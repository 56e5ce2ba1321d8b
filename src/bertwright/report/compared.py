"""Reads runs to be compared from their folders: metrics rows, sealed settings, scores and the training ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.dotted import child_key
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.core.files import read_bytes
from bertwright.core.json_values import parse_json
from bertwright.core.stage_context import STAGE_NAMES
from bertwright.report.facts import METRICS, read_metrics
from bertwright.tasks.members import TASKS, task_of_sealed
from bertwright.tasks.section import Rows, Score, TaskSection

MOST = 8
"""Maximum number of runs on a page: more colours cannot be distinguished."""
NUMBERS = ("parameters", "steps", "sequences_seen", "tokens_seen", "tflops_done", "hours", "tokens_per_second")
"""The numbers that training records, in table order."""
_SECTIONS = tuple(task.section_type() for task in TASKS)
SCORED: Mapping[str, Score] = {score.key: score for section in _SECTIONS for score in section.compared}
"""The scores that are compared, by name, in table order; a run has those of its task."""
MACHINE = ("device", "ranks", "threads", "torch")


@dataclass(frozen=True)
class Run:
    """One of the compared runs, finished or still training."""

    name: str
    rows: Rows
    """Rows of metrics.jsonl, in order."""
    settings: Mapping[str, str]
    """Every sealed setting by its dotted key, and the fingerprints of the inputs of each stage."""
    scores: Mapping[str, Any]
    """Held-out scores: those of the stage `evaluate`, else the last ones taken during training."""
    numbers: Mapping[str, Any]
    """The training ledger, keyed by `NUMBERS`; a value is None where it is unknown."""
    finished: bool
    """Whether training has ended."""
    vocabulary: str
    """Hash of the vocabulary, "" if unknown: losses with different vocabularies cannot be compared."""
    scored_on: tuple[float, int] | None = None
    """Mask rate and length (tokens) of the held-out sequences that the scores were taken on; None if unknown, and for a
    classifier, which is scored on whole texts."""


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """Read the runs in these folders. Raises `RecipeError` if there are too few or too many or one is named twice,
    `ArtifactError` if one has not begun to train."""
    if len({folder.resolve() for folder in folders}) != len(folders):
        raise RecipeError("report: the same run folder is named twice. Name each run once.")
    if not 2 <= len(folders) <= MOST:
        raise RecipeError(f"report: {len(folders)} run folders cannot be compared. Name 2 to {MOST} of them.")
    return [_read(folder, name) for folder, name in zip(folders, _names(folders), strict=True)]


def _names(folders: Sequence[Path]) -> Iterator[str]:
    """The folder names, each prefixed with as many parent folders as it takes to make it unique."""
    parts = [folder.resolve().parts for folder in folders]
    for own in parts:
        yield next(
            "/".join(own[-many:])
            for many in range(1, len(own) + 1)
            if sum(p[-many:] == own[-many:] for p in parts) == 1
        )


def _read(folder: Path, name: str) -> Run:
    stages = {
        stage: open_artifact(folder / stage, stage) for stage in STAGE_NAMES if (folder / stage / MANIFEST).is_file()
    }
    rows = read_metrics(folder / "train" / METRICS) if (folder / "train" / METRICS).is_file() else ()
    if not rows:
        raise ArtifactError(
            f"{folder} has no rows of training ({folder / 'train' / METRICS}). Give folders of runs that have "
            "started training."
        )
    train = stages.get("train") or _checkpoint(folder)
    # Once training is extended, the results made from the shorter one are those of another model.
    model = stages["train"].fingerprint if "train" in stages else None
    stages = {name: each for name, each in stages.items() if each.manifest["inputs"].get("train", model) == model}
    # The last row with numbers: it holds less than a manifest but exists while training runs.
    # A row that says why training stopped has no numbers.
    last = next((row for row in reversed(rows) if "stopped" not in row), rows[-1])
    numbers = {key: last.get(key) for key in NUMBERS} | {"steps": last.get("total_steps")}
    if "train" in stages:
        numbers |= {key: stages["train"].counts.get(key) for key in NUMBERS}
    elif train is not None:
        numbers["hours"] = _hours(train)
    made = {**stages, **({"train": train} if train else {})}
    scores = _scores(stages, train, rows)
    return Run(
        name=name,
        rows=rows,
        settings=_settings(made),
        scores=scores,
        numbers=numbers,
        finished="train" in stages,
        vocabulary=_vocabulary(made),
        scored_on=_scored_on(made, rows) if "mlm_loss" in scores else None,
    )


def _vocabulary(made: Mapping[str, Artifact]) -> str:
    """Hash of the vocabulary; taken from `train` if the folder `vocab` is missing or never existed."""
    known = [made[stage].counts.get("vocabulary") for stage in ("vocab", "train") if stage in made]
    if "train" in made:
        known.append(made["train"].manifest["inputs"].get("vocabulary"))  # of a checkpoint
    return next((str(each) for each in known if each), "")


def _hours(checkpoint: Artifact) -> float | None:
    """Hours up to the checkpoint, including scoring and saving, as for a finished training; None if unknown."""
    try:
        state = parse_json(read_bytes(checkpoint.file("state.json")))
        return float(state["seconds"] + state["other_seconds"]) / 3600
    except (ArtifactError, ValueError, KeyError, TypeError):
        return None  # written by another version, or replaced by a newer checkpoint in the meantime


def _checkpoint(folder: Path) -> Artifact | None:
    """The newest readable checkpoint, sealed with the settings of an unfinished training; None if there is none."""
    for path in sorted((folder / "train" / "checkpoints").glob("step-*"), reverse=True):
        with suppress(ArtifactError):
            return open_artifact(path, "checkpoint")
    return None


def _settings(made: Mapping[str, Artifact]) -> dict[str, str]:
    found: dict[str, str] = {}
    for stage, artifact in made.items():
        found |= dict(_flat(artifact.manifest["config"]))
        found |= {f"{stage} made of: {name}": print_[:12] for name, print_ in artifact.manifest["inputs"].items()}
        if stage == "train":
            found |= {f"trained on: {key}": str(artifact.counts[key]) for key in MACHINE if key in artifact.counts}
    return found


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Each setting by its dotted key, as text."""
    if isinstance(value, Mapping):
        for name, member in value.items():
            yield from _flat(member, child_key(key, name))
    elif isinstance(value, list) and any(isinstance(member, Mapping) for member in value):
        for number, member in enumerate(value):
            yield from _flat(member, child_key(key, number))
    else:
        yield key, "" if value is None else str(value)


def _scores(stages: Mapping[str, Artifact], train: Artifact | None, rows: Rows) -> dict[str, Any]:
    section = _section(train, rows)
    if "evaluate" not in stages:
        return section.last(rows)[1]
    counts = stages["evaluate"].counts
    return {score.key: counts.get(score.key) for score in section.compared if score.per_token or score.key in counts}


def _section(train: Artifact | None, rows: Rows) -> type[TaskSection]:
    """The section of the run's task; without settings that can be read, the first one that knows the scores."""
    if train is not None:
        with suppress(ValueError):  # sealed by another version
            return task_of_sealed(train.manifest["config"]).section_type()
    return next((section for section in _SECTIONS if section.last(rows)[0]), _SECTIONS[0])


def _scored_on(made: Mapping[str, Artifact], rows: Rows) -> tuple[float, int] | None:
    with suppress(ArtifactError, KeyError, IndexError):  # sealed by another version, or not scored or saved yet
        if "evaluate" in made:
            evaluate = made["evaluate"].manifest["config"]["evaluate"]
            return evaluate["mask_rate"], evaluate["length"]
        phase = made["train"].manifest["config"]["train"]["phases"][_SECTIONS[0].last(rows)[0]["phase"]]
        rate = phase["masking"]["rate"]
        # Training scores with the first rate of a schedule.
        return rate[0][1] if isinstance(rate, list) else rate, phase["length"]
    return None


def differing_settings(runs: Sequence[Run]) -> dict[str, list[str]]:
    """The settings that differ between runs, by key: the value of each run, "–" if it has none."""
    keys = dict.fromkeys(key for run in runs for key in run.settings)
    values = {key: [run.settings.get(key, "–") for run in runs] for key in keys}
    return {key: of_runs for key, of_runs in values.items() if len(set(of_runs)) > 1}
