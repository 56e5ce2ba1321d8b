"""Slurm: what each job of the chain asks for, and what is made of the queue's answers."""

from pathlib import Path

import pytest

from bertwright.launch.config import load_place
from bertwright.launch.job import load_job


def options(step: str, *settings: str) -> set[str]:
    """The options of sbatch in the script of a job of the chain."""
    files = load_place("slurm", "", settings).describe(load_job(Path("smoke"), [], None)).files
    return {line.split(maxsplit=1)[1] for line in files[f"{step}.sbatch"].splitlines() if line.startswith("#SBATCH")}


def test_the_last_job_has_memory_for_a_model_and_is_asked_for_by_itself() -> None:
    """What prepares has 4 GB: scores and export of a large network, with a second copy of it, need more."""
    assert {"--mem=16G", "--cpus-per-task=4", "--time=12:00:00"} <= options("finish")
    assert "--mem=16G" in options("finish", "prepare.memory=2G"), "it is not the memory of what prepares"
    own = options("finish", "finish.memory=48G", "finish.cpus=12", "finish.time=4:00:00", "prepare.partition=cpu")
    assert {"--mem=48G", "--cpus-per-task=12", "--time=4:00:00"} <= own
    assert "--mem=4G" in options("vocab", "finish.memory=48G")


@pytest.mark.parametrize(("gpus", "asked"), [(0, False), (4, True)])
def test_the_last_job_runs_where_training_does(gpus: int, asked: bool) -> None:
    said = options("finish", f"gpus={gpus}", "partition=large", "prepare.partition=cpu")
    assert "--partition=large" in said and ("--gpus-per-node=1" in said) is asked
