"""What Kubernetes and Kubeflow's operator would be given, read by their own packages."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.rows import each_row

from bertwright.launch.config import load_place
from bertwright.launch.job import load_job


def described(kind: str, *settings: str, overrides: tuple[str, ...] = ()) -> dict[str, Any]:
    files = load_place(kind, "", settings).describe(load_job(Path("smoke"), overrides, None)).files
    return {name: yaml.safe_load(text) for name, text in files.items() if name.endswith(".yaml")}


def differences(given: Any, read: Any, where: str = "") -> Iterator[str]:
    """What a model did not take of what it was given: keys that it does not know are dropped by its reader."""
    if isinstance(given, dict):
        for key, value in given.items():
            yield from differences(value, (read or {}).get(key), f"{where}.{key}")
    elif isinstance(given, list):
        for number, value in enumerate(given):
            yield from differences(value, (read or [None] * len(given))[number], f"{where}.{number}")
    elif given != read and str(given) != str(read):
        yield f"{where}: {given!r} became {read!r}"


def read_as(model: str, values: dict[str, Any]) -> Any:
    """`values` as the operator's package reads them and writes them again; required fields are asserted by it."""
    training = pytest.importorskip(
        "kubeflow.training.api_client", reason="kubeflow-training is not installed: pip install -e '.[dev]'"
    )
    from kubeflow.training.utils.utils import FakeResponse

    client = training.ApiClient()
    return client.sanitize_for_serialization(client.deserialize(FakeResponse(values), model))


@each_row("gpus", [0, 8])
def test_kubernetes_and_the_operator_know_every_key(gpus: int) -> None:
    files = described("kubeflow", f"gpus={gpus}", "nodes=2", 'environment={NCCL_DEBUG="INFO"}')
    for name, model in {
        "prepare.yaml": "V1Job",
        "train.yaml": "KubeflowOrgV1PyTorchJob",
        "finish.yaml": "V1Job",
    }.items():
        assert not list(differences(files[name], read_as(model, files[name])))


def test_a_key_that_is_not_there_would_be_noticed() -> None:
    job = described("kubeflow")["train.yaml"]
    job["spec"]["elasticPolicy"]["maxRestart"] = 3
    assert list(differences(job, read_as("KubeflowOrgV1PyTorchJob", job)))
