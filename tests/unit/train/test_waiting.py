"""Whether the cores are free is measured before torch is loaded, and decides how threads wait; never a result."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.train.conftest import PHASES
from tests.unit.train.test_run import Notes, same, weights

from bertwright.core.artifact import Artifact
from bertwright.core.errors import Interrupted
from bertwright.train.config import TrainConfig
from bertwright.train.machine import thread_policy
from bertwright.train.machine.thread_policy import POLICY, free_cores, set_thread_policy, threads_for, threads_message
from bertwright.train.monitor import session_record

pytestmark = pytest.mark.heavy

Train = Callable[..., Artifact]
ROOT = Path(__file__).parents[3]


def config(**settings: Any) -> TrainConfig:
    return TrainConfig.model_validate({"phases": PHASES, **settings})


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`machine(cores, free)`: what is measured; the environment says nothing, and torch is not loaded."""
    for name in ("OMP_NUM_THREADS", *thread_policy.GIVEN):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(POLICY, "")  # so that what is set is taken back
    monkeypatch.delenv(POLICY)
    monkeypatch.setattr(thread_policy.sys, "modules", {k: v for k, v in sys.modules.items() if k != "torch"})

    def has(cores: int, free: float) -> None:
        monkeypatch.setattr(thread_policy, "_cores", lambda: cores)
        monkeypatch.setattr(thread_policy, "free_cores", lambda: free)

    return has


@pytest.mark.parametrize(("free", "policy"), [(2.0, None), (1.85, None), (1.3, "PASSIVE"), (0.5, "PASSIVE")])
def test_threads_sleep_where_the_cores_are_not_free(
    machine: Callable[..., None], free: float, policy: str | None
) -> None:
    machine(2, free)
    notes = Notes()
    set_thread_policy(config(), notes)  # type: ignore[arg-type]
    assert os.environ.get(POLICY) == policy
    assert notes.lines == (
        [
            f"train: other processes use these cores ({free:.1f} of 2 are free), so threads sleep while they wait "
            "(OMP_WAIT_POLICY=PASSIVE)"
        ]
        if policy
        else []
    )


@pytest.mark.parametrize("given", [{POLICY: "ACTIVE"}, {"KMP_BLOCKTIME": "1"}, {"OMP_NUM_THREADS": "1"}])
def test_what_the_environment_says_is_left_alone(
    machine: Callable[..., None], given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(2, 0.1)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    set_thread_policy(config(), Notes())  # type: ignore[arg-type]
    assert os.environ.get(POLICY) == given.get(POLICY)


@pytest.mark.parametrize("settings", [{"threads": 1}, {"device": "cuda"}])
def test_where_no_threads_wait_nothing_is_measured(machine: Callable[..., None], settings: Any) -> None:
    machine(2, 0.1)
    set_thread_policy(config(**settings), Notes())  # type: ignore[arg-type]
    assert POLICY not in os.environ


def test_once_torch_is_loaded_it_is_too_late(machine: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    machine(2, 0.1)
    monkeypatch.setattr(thread_policy.sys, "modules", sys.modules | {"torch": torch})
    set_thread_policy(config(), Notes())  # type: ignore[arg-type]
    assert POLICY not in os.environ


def test_a_busy_core_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """One core, which this test shares between the measurement and a process that does nothing but count."""
    core = min(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    monkeypatch.setattr(thread_policy, "_cores", lambda: 1)
    os.sched_setaffinity(0, {core})
    try:
        with subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"]) as other:
            assert 0 < free_cores.__wrapped__() < thread_policy.FREE
            other.kill()
    finally:
        os.sched_setaffinity(0, before)


def test_a_run_that_goes_on_keeps_its_threads(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (thread_policy, session_record):
        monkeypatch.setattr(module, "free_cores", lambda: 1.6)
    before = torch.get_num_threads()
    undisturbed = train("undisturbed", threads="auto")
    with pytest.raises(Interrupted):
        train("run", threads="auto", log=Notes(kill_at_row=2))
    monkeypatch.setattr(thread_policy, "free_cores", lambda: 1.0)
    notes = Notes()
    done = train("run", threads="auto", log=notes)
    first, last = done.counts["sessions"]
    assert (first["threads"], first["free_cores"]) == (2, 1.6) and torch.get_num_threads() == before
    assert last["threads"] == 2 and "free_cores" not in last, "nothing was measured"
    assert "train: 2 threads, as at the last start" in notes.lines
    assert not [line for line in notes_of(train, threads=1) if "thread" in line]
    assert same(weights(done), weights(undisturbed))
    assert threads_for(config(threads=3), ()) == 3 and threads_for(config(), ({"threads": 2},)) == 0
    assert threads_for(config(threads="auto"), ()) == 1


def notes_of(train: Train, **settings: Any) -> list[str]:
    notes = Notes()
    train(log=notes, **settings)
    return notes.lines


@pytest.mark.parametrize(
    ("free", "given", "says"),
    [
        (1.9, {}, "1.9 of 2 cores are free: 2 threads, which spin while they wait"),
        (1.6, {POLICY: "PASSIVE"}, "1.6 of 2 cores are free: 2 threads, which sleep while they wait"),
        (1.9, {POLICY: "active"}, "1.9 of 2 cores are free: 2 threads, which spin while they wait"),
        (1.9, {"GOMP_SPINCOUNT": "0"}, "1.9 of 2 cores are free: 2 threads"),
        (1.2, {POLICY: "PASSIVE"}, "1.2 of 2 cores are free: 1 thread"),
    ],
)
def test_what_was_measured_is_said_with_the_number_that_it_gives(
    machine: Callable[..., None], free: float, given: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(2, free)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert threads_message(threads_for(config(threads="auto"), ()), ()) == says


def test_the_policy_is_set_before_torch_is_loaded() -> None:
    """As a run starts: the stage's row settles it, then the stage is imported."""
    program = (
        "import os, sys\n"
        "from bertwright.train.machine import thread_policy\n"
        "thread_policy._cores, thread_policy.free_cores = lambda: 2, lambda: 0.4\n"
        "from bertwright.core.log import SILENT\n"
        "from bertwright.pipeline import stage\n"
        "from bertwright.train.config import TrainConfig\n"
        "from types import SimpleNamespace\n"
        "phases = [{'length': 16, 'batch': 8, 'learning_rate': 1e-2, 'steps': 1}]\n"
        "recipe = SimpleNamespace(train=TrainConfig.model_validate({'phases': phases}), corpus=True)\n"
        "try:\n"
        "    stage.STAGES['train'].prepare(SimpleNamespace(recipe=recipe, log=SILENT))\n"
        "except AttributeError:\n"  # this recipe has nothing to train on, but torch is loaded by then
        "    print('torch' in sys.modules, os.environ['OMP_WAIT_POLICY'])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    for name in ("OMP_NUM_THREADS", *thread_policy.GIVEN):
        environment.pop(name, None)
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout == "True PASSIVE\n"
