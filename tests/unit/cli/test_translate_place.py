"""The places that `translate` writes, and the files of recipe and place together."""

import json
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from tests.reference.teachers import SPECIALS
from tests.rows import each_row
from tests.unit.cli.test_translate import COMMAND, NEEDED, call, unwrapped

from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import write_atomic
from bertwright.launch.config import load_place
from bertwright.launch.job import load_job

JOBS = Path(__file__).parents[2] / "golden" / "translate"
SERVICES = {"tensorboard", "jupyter", "vscode"}


def test_a_job_of_slurm_states_the_processes_and_the_machine(tmp_path: Path) -> None:
    place, job = tmp_path / "place.toml", tmp_path / "job.sh"
    lines = ["--nodes=4", "--ntasks-per-node=8", "-t 12:00:00", "--mem=64G", "--export=ALL,HF_TOKEN=planted"]
    job.write_text("".join(f"#SBATCH {line}\n" for line in lines) + f"srun -p gpu {NEEDED} --train_batch_size 8192\n")
    printed = call("--script", str(job), "--place", str(place))
    assert "\nbatch = 262144 " in printed and "planted" not in printed
    wanted = {"nodes": 4, "gpus": 8, "time": "12:00:00", "memory": "64G", "partition": "gpu"}
    assert load_place("slurm", str(place)).model_dump(include=set(wanted)) == wanted  # type: ignore[attr-defined]
    facts = json.loads(call("--json", "--script", "-", text=f"srun {NEEDED}"))
    assert "batch" not in facts["recipe"]["train"]["phases"][0]
    assert "bertwright launch slurm RECIPE --set gpus=NUMBER" in " ".join(facts["open"])


def test_the_place_is_a_file_of_its_own(tmp_path: Path) -> None:
    place = tmp_path / "place.toml"
    printed = call("--place", str(place), "--", "mpirun", "-n", "8", *COMMAND[1:])
    assert "ranks = 8" in place.read_text()
    assert f"bertwright launch torchrun RECIPE --place {place} --out o" in " ".join(printed.replace("#", "").split())
    with pytest.raises(RecipeError, match="trains with one process"):
        call("--place", str(tmp_path / "other.toml"), *COMMAND)
    with pytest.raises(RecipeError, match="a process for each GPU of a node, and a place needs their number"):
        call("--place", str(tmp_path / "other.toml"), "--", "deepspeed", *COMMAND[2:])


