"""The commands that are printed, read by the programs that they are for: each knows every option, and its value."""

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.launch.config import load_place
from bertwright.launch.container import SCRIPT
from bertwright.launch.job import load_job
from bertwright.launch.skypilot import TASK
from bertwright.launch.target import DescribedOnly

SKY = """
import json, sys
import click, sky
from sky.client.cli.command import cli

def read(words):
    command, context = cli, None
    while isinstance(command, click.Group):
        context = command.make_context(words[0], list(words[1:]), parent=context)
        name, command, rest = command.resolve_command(context, list(words[1:]))
        words = [name, *rest]
    return command.make_context(words[0], words[1:], parent=context).params

tasks, commands = json.load(sys.stdin)
for task in tasks:
    loaded = sky.Task.from_yaml(task)
    print(json.dumps([loaded.name, loaded.run, [str(each) for each in loaded.resources]]))
for words in commands:
    read(words)
try:
    read(["sky", "jobs", "cancel", "--called", "smoke"])
except click.UsageError as error:
    print(json.dumps(str(error)))
"""
"""What a task and a command are to SkyPilot, in an interpreter that has it; no server is asked."""


def installed(program: str, package: str) -> str:
    if (path := shutil.which(program)) is None:
        pytest.skip(f"{program} is not installed: {package}")
    return path


def printed(target: str, *settings: str, overrides: tuple[str, ...] = ()) -> list[str]:
    """All commands that the target prints, those that look after jobs among them."""
    place, job = load_place(target, "", settings), load_job(Path("smoke"), overrides, None)
    assert isinstance(place, DescribedOnly)
    return [*place.describe(job).commands, *place.monitoring_commands(job).values()]


def helped(command: list[str]) -> subprocess.CompletedProcess[str]:
    """With --help nothing is done, but all options are read first."""
    return subprocess.run(command, capture_output=True, text=True, check=False)


@each_row("settings", [(), ("namespace=berts", "gpus=8", "nodes=2")])
def test_kubectl_knows_every_option(settings: tuple[str, ...]) -> None:
    installed("kubectl", "see kubernetes.io/docs/tasks/tools")
    commands = printed("kubeflow", *settings)
    assert len(commands) == 9
    for command in commands:
        done = helped([*shlex.split(command), "--help"])
        assert done.returncode == 0, f"{command}: {done.stderr}"
    assert "unknown flag" in helped(["kubectl", "wait", "--until=done", "--help"]).stderr


@each_row("program", ["docker", "podman"])
@each_row(
    ("settings", "code"),
    [
        ((), 0),
        (("gpus=all", "ranks=8", "shm_size=64g", 'mounts={"/data/128"="~/hdf5 of 128"}'), 0),
        (("gpus=0,1", "network=none", "shell=true", 'environment={A="b c"}', 'options=["--memory=64g"]'), 0),
        (('options=["--memry=64g"]',), 125),
    ],
)
def test_docker_and_podman_know_every_option(
    program: str, settings: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    installed(program, f"apt-get install {'docker.io' if program == 'docker' else 'podman'}")
    place = load_place("container", "", [f"program={program}", *settings])
    script = place.describe(load_job(Path("smoke"), [], None)).files[SCRIPT]
    told = script.replace(f"exec {program} run", f"exec {program} run --help")
    done = subprocess.run(["sh", "-c", told], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert (told != script and "--shm-size" in done.stdout) or code


@pytest.mark.slow
def test_skypilot_takes_the_tasks_and_knows_every_option(tmp_path: Path) -> None:
    program = installed("sky", "uv tool install skypilot")
    python = Path(program).resolve().read_text(encoding="utf-8").partition("\n")[0].removeprefix("#!")
    spot = ("accelerators=H100:8", "cloud=azure", "spot=true", 'environment={NCCL_DEBUG="INFO"}')
    commands = [*printed("skypilot"), *printed("skypilot", *spot, overrides=("train.mirror=s3://berts/smoke",))]
    tasks = []
    for number, settings in enumerate([(), spot]):
        description = load_place("skypilot", "", settings).describe(
            load_job(Path("smoke"), ("train.mirror=s3://berts/smoke",), None)
        )
        for name, text in description.files.items():
            file = tmp_path / str(number) / "runs" / "smoke" / "launch" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace("./runs", f"{tmp_path}/{number}/runs"), encoding="utf-8")
        tasks.append(str(tmp_path / str(number) / "runs" / "smoke" / "launch" / TASK))
    done = subprocess.run(
        [python, "-c", SKY],
        input=json.dumps([tasks, [shlex.split(command) for command in commands]]),
        env={**os.environ, "HOME": str(tmp_path), "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    plain, rented, refused = map(json.loads, done.stdout.splitlines())
    assert plain[0] == rented[0] == "smoke" and "torchrun" in rented[1] and "torchrun" not in plain[1]
    assert "H100" in rented[2][0] and "[Spot]" in rented[2][0]
    assert "--called" in refused
