"""What a machine has, told without torch: limits of containers, drivers that fail, folders that are not there yet."""

import ctypes
import os
import resource
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.rows import each_row

from bertwright.core import resources
from bertwright.core.resources import default_workers, memory_bounds, memory_size, processor_bounds
from bertwright.estimate import machine_facts as machine
from bertwright.estimate.machine_facts import TorchBuild, disk_free, gpu_capability, gpu_memory, torch_build


@pytest.fixture
def limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`limits(newer="1000", older="2000", address_space=500)`: what the root of the groups and the process say."""
    monkeypatch.setattr(resources, "_ROOT", tmp_path / "groups")
    monkeypatch.setattr(resources, "_OWN", tmp_path / "own")
    (tmp_path / "own").write_text("0::/\n4:memory:/\n")

    def say(newer: str = "", older: str = "", address_space: int = resource.RLIM_INFINITY) -> None:
        said(tmp_path, "memory.max", newer)
        said(tmp_path, "memory/memory.limit_in_bytes", older)
        monkeypatch.setattr(resource, "getrlimit", lambda which: (address_space, address_space))

    return say


def said(folder: Path, name: str, text: str) -> None:
    """Write a file of a group."""
    path = folder / "groups" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("own", "files", "size", "processors"),
    [
        pytest.param(
            "0::/system.slice/job_7/step_0\n",
            {
                "system.slice/memory.max": "max",
                "system.slice/job_7/memory.max": "2000000\n",
                "system.slice/job_7/step_0/memory.max": "max",
                "system.slice/job_7/step_0/cpu.max": "150000 100000\n",
                "cpu.max": "max 100000",
            },
            *(2_000_000, 2),
            id="a job of Slurm, version 2",
        ),
        pytest.param(
            "9:memory:/slurm/job_7\n3:cpu,cpuacct:/slurm/job_7\n1:name=systemd:/other\n",
            {
                "memory/slurm/job_7/memory.limit_in_bytes": "3000000",
                "memory/memory.limit_in_bytes": "9223372036854771712",
                "cpu/slurm/job_7/cpu.cfs_quota_us": "50000",
                "cpu/slurm/job_7/cpu.cfs_period_us": "100000",
                "cpu/slurm/cpu.cfs_quota_us": "-1",
                "cpu/slurm/cpu.cfs_period_us": "100000",
            },
            *(3_000_000, 1),
            id="version 1",
        ),
    ],
)
def test_the_bounds_of_the_groups_around_a_process_count(
    own: str, files: dict[str, str], size: int, processors: int, limits: Callable[..., None], tmp_path: Path
) -> None:
    limits()
    (tmp_path / "own").write_text(own)
    for name, text in files.items():
        said(tmp_path, name, text)
    assert memory_size() == size
    assert processor_bounds() == [processors] and default_workers() == min(processors, len(os.sched_getaffinity(0)))


def test_where_there_are_no_groups_nothing_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_OWN", tmp_path / "absent")
    assert memory_bounds() == processor_bounds() == []


def test_the_smallest_limit_on_memory_counts(limits: Callable[..., None]) -> None:
    limits()
    whole = memory_size()
    assert whole == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits("max\n", "9223372036854771712\n")
    assert memory_size() == whole, "a container without a limit writes a word, or a number beyond any machine"
    limits("2000000\n", "1000000\n")
    assert memory_size() == 1_000_000
    limits("2000000\n", "1000000\n", address_space=500_000)
    assert memory_size() == 500_000


def test_free_space_of_a_missing_folder_is_its_parents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage(NamedTuple):
        free: int

    asked: list[Path] = []

    def usage(path: Path) -> Usage:
        asked.append(path)
        return Usage(7)

    monkeypatch.setattr("shutil.disk_usage", usage)
    assert disk_free(tmp_path / "a" / "b") == disk_free(tmp_path) == 7
    monkeypatch.chdir(tmp_path)
    disk_free(Path("runs/hu"))
    assert [path.resolve() for path in asked] == [tmp_path.resolve()] * 3


@each_row(
    ("text", "expected"),
    [
        ("__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\nhip: Optional[str] = None\n", ("2.13.0+cpu", False)),
        (
            "__version__ = '2.13.0+cu128'\ncuda: Optional[str] = '12.8'\nhip: Optional[str] = None\n",
            ("2.13.0+cu128", True),
        ),
        ('__version__ = "2.13.0"\ncuda = None\nhip = "6.2"\n', ("2.13.0", True)),
        ("debug = False\n", ("", False)),
    ],
)
def test_a_build_of_torch_is_known_by_its_file_of_versions(
    text: str, expected: tuple[str, bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "version.py").write_text(text)
    spec = ModuleSpec("torch", None)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(machine, "find_spec", lambda name: spec)
    assert torch_build.__wrapped__() == TorchBuild(*expected)
    (tmp_path / "version.py").unlink()
    assert torch_build.__wrapped__() == TorchBuild("", False), "a torn installation"
    monkeypatch.setattr(machine, "find_spec", lambda name: None)
    assert torch_build.__wrapped__() == TorchBuild("", False)


class Driver:
    """NVIDIA's driver with GPUs of these sizes; one of no size does not answer."""

    def __init__(self, *sizes: int, starts: bool = True) -> None:
        self.sizes, self.starts = sizes, starts

    def cuInit(self, flags: int) -> int:
        return 0 if self.starts else 999

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = len(self.sizes)
        return 0

    def cuDeviceGet(self, device: Any, number: int) -> int:
        device._obj.value = number
        return 0 if self.sizes[number] else 101

    def cuDeviceTotalMem_v2(self, size: Any, device: Any) -> int:
        size._obj.value = self.sizes[device.value]
        return 0

    def cuDeviceGetAttribute(self, number: Any, attribute: int, device: Any) -> int:
        number._obj.value = {75: 9, 76: 1}[attribute] + device.value
        return 0 if self.sizes[device.value] > 1 else 1


def test_gpus_are_counted_by_their_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    for driver, expected in (
        (Driver(80 << 30, 24 << 30), (80 << 30, 24 << 30)),
        (Driver(80 << 30, 0), (80 << 30,)),  # one that does not answer is no GPU to train on
        (Driver(80 << 30, starts=False), ()),  # a driver that does not fit the kernel
        (Driver(), ()),
    ):
        monkeypatch.setattr(ctypes, "CDLL", lambda name, driver=driver: driver)
        assert gpu_memory.__wrapped__() == expected


def test_the_capability_is_that_of_the_first_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for driver, sizes, expected in (
        (Driver(80 << 30, 24 << 30), (80 << 30, 24 << 30), (9, 1)),
        (Driver(1), (1,), None),  # it does not say
        (Driver(), (), None),
        (Driver(), (0,), None),  # one of AMD's
    ):
        monkeypatch.setattr(ctypes, "CDLL", lambda name, driver=driver: driver)
        monkeypatch.setattr(machine, "gpu_memory", lambda sizes=sizes: sizes)
        assert gpu_capability.__wrapped__() == expected


@each_row(("amd", "expected"), [(True, (0,)), (False, ())])
def test_without_a_driver_there_may_still_be_a_gpu_of_amd(
    amd: bool, expected: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    monkeypatch.setattr("os.path.exists", lambda path: amd and path == "/dev/kfd")
    assert gpu_memory.__wrapped__() == expected
