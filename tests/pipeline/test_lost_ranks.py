"""If a rank is killed, stopped or cut off, the others end with a message naming it, and a restart resumes."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest
from tests.pipeline.command import ENVIRONMENT, forked
from tests.pipeline.engines import DEEPSPEED, overrides
from tests.processes import PATIENCE, child_of

from bertwright.core.files import sha256
from bertwright.train.graph.packages import missing_compiler

STEPS = ("train.phases.0.steps=4000", "train.checkpoint_every=1000", "train.evaluate_every=1000")
Copy = Callable[[Path], Path]


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def start_two(
    recipe: Path, folder: Path, *overrides: str, address: str = "127.0.0.1", before: tuple[Callable[[], None], ...] = ()
) -> list[ForkServerProcess]:
    """Two ranks that train in `folder`; the output of rank R is in `folder.R`."""
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": address, "MASTER_PORT": free_port()}
    return [
        forked(
            folder.with_suffix(f".{rank}"),
            *("train", recipe, *overrides, "--out", folder),
            environment={**common, "RANK": str(rank)},
            before=before[rank] if before else None,
        )
        for rank in range(2)
    ]


def wait_for_lines(folder: Path, lines: int, ranks: list[ForkServerProcess]) -> None:
    """Return when the metrics have `lines` lines (one per step)."""
    metrics = folder / "train" / "metrics.jsonl"
    while not metrics.is_file() or metrics.read_bytes().count(b"\n") < lines:
        assert all(rank.is_alive() for rank in ranks), [said(folder, rank) for rank in range(2)]
        time.sleep(0.01)


def said(folder: Path, rank: int) -> str:
    return folder.with_suffix(f".{rank}").read_text()


def name_of(rank: int, process: ForkServerProcess) -> str:
    return f"rank {rank} of 2 (process {process.pid} on {socket.gethostname()})"


KILLED, STOPPED = (signal.SIGKILL, "connection ended"), (signal.SIGSTOP, "for 8 s (train.timeout)")


@pytest.mark.parametrize(
    ("lost", "number", "why"),
    [
        (1, *STOPPED),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in ((0, *KILLED), (1, *KILLED), (0, *STOPPED))),
    ],
)
def test_a_killed_or_stopped_rank_is_named(
    lost: int, number: signal.Signals, why: str, small_recipe: Path, small_examples: Copy, tmp_path: Path
) -> None:
    """With default settings. A stopped rank other than rank 0; the other cases are slow."""
    folder = small_examples(tmp_path / "run")
    ranks = start_two(small_recipe, folder, *STEPS)
    wait_for_lines(folder, 3, ranks)
    pid = ranks[lost].pid
    assert pid is not None
    os.kill(pid, number)
    try:
        ranks[1 - lost].join(PATIENCE)
        assert ranks[1 - lost].exitcode == 6, said(folder, 1 - lost)
        error = said(folder, 1 - lost).splitlines()[-1]
        assert error.startswith(f"bertwright: {name_of(lost, ranks[lost])} is lost: ") and why in error
        assert "Run the same command again" in error
        assert "Traceback" not in said(folder, 1 - lost)
    finally:
        ranks[lost].kill()
        ranks[lost].join()


@pytest.mark.parametrize("lost", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_killed_rank_is_noticed_by_its_connection_whatever_the_timeout(
    lost: int, small_recipe: Path, small_examples: Copy, tmp_path: Path
) -> None:
    """A time-out is for ranks that are stopped or cut off; for a dead rank the connection ends. Kills rank 0; killing
    another rank is slow."""
    folder = small_examples(tmp_path / "run")
    ranks = start_two(small_recipe, folder, *STEPS, "train.timeout=6000")
    wait_for_lines(folder, 3, ranks)
    pid = ranks[lost].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    try:
        ranks[1 - lost].join(PATIENCE)
        assert ranks[1 - lost].exitcode == 6, said(folder, 1 - lost)
        assert f"{name_of(lost, ranks[lost])} is lost: its connection ended" in said(folder, 1 - lost)
    finally:
        for rank in ranks:
            rank.kill()
            rank.join()


def slow_scoring() -> None:
    """Make scoring during training take longer than the time-out."""
    from bertwright.train import scoring

    score = scoring.score_sums

    def slow(*arguments: object) -> object:
        time.sleep(5)
        return score(*arguments)  # type: ignore[arg-type]

    scoring.score_sums = slow  # type: ignore[assignment]


def test_a_scoring_longer_than_the_time_out_disturbs_nobody(
    small_recipe: Path, small_examples: Copy, tmp_path: Path
) -> None:
    folder = small_examples(tmp_path / "run")
    short = ("train.phases.0.steps=4", "train.phases.1.steps=1", "train.evaluate_every=9", "train.timeout=2")
    ranks = start_two(small_recipe, folder, *short, before=(slow_scoring, slow_scoring))
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [0, 0], said(folder, 0) + said(folder, 1)


def busy_in_python() -> None:
    """Make the second step compute in Python for longer than the time-out."""
    in_second_step(busy_until)


def busy_in_c() -> None:
    """Make the second step stay in C code, which lets no thread of Python run, for longer than the time-out."""
    in_second_step(lambda: ctypes.PyDLL(None).sleep(5))


def busy_until() -> None:
    until = time.monotonic() + 5
    while time.monotonic() < until:
        pass


def in_second_step(work: Callable[[], object]) -> None:
    from bertwright.train import run as loop

    step, steps = loop.train_step, iter(range(5))

    def train_step(*arguments: object, **settings: object) -> object:
        if next(steps) == 1:
            work()
        return step(*arguments, **settings)  # type: ignore[arg-type]

    loop.train_step = train_step  # type: ignore[assignment]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells whether a process is stopped")
@pytest.mark.parametrize("busy", [busy_in_c, pytest.param(busy_in_python, marks=pytest.mark.slow)])
@pytest.mark.parametrize("rank", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_step_longer_than_the_time_out_disturbs_nobody(
    busy: Callable[[], None], rank: int, small_recipe: Path, small_examples: Copy, tmp_path: Path
) -> None:
    folder = small_examples(tmp_path / "run")
    short = ("train.phases.0.steps=4", "train.phases.1.steps=1", "train.evaluate_every=9", "train.timeout=2")
    before = (busy, int) if rank == 0 else (int, busy)
    ranks = start_two(small_recipe, folder, *short, before=before)
    for each in ranks:
        each.join()
    assert [each.exitcode for each in ranks] == [0, 0], said(folder, 0) + said(folder, 1)


@pytest.mark.slow
@pytest.mark.skipif(bool(missing_compiler("cpu")), reason="torch.compile needs a C++ compiler")
def test_a_compilation_longer_than_the_time_out_disturbs_nobody(
    small_recipe: Path, small_examples: Copy, tmp_path: Path
) -> None:
    folder = small_examples(tmp_path / "run")
    short = ("train.phases.0.steps=2", "train.phases.1.steps=1", "train.evaluate_every=9", "train.graph=compiled")
    before = (partial(compile_anew, tmp_path / "0"), partial(compile_anew, tmp_path / "1"))
    ranks = start_two(small_recipe, folder, *short, "train.timeout=1", before=before)
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [0, 0], said(folder, 0) + said(folder, 1)


def compile_anew(cache: Path) -> None:
    """Let torch find nothing that was compiled before."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(cache)


