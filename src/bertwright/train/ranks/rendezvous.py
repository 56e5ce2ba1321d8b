"""The rendezvous of a job's ranks: each connects to rank 0, whose address is in the launcher's store.

torchrun keeps one store over all its restarts, so the store may hold entries of dead ranks, and gloo waits forever for
their addresses. An address counts only once a rank 0 answers there, and all other entries of this start are stored
under a random prefix that this rank 0 has drawn.

A connection carries lines of text. A heartbeat says what the rank does, how many collectives (all-reduces and
broadcasts) it has begun, and how many forward passes: `alive 120 40`. `end` announces a regular exit, and
`lost SENTENCE` reports a failure.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args

from torch.distributed import PrefixStore, Store, TCPStore  # type: ignore[attr-defined]

from bertwright.core.errors import RankError, RecipeError, memory_error

_KEY = "the first rank listens at"
_LONGEST = 512
"""Maximum size of a greeting in bytes."""
_PAUSE = 0.2
"""Seconds before an address is tried again."""


@dataclass(frozen=True)
class Rendezvous:
    """The meeting point of the ranks of one start of a job."""

    store: Store
    """Shared by these ranks, and initially empty."""
    peers: list[RankConnection]
    """On rank 0, all other ranks; on every other rank, rank 0 only."""


def rendezvous(rank: int, world: int, seconds: float) -> Rendezvous:
    """Wait until all ranks have arrived; raise `RankError` naming those that do not within `seconds`."""
    until = time.monotonic() + seconds
    # The secret keeps out ranks of an earlier start, which torchrun's store still lists.
    secret, store, peers = _await_others(world, until) if rank == 0 else _go_to_first(rank, world, until)
    for peer in peers:
        # From here on the watchdog thread reads all connections, and must never block on one of them.
        peer.connection.setblocking(False)
    return Rendezvous(PrefixStore(secret, store), peers)


def our_name(rank: int, world: int) -> str:
    """Return the name of this process in messages."""
    return f"rank {rank} of {world} (process {os.getpid()} on {socket.gethostname()})"


def _open_store(rank: int, until: float) -> Store:
    try:
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    except (KeyError, ValueError) as error:
        raise RecipeError(
            "WORLD_SIZE says that several ranks train, but MASTER_ADDR and MASTER_PORT do not give the address where "
            f"they connect ({error}). Start them with torchrun, or set both, or unset WORLD_SIZE."
        ) from error
    torchruns = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"  # else rank 0 hosts the store
    try:
        return TCPStore(host, port, None, rank == 0 and not torchruns, _left(until), wait_for_workers=False)
    except (RuntimeError, TypeError) as error:  # TypeError: a port beyond 65535
        if lack := memory_error(error):  # the store needs threads
            raise lack from error
        raise RankError(
            f"rank {rank} cannot connect to the others at {host}:{port} (MASTER_ADDR, MASTER_PORT): "
            f"{_first_line(error)}. Check that rank 0 runs and that the port is free there, then start all ranks "
            "again."
        ) from error


def _await_others(world: int, until: float) -> tuple[str, Store, list[RankConnection]]:
    store, secret, peers = _open_store(0, until), secrets.token_hex(16), dict[int, RankConnection]()
    # The others may reach this rank by an address of either kind.
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    with socket.create_server(("", 0), family=family, dualstack_ipv6=both) as listener:
        store.set(_KEY, f"{listener.getsockname()[1]} {secret} {our_name(0, world)}")
        while len(peers) < world - 1:
            listener.settimeout(_left(until).total_seconds())
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                raise _absent(peers, world) from None
            # Limit a greeting to five seconds and 512 bytes: a silent stranger must not hold up the job.
            given, number, name = ((_line(connection, 5.0) or "") + "  ").split(" ", 2)
            # Compared in constant time: the port is open to anyone who can reach the machine.
            if hmac.compare_digest(given.encode(), secret.encode()):
                peers[int(number)] = RankConnection(name.strip(), connection)
            else:  # not a rank of this start
                connection.close()
    for peer in peers.values():
        peer.tell("")
    return secret, store, list(peers.values())


def _absent(peers: dict[int, RankConnection], world: int) -> RankError:
    """Return the error about the ranks that have not arrived, and send it to those that have."""
    missing = ", ".join(str(rank) for rank in range(1, world) if rank not in peers)
    error = RankError(
        f"rank {missing} of {world} did not connect in time (train.start_timeout). Find out why it "
        "does not run, then start all ranks again."
    )
    for peer in peers.values():
        peer.tell(f"lost {error}")
        peer.connection.close()
    return error


def _go_to_first(rank: int, world: int, until: float) -> tuple[str, Store, list[RankConnection]]:
    store, fault = _open_store(rank, until), "it has not given its address"
    host = os.environ["MASTER_ADDR"]
    while time.monotonic() < until:
        try:
            store.wait([_KEY], _left(until))
            port, secret, name = store.get(_KEY).decode().split(" ", 2)
            # The store may hold the address of a dead rank 0: it counts only once something answers there.
            connection = socket.create_connection((host, int(port)), _left(until).total_seconds())
        except (RuntimeError, OSError) as error:
            if lack := memory_error(error):
                raise lack from error
            fault = _first_line(error)
            time.sleep(_PAUSE)
            # A rank 0 that trains again in the same process has a new store.
            store = _open_store(rank, until)
            continue
        first = RankConnection(name, connection)
        first.tell(f"{secret} {rank} {our_name(rank, world)}"[: _LONGEST - 1])
        answer = _line(connection, _left(until).total_seconds() + 5)  # leaves rank 0 time to report who is missing
        if answer == "":
            return secret, store, [first]
        connection.close()
        if answer and answer.startswith("lost "):
            raise RankError(answer.removeprefix("lost "))
        fault = f"{name} ended before all ranks had connected"
        time.sleep(_PAUSE)
    raise RankError(
        f"rank {rank} of {world} cannot find rank 0 at {host} (MASTER_ADDR): {fault}. Check that rank 0 runs and can "
        "be reached from here, then start all ranks again."
    )


def _line(connection: socket.socket, seconds: float) -> str | None:
    """Return the next line without its newline; None if none arrives in time."""
    line, byte, until = b"", b"", time.monotonic() + seconds
    with suppress(OSError):
        # The limit covers the entire line: a timeout per `recv` would let a stranger hold up the job, byte by byte.
        while (left := until - time.monotonic()) > 0 and len(line) < _LONGEST:
            connection.settimeout(left)
            if (byte := connection.recv(1)) in (b"", b"\n"):
                break
            line += byte
    return line.decode(errors="replace") if byte == b"\n" else None


def _left(until: float) -> timedelta:
    return timedelta(seconds=max(0.1, until - time.monotonic()))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200] or type(error).__name__


_LONGEST_LINE = 4096
State = Literal["alive", "busy", "device"]
"""What a rank does: `busy`, work that the others must wait for, however long it takes; `device`, only give work to its
GPU and wait for it; `alive`, anything else."""


@dataclass
class RankConnection:
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
