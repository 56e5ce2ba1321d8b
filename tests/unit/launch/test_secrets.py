"""Every text of a place or a recipe is looked at for secrets, wherever it stands."""

from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.launch.azureml.assets import Input
from bertwright.launch.config import load_place
from bertwright.launch.job import load_job, secrets

SIGNED = '"https://account.example.org/a?sv=1&sig=planted"'
TOKEN = "hf_" + "planted1" * 4
REFUSED = "but job descriptions must not contain secrets. Remove it, and set"


def test_a_secret_may_be_the_next_text_of_the_same_list_only() -> None:
    """`--token` and its value are two words there; texts of different keys have nothing to do with each other."""
    assert [key for key, _ in secrets({"options": ["run", "--token", "planted"]})] == ["options.2"]
    assert list(secrets({"options": ["run", "--token"], "words": ["planted"]})) == []
    assert list(secrets({"a": "--token", "b": "planted"})) == []
    assert list(secrets({"one": {"0": "--token"}, "two": {"0": "planted"}})) == []


def test_every_secret_is_found_and_none_is_shown() -> None:
    found = list(secrets({"a": ["--api-key=planted"], "b": {"c": "https://host/x?sig=planted"}}))
    assert [key for key, _ in found] == ["a.0", "b.c"]
    assert not any("planted" in text for _, text in found)


@each_row(
    ("target", "setting", "key"),
    [
        # Values that are wrong besides: the sentence about that would cite them.
        ("azureml", f'inputs.x={{key="corpus.source",path={SIGNED}}}', "inputs.x.path"),
        ("azureml", f"data.x.path={SIGNED}", "data.x.path"),
        ("azureml", f"output={SIGNED}", "output"),
        ("azureml", f"image.registered={SIGNED}", "image.registered"),
        ("torchrun", f"rendezvous={SIGNED}", "rendezvous"),
        ("slurm", 'setup="export HF_TOKEN=planted"', "setup"),
        ("slurm", 'environment="HF_TOKEN=planted"', "environment"),
        ("slurm", 'environment=["HF_TOKEN=planted"]', "environment.0"),
        ("slurm", f"no_such_key={SIGNED}", "no_such_key"),
        # Values that are valid.
        ("slurm", f'environment={{X="{TOKEN}"}}', "environment.X"),
        ("slurm", 'setup=["az login --service-principal -u app -p planted"]', "setup.0"),
        ("slurm", 'setup=["module load cuda", "docker login -u me -p planted"]', "setup.1"),
        ("slurm", 'setup=["curl -u me:planted https://host/a -o a"]', "setup.0"),
        ("kubeflow", "image=me:planted@registry.example.org/bert", "image"),
        ("container", f'options=["--env=X={TOKEN}"]', "options.0"),
        ("container", 'options=["--init", "curl", "-u", "me:planted"]', "options.3"),
        ("azureml", 'overrides=["train.mirror=az://box/a?sig=planted"]', "overrides.0"),
    ],
)
def test_a_refused_secret_is_not_shown(target: str, setting: str, key: str) -> None:
    with pytest.raises(RecipeError) as caught:
        load_place(target, "", [setting])
    said = str(caught.value)
    assert said.startswith(f"command line: {key} holds ") and REFUSED in said and "planted" not in said


@each_row("value", ['["planted"]', '{a="planted"}', "5"])
def test_a_secret_variable_whose_value_is_wrong_is_not_shown(value: str) -> None:
    with pytest.raises(RecipeError) as caught:
        load_place("slurm", "", [f"environment={{HF_TOKEN={value}}}"])
    assert str(caught.value).startswith("command line: environment: HF_TOKEN is a secret according to its name")
    assert "planted" not in str(caught.value)


def test_all_secrets_are_listed_with_their_lines(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(f'kind = "slurm"\ntime = 5\nqos = {SIGNED}\n[environment]\nA = "{TOKEN}"\n')
    with pytest.raises(RecipeError) as caught:
        load_place("slurm", str(tmp_path / "mine.toml"))
    first, second = str(caught.value).splitlines()
    assert f"mine.toml:3: qos holds an address with a password, a token or a query, {REFUSED}" in first
    assert f"mine.toml:5: environment.A holds a token, known by its form, {REFUSED}" in second


def test_a_secret_in_an_invalid_recipe_is_not_shown() -> None:
    for override in (f"corpus.language={SIGNED}", f"train.seed={SIGNED}", f"train.phases.0.data={SIGNED}"):
        with pytest.raises(RecipeError) as caught:
            load_job(Path("smoke"), [override], None)
        assert REFUSED in str(caught.value) and "planted" not in str(caught.value)


def test_a_secret_in_an_invalid_section_is_not_shown() -> None:
    with pytest.raises(RecipeError, match="is a secret, and job descriptions must not contain secrets") as caught:
        Input(key="corpus.source", path=SIGNED.strip('"'))
    assert "planted" not in str(caught.value)
