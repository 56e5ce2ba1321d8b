"""The commands of several ranks on one machine or several, and of one process."""

import shlex
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.launch.config import load_place
from bertwright.launch.job import load_job
from bertwright.launch.target import Description

RUN = ["runs/smoke/launch/recipe.toml", "--out", "runs/smoke"]


def described(target: str, *settings: str) -> Description:
    return load_place(target, "", settings).describe(load_job(Path("smoke"), [], None))


def test_one_machine_prepares_trains_with_all_ranks_and_finishes() -> None:
    made = described("torchrun", "ranks=4", "restarts=2")
    prepare, train, finish = map(shlex.split, made.commands)
    assert prepare == ["bertwright", "run", *RUN, "--until", "examples"] and finish == ["bertwright", "run", *RUN]
    options = ["--standalone", "--nproc-per-node", "4", "--max-restarts", "2"]
    assert train == ["torchrun", *options, "-m", "bertwright.cli", "train", *RUN]
    assert set(made.files) == {"recipe.toml"} and not made.note


def test_several_machines_each_get_the_command_that_trains() -> None:
    made = described("torchrun", "nodes=3", "ranks=4", 'rendezvous="node1:29500"')
    (train,) = map(shlex.split, made.commands)
    where = ["--nnodes", "3", "--rdzv-backend", "c10d", "--rdzv-endpoint", "node1:29500", "--rdzv-id", "smoke"]
    assert train[1:] == [
        *where,
        *("--nproc-per-node", "4", "--max-restarts", "3", "-m", "bertwright.cli", "train"),
        *RUN,
    ]
    assert "3 machines" in made.note and f"bertwright run {' '.join(RUN)} --until examples" in made.note
    assert made.note.endswith(f"bertwright run {' '.join(RUN)}"), "for scores and export"


@each_row("rendezvous", ["node1", "node1:", ":29500", "no de:1", "node1:a", "a:b:1"])
def test_a_rendezvous_is_a_name_and_a_port(rendezvous: str) -> None:
    for nodes in (1, 2):
        with pytest.raises(RecipeError, match="rendezvous"):
            load_place("torchrun", "", [f"nodes={nodes}", f'rendezvous="{rendezvous}"'])


@each_row("target", ["local", "torchrun"])
def test_variables_are_set_before_the_commands(target: str) -> None:
    (first, second, *_) = described(target, 'environment={A="1 2", B="it\'s"}').commands
    assert shlex.split(first) == ["export", "A=1 2"] and shlex.split(second) == ["export", "B=it's"]


def test_one_process_runs_everything() -> None:
    assert described("local").commands == [f"bertwright run {' '.join(RUN)}"]
