import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from tests.processes import PATIENCE
from tests.rows import each_row
from tests.server import Server, serving

from bertwright.core.errors import DataError, MissingExtraError
from bertwright.core.log import SILENT
from bertwright.core.remote import fetch
from bertwright.core.servers import ask, file_system

DATA = bytes(range(256)) * 20_000


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr("bertwright.core.remote._PAUSES", (0.0, 0.0))
    with serving() as server:
        server.files["a/wiki.bz2"] = DATA
        yield server


class Heard:
    """A log that remembers what it was told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.done: list[tuple[float, float]] = []

    def say(self, message: str) -> None:
        self.said.append(message)

    def progress(self, stage: str, done: float, total: float, unit: str, **_: Any) -> None:
        self.done.append((done, total))

    def record(self, row: dict[str, Any]) -> None:
        raise AssertionError(row)


def begun(folder: Path, size: int, data: bytes = DATA, tag: str = '"1"', url: str = "") -> Path:
    """What a killed process leaves: `size` bytes of `data`, and the note of their version."""
    (folder / ".wiki.bz2.part").write_bytes(data[:size])
    (folder / ".wiki.bz2.part.json").write_text(json.dumps({"url": url, "size": len(data), "tag": tag}))
    return folder / "wiki.bz2"


def test_a_file_is_fetched_once_and_nothing_else_is_left(tmp_path: Path, server: Server) -> None:
    log = Heard()
    for _ in range(2):
        path = fetch(f"{server.address}/a/wiki.bz2", tmp_path / "new" / "wiki.bz2", log)
    assert path.read_bytes() == DATA
    assert server.asked == [("a/wiki.bz2", 0)]
    assert [p.name for p in path.parent.iterdir()] == ["wiki.bz2"]
    assert log.done[-1] == (5.12, 5.12) and len(log.said) == 1
    assert all(agent.startswith("bertwright/") for agent in server.agents)


def test_a_transfer_that_breaks_goes_on_where_it_stopped(tmp_path: Path, server: Server) -> None:
    server.breaks = [2_000_000, 1_500_000, 0, 10]
    assert fetch(f"{server.address}/a/wiki.bz2", tmp_path / "wiki.bz2", SILENT).read_bytes() == DATA
    assert [start for _, start in server.asked] == [0, 2_000_000, 3_500_000, 3_500_000, 3_500_010]


def test_a_server_that_cannot_begin_in_the_middle(tmp_path: Path, server: Server) -> None:
    server.ranges, server.breaks = False, [2_000_000, 100]
    assert fetch(f"{server.address}/a/wiki.bz2", tmp_path / "wiki.bz2", SILENT).read_bytes() == DATA
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("size", "old", "tag", "elsewhere", "asked"),
    [
        (1_000_000, DATA, '"1"', "", [1_000_000]),
        (len(DATA), DATA, '"1"', "", []),
        (1_000_000, DATA[::-1], '"0"', "", [1_000_000, 0]),  # changed, with the same size
        (1_000_000, DATA[::-1] + b"x", '"1"', "", [1_000_000, 0]),  # changed, with the same tag
        (len(DATA) + 5, DATA[::-1] + b"abcdefg", '"1"', "", [len(DATA) + 5, 0]),  # changed, and shorter than what came
        (1_000_000, DATA[::-1], '"1"', "http://other", [0]),
    ],
)
def test_a_partial_download_of_the_same_file_is_continued(
    tmp_path: Path, server: Server, size: int, old: bytes, tag: str, elsewhere: str, asked: list[int]
) -> None:
    url = f"{server.address}/a/wiki.bz2"
    target = begun(tmp_path, size, old, tag, elsewhere or url)
    assert fetch(url, target, SILENT).read_bytes() == DATA
    assert [start for _, start in server.asked] == asked
    assert [path.name for path in tmp_path.iterdir()] == ["wiki.bz2"]


def test_a_part_without_a_note_is_not_trusted(tmp_path: Path, server: Server) -> None:
    (tmp_path / ".wiki.bz2.part").write_bytes(b"unknown")
    assert fetch(f"{server.address}/a/wiki.bz2", tmp_path / "wiki.bz2", SILENT).read_bytes() == DATA


@pytest.mark.parametrize("note", ["", "{", "[]", "3", '{"url": "x"}', '{"url": 1, "size": "x", "tag": null}'])
def test_a_part_with_a_damaged_note_is_not_trusted(tmp_path: Path, server: Server, note: str) -> None:
    path = begun(tmp_path, 1000, url=f"{server.address}/a/wiki.bz2")
    (tmp_path / ".wiki.bz2.part.json").write_text(note)
    assert fetch(f"{server.address}/a/wiki.bz2", path, SILENT).read_bytes() == DATA
    assert [p.name for p in tmp_path.iterdir()] == ["wiki.bz2"]


def test_a_killed_process_is_continued(tmp_path: Path, server: Server) -> None:
    code = "import sys; from pathlib import Path; from bertwright.core import log, remote; "
    code += "remote._PAUSES = (60.0,); remote.fetch(sys.argv[1], Path(sys.argv[2]), log.SILENT)"
    url, part = f"{server.address}/a/wiki.bz2", tmp_path / ".wiki.bz2.part"
    server.breaks = [3_000_000, 0]
    process = subprocess.Popen([sys.executable, "-c", code, url, str(tmp_path / "wiki.bz2")])
    while not (part.is_file() and part.stat().st_size == 3_000_000 and len(server.asked) == 2):
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert fetch(url, tmp_path / "wiki.bz2", SILENT).read_bytes() == DATA
    assert server.asked[-1][1] == 3_000_000


def test_two_that_want_the_same_file_wait_for_each_other(tmp_path: Path, server: Server) -> None:
    def work() -> None:
        fetch(f"{server.address}/a/wiki.bz2", tmp_path / "wiki.bz2", SILENT)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.asked) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["wiki.bz2"]


def test_a_waiting_process_continues_a_killed_transfer(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part grows after it was opened here, so this process cannot know its end before it has the lock."""
    url, opened, lock = f"{server.address}/a/wiki.bz2", threading.Event(), fcntl.flock

    def flock(handle: IO[bytes], kind: int) -> None:
        opened.set()
        lock(handle, kind)

    target = begun(tmp_path, 1_000_000, url=url)
    with open(tmp_path / ".wiki.bz2.part", "ab") as killed:
        lock(killed, fcntl.LOCK_EX)
        monkeypatch.setattr("bertwright.core.remote.fcntl.flock", flock)
        waiting = threading.Thread(target=fetch, args=(url, target, SILENT))
        waiting.start()
        assert opened.wait(PATIENCE)
        killed.write(DATA[1_000_000:3_000_000])
    waiting.join()
    assert target.read_bytes() == DATA
    assert [start for _, start in server.asked] == [3_000_000]


