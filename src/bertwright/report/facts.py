"""Everything the page shows, read from the run folder: manifests, JSON, JSONL and the recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.artifact import MANIFEST, Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_bytes, read_json, read_typed, sha256_of
from bertwright.core.json_values import parse_json
from bertwright.evaluate.shapes import ERROR, PREDICTIONS
from bertwright.exams.shapes import CURVE, Curve
from bertwright.exams.shapes import FOLDER as EXAMS
from bertwright.export.certify.shapes import CERTIFICATE, SHAPE, Certificate
from bertwright.forecast_shapes import PLAN, Plan
from bertwright.tasks.members import task_of_sealed
from bertwright.tasks.section import TaskSection
from bertwright.tasks.title import model_title
from bertwright.train.shapes import row_type

METRICS = "metrics.jsonl"
FORECAST = "forecast.json"
ERRORS = "errors.jsonl"


@dataclass(frozen=True)
class Facts:
    """One run, finished or still training."""

    name: str
    """The name of the run."""
    title: str
    """Heading of the page, if the recipe gives one."""
    stages: Mapping[str, Artifact]
    """The artifact of each stage, in travel order; an unfinished run may lack `evaluate` and `export`."""
    metrics: tuple[Mapping[str, Any], ...]
    """The rows of metrics.jsonl, in order."""
    predictions: tuple[Mapping[str, Any], ...]
    """Sentences with a masked word and the model's guesses."""
    errors: tuple[Mapping[str, Any], ...]
    """Wrong answers, the worst first; none of a task whose evaluation lists none."""
    recipe: str
    """The resolved recipe, TOML."""
    scores: Mapping[str, Any]
    """The held-out scores: those of the stage `evaluate`, else the last that training took; None if unknown."""
    forecast: Plan | None = None
    """The forecast of the run; None if the folder has none."""
    exams: tuple[Curve, ...] = ()
    """What its checkpoints score in suites of exams."""
    certificate: Certificate | None = None
    """How runtimes answer; None if none was made."""

    def counts(self, stage: str) -> Mapping[str, Any]:
        """The counts of a stage."""
        return self.stages[stage].counts

    @property
    def unfinished(self) -> Mapping[str, Any] | None:
        """The checkpoint shown, its step and the total number of steps; None once training has ended."""
        state: Mapping[str, Any] | None = self.counts("train").get("unfinished")
        return state

    @property
    def phases(self) -> list[tuple[Mapping[str, Any], int, int]]:
        """The settings of each phase, its length in steps, and the step after which it ended or is to end. Raises
        `ArtifactError` if the counts of the training are of another number of phases than its settings."""
        train, counts = self.stages["train"], self.counts("train")
        settings, steps, ends = train.manifest["config"]["train"]["phases"], counts["phase_steps"], counts["phase_ends"]
        if len(settings) != len(steps):
            raise ArtifactError(
                f"{train.path / MANIFEST} is not valid: phase_steps must have a number for each of the "
                f"{len(settings):,} phases in its settings. Restore the file, or build its stage again."
            )
        return list(zip(settings, steps, ends, strict=True))

    @property
    def section(self) -> TaskSection:
        """How the scores of its task are presented."""
        return task_of_sealed(self.stages["train"].manifest["config"]).section

    @property
    def language(self) -> str:
        """Language of the texts, from the corpus or the export; "" if neither states it."""
        if "corpus" in self.stages:
            return str(self.stages["corpus"].manifest["config"]["corpus"]["language"])
        export = self.stages.get("export")
        return str(export.manifest["config"]["texts"]["language"]) if export else ""

    @property
    def model_title(self) -> str:
        """What the model is, in a line."""
        return model_title(self.stages["train"].manifest, self.language)

    @property
    def verdict(self) -> str:
        """How good the model is, in a sentence or two."""
        return self.section.verdict(self.scores)


def read_facts(folder: Path, stages: Mapping[str, Artifact], title: str) -> Facts:
    """Read the facts of the run in `folder`; `stages` are its artifacts."""
    train, evaluate = stages["train"], stages.get("evaluate")
    rows = train.file(METRICS) if METRICS in train.names() else train.path / METRICS  # not sealed while training runs
    metrics = tuple(_rows(rows))
    predictions = read_typed(evaluate.file("predictions.json"), PREDICTIONS) if evaluate else []
    section = task_of_sealed(train.manifest["config"]).section
    return Facts(
        name=folder.resolve().name,
        title=title,
        stages=stages,
        metrics=metrics,
        predictions=tuple(dict(line) for line in predictions),
        errors=_errors(evaluate),
        recipe=_text(folder / "recipe.toml"),
        scores=evaluate.counts if evaluate else section.taken(metrics, stages["examples"].counts),
        forecast=_forecast(folder / FORECAST),
        exams=tuple(read_typed(file, CURVE) for file in sorted((folder / EXAMS).glob("*.json"))),
        certificate=_certificate(folder, stages.get("export")),
    )


def _certificate(folder: Path, export: Artifact | None) -> Certificate | None:
    """The one made last, by `bertwright certify`; else that of the export."""
    if (folder / CERTIFICATE).is_file():
        return read_typed(folder / CERTIFICATE, SHAPE)
    sealed = f"hf/{CERTIFICATE}"
    return read_typed(export.file(sealed), SHAPE) if export and sealed in export.names("hf/") else None


def _errors(evaluate: Artifact | None) -> tuple[Mapping[str, Any], ...]:
    """The rows of errors.jsonl; none if it does not exist. Raises `ArtifactError` if one is not valid."""
    if evaluate is None or ERRORS not in evaluate.names():
        return ()
    path = evaluate.file(ERRORS)
    found = []
    for number, line in enumerate(read_bytes(path).splitlines(), 1):
        try:
            found.append(dict(ERROR.validate_python(parse_json(line))))
        except ValueError as error:
            raise ArtifactError(f"{path}:{number} is not an error of the model. Restore the file.") from error
    return tuple(found)


def _forecast(path: Path) -> Plan | None:
    """The forecast saved before training began; None if there is none. Raises `ArtifactError` if it is damaged."""
    if not path.is_file():
        return None
    kept = read_json(path)
    if not isinstance(kept, dict) or kept.pop("sha256", None) != sha256_of(kept):
        raise ArtifactError(
            f"{path} is damaged: it does not match its checksum. Remove it: the report can be written without it."
        )
    return read_typed(path, PLAN)


def read_metrics(path: Path) -> tuple[Mapping[str, Any], ...]:
    """The rows of a metrics.jsonl that may still be written to; an incomplete last line is ignored."""
    data = read_bytes(path)
    return tuple(_rows_of(path, data[: data.rfind(b"\n") + 1]))


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    return _rows_of(path, read_bytes(path))


def _rows_of(path: Path, data: bytes) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(data.splitlines(), 1):
        try:
            row = row_type().validate_python(parse_json(line))
            # Both are required: a row without them has no place in the curves.
            yield {**row, "phase": row["phase"], "step": row["step"]}
        except (ValueError, KeyError) as error:
            raise ArtifactError(f"{path}:{number} is not a row of metrics. Restore the file.") from error


def _text(path: Path) -> str:
    try:
        return read_bytes(path).decode()
    except (FileNotFoundError, UnicodeDecodeError) as error:
        raise ArtifactError(f"cannot read {path}: {error}. The command that makes the stages writes it.") from error
