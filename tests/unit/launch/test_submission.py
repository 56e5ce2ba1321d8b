"""A second submission of a run: refused while the first one is alive. The queue's answers are those of a real one."""

import json
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from bertwright.core.errors import RecipeError
from bertwright.core.log import SILENT, Silent
from bertwright.launch.config import load_place
from bertwright.launch.job import load_job
from bertwright.launch.kubeflow import INSIDE
from bertwright.launch.target import Scheduler, describe, read_submission, submit
from bertwright.launch.wheel import WHEEL


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What squeue says of each job, in a folder with an sbatch that takes everything."""
    said = tmp_path / "said"
    for name, text in {"squeue": f"cat {said}", "sbatch": "echo 7"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    return said


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "COMPLETING", "REQUEUED"])
def test_a_run_whose_jobs_wait_or_run_is_not_submitted_again(queue: Path, state: str) -> None:
    slurm, job = load_place("slurm", "", ["prepare.tasks=1"]), load_job(Path("smoke"), [], None)
    submit(slurm, job, SILENT)
    queue.write_text(f"7|{state}|None|n1\n")
    other = load_job(Path("smoke"), ["train.seed=9"], None)
    with pytest.raises(RecipeError, match=r"runs/smoke is already submitted, and prepare, train, finish wait or run\."):
        submit(slurm, other, SILENT)
    assert Path("runs/smoke/launch/recipe.toml").read_text() == job.recipe, "the first one still reads its recipe"
    assert json.loads(Path("runs/smoke/launch/submitted.json").read_text())["jobs"]["train"] == "7"


@pytest.mark.parametrize("settings", [[], ["prepare.tasks=1", "folder=/shared/berts"]])
def test_what_slurm_is_given_is_what_was_described(settings: list[str], queue: Path) -> None:
    """The files, and sbatch's words, for a shell that runs the printed commands and for --submit."""
    slurm, job = load_place("slurm", "", settings), load_job(Path("smoke"), ["train.seed=3"], Path("runs/my run"))
    given, described = queue.parent / "given", describe(slurm, job)
    recorder = f"printf '%s|' \"$@\" >> {given}; echo >> {given}; grep -c . {given}"
    (queue.parent / "sbatch").write_text(f"#!/bin/sh\n{recorder}\n")
    subprocess.run(["sh", "-ec", "\n".join(described.commands)], check=True)
    by_hand = given.read_text().splitlines()
    given.unlink()
    sent = submit(slurm, job, SILENT)
    assert given.read_text().splitlines() == by_hand and len(by_hand) == len(sent.jobs) == len(described.commands)
    assert by_hand[-1].startswith(f"--parsable|--dependency=afterok:{len(by_hand) - 1}|")
    assert {path.name: path.read_text() for path in sent.folder.iterdir() if path.name != "submitted.json"} == dict(
        described.files
    )


def fails(queue: Path, said: str) -> str:
    """Have `squeue` fail with this sentence, which is returned."""
    (queue.parent / "squeue").write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    return said


