"""Copies a training's checkpoints to an address, on a thread while training continues.

The address has the layout of the run's `train` folder. Each checkpoint there also has the rows of metrics and guesses
up to it, so none exists without them. Each ONNX file of a finished phase, which belongs to no checkpoint, has its
SHA-256 beside it, written after it, so an incomplete or damaged copy is recognised.

Each pass makes the address hold what is kept locally, so the next pass makes up for a failed one. A failure never ends
training: the first one is logged, and so is anything still missing at the end.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any

from bertwright.core.addresses import redact
from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError
from bertwright.core.files import sha256
from bertwright.core.log import Log
from bertwright.core.manifest import changes, read_manifest, remedy_of
from bertwright.transfer.parts import CHECKPOINTS
from bertwright.transfer.remote_folder import RemoteFolder

DIGEST = ".sha256"
"""Ending of the file with the SHA-256 of an ONNX file."""


@dataclass(frozen=True)
class MirroredTraining:
    """What is copied, where to, and what training knows of its own files."""

    url: str
    out: Path
    """The run's `train` folder."""
    identity: Identity
    """Identity of the checkpoints."""
    state_of: Callable[[Artifact], Any]
    """Reads the state of a checkpoint; raises `ArtifactError` if it is not valid."""
    rows_beside: Callable[[Path, int], dict[str, bytes]]
    """Reads the files of rows in the `train` folder, by name (`BESIDE`), each up to a step, counted over all phases."""
    worth_keeping: Callable[[Mapping[Path, Any]], Collection[Path]] | None
    """Selects the checkpoints to keep by their states; None: nothing is removed at the address."""

    def complete(self, remote: RemoteFolder) -> dict[str, Any]:
        """The states of the checkpoints at the address that have a manifest and a valid state, by name.

        Raises `ArtifactError`, naming the keys, if they are not of this training.
        """
        manifests, states = dict[str, Mapping[str, Any]](), dict[str, Any]()
        for name in step_names(remote):
            with tempfile.TemporaryDirectory() as scratch, suppress(ArtifactError):
                for file in (MANIFEST, "state.json"):
                    (Path(scratch) / file).write_bytes(remote.content(f"{CHECKPOINTS}/{name}/{file}") or b"")
                manifest = read_manifest(Path(scratch), "checkpoint")
                states[name], manifests[name] = self.state_of(Artifact(Path(scratch), manifest)), manifest
        if manifests and (changed := changes(manifests[max(manifests)], self.identity)):
            raise ArtifactError(
                f"train.mirror {self.url} holds checkpoints trained with other settings, and they are never discarded: "
                f"{'; '.join(changed)}. {remedy_of(changed)}, or use a different address for this run."
            )
        return states


def step_names(remote: RemoteFolder) -> list[str]:
    """The names of all checkpoints at a mirror, sorted, including incomplete ones."""
    return [name for name in remote.folders(CHECKPOINTS) if name.startswith("step-")]


class Mirror:
    """Copies from rank 0; as a context manager it waits at the end for the last copy."""

    def __init__(
        self, mirrored: MirroredTraining, log: Log, finishing: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        """`finishing`: context in which the last copy is waited for, so that the other ranks wait and do not end this
        one."""
        self._mirrored, self._log, self._finishing = mirrored, log, finishing
        self._failed = ""
        """Error of the last pass; empty if it succeeded."""
        self._warned = False
        self._due = SimpleQueue[Callable[[], None] | None]()
        # A daemon, so that a second Ctrl-C need not wait for a slow network.
        self._thread = threading.Thread(target=self._run, name="mirror", daemon=True)
        self._thread.start()

    def request_copy(self) -> None:
        """Request a copy of new checkpoints, after one has been saved."""
        self._due.put(self._copy_checkpoints)

    def request_final_copy(self) -> None:
        """Request a copy of the finished training, too."""
        self._due.put(self._copy_finished)

    def _run(self) -> None:
        last = False
        while not last and (copy := self._due.get()):
            # If several passes became due during a slow one, the last of them does the work of all.
            while not self._due.empty():
                following = self._due.get()
                copy, last = following or copy, following is None
            try:
                copy()
                self._failed = ""
            # Catch everything that a third-party package raises: it must not end training.
            except Exception as error:
                self._failed = f"{type(error).__name__}: {redact(str(error))}"
                self._warn_once()

    def _warn_once(self) -> None:
        if not self._warned:
            self._warned = True
            self._log.say(
                f"warning: nothing can be copied to train.mirror {self._mirrored.url} ({self._failed}). Training goes "
                "on, and each later checkpoint tries again."
            )

    def _copy_checkpoints(self) -> None:
        remote, mirrored = RemoteFolder(self._mirrored.url), self._mirrored
        mirrored.complete(remote)  # raises if they are of another training
        names = sorted(path.name for path in (mirrored.out / CHECKPOINTS).glob("step-*"))
        # Before these checkpoints: none of a later phase is there without the networks of the phases before.
        _copy_graphs(remote, mirrored.out)
        for name in names:
            self._copy(remote, name)
        if mirrored.worth_keeping is None:
            return
        # Later checkpoints, from a start whose folder is lost or damaged, are not removed there, as they are locally.
        ours = [name for name in step_names(remote) if names and name <= names[-1]]
        states = {Path(name): state for name, state in mirrored.complete(remote).items() if name in ours}
        kept = mirrored.worth_keeping(states)
        for name in ours:
            if Path(name) not in kept and name not in names:
                remote.remove(f"{CHECKPOINTS}/{name}")

    def _copy(self, remote: RemoteFolder, name: str) -> None:
        path, place = self._mirrored.out / CHECKPOINTS / name, f"{CHECKPOINTS}/{name}"
        try:
            checkpoint = open_artifact(path, "checkpoint")
        except ArtifactError:
            return  # damaged, so useless there, or pruned by now
        beside = self._mirrored.rows_beside(self._mirrored.out, int(checkpoint.counts["total_steps"]))
        try:
            if not remote.has(checkpoint, place):
                remote.put(checkpoint, place, beside)
        except FileNotFoundError:
            # Pruned while it was copied: the partial copy has no manifest, and is removed with the older ones.
            if path.is_dir():
                raise

    def _copy_finished(self) -> None:
        self._copy_checkpoints()
        done = open_artifact(self._mirrored.out, "train")
        remote = RemoteFolder(self._mirrored.url)
        if not remote.has(done, ""):
            remote.put(done, "", {})

    def __enter__(self) -> Mirror:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and not issubclass(kind, Exception):
            return
        self._due.put(None)
        with self._finishing():
            self._thread.join()
        if self._failed:
            self._log.say(
                f"warning: train.mirror {self._mirrored.url} does not have the newest files: {self._failed}. All "
                f"files are in {self._mirrored.out}; copy that folder there yourself, or run the same command again "
                "if training has not finished."
            )


def _copy_graphs(remote: RemoteFolder, out: Path) -> None:
    """Upload those ONNX files of `out` that the mirror does not have with this content."""
    for path in sorted(out.glob("phase-*.onnx")):
        digest = sha256(path).encode()
        if remote.content(path.name + DIGEST) != digest:
            remote.send(path.name, path)
            remote.write(path.name + DIGEST, digest)
