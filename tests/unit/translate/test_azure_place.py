"""Which keys of a place a job file states, and which keys of the recipe read its data."""

from typing import Any

from tests.rows import each_row

from bertwright.translate.place import azure_keys, needs_machine, unheld
from bertwright.translate.statement import Statement

DATA = {"type": "uri_folder", "mode": "ro_mount"}


def given(label: str, path: str) -> Statement:
    return Statement(f"inputs.{label} {path}", "inputs", {label: {"path": path, **DATA}})


def read(recipe: dict[str, Any], *stated: Statement) -> dict[str, Any]:
    keys = azure_keys(stated, recipe)
    return keys["inputs"].value if keys else {}


@each_row(
    ("text", "below"),
    [
        ("azureml:text:1", None),
        ("azureml:text:1/128", "128"),
        ("azureml:text:1/a/*.bz2", "a/*.bz2"),
        ("azureml:text:12", ""),
        ("text", ""),
    ],
)
def test_data_is_read_by_the_key_that_has_its_path_or_one_below_it(text: str, below: str | None) -> None:
    wanted = {"key": "corpus.source.0.path", "path": "azureml:text:1", **DATA, **({"below": below} if below else {})}
    recipe = {"corpus": {"source": [{"path": text, "lines": "sentences"}], "shards": 3}}
    assert read(recipe, given("text", "azureml:text:1")) == ({} if below == "" else {"text": wanted})
    left = [*unheld([given("text", "azureml:text:1")], recipe)]
    assert left == (["inputs.text azureml:text:1: nothing in the recipe reads it"] if below == "" else [])


def test_each_key_that_reads_data_has_an_input_of_its_own_name() -> None:
    recipe = {"train": {"phases": [{"data": "azureml:a:1/128"}, {"data": "azureml:a:1/512"}, {"data": "azureml:b:1"}]}}
    a, b = given("text", "azureml:a:1"), given("text", "azureml:b:1")
    made = read(recipe, a, b, a)
    assert {name: (each["key"][-6], each.get("below")) for name, each in made.items()} == {
        "text": ("0", "128"),
        "text_2": ("1", "512"),
        "text_3": ("2", None),
    }


def test_of_several_values_the_last_counts_and_placeholders_and_reasons_are_no_values() -> None:
    stated = [Statement("a", "compute", "one"), Statement("b", "compute", "two"), Statement("c", "vm_size", None)]
    keys = azure_keys([*stated, Statement("code src", why="no place has it")], {})
    assert {name: (key.value, key.why) for name, key in keys.items()} == {"compute": ("two", "b")}
    assert not needs_machine(stated) and needs_machine(stated[2:]) and needs_machine([])
