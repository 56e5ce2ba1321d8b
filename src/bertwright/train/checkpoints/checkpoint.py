"""Checkpoints: save, find the newest valid one, prune.

A checkpoint is a sealed folder `step-000001200/` with `model.safetensors`, `optimizer.safetensors` and `state.json`
(step counters, phase, totals), and `average.safetensors` if weights are averaged. If each rank writes its own tensors,
one file per rank and an index replace each of the first two (`train.tensor_files`). The folder is written under a
temporary name and then renamed, so it is either complete or absent; the SHA-256 of every file is verified before any of
it is used. Its content does not depend on the number of ranks. No pickle is read or written.
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

from bertwright.core.artifact import MANIFEST, Artifact, open_artifact, seal
from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError, CheckpointError, DataError
from bertwright.core.files import cannot_write, make_folder, sync_folder, write_json
from bertwright.core.log import Log
from bertwright.train.checkpoints.tensor_files import Snapshot, read_all, write_index, write_tensors
from bertwright.train.state import State, best_of, state_of

Tensors = dict[str, torch.Tensor]
Given = Mapping[str, torch.Tensor]


def save(folder: Path, identity: Identity, state: State, tensors: Snapshot) -> Path:
    """Write the checkpoint of `state` into `folder` and return its path; `identity` is the identity it is sealed
    with."""
    # A killed run may have left a draft of this same step, with files of other sizes.
    shutil.rmtree(_draft(folder, state), ignore_errors=True)
    save_part(folder, state, tensors)
    return publish(folder, identity, state)


def save_part(folder: Path, state: State, tensors: Snapshot, rank: int = 0, world: int = 1) -> None:
    """Write the part of one of `world` ranks of the checkpoint of `state`; `publish` completes the checkpoint."""
    with _writing(folder, state) as draft:
        make_folder(draft)
        write_tensors(draft, "model", tensors.weights, rank, world)
        write_tensors(draft, "optimizer", tensors.moments, rank, world)
        if tensors.average is not None:
            write_tensors(draft, "average", tensors.average)


def publish(folder: Path, identity: Identity, state: State, world: int = 1) -> Path:
    """Seal and rename the checkpoint of `state` once all `world` ranks have written their parts; return its path."""
    final = folder / _name(state)
    with _writing(folder, state) as draft:
        for name in ("model", "optimizer") if world > 1 else ():
            write_index(draft, name, world)
        write_json(draft / "state.json", asdict(state))
        seal(draft, identity, {"total_steps": state.total_steps}, 0.0)
        if final.exists():
            # A damaged checkpoint of this step, which was skipped and trained again, or one that became the end of its
            # phase: a rename cannot replace a folder.
            final.rename(final.with_name(f".{final.name}.{time.time_ns()}.replaced"))
        draft.rename(final)
        sync_folder(folder)
    # Only now that the new one is on disk under its name: until then the old one may be the only copy.
    _remove(folder, f".{final.name}.*.replaced")
    return final


def _name(state: State) -> str:
    return f"step-{state.total_steps:09d}"


def _draft(folder: Path, state: State) -> Path:
    return folder / f".{_name(state)}.draft"


@contextlib.contextmanager
def _writing(folder: Path, state: State) -> Iterator[Path]:
    """Yield the draft folder of a checkpoint; remove it if writing fails."""
    draft = _draft(folder, state)
    try:
        yield draft
    except (OSError, SafetensorError, DataError) as error:
        shutil.rmtree(draft, ignore_errors=True)
        cause = error.__cause__ if isinstance(error, DataError) else error  # of a file that the user does not know
        cause = cause if isinstance(cause, OSError) else OSError(str(cause or error))
        raise cannot_write(folder / _name(state), cause) from error


def load(checkpoint: Artifact) -> tuple[State, Tensors, Tensors]:
    """Return state, model tensors and optimizer tensors of a checkpoint, after verifying the hashes of its files."""
    return state_of(checkpoint), read_all(checkpoint, "model"), read_all(checkpoint, "optimizer")


def load_average(checkpoint: Artifact) -> Tensors:
    """Return the state of the weight average in a checkpoint; the recipe must have one."""
    return read_all(checkpoint, "average")


def remove_partial(folder: Path) -> None:
    """Remove partially written or partially removed folders that a killed run left behind."""
    for replaced in folder.glob(".step-*.replaced"):
        whole = folder / replaced.name[1:].partition(".")[0]
        # Killed before the new folder got its name: this may be the only copy.
        if not whole.exists() and (replaced / MANIFEST).is_file():
            replaced.rename(whole)
    for draft in folder.glob(".step-*.draft"):
        shutil.rmtree(draft)
    _remove(folder, ".step-*.removed", ".step-*.replaced")


def _remove(folder: Path, *patterns: str) -> None:
    """Remove the folders of these names, as far as possible: the rest is removed with the next ones."""
    for path in (path for pattern in patterns for path in folder.glob(pattern)):
        # NFS keeps a file that somebody has open, and so its folder. That must not end training.
        shutil.rmtree(path, ignore_errors=True)


def newest_valid(folder: Path, log: Log) -> Artifact | None:
    """Return the newest valid checkpoint, or None if there never was one; log each damaged checkpoint that is skipped.

    Raises `CheckpointError` if there are checkpoints and all of them are damaged.
    """
    # Names have nine digits, so their lexical order is the order of the steps.
    candidates = sorted(folder.glob("step-*"), reverse=True)
    for path in candidates:
        try:
            checkpoint = open_artifact(path, "checkpoint")
            # Verify every hash: a correct size does not rule out a disk that returns zeros.
            checkpoint.verify()
            return checkpoint
        except ArtifactError as error:
            log.say(f"train: skipping the damaged checkpoint {path.name}: {error}")
    if candidates:
        raise CheckpointError(
            f"none of the {len(candidates)} checkpoints in {folder} is complete, so training cannot continue. Restore "
            f"one from a copy, or move {folder.parent} away to start again from step 0."
        )
    return None


def newest_state(folder: Path) -> State | None:
    """Return the state in the newest checkpoint whose state file is readable, without verifying its tensors; None if
    there is no checkpoint."""
    return next(reversed(_states(sorted(folder.glob("step-*"))).values()), None)


def newest_healthy(folder: Path, log: Log) -> Artifact | None:
    """Return the newest valid checkpoint that is `_is_healthy`, or None; log each damaged one that is skipped."""
    for path in sorted(folder.glob("step-*"), reverse=True):
        try:
            checkpoint = open_artifact(path, "checkpoint")
            if _is_healthy(state_of(checkpoint)):
                checkpoint.verify()
                return checkpoint
        except ArtifactError as error:
            log.say(f"train: skipping the damaged checkpoint {path.name}: {error}")
    return None


def _is_healthy(state: State) -> bool:
    """Whether training may go back to this state.

    Not if updates were being dropped: its weights led to that. Not if only a signal caused the save: an undisturbed run
    would not have it, and must do the same.
    """
    return state.due and not state.skipped_in_a_row


def prune(folder: Path, keep: int, newest: Path) -> None:
    """Remove the checkpoints that are not `worth_keeping`.

    Checkpoints later than `newest`, the one just saved, were skipped as damaged. They and any other unreadable
    checkpoints are kept and not counted.
    """
    states = _states([path for path in sorted(folder.glob("step-*")) if path.name <= newest.name])
    kept = worth_keeping(states, keep)
    for path in sorted(states.keys() - kept):
        path.rename(path.with_name(f".{path.name}.removed"))
    sync_folder(folder)  # else a power cut may restore the old name of a folder whose files are partly removed
    _remove(folder, ".step-*.removed")


def worth_keeping(states: Mapping[Path, State], keep: int) -> set[Path]:
    """Return the checkpoints to keep, given their states in step order: the newest `keep`, the one with the best
    held-out loss, the last of each phase, and the newest one to go back to."""
    kept = set(list(states)[-keep:]) | {path for path, state in states.items() if state.phase_end}
    if best := best_of(states):
        kept.add(best)
    return kept | set([path for path, state in states.items() if _is_healthy(state)][-1:])


def _states(paths: list[Path]) -> dict[Path, State]:
    """Return the states of the checkpoints whose state file is readable and valid."""
    states = {}
    for path in paths:
        with contextlib.suppress(ArtifactError, OSError):
            states[path] = state_of(open_artifact(path, "checkpoint"))
    return states
