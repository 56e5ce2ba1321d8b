"""A training's checkpoints at an address, copied by a thread while training goes on.

Each pass makes the address hold what is kept here, so one that fails is made good by the next. No failure ends
training: the first is said, and what is lacking in the end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType

from bertwright.core.artifact import open_artifact
from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError
from bertwright.core.log import Log
from bertwright.core.redact import shown
from bertwright.core.remote_folder import RemoteFolder
from bertwright.train.checkpoint import worth_keeping
from bertwright.train.identity import CHECKPOINTS
from bertwright.train.metrics import rows_until
from bertwright.train.mirror.restore import refuse_others
from bertwright.train.mirror.steps import ROWS, steps, whole


@dataclass(frozen=True)
class Mirrored:
    """What is copied where."""

    url: str
    out: Path
    """The run's `train`."""
    identity: Identity
    """Of the checkpoints."""
    keep: int | None
    """Newest checkpoints kept; None: nothing is removed there."""


class Mirror:
    """Copies on the first rank; a block waits at its end for the last copy."""

    def __init__(
        self, mirrored: Mirrored, log: Log, finishing: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        """In a block of `finishing` the last copy is waited for: the other ranks wait, and none ends this one."""
        self._mirrored, self._log, self._finishing = mirrored, log, finishing
        self._failed = ""
        """What the last pass failed of; empty where it did not."""
        self._said = False
        self._due = SimpleQueue[Callable[[], None] | None]()
        # A daemon, so that a second Ctrl-C need not wait for a slow network.
        self._thread = threading.Thread(target=self._run, name="mirror", daemon=True)
        self._thread.start()

    def saved(self) -> None:
        """Copy what is new: a checkpoint has been saved."""
        self._due.put(self._copy_checkpoints)

    def finished(self) -> None:
        """Copy the finished training as well."""
        self._due.put(self._copy_finished)

    def _run(self) -> None:
        last = False
        while not last and (copy := self._due.get()):
            # Of passes that became due while a slow one was under way the last does the work of all.
            while not self._due.empty():
                following = self._due.get()
                copy, last = following or copy, following is None
            try:
                copy()
                self._failed = ""
            # Whatever a package of strangers raises: it must not cost the training.
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
        for name in names:
            self._copy(remote, name)
        if mirrored.keep is None:
            return
        there = whole(remote)
        # Later ones than ours, of a start whose folder is lost or damaged, are left alone, as they are here.
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
            return  # damaged, so no use there either; or pruned by now
        rows = b"".join(rows_until(self._mirrored.out / ROWS, int(checkpoint.counts["total_steps"])))
        try:
            if not remote.has(checkpoint, place):
                remote.put(checkpoint, place, {ROWS: rows})
        except FileNotFoundError:
            # Pruned while it was copied: what is there of it has no manifest, and goes with the older ones.
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
                f"warning: train.mirror {self._mirrored.url} lacks what was saved last: {self._failed}. All of it is "
                f"in {self._mirrored.out}; copy that folder there yourself, or run the same command again if "
                "training has not finished."
            )
