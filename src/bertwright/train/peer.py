"""A peer rank: a connection that carries lines of text.

A line with a number is a heartbeat, and says how many collectives (all-reduces and broadcasts) the rank has begun;
`busy NUMBER` also says that the others have to wait for it; `end` announces a regular exit, and `lost SENTENCE` reports
a failure.
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
    """For example "rank 1 of 2 (process 4711 on n2)"."""
    connection: socket.socket
    unread: bytes = b""
    """The start of a line whose end has not arrived yet."""
    heard: int = 0
    """When it was last heard from, counted in this rank's own heartbeats."""
    sums: int = 0
    """Number of collectives that it has begun."""
    busy: bool = False
    """Whether it is doing work that the others must wait for, however long it takes."""
    left: bool = False
    """Whether it has announced its exit or a failure, or its connection has ended."""

    def tell(self, line: str) -> None:
        """Send a line; a failure to send is ignored, because a broken connection is noticed when reading."""
        with contextlib.suppress(OSError):
            # The socket is non-blocking, so a peer that has stopped reading cannot stop this rank's heartbeats.
            self.connection.send(f"{line}\n".encode())

    def lines(self) -> list[str] | None:
        """Return the lines received since the last call; None if the connection has ended."""
        try:
            data = self.connection.recv(_LONGEST_LINE)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not data:
            return None
        # A connection is a stream: a line may arrive in parts, and several at once.
        *whole, self.unread = (self.unread[-_LONGEST_LINE:] + data).split(b"\n")
        return [line.decode(errors="replace") for line in whole]
