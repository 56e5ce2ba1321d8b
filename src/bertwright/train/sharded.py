"""Checkpoints in which each rank writes its own tensors.

No rank holds, copies or writes more than its share. Once all ranks have written, rank 0 seals the checkpoint and gives
it its name. Ranks communicate for this only while a write is in progress.
"""

from __future__ import annotations

from collections.abc import Callable

from bertwright.train.ranks import Ranks
from bertwright.train.saving import Snapshot, Writer


class ShardedWriter:
    """Writes each rank's share of a snapshot. All ranks must call every method together; each raises errors of its own
    disk."""

    def __init__(self, ranks: Ranks, writer: Writer) -> None:
        self._ranks, self._writer = ranks, writer
        self._publish: Callable[[], None] | None = None
        """Turns the shares being written into a checkpoint."""

    def write(
        self, write: Callable[[Snapshot], None], tensors: Snapshot, publish: Callable[[], None], wait: bool
    ) -> None:
        """Call `write` for this rank's share and, once all ranks are done, `publish` on rank 0; `wait`: wait for
        both."""
        self.finish()
        self._writer.write(write, tensors)
        self._publish = publish
        if wait or not self._writer.beside:
            self.finish()

    def check(self) -> None:
        """Publish the checkpoint if all shares are written."""
        self._writer.check()
        if self._publish is not None and not self._ranks.any(self._writer.busy):
            self._writer.wait()
            self._hand_over()

    def finish(self) -> None:
        """Wait until the checkpoint in progress is complete."""
        self._writer.wait()
        if self._publish is not None:
            self._ranks.barrier()
            self._hand_over()
            self._writer.wait()

    def _hand_over(self) -> None:
        publish, self._publish = self._publish, None
        if self._ranks.first and publish is not None:
            self._writer.run(publish)
