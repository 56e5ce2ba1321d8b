"""Ends a training: saves its model and seals its folder; reopens the folder if the end has moved."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from bertwright.core.artifact import MANIFEST, seal
from bertwright.core.distributed import rank_and_world
from bertwright.core.files import remove_leftovers, sha256, sha256_of
from bertwright.core.log import Log
from bertwright.model.saved import save_model
from bertwright.train.facts import counts
from bertwright.train.identity import CHECKPOINTS, extended
from bertwright.train.job import Job
from bertwright.train.open_session import OBSERVERS, PROFILE
from bertwright.train.scoring import Chosen


def finished_before(job: Job, log: Log) -> None:
    """Handle a training that an earlier start has finished: copy it to the mirror, which may be a new one by now."""
    config = job.config
    if config.observers or config.profile:
        log.say("train: already finished, so no rows are sent to observers, and no step is profiled.")
    if config.mirror and rank_and_world()[0] == 0:
        from bertwright.train.mirror.mirror import Mirror, Mirrored

        with Mirror(Mirrored(config.mirror, job.out, job.checkpoint, None), log) as mirror:
            mirror.finished()


def unseal(job: Job) -> None:
    """Move the manifest aside: once the end has moved, the sealed model is no longer the result."""
    if (job.out / MANIFEST).is_file():
        (job.out / MANIFEST).rename(job.out / f".{MANIFEST}.before-extension")


def finish(job: Job, weights: Mapping[str, Tensor], chosen: Chosen) -> None:
    """Save the finished model, whose weights have the network's shapes, and seal the folder."""
    state = chosen.state
    save_model(job.out / "model", job.network, weights, job.vocab.file("vocab.txt").read_bytes())
    remove_leftovers(job.out)
    model = sha256_of({path.name: sha256(path) for path in sorted((job.out / "model").iterdir())})
    sealed = extended(job.identity, state.extensions, model)
    init = {"folder": job.config.init_from, "fingerprint": job.identity.inputs.get("train.init_from")}
    facts = counts(state, job.network, job.vocab, model, init)
    if chosen.averaging is not None:
        facts["averaging"] = chosen.averaging
    # Checkpoints are separate artifacts: one may be deleted or damaged without affecting the finished model. Observer
    # files are only for viewing, and their programs may write to them later.
    seal(job.out, sealed, facts, state.seconds + state.other_seconds, without=(CHECKPOINTS, OBSERVERS, PROFILE))
