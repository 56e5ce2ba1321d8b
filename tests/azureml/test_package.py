"""Every file of a description, read and validated by Azure's own package, without network and workspace."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bertwright.launch.config import load_place
from bertwright.launch.job import load_job

READ = """
import json, socket, sys, warnings
class Refused(socket.socket):
    def __init__(self, *a, **k): raise AssertionError("a socket was opened")
socket.socket = Refused
warnings.simplefilter("ignore")
from azure.ai.ml import load_compute, load_data, load_datastore, load_environment, load_job
readers = {"environment": load_environment, "compute": load_compute, "datastore": load_datastore, "data": load_data}
said = {}
for path in sys.argv[1:]:
    name = path.rpartition("/")[2].removesuffix(".yml")
    known = said[path] = {}
    thing = readers.get(name.partition("-")[0], load_job)(path)
    mistakes = thing._validate().error_messages if hasattr(thing, "_validate") else {}
    known |= {"type": type(thing).__name__, "mistakes": mistakes}
    if name == "compute" and thing.identity:
        users = thing.identity.user_assigned_identities
        known |= {"identity": thing.identity.type, "identities": users and [user.resource_id for user in users]}
    if name == "pipeline":
        rest = thing._to_rest_object().properties
        known["jobs"] = rest.jobs
    if name == "job":
        known["distribution"] = thing.distribution.process_count_per_instance
        known["instances"] = thing.resources.instance_count
        known["services"] = sorted(thing.services)
        known["tier"] = thing.queue_settings.job_tier
json.dump(said, sys.stdout, default=str)
"""
MINE = "/subscriptions/1/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/berts"
EVERYTHING = (
    "vm_size=Standard_ND96asr_v4",
    'inputs.text={key="corpus.source.path",path="azureml:text:1",below="*.bz2"}',
    'services=["tensorboard","jupyter","vscode"]',
    "spot=true",
    "timeout=86400",
    "identity=managed",
    'datastore={name="berts",account="mine",container="berts"}',
    'data.text={path="azureml://datastores/berts/paths/text"}',
    "nodes=2",
)


def read(folder: Path, *settings: str) -> dict[str, Any]:
    """What the package says of each file, by its name, read in a process that can open no socket."""
    job = load_job(Path("smoke"), ['train.observers=["tensorboard"]'], None)
    description = load_place("azureml", "", settings).describe(job)
    for name, text in description.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    said = read_files([folder / name for name in description.files if name.endswith(".yml")])
    return {path.stem: each for path, each in said.items()}


def read_files(files: Sequence[Path]) -> dict[Path, Any]:
    """The same of files of any jobs."""
    done = subprocess.run(
        [sys.executable, "-c", READ, *map(str, files)],
        capture_output=True,
        text=True,
        env=dict(os.environ),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {Path(path): each for path, each in json.loads(done.stdout).items()}


@pytest.mark.slow
def test_a_pipeline_and_all_that_it_needs_is_read(tmp_path: Path) -> None:
    cluster = ("compute=gpu-cluster", "cluster={max_nodes=2}", "prepare.vm_size=Standard_D16s_v5")
    said = read(tmp_path, *EVERYTHING, *cluster)
    assert {name: each["type"] for name, each in said.items()} == {
        "datastore": "AzureBlobDatastore",
        "data-text": "Data",
        "compute": "AmlCompute",
        "environment": "Environment",
        "pipeline": "PipelineJob",
    }
    assert not any(each["mistakes"] for each in said.values())
    assert list(said["pipeline"]["jobs"]) == ["data", "train", "evaluate"]


@pytest.mark.slow
def test_a_job_of_its_own_is_read(tmp_path: Path) -> None:
    said = read(tmp_path, *EVERYTHING, "runs=training")["job"]
    assert said["type"] == "Command" and not said["mistakes"]
    assert (said["distribution"], said["instances"], said["tier"].lower()) == (8, 2, "spot")
    assert said["services"] == ["jupyter", "tensorboard", "vscode"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "type", "identities"),
    [
        (("identity=managed", "cluster={}"), "system_assigned", None),
        ((f"cluster.identity={MINE}",), "user_assigned", [MINE]),
    ],
)
def test_the_identity_of_a_cluster_is_read(
    tmp_path: Path, settings: tuple[str, ...], type: str, identities: list[str] | None
) -> None:
    said = read(tmp_path, "vm_size=Standard_D16s_v5", "compute=cpus", *settings)["compute"]
    assert not said["mistakes"] and said["identity"] == type and said["identities"] == identities


@pytest.mark.slow
def test_a_curated_environment_is_named(tmp_path: Path) -> None:
    said = read(tmp_path, "compute=gpu-cluster", "image.registered=azureml:AzureML-acpt-pytorch-2.8-cuda12.6@latest")
    assert list(said) == ["pipeline"] and not said["pipeline"]["mistakes"]
