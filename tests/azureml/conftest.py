"""Azure's own package, or none of these tests; and the service that it talks to."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.azureml.service import Service, serving
from tests.pipeline.conftest import call as call


@pytest.fixture(autouse=True)
def package() -> None:
    try:
        found = find_spec("azure.ai.ml")
    except ModuleNotFoundError:  # of what it lies in
        found = None
    if found is None:
        pytest.skip("azure-ai-ml is not installed: pip install 'bertwright[azureml]'")


@pytest.fixture
def service(package: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A workspace with the cluster cpu-cluster, by variables of the environment alone, seen from an empty folder."""
    (tmp_path / "keys").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    with serving(tmp_path / "keys") as running:
        for name, value in running.environment(tmp_path / "keys").items():
            monkeypatch.setenv(name, value)
        running.put_there("computes/cpu-cluster", {"computeType": "AmlCompute", "properties": {}})
        yield running