def test_checksums(tmp_path: Path, server: Server) -> None:
    url, target = f"{server.address}/a/wiki.bz2", tmp_path / "wiki.bz2"
    sums = {name: hashlib.new(name, DATA).hexdigest() for name in ("sha1", "sha256")}
    assert fetch(url, target, SILENT, **sums) == target
    target.write_bytes(b"damaged on disk")
    with pytest.raises(DataError, match="its sha1 is .* moved to .*wiki.bz2.bad; run the same command again"):
        fetch(url, target, SILENT, **sums)
    assert not target.exists() and (tmp_path / "wiki.bz2.bad").read_bytes() == b"damaged on disk"
    server.files["a/wiki.bz2"] = DATA[:-1] + b"x"
    with pytest.raises(DataError, match="its sha256 is"):
        fetch(url, target, SILENT, sha256=sums["sha256"])
    assert not target.exists() and (tmp_path / "wiki.bz2.bad").stat().st_size == len(DATA)
    server.files["a/wiki.bz2"] = DATA
    assert fetch(url, target, SILENT, **sums).read_bytes() == DATA


@pytest.mark.parametrize(("status", "asked"), [(404, 1), (403, 1), (500, 3), (429, 3)])
def test_refusals(tmp_path: Path, server: Server, status: int, asked: int) -> None:
    server.status = status
    with pytest.raises(DataError, match=f"{server.address}/a/wiki.bz2.*{status}.* Check the") as caught:
        fetch(f"{server.address}/a/wiki.bz2?sig=secret", tmp_path / "wiki.bz2", SILENT)
    assert "secret" not in str(caught.value)
    assert len(server.asked) == asked
    assert not (tmp_path / "wiki.bz2").exists()


def test_a_connection_that_stays_broken(tmp_path: Path, server: Server) -> None:
    server.breaks = [1_000_000, 0, 0, 0]
    with pytest.raises(DataError, match="stopped at byte 1,000,000: .* instead of .*run the same command again"):
        fetch(f"{server.address}/a/wiki.bz2", tmp_path / "wiki.bz2", SILENT)
    fetch(f"{server.address}/a/wiki.bz2", tmp_path / "wiki.bz2", SILENT)
    assert server.asked[-1][1] == 1_000_000


def test_no_server_and_no_folder(tmp_path: Path, server: Server) -> None:
    with pytest.raises(DataError, match="stopped at byte 0: .*refused"):
        fetch("http://127.0.0.1:9/x", tmp_path / "x", SILENT)
    with pytest.raises(DataError, match="cannot read http://127.0.0.1:none/x"):
        fetch("http://127.0.0.1:none/x", tmp_path / "x", SILENT)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="cannot write"):
        fetch(f"{server.address}/a/wiki.bz2", tmp_path / "file" / "x", SILENT)


@each_row("url", ["https://me:secret@127.0.0.1/x", "HTTP://secret@127.0.0.1/x", "ftp://me:secret@h/x"])
def test_names_and_passwords_in_addresses_are_refused(url: str) -> None:
    with pytest.raises(DataError, match="cannot read .* a user name or password .*Remove it") as caught:
        ask(url, 0)
    assert "secret" not in str(caught.value)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = pytest.importorskip("fsspec.registry", reason="fsspec is not installed")
    monkeypatch.delitem(registry._registry, "s3", raising=False)  # of another test in this process
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bertwright\[s3\]'"):
        file_system("s3://bucket/key?x")
