"""The training stage: phases one after another, resumable at any step.

In: an `examples` artifact, a vocabulary artifact and the recipe's `train`, `model` and `optim` sections.
Out: a folder with `checkpoints/`, `metrics.jsonl`, the finished `model/` and, when all is done, a manifest.
The same call continues where it stopped. A changed setting is refused once checkpoints exist, except for the
length of a phase, which may grow.
"""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.optim import Optimizer

from bertwright.core.artifact import MANIFEST, Artifact, Identity, open_artifact, seal
from bertwright.core.config import differences, what
from bertwright.core.errors import ArtifactError
from bertwright.core.files import make_folder, read_json, write_json
from bertwright.core.log import SILENT, Log
from bertwright.model.attention import kernel_for
from bertwright.model.bert import BertForPreTraining
from bertwright.model.config import ModelConfig
from bertwright.model.saved import load_model, save_model
from bertwright.optim.build import build_optimizer
from bertwright.optim.config import OptimConfig
from bertwright.optim.state import load_named_state, named_state, reset_steps
from bertwright.train import checkpoint as checkpoints
from bertwright.train.checkpoint import State
from bertwright.train.config import TrainConfig
from bertwright.train.loop import Session, train_phase
from bertwright.train.metrics import Metrics
from bertwright.train.phases import PhaseData, phase_data
from bertwright.train.ranks import Ranks, join

VERSION = 1
IDENTITY = "identity.json"


def run(
    config: TrainConfig,
    model: ModelConfig,
    optim: OptimConfig,
    examples: Artifact,
    vocab: Artifact,
    out: Path,
    log: Log = SILENT,
) -> Artifact:
    """Train to the end of the last phase, or continue; see the module's page.

    Raises `ArtifactError` when `out` holds checkpoints of other settings, `CheckpointError` when none of them
    is whole, `DataError` when training diverges, `Interrupted` after a signal.
    """
    identity = describe(config, model, optim, examples, vocab)
    if (out / MANIFEST).is_file() and (done := open_artifact(out, "train")).fingerprint == identity.fingerprint:
        return done
    torch.use_deterministic_algorithms(True)
    if config.threads:
        torch.set_num_threads(config.threads)
    with join() as ranks, _signals() as stop:
        if ranks.first:
            _claim(out, identity, config, log)
        ranks.barrier()
        counts = _train(
            config, model, optim, examples, vocab, out, identity, log if ranks.first else SILENT, ranks, stop
        )
        if ranks.first:
            seal(out, identity, counts, counts["train_seconds"])
        ranks.barrier()
    return open_artifact(out, "train")


def describe(
    config: TrainConfig, model: ModelConfig, optim: OptimConfig, examples: Artifact, vocab: Artifact
) -> Identity:
    """What the trained model is a function of."""
    sections = {"train": what(config), "model": what(model), "optim": what(optim)}
    inputs = {"examples": examples.fingerprint, "vocab": vocab.fingerprint}
    for i, phase in enumerate(config.phases):
        if phase.data is not None:
            inputs[f"train.phases.{i}.data"] = open_artifact(phase.data, "examples").fingerprint
    if config.init is not None:
        inputs["train.init"] = open_artifact(config.init).fingerprint
    if model.config is not None:
        sections["model"]["config"] = model.resolve(1).model_dump(mode="json")
    return Identity("train", VERSION, sections, inputs)


def _claim(out: Path, identity: Identity, config: TrainConfig, log: Log) -> None:
    """Make `out` this run's folder, or refuse when its checkpoints belong to other settings."""
    make_folder(out / "checkpoints")
    fixed = {**identity.config, "train": what(config, extendable=False)}
    ours = {"version": identity.version, "config": fixed, "inputs": dict(identity.inputs)}
    if (out / IDENTITY).is_file() and any((out / "checkpoints").glob("step-*")):
        theirs = read_json(out / IDENTITY)
        changed = differences(theirs["config"], fixed)
        changed += [d for name in ("version", "inputs") for d in differences(theirs[name], ours[name], name)]
        if changed:
            raise ArtifactError(
                f"{out} holds checkpoints of other settings, and trained weights are not thrown away: "
                f"{'; '.join(changed)}. Set these back, or train elsewhere (--out DIR), or move {out} away."
            )
        log.say(f"train: continuing in {out}")
    write_json(out / IDENTITY, ours)
    if (out / MANIFEST).is_file():  # the phases were extended: the old end is no longer the end
        (out / MANIFEST).rename(out / f".{MANIFEST}.before-extension")


