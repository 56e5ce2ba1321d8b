"""What a job file of Azure ML says besides its command: no key of it is lost without a word."""

from typing import Any

from tests.rows import each_row

from bertwright.translate.azure_machine import inputs, outputs, statements


def keys(**job: Any) -> dict[str, Any]:
    return {each.key: each.value for each in statements(job) if each.key}


def left(**job: Any) -> list[str]:
    return [each.left for each in statements(job) if not each.key]


def test_every_job_key_is_a_place_key_or_has_a_reason() -> None:
    """The keys of Azure's schema for command jobs, each with a value that is not the default."""
    job = {
        "name": "n",
        "display_name": "d",
        "description": "why",
        "tags": {"a": "b"},
        "properties": {"a": "b"},
        "code": "src",
        "environment": "azureml:E@latest",
        "experiment_name": "e",
        "compute": "azureml:gpus",
        "resources": {"instance_count": 2, "shm_size": "8g", "docker_args": "--ipc=host"},
        "distribution": {"type": "pytorch", "process_count_per_instance": 8},
        "environment_variables": {"A": 1},
        "identity": {"type": "managed", "client_id": "x"},
        "limits": {"timeout": 60},
        "queue_settings": {"job_tier": "spot", "priority": "low"},
        "services": {"a": {"type": "vs_code"}, "b": {"type": "ssh", "ssh_public_keys": "x"}},
        "inputs": {"text": {"path": "azureml:text:1", "mode": "direct"}},
        "outputs": {"o": {"path": "azureml://datastores/d/paths/o", "mode": "upload", "name": "asset"}},
        "parent_job_name": "p",
    }
    found = keys(**job)
    wanted = {"experiment": "e", "compute": "gpus", "shm_size": "8g", "environment": {"A": "1"}, "identity": "managed"}
    wanted |= {"timeout": 60, "services": ["vscode"], "output": "azureml://datastores/d/paths/o"}
    assert found.pop("inputs")["text"]["path"] == "azureml:text:1" and found == wanted
    names = [text.split()[0].rstrip(":") for text in left(**job)]
    assert names == [
        *("name", "display_name", "description", "tags", "properties", "code", "environment"),
        *("resources.docker_args", "identity.client_id", "queue_settings.job_tier", "queue_settings.priority"),
        *("services.b", "inputs.text.mode", "outputs.o.mode", "outputs.o.name", "parent_job_name"),
    ]
    assert all(len(text.partition(": ")[2]) > 20 for text in left(**job))


def test_placeholder_cluster_is_open_and_serverless_is_none() -> None:
    assert keys(compute="<Enter the name of your compute here>") == {"compute": None}
    assert keys(compute="local") == {"compute": None}
    assert keys(compute="serverless") == keys(compute=None) == keys() == {}


@each_row(("tier", "spot"), [("spot", True), ("Spot", True), ("Standard", None), ("Premium", None)])
def test_spot_machines_are_serverless_ones(tier: str, spot: bool | None) -> None:
    settings = {"job_tier": tier}
    assert keys(queue_settings=settings).get("spot") is spot
    assert "spot" not in keys(queue_settings=settings, compute="gpus")
    assert len(left(queue_settings=settings, compute="gpus")) == 1
    if spot:
        assert "a cluster has a setting of its own" in left(queue_settings=settings, compute="<name>")[0]


@each_row(
    ("kind", "wanted"),
    [("managed", "managed"), ("managed_identity", "managed"), ("user_identity", "user_identity"), ("aml_token", None)],
)
def test_an_identity_is_one_that_a_place_has(kind: str, wanted: str | None) -> None:
    assert keys(identity={"type": kind}).get("identity") == wanted
    assert bool(left(identity={"type": kind})) == (wanted is None)


def test_services_are_known_by_both_of_their_spellings() -> None:
    new = {"a": {"type": "tensor_board", "log_dir": "logs"}, "b": {"type": "jupyter_lab"}, "c": {"type": "vs_code"}}
    old = {
        "a": {"job_service_type": "TensorBoard", "properties": {"logDir": "logs"}},
        "b": {"job_service_type": "JupyterLab", "nodes": "all"},
        "c": {"job_service_type": "VSCode"},
    }
    for services, more in ((new, {}), (old, {"service_nodes": "all"})):
        assert keys(services=services) == {"services": ["jupyter", "tensorboard", "vscode"], **more}
        assert left(services=services)[0].endswith("TensorBoard shows the folder that the recipe writes its events to")
    assert len(left(services=old)) == 1
    (said,) = left(services={"b": {"type": "jupyter_lab", "nodes": "2"}})
    assert said == "services.b.nodes 2: services run on the first machine, or on all"


