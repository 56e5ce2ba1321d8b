"""Every target: its submission is text without machine details or secrets, and can be described without the network
and the target's packages."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bertwright import Recipe
from bertwright.core.errors import RecipeError
from bertwright.core.section_fields import described_fields as fields_of
from bertwright.launch.config import TARGETS, load_place
from bertwright.launch.job import FOLDER, RECIPE, load_job
from bertwright.launch.target import DescribedOnly, Scheduler, Submitter, Target, describe

EXAMPLES: dict[str, tuple[str, ...]] = {
    "local": (),
    "torchrun": ("nodes=2", 'rendezvous="node1:29500"'),
    "slurm": ("nodes=2", "gpus=8", 'environment={NCCL_DEBUG="INFO"}'),
    "azureml": ("nodes=2", "vm_size=Standard_ND96asr_v4", 'environment={NCCL_DEBUG="INFO"}'),
    "container": ("gpus=0,1", "ranks=2", 'mounts={"/data/128"="~/hdf5/128"}'),
    "kubeflow": ("nodes=2", "gpus=8", 'environment={NCCL_DEBUG="INFO"}'),
    "skypilot": ("accelerators=H100:8", "cloud=azure", 'environment={NCCL_DEBUG="INFO"}'),
}
"""Non-default settings of targets."""
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "azureml": ('inputs.dump={key="corpus.source",path="azureml:dump:1",type="uri_file"}',),
    "kubeflow": (),
    "skypilot": (),
}
"""Targets that cannot see a file of this machine, each with settings that give another in its place, if it has any."""
PACKAGES: dict[str, tuple[str, ...]] = {"azureml": ("azure.ai.ml", "azure.identity")}
"""Packages of each target; only submitting may import them."""
each_target = pytest.mark.parametrize("name", TARGETS)


def example(name: str) -> Target:
    return load_place(name, "", EXAMPLES.get(name, ()))


def described(name: str) -> str:
    job = load_job(Path("smoke"), ["train.seed=7"], None)
    description = example(name).describe(job)
    return "\n".join([*description.files.values(), *description.commands, description.note])


@each_target
def test_it_keeps_its_protocol_and_says_what_each_key_means(name: str) -> None:
    place: Any = example(name)
    assert isinstance(place, Target) and place.kind == name
    assert not [key for key, field in fields_of(type(place)).items() if not field.description]


@each_target
def test_the_recipe_is_there_in_full(name: str, tmp_path: Path) -> None:
    job = load_job(Path("smoke"), ["train.seed=7"], None)
    files = example(name).describe(job).files
    assert RECIPE in files, "every job has the recipe beside it"
    (tmp_path / RECIPE).write_text(files[RECIPE], encoding="utf-8")
    assert Recipe.load(tmp_path / RECIPE) == Recipe.load("smoke", ["train.seed=7"])


@each_target
def test_nothing_of_this_machine_is_in_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of the recipe stand there as its user named them, also those that are on this machine."""
    monkeypatch.chdir(tmp_path)
    Path("vocab.txt").write_text("[PAD]\n" * 200)
    (tmp_path / "data").mkdir()
    named = ["corpus.source=~/x.xml.bz2", "vocab.size=", "vocab.file=vocab.txt", "train.phases.0.data=data"]
    description = describe(example(name), load_job(Path("smoke"), named, None))
    text = "\n".join([*description.files.values(), *description.commands, description.note])
    for ours in (tmp_path, Path.home(), sys.prefix, Path(__file__).parents[2], os.uname().nodename):
        assert str(ours) not in text
    assert all(path in text for path in ("~/x.xml.bz2", "vocab.txt", "data"))


@each_target
def test_a_file_of_this_machine_is_submitted_only_where_it_may_be_seen(name: str, tmp_path: Path) -> None:
    """The one exception: an absolute path that the user gives. Where the place has its own, this one is not said."""
    job = load_job(Path("smoke"), [f"corpus.source={tmp_path}/x.xml.bz2"], None)
    described = describe(example(name), job)
    assert bool(described.refusal) is (name in ELSEWHERE)
    assert str(tmp_path) in described.refusal or not described.refusal
    if ELSEWHERE.get(name):
        given = describe(load_place(name, "", [*EXAMPLES[name], *ELSEWHERE[name]]), job)
        assert str(tmp_path) not in "\n".join([*given.files.values(), *given.commands, given.note, given.refusal])


