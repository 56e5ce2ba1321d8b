"""Inputs and outputs of a job file of Azure ML: which are data of a place, and which are left."""

from typing import Any

from tests.rows import each_row

from bertwright.translate.azure_machine import inputs, outputs

FOLDER = "azureml://datastores/d/paths/o"


@each_row("path", ["azureml:text:1", "azureml:text@latest", FOLDER, "https://host/a.bz2", "abfss://box@account/a"])
def test_data_of_the_workspace_is_an_input(path: str) -> None:
    (found,) = inputs("inputs", {"a": {"path": path}})
    assert found.key == "inputs" and found.value == {"a": {"path": path, "type": "uri_folder", "mode": "ro_mount"}}
    (found,) = inputs("inputs", {"a": {"path": path, "type": "uri_file", "mode": "download"}})
    assert found.value["a"] == {"path": path, "type": "uri_file", "mode": "download"}


def test_values_are_in_the_command_already_and_what_a_step_makes_is_made_here() -> None:
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
def test_other_data_is_left(given: dict[str, Any], said: str) -> None:
    (found,) = inputs("inputs", {"a": given})
    assert not found.key and found.left.startswith(said) and "planted" not in found.left


def test_a_mode_that_no_input_has_is_left_and_the_data_is_mounted() -> None:
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