def slow_mirror(seconds: float = 5) -> None:
    """Make each restore from a mirror and each copy to it take longer than the others wait for a rank."""
    from bertwright.transfer import mirror, restore

    def slow(work: Callable[..., None]) -> Callable[..., None]:
        def later(*arguments: object) -> None:
            time.sleep(seconds)
            work(*arguments)

        return later

    restore.restore = slow(restore.restore)
    mirror.Mirror._copy_checkpoints = slow(mirror.Mirror._copy_checkpoints)  # type: ignore[method-assign]


@pytest.mark.slow
def test_a_slow_mirror_ends_nobody_and_is_waited_for_by_all(
    small_recipe: Path, small_examples: Copy, tmp_path: Path
) -> None:
    """A training is stopped while it copies, its folder is lost, and it is completed from the restored copy."""
    mirror = tmp_path / "mirror"
    rare = ("train.checkpoint_every=1000", "train.evaluate_every=1000")
    keys = ("train.phases.0.steps=400", "train.phases.1.steps=1", *rare, "train.hang_timeout=3")
    ended = []
    for name in ("first", "second"):
        folder = small_examples(tmp_path / name)
        ranks = start_two(small_recipe, folder, *keys, f"train.mirror=file://{mirror}", before=(slow_mirror, os.getpid))
        if name == "first":
            wait_for_lines(folder, 3, ranks)
            for rank in ranks:
                assert rank.pid is not None
                os.kill(rank.pid, signal.SIGTERM)
            ranks[1].join()
            assert list(mirror.glob("checkpoints/*/manifest.json")), "it left before the last copy was made"
        for rank in ranks:
            rank.join()
        ended.append([rank.exitcode for rank in ranks])
    assert ended == [[75, 75], [0, 0]], said(folder, 0) + said(folder, 1)
    assert (mirror / "manifest.json").is_file() and "downloaded from" in said(folder, 0)


