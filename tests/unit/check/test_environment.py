"""What is said of a machine."""

import pytest
from tests.rows import each_row

from bertwright.check.machine import environment
from bertwright.check.machine.environment import check_machine
from bertwright.check.verdict import Verdict
from bertwright.core.errors import MissingExtraError
from bertwright.core.resources import memory_size
from bertwright.estimate.machine_facts import TorchBuild, gpu_memory


def verdict(about: str) -> Verdict:
    return next(verdict for verdict in check_machine() if verdict.about == about)


def lacking(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    monkeypatch.setattr(environment, "find_spec", lambda name: None if name in packages else object())


def test_every_part_of_this_machine_is_graded() -> None:
    about = [verdict.about for verdict in check_machine()]
    assert about[:7] == ["processors", "memory", "disk", "python", "torch", "gpu", "waiting threads"]
    assert verdict("torch").level == "ok" and "+" in verdict("torch").text
    assert len(gpu_memory()) == 0 or verdict("gpu").text
    assert memory_size() > 10**8


@each_row(("gb", "level"), [(0.5, "error"), (2, "warning"), (16, "ok")])
def test_memory(gb: float, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "memory_size", lambda: int(gb * 1e9))
    assert verdict("memory").level == level


@each_row(("version", "says"), [("", "it is not installed."), ("2.3.1+cu121", "2.3.1+cu121 is too old.")])
def test_a_torch_that_will_not_do(version: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "torch_build", lambda: TorchBuild(version, False))
    found = verdict("torch")
    assert (found.level, found.text) == ("error", says) and "pip install" in found.remedy


@each_row(
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


def test_one_processor_and_a_full_disk_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "default_workers", lambda: 1)
    monkeypatch.setattr(environment, "disk_free", lambda folder: int(1.9e9))
    assert verdict("processors").level == "warning" and "cannot use a second worker" in verdict("processors").text
    assert verdict("disk").level == "warning" and verdict("disk").text == "1.9 GB are free."
    monkeypatch.setattr("platform.system", lambda: "Windows")
    assert verdict("python").level == "warning" and "WSL" in verdict("python").remedy


@each_row(
    ("accelerated", "gpus", "device_file", "level", "says"),
    [
        (True, ("H100, 80 GB",), True, "ok", "H100, 80 GB"),
        (True, (), True, "warning", "torch finds none."),
        (False, (), True, "warning", "there is a GPU, but this torch is a build for the CPU."),
        (False, (), False, "ok", "none: training runs on the CPU"),
    ],
)
def test_the_verdict_on_gpus_and_on_torchs_build(
    accelerated: bool,
    gpus: tuple[str, ...],
    device_file: bool,
    level: str,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(environment, "torch_build", lambda: TorchBuild("2.13.0", accelerated))
    monkeypatch.setattr("bertwright.model.device.visible_gpus", lambda: list(gpus))
    monkeypatch.setattr("os.path.exists", lambda path: device_file and path == "/dev/nvidia0")
    assert (verdict("gpu").level, verdict("gpu").text) == (level, says)


def test_a_torch_that_cannot_be_loaded_is_an_error_and_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> list[str]:
        raise OSError("libcudart.so.12: cannot open shared object file")

    monkeypatch.setattr("bertwright.model.device.visible_gpus", broken)
    assert verdict("torch").level == "error" and "libcudart.so.12" in verdict("torch").text
    assert verdict("torch").kind is MissingExtraError
    assert "gpu" not in [verdict.about for verdict in check_machine()], "nothing can be said of it"


@each_row(("version", "level"), [("2.10.1", "error"), ("2.11.0a0+git1", "ok"), ("3.0", "ok")])
def test_versions_are_compared_as_numbers(version: str, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "torch_build", lambda: TorchBuild(version, False))
    assert verdict("torch").level == level


def test_each_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking(monkeypatch, "pyarrow")
    assert verdict("pyarrow").level == "warning" and "pip install 'bertwright[formats]'" in verdict("pyarrow").remedy
    assert verdict("transformers").level == verdict("s3fs").level == "ok"


def test_a_torch_of_onnx_runtimes_environment_is_old_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "torch_build", lambda: TorchBuild("2.3.1+cpu", False))
    monkeypatch.setattr("bertwright.train.graph.packages.missing_ortmodule", lambda: "")
    assert (verdict("torch").level, verdict("torch").text) == ("ok", "2.3.1+cpu, without GPUs")
