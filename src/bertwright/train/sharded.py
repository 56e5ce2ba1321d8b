"""Checkpoints of which each rank writes its own tensors.

No rank holds, copies or writes more than its share; once all have written, the first one seals the whole and gives it
its name. Ranks ask each other only while one of them writes.
"""

from __future__ import annotations

from collections.abc import Callable

from bertwright.train.ranks import Ranks
from bertwright.train.saving import Snapshot, Writer


class ShardedWriter:
    """Writes snapshots of shares; every method is called by all ranks together, and raises what their own disk said."""

    def __init__(self, ranks: Ranks, writer: Writer) -> None:
        self._ranks, self._writer = ranks, writer
        self._publish: Callable[[], None] | None = None
        """What makes a checkpoint of what is being written."""

    def write(
        self, write: Callable[[Snapshot], None], tensors: Snapshot, publish: Callable[[], None], wait: bool
    ) -> None:
        """Have `write` do this rank's share, and once all have, `publish` on the first; `wait` for both."""
        self.finish()
        self._writer.write(write, tensors)
        self._publish = publish
        if wait or not self._writer.beside:
            self.finish()

    def check(self) -> None:
        """Go on with the checkpoint whose shares are all written."""
        self._writer.check()
        if self._publish is not None and not self._ranks.any(self._writer.busy):
            self._writer.wait()
            self._hand_over()

    def finish(self) -> None:
        """Wait until what is under way is a checkpoint."""
        self._writer.wait()
        if self._publish is not None:
            self._ranks.barrier()
            self._hand_over()
            self._writer.wait()

    def _hand_over(self) -> None:
        publish, self._publish = self._publish, None
        if self._ranks.first and publish is not None:
            self._writer.run(publish)
