"""The process pool and whole-or-absent files."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.processes import PATIENCE

from bertwright.core.errors import DataError
from bertwright.core.files import read_json, write_atomic, write_json
from bertwright.core.tasks import Pool

pytestmark = pytest.mark.heavy


def die_at_three(n: int) -> int:
    if n == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return n


def own_process(_: int) -> int:
    return os.getpid()


def test_workers_are_reused_and_one_task_needs_none() -> None:
    with Pool(1) as pool:
        assert pool.map(own_process, range(3), "corpus") == [os.getpid()] * 3
    with Pool(2) as pool:
        assert pool.map(own_process, range(1), "corpus") == [os.getpid()] and not pool.map(own_process, [], "corpus")
        lists = [set(pool.map(own_process, range(8), "corpus")) for _ in range(2)]
        assert len(lists[0] | lists[1]) <= 2 and os.getpid() not in lists[0]
    _until(lambda: not any(_alive(pid) for pid in lists[0]))


def test_a_killed_worker_is_an_error_with_a_remedy() -> None:
    says = r"examples: a worker process was killed.*examples.workers=1"
    with Pool(2) as pool, pytest.raises(DataError, match=says):
        pool.map(die_at_three, range(6), "examples")


def test_workers_end_with_a_killed_parent(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(
        "import os, time\nfrom pathlib import Path\n"
        "def work(n):\n    Path(__file__).with_name(f'{os.getpid()}.pid').touch()\n    time.sleep(60)\n"
    )
    script = tmp_path / "parent.py"
    script.write_text(
        "from bertwright.core.tasks import Pool\nfrom work import work\n"
        "with Pool(2) as pool:\n    pool.map(work, range(2), 'corpus')\n"
    )
    parent = subprocess.Popen([sys.executable, str(script)])
    try:
        _until(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
    finally:
        parent.kill()
        parent.wait()
    workers = [int(p.stem) for p in tmp_path.glob("*.pid")]
    _until(lambda: not any(_alive(pid) for pid in workers))


def _until(condition: object, seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except OSError:
        return False


def test_write_atomic_replaces_or_leaves(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_atomic(path, b"one")
    write_atomic(path, b"two")
    assert path.read_bytes() == b"two" and list(tmp_path.iterdir()) == [path]
    with pytest.raises(DataError, match="cannot write"):
        write_atomic(tmp_path / "none" / "a", b"")


def test_json_keeps_hungarian_letters_readable(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"szó": "őrült"})
    assert "őrült" in (tmp_path / "a.json").read_text(encoding="utf-8")
    assert read_json(tmp_path / "a.json") == {"szó": "őrült"}