def test_no_resubmission_if_the_queue_does_not_answer(queue: Path) -> None:
    """A controller that restarts says nothing of the jobs: they may run."""
    slurm, job = load_place("slurm", "", ["prepare.tasks=1"]), load_job(Path("smoke"), [], None)
    sent = submit(slurm, job, SILENT)
    assert isinstance(slurm, Scheduler)
    said = fails(queue, "slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
    for ask in (lambda: submit(slurm, job, SILENT), lambda: slurm.status(sent)):
        with pytest.raises(
            RecipeError, match=rf"^squeue: {re.escape(said)}\. It is therefore unknown whether job 7 waits"
        ):
            ask()


def test_a_job_that_the_queue_has_forgotten_is_gone(queue: Path) -> None:
    slurm, job = load_place("slurm", "", ["prepare.tasks=1"]), load_job(Path("smoke"), [], None)
    sent = submit(slurm, job, SILENT)
    assert isinstance(slurm, Scheduler)
    fails(queue, "slurm_load_jobs error: Invalid job id specified")
    (queue.parent / "sacct").write_text("#!/bin/sh\nexit 1\n")
    (queue.parent / "sacct").chmod(0o755)
    assert {row["state"] for row in slurm.status(sent)} == {"UNKNOWN"}
    assert submit(slurm, job, SILENT).jobs


def test_a_run_whose_jobs_have_ended_is_submitted_again(queue: Path) -> None:
    slurm, job = load_place("slurm", "", ["prepare.tasks=1"]), load_job(Path("smoke"), [], None)
    submit(slurm, job, SILENT)
    queue.write_text("7_0|COMPLETED|None|n1\n7_1|CANCELLED|None|n2\n")
    assert submit(slurm, job, SILENT).jobs


def test_a_submission_is_found_by_run_folder_and_target(queue: Path) -> None:
    slurm, job = load_place("slurm", "", ["prepare.tasks=1"]), load_job(Path("smoke"), [], None)
    azure = load_place("azureml", "", ["compute=cpus"])
    with pytest.raises(RecipeError, match=r"runs/smoke has no job"):
        read_submission(slurm, job)
    sent = submit(slurm, job, SILENT)
    assert read_submission(slurm, job) == sent and list(sent.jobs) == ["prepare", "train", "finish"]
    with pytest.raises(RecipeError, match=r"runs/smoke was submitted to slurm: .* of azureml"):
        read_submission(azure, job)
    with pytest.raises(RecipeError, match=r"runs/other has no job"):
        read_submission(slurm, load_job(Path("smoke"), [], Path("runs/other")))


def test_the_note_is_logged_before_submitting(queue: Path) -> None:
    ran, said = queue.parent / "ran", list[tuple[str, bool]]()
    (queue.parent / "docker").write_text(f"#!/bin/sh\ntouch {ran}\n")
    (queue.parent / "docker").chmod(0o755)

    class Heard(Silent):
        def say(self, message: str) -> None:
            said.append((message, ran.exists()))

    submit(load_place("container"), load_job(Path("smoke"), ["corpus.source=/elsewhere/x.xml.bz2"], None), Heard())
    ((note, late),) = said
    assert note.startswith("The container does not see corpus.source = /elsewhere/x.xml.bz2") and not late
    assert ran.exists()


@pytest.mark.parametrize(("target", "settings"), [("azureml", ["compute=cpus"]), ("kubeflow", []), ("skypilot", [])])
@pytest.mark.parametrize("path", ["/data/x.xml.bz2", "~/x.xml.bz2"])
def test_a_file_of_this_machine_is_not_submitted_to_another(
    target: str, settings: list[str], path: str, queue: Path
) -> None:
    """It is described with a note; submitted, the run would end at the missing file after waiting for machines."""
    place, job = load_place(target, "", settings), load_job(Path("smoke"), [f"corpus.source={path}"], None)
    assert f"corpus.source = {path}" in describe(place, job).note
    with pytest.raises(RecipeError, match=rf"corpus\.source = {path}"):
        submit(place, job, SILENT)
    assert not Path("runs").exists()


def test_what_the_place_has_is_submitted(queue: Path) -> None:
    paths = {"kubeflow": f"{INSIDE}/x.xml.bz2", "skypilot": "x.xml.bz2", "slurm": "/shared/x.xml.bz2"}
    for target, path in paths.items():
        job = load_job(Path("smoke"), [f"corpus.source={path}"], Path("runs") / target)
        assert submit(load_place(target), job, SILENT).folder.is_dir()
    inputs = 'inputs.dump={key="corpus.source",path="azureml:huwiki:1",type="uri_file"}'
    job = load_job(Path("smoke"), ["corpus.source=/data/x.xml.bz2"], None)
    assert not describe(load_place("azureml", "", ["compute=cpus", inputs]), job).refusal


@pytest.mark.parametrize(
    ("target", "settings", "path"),
    [("skypilot", [], WHEEL), ("azureml", ["compute=cpus"], f"environment/{WHEEL}"), ("container", [], "")],
)
def test_what_installs_bertwright_gets_its_wheel(
    target: str, settings: list[str], path: str, queue: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertwright.launch.azureml.client.submit", lambda *_: {})
    monkeypatch.setattr("bertwright.launch.container.run_in_order", lambda *_: None)
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/docker")
    folder = submit(load_place(target, "", settings), load_job(Path("smoke"), [], None), SILENT).folder
    wheels = [file.relative_to(folder).as_posix() for file in folder.rglob("*.whl")]
    assert wheels == ([path] if path else [])
    for wheel in wheels:
        with zipfile.ZipFile(folder / wheel) as archive:
            assert {"bertwright/__init__.py", "bertwright/recipes/smoke.toml"} <= set(archive.namelist())


def test_another_target_does_not_ask_the_queue_of_the_first(queue: Path) -> None:
    """What runs in the foreground leaves no jobs, so the note of those that wait stays."""
    slurm, job = load_place("slurm", "", ["prepare.tasks=1"]), load_job(Path("smoke"), [], None)
    submit(slurm, job, SILENT)
    queue.write_text("7|RUNNING|None|n1\n")
    assert not submit(load_place("skypilot", "", ()), job, SILENT).jobs
    assert read_submission(slurm, job).jobs["train"] == "7"
