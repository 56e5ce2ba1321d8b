"""Ends a training: saves its model and seals its folder; reopens the folder if the end has moved."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from bertwright.core.artifact import MANIFEST, seal
from bertwright.core.distributed import rank_and_world
from bertwright.core.files import remove, sha256, sha256_of
from bertwright.core.log import Log
from bertwright.model.saved import MODEL_FILES, save_model
from bertwright.train.monitor.session_record import counts
from bertwright.train.scoring import Chosen
from bertwright.train.settings.identity import finished_identity
from bertwright.train.setup.job import TrainJob

_RESULT = ("metrics.jsonl", "guesses.jsonl", "model/*", "phase-*.onnx", "ds_config.json")
"""The files of a training that its manifest lists."""


def handle_finished(job: TrainJob, log: Log) -> None:
    """Handle a training that an earlier start has finished: copy it to the mirror, which may be a new one by now."""
    config = job.config
    if config.observers or config.profile:
        log.say("train: already finished, so no rows are sent to observers, and no step is profiled.")
    if config.mirror and rank_and_world()[0] == 0:
        from bertwright.transfer.mirror import Mirror

        with Mirror(job.mirrored_training(prune=False), log) as mirror:
            mirror.request_final_copy()


def reopen(job: TrainJob) -> None:
    """Move the manifest aside: once the end has moved, the sealed model is no longer the result."""
    if (job.out / MANIFEST).is_file():
        (job.out / MANIFEST).rename(job.out / f".{MANIFEST}.before-extension")


def finalize(job: TrainJob, weights: Mapping[str, Tensor], chosen: Chosen) -> None:
    """Save the finished model, whose weights have the network's shapes, and seal the folder."""
    state, folder = chosen.state, job.out / "model"
    if folder.is_dir():  # of an end that has moved, or of a start that was killed here
        remove(folder)
    save_model(folder, job.network, weights, job.vocab.file("vocab.txt").read_bytes())
    model = sha256_of({name: sha256(folder / name) for name in sorted(MODEL_FILES)})
    sealed = finished_identity(job.identity, state.extensions, model)
    init = {"folder": job.config.init_from, "fingerprint": job.identity.inputs.get("train.init_from")}
    facts = counts(state, job.network, job.vocab, model, init)
    if chosen.averaging is not None:
        facts["averaging"] = chosen.averaging
    # Not checkpoints, which are separate artifacts: one may be deleted or damaged without affecting the finished model.
    # Not the files of observers and profiles, which are only for viewing, nor what a user keeps in this folder.
    seal(job.out, sealed, facts, state.seconds + state.other_seconds, only=_RESULT)
