"""One cluster for all tests of Slurm, and a run that was never disturbed."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.slurm.cluster import Cluster, cluster, missing


@pytest.fixture(scope="session")
def slurm() -> Iterator[Cluster]:
    if os.geteuid() != 0:
        pytest.skip("Slurm's controller and nodes are started by root here, and this is another user")
    if absent := missing():
        pytest.skip(f"{', '.join(absent)} not installed: apt-get install slurm-wlm munge")
    # Not pytest's folder: munge's socket must be reached by all, and have a short path.
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    folder.chmod(0o755)
    try:
        with cluster(folder) as made:
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)
