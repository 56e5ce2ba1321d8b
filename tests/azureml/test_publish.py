"""Azure's own package registers an exported model in a workspace, a service on this machine."""

import json
from pathlib import Path

import pytest
from tests.azureml.service import SIGNATURE, SUBSCRIPTION, TOKEN, WORKSPACE, Service
from tests.pipeline.conftest import Call

from bertwright.core.artifact import build
from bertwright.core.config import Identity
from bertwright.core.log import SILENT
from bertwright.core.provenance import write_provenance

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of Azure's packages
]
LONG = f"azureml://subscriptions/{SUBSCRIPTION}/resourceGroups/language-technology/workspaces/berts/models/hu-mini"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder with the provenance of an exported one."""
    folder = tmp_path / "model"
    (folder / "1_Pooling").mkdir(parents=True)
    for name in ("config.json", "README.md", "1_Pooling/config.json"):
        (folder / name).write_text(f"{name} of a model")
    train = build(tmp_path / "train", Identity("train", 1, {}, {}), SILENT, lambda draft: {})
    write_provenance(folder, [train], [("wiki", "0" * 64)])
    (folder / "mine.txt").write_text("not listed")
    return folder


@pytest.mark.parametrize("address", ["azureml:hu-mini", LONG])
def test_a_model_is_registered_with_the_listed_files_alone(
    service: Service, call: Call, model: Path, address: str
) -> None:
    done = call("publish", model, address, "--json")
    assert done.code == 0, done.err + done.out
    facts = json.loads(done.out)
    (created,) = service.put("models")
    assert facts["sent"] == f"{WORKSPACE}/{created.path}" and created.path.startswith("models/hu-mini/versions/")
    said = created.body["properties"]
    assert said["modelType"] == "custom_model" and said["tags"]["fingerprint"]
    sent = {path.rpartition("/model/")[2]: data for path, data in service.blobs.items()}
    listed = {path.relative_to(model).as_posix() for path in model.rglob("*") if path.is_file()} - {"mine.txt"}
    assert sent == {name: (model / name).read_bytes() for name in listed}
    assert facts["not_sent"] == ["mine.txt"]
    again = json.loads(call("publish", model, address, "--json").out)
    assert again["sent"] == facts["sent"] and len(service.put("models")) == 1
    assert "already is this model" in again["existing"]
    assert service.unauthorized == 0
    assert not any(secret in done.out + done.err for secret in (TOKEN, SIGNATURE))


def test_a_refusal_is_a_sentence(service: Service, call: Call, model: Path) -> None:
    service.refusals = {"PUT models/": (403, "Forbidden", "no write access")}
    done = call("publish", model, "azureml:hu-mini")
    assert done.code == 2 and "the signed-in account has no permission to do it: no write access" in done.err


def test_the_workspace_must_be_known(
    service: Service, call: Call, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_DEFAULTS_WORKSPACE")
    done = call("publish", model, "azureml:hu-mini")
    assert done.code == 2 and "AZURE_DEFAULTS_WORKSPACE" in done.err and service.calls == []
