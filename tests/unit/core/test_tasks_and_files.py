"""The process pool and whole-or-absent files."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bertwright.core.errors import DataError
from bertwright.core.files import read_json, write_atomic, write_json
from bertwright.core.tasks import run_tasks


def square(n: int) -> int:
    return n * n


def fail_at_three(n: int) -> int:
    if n == 3:
        raise DataError("task 3 cannot be read")
    return n


def die_at_three(n: int) -> int:
    if n == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return n


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_task_order(workers: int) -> None:
    seen: list[int] = []
    assert run_tasks(square, range(6), workers, "corpus", seen.append) == [0, 1, 4, 9, 16, 25]
    assert sorted(seen) == [0, 1, 4, 9, 16, 25]


@pytest.mark.parametrize("workers", [1, 2])
def test_the_failure_is_raised_unchanged(workers: int) -> None:
    with pytest.raises(DataError, match="task 3 cannot be read"):
        run_tasks(fail_at_three, range(6), workers, "corpus")


def test_a_killed_worker_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(DataError, match=r"examples: a worker process was killed.*examples.workers=1"):
        run_tasks(die_at_three, range(6), 2, "examples")


def test_workers_end_with_a_killed_parent(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import os, sys, time\nfrom pathlib import Path\nfrom bertwright.core.tasks import run_tasks\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "def work(n):\n    (folder / f'{os.getpid()}.pid').touch()\n    time.sleep(60)\n"
        "if __name__ == '__main__':\n    run_tasks(work, range(2), 2, 'corpus')\n"
    )
    parent = subprocess.Popen([sys.executable, str(script)])
    try:
        _until(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
    finally:
        parent.kill()
        parent.wait()
    workers = [int(p.stem) for p in tmp_path.glob("*.pid")]
    _until(lambda: not any(_alive(pid) for pid in workers))


def _until(condition: object, seconds: float = 30) -> None:
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
