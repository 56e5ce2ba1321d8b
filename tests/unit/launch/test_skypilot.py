"""What SkyPilot is given: the machine, what is installed on it, what it runs, and the commands that look after it."""

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.launch.config import load_place
from bertwright.launch.job import Job, load_job
from bertwright.launch.skypilot import SkypilotPlace
from bertwright.launch.wheel import WHEEL

MIRROR = "train.mirror=s3://b/f"


def place(*settings: str) -> SkypilotPlace:
    loaded = load_place("skypilot", "", settings)
    assert isinstance(loaded, SkypilotPlace)
    return loaded


def job(*overrides: str) -> Job:
    return load_job(Path("smoke"), overrides, None)


def task(*settings: str, overrides: tuple[str, ...] = ()) -> Any:
    return yaml.safe_load(place(*settings).describe(job(*overrides)).files["task.yaml"])


def test_the_machine_has_exactly_the_requested_resources() -> None:
    assert task()["resources"] == {"cpus": "8+", "memory": "32+", "disk_size": 256}
    asked = ("accelerators=H100:8", "cloud=aws/us-east-1", "spot=true", 'cpus="64"', "memory=512+", "disk=500")
    assert task(*asked, overrides=(MIRROR,))["resources"] == {
        "cpus": "64",
        "memory": "512+",
        "disk_size": 500,
        "accelerators": "H100:8",
        "infra": "aws/us-east-1",
        "use_spot": True,
    }


@each_row(("accelerators", "ranks"), [("", 1), ("L4:1", 1), ("H100:8", 8)])
def test_a_gpu_is_a_rank_and_one_rank_needs_no_torchrun(accelerators: str, ranks: int) -> None:
    first, enter, *commands = task(f'accelerators="{accelerators}"', "restarts=5")["run"].splitlines()
    assert first == "set -e" and enter.endswith("bertwright/bin/activate")
    whole = "bertwright run runs/smoke/launch/recipe.toml --out runs/smoke"
    if ranks == 1:
        assert commands == [whole]
    else:
        prepare, train, finish = map(shlex.split, commands)
        assert prepare == [*shlex.split(whole), "--until", "examples"] and finish == shlex.split(whole)
        assert train[:6] == ["torchrun", "--standalone", "--nproc-per-node", "8", "--max-restarts", "5"]


def test_this_version_is_installed_with_what_the_recipe_needs() -> None:
    assert f"'runs/smoke/launch/{WHEEL}[azure,formats,hf,s3]'" in task()["setup"]
    assert "[azure,formats,hf,s3,sentencepiece]" in task(overrides=('vocab.trainer.kind="sentencepiece"',))["setup"]


def test_python_is_installed_rather_than_the_machines(tmp_path: Path) -> None:
    """SkyPilot starts in ~/sky_workdir, and has its uv in ~/.local/bin; `run` activates what is in the home folder."""
    home, programs = tmp_path / "home", tmp_path / "home/.local/bin"
    for folder in (programs, home / "sky_workdir"):
        folder.mkdir(parents=True)
    said = '#!/bin/sh\necho "$PWD $*" >> "$HOME/said"\n'
    for name, text in {"python3": "#!/bin/sh\nexit 1\n", "pip": "#!/bin/sh\nexit 1\n", "uv": said}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    environment = {"HOME": str(home), "PATH": f"{programs}:/usr/bin:/bin"}
    for _ in range(2):  # a cluster that is launched again is set up again
        subprocess.run(["bash", "-c", task()["setup"]], env=environment, cwd=home / "sky_workdir", check=True)
    made, installed = (home / "said").read_text().splitlines()[:2]
    assert made == f"{home} venv --allow-existing --python 3.12 bertwright"
    assert installed.startswith(f"{home} pip install --python bertwright/bin/python runs/smoke/launch/{WHEEL}[")
    assert 'cd "$HOME" && . bertwright/bin/activate' in task()["run"]


def test_recipe_and_wheel_are_copied() -> None:
    found = task('environment={A="1"}')
    sent = {f"runs/smoke/launch/{name}" for name in ("recipe.toml", WHEEL)}
    assert found["file_mounts"] == {f"~/{path}": f"./{path}" for path in sent}
    assert found["envs"] == {"A": "1"} and found["name"] == "smoke"


def test_a_spot_machine_is_a_managed_job_and_another_a_cluster() -> None:
    """A managed job begins again on another machine; its machine is given back without being asked."""
    cluster, spot = place(), place("spot=true")
    (command,) = cluster.describe(job()).commands
    assert shlex.split(command) == ["sky", "launch", "--cluster", "smoke", "runs/smoke/launch/task.yaml"]
    (command,) = spot.describe(job(MIRROR)).commands
    assert shlex.split(command) == ["sky", "jobs", "launch", "runs/smoke/launch/task.yaml"]
    assert cluster.monitoring_commands(job()) == {
        "status": "sky queue smoke",
        "logs": "sky logs smoke",
        "stop": "sky cancel --all smoke",
    }
    assert spot.monitoring_commands(job(MIRROR)) == {
        "status": "sky jobs queue",
        "logs": "sky jobs logs --name smoke",
        "stop": "sky jobs cancel --name smoke",
    }
    assert "sky down smoke" in cluster.describe(job()).note
    assert "sky down" not in spot.describe(job(MIRROR)).note and "train.mirror" in spot.describe(job(MIRROR)).note


@each_row("mirror", ["", "file:///scratch/run", "gs://bucket/run"])
def test_a_spot_machine_without_a_mirror_is_refused(mirror: str) -> None:
    """The task installs packages for s3:// and az:// alone."""
    with pytest.raises(RecipeError, match="Set train.mirror=s3://BUCKET/FOLDER or az://CONTAINER/FOLDER, or remove"):
        place("spot=true").describe(job(*([f"train.mirror={mirror}"] if mirror else [])))
    assert place("spot=true").describe(job("train.mirror=az://box/run"))
