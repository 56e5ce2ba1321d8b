"""What each target would submit, as it was recorded: for the reader, and for whoever changes it.

`BERTWRIGHT_WRITE_GOLDEN=1 pytest tests/golden/test_launch.py` records it anew.
"""

import os
import re
import sys
from pathlib import Path

import pytest
from tests.golden import azure_pairs
from tests.rows import each_row

from bertwright.cli import main

RECORDED = Path(__file__).parent / "launch"
COMMANDS = {
    "local": "local smoke",
    "torchrun": "torchrun smoke --set ranks=4",
    "torchrun-nodes": 'torchrun smoke --nodes 2 --set rendezvous="node1:29500"',
    "slurm": "slurm smoke",
    "slurm-one-job": "slurm smoke --set prepare.tasks=1 --set folder=/shared/berts --out runs/two train.seed=7",
    "dgx-1": "slurm nvidia-large --place dgx-1 --nodes 4",
    "dgx-2": "slurm nvidia-large --place dgx-2 --nodes 64",
    "spr": "slurm nvidia-large --place spr --nodes 16",
    "azureml": "azureml smoke --set compute=cpu-cluster",
    "azureml-training": """azureml smoke --nodes 2 --set runs=training --set vm_size=Standard_ND96asr_v4 --set spot=true
        --set services=["jupyter","vscode"] --set timeout=86400""",
    "azureml-everything": """azureml smoke --nodes 2 --set vm_size=Standard_ND96asr_v4 --set compute=gpu-cluster
        --set cluster={max_nodes=2} --set workspace={resource_group="berts",name="berts"} --set services=["tensorboard"]
        --set datastore={name="berts",account="mine",container="berts"}
        --set data.text={path="azureml://datastores/berts/paths/text"} --set prepare.vm_size=Standard_D16s_v5
        --set inputs.text={key="corpus.source.path",path="azureml:text:1",below="*.bz2"}
        train.observers=["tensorboard"]""",
    "azure-nc96-a100": "azureml ort-azure-nc24 --place azure-nc96-a100",
    "azure-nd96-a100": "azureml ort-dgx2 --place azure-nd96-a100 --nodes 8",
    **azure_pairs.COMMANDS,
    "container": "container smoke",
    "container-gpus": """container nvidia-large --set image=bertwright:cuda --set gpus=all --set ranks=8
        --set shm_size=64g --set mounts={"/data/128"="hdf5/128","/data/512"="~/hdf5/512"}""",
    "container-podman": "container smoke --set program=podman --set gpus=0,1 --shell",
    "kubeflow": "kubeflow smoke --set image=registry.example.org/bertwright:cuda --set gpus=8 --nodes 2",
    "skypilot": "skypilot smoke --set accelerators=H100:8 --set spot=true train.mirror=s3://berts/smoke",
}
"""A command by the name of the file that it is recorded in."""


@each_row("name", COMMANDS)
def test_what_would_be_submitted_is_what_was_recorded(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bertwright", "launch", *COMMANDS[name].split()])
    with pytest.raises(SystemExit) as left:
        main()
    said = capsys.readouterr()
    assert not left.value.code, said.err
    file = RECORDED / f"{name}.txt"
    if os.environ.get("BERTWRIGHT_WRITE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(said.out, encoding="utf-8")
    assert said.out == file.read_text(encoding="utf-8")


def test_nothing_else_is_recorded() -> None:
    assert {path.stem for path in RECORDED.iterdir()} == set(COMMANDS)


def test_the_guide_names_the_command_of_each_published_job() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "how-to" / "azure.md").read_text(encoding="utf-8")
    named = re.findall(r"^\|.*\| `bertwright launch (.*?)` \|$", guide, re.MULTILINE)
    assert sorted(named) == sorted(azure_pairs.PAIRS.values())


@each_row("name", azure_pairs.PAIRS)
def test_a_published_job_lacks_nothing_but_its_data(name: str) -> None:
    """Once the data is named, no note says that jobs do not see a file."""
    told = (RECORDED / f"{name}.txt").read_text(encoding="utf-8")
    assert "do not see" not in told
    assert ("deepspeed" in told.partition("environment/Dockerfile")[2].partition("===")[0]) is (
        name == "glue-bert-large-deepspeed"
    )
    assert "sentencepiece" in told or "hungarian" not in name
