"""`az ml job create` in a script: the job file is translated in its place, or the user is told what to do."""

from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.translate.azure_cli import followed, submission, unfollowed
from bertwright.translate.shell import ShellCommand, of_script
from bertwright.translate.translation import Translation, translate

JOB = (
    "command: python run_pretraining.py --input_dir d --config_file c.json --output_dir o --do_train\n"
    "compute: <name>\ncode: src\nresources: {instance_count: 2}\n"
)


def translated(script: str, folder: Path) -> Translation:
    return translate(followed(of_script(script), folder), strict=False)


@each_row(
    ("words", "file"),
    [
        ("az ml job create --file job.yml", "job.yml"),
        ("az ml job create -f job.yml --stream", "job.yml"),
        ("az ml job create --web --file=job.yml -g group", "job.yml"),
        ("az ml job create --name a", ""),
        ("az ml environment create --file job.yml", None),
        ("az login", None),
        ("python job.yml", None),
    ],
)
def test_only_a_job_that_is_created_has_a_job_file(words: str, file: str | None) -> None:
    found = submission(tuple(words.split()))
    assert (found.file if found else None) == file


def test_a_job_file_takes_the_place_of_the_command_that_submits_it(tmp_path: Path) -> None:
    (tmp_path / "job.yml").write_text(JOB)
    script = "cd guide\n\naz ml job create --file job.yml -g group --workspace-name berts --subscription $SUBSCRIPTION"
    made = translated(f"{script} --set compute=azureml:gpus resources.instance_count=4 resources.shm_size=8g", tmp_path)
    assert made.left == ("line 1: cd",) and not made.open
    assert made.place["workspace"] == {"resource_group": "group", "name": "berts"}
    assert (made.place["compute"], made.place["nodes"], made.place["shm_size"]) == ("gpus", 4, "8g")
    _, command = followed(of_script(script), tmp_path)
    assert command.line == 3 and command.folder == tmp_path / "src"


def test_a_value_is_set_also_where_the_file_has_no_section(tmp_path: Path) -> None:
    (tmp_path / "job.yml").write_text(JOB)
    made = translated("az ml job create -f job.yml --set limits.timeout=60 environment_variables.A=b=c", tmp_path)
    assert made.place["timeout"] == 60 and made.place["environment"] == {"A": "b=c"}
    assert "workspace" not in made.place


@each_row(
    ("line", "said"),
    [
        ("az ml job create --file none.yml", "line 2: az ml job create: there is no file none.yml here"),
        ("az ml job create --stream", "line 2: az ml job create: it names no file (--file)"),
    ],
)
def test_a_job_file_that_is_not_here_is_left_to_the_user(line: str, said: str, tmp_path: Path) -> None:
    training = JOB.splitlines()[0].removeprefix("command: ")
    made = translated(f"{training}\n{line}\n", tmp_path)
    assert made.open[0].startswith(said) and made.open[0].endswith("bertwright translate --script FILE.yml.")
    assert made.left == ("line 2: az",)
    with pytest.raises(RecipeError) as error:
        translated(f"\n{line}", tmp_path)
    assert str(error.value).startswith(said), "nothing else is translated"
    assert unfollowed(ShellCommand(("az", "login"), {}, 1)) == ""


def test_a_file_that_is_no_job_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    for text, said in (("- a", "this is not a job file"), ("a: [", "this is not YAML")):
        (tmp_path / "job.yml").write_text(text)
        with pytest.raises(RecipeError, match=f"line 1: job.yml: {said}"):
            followed(of_script("az ml job create -f job.yml"), tmp_path)
    (tmp_path / "job.yml").write_bytes(b"\xff")
    with pytest.raises(RecipeError, match=r"line 1: job.yml: .*decode"):
        followed(of_script("az ml job create -f job.yml"), tmp_path)