@each_row("other", ["same.toml", "./same.toml", "link/same.toml", "sub/../same.toml"])
def test_recipe_and_place_are_two_files(other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to(".")
    with pytest.raises(RecipeError, match=r"--out same\.toml and --place \S+ are the same file.* Give another name"):
        call("--out", "same.toml", "--place", other, "--", "mpirun", "-n", "8", *COMMAND[1:])
    assert not Path("same.toml").exists()


def test_recipe_and_place_are_written_both_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, place, nowhere = tmp_path / "mine.toml", tmp_path / "place.toml", tmp_path / "nowhere" / "a.toml"
    command = ["--", "mpirun", "-n", "8", *COMMAND[1:]]
    for words in (["--out", str(out), "--place", str(nowhere)], ["--place", str(place), "--out", str(nowhere)]):
        with pytest.raises(RecipeError, match=r"a\.toml: \S+nowhere is not a folder\. Create it, or give a file"):
            call(*words, *command)

    def full(file: Path, data: bytes) -> None:
        if file == place:
            raise DataError("the disk is full")
        write_atomic(file, data)

    monkeypatch.setattr("bertwright.cli.translate.write_atomic", full)
    with pytest.raises(DataError, match="full"):
        call("--out", str(out), "--place", str(place), *command)
    assert not list(tmp_path.iterdir())


def test_an_invalid_place_value_is_reported_with_its_option(tmp_path: Path) -> None:
    out, place, job = tmp_path / "mine.toml", tmp_path / "place.toml", tmp_path / "job.yml"
    words = ["--out", str(out), "--place", str(place)]
    with pytest.raises(RecipeError) as error:
        call(*words, "--", *f"srun -N 2 --mem=lots --time forever {NEEDED}".split())
    memory, time = str(error.value).splitlines()
    assert memory.startswith('the place of this command: memory: write it like "64G", "500M"')
    assert memory.endswith(" (got 'lots'). It comes from: --mem lots.")
    assert time.endswith(" (got 'forever'). It comes from: --time forever.")
    job.write_text(f"command: {NEEDED}\nlimits: {{timeout: 30}}\n")
    with pytest.raises(
        RecipeError, match=r"place of this command: timeout: 30 must be 60 or .* It comes from: limits\.timeout 30"
    ):
        call(*words, "--script", str(job))
    assert not out.exists() and not place.exists()
    call(*words, "--", *f"srun -N 2 --mem=180GB {NEEDED}".split())
    assert load_place("slurm", str(place))


def test_an_address_that_nothing_states_is_left_to_the_user(tmp_path: Path) -> None:
    place, front = tmp_path / "place.toml", ["torchrun", "--nnodes=2", "--nproc_per_node=8"]
    printed = unwrapped(call("--place", str(place), "--", *front, *COMMAND[2:]))
    assert "no option states the address" in printed and "--set rendezvous=ADDRESS:29500." in printed
    assert place.read_text().endswith('ranks = 8\n# rendezvous = "ADDRESS:29500" # to be decided by you\n')
    with pytest.raises(RecipeError, match="several nodes need a host name"):
        load_place("torchrun", str(place))
    printed = unwrapped(call("--", *front, "--rdzv_endpoint=10.0.0.5:1234", "--max_restarts=5", *COMMAND[2:]))
    assert "--set ranks=8 --set restarts=5 --set rendezvous=10.0.0.5:1234" in printed
    assert "not part of the place" not in printed and "To be decided" not in printed


def test_a_job_file_of_azure_is_opened(tmp_path: Path) -> None:
    job, place = tmp_path / "job.yml", tmp_path / "place.toml"
    job.write_text(f"command: {NEEDED}\ncompute: gpus\nresources: {{instance_count: 2}}\n")
    assert "bertwright launch azureml RECIPE" in call("--script", str(job), "--place", str(place))
    assert 'kind = "azureml"\nnodes = 2\nranks = 1\ncompute = "gpus"\n' in place.read_text()
    assert load_place("azureml", str(place))


def test_a_published_azure_job_needs_only_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("downloads").mkdir()
    Path("downloads/google-uncased-vocab.txt").write_text("".join(f"{entry}\n" for entry in SPECIALS))
    call("--script", str(JOBS / "azure-large-deepspeed-job.yml"), "--out", "mine.toml", "--place", "place.toml")
    assert '# compute = "CLUSTER" # to be decided by you' in Path("place.toml").read_text()
    assert "The job file has compute <Enter the name of your compute here>" in unwrapped(Path("mine.toml").read_text())
    job = load_job(Path("mine.toml"), (), Path("outputs"))
    with pytest.raises(RecipeError, match="neither compute nor vm_size is set"):
        load_place("azureml", "place.toml").describe(job)
    made = load_place("azureml", "place.toml", ["compute=gpus"]).describe(job)
    train = yaml.safe_load(made.files["pipeline.yml"])["jobs"]["train"]
    assert train["services"]["tensorboard"]["log_dir"] == "/outputs/runs/" and set(train["services"]) == SERVICES
    assert train["environment_variables"]["AZUREML_COMPUTE_USE_COMMON_RUNTIME"] == "True"
    assert train["outputs"]["run"]["path"] == "azureml://datastores/workspaceblobstore/paths/outputs/outputs"


def test_printed_place_settings_can_be_typed(tmp_path: Path) -> None:
    """Also lists and sections, which are no plain words."""
    job = tmp_path / "job.yml"
    job.write_text(
        f"command: {NEEDED.replace('--input_dir d', '--input_dir ${{inputs.text}}/128')}\ncompute: gpus\n"
        "inputs: {text: {path: 'azureml:text:1'}}\nenvironment_variables: {A: 'b c', B: \"it's\"}\n"
        "services: {a: {type: vs_code}}\n"
    )
    start = json.loads(call("--json", "--script", str(job)))["start"]
    words = shlex.split(start)
    settings = [word for before, word in pairwise(words) if before == "--set"]
    place = load_place("azureml", "", settings).model_dump()  # type: ignore[attr-defined]
    assert place["environment"] == {"A": "b c", "B": "it's"} and place["services"] == ("vscode",)
    assert place["inputs"]["text"]["key"] == "train.phases.0.data" and place["inputs"]["text"]["below"] == "128"


def test_a_submitting_command_gives_the_job_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "job.yml").write_text(f"command: |\n  pip install x\n  {NEEDED}\ncompute: gpus\n")
    (tmp_path / "submit.sh").write_text("az login\naz ml job create --file job.yml\n")
    by_script = call("--script", str(tmp_path / "submit.sh"))
    monkeypatch.chdir(tmp_path)
    for printed in (by_script, call("--", "az", "ml", "job", "create", "--file", "job.yml")):
        assert "bertwright launch azureml RECIPE" in printed and "--set compute=gpus" in unwrapped(printed)
    with pytest.raises(RecipeError, match=r"there is no file none\.yml here.* bertwright translate --script FILE\.yml"):
        call("--", "az", "ml", "job", "create", "--file", "none.yml")
    with pytest.raises(RecipeError, match="az is not a program that can be translated"):
        call("--", "az", "login")
