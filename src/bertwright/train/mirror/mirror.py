"""Copies a training's checkpoints to an address, on a thread while training continues.

Each pass makes the address hold what is kept locally, so the next pass makes up for a failed one. A failure never ends
training: the first one is logged, and so is anything still missing at the end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType

from bertwright.core.addresses import shown
from bertwright.core.artifact import open_artifact
from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError
from bertwright.core.log import Log
from bertwright.core.remote_folder import RemoteFolder
from bertwright.train.checkpoints.checkpoint import worth_keeping
from bertwright.train.mirror.contents import ROWS, copy_graphs, steps, whole
from bertwright.train.mirror.restore import refuse_others
from bertwright.train.monitor.metrics import rows_until
from bertwright.train.settings.identity import CHECKPOINTS


@dataclass(frozen=True)
class Mirrored:
    """What is copied, and where to."""

    url: str
    out: Path
    """The run's `train` folder."""
    identity: Identity
    """Identity of the checkpoints."""
    keep: int | None
    """Number of newest checkpoints to keep; None: nothing is removed at the address."""


class Mirror:
    """Copies from rank 0; as a context manager it waits at the end for the last copy."""

    def __init__(
        self, mirrored: Mirrored, log: Log, finishing: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        """`finishing`: context in which the last copy is waited for, so that the other ranks wait and do not end this
        one."""
        self._mirrored, self._log, self._finishing = mirrored, log, finishing
        self._failed = ""
        """Error of the last pass; empty if it succeeded."""
        self._said = False
        self._due = SimpleQueue[Callable[[], None] | None]()
        # A daemon, so that a second Ctrl-C need not wait for a slow network.
        self._thread = threading.Thread(target=self._run, name="mirror", daemon=True)
        self._thread.start()

    def saved(self) -> None:
        """Request a copy of new checkpoints, after one has been saved."""
        self._due.put(self._copy_checkpoints)

    def finished(self) -> None:
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
                self._failed = f"{type(error).__name__}: {shown(str(error))}"
                self._say_once()

    def _say_once(self) -> None:
        if not self._said:
            self._said = True
            self._log.say(
                f"warning: nothing can be copied to train.mirror {self._mirrored.url} ({self._failed}). Training goes "
                "on, and each later checkpoint tries again."
            )

    def _copy_checkpoints(self) -> None:
        remote, folder, mirrored = RemoteFolder(self._mirrored.url), self._mirrored.out / CHECKPOINTS, self._mirrored
        there = whole(remote)
        refuse_others({name: manifest for name, (manifest, _) in there.items()}, mirrored.identity, mirrored.url)
        names = sorted(path.name for path in folder.glob("step-*"))
        # Before these checkpoints: none of a later phase is there without the networks of the phases before.
        copy_graphs(remote, mirrored.out)
        for name in names:
            self._copy(remote, name)
        if mirrored.keep is None:
            return
        there = whole(remote)
        # Later checkpoints, from a start whose folder is lost or damaged, are left alone there, as they are locally.
        ours = [name for name in steps(remote) if names and name <= names[-1]]
        states = {Path(name): there[name][1] for name in ours if name in there}
        kept = worth_keeping(states, mirrored.keep)
        for name in ours:
            if Path(name) not in kept and name not in names:
                remote.remove(f"{CHECKPOINTS}/{name}")

    def _copy(self, remote: RemoteFolder, name: str) -> None:
        path, place = self._mirrored.out / CHECKPOINTS / name, f"{CHECKPOINTS}/{name}"
        try:
            checkpoint = open_artifact(path, "checkpoint")
        except ArtifactError:
            return  # damaged, so useless there, or pruned by now
        rows = b"".join(rows_until(self._mirrored.out / ROWS, int(checkpoint.counts["total_steps"])))
        try:
            if not remote.has(checkpoint, place):
                remote.put(checkpoint, place, {ROWS: rows})
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