def test_place_gets_no_secrets_and_no_unreplaced_variables() -> None:
    planted = {"HF_TOKEN": "planted", "A": "https://me:planted@host", "B": "--password planted", "C": "${{inputs.x}}"}
    planted |= {"not a name": "planted"}
    found = keys(environment_variables={**planted, "OMP_NUM_THREADS": 4})
    assert found == {"environment": {"OMP_NUM_THREADS": "4"}}
    said = left(environment_variables=planted, resources={"docker_args": "-e TOKEN=planted"})
    assert len(said) == 6 and "planted" not in " ".join(said)
    assert "contains no secrets" in said[0] and "export it in the place's setup" in said[3]


@each_row(
    ("job", "said"),
    [
        ({"resources": {"shm_size": "8 GB"}}, "resources.shm_size 8 GB: no key of the place is like it"),
        ({"experiment_name": "my experiment"}, "experiment_name my experiment: no key of the place is like it"),
        ({"limits": {"timeout": "long"}}, "limits.timeout long: no key of the place is like it"),
        ({"environment": {"image": "x"}}, "environment: it has the packages of the original; here the environment"),
        ({"services": {"a": None}}, "services.a : no key of the place is like it"),
        ({"limits": 3, "services": 3, "environment_variables": 3, "inputs": 3, "outputs": 3}, None),
    ],
)
def test_value_without_place_key_is_reported(job: dict[str, Any], said: str | None) -> None:
    assert keys(**job) == {}
    assert [text.startswith(said) for text in left(**job)] == [True] if said else left(**job) == []


FOLDER = "azureml://datastores/d/paths/o"


@each_row("path", ["azureml:text:1", "azureml:text@latest", FOLDER, "https://host/a.bz2", "abfss://box@account/a"])
def test_data_of_the_workspace_is_an_input(path: str) -> None:
    (found,) = inputs("inputs", {"a": {"path": path}})
    assert found.key == "inputs" and found.value == {"a": {"path": path, "type": "uri_folder", "mode": "ro_mount"}}
    (found,) = inputs("inputs", {"a": {"path": path, "type": "uri_file", "mode": "download"}})
    assert found.value["a"] == {"path": path, "type": "uri_file", "mode": "download"}


def test_values_and_step_outputs_are_not_inputs() -> None:
    made_before = {"path": "${{parent.jobs.one.outputs.run}}"}
    given = {
        "rate": 6e-3,
        "n": {"type": "number", "default": 3},
        "b": {"type": "boolean", "value": True},
        "d": made_before,
    }
    assert not [*inputs("inputs", given)]
    (found,) = inputs("inputs", {"text": "azureml:text:1"})
    assert found.value["text"]["path"] == "azureml:text:1"


@each_row(
    ("given", "said"),
    [
        ({"path": "./hdf5/128"}, "inputs.a.path ./hdf5/128: it is not in the workspace; upload it, and add [inputs"),
        ({"path": "https://host/a?sig=planted"}, "inputs.a.path: it contains a password, a token or a query"),
        ({"path": "azureml:t:1", "type": "mltable"}, "inputs.a.type mltable: an input of a place is a folder or a"),
    ],
)
def test_unsupported_data_is_reported(given: dict[str, Any], said: str) -> None:
    (found,) = inputs("inputs", {"a": given})
    assert not found.key and found.left.startswith(said) and "planted" not in found.left


def test_unknown_input_mode_is_reported_and_data_mounted() -> None:
    mode, data = inputs("inputs", {"a": {"path": "azureml:t:1", "mode": "direct"}})
    assert mode.left.startswith("inputs.a.mode direct: data is mounted") and data.value["a"]["mode"] == "ro_mount"


def test_the_first_folder_of_a_datastore_holds_the_run_folders() -> None:
    usual = {"type": "uri_folder", "mode": "rw_mount"}
    first, second = outputs(
        "outputs", {"a": {**usual, "path": FOLDER}, "b": {**usual, "path": f"{FOLDER}2"}, "c": None}
    )
    assert (first.key, first.value) == ("output", FOLDER)
    assert (
        second.left == f"outputs.b.path {FOLDER}2: the run folder is in one folder of a datastore, which output names"
    )
    (other,) = outputs("outputs", {"a": {"path": "azureml:asset:1"}})
    assert not other.key and other.left
