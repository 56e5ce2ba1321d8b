"""The training stage: phases one after another, resumable at any step.

In: an `examples` artifact, a vocabulary artifact and the recipe's `train`, `model` and `optim` sections.
Out: a folder with `checkpoints/`, `metrics.jsonl`, the finished `model/` and, when all is done, a manifest.
The same call continues where it stopped. A changed setting is refused once checkpoints exist, except for the
length of a phase that has not ended, which may grow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.optim import Optimizer

from bertwright.core.artifact import MANIFEST, Artifact, Identity, open_artifact, seal
from bertwright.core.errors import Interrupted
from bertwright.core.files import make_folder, remove_leftovers, sha256, sha256_of
from bertwright.core.log import SILENT, Log
from bertwright.core.signals import stop_on_signals
from bertwright.examples.config import PAIRS
from bertwright.model.attention.kernel import kernel_for
from bertwright.model.config import BertConfig, ModelConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import save_model
from bertwright.objectives.build import build_objective
from bertwright.objectives.objective import judged_by
from bertwright.optim.build import build_optimizer
from bertwright.optim.config import OptimConfig
from bertwright.optim.state import named_state, reset_steps
from bertwright.train import checkpoint as checkpoints
from bertwright.train.checkpoint import State
from bertwright.train.claim import CHECKPOINTS, checkpoint_identity, extended, finished, identity, refuse_other_settings
from bertwright.train.config import TrainConfig
from bertwright.train.facts import counts, life
from bertwright.train.forecast import Forecast
from bertwright.train.loop import end_now, train_phase
from bertwright.train.metrics import Metrics
from bertwright.train.phases import Phase, resolve_phases
from bertwright.train.ranks import Ranks, join
from bertwright.train.session import Session
from bertwright.train.start import begin, follow_lengths, training_device
from bertwright.train.step import Trained


@dataclass(frozen=True)
class Job:
    """What is asked for, resolved."""

    config: TrainConfig
    bert: BertConfig
    optim: OptimConfig
    vocab: Artifact
    phases: list[Phase]
    identity: Identity
    """Of the run."""
    checkpoint: Identity
    """Of its checkpoints: without the lengths of phases."""
    out: Path
    scored_after: int
    saved: Callable[[Path], None]


def run(
    config: TrainConfig,
    model: ModelConfig,
    optim: OptimConfig,
    examples: Artifact,
    vocab: Artifact,
    out: Path,
    log: Log = SILENT,
    scored_after: int = 0,
    saved: Callable[[Path], None] = lambda _: None,
) -> Artifact:
    """Train to the end of the last phase, or continue; see the module's page.

    `scored_after`: tokens of room of the held-out sequences that are scored afterwards, for the time that is left.
    `saved` is called on the first rank with the path of each new checkpoint.

    Raises `ArtifactError` when `out` holds checkpoints of other settings, `CheckpointError` when none of them
    is whole, `DataError` when training diverges, `Interrupted` after a signal.
    """
    pairs = examples.manifest["config"]["examples"]["plan"] in PAIRS
    inputs = {"examples": examples.fingerprint, "vocab": vocab.fingerprint}
    ours = identity(config, model, optim, pairs, inputs, out)
    if done := finished(out, ours):
        return done
    bert = model.resolve(int(vocab.counts["entries"]), pairs)
    phases = resolve_phases(config, examples, vocab)
    # The vocabulary's own hash, so that weights are never read with other words: see `start`.
    words = {"vocabulary": str(vocab.counts["vocabulary"])}
    checkpoint = checkpoint_identity(config, model, optim, pairs, replace(ours, inputs={**ours.inputs, **words}))
    job = Job(config, bert, optim, vocab, phases, ours, checkpoint, out, scored_after, saved)
    with _settings_of_torch(config.threads), join(config.timeout) as ranks, stop_on_signals() as stop_requested:
        refuse_other_settings(out, checkpoint)
        if ranks.first:
            checkpoints.sweep(make_folder(out / CHECKPOINTS))
        ranks.agree(f"{ours.fingerprint}", "the settings and data of this run")
        _train(job, ranks, stop_requested, log if ranks.first else SILENT)
        if stop_requested():
            raise Interrupted("training is finished and saved. Run the same command again for the stages that follow.")
    return open_artifact(out, "train")


def _train(job: Job, ranks: Ranks, stop_requested: Callable[[], bool], log: Log) -> None:
    device = training_device(job.config.device, ranks)
    wanted = job.config.attention
    kernel = kernel_for(job.bert.attention_probs_dropout_prob, device.type) if wanted == "auto" else wanted
    torch.manual_seed(job.config.seed)
    model = PreTrainingModel(job.bert, kernel).to(device).train()
    optimizer = build_optimizer(job.optim, model)
    log.say(f"train: {job.bert.parameters:,} parameters on {device}, attention kernel {kernel}")
    state = begin(job.config, model, optimizer, job.checkpoint, job.out, ranks, log)
    state = follow_lengths(state, job.phases)
    state = replace(state, lives=(*state.lives, life(state, device, ranks, job.config)))
    if ranks.first and (job.out / MANIFEST).is_file():  # the end has moved: what is sealed is no longer the result
        (job.out / MANIFEST).rename(job.out / f".{MANIFEST}.before-extension")
    with Metrics(job.out / "metrics.jsonl", state.total_steps) if ranks.first else nullcontext() as metrics:
        state = _all_phases(job, model, optimizer, state, ranks, stop_requested, metrics, log)
    if ranks.first:
        save_model(job.out / "model", job.bert, model, job.vocab.file("vocab.txt").read_bytes())
        remove_leftovers(job.out)
        weights = {p.name: sha256(p) for p in sorted((job.out / "model").iterdir())}
        sealed = extended(job.identity, state.extensions, sha256_of(weights))
        init = {"folder": job.config.init, "fingerprint": job.identity.inputs.get("train.init")}
        facts = counts(state, job.bert, job.vocab, sha256_of(weights), init)
        seal(job.out, sealed, facts, state.seconds + state.other_seconds, without=CHECKPOINTS)
    ranks.barrier()


def _all_phases(
    job: Job,
    model: PreTrainingModel,
    optimizer: Optimizer,
    state: State,
    ranks: Ranks,
    stop_requested: Callable[[], bool],
    metrics: Metrics | None,
    log: Log,
) -> State:
    objective = build_objective(job.config.objective, job.bert.next_sentence)

    def record(row: dict[str, Any]) -> None:
        if metrics is not None:
            metrics.write(row)
        log.record(row)

    def save(state: State) -> None:
        if metrics is not None:
            metrics.sync()
            weights, moments = model.state_dict(), named_state(optimizer, model)
            with ranks.saving():
                saved = checkpoints.save(job.out / CHECKPOINTS, job.checkpoint, state, weights, moments)
            checkpoints.prune(job.out / CHECKPOINTS, job.config.keep, saved, judged_by(objective))
            job.saved(saved)

    device = next(model.parameters()).device
    forecast, clip = Forecast(job.phases, job.scored_after), job.optim.max_grad_norm
    trained = Trained(model, objective, optimizer, clip, ranks)
    session = Session(trained, device, record, save, stop_requested, forecast, log.progress)
    for phase in job.phases[state.phase :]:
        if state.phase < phase.index:
            reset_steps(optimizer)
            state = replace(state, phase=phase.index, data_step=0, optimizer_step=0, phase_end=False)
        if state.data_step < phase.steps:
            state = train_phase(session, phase, state)
        elif not state.phase_end:
            state = end_now(session, phase, state)
    return state


@contextmanager
def _settings_of_torch(threads: int) -> Iterator[None]:
    """Deterministic algorithms and the recipe's number of threads, for the length of the block."""
    # oneDNN keeps a kernel for each of the last 1,024 shapes it met. Packed batches have a new shape at every step, so
    # it never meets one again: without the cache a step is a tenth faster and memory stays flat (docs/results.md).
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "0")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what cuBLAS needs to be deterministic
    before = torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(threads or before[1])
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        torch.set_num_threads(before[1])
