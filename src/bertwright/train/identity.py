"""Fingerprint of a training run: what it is a function of, and what may continue its checkpoints. Knows no torch.

A trained model is never thrown away: once there are checkpoints, other settings are refused by name. Only the
lengths of phases may grow; where that happens after the phase has begun, the model is not the one that the longer
recipe gives undisturbed, so the extension becomes part of the fingerprint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertwright.core.artifact import MANIFEST, Artifact, changes, open_artifact
from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError
from bertwright.core.files import sha256_of
from bertwright.model.config import ModelConfig
from bertwright.objectives.config import DistillationConfig, labels_of
from bertwright.optim.config import OptimConfig
from bertwright.train.config import VERSION, TrainConfig

CHECKPOINTS = "checkpoints"
Extension = Mapping[str, int]


@dataclass(frozen=True)
class Settings:
    """The sections of the recipe that decide what is trained."""

    train: TrainConfig
    model: ModelConfig
    optim: OptimConfig

    def sections(self, next_sentence: bool) -> dict[str, Any]:
        """The sections by name, as they are hashed; of a network that `model.config` names its whole shape, which
        `model.config.network_of` reads."""
        # A file counts by its content. The vocabulary is an input of its own, so 1 entry stands for any number.
        network = (
            {"network": self.model.resolve(1, next_sentence, labels_of(self.train.objective))}
            if self.model.config is not None
            else {}
        )
        return {"train": self.train, "model": self.model, "optim": self.optim, **network}


@dataclass(frozen=True)
class Inputs:
    """The artifacts that training reads."""

    examples: Artifact
    vocab: Artifact

    @property
    def fingerprints(self) -> dict[str, str]:
        """Theirs, by name."""
        return {name: artifact.fingerprint for name, artifact in vars(self).items()}


def identity(settings: Settings, next_sentence: bool, inputs: Mapping[str, str], out: Path) -> Identity:
    """What the model trained in `out` is a function of; `inputs` are the fingerprints of `examples` and `vocab`.

    Files and folders that the recipe names count by their content, not by where they lie. One that is gone since
    training began counts by what the checkpoints in `out` say of it. Data made elsewhere counts with `examples`,
    which holds it.
    """
    config = settings.train
    named = {f"train.phases.{i}.data": phase.data for i, phase in enumerate(config.phases)} | {
        "train.init_from": config.init_from
    }
    if isinstance(config.objective, DistillationConfig):
        named["train.objective.teacher"] = config.objective.teacher
    fingerprints = {key: _fingerprint(path, key, out) for key, path in named.items() if path is not None}
    imported = {f"{data.key}.data" for data in config.imported_data()}
    if missing := [key for key, value in fingerprints.items() if value is None and key not in imported]:
        raise ArtifactError(
            f"{missing[0]}: {named[missing[0]]} is no finished artifact. Give the folder of a checkpoint, or of a "
            "finished stage."
        )
    known = {key: value for key, value in fingerprints.items() if value is not None}
    return Identity("train", VERSION, settings.sections(next_sentence), {**inputs, **known})


def checkpoint_identity(settings: Settings, next_sentence: bool, run: Identity) -> Identity:
    """The settings that a checkpoint belongs to: all of the run's but the lengths of its phases."""
    return Identity("checkpoint", VERSION, settings.sections(next_sentence), run.inputs, extendable=False)


def refuse_other_settings(out: Path, run: Identity) -> None:
    """Raise `ArtifactError` naming the keys when `out` holds checkpoints that do not belong to `run`."""
    # The newest that can be read speaks for all: a folder never holds checkpoints of two settings.
    for path in sorted((out / CHECKPOINTS).glob("step-*"), reverse=True):
        try:
            checkpoint = open_artifact(path, "checkpoint")
        except ArtifactError:
            continue  # damaged: what continues from it will say so
        if changed := changes(checkpoint, run):
            raise ArtifactError(
                f"{out} holds checkpoints of other settings, and trained weights are not thrown away: "
                f"{'; '.join(changed)}. Set these back, or train elsewhere (--out DIR), or move {out} away."
            )
        return


def finished(out: Path, identity: Identity) -> Artifact | None:
    """The finished training in `out` if it is of this identity, whatever extensions it went through."""
    if not (out / MANIFEST).is_file():
        return None
    done = open_artifact(out, "train")
    return (
        done
        if done.fingerprint == extended(identity, done.counts["extensions"], done.counts["weights"]).fingerprint
        else None
    )


def extended(identity: Identity, extensions: Sequence[Extension], weights: str) -> Identity:
    """The identity that a finished training is sealed with: also of how its phases grew, and of the very weights.

    Bit-identity depends on things outside the settings (ranks, threads, machine), so what is made of a model must not
    be taken for made of another one with the same settings.
    """
    # No key at all where nothing grew, so that an undisturbed run has the fingerprint of its settings alone.
    grown = {"extensions": sha256_of([dict(e) for e in extensions])} if extensions else {}
    return replace(identity, inputs={**identity.inputs, **grown, "weights": weights})


def _fingerprint(path: Path, key: str, out: Path) -> str | None:
    if (path / MANIFEST).is_file():
        return open_artifact(path).fingerprint
    if key in ("train.objective.teacher", "train.init_from"):
        # Most trainings start from random weights, and read no model folder.
        from bertwright.objectives.teacher_config import content_of, missing_of

        if not missing_of(path):
            return content_of(path)
    # Data that was deleted after training began still counts by what the checkpoints say of it.
    for begun in [*sorted((out / CHECKPOINTS).glob("step-*"), reverse=True), out]:
        with suppress(ArtifactError):
            if recorded := open_artifact(begun).manifest["inputs"].get(key):
                return str(recorded)
    return None
