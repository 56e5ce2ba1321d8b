"""The stage `evaluate`: scores a trained model on held-out examples; writes scores.json, predictions.json and,
for tasks with files of their own, errors.jsonl."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.files import sha256_of, write_atomic, write_json
from bertwright.core.log import SILENT, Log
from bertwright.core.stage_context import StageContext
from bertwright.corpus.config import CorpusConfig
from bertwright.corpus.sources.source import open_source
from bertwright.evaluate.config import VERSION, EvaluateConfig, Inputs, sections
from bertwright.model.config import kernel_for
from bertwright.model.device import resolve_device
from bertwright.model.saved import load_network
from bertwright.tasks.members import task_of_sealed
from bertwright.tasks.task import HeldOut
from bertwright.vocab.load import check_same_vocabulary


def run(
    config: EvaluateConfig, length: int, inputs: Inputs, context: StageContext, general: CorpusConfig | None = None
) -> Artifact:
    """Score the trained model on held-out sequences of `length` tokens; the scores are also the artifact's counts.

    `general` says how the texts of `evaluate.general`, which are its sources, are read. Raises `RecipeError` for a
    cloze line longer than the model's positions and for a device that is not available.
    """
    known = {"general": _hash_of(general)} if general else {}
    scored = identity(config, length, inputs.fingerprints | known)
    log = context.log
    return build(context.out, scored, log, lambda draft: _make(config, length, inputs, draft, log, general))


def identity(config: EvaluateConfig, length: int, inputs: Mapping[str, str]) -> Identity:
    """What determines the scores; `inputs` has the fingerprints of "train", "examples" and "vocab", and the hash of
    the texts of `evaluate.general`, if there are any."""
    needed = {name: inputs[name] for name in ("train", "examples", "vocab", "general") if name in inputs}
    return Identity("evaluate", VERSION, sections(config, length), needed)


def _hash_of(general: CorpusConfig) -> str:
    return sha256_of([open_source(each, general.cache_dir, SILENT).sampled_hash for each in general.source])


def _make(
    config: EvaluateConfig, length: int, inputs: Inputs, draft: Path, log: Log, general: CorpusConfig | None
) -> dict[str, Any]:
    train = inputs.train
    # Ids of another vocabulary would be accepted, and the scores would be silently wrong.
    check_same_vocabulary(train, inputs.vocab)
    for artifact, prefix in ((inputs.vocab, ""), (train, "model/")):
        for name in artifact.names(prefix):
            artifact.file(name)
    task, device = task_of_sealed(train.manifest["config"]), resolve_device(config.device)
    model = load_network(train.path / "model", kernel_for(device.type)).to(device)
    heldout = HeldOut(inputs.examples, inputs.vocab, length, log, train.counts.get("init"), general)
    found = task.evaluate(model, heldout, config)
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
