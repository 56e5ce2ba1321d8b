"""The stage `evaluate`: scores a trained model on held-out examples; writes scores.json, predictions.json and,
for tasks with files of their own, errors.jsonl."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.files import write_atomic, write_json
from bertwright.core.log import Log
from bertwright.core.stage_context import StageContext
from bertwright.evaluate.config import VERSION, EvaluateConfig, Inputs, sections
from bertwright.model.config import kernel_for
from bertwright.model.device import resolve_device
from bertwright.model.saved import load_network
from bertwright.tasks.members import task_of_sealed
from bertwright.tasks.task import HeldOut
from bertwright.vocab.load import check_same_vocabulary


def run(config: EvaluateConfig, length: int, inputs: Inputs, context: StageContext) -> Artifact:
    """Score the trained model on held-out sequences of `length` tokens; the scores are also the artifact's counts.

    Raises `RecipeError` for a cloze line longer than the model's positions and for a device that is not available.
    """
    scored = identity(config, length, inputs.fingerprints)
    return build(context.out, scored, context.log, lambda draft: _make(config, length, inputs, draft, context.log))


def identity(config: EvaluateConfig, length: int, inputs: Mapping[str, str]) -> Identity:
    """What determines the scores; `inputs` has the fingerprints of "train", "examples" and "vocab"."""
    needed = {name: inputs[name] for name in ("train", "examples", "vocab")}
    return Identity("evaluate", VERSION, sections(config, length), needed)


def _make(config: EvaluateConfig, length: int, inputs: Inputs, draft: Path, log: Log) -> dict[str, Any]:
    train = inputs.train
    # Ids of another vocabulary would be accepted, and the scores would be silently wrong.
    check_same_vocabulary(train, inputs.vocab)
    for artifact, prefix in ((inputs.vocab, ""), (train, "model/")):
        for name in artifact.names(prefix):
            artifact.file(name)
    task, device = task_of_sealed(train.manifest["config"]), resolve_device(config.device)
    model = load_network(train.path / "model", kernel_for(device.type)).to(device)
    found = task.evaluate(model, HeldOut(inputs.examples, inputs.vocab, length, log), config)
    # Readers of the scores alone must see that training has not ended.
    note = train.counts.get("unfinished")
    scores = found.scores | ({"unfinished": note} if note else {})
    write_json(draft / "scores.json", scores)
    write_json(draft / "predictions.json", found.answers)
    if found.errors is not None:
        lines = [json.dumps(error, ensure_ascii=False) + "\n" for error in found.errors]
        write_atomic(draft / "errors.jsonl", "".join(lines).encode())
    log.say(f"evaluate: {found.summary}")
    log.say(f"evaluate: {task.section.verdict(scores)}")
    return scores
