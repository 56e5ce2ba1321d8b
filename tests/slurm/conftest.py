"""Clusters for the tests of Slurm: one for most, and one that keeps accounts."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.slurm import accounts
from tests.slurm.cluster import Cluster, cluster, missing


@pytest.fixture(scope="session")
def slurm() -> Iterator[Cluster]:
    with started([], accounting=False) as made:
        yield made


@pytest.fixture(scope="session")
def slurm_with_accounts() -> Iterator[Cluster]:
    with started(accounts.missing(), accounting=True) as made:
        yield made


@contextmanager
def started(absent: list[str], accounting: bool) -> Iterator[Cluster]:
    if os.geteuid() != 0:
        pytest.skip("Slurm's controller and nodes are started by root here, and this is another user")
    if absent := [*missing(), *absent]:
        packages = "slurm-wlm munge" + (" slurmdbd mariadb-server" if accounting else "")
        pytest.skip(f"{', '.join(absent)} not installed: apt-get install {packages}")
    # Not pytest's folder: munge's socket must be reached by all, and have a short path.
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    folder.chmod(0o755)
    try:
        with cluster(folder, accounting) as made:
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)
