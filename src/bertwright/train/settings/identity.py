"""Fingerprint of a training run: what the run depends on, and which runs may continue its checkpoints.

A trained model is never discarded: once there are checkpoints, other settings are refused with an error that names the
keys. Only phase lengths may grow. If a phase grows after it has begun, the model differs from the one that the longer
recipe produces undisturbed, so the extension becomes part of the fingerprint. Does not import torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError
from bertwright.core.files import sha256_of
from bertwright.core.manifest import changes, remedy_of
from bertwright.model.config import ModelConfig
from bertwright.optim.config import OptimConfig
from bertwright.tasks.task import Scoring
from bertwright.train.config import VERSION, TrainConfig
from bertwright.transfer.parts import CHECKPOINTS

Extension = Mapping[str, int]


@dataclass(frozen=True)
class Settings:
    """The recipe sections that determine what is trained."""

    train: TrainConfig
    model: ModelConfig
    optim: OptimConfig
    asked: Scoring | None = None
    """What the network is asked at every checkpoint (`AskingTask`); determines nothing."""

    def sections(self, next_sentence: bool) -> dict[str, Any]:
        """Return the sections by name, as they are hashed. If `model.config` names the network, its complete shape, as
        read by `model.config.network_of`, is included."""
        # A file is identified by its content. The vocabulary is a separate input, so 1 entry stands for any number.
        network = (
            {"network": self.train.objective.network(self.model, 1, next_sentence)}
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
        """The fingerprints of the artifacts, by name."""
        return {name: artifact.fingerprint for name, artifact in vars(self).items()}


def identity(settings: Settings, next_sentence: bool, inputs: Mapping[str, str], out: Path) -> Identity:
    """Return what the model trained in `out` depends on; `inputs` are the fingerprints of `examples` and `vocab`.

    Files and folders named in the recipe are identified by content, not by location. One that was deleted since
    training began is identified by what the checkpoints in `out` recorded of it. Imported data is covered by
    `examples`, which contains it.
    """
    config = settings.train
    named = {f"train.phases.{i}.data": phase.data for i, phase in enumerate(config.phases)} | {
        "train.init_from": config.init_from
    }
    if config.objective.taught_by is not None:
        named["train.objective.teacher"] = config.objective.taught_by
    fingerprints = {key: _fingerprint(path, key, out) for key, path in named.items() if path is not None}
    imported = {f"{data.key}.data" for data in config.imported_data()}
    if missing := [key for key, value in fingerprints.items() if value is None and key not in imported]:
        raise ArtifactError(
            f"{missing[0]}: {named[missing[0]]} is not a finished artifact. Give the folder of a checkpoint, or of a "
            "finished stage."
        )
    known = {key: value for key, value in fingerprints.items() if value is not None}
    return Identity("train", VERSION, settings.sections(next_sentence), {**inputs, **known})


def checkpoint_identity(settings: Settings, next_sentence: bool, run: Identity) -> Identity:
    """Return the identity that a checkpoint belongs to: all settings of the run except the lengths of its phases."""
    return Identity("checkpoint", VERSION, settings.sections(next_sentence), run.inputs, extendable=False)


def checkpoints_in(out: Path) -> list[Path]:
    """Return the checkpoints of the training in `out`, newest first, damaged ones included; a start that failed before
    its first checkpoint leaves an empty folder."""
    return sorted((out / CHECKPOINTS).glob("step-*"), reverse=True)


def refuse_other_settings(out: Path, run: Identity) -> None:
    """Raise `ArtifactError`, naming the keys, if `out` holds checkpoints that do not belong to `run`."""
    if changed := changes_of_checkpoints(out, run):
        raise other_settings(out, "checkpoints", changed)


def changes_of_checkpoints(out: Path, run: Identity) -> list[str]:
    """Return why the checkpoints in `out` do not belong to `run`, one phrase per key; empty if they do, or if there are
    none."""
    # The newest readable one is enough: a folder never holds checkpoints of two settings.
    for path in checkpoints_in(out):
        with suppress(ArtifactError):  # damaged: the code that resumes will report it
            return changes(open_artifact(path, "checkpoint").manifest, run)
    return []


def other_settings(
    out: Path, trained: str, changed: Sequence[str], earlier: Mapping[str, Sequence[str]] | None = None
) -> ArtifactError:
    """Return the error for weights in `out` (`trained` says which) that training must not continue or replace.

    `changed` are the phrases of `core.manifest.changes` about the training, `earlier` those about the stages before it.
    """
    before = earlier or {}
    named = ", ".join(f"{stage} ({'; '.join(phrases)})" for stage, phrases in before.items())
    remedy = remedy_of([*changed, *chain.from_iterable(before.values())])
    return ArtifactError(
        f"{out} holds {trained} trained with other settings, and trained weights are never discarded: "
        f"{'; '.join(changed)}. {remedy}, or train in another folder (--out DIR), or move {out} away."
        + (f" Changed in an earlier stage: {named}." if named else "")
    )


def open_finished(out: Path, identity: Identity) -> Artifact | None:
    """Return the finished training in `out` if it has this identity, whatever extensions it went through; else None."""
    if not (out / MANIFEST).is_file():
        return None
    done = open_artifact(out, "train")
    expected = finished_identity(identity, done.counts["extensions"], done.counts["weights"])
    return done if done.fingerprint == expected.fingerprint else None


def finished_identity(identity: Identity, extensions: Sequence[Extension], weights: str) -> Identity:
    """Return the identity that a finished training is sealed with: it adds how phases grew, and the hash of the
    weights.

    Bit-identity depends on things outside the settings (ranks, threads, machine), so results derived from one model
    must not be mistaken for those of another model with the same settings.
    """
    # No key if nothing grew, so an undisturbed run has the fingerprint of its settings alone.
    grown = {"extensions": sha256_of([dict(e) for e in extensions])} if extensions else {}
    return replace(identity, inputs={**identity.inputs, **grown, "weights": weights})


def _fingerprint(path: Path, key: str, out: Path) -> str | None:
    if (path / MANIFEST).is_file():
        given = open_artifact(path)
        return _of_checkpoint(given) if given.manifest["stage"] == "checkpoint" else given.fingerprint
    if key in ("train.objective.teacher", "train.init_from"):
        # Most trainings start from random weights and need no code that reads model folders.
        from bertwright.model.pretrained_config import content_of, missing_of

        if not missing_of(path):
            return content_of(path)
    # Data that was deleted after training began is identified by what the checkpoints recorded of it.
    return next(_recorded_fingerprints(key, out), None)


def _of_checkpoint(given: Artifact) -> str:
    """Return the fingerprint of a checkpoint that training starts from: of its settings, weights and moments."""
    # All checkpoints of a training are sealed with the same settings; only their tensors differ.
    tensors = [name for part in ("model", "optimizer") for name in given.names(part)]
    return sha256_of([given.fingerprint, {name: given.manifest["files"][name]["sha256"] for name in tensors}])


def _recorded_fingerprints(key: str, out: Path) -> Iterator[str]:
    """Yield the fingerprint of the input `key` as recorded by the training in `out`, newest checkpoint first."""
    for begun in [*checkpoints_in(out), out]:
        with suppress(ArtifactError):
            if recorded := open_artifact(begun).manifest["inputs"].get(key):
                yield str(recorded)
