"""The scores of all checkpoints of a run in a suite: its quality against tokens, hours and operations.

They are kept in the run, `exams/NAME.json`, a checkpoint at a time: a checkpoint that has its scores is not scored
again, and keeps them when training removes it. The first point is the network before training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.core.files import make_folder, read_typed, sha256_of, write_json
from bertwright.core.log import Log
from bertwright.exams.exam import VERSION, Exam
from bertwright.exams.shapes import CURVE, FOLDER, Curve, Scored
from bertwright.exams.suite import take, untrained
from bertwright.model.device import resolve_device
from bertwright.model.saved import network_from
from bertwright.model.text_encoder import Encoder, load_tokenizer
from bertwright.pipeline.lineage import finished_artifact
from bertwright.pipeline.run_folder import recorded_recipe
from bertwright.train.checkpoints.tensor_files import hash_of, read_all
from bertwright.train.settings.identity import checkpoints_in
from bertwright.train.state import state_of


def score_checkpoints(run: Path, suite: str, exams: Sequence[Exam], log: Log) -> Curve:
    """Score the checkpoints of the run in its folder that have no scores yet, and return those of all.

    Raises `RecipeError` if the run has no checkpoint, or its model can take none of the exams.
    """
    recipe, _ = recorded_recipe(run)
    found = list(_checkpoints(run, log))
    if not found:
        raise RecipeError(f"{run} has no checkpoint. Train it, with train.keep_checkpoints for how many are kept.")
    tokenizer, device = load_tokenizer(run), resolve_device("auto")
    entries = int(finished_artifact(run, "vocab").counts["entries"])
    network = recipe.task.network(recipe.model, entries, recipe.examples.pairs)
    file = make_folder(run / FOLDER) / f"{Path(suite).stem}.json"
    content = sha256_of([VERSION, *(exam.content for exam in exams)])
    known = {point["weights"]: point for point in _read(file, content)}

    def score(point: Scored, encoder: Encoder) -> None:
        scores = list(take(exams, encoder, point["checkpoint"], log))
        if not scores:
            raise RecipeError("the model of this run can take none of these exams, as said above.")
        point["scores"] = [score.to_json() for score in scores]
        known[point["weights"]] = point
        points = sorted(known.values(), key=lambda each: each["step"])
        write_json(file, Curve(suite=Path(suite).stem, content=content, points=points))

    if "" not in known:
        score(_point("untrained"), Encoder.of(untrained(network), tokenizer, device))
    for number, checkpoint in enumerate(found):
        weights = hash_of(checkpoint, "model")
        if weights not in known:
            try:
                state = state_of(checkpoint)
                model = network_from(network, read_all(checkpoint, "model"), source=str(checkpoint.path))
            except (ArtifactError, FileNotFoundError) as error:  # a training that goes on removes old ones
                log.say(f"{checkpoint.path.name} is left out: {error}")
                continue
            point = _point(checkpoint.path.name, weights)
            point |= {"step": state.total_steps, "tokens": state.tokens_seen}
            point |= {"hours": round(state.hours, 6), "tflops": round(state.flops / 1e12, 6)}
            score(point, Encoder.of(model, tokenizer, device))
        log.progress("evaluate", number + 1, len(found), "checkpoints")
    return Curve(suite=Path(suite).stem, content=content, points=_read(file, content))


def _point(checkpoint: str, weights: str = "") -> Scored:
    return Scored(checkpoint=checkpoint, step=0, tokens=0, hours=0.0, tflops=0.0, weights=weights, scores=[])


def _read(file: Path, content: str) -> list[Scored]:
    """The scores that a file has of these exams; none if it has those of others, which are then replaced."""
    curve = read_typed(file, CURVE) if file.is_file() else None
    return curve["points"] if curve and curve["content"] == content else []


def _checkpoints(run: Path, log: Log) -> Iterator[Artifact]:
    """The checkpoints of a run in order of their steps; a damaged one is named in the log."""
    for path in reversed(checkpoints_in(run / "train")):
        try:
            yield open_artifact(path, "checkpoint")
        except ArtifactError as error:
            log.say(f"{path.name} is left out: {error}")
