"""Azure's own package submits what was described to a service on this machine, and looks after it there."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.azureml.service import SIGNATURE, STEPS, SUBSCRIPTION, TOKEN, WORKSPACE, Service
from tests.pipeline.conftest import Call

from bertwright.launch.wheel import WHEEL

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of Azure's packages
]
CLUSTER = ("launch", "azureml", "smoke", "--set", "compute=cpu-cluster")
EVERYTHING = (
    *("launch", "azureml", "smoke", "--nodes", "2", 'train.observers=["tensorboard"]'),
    *("--set", "compute=gpu-cluster", "--set", "vm_size=Standard_ND96asr_v4", "--set", "cluster={max_nodes=2}"),
    *("--set", "identity=managed"),
    *("--set", 'datastore={name="berts",account="mine",container="berts"}'),
    *("--set", 'data.text={path="azureml://datastores/berts/paths/text"}'),
    *("--set", 'inputs.text={key="corpus.source.path",path="azureml:text:1",below="*.bz2"}'),
    *("--set", "prepare.vm_size=Standard_D16s_v5", "--set", 'services=["tensorboard","jupyter"]'),
    *("--set", "timeout=86400", "--set", "spot=true"),
)


def submitted(call: Call, *words: str) -> dict[str, Any]:
    done = call(*words, "--submit", "--json")
    assert done.code == 0, done.err
    said: dict[str, Any] = json.loads(done.out)
    return said


def test_the_pipeline_is_created_as_it_was_described(service: Service, call: Call) -> None:
    described = json.loads(call(*CLUSTER, "--json").out)
    done = call(*CLUSTER, "--submit")
    assert done.code == 0, done.err
    (created,) = service.put("jobs")
    name = created.path.removeprefix("jobs/")
    assert f"pipeline: job {name}, https://ml.azure.example/runs/{name}?wsid={WORKSPACE}" in done.err
    assert json.loads(Path("runs/smoke/launch/submitted.json").read_text()) == {
        "target": "azureml",
        "jobs": {"pipeline": f"{WORKSPACE}/jobs/{name}"},
    }
    file = yaml.safe_load(described["files"]["pipeline.yml"])
    body = created.body["properties"]
    assert body["jobType"] == "Pipeline" and body["experimentName"] == file["experiment_name"]
    assert tuple(body["jobs"]) == STEPS and body["settings"]["force_rerun"]
    # The order: a step waits for the output of the one before.
    assert "inputs" not in body["jobs"]["data"]
    for before, step in pairwise(STEPS):
        assert body["jobs"][step]["inputs"]["after"]["value"] == f"${{{{parent.jobs.{before}.outputs.run}}}}"
    components = {call.path: call.body["properties"]["componentSpec"] for call in service.put("components")}
    for step in STEPS:
        asked = body["jobs"][step]
        made = components[asked["componentId"].removeprefix(f"{WORKSPACE}/")]
        assert asked["computeId"] == f"{WORKSPACE}/computes/cpu-cluster"
        assert asked["outputs"]["run"]["uri"] == file["jobs"][step]["outputs"]["run"]["path"]
        assert made["command"] == file["jobs"][step]["command"]
        environment = next(call for call in service.put("environments") if made["environment"].endswith(call.path))
        build = environment.body["properties"]["build"]
        folder = build["contextUri"].partition("/storage/")[2]
        sent = {path.removeprefix(folder): data for path, data in service.blobs.items() if path.startswith(folder)}
        assert build["dockerfilePath"] == "Dockerfile" and sent.keys() == {"Dockerfile", WHEEL}
        for name, data in sent.items():
            assert data == Path("runs/smoke/launch/environment", name).read_bytes()
        code = service.resources[made["code"].removeprefix(f"azureml:{WORKSPACE}/")]["properties"]["codeUri"]
        below = code.partition("/storage/")[2]
        files = {path.removeprefix(f"{below}/"): text for path, text in service.blobs.items() if path.startswith(below)}
        assert files == {"recipe.toml": described["files"]["recipe.toml"].encode()}, "a job gets the recipe alone"


def test_no_secret_and_nothing_of_this_machine_is_sent_or_kept(service: Service, call: Call) -> None:
    Path(".git").mkdir()
    done = call(*CLUSTER, "--submit")
    sent = repr(service.calls)
    for ours in (str(Path.cwd()), str(Path.home()), "mlflow.source.git"):
        assert ours not in sent
    written = "".join(path.read_text() for path in Path("runs").rglob("*") if path.is_file() and path.name != WHEEL)
    for secret in (TOKEN, SIGNATURE, "planted-header"):
        assert secret not in written + done.out + done.err
    assert not service.unauthorized
    assert not [call.path for call in service.calls if call.path.startswith("/v2")], "no telemetry"


def test_all_that_a_job_needs_is_made_before_it(service: Service, call: Call) -> None:
    submitted(call, *EVERYTHING)
    first = [call.path for call in service.calls if call.method == "PUT" and not call.path.startswith("/storage")]
    kinds = list(dict.fromkeys(path.split("/")[0] for path in first))
    assert kinds[:3] == ["datastores", "data", "computes"] and kinds[-1] == "jobs"
    bodies = {call.path: call.body["properties"] for call in service.calls if call.path in first and call.body}
    assert bodies["datastores/berts"]["accountName"] == "mine"
    assert bodies["datastores/berts"]["credentials"] == {"credentialsType": "None"}
    assert bodies["data/text/versions/1"]["dataUri"].endswith("/datastores/berts/paths/text")
    cluster = bodies["computes/gpu-cluster"]["properties"]
    assert cluster["vmSize"] == "Standard_ND96asr_v4" and cluster["vmPriority"] == "LowPriority"
    assert cluster["scaleSettings"]["maxNodeCount"] == 2
    (created,) = service.put("computes")
    assert created.body["identity"] == {"type": "SystemAssigned"}
    jobs = service.put("jobs")[0].body["properties"]["jobs"]
    assert jobs["train"]["distribution"] == {"process_count_per_instance": 8, "distribution_type": "PyTorch"}
    assert jobs["train"]["resources"]["instance_count"] == 2
    assert jobs["train"]["environment_variables"] == {
        "LOCAL_WORLD_SIZE": "8",
        "NCCL_SOCKET_IFNAME": "eth0",
        "NCCL_IB_DISABLE": "0",
        "DATASET_MOUNT_ATTRIBUTE_CACHE_TTL": "1000",
    }
    assert jobs["train"]["limits"]["timeout"] == "P1D"
    assert jobs["train"]["inputs"]["text"]["uri"] == f"{WORKSPACE}/data/text/versions/1"
    assert set(jobs["train"]["services"]) == {"tensorboard", "jupyter"}
    assert jobs["data"]["resources"]["instance_type"] == "Standard_D16s_v5" and "computeId" not in jobs["data"]


def test_a_job_of_its_own(service: Service, call: Call) -> None:
    words = ("--set", "runs=training", "--set", "vm_size=Standard_ND96asr_v4", "--set", "spot=true", "--nodes", "2")
    words += (
        "--set",
        "prepare.compute=another",
    )  # shipped places have such a section, and no job here has that machine
    said = submitted(call, "launch", "azureml", "smoke", *words)
    (created,) = service.put("jobs")
    assert said["jobs"] == {"job": f"{WORKSPACE}/{created.path}"}
    body = created.body["properties"]
    assert body["jobType"] == "Command" and body["displayName"] == "smoke"
    assert body["command"].endswith("exec bertwright train recipe.toml --out run train.spot_notice=azure\n")
    assert body["distribution"] == {"distributionType": "PyTorch", "processCountPerInstance": 8}
    assert (body["resources"]["instanceType"], body["resources"]["instanceCount"]) == ("Standard_ND96asr_v4", 2)
    assert body["queueSettings"] == {"jobTier": "Spot"} and body["resources"]["shmSize"] == "2g"


def test_a_run_is_looked_after_and_not_submitted_twice(
    service: Service, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = submitted(call, *CLUSTER)["jobs"]["pipeline"].rpartition("/")[2]
    again = call(*CLUSTER, "--submit")
    assert again.code == 2 and "runs/smoke is already submitted, and pipeline wait or run." in again.err
    assert len(service.put("jobs")) == 1
    # The note in the run folder knows the workspace.
    looked = ("launch", "azureml", "smoke")
    monkeypatch.delenv("AZURE_SUBSCRIPTION_ID")
    rows = json.loads(call(*looked, "--status", "--json").out)["jobs"]
    assert [(row["job"], row["state"]) for row in rows] == [
        ("pipeline", "NotStarted"),
        *((step, "Running") for step in STEPS),
    ]
    assert rows[0]["id"] == name and rows[0]["why"].startswith("https://ml.azure.example/runs/")
    assert "NotStarted" in call(*looked, "--status").out

    assert call(*looked, "--logs").out == "nothing has been printed yet\n"
    text = "".join(f"step {n}, loss 1.5\n" for n in range(9000))
    service.blobs["logs/train/user_logs/std_log_process_00.txt"] = text.encode()
    service.blobs["logs/train/system_logs/lifecycler.log"] = b"not of the user"
    service.blobs["logs/data/user_logs/std_log.txt"] = b""
    logs = json.loads(call(*looked, "--logs", "--json").out)["logs"]
    assert list(logs) == ["data/user_logs/std_log.txt", "train/user_logs/std_log_process_00.txt"]
    assert logs["train/user_logs/std_log_process_00.txt"].splitlines() == [
        f"step {n}, loss 1.5" for n in range(8980, 9000)
    ]
    assert SIGNATURE not in call(*looked, "--logs").out

    assert call(*looked, "--stop").out == "stopped pipeline\n"
    assert [call.path for call in service.calls if call.method == "POST"][-1] == f"jobs/{name}/cancel"
    assert json.loads(call(*looked, "--status", "--json").out)["jobs"][0]["state"] == "Canceled"
    asked = len(service.calls)
    assert call(*looked, "--stop").code == 0
    assert not [call for call in service.calls[asked:] if call.method == "POST"], "it has ended"
    monkeypatch.setenv("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION)
    assert submitted(call, *CLUSTER)["jobs"]["pipeline"].rpartition("/")[2] != name


@pytest.mark.parametrize(
    ("status", "said"), [(404, "this file is no longer in the storage"), (403, "has no permission to do it")]
)
def test_a_log_that_is_not_to_be_had_costs_no_other(service: Service, call: Call, status: int, said: str) -> None:
    submitted(call, *CLUSTER)
    service.blobs["logs/data/user_logs/std_log.txt"] = service.blobs["logs/train/user_logs/std_log.txt"] = b"step 1"
    service.refusals["storage/.*logs/data/"] = (
        status,
        "BlobNotFound" if status == 404 else "AuthorizationFailure",
        "not here",
    )
    logs = json.loads(call(*CLUSTER, "--logs", "--json").out)["logs"]
    assert said in logs["data/user_logs/std_log.txt"] and logs["train/user_logs/std_log.txt"] == "step 1"


def test_the_place_is_to_be_changed_for_what_is_submitted_alone(service: Service, call: Call) -> None:
    submitted(call, *CLUSTER)
    service.refusals["GET jobs"] = (400, "BadRequest", "no")
    done = call(*CLUSTER, "--status")
    assert done.code == 2 and "--place" not in done.err and "look in the studio" in done.err


def test_a_failed_step_says_why(service: Service, call: Call) -> None:
    submitted(call, *CLUSTER)
    service.state = "Failed"
    rows = json.loads(call(*CLUSTER, "--status", "--json").out)["jobs"]
    assert [row["why"] for row in rows[1:]] == ["exit code 3"] * 3


def test_a_job_that_is_gone(service: Service, call: Call) -> None:
    submitted(call, *CLUSTER)
    (path,) = [path for path in service.resources if path.startswith("jobs/")]
    del service.resources[path]
    (row,) = json.loads(call(*CLUSTER, "--status", "--json").out)["jobs"]
    assert (row["state"], row["why"]) == ("gone", "it was deleted, or its workspace was")
    done = call(*CLUSTER, "--logs")
    assert done.code == 2 and "and its logs no longer exist" in done.err and "Submit it again" in done.err
    assert submitted(call, *CLUSTER)["jobs"], "what is gone neither waits nor runs"


NO_RIGHT = "does not have authorization to perform action 'Microsoft.MachineLearningServices/workspaces/jobs/write'"
QUOTA = "The specified subscription has a total vCPU quota of 0 and cannot accommodate 192 vCPUs"


@pytest.mark.parametrize(
    ("pattern", "answer", "words", "says"),
    [
        (
            r"^GET $",
            (404, "ResourceNotFound", "workspaces/berts was not found"),
            CLUSTER,
            "the workspace berts: it does not exist: workspaces/berts was not found. Searched in the workspace berts, "
            f"resource group language-technology, subscription {SUBSCRIPTION}: set [workspace] of the place.",
        ),
        (
            r"^PUT jobs/",
            (403, "AuthorizationFailed", NO_RIGHT),
            CLUSTER,
            f"submitting pipeline.yml: the signed-in account has no permission to do it: {NO_RIGHT}. Ask the owner "
            "of the workspace berts for the role AzureML Data Scientist",
        ),
        (
            r"^PUT computes/",
            (400, "ClusterMinNodesExceedCoreQuota", QUOTA),
            EVERYTHING,
            f"creating compute.yml: there is no quota for it: {QUOTA}. Ask for more (Quotas, in the studio), or choose",
        ),
        (
            r"^PUT data/",
            (409, "UserError", "A dataset with this name is already registered"),
            EVERYTHING,
            "creating data-text.yml: something else with that name already exists",
        ),
        (
            r"^PUT jobs/",
            (400, "UserError", "The experiment name is invalid"),
            CLUSTER,
            "submitting pipeline.yml: Azure rejects it (400): The experiment name is invalid. Change the place",
        ),
        (
            r"^GET $",
            (401, "InvalidAuthenticationToken", "The access token is expired"),
            CLUSTER,
            "Azure rejects the signed-in account: The access token is expired. Run az login, or set AZURE_TENANT_ID",
        ),
        (
            r"storage",
            (403, "AuthorizationFailure", "This request is not authorized"),
            CLUSTER,
            "submitting pipeline.yml: the signed-in account has no permission to do it",
        ),
    ],
)
def test_a_refusal_says_what_to_do(
    service: Service, call: Call, pattern: str, answer: tuple[int, str, str], words: tuple[str, ...], says: str
) -> None:
    service.refusals[pattern] = answer
    done = call(*words, "--submit")
    assert done.code == 2, done.err
    assert says in re.sub(r"\s+", " ", done.err)
    assert not Path("runs/smoke/launch/submitted.json").exists()
    assert not [path for path in service.resources if path.startswith("jobs/")]


def test_a_cluster_that_is_not_there(service: Service, call: Call) -> None:
    done = call("launch", "azureml", "smoke", "--set", "compute=gpus", "--submit")
    assert done.code == 2 and "there is no cluster gpus in the workspace berts. Add [cluster] to the place" in done.err
    assert not service.put("components"), "nothing is made in vain"


def test_nobody_is_signed_in(service: Service, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
    done = call(*CLUSTER, "--submit")
    assert done.code == 2 and "nobody is signed in to Azure here. Run az login, or set AZURE_TENANT_ID" in done.err
    assert "Traceback" not in done.err and not service.put("environments")


def test_who_signs_in_is_not_accepted(service: Service, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    from azure.core.exceptions import ClientAuthenticationError

    def refuse(*_: object, **__: object) -> None:
        raise ClientAuthenticationError(
            "DefaultAzureCredential failed to retrieve a token from the included credentials.\nAttempted credentials:\n"
            "\tEnvironmentCredential: Authentication failed: AADSTS7000215: Invalid client secret provided. Ensure\n"
            "\tManagedIdentityCredential: no managed identity endpoint found."
        )

    monkeypatch.setattr("azure.identity.DefaultAzureCredential.get_token", refuse)
    monkeypatch.setattr("azure.identity.DefaultAzureCredential.get_token_info", refuse)
    done = call(*CLUSTER, "--submit")
    assert done.code == 2 and (
        "the workspace berts: Azure rejects the sign-in: AADSTS7000215: Invalid client secret provided. "
        "Run az login, or set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET" in done.err
    ), done.err


@pytest.mark.parametrize("what", ["PUT jobs/", "storage"])
def test_the_network_is_gone(service: Service, call: Call, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    for policy in (
        "azure.core.pipeline.policies.RetryPolicy",
        "azure.storage.blob._shared.policies.StorageRetryPolicy",
    ):
        monkeypatch.setattr(f"{policy}.sleep", lambda *_, **__: None)
    service.refusals[what] = (0, "", "")
    done = call(*CLUSTER, "--submit")
    assert done.code == 2 and "submitting pipeline.yml: Azure cannot be reached (" in done.err, done.err
    assert "to see whether the job exists already; if not, run the command again." in done.err
    assert SIGNATURE not in done.err
