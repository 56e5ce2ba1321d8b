"""Everything the page shows, read from the run folder: manifests, JSON, JSONL and the recipe's text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_bytes, read_json, read_typed, sha256_of
from bertwright.core.json_values import parse_json
from bertwright.evaluate.shapes import PREDICTIONS, untrained
from bertwright.plan.shapes import PLAN, Plan
from bertwright.train.shapes import row_type

METRICS = "metrics.jsonl"
FORECAST = "forecast.json"
SCORES = (
    "mlm_loss",
    "mlm_accuracy",
    "perplexity",
    "unigram_loss",
    "most_common_token_accuracy",
    "nsp_accuracy",
    "nsp_majority",
)
"""The scores of a summary."""
SENTENCE_ORDER = ("sop_accuracy", "sop_majority")
"""Those of a summary where pairs are told by their order."""
TAKEN = ("mlm_loss", "mlm_accuracy", "nsp_accuracy", "sop_accuracy", "predictions")
"""Those that training takes."""


@dataclass(frozen=True)
class Facts:
    """One run, finished or under way."""

    title: str
    """Heading of the page."""
    stages: Mapping[str, Artifact]
    """The artifact of each stage, in travel order; of an unfinished training `evaluate` and `export` may be missing."""
    metrics: tuple[Mapping[str, Any], ...]
    """The rows of metrics.jsonl, in order."""
    predictions: tuple[Mapping[str, Any], ...]
    """Sentences with a masked word and the model's guesses."""
    recipe: str
    """The resolved recipe, TOML."""
    scores: Mapping[str, Any]
    """The held-out scores: of the stage `evaluate`, or else the last ones that training took; None where not known."""
    forecast: Plan | None = None
    """The forecast of the run; None in a folder that has none."""

    def counts(self, stage: str) -> Mapping[str, Any]:
        """What a stage counted."""
        return self.stages[stage].counts

    @property
    def unfinished(self) -> Mapping[str, Any] | None:
        """Of a training that is under way: the checkpoint that is shown, its step, and the steps of the whole."""
        state: Mapping[str, Any] | None = self.counts("train").get("unfinished")
        return state

    @property
    def labels(self) -> Sequence[str]:
        """The classes that are told apart; none of a pre-training."""
        return tuple(self.counts("examples").get("labels", ()))

    @property
    def plan(self) -> str:
        """What the examples are: examples.plan."""
        return str(self.stages["examples"].manifest["config"]["examples"]["plan"])

    @property
    def pair_task(self) -> str:
        """What the scores of pairs are called: sop or nsp (also those of sentence order in runs of older versions)."""
        return "sop" if self.scores.get("sop_accuracy") is not None else "nsp"

    @property
    def language(self) -> str:
        """Of the texts, by the corpus or the export; "" where neither says it."""
        if "corpus" in self.stages:
            return str(self.stages["corpus"].manifest["config"]["corpus"]["language"])
        export = self.stages.get("export")
        return str(export.manifest["config"]["texts"]["language"]) if export else ""

    @property
    def heldout_unit(self) -> str:
        """What is held out: documents, or examples that were made elsewhere."""
        phases = self.counts("examples")["heldout"].get("phases", {}).values()
        # A corpus has no phases here: then documents are held out.
        return "documents" if all("documents" in phase for phase in phases) else "examples"

    @property
    def scored_length(self) -> int:
        """The longest of the held-out sequences that the scores are of, in tokens."""
        if "evaluate" in self.stages:
            return int(self.stages["evaluate"].manifest["config"]["evaluate"]["length"])
        return int(self.stages["train"].manifest["config"]["train"]["phases"][self.scores["phase"]]["length"])

    def label_share(self, split: str, length: int) -> float | None:
        """The share of pairs of this length whose second segment is random (or swapped), over all passes."""
        sequences = self.counts("examples")[split]["sequences"]
        own: Mapping[str, Any] = sequences.get(f"{length}") or next(
            (of_length for name, of_length in sequences.items() if name.startswith(f"{length}-")), {}
        )
        return own.get("label_share")


