"""Places of Azure ML: what the service would accept and then fail at is an error here."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from tests.processes import PATIENCE
from tests.rows import each_row

from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.core.log import SILENT
from bertwright.launch.azureml.sizes import GPU_SIZES, RETIRED, check_size
from bertwright.launch.azureml.workspace import JobId, Workspace
from bertwright.launch.config import load_place
from bertwright.launch.job import load_job
from bertwright.launch.target import Description, submit
from bertwright.launch.wheel import WHEEL

DATA = ("train.phases.0.data=/disk/hdf5", "train.phases.1.data=/disk/hdf5")
GPUS = "vm_size=Standard_ND96asr_v4"


def described(*settings: str, overrides: tuple[str, ...] = (), out: str = "runs/smoke") -> Description:
    return load_place("azureml", "", settings).describe(load_job(Path("smoke"), overrides, Path(out)))


@each_row(
    ("settings", "says"),
    [
        (
            ["vm_size=Standard_NC24rs_v3"],
            "Standard_NC24rs_v3 is retired; Standard_NC96ads_A100_v4 is a current size with the same number of GPUs",
        ),
        (
            ["vm_size=standard_nd40rs_v2"],
            "Standard_ND40rs_v2 is retired; Standard_ND96asr_v4 is a current size with the same number of GPUs",
        ),
        (["vm_size=Standard_NC24r"], "Standard_NC24r is retired; current sizes: Standard_NC24ads_A100_v4 has one GPU"),
        (["vm_size=ND96asr_v4"], "is not the size of a virtual machine; did you mean 'Standard_ND96asr_v4'?"),
        (["vm_size=Standard_ND96asr_v5"], "the number of GPUs of Standard_ND96asr_v5 is unknown; did you mean"),
        (
            [],
            "neither compute nor vm_size is set, so there is no machine to train on. Set compute to a cluster, or "
            "set vm_size. Both are keys of a place (--set KEY=VALUE, or --place FILE).",
        ),
        ([GPUS, "shm_size=32gigs"], 'write the size of shared memory like "64g" or "512m"'),
        ([GPUS, "prepare={}"], "[prepare] needs compute or vm_size"),
        ([GPUS, "cluster={}"], "[cluster] needs vm_size (the size of its machines) and compute (its name). Set both."),
        ([GPUS, "compute=gpus", "cluster={}", "nodes=2"], "cluster.max_nodes = 1: 2 nodes would wait forever"),
        (["compute=gpus", "spot=true"], "an existing cluster such as gpus already has its own spot setting"),
        (["compute=gpus", "infiniband=true"], "infiniband = true: vm_size '' is not known to have InfiniBand"),
        ([GPUS, 'services=["tensorboard"]'], 'Add train.observers=["tensorboard"], or remove the service.'),
        ([GPUS, "service_nodes=all"], 'Add services=["jupyter"], or remove service_nodes.'),
        ([GPUS, 'setup=["ls ${{inputs.text}}"]'], "${{inputs.text}} does not exist in the job data, which has ${{outp"),
        (
            [GPUS, 'environment={A="${{outputs.run}}/a"}'],
            "environment.A = ${{outputs.run}}/a: Azure inserts values only into the command. Its first lines are those "
            "of setup: add setup = ['export A=\"${{outputs.run}}/a\"'] to the place instead.",
        ),
        ([GPUS, "compute=gpus", "cluster.identity=me"], "cluster.identity: 'me' must match the pattern"),
        ([GPUS, 'inputs.a={key="corpus.sorce",path="azureml:a:1"}'], "corpus.sorce: unknown key 'sorce'; did you mean"),
        ([GPUS, 'inputs.a={key="corpus.source",path="/home/me/a"}'], "'/home/me/a' is not data of the workspace"),
        (
            [GPUS, 'inputs.after={key="corpus.source",path="azureml:a:1"}'],
            "[inputs.after]: by an input of this name, steps wait for each other. Give another name.",
        ),
        (
            ["compute=ab"],
            "the name of a cluster has 3 to 32 letters, digits and hyphens, begins with a letter and does",
        ),
        (
            [GPUS, 'data.a={path="https://x.blob.core.windows.net/a?sig=planted"}'],
            "data.a.path holds an address with a password, a token or a query, but job descriptions must not contain",
        ),
        (
            [GPUS, "compute=gpus", "cluster={min_nodes=2}"],
            "cluster: min_nodes = 2 is more than max_nodes = 1; lower it",
        ),
        (
            [GPUS, 'image={registered="azureml:a:1",packages=["bertwright"]}'],
            "image: registered = azureml:a:1 is used as it is, so packages would have no effect; leave one or",
        ),
        (
            [GPUS, 'image={image="a",python="3.13",packages=[]}'],
            "image: python = 3.13 is the version that is installed",
        ),
        (
            [GPUS, 'inputs.a={key="corpus.source",path="azureml:a:1",type="uri_file",below="x"}'],
            "inputs.a: below = x is a path below a folder, but type = uri_file is one file; set type = uri_folder",
        ),
        ([GPUS, "output=wasbs://a/b"], "a folder of a datastore as azureml://datastores/NAME/paths/FOLDER"),
    ],
)
def test_a_mistake_is_reported_with_a_remedy(settings: list[str], says: str) -> None:
    with pytest.raises(RecipeError) as caught:
        described(*settings)
    assert says in str(caught.value) and "planted" not in str(caught.value)


def test_references_and_absolute_run_folders_are_refused() -> None:
    with pytest.raises(RecipeError, match=r"Azure inserts values into commands, not into a recipe"):
        described(GPUS, overrides=("corpus.source=${{inputs.text}}",))
    with pytest.raises(RecipeError, match=r"--out /runs/a: run folders are stored below `output`"):
        described(GPUS, out="/runs/a")


def test_a_retired_size_names_one_that_is_known() -> None:
    assert set(RETIRED.values()) <= set(GPU_SIZES) and not set(RETIRED) & set(GPU_SIZES)
    assert check_size("standard_nd96asr_V4") == "Standard_ND96asr_v4"
    assert check_size("Standard_D16s_v5") == "Standard_D16s_v5"


def test_of_a_size_without_gpus_only_the_form_is_known() -> None:
    """As docs/how-to/azure.md says: a table of all sizes would soon refuse a new one."""
    assert check_size("Standard_D17s_v55") == "Standard_D17s_v55"
    with pytest.raises(ValueError, match="is not the size of a virtual machine"):
        check_size("D16s_v5")


def test_what_is_printed_is_what_the_keys_say() -> None:
    text = '{key="corpus.source.path",path="azureml:text:1",below="*.bz2"}'
    files = described(GPUS, "nodes=2", "spot=true", f"inputs.text={text}").files
    train = yaml.safe_load(files["pipeline.yml"])["jobs"]["train"]
    assert train["distribution"] == {"type": "pytorch", "process_count_per_instance": 8}
    assert train["resources"]["instance_count"] == 2 and train["queue_settings"] == {"job_tier": "spot"}
    assert "bertwright train recipe.toml --out run train.spot_notice=azure" in train["command"]
    assert '"corpus.source.path=${{inputs.text}}/*.bz2"' in train["command"]
    assert train["environment_variables"] == {
        "LOCAL_WORLD_SIZE": "8",
        "NCCL_SOCKET_IFNAME": "eth0",
        "NCCL_IB_DISABLE": "0",
        "DATASET_MOUNT_ATTRIBUTE_CACHE_TTL": "1000",
    }
    assert "distribution" not in yaml.safe_load(described("compute=cpus").files["pipeline.yml"])["jobs"]["train"]


@each_row(("nodes", "ranks", "here"), [(2, 1, "1"), (2, 4, "4"), (1, 4, "4"), (1, 1, None)])
def test_a_rank_knows_how_many_share_its_machine(nodes: int, ranks: int, here: str | None) -> None:
    """Azure does not say it, and without it all ranks are taken to be on one machine."""
    settings = ("compute=cpus", f"nodes={nodes}", f"ranks={ranks}", 'environment={A="1"}')
    jobs = yaml.safe_load(described(*settings).files["pipeline.yml"])["jobs"]
    assert jobs["train"]["environment_variables"].get("LOCAL_WORLD_SIZE") == here
    assert jobs["data"]["environment_variables"] == jobs["evaluate"]["environment_variables"] == {"A": "1"}


@each_row(
    ("observer", "folder"),
    [
        ('"tensorboard"', "run/train/observers/tensorboard"),
        ('{kind="tensorboard"}', "run/train/observers/tensorboard"),
        ('{kind="tensorboard",folder="/outputs/runs/"}', "/outputs/runs/"),
    ],
)
def test_tensorboard_shows_the_folder_that_the_recipe_writes_to(observer: str, folder: str) -> None:
    made = described(GPUS, 'services=["tensorboard"]', overrides=(f'train.observers=["mlflow",{observer}]',))
    train = yaml.safe_load(made.files["pipeline.yml"])["jobs"]["train"]
    assert train["services"] == {"tensorboard": {"type": "tensor_board", "log_dir": folder}}
    both = ('services=["tensorboard","vscode"]', "service_nodes=all")
    made = described(GPUS, *both, overrides=(f'train.observers=["mlflow",{observer}]',))
    train = yaml.safe_load(made.files["pipeline.yml"])["jobs"]["train"]
    assert train["services"] == {
        "tensorboard": {"type": "tensor_board", "log_dir": folder, "nodes": "all"},
        "vscode": {"type": "vs_code", "nodes": "all"},
    }


def test_a_reference_in_setup_is_part_of_the_command() -> None:
    line = 'export A="${{outputs.run}}/a"'
    jobs = yaml.safe_load(described(GPUS, f"setup=['{line}']").files["pipeline.yml"])["jobs"]
    assert all(line in job["command"].splitlines() for job in jobs.values())


def test_a_cluster_that_jobs_read_data_as_has_an_identity() -> None:
    def identity(*settings: str) -> object:
        made = described(GPUS, "compute=gpus", *settings).files["compute.yml"]
        return yaml.safe_load(made).get("identity")

    mine = "/subscriptions/1/resourcegroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/berts"
    assert identity("cluster={}") is None
    assert identity("cluster={}", "identity=user_identity") is None
    assert identity("cluster={}", "identity=managed") == {"type": "system_assigned"}
    for settings in ((), ("identity=managed",)):
        assert identity(f"cluster.identity={mine}", *settings) == {
            "type": "user_assigned",
            "user_assigned_identities": [{"resource_id": mine}],
        }


def test_spot_notices_are_set_only_where_they_are_needed() -> None:
    for given in (described(GPUS), described(GPUS, "spot=true", overrides=("train.spot_notice=none",))):
        assert "spot_notice=" not in yaml.safe_load(given.files["pipeline.yml"])["jobs"]["train"]["command"]


def test_files_that_no_job_sees_are_listed() -> None:
    unseen = described(GPUS, overrides=("corpus.source=huwiki.xml.bz2",)).note
    assert unseen.startswith("The jobs do not see corpus.source = huwiki.xml.bz2: upload what is missing, and add")
    given = described(GPUS, 'inputs.a={key="corpus.source",path="azureml:a:1"}', overrides=("corpus.source=x.bz2",))
    assert not given.note and not described(GPUS).note and "x.bz2" not in str(given.files)
    assert 'source = "azureml:a:1"' in given.files["recipe.toml"]
    data = described(GPUS, 'inputs.a={key="train.phases.1.data",path="azureml:a:1"}', overrides=DATA)
    assert "train.phases.0.data = /disk/hdf5" in data.note and "phases.1" not in data.note


def test_signals_and_exit_codes_pass_through_the_job(tmp_path: Path) -> None:
    """The command of a job, by a shell as Azure's, with a program in the place of ours that says what it hears."""
    command = yaml.safe_load(described("compute=cpus", "runs=training").files["job.yml"])["command"]
    (tmp_path / "output").mkdir()
    program = tmp_path / "bertwright"
    program.write_text(
        f"#!{sys.executable}\nimport signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))\n"
        "open('run/started', 'w').close()\ntime.sleep(60)\n"
    )
    program.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    line = command.replace("${{outputs.run}}", str(tmp_path / "output"))
    process = subprocess.Popen(["bash", "-c", line], cwd=tmp_path, env={**os.environ, "PATH": path})
    try:
        deadline = time.monotonic() + PATIENCE
        while not (tmp_path / "output" / "started").exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 75
    finally:
        process.kill()