@pytest.mark.parametrize("engine", ["ddp", "fsdp", pytest.param("zero", marks=pytest.mark.slow), *DEEPSPEED])
def test_a_rank_whose_disk_does_not_answer_is_named_and_ended(
    engine: str, small_recipe: Path, small_examples: Copy, tmp_path: Path
) -> None:
    """Also where the others wait for it inside a library."""
    folder = small_examples(tmp_path / "run")
    keys = (*STEPS, *overrides(engine), "train.hang_timeout=2")
    ranks = start_two(small_recipe, folder, *keys, before=(os.getpid, deaf_disk))
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [6, 6], said(folder, 0) + said(folder, 1)
    for rank in range(2):
        assert said(folder, rank).splitlines()[-1].startswith(f"bertwright: {name_of(1, ranks[1])} runs but hangs: ")


def deaf_disk() -> None:
    """Make the main thread hang in its fifth step, as a read from a lost network disk does."""
    from bertwright.train import run as loop

    step, steps = loop.train_step, iter(range(5))

    def train_step(*arguments: object, **settings: object) -> object:
        if next(steps) == 4:
            time.sleep(600)
        return step(*arguments, **settings)  # type: ignore[arg-type]

    loop.train_step = train_step  # type: ignore[assignment]


@pytest.mark.slow
def test_gpus_that_hang_end_all_ranks(small_recipe: Path, small_examples: Copy, tmp_path: Path) -> None:
    """All ranks are in the same step, and have begun the same sums: none is behind."""
    folder = small_examples(tmp_path / "run")
    ranks = start_two(small_recipe, folder, *STEPS, "train.hang_timeout=2", before=(deaf_gpu, deaf_gpu))
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [6, 6], said(folder, 0) + said(folder, 1)
    for rank in range(2):
        assert said(folder, rank).splitlines()[-1].startswith("bertwright: a GPU, or a link between two of them, hangs")


def deaf_gpu() -> None:
    """Make the fifth step hang as one on a GPU does."""
    from bertwright.train.ranks.ranks import Ranks

    Ranks.on_device = lambda ranks, device: ranks.watchdog.doing("device")  # type: ignore
    deaf_disk()


@pytest.mark.parametrize("beside", [pytest.param("false", marks=pytest.mark.slow), "true"])
def test_the_error_of_one_rank_ends_the_others(
    beside: str, small_recipe: Path, small_examples: Copy, tmp_path: Path
) -> None:
    """For a checkpoint written by a thread; synchronous checkpoints are slow."""
    folder = small_examples(tmp_path / "run")
    keys = (STEPS[0], "train.checkpoint_every=5", f"train.save_async={beside}")
    ranks = start_two(small_recipe, folder, *keys, before=(full_disk, full_disk))
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [3, 6], said(folder, 0) + said(folder, 1)
    assert "cannot write" in said(folder, 0).splitlines()[-1]
    assert f"{name_of(0, ranks[0])} has failed and prints the reason itself" in said(folder, 1).splitlines()[-1]


def full_disk() -> None:
    from bertwright.core.files import cannot_write
    from bertwright.train.checkpoints import tensor_files

    def save_file(tensors: object, path: Path) -> None:
        raise cannot_write(path, OSError(28, "No space left on device"))

    tensor_files.save_file = save_file  # type: ignore[assignment]