def read_facts(folder: Path, stages: Mapping[str, Artifact], title: str) -> Facts:
    """The facts of the run in `folder`, whose artifacts are `stages`."""
    train, evaluate = stages["train"], stages.get("evaluate")
    rows = train.file(METRICS) if METRICS in train.names() else train.path / METRICS  # under way: not sealed yet
    metrics = tuple(_rows(rows))
    predictions = read_typed(evaluate.file("predictions.json"), PREDICTIONS) if evaluate else []
    return Facts(
        title=title or folder.resolve().name,
        stages=stages,
        metrics=metrics,
        predictions=tuple(dict(line) for line in predictions),
        recipe=_text(folder / "recipe.toml"),
        scores=evaluate.counts if evaluate else _of_training(metrics, stages),
        forecast=_forecast(folder / FORECAST),
    )


def _forecast(path: Path) -> Plan | None:
    """The forecast that was kept before training began; None in a folder of before."""
    if not path.is_file():
        return None
    kept = read_json(path)
    if not isinstance(kept, dict) or kept.pop("sha256", None) != sha256_of(kept):
        raise ArtifactError(f"{path} is damaged: it does not match its own seal. Remove it: the report does without.")
    return read_typed(path, PLAN)


def _of_training(metrics: tuple[Mapping[str, Any], ...], stages: Mapping[str, Artifact]) -> Mapping[str, Any]:
    """The last held-out scores that training took, with what word frequencies score on the whole held-out text."""
    if "labels" in stages["examples"].counts:
        return _of_classifier(metrics, stages["examples"])
    row: Mapping[str, Any] = next((row for row in reversed(metrics) if "heldout_mlm_loss" in row), {})
    # What only the stage evaluate takes is there as None, so the page need not ask which of the two it reads.
    scores = dict.fromkeys(SCORES) | {name: row.get(f"heldout_{name}") for name in TAKEN}
    scores["unigram_loss"] = unigram = stages["examples"].counts["heldout"]["unigram_loss"]
    scores["untrained"] = bool(row) and untrained(row["heldout_mlm_loss"], unigram)
    return scores | {"step": row.get("total_steps"), "phase": row.get("phase", 0)}


def _of_classifier(metrics: tuple[Mapping[str, Any], ...], examples: Artifact) -> Mapping[str, Any]:
    """The last held-out loss and accuracy that training took."""
    names = {"classification_loss": "classification_loss", "classification_accuracy": "accuracy"}
    names |= {"regression_loss": "regression_loss"}
    row: Mapping[str, Any] = next(
        (row for row in reversed(metrics) if any(f"heldout_{name}" in row for name in names)), {}
    )
    scores = {name: row[f"heldout_{key}"] for key, name in names.items() if f"heldout_{key}" in row}
    scored = {"sequences": examples.counts["heldout"]["examples"]}
    return {**scores, **scored, "step": row.get("total_steps"), "phase": row.get("phase", 0)}


def read_metrics(path: Path) -> tuple[Mapping[str, Any], ...]:
    """The rows of a metrics.jsonl that may be written to just now, whose last line may be half there."""
    data = read_bytes(path)
    return tuple(_rows_of(path, data[: data.rfind(b"\n") + 1]))


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    return _rows_of(path, read_bytes(path))


def _rows_of(path: Path, data: bytes) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(data.splitlines(), 1):
        try:
            row = row_type().validate_python(parse_json(line))
            # Both must be there: a row without them belongs nowhere in the curves.
            yield {**row, "phase": row["phase"], "step": row["step"]}
        except (ValueError, KeyError) as error:
            raise ArtifactError(f"{path}:{number} is no row of metrics. Restore the file.") from error


def _text(path: Path) -> str:
    try:
        return read_bytes(path).decode()
    except (FileNotFoundError, UnicodeDecodeError) as error:
        raise ArtifactError(f"cannot read {path}: {error}. The command that makes the stages writes it.") from error
