"""A peer rank: a connection that carries lines of text.

A heartbeat says what the rank does, how many collectives (all-reduces and broadcasts) it has begun, and how many
forward passes: `alive 120 40`. `end` announces a regular exit, and `lost SENTENCE` reports a failure.
"""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from typing import Literal, get_args

_LONGEST_LINE = 4096
State = Literal["alive", "busy", "device"]
"""What a rank does: `busy`, work that the others must wait for, however long it takes; `device`, only give work to its
GPU and wait for it; `alive`, anything else."""


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
    passes: int = 0
    """Number of forward passes that it has begun in training."""
    state: str = "alive"
    """What it does: a `State`."""
    left: bool = False
    """Whether it has announced its exit or a failure, or its connection has ended."""

    def tell(self, line: str) -> None:
        """Send a line; a failure to send is ignored, because a broken connection is noticed when reading."""
        with contextlib.suppress(OSError):
            # The socket is non-blocking, so a peer that has stopped reading cannot stop this rank's heartbeats.
            self.connection.send(f"{line}\n".encode())

    def heartbeat(self, line: str) -> None:
        """Take over what a line says, if it is a heartbeat."""
        match line.split(" "):
            case [state, sums, passes] if state in get_args(State) and sums.isdecimal() and passes.isdecimal():
                self.state, self.sums, self.passes = state, int(sums), int(passes)

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
