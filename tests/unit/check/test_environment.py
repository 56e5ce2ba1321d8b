"""What is said of a machine."""

import pytest

from bertwright.check import environment
from bertwright.check.environment import check_machine
from bertwright.check.machine import TorchBuild, gpu_memory, memory_size
from bertwright.check.verdict import Verdict


def verdict(about: str) -> Verdict:
    return next(verdict for verdict in check_machine() if verdict.about == about)


def test_every_part_of_this_machine_is_graded() -> None:
    about = [verdict.about for verdict in check_machine()]
    assert about[:7] == ["processors", "memory", "disk", "python", "torch", "gpu", "waiting threads"]
    assert verdict("torch").level == "ok" and "+" in verdict("torch").text
    assert len(gpu_memory()) == 0 or verdict("gpu").text
    assert memory_size() > 10**8


@pytest.mark.parametrize(("gb", "level"), [(0.5, "error"), (2, "warning"), (16, "ok")])
def test_memory(gb: float, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "memory_size", lambda: int(gb * 1e9))
    assert verdict("memory").level == level


@pytest.mark.parametrize(
    ("version", "says"), [("", "it is not installed."), ("2.3.1+cu121", "2.3.1+cu121 is too old.")]
)
def test_a_torch_that_will_not_do(version: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "torch_build", lambda: TorchBuild(version, False))
    found = verdict("torch")
    assert (found.level, found.text) == ("error", says) and "pip install" in found.remedy


@pytest.mark.parametrize(
    ("policy", "load", "level", "says"),
    [
        ("", 0.1, "ok", "spin (OMP_WAIT_POLICY is not set)"),
        ("", 99.0, "warning", "spin, while other processes use these cores (load 99.0"),
        ("passive", 99.0, "ok", "sleep (OMP_WAIT_POLICY=PASSIVE)"),
    ],
)
def test_waiting_threads(policy: str, load: float, level: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", policy)
    monkeypatch.setattr("os.getloadavg", lambda: (load, load, load))
    found = verdict("waiting threads")
    assert found.level == level and found.text.startswith(says)
    assert ("train.threads=1" in found.remedy) == (level == "warning")