def test_a_workspace_is_of_the_place_or_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_SUBSCRIPTION_ID", "AZURE_DEFAULTS_GROUP", "AZURE_DEFAULTS_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RecipeError) as caught:
        Workspace(name="berts").complete()
    assert str(caught.value) == (
        "the workspace is incomplete: missing subscription, resource_group. Set [workspace] of the place "
        "(--set workspace.subscription=...), or AZURE_SUBSCRIPTION_ID, AZURE_DEFAULTS_GROUP in the environment."
    )
    monkeypatch.setenv("AZURE_SUBSCRIPTION_ID", "1")
    monkeypatch.setenv("AZURE_DEFAULTS_GROUP", "theirs")
    whole = Workspace(resource_group="mine", name="berts").complete()
    assert whole == Workspace(subscription="1", resource_group="mine", name="berts")
    monkeypatch.setenv("AZURE_DEFAULTS_GROUP", "a b")
    with pytest.raises(
        RecipeError, match="^AZURE_DEFAULTS_GROUP in the environment is 'a b', which is not a valid resource group"
    ):
        Workspace(name="berts").complete()


def test_a_job_identifier_contains_its_workspace() -> None:
    text = "/subscriptions/1/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w/jobs/calm_sea_1"
    workspace = Workspace(subscription="1", resource_group="g", name="w")
    assert (
        JobId.of(text) == JobId(workspace, "calm_sea_1") == JobId.of(text.replace("resourceGroups", "resourcegroups"))
    )
    with pytest.raises(
        RecipeError, match=r"'calm_sea_1' is not a job of Azure ML: the note in the run folder is damaged"
    ):
        JobId.of("calm_sea_1")


