"""What one rank learns of another over their connection, and how ranks meet."""

import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from tests.processes import PATIENCE
from tests.rows import each_row

from bertwright.core.errors import DataError, RankError, RecipeError
from bertwright.train.config import TrainConfig
from bertwright.train.ranks import rendezvous, watchdog
from bertwright.train.ranks.rendezvous import RankConnection
from bertwright.train.ranks.watchdog import Watchdog, failure


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """These ranks are one process, which must not be ended for one of them."""
    monkeypatch.setattr(watchdog, "IN_ORDER", float("inf"))


IN_ORDER = watchdog.IN_ORDER
Pair = tuple[Watchdog, Watchdog, list[RankConnection]]


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Two ranks and the connection between them; both time-outs are the parameter, in seconds."""
    peers = [RankConnection(name, end) for name, end in zip(("rank 1", "rank 0"), socket.socketpair(), strict=True)]
    for peer in peers:
        peer.connection.setblocking(False)
    seconds = getattr(request, "param", 60)
    first, second = (
        Watchdog(f"rank {rank}", [peer], seconds, seconds, sees_all=rank == 0) for rank, peer in enumerate(peers)
    )
    yield first, second, peers
    first.close()
    second.close()


@pytest.mark.parametrize("pair", [1], indirect=True)
def test_ranks_that_live_miss_nobody_however_long_they_work(pair: Pair) -> None:
    first, second, _ = pair
    first.sums = second.sums = 7
    time.sleep(3)  # what a long scoring is to the thread of the watchdog
    assert first.lost() is None and second.lost() is None


@pytest.mark.parametrize("pair", [1], indirect=True)
@pytest.mark.parametrize("behind", [0, 1])
def test_a_rank_that_lives_but_does_not_come_to_a_sum_hangs(pair: Pair, behind: int) -> None:
    ranks = pair[:2]
    ranks[1 - behind].sums, ranks[behind].sums = 8, 7
    said = (
        f"rank {behind} runs but hangs: the others have waited for 1 s (train.hang_timeout). Check whether its disk, "
    )
    assert all(str(rank.lost(wait=PATIENCE)).startswith(said) for rank in ranks)


@pytest.mark.parametrize("pair", [1], indirect=True)
@pytest.mark.parametrize("behind", [0, 1])
def test_a_busy_rank_does_not_count_as_hanging(pair: Pair, behind: int) -> None:
    ranks = pair[:2]
    with ranks[behind].doing("busy"):
        ranks[1 - behind].sums, ranks[behind].sums = 8, 7
        time.sleep(2.5)
        assert not any(rank.lost() for rank in ranks)
    assert all(f"rank {behind} runs but hangs" in str(rank.lost(wait=PATIENCE)) for rank in ranks)


@pytest.mark.parametrize("pair", [1], indirect=True)
def test_a_device_hangs_if_no_rank_progresses(pair: Pair) -> None:
    """As long as one rank does something else, or begins a forward pass, all may be as it should."""
    first, second, _ = pair
    first.sums = second.sums = 7
    with second.doing("device"):
        time.sleep(2)
        assert first.lost() is None and second.lost() is None
        with first.doing("device"):
            for _ in range(4):
                second.passes += 1
                time.sleep(0.5)
            assert first.lost() is None and second.lost() is None
            said = "a GPU, or a link between two of them, hangs: no rank has got on with its GPU for 1 s (train.hang_ti"
            assert all(str(rank.lost(wait=PATIENCE)).startswith(said) for rank in (first, second))


def test_only_a_rank_that_hears_all_others_judges_their_devices() -> None:
    ends = socket.socketpair()
    ends[0].setblocking(False)
    watching = Watchdog("rank 1", [RankConnection("rank 0", ends[0], state="device")], 60, 0.2, sees_all=False)
    with watching.doing("device"):
        assert watching.lost(wait=1) is None
    watching.close()
    ends[1].close()


@each_row("line", ["alive", "alive 1", "alive 1 2 3", "alive 7alive 7 8", "7", "asleep 7 8", ""])
def test_a_line_that_is_no_heartbeat_says_nothing(line: str) -> None:
    with socket.socket() as connection:
        peer = RankConnection("rank 1", connection)
        peer.heartbeat("device 5 6")
        peer.heartbeat(line)
    assert (peer.state, peer.sums, peer.passes) == ("device", 5, 6)


@pytest.mark.parametrize("pair", [1], indirect=True)
def test_a_farewell_is_no_loss_but_who_still_waits_is_told(pair: Pair) -> None:
    first, second, _ = pair
    second.close()
    assert first.lost(wait=2.5) is None
    with pytest.raises(RankError, match="rank 1 has ended before the others"):
        first.check()


def test_a_connection_that_ends_is_a_loss(pair: Pair) -> None:
    first, _, peers = pair
    peers[1].connection.shutdown(socket.SHUT_RDWR)
    error = first.lost(wait=PATIENCE)
    assert error is not None and error.exit_code == 6
    assert str(error).startswith("rank 1 is lost: its connection ended, so it was killed or its machine went down. Run")


def test_by_default_silence_is_a_loss_within_ten_seconds() -> None:
    """Whatever a rank does: its silence, the interval of heartbeats, and the time in which a rank has to exit."""
    assert TrainConfig.model_fields["timeout"].default + 2 * watchdog.BETWEEN + IN_ORDER < 10


def test_silence_is_a_loss_after_the_time_out() -> None:
    ends = socket.socketpair()
    ends[0].setblocking(False)
    watching = Watchdog("rank 0", [RankConnection("rank 1", ends[0])], 1, 0, sees_all=True)
    error = watching.lost(wait=PATIENCE)
    watching.close()
    ends[1].close()
    assert str(error).startswith("rank 1 is lost: it sent nothing for 1 s (train.timeout), so it is stopped, ")


def test_a_rank_that_fails_says_so(pair: Pair) -> None:
    first, second, _ = pair
    second.close(failure("rank 1", ValueError("a fault\nof two lines")))
    assert str(first.lost(wait=PATIENCE)).startswith("rank 1 has failed and prints the reason itself.")


@each_row("said", ["Resource temporarily unavailable", "can't start new thread", "std::bad_alloc"])
def test_a_rank_without_memory_or_threads_says_so(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the others; and where it cannot connect for it, instead of advice on the port."""
    lack = "this process has run out of memory or of threads"
    assert failure("rank 1", RuntimeError(said)).startswith(f"rank 1 has failed: {lack}")

    def store(*arguments: object, **settings: object) -> None:
        raise RuntimeError(said)

    monkeypatch.setattr(rendezvous, "TCPStore", store)
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "29500")
    for rank in range(2):
        with pytest.raises(DataError, match=lack):
            rendezvous.rendezvous(rank, 2, 5.0)


