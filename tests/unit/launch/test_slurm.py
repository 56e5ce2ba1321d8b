"""Slurm: what each job of the chain asks for, and what is made of the queue's answers."""

import subprocess
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.launch.config import load_place
from bertwright.launch.job import load_job
from bertwright.launch.slurm.place import seconds_of


def text_of(step: str, *settings: str) -> str:
    """The script of a job of the chain."""
    files = load_place("slurm", "", settings).describe(load_job(Path("smoke"), [], None)).files
    return files[f"{step}.sbatch"]


def options(step: str, *settings: str) -> set[str]:
    """The options of sbatch in it."""
    return {line.split(maxsplit=1)[1] for line in text_of(step, *settings).splitlines() if line.startswith("#SBATCH")}


def test_the_last_job_requests_its_own_memory() -> None:
    """What prepares has 4 GB: scores and export of a large network, with a second copy of it, need more."""
    assert {"--mem=16G", "--cpus-per-task=4", "--time=12:00:00"} <= options("finish")
    assert "--mem=16G" in options("finish", "prepare.memory=2G"), "it is not the memory of what prepares"
    own = options("finish", "finish.memory=48G", "finish.cpus=12", "finish.time=4:00:00", "prepare.partition=cpu")
    assert {"--mem=48G", "--cpus-per-task=12", "--time=4:00:00"} <= own
    assert "--mem=4G" in options("vocab", "finish.memory=48G")


@each_row(("gpus", "asked"), [(0, False), (4, True)])
def test_the_last_job_runs_where_training_does(gpus: int, asked: bool) -> None:
    said = options("finish", f"gpus={gpus}", "partition=large", "prepare.partition=cpu")
    assert "--partition=large" in said and ("--gpus-per-node=1" in said) is asked


@each_row(
    ("srun", "container"),
    [
        ('"--container-image=x", "--mpi=none"', "--container-image=x"),
        ('"--mpi", "none", "--container-image", "x", "-l"', "--container-image x"),
        ('"--no-container-mount-home", "-D", "/x", "--container=/b"', "--no-container-mount-home --container=/b"),
    ],
)
def test_single_process_jobs_get_cpus_and_the_container(srun: str, container: str) -> None:
    """`srun` takes neither from its job: it would bind the process to one processor, on the bare node."""
    settings = ("prepare.cpus=8", "prepare.tasks=2", "finish.cpus=3", f"srun=[{srun}]")
    for step, cpus in (("corpus", 8), ("vocab", 8), ("examples", 8), ("finish", 3)):
        (line,) = (line for line in text_of(step, *settings).splitlines() if line.startswith("srun "))
        assert f" --ntasks=1 --cpus-per-task={cpus} {container} bertwright " in line


@each_row(
    ("time", "seconds"),
    [
        ("90", 5400),
        ("2:00", 120),
        ("12:00:00", 43200),
        ("1-0", 86400),
        ("2-12:30", 217800),
        ("0-00:02:00", 120),
        ("0", 0),
        ("0:00:00", 0),
    ],
)
def test_a_time_limit_is_as_long_as_slurm_reads_it(time: str, seconds: int) -> None:
    assert seconds_of(time) == seconds


@each_row("key", ["time", "prepare.time", "finish.time"])
def test_a_job_stopped_as_soon_as_it_starts_is_refused(key: str) -> None:
    """It would be started again for ever: "2:00" is two minutes, though hours may be meant."""
    with pytest.raises(RecipeError) as caught:
        text_of("train", f'{key}="2:00"')
    assert f'{key} = "2:00" is 120 seconds, but jobs receive the stop signal 120 seconds (warning) before' in str(
        caught.value
    )
    assert '"2" and "2:00" as minutes, "2:00:00" as hours' in str(caught.value)
    for other in ("warning=60", f'{key}="2:01"', f'{key}="0"', f'{key}="2:00:00"'):
        assert text_of("train", f'{key}="2:00"', other)


@each_row(
    ("step", "code", "restarts", "again"),
    [
        *(("vocab", 75, 2, True), ("vocab", 75, 3, False), ("finish", 75, 3, False), ("train", 75, 99, True)),
        *(("train", code, restarts, restarts < 3) for code in (6, 134, 137) for restarts in (2, 3)),
        *(("train", code, 0, False) for code in (1, 2, 3)),
    ],
)
def test_what_begins_again_does_so_only_so_often(
    step: str, code: int, restarts: int, again: bool, tmp_path: Path
) -> None:
    """With a time limit below what it takes it would begin again for ever; training goes on from where it stopped. A
    rank that NCCL aborts, because it has lost another, ends with 134."""
    programs = {"srun": f"exit {code}", "scontrol": 'echo "$@" > requeued', "hostname": "echo here"}
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": str(restarts)}
    text = text_of(step, "restarts=3", "prepare.tasks=2")
    assert subprocess.run(["bash", "-c", text], env=environment, cwd=tmp_path).returncode == code
    assert (tmp_path / "requeued").exists() is again


@each_row("step", ["corpus", "vocab", "examples", "train", "finish"])
def test_processes_have_the_environment_of_the_script(step: str) -> None:
    """With SBATCH_EXPORT=NONE, srun would start them without the address of the first rank, and without PATH."""
    (line,) = (line for line in text_of(step, "prepare.tasks=2").splitlines() if line.startswith("srun "))
    assert "--export=ALL" in line.split()
