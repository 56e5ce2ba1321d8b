"""Checkpoints: save, find the newest valid one, prune.

A checkpoint is a sealed folder `step-000001200/` with `model.safetensors`, `optimizer.safetensors` and
`state.json` (both counters, the phase, the ledger), and `average.safetensors` where weights are averaged; where each
rank writes its own tensors, a file of each rank and an index in place of the first two (`train.tensor_files`). It is
written under a temporary name and renamed, so it is whole or absent; every file's SHA-256 is checked before anything
of it is used. What it says depends on no number of ranks. No pickle is read or written.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError

from bertwright.core.artifact import Artifact, open_artifact, seal
from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError, CheckpointError
from bertwright.core.files import cannot_write, make_folder, sync_folder, write_json
from bertwright.core.log import Log
from bertwright.train.saving import Snapshot
from bertwright.train.state import State, best_of, state_of
from bertwright.train.tensor_files import read_all, write_index, write_tensors

Tensors = dict[str, torch.Tensor]
Given = Mapping[str, torch.Tensor]


def save(folder: Path, identity: Identity, state: State, tensors: Snapshot) -> Path:
    """Write the checkpoint of `state` into `folder` and return its path; `identity` says whose it is."""
    # A killed run may have left a draft of this very step, with files of other sizes.
    shutil.rmtree(_draft(folder, state), ignore_errors=True)
    save_part(folder, state, tensors)
    return publish(folder, identity, state)


def save_part(folder: Path, state: State, tensors: Snapshot, rank: int = 0, world: int = 1) -> None:
    """Write what one rank of so many has of the checkpoint of `state`; `publish` makes one of all of them."""
    with _writing(folder, state) as draft:
        make_folder(draft)
        write_tensors(draft, "model", tensors.weights, rank, world)
        write_tensors(draft, "optimizer", tensors.moments, rank, world)
        if tensors.average is not None:
            write_tensors(draft, "average", tensors.average)


def publish(folder: Path, identity: Identity, state: State, world: int = 1) -> Path:
    """The checkpoint of `state`, of which all of so many ranks have written their parts."""
    final = folder / _name(state)
    with _writing(folder, state) as draft:
        for name in ("model", "optimizer") if world > 1 else ():
            write_index(draft, name, world)
        write_json(draft / "state.json", asdict(state))
        seal(draft, identity, {"total_steps": state.total_steps}, 0.0)
        if final.exists():
            # A damaged one of this step, which was skipped and trained again: no folder can replace another.
            final.rename(final.with_name(f".{final.name}.{time.time_ns()}.replaced"))
        draft.rename(final)
        sync_folder(folder)
    return final


def _name(state: State) -> str:
    return f"step-{state.total_steps:09d}"


def _draft(folder: Path, state: State) -> Path:
    return folder / f".{_name(state)}.draft"


@contextlib.contextmanager
def _writing(folder: Path, state: State) -> Iterator[Path]:
    """The draft of a checkpoint, which goes where it cannot be written."""
    draft = _draft(folder, state)
    try:
        yield draft
    except (OSError, SafetensorError) as error:
        shutil.rmtree(draft, ignore_errors=True)
        cause = error if isinstance(error, OSError) else OSError(str(error))
        raise cannot_write(folder / _name(state), cause) from error


def load(checkpoint: Artifact) -> tuple[State, Tensors, Tensors]:
    """State, model tensors and optimizer tensors of a checkpoint whose files are verified first."""
    return state_of(checkpoint), read_all(checkpoint, "model"), read_all(checkpoint, "optimizer")


def load_average(checkpoint: Artifact) -> Tensors:
    """The state of the average of the weights in a checkpoint of a recipe that has one."""
    return read_all(checkpoint, "average")


def remove_partial(folder: Path) -> None:
    """Remove what a killed run left half written or half removed."""
    for replaced in folder.glob(".step-*.replaced"):
        whole = folder / replaced.name[1:].partition(".")[0]
        if not whole.exists():  # killed before the new one had its name: this one may be all that there is
            replaced.rename(whole)
    for pattern in (".step-*.draft", ".step-*.removed", ".step-*.replaced"):
        for leftover in folder.glob(pattern):
            shutil.rmtree(leftover)


def newest_valid(folder: Path, log: Log) -> Artifact | None:
    """The newest checkpoint that is whole, saying which damaged ones are skipped; None when there never was one.

    Raises `CheckpointError` when there are checkpoints and none of them can be trusted.
    """
    # Names have nine digits, so that their order is that of the steps.
    candidates = sorted(folder.glob("step-*"), reverse=True)
    for path in candidates:
        try:
            checkpoint = open_artifact(path, "checkpoint")
            # Every hash: a size that is right says nothing of a disk that returns zeros.
            checkpoint.verify()
            return checkpoint
        except ArtifactError as error:
            log.say(f"train: skipping the damaged checkpoint {path.name}: {error}")
    if candidates:
        raise CheckpointError(
            f"none of the {len(candidates)} checkpoints in {folder} is whole, so training cannot continue. "
            f"Restore one from a copy, or move {folder.parent} away to start again from step 0."
        )
    return None


def newest_sound(folder: Path, log: Log) -> Artifact | None:
    """The newest whole checkpoint that is `_sound`, or None; says which damaged ones are skipped."""
    for path in sorted(folder.glob("step-*"), reverse=True):
        try:
            checkpoint = open_artifact(path, "checkpoint")
            if _sound(state_of(checkpoint)):
                checkpoint.verify()
                return checkpoint
        except ArtifactError as error:
            log.say(f"train: skipping the damaged checkpoint {path.name}: {error}")
    return None


def _sound(state: State) -> bool:
    """Whether to go back to it: the weights of one written while updates were dropped brought that about, and one that
    a signal had written would not be there in an undisturbed run, which has to do the same."""
    return state.due and not state.skipped_in_a_row


def prune(folder: Path, keep: int, newest: Path) -> None:
    """Remove the checkpoints that are not `worth_keeping`.

    Checkpoints later than `newest`, the one just saved, were skipped as damaged: they are left alone, as is
    whatever else cannot be read, and count for nothing.
    """
    states = _states([path for path in sorted(folder.glob("step-*")) if path.name <= newest.name])
    kept = worth_keeping(states, keep)
    doomed = [path.rename(path.with_name(f".{path.name}.removed")) for path in sorted(states.keys() - kept)]
    sync_folder(folder)  # else a power cut may bring a folder back under its name without the files removed from it
    for path in doomed:
        shutil.rmtree(path)


def worth_keeping(states: Mapping[Path, State], keep: int) -> set[Path]:
    """Of the states of checkpoints, in their order: the newest `keep`, the best by its held-out loss, the last of each
    phase, and the newest one to go back to."""
    kept = set(list(states)[-keep:]) | {path for path, state in states.items() if state.phase_end}
    if best := best_of(states):
        kept.add(best)
    return kept | set([path for path, state in states.items() if _sound(state)][-1:])


def _states(paths: list[Path]) -> dict[Path, State]:
    """The states of the checkpoints whose record is whole."""
    states = {}
    for path in paths:
        with contextlib.suppress(ArtifactError, OSError):
            states[path] = state_of(open_artifact(path, "checkpoint"))
    return states
