"""An unfinished training at one of its checkpoints: for inspection, never mistaken for the result.

Its identity has the checkpoint as an additional input, so results derived from it are never mistaken for those of the
finished model, or the reverse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.files import link_or_copy, make_folder, write_atomic, write_json
from bertwright.core.log import Log
from bertwright.model.config import NetworkConfig
from bertwright.model.saved import config_json, save_model
from bertwright.train.checkpoints.tensor_files import hash_of, is_unsharded, read_all
from bertwright.train.monitor.metrics import rows_until
from bertwright.train.monitor.session_record import counts
from bertwright.train.settings.identity import finished_identity
from bertwright.train.state import state_of


@dataclass(frozen=True)
class UnfinishedTraining:
    """An unfinished training at one of its checkpoints."""

    checkpoint: Artifact
    network: NetworkConfig
    vocab: Artifact
    identity: Identity
    counts: Mapping[str, Any]
    """The counts of a finished training, plus `unfinished`: the checkpoint, its step, and the total number of steps."""

    @property
    def training(self) -> Path:
        """The folder of the training."""
        return self.checkpoint.path.parent.parent

    def artifact(self) -> Artifact:
        """Return an artifact with the manifest of the training so far, without a separate folder: it refers to the
        training's folder."""
        manifest = {
            "stage": self.identity.stage,
            "version": self.identity.version,
            "fingerprint": self.identity.fingerprint,
            "config": self.identity.config,
            "inputs": self.identity.inputs,
            "counts": self.counts,
            "seconds": self.counts["seconds"],
            "files": {},
        }
        return Artifact(self.training, manifest)

    def snapshot(self, out: Path, log: Log) -> Artifact:
        """Build an artifact at `out` with the model of the checkpoint and the metrics rows up to it."""
        return build(out, self.identity, log, self._make)

    def _make(self, draft: Path) -> dict[str, Any]:
        model = make_folder(draft / "model")
        if is_unsharded(self.checkpoint, "model"):
            copy = model / "model.safetensors"
            copy.unlink(missing_ok=True)
            # The weights may be gigabytes, and the checkpoint may be pruned while they are read.
            link_or_copy(self.checkpoint.file("model.safetensors"), copy)
        else:
            save_model(model, self.network, read_all(self.checkpoint, "model"))
        write_json(model / "config.json", config_json(self.network))
        write_atomic(model / "vocab.txt", self.vocab.file("vocab.txt").read_bytes())
        rows = rows_until(self.training / "metrics.jsonl", self.counts["steps"])
        write_atomic(draft / "metrics.jsonl", b"".join(rows))
        return dict(self.counts)


def unfinished_training(
    checkpoint: Artifact, run: Identity, network: NetworkConfig, vocab: Artifact, init: Path | None
) -> UnfinishedTraining:
    """Return the training `run` at `checkpoint`, one of its own checkpoints."""
    state = state_of(checkpoint)
    weights = hash_of(checkpoint, "model")
    identity = finished_identity(run, state.extensions, weights)
    facts = {
        **counts(state, network, vocab, weights, {"folder": init, "fingerprint": run.inputs.get("train.init_from")}),
        # This process did not train: its own peak would be reported as that of the training.
        "peak_memory_bytes": None,
        "seconds": round(state.seconds + state.other_seconds, 3),
        "unfinished": {
            "checkpoint": checkpoint.path.name,
            "step": state.total_steps,
            "steps": sum(state.ends),
            "phase": state.phase,
        },
    }
    named = {**identity.inputs, "unfinished": checkpoint.fingerprint + checkpoint.path.name}
    return UnfinishedTraining(checkpoint, network, vocab, replace(identity, inputs=named), facts)