def _train(
    config: TrainConfig,
    model_config: ModelConfig,
    optim: OptimConfig,
    examples: Artifact,
    vocab: Artifact,
    out: Path,
    identity: Identity,
    log: Log,
    ranks: Ranks,
    stop: list[bool],
) -> dict[str, Any]:
    device = _device(config.device)
    bert = model_config.resolve(
        int(vocab.counts["entries"]), bool(examples.manifest["config"]["examples"]["next_sentence"])
    )
    torch.manual_seed(config.seed)
    model = BertForPreTraining(bert, kernel_for(bert.attention_probs_dropout_prob)).to(device).train()
    optimizer = build_optimizer(optim, model)
    state = _start(config, model, optimizer, out, ranks, log)
    phases = phase_data(config, optim.max_grad_norm, examples, vocab)
    _check_lengths(state, phases)

    def save(state: State) -> None:
        if ranks.first:
            folder, fingerprint = out / "checkpoints", identity.fingerprint
            saved = checkpoints.save(folder, fingerprint, state, model.state_dict(), named_state(optimizer, model))
            checkpoints.prune(folder, config.keep, saved)

    with Metrics(out / "metrics.jsonl", state.total_steps) if ranks.first else nullcontext() as metrics:

        def record(row: dict[str, Any]) -> None:
            if metrics is not None:
                metrics.write(row)
            log.record(row)

        for data in phases[state.phase :]:
            if state.phase < data.phase.index:
                reset_steps(optimizer)
                state = replace(state, phase=data.phase.index, data_step=0, optimizer_step=0, phase_end=False)
            session = Session(model, optimizer, device, ranks, data.heldout, record, save, lambda: bool(stop[0]))
            if state.data_step < data.phase.steps:
                state = train_phase(session, data.phase, state)
    if ranks.first:
        save_model(out / "model", bert, model, vocab.file("vocab.txt").read_bytes())
    return _counts(state, model, ranks, device)


def _start(
    config: TrainConfig, model: BertForPreTraining, optimizer: Optimizer, out: Path, ranks: Ranks, log: Log
) -> State:
    """The state to go on from, with weights and moments loaded: our newest whole checkpoint, `init`, or step 0."""
    ours = checkpoints.newest_valid(out / "checkpoints", log)
    if ours is not None:
        state, weights, moments = checkpoints.load(ours)
        model.load_state_dict(weights)
        load_named_state(optimizer, model, moments)
        log.say(f"train: resuming from {ours.path.name} (phase {state.phase}, step {state.data_step:,})")
        return state
    if config.init is not None:
        given = open_artifact(config.init)
        given.verify()
        if given.manifest["stage"] == "checkpoint":
            _, weights, moments = checkpoints.load(given)
            model.load_state_dict(weights)
            load_named_state(optimizer, model, moments)
            reset_steps(optimizer)
        else:
            model.load_state_dict(load_model(config.init / "model").state_dict())
        log.say(f"train: starting from {config.init}")
    return State()


def _check_lengths(state: State, phases: list[PhaseData]) -> None:
    phase = phases[state.phase].phase if state.phase < len(phases) else None
    if phase is None or state.data_step > phase.steps:
        raise ArtifactError(
            f"the newest checkpoint stands at phase {state.phase}, step {state.data_step:,}, beyond the recipe's end. "
            "Give the phase at least as many steps as are done, or train in another folder."
        )


def _counts(state: State, model: BertForPreTraining, ranks: Ranks, device: torch.device) -> dict[str, Any]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "steps": state.total_steps,
        "sequences_seen": state.sequences_seen,
        "tokens_seen": state.tokens_seen,
        "train_seconds": round(state.seconds, 3),
        "tokens_per_second": round(state.tokens_seen / max(state.seconds, 1e-9), 1),
        "heldout": dict(state.heldout),
        "peak_memory_bytes": peak,
        "device": str(device),
        "ranks": ranks.world,
        "threads": torch.get_num_threads(),
        "torch": str(torch.__version__),
    }


def _device(wanted: str) -> torch.device:
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ArtifactError(
            "train.device is cuda, but torch sees no GPU here. Install a CUDA build of torch, or set train.device=cpu."
        )
    return torch.device(wanted)


@contextmanager
def _signals() -> Iterator[list[bool]]:
    """A flag that SIGTERM and SIGINT raise; a second SIGINT leaves at once."""
    stop = [False]

    def ask(number: int, frame: object) -> None:
        if stop[0] and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop[0] = True

    before = {s: signal.signal(s, ask) for s in (signal.SIGTERM, signal.SIGINT)} if _main_thread() else {}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _main_thread() -> bool:
    import threading

    return threading.current_thread() is threading.main_thread()
