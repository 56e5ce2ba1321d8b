"""DeepSpeed's file beside a command: where both contradict each other, and what of the file nothing reads."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row
from typer.testing import CliRunner

from bertwright.cli.app import app
from bertwright.core.errors import RecipeError
from bertwright.translate.azure_job import read_job
from bertwright.translate.shell import parse_script
from bertwright.translate.translation import Translation, translate

COMMAND = (
    "pretrain_glue.py --output_dir o --deepspeed ds.json --per_device_train_batch_size 93 "
    "--gradient_accumulation_steps 1 --learning_rate 3e-05 --adam_beta1 0.8 --weight_decay 3e-07 --warmup_steps 500 "
    "--fp16"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def beside(values: Any, command: str = COMMAND, ranks: int = 8) -> Translation:
    Path("ds.json").write_text(json.dumps(values))
    return translate(parse_script(f"torchrun --nproc_per_node {ranks} {command}"), strict=False)


def told(made: Translation) -> list[str]:
    return [remark for remark in made.remarks if remark.startswith("--deepspeed")]


def nested(dotted: str, value: Any) -> dict[str, Any]:
    first, _, rest = dotted.partition(".")
    return {first: nested(rest, value) if rest else value}


def test_equal_values_and_auto_do_not_contradict() -> None:
    same = {
        "train_micro_batch_size_per_gpu": 93,
        "gradient_accumulation_steps": 1,
        "train_batch_size": 744,
        "gradient_clipping": 1.0,
        "fp16": {"enabled": True},
        "bf16": {"enabled": False},
        "optimizer": {
            "type": "AdamW",
            "params": {"lr": 3e-5, "betas": [0.8, 0.999], "eps": 1e-8, "weight_decay": 3e-7},
        },
        "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_max_lr": 3e-5, "warmup_num_steps": 500}},
        "zero_optimization": {"stage": 1},
    }
    made = beside(same)
    assert told(made) == [] and made.open == () and made.sections["train.engine"].value["stage"] == 1
    assert [account for account in made.accounts if account.option.startswith("ds.json")] == []
    auto = {"train_micro_batch_size_per_gpu": "auto", "train_batch_size": "auto", "fp16": {"enabled": "auto"}}
    assert told(beside(auto)) == told(beside({"gradient_clipping": None})) == told(beside({})) == []


@each_row(
    ("key", "value", "said"),
    [
        ("train_micro_batch_size_per_gpu", 64, "64 (--per_device_train_batch_size 93)"),
        ("gradient_accumulation_steps", 2, "2 (--gradient_accumulation_steps 1)"),
        ("gradient_clipping", 0.5, "0.5 (--max_grad_norm left at its default)"),
        ("fp16.enabled", False, "false (--fp16)"),
        ("bf16.enabled", True, "true (no --bf16)"),
        ("optimizer.params.lr", 1e-3, "0.001 (--learning_rate 3e-05)"),
        ("optimizer.params.betas", [0.9, 0.999], "[0.9, 0.999] (--adam_beta1 0.8, --adam_beta2 left at its default)"),
        ("optimizer.params.weight_decay", 0.01, "0.01 (--weight_decay 3e-07)"),
        ("scheduler.params.warmup_num_steps", 100, "100 (--warmup_steps 500)"),
        ("train_batch_size", 1488, "1488 (744 sequences of all processes)"),
    ],
)
def test_a_value_that_contradicts_the_command_is_named_with_both(key: str, value: Any, said: str) -> None:
    made = beside(nested(key, value))
    (remark,) = told(made)
    assert f"contradicts the command: {key} {said}. The Trainer stops" in remark
    assert made.recipe["train"]["phases"][0]["micro_batch"] == 93, "the command counts"


def test_every_contradiction_is_in_one_remark_once() -> None:
    values = {"train_micro_batch_size_per_gpu": 64, "gradient_accumulation_steps": 2, "fp16": {"enabled": False}}
    (remark,) = told(beside(values, f"{COMMAND}\n{COMMAND}".replace("\n", "\ntorchrun --nproc_per_node 8 ")))
    assert all(name in remark for name in ("train_micro_batch_size_per_gpu", "accumulation_steps 2", "fp16.enabled"))


def test_without_steps_the_file_length_is_not_compared() -> None:
    values = {"scheduler": {"params": {"total_num_steps": 7, "warmup_num_steps": 3}}}
    by_share = COMMAND.replace("--warmup_steps 500", "--warmup_ratio 0.1")
    assert told(beside(values, by_share)) == []
    (remark,) = told(beside(values, f"{by_share} --max_steps 9"))
    assert "total_num_steps 7 (--max_steps 9)" in remark
    assert told(translate_uncounted({"train_batch_size": 5})) == [], "only the machine knows the processes"


def translate_uncounted(values: Any) -> Translation:
    Path("ds.json").write_text(json.dumps(values))
    return translate(parse_script(f"deepspeed {COMMAND}"), strict=False)


def test_an_optimizer_or_a_schedule_of_the_file_is_named() -> None:
    optimizer, schedule = told(beside({"optimizer": {"type": "Lamb"}, "scheduler": {"type": "WarmupLR"}}))
    assert "optimizer.type Lamb of the file replaces" in optimizer and optimizer.endswith("see optim.kind.")
    assert "scheduler.type WarmupLR" in schedule and schedule.endswith("see schedule.")


def test_unread_keys_are_listed_with_the_reason() -> None:
    values = {
        "nebula": {"enabled": True, "persistent_time_interval": 10},
        "zero_optimization": {"stage": 1, "overlap_comm": True},
        "fp16": {"enabled": True, "loss_scale_window": 100},
        "steps_per_print": 10,
        "amp": {},
    }
    listed = {account.option: account.note for account in beside(values).accounts if account.option[:7] == "ds.json"}
    names = ["nebula", "zero_optimization.overlap_comm", "fp16.loss_scale_window", "steps_per_print", "amp"]
    assert list(listed) == [f"ds.json: {name}" for name in names] and all(listed.values())


@each_row("text", ["nothing", "[1]", '{"zero_optimization": {"stage": "x"}}'])
def test_another_file_is_an_error(text: str) -> None:
    Path("ds.json").write_text(text)
    with pytest.raises(RecipeError, match="--deepspeed ds.json: the file is not a DeepSpeed configuration"):
        translate(parse_script(f"torchrun {COMMAND}"), strict=False)


@each_row(("name", "stage"), [("ds_config.json", "ZeRO stage 1, as in"), ("ds.json", "no ZeRO stage is")])
def test_assumptions_about_a_missing_file_are_questions(name: str, stage: str) -> None:
    (question,) = translate(parse_script(COMMAND.replace("ds.json", name)), strict=False).open
    assert question.startswith(f"--deepspeed {name} is no file here: {stage}")


def test_the_file_of_a_job_is_in_the_folder_of_its_code(folder: Path) -> None:
    (folder / "guide" / "src").mkdir(parents=True)
    (folder / "guide" / "src" / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 64}')
    for code, wanted in (("code: src\n", 1), ("code: ./src\n", 1), ("", 0)):
        made = translate(read_job(f"command: {COMMAND}\n{code}compute: gpus\n", folder / "guide"), strict=False)
        assert len(told(made)) == wanted and len(made.open) == 1 - wanted


@each_row("inside", ["", "results/"])
def test_the_results_of_the_autotuner_are_read(inside: str) -> None:
    """From its folder, which has the best configuration beside its other files."""
    tuned = {"train_micro_batch_size_per_gpu": 46, "zero_optimization": {"stage": 2, "overlap_comm": True}}
    folder = Path("tuned") / inside
    folder.mkdir(parents=True)
    (folder / "ds_config_optimal.json").write_text(json.dumps(tuned))
    (folder / "cmd_optimal.txt").write_text("deepspeed train.py")
    made = beside({}, COMMAND.replace("ds.json", "tuned"))
    assert made.sections["train.engine"].value["stage"] == 2
    assert "train_micro_batch_size_per_gpu 46" in told(made)[0] and "the command counts" in told(made)[0]
    assert "add train.phases.0.micro_batch=46 to the command" in told(made)[1]
    (unread,) = [each for each in made.accounts if each.option.startswith("ds_config_optimal.json")]
    assert unread.option.endswith("zero_optimization.overlap_comm")


def tuned_command(values: Any) -> str:
    """The command of one of the autotuner's experiments as it writes it, with the configuration in base64
    (DeepSpeed 0.19.8, autotuning/scheduler.py:326-376)."""
    typed = base64.urlsafe_b64encode(json.dumps(values).encode()).decode()
    hosts = "worker-0:0,1,2,3,4,5,6,7@worker-1:0,1,2,3,4,5,6,7"
    launcher = f"deepspeed --hostfile /job/hostfile --include {hosts} --master_port 29500"
    return f"{launcher} {COMMAND.replace('ds.json', typed)}\n"


def test_the_command_of_the_autotuner_holds_its_configuration() -> None:
    values = {
        "train_micro_batch_size_per_gpu": 46,
        "zero_optimization": {"stage": 2, **{f"stage3_{number}": number for number in range(50)}},
        "autotuning": {"enabled": True},
    }
    made = translate(parse_script(tuned_command(values)), strict=False)
    assert made.sections["train.engine"].value == {"kind": "deepspeed", "stage": 2} and made.launch.ranks == 16
    assert "train_micro_batch_size_per_gpu 46 (--per_device_train_batch_size 93)" in told(made)[0]
    assert "add train.phases.0.micro_batch=46 to the command" in told(made)[1]
    assert max(map(len, told(made))) < 400 and not any("autotuning" in account.option for account in made.accounts)
    assert made.open == (made.open[0],) and made.open[0].startswith("rendezvous")
    # What is no configuration is the name of a file, however long.
    made = translate(parse_script(f"torchrun --nproc_per_node 8 {COMMAND.replace('ds.json', 'x' * 24)}"), strict=False)
    assert "no file here" in made.open[0]


def test_the_folder_of_the_autotuner_holds_its_best_command() -> None:
    folder = Path("tuned")
    folder.mkdir()
    words = ["translate", "--script", "tuned"]
    with pytest.raises(RecipeError, match=r"--script tuned is a folder without cmd_optimal\.txt"):
        CliRunner().invoke(app, words, catch_exceptions=False)
    (folder / "cmd_optimal.txt").write_text(tuned_command({"zero_optimization": {"stage": 3}}))
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert 'engine = { kind = "deepspeed", stage = 3 }' in result.output


def test_an_experiment_of_the_autotuner_holds_what_it_tried() -> None:
    made = beside({"name": "z1_tmbspg93", "num_gpus": 8, "ds_config": {"zero_optimization": {"stage": 1}}})
    assert made.sections["train.engine"].value["stage"] == 1 and told(made) == []


def test_unfinished_and_requested_searches_are_reported() -> None:
    Path("tuned").mkdir()
    with pytest.raises(RecipeError, match=r"tuned is a folder without ds_config_optimal\.json, which DeepSpeed's"):
        beside({}, COMMAND.replace("ds.json", "tuned"))
    made = beside({"autotuning": {"enabled": True, "fast": False}})
    (unread,) = [each for each in made.accounts if each.option.startswith("ds.json")]
    assert unread.option == "ds.json: autotuning" and "bertwright bench autotune" in str(unread)