@each_target
def test_no_secret_gets_in(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted-in-the-environment")
    assert "planted" not in described(name)
    if "environment" in fields_of(TARGETS[name]):
        with pytest.raises(RecipeError, match=r"WANDB_API_KEY is a secret according to its name"):
            load_place(name, "", [*EXAMPLES.get(name, ()), 'environment={WANDB_API_KEY="planted"}'])
    for source in ("https://me:planted@example.org/a.bz2", "az://box/a.bz2?sig=planted"):
        with pytest.raises(RecipeError, match=r"corpus\.source holds an address with a password, a token") as caught:
            load_job(Path("smoke"), [f"corpus.source={source}"], None)
        assert "planted" not in str(caught.value)


@each_target
def test_it_is_the_same_each_time(name: str) -> None:
    assert described(name) == described(name)


@each_target
def test_a_mistake_has_its_line_and_the_nearest_key(name: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(f'kind = "{name}"\n\noverides = ["train.seed=1"]\n')
    with pytest.raises(
        RecipeError, match=r"mine\.toml:3: overides: unknown key 'overides'; did you mean 'overrides'\?"
    ):
        load_place(name, str(tmp_path / "mine.toml"))


@each_target
def test_what_its_machines_ask_for_is_in_the_recipe(name: str) -> None:
    place = load_place(name, "", [*EXAMPLES.get(name, ()), 'overrides=["train.seed=5"]'])
    assert place.overrides == ("train.seed=5",)


DESCRIBED = """
import json, socket, sys
class Refused(socket.socket):
    def __init__(self, *a, **k): raise AssertionError("a socket was opened")
socket.socket = Refused
commands, refused = json.loads(sys.argv[1])
sys.modules.update(dict.fromkeys(refused))
from bertwright.cli.app import app
for words in commands:
    print(*words, file=sys.stderr)
    app(words, standalone_mode=False)
    print("<end>")
"""


def test_they_are_described_without_network_and_package(tmp_path: Path) -> None:
    """In a process where opening sockets and importing torch or any target's packages fails."""
    settings = {name: [word for setting in EXAMPLES.get(name, ()) for word in ("--set", setting)] for name in TARGETS}
    commands = [["launch", name, "smoke", *settings[name], "--json"] for name in TARGETS]
    of_targets = [package for packages in PACKAGES.values() for package in packages]
    refused = ["torch", "numpy", "azure", "skypilot", "sky", "kubernetes", *of_targets]
    command = [sys.executable, "-c", DESCRIBED, json.dumps([commands, refused])]
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    *described, rest = done.stdout.split("<end>\n")
    assert not rest
    for name, text in zip(TARGETS, described, strict=True):
        facts = json.loads(text)
        assert set(facts) == {"files", "wheel", "commands", "note"} and facts["files"], name
    assert not list(tmp_path.iterdir())


@each_target
def test_what_is_run_names_the_files_that_are_there(name: str) -> None:
    job = load_job(Path("smoke"), [], None)
    description = example(name).describe(job)
    text = "\n".join([*description.files.values(), *description.commands])
    named = set(re.findall(rf"{re.escape(str(job.out))}/{FOLDER}/([\w.-]+\.(?:toml|sbatch|ya?ml|sh))", text))
    assert named <= set(description.files), named - set(description.files)


@each_target
def test_it_submits_or_says_how_its_jobs_are_looked_after(name: str) -> None:
    place = example(name)
    assert isinstance(place, Submitter) != isinstance(place, DescribedOnly)
    if isinstance(place, DescribedOnly):
        commands = place.monitoring_commands(load_job(Path("smoke"), [], None))
        assert set(commands) == {"status", "logs", "stop"} and all(map(shlex.split, commands.values()))


def test_only_a_scheduler_is_looked_after() -> None:
    kinds = {name for name in TARGETS if isinstance(example(name), Scheduler)}
    assert {"local", "torchrun", "container"}.isdisjoint(kinds) and "slurm" in kinds
