"""A rank as another one knows it: a connection that carries lines of text.

A number is a sign of life, and says how many sums over the ranks the rank has begun; `busy NUMBER` says beside that the
others have to wait for it; `end` is a farewell, `lost SENTENCE` a finding.
"""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass

_LONGEST_LINE = 4096


@dataclass
class Peer:
    """The other end of a connection."""

    name: str
    """As in "rank 1 of 2 (process 4711 on n2)"."""
    connection: socket.socket
    unread: bytes = b""
    """The beginning of a line whose end has not come."""
    heard: int = 0
    """When it was last heard of, in signs of life of our own."""
    sums: int = 0
    """Sums over the ranks that it has begun."""
    busy: bool = False
    """It does what the others have to wait for, however long it takes."""
    left: bool = False
    """It has said farewell."""

    def tell(self, line: str) -> None:
        """Send a line; what cannot be sent shows in what does not come back."""
        with contextlib.suppress(OSError):
            # The socket does not block, so a peer that has stopped reading cannot stop this rank's signs of life.
            self.connection.send(f"{line}\n".encode())

    def lines(self) -> list[str] | None:
        """The lines that have come since; None when the connection has ended."""
        try:
            data = self.connection.recv(_LONGEST_LINE)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not data:
            return None
        # A connection is a stream: a line may come in parts, and several at once.
        *whole, self.unread = (self.unread[-_LONGEST_LINE:] + data).split(b"\n")
        return [line.decode(errors="replace") for line in whole]
