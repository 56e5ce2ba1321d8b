"""The verb `translate`."""

import json
from pathlib import Path

import pytest
from tests.rows import each_row
from typer.testing import CliRunner

from bertwright.cli.app import app
from bertwright.cli.translate import MAX_SCRIPT
from bertwright.core.errors import RecipeError

NEEDED = "python run_pretraining.py --input_dir d --config_file c.json --output_dir o --do_train"
COMMAND = ["--", *NEEDED.split()]


def call(*words: str, text: str = "") -> str:
    result = CliRunner().invoke(app, ["translate", *words], input=text, catch_exceptions=True)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def unwrapped(text: str) -> str:
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


@each_row("launcher", ["deepspeed", "mpirun python", "accelerate launch"])
@each_row("program", ["run_pretraining.py", "run_pretraining_ort.py"])
def test_a_batch_that_only_the_machine_determines_is_left_open(tmp_path: Path, launcher: str, program: str) -> None:
    out = tmp_path / "mine.toml"
    command = [*launcher.split(), program, *COMMAND[3:], "--train_batch_size=64", "--max_predictions_per_seq=20"]
    command += ["--max_steps=9", "--max_seq_length=128", "--learning_rate=1e-3", "--warmup_proportion=0.1"]
    call("--out", str(out), "--", *command)
    assert "Set it to 64 (the sequences of one process and update) times the processes" in unwrapped(out.read_text())
    assert "\nbatch = " not in out.read_text()
    facts = json.loads(call("--json", "--", *command))
    assert "batch" not in facts["recipe"]["train"]["phases"][0] and facts["open"][0].startswith("batch of the phase")
    with pytest.raises(RecipeError, match=r"length: 0 must be 8 or more.* It comes from: --max_seq_length=0"):
        call("--", *command, "--max_seq_length=0")


def test_a_batch_missing_in_one_of_two_commands_is_open() -> None:
    phases = f"deepspeed {NEEDED[7:]} --max_seq_length 128\nmpirun -n 8 {NEEDED} --max_seq_length 512\n"
    facts = json.loads(call("--script", "-", "--json", text=phases))
    assert [phase.get("batch") for phase in facts["recipe"]["train"]["phases"]] == [None, 256]


def test_an_invalid_recipe_value_is_reported_with_its_option(tmp_path: Path) -> None:
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


def test_a_script_of_windows_editors_is_the_same_script(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_bytes(b"\xef\xbb\xbf" + NEEDED.encode() + b" \\\r\n --max_seq_length 512\r\n")
    assert "length = 512" in call("--script", str(tmp_path / "run.sh"))
    assert "length = 512" in call("--script", "-", text=f"\ufeff{NEEDED} --max_seq_length 512\n")


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


@each_row(
    ("words", "said"),
    [
        ([], "no command is given"),
        (["--script", "x", "--environment"], "--script gives the commands"),
        (["--script", "nowhere.sh"], "--script nowhere.sh cannot be read"),
        (["--", "A=1"], "there is no command to translate"),
    ],
)
def test_mistakes_are_errors(words: list[str], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        call(*words)