def test_without_azures_package_the_commands_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "azure.ai.ml", None)
    place = load_place("azureml", "", [GPUS, 'workspace={subscription="1",resource_group="g",name="w"}'])
    with pytest.raises(MissingExtraError) as caught:
        submit(place, load_job(Path("smoke"), [], None), SILENT)
    options = "--subscription 1 --resource-group g --workspace-name w"
    assert str(caught.value) == (
        "Azure's package azure-ai-ml is not installed: pip install 'bertwright[azureml]'; or run, on a machine "
        f"with az: az ml job create --file runs/smoke/launch/pipeline.yml {options}"
    )
    assert (tmp_path / "runs/smoke/launch/pipeline.yml").is_file(), "the files of that command"


def test_the_environment_has_the_extras_that_the_recipe_asks_for() -> None:
    def pip(*settings: str, overrides: tuple[str, ...] = ()) -> list[str]:
        made = described(GPUS, *settings, overrides=overrides)
        assert made.wheel == f"environment/{WHEEL}"
        assert yaml.safe_load(made.files["environment.yml"])["build"] == {
            "path": "environment",
            "dockerfile_path": "Dockerfile",
        }
        file = made.files["environment/Dockerfile"]
        assert f"COPY {WHEEL} /tmp/\n" in file
        return re.findall(rf"pip install --no-cache-dir (.*?)'/tmp/{WHEEL}\[(.*?)\]'", file)

    assert pip() == [("", "azure,formats,hf,tensorboard")]
    more = (
        'optim={kind="adamw"}',
        "train.engine=deepspeed",
        'vocab.trainer.kind="sentencepiece"',
        'train.observers=["mlflow"]',
    )
    compiled = ("--no-build-isolation ", "deepspeed")
    assert pip(overrides=more) == [("", "azure,formats,hf,mlflow,sentencepiece,tensorboard"), compiled]
    mine = described(GPUS, 'image.packages=["mine"]', overrides=more)
    assert yaml.safe_load(mine.files["environment.yml"])["conda_file"]["dependencies"][-1] == {"pip": ["mine"]}
    assert not mine.wheel and "environment/Dockerfile" not in mine.files, "what the user says is what is installed"
