"""The archive for machines without the internet: its licences and bytes, and that it installs without a network."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tools import package


@pytest.fixture
def wheels(tmp_path: Path) -> list[Path]:
    """Two wheels, whose packages say their licences in different ways."""
    made = []
    for name, says in {
        "one": "License-Expression: MIT\n",
        "two": "License: Apache 2.0\n  and more\nClassifier: License :: OSI Approved :: Apache Software License\n",
    }.items():
        made.append(tmp_path / f"{name}-1.0-py3-none-any.whl")
        with zipfile.ZipFile(made[-1], "w") as archive:
            archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Name: {name}\nVersion: 1.0\n{says}\n")
            archive.writestr(f"{name}-1.0.dist-info/licenses/LICENSE", f"the licence of {name}")
            archive.writestr(f"{name}/license_plates.py", "")
    return made


def test_every_licence_is_in_it_and_the_bytes_are_the_same_each_time(wheels: list[Path], tmp_path: Path) -> None:
    archives = [tmp_path / "first.tar.gz", tmp_path / "second.tar.gz"]
    for archive in archives:
        package.write_archive(archive, wheels, 1_700_000_000)
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with tarfile.open(archives[0]) as opened:
        members = {member.name.removeprefix(f"{package.NAME}/"): member for member in opened.getmembers()}
        table = opened.extractfile(members["THIRD-PARTY.tsv"])
        assert table is not None
        assert table.read().decode().splitlines()[1:] == ["one\t1.0\tMIT\t1", "two\t1.0\tApache Software License\t1"]
    assert set(members) == {
        "THIRD-PARTY.tsv",
        "install.sh",
        "licences/one/one-1.0.dist-info/licenses/LICENSE",
        "licences/two/two-1.0.dist-info/licenses/LICENSE",
        "wheels/one-1.0-py3-none-any.whl",
        "wheels/two-1.0-py3-none-any.whl",
    }
    assert {member.uname for member in members.values()} == {""} and members["install.sh"].mode == 0o755
    assert not list(tmp_path.glob("*.draft"))


@pytest.mark.slow
def test_the_bytes_are_those_of_the_commit_whoever_builds_it(tmp_path: Path) -> None:
    """Two clones, whose files have other permissions and times; without the wheels that pip would download."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    archives = []
    for umask in (0o022, 0o077):
        clone, out = tmp_path / f"clone-{umask:o}", tmp_path / f"out-{umask:o}"
        subprocess.run(["git", "clone", "--quiet", str(package.ROOT), str(clone)], umask=umask, check=True)
        made = package.time_of_commit()
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(made)}
        subprocess.run([*build, str(out), str(clone)], umask=umask, env=environment, check=True)
        archives.append(tmp_path / f"{umask:o}.tar.gz")
        package.write_archive(archives[-1], sorted(out.glob("*.whl")), made)
    assert (tmp_path / "clone-77" / "LICENSE").stat().st_mode != (tmp_path / "clone-22" / "LICENSE").stat().st_mode
    assert archives[0].read_bytes() == archives[1].read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="a process without a network (unshare --net) needs root")
def test_it_installs_and_runs_without_a_network(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "tools.package"], cwd=package.ROOT, check=True)
    with tarfile.open(package.ROOT / "dist" / f"{package.NAME}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    alone, here = (
        ["unshare", "--net", "env", "-i", f"PATH={os.environ['PATH']}", f"PYTHON={sys.executable}"],
        tmp_path / "venv",
    )
    subprocess.run([*alone, "sh", str(tmp_path / package.NAME / "install.sh"), str(here)], check=True)
    done = subprocess.run(
        [*alone, str(here / "bin" / "bertwright"), "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("bertwright ")
    table = (tmp_path / package.NAME / "THIRD-PARTY.tsv").read_text()
    assert "torch\t2." in table and "AGPL" not in table
