"""The verb `translate`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bertwright.cli.app import app
from bertwright.cli.translate import MAX_SCRIPT
from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import write_atomic
from bertwright.launch.config import load_place

NEEDED = "python run_pretraining.py --input_dir d --config_file c.json --output_dir o --do_train"
COMMAND = ["--", *NEEDED.split()]


def call(*words: str, text: str = "") -> str:
    result = CliRunner().invoke(app, ["translate", *words], input=text, catch_exceptions=True)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def _unwrapped(text: str) -> str:
    """Return comments without their marks and line breaks."""
    return " ".join(text.replace("#", "").split())


def test_it_prints_a_recipe_or_writes_it_once(tmp_path: Path) -> None:
    printed, file = call(*COMMAND), tmp_path / "mine.toml"
    assert "[[train.phases]]" in printed and "bertwright run RECIPE --out o" in printed
    assert call("--out", str(file), *COMMAND) == ""
    assert file.read_text() == printed.replace("RECIPE", str(file))
    with pytest.raises(RecipeError, match="exists already"):
        call("--out", str(file), *COMMAND)


def test_json_has_the_recipe_and_the_account() -> None:
    facts = json.loads(call("--json", *COMMAND))
    assert facts["recipe"]["train"]["phases"][0]["batch"] == 32 and facts["place"] == {}
    assert {"option": "--do_train", "keys": [], "note": "The command `train` trains."} in facts["options"]


@pytest.mark.parametrize("launcher", ["deepspeed", "mpirun python", "accelerate launch"])
@pytest.mark.parametrize("program", ["run_pretraining.py", "run_pretraining_ort.py"])
def test_a_batch_that_only_the_machine_determines_is_left_open(tmp_path: Path, launcher: str, program: str) -> None:
    out = tmp_path / "mine.toml"
    command = [*launcher.split(), program, *COMMAND[3:], "--train_batch_size=64", "--max_predictions_per_seq=20"]
    command += ["--max_steps=9", "--max_seq_length=128", "--learning_rate=1e-3", "--warmup_proportion=0.1"]
    call("--out", str(out), "--", *command)
    assert "Set it to 64 (the sequences of one process and update) times the processes" in _unwrapped(out.read_text())
    assert "\nbatch = " not in out.read_text()
    facts = json.loads(call("--json", "--", *command))
    assert "batch" not in facts["recipe"]["train"]["phases"][0] and facts["open"][0].startswith("batch of the phase")
    with pytest.raises(RecipeError, match=r"length: 0 must be 8 or more.* It comes from: --max_seq_length=0"):
        call("--", *command, "--max_seq_length=0")


def test_a_batch_is_left_open_whichever_of_two_commands_does_not_state_it() -> None:
    phases = f"deepspeed {NEEDED[7:]} --max_seq_length 128\nmpirun -n 8 {NEEDED} --max_seq_length 512\n"
    facts = json.loads(call("--script", "-", "--json", text=phases))
    assert [phase.get("batch") for phase in facts["recipe"]["train"]["phases"]] == [None, 256]


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


@pytest.mark.parametrize("other", ["same.toml", "./same.toml", "link/same.toml", "sub/../same.toml"])
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


def test_a_value_that_no_recipe_may_have_is_told_with_its_option(tmp_path: Path) -> None:
    out = tmp_path / "mine.toml"
    words = ["--max_seq_length", "0", "--learning_rate=-1", "--warmup_proportion", "3"]
    with pytest.raises(RecipeError) as error:
        call("--out", str(out), *COMMAND, *words)
    length, rate, warmup = str(error.value).splitlines()
    assert length.startswith("the recipe of this command: train.phases.0.length: 0 must be 8 or more.")
    assert length.endswith("It comes from: --max_seq_length 0.")
    assert "learning_rate: -1.0 must be above 0" in rate and rate.endswith("It comes from: --learning_rate=-1.")
    assert warmup.endswith("It comes from: --warmup_proportion 3.") and not out.exists()
    glue = ["--", "python", "pretrain_glue.py", "--output_dir", "o", "--adam_beta1", "3"]
    with pytest.raises(RecipeError, match=r"optim\.betas\.0: 3\.0 must be below 1.* It comes from: --adam_beta1 3"):
        call(*glue)


def test_a_value_that_no_place_may_have_is_told_with_its_option(tmp_path: Path) -> None:
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
        RecipeError, match=r"place of this command: timeout: 30 must be 60 or .* It comes from: timeout 30"
    ):
        call(*words, "--script", str(job))
    assert not out.exists() and not place.exists()
    call(*words, "--", *f"srun -N 2 --mem=180GB {NEEDED}".split())
    assert load_place("slurm", str(place))


def test_a_script_that_is_too_long_is_not_cut(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(NEEDED + "\n")
    with script.open("a") as file:
        file.write("#" * (MAX_SCRIPT - script.stat().st_size))
    assert "[[train.phases]]" in call("--script", str(script))
    with script.open("a") as file:
        file.write("#")
    for words, text in ((str(script), ""), ("-", script.read_text())):
        with pytest.raises(RecipeError, match=r"--script \S+ has more than 1,048,576 characters, .* Give the script"):
            call("--script", words, text=text)


def test_a_script_and_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "length = 128" in call("--script", "-", text="cd x\npython bertPrep.py --action create_hdf5_files "
                                  "--dataset wikicorpus_en --max_seq_length 128\n")  # fmt: skip
    for name, value in {"PRECISION": "bf16", "DATASET_DIR": "data", "OUTPUT_DIR": "out"}.items():
        monkeypatch.setenv(name, value)
    made = call("--environment")
    assert 'precision = "bf16"' in made and 'data = "data"' in made
    monkeypatch.setenv("SCRIPT", "run_bert_pretrain_phase2.sh")
    monkeypatch.setenv("CHECKPOINT_DIR", "out1/model_save")
    assert "length = 512" in call("--environment") and 'init_from = "out1/model_save"' in call("--environment")


def test_a_job_file_of_azure_is_opened(tmp_path: Path) -> None:
    job, place = tmp_path / "job.yml", tmp_path / "place.toml"
    job.write_text(f"command: {NEEDED}\ncompute: gpus\nresources: {{instance_count: 2}}\n")
    assert "bertwright launch azureml RECIPE" in call("--script", str(job), "--place", str(place))
    assert 'kind = "azureml"\nnodes = 2\nranks = 1\ncompute = "gpus"\n' in place.read_text()
    assert load_place("azureml", str(place))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no command is given"),
        (["--script", "x", "--environment"], "--script gives the commands"),
        (["--script", "nowhere.sh"], "--script nowhere.sh cannot be read"),
        (["--", "A=1"], "there is no command to translate"),
    ],
)
def test_mistakes_are_told(words: list[str], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        call(*words)
