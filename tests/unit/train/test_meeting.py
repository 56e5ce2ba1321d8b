"""How ranks find each other: named errors where they do not, and no way in for whoever does not know the secret."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from types import SimpleNamespace

import pytest
from tests.processes import PATIENCE
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from bertwright.core.errors import RankError, RecipeError
from bertwright.train.ranks import rendezvous as module
from bertwright.train.ranks.rendezvous import _KEY, _line, our_name, rendezvous


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A free port, at which the environment says that the ranks meet."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(number))
    monkeypatch.delenv("TORCHELASTIC_USE_AGENT_STORE", raising=False)
    yield number


@pytest.mark.parametrize("missing", ["MASTER_ADDR", "MASTER_PORT"])
def test_an_address_that_is_not_said_is_asked_for(port: int, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.delenv(missing)
    with pytest.raises(RecipeError, match=f"{missing}.*Start them with torchrun, or set both, or unset WORLD_SIZE"):
        rendezvous(0, 2, 1.0)


def test_a_port_that_is_none_is_an_error(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_PORT", "many")
    with pytest.raises(RecipeError, match="many"):
        rendezvous(0, 2, 1.0)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_every_rank_is_a_peer_and_the_store_is_empty(address: str, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET).close()
    except OSError as error:
        pytest.skip(f"this machine has no address {address}: {error}")
    monkeypatch.setenv("MASTER_ADDR", address)
    with ThreadPoolExecutor(3) as pool:
        first, *others = (met.result() for met in [pool.submit(rendezvous, rank, 3, 20.0) for rank in range(3)])
    assert sorted(peer.name for peer in first.peers) == [our_name(1, 3), our_name(2, 3)]
    assert [[peer.name for peer in other.peers] for other in others] == [[our_name(0, 3)]] * 2
    first.store.set("said", "by the first")
    assert others[1].store.get("said") == b"by the first"
    for met in (first, *others):
        for peer in met.peers:
            peer.connection.close()


def test_ranks_that_do_not_come_are_named_to_all_that_have(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time ends once rank 2 has greeted, however long that takes."""
    now, read = [0.0], module._line

    def line(connection: socket.socket, seconds: float) -> str | None:
        greeting = read(connection, seconds)
        now[0] += 60.0 if greeting and "rank 2 of 4" in greeting else 0.0
        return greeting

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=time.sleep))
    monkeypatch.setattr(module, "_line", line)
    with ThreadPoolExecutor(2) as pool:
        said = [str(met.exception()) for met in [pool.submit(rendezvous, rank, 4, 60.0) for rank in (0, 2)]]
    assert said[0] == said[1]
    assert said[0].startswith("rank 1, 3 of 4 did not connect in time (train.start_timeout). Find out why ")


def test_without_a_first_rank_the_others_say_where_they_looked(port: int) -> None:
    store = TCPStore("127.0.0.1", port, None, True, wait_for_workers=False)  # as torchrun keeps one
    with pytest.raises(RankError, match=r"rank 1 of 2 cannot find rank 0 at 127\.0\.0\.1 \(MASTER_ADDR\)"):
        rendezvous(1, 2, 1.0)
    del store


def test_a_stranger_without_the_secret_is_no_rank(port: int) -> None:
    store = TCPStore("127.0.0.1", port, None, True, wait_for_workers=False)
    with ThreadPoolExecutor(2) as pool, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
        first = pool.submit(rendezvous, 0, 2, PATIENCE)
        listens = int(store.get(_KEY).decode().split(" ")[0])
        for greeting in (b"0123 1 rank 1 of 2\n", b"\n", b"\xff\xfe" * 40 + b"\n", b"x" * 4096):
            with socket.create_connection(("127.0.0.1", listens)) as stranger:
                stranger.sendall(greeting)
                stranger.settimeout(PATIENCE)
                with suppress(ConnectionResetError):  # where bytes were left unread
                    assert stranger.recv(1) == b""
        second = pool.submit(rendezvous, 1, 2, PATIENCE)
        assert [peer.name for peer in first.result().peers] == [our_name(1, 2)]
        for met in (first.result(), second.result()):
            met.peers[0].connection.close()


def test_a_long_name_is_cut_to_what_others_read(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    store = TCPStore("127.0.0.1", port, None, True, wait_for_workers=False)
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    monkeypatch.setattr("bertwright.train.ranks.rendezvous.our_name", lambda rank, world: "n" * 600)
    with ThreadPoolExecutor(2) as pool:
        first, second = [each.result() for each in [pool.submit(rendezvous, rank, 2, 60.0) for rank in (0, 1)]]
    assert 400 < len(first.peers[0].name) < 512
    for met in (first, second):
        met.peers[0].connection.close()
    del store


def test_a_greeting_byte_by_byte_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its bytes comes in time, and the whole does not."""
    moments = count(0.0, 0.3)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"hello\n")
        assert _line(ours, 1.0) is None, "it waited for the whole of it"