def test_a_rank_passes_on_what_it_knows(pair: Pair) -> None:
    first, second, _ = pair
    second.close(failure("rank 1", RankError("rank 2 is lost: its connection ended")))
    assert str(first.lost(wait=PATIENCE)) == "rank 2 is lost: its connection ended"


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", free_port())


def test_stale_addresses_in_the_store_are_ignored(launched: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As torchrun's does after a restart; and other programs that try the port are sent away."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    store = TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), is_master=True, wait_for_workers=False)
    store.set("the first rank listens at", f"{free_port()} 0123 rank 0 of 2 (process 1 on gone)")
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    found: dict[int, rendezvous.Rendezvous] = {}

    def arrive(rank: int) -> None:
        found[rank] = rendezvous.rendezvous(rank, 2, PATIENCE)

    second = threading.Thread(target=arrive, args=(1,))
    second.start()
    time.sleep(0.5)  # it has tried the address of the dead one by now
    first = threading.Thread(target=arrive, args=(0,))
    first.start()
    while "gone" in (address := store.get("the first rank listens at").decode()):
        time.sleep(0.01)
    with socket.create_connection(("127.0.0.1", int(address.split()[0]))) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
    first.join()
    second.join()
    assert [found[0].peers[0].name[:11], found[1].peers[0].name[:11]] == ["rank 1 of 2", "rank 0 of 2"]
    found[0].store.set("key", "value")
    assert found[1].store.get("key") == b"value"
    for rank in range(2):
        found[rank].peers[0].connection.close()


@each_row("port", ["", "no number"])
def test_without_a_place_to_meet_the_launcher_is_named(port: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    if port:
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", port)
    with pytest.raises(
        RecipeError, match="MASTER_ADDR and MASTER_PORT do not give the address where they connect.*torchrun"
    ):
        rendezvous.rendezvous(0, 2, 1)


def test_a_port_that_is_taken_is_named(launched: None) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", int(os.environ["MASTER_PORT"])))
        taken.listen()
        with pytest.raises(RankError, match=r"rank 0 cannot connect to the others at 127\.0\.0\.1:\d+ .* port is free"):
            rendezvous.rendezvous(0, 2, 1)