NAMESPACES = (f"bertwright-{os.getpid()}-a", f"bertwright-{os.getpid()}-b")


@pytest.fixture
def link() -> Iterator[None]:
    """Two network namespaces with a cable between them, 10.9.8.1 and 10.9.8.2."""
    try:
        for namespace in NAMESPACES:
            made = ip(f"netns add {namespace}")
            if made.returncode:
                pytest.skip(f"network namespaces need root and iproute2: {made.stderr.strip()}")
        first, second = NAMESPACES
        assert not ip(f"link add cable netns {first} type veth peer cable netns {second}").returncode
        for number, namespace in enumerate(NAMESPACES, 1):
            for words in (f"addr add 10.9.8.{number}/24 dev cable", "link set cable up", "link set lo up"):
                assert not ip(f"-n {namespace} {words}").returncode
        yield
    finally:
        for namespace in NAMESPACES:
            ip(f"netns del {namespace}")


def ip(words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["ip", *words.split()], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        return subprocess.CompletedProcess(words, 1, "", str(error))


def enter(namespace: str) -> None:
    """Move this process into a network namespace."""
    with open(f"/run/netns/{namespace}") as handle:
        assert ctypes.CDLL(None, use_errno=True).setns(handle.fileno(), 0) == 0
    os.environ["GLOO_SOCKET_IFNAME"] = "cable"


@pytest.mark.parametrize(
    "engine", ["fsdp", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ddp", "zero")), *DEEPSPEED]
)
def test_a_cut_link_is_noticed_on_both_ends(
    engine: str, link: None, small_recipe: Path, small_examples: Copy, tmp_path: Path
) -> None:
    """With the engine whose reductions are the least our own; the others are slow."""
    folder = small_examples(tmp_path / "run")
    inside = tuple(partial(enter, namespace) for namespace in NAMESPACES)
    keys = (*STEPS, *overrides(engine), "train.timeout=2")
    ranks = start_two(small_recipe, folder, *keys, address="10.9.8.1", before=inside)
    wait_for_lines(folder, 3, ranks)
    assert not ip(f"-n {NAMESPACES[0]} link set cable down").returncode
    for rank in ranks:
        rank.join(PATIENCE)  # gloo and TCP by themselves would wait for longer
    assert [rank.exitcode for rank in ranks] == [6, 6]
    for rank, other in ((0, 1), (1, 0)):
        error = said(folder, rank).splitlines()[-1]
        assert f"{name_of(other, ranks[other])} is lost: it sent nothing for 2 s" in error, error


@pytest.mark.slow
def test_torchrun_starts_a_killed_rank_again_and_the_end_is_the_same_to_the_bit(
    small_recipe: Path, small_examples: Copy, tmp_path: Path
) -> None:
    overrides = ("train.phases.0.steps=150", "train.checkpoint_every=20", "train.evaluate_every=100")
    undisturbed = small_examples(tmp_path / "undisturbed")
    ranks = start_two(small_recipe, undisturbed, *overrides)

    folder = small_examples(tmp_path / "run")
    launch = f"-m torch.distributed.run --nproc-per-node 2 --master-port {free_port()} --max-restarts 1".split()
    command = [sys.executable, *launch, "-m", "bertwright.cli", "train", small_recipe, *overrides, "--out", folder]
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONPATH"}
    with open(tmp_path / "log", "w") as log:
        torchrun = subprocess.Popen([str(word) for word in command], env=environment, stdout=log, stderr=log)
    metrics = folder / "train" / "metrics.jsonl"
    while not metrics.is_file() or metrics.read_bytes().count(b"\n") < 50:
        assert torchrun.poll() is None, (tmp_path / "log").read_text()
        time.sleep(0.01)
    os.kill(child_of(torchrun.pid, "RANK=1"), signal.SIGKILL)
    assert torchrun.wait() == 0, (tmp_path / "log").read_text()
    told = (tmp_path / "log").read_text()
    assert "bertwright: rank 1 of 2" in told and "is lost: its connection ended" in told, told
    assert "resuming from step-" in told and "Traceback" not in told, told

    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [0, 0], said(undisturbed, 0)
    model = Path("train") / "model" / "model.safetensors"
    assert sha256(folder / model) == sha256(undisturbed / model)
