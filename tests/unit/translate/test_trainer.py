"""Commands of transformers' example scripts: each option as its Trainer reads it, its schedules, texts and labels."""

import csv
import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.optim.schedule import Schedule, learning_rate
from bertwright.recipe import Recipe
from bertwright.translate.program import programs
from bertwright.translate.shell import parse_words
from bertwright.translate.text import text
from bertwright.translate.translation import Translation, translate

MLM = "run_mlm.py --model_type bert --tokenizer_name bert-base-cased --train_file a.txt --do_train --output_dir o"


def translated(line: str) -> Translation:
    return translate(parse_words(line.split()))


def values(line: str) -> dict[str, Any]:
    """The values of a translated command, those of its phase by their name."""
    made = translated(line)
    (phase,) = made.phases
    return {key.key: key.value for key in (*made.sections.values(), *phase.values())}


@pytest.mark.filterwarnings("ignore")
def test_options_and_defaults_match_transformers() -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: pip install transformers")
    if not transformers.__version__.startswith("5."):
        pytest.skip(f"these are the defaults of transformers 5, and this is {transformers.__version__}")
    fields = {field.name: field.default for field in dataclasses.fields(transformers.TrainingArguments)}
    options = programs()["run_mlm"].options
    assert set(fields) <= set(options)
    for name, default in fields.items():
        if (ours := options[name].default) is not None:
            assert ours == default or ours == getattr(default, "value", None), name
        assert options[name].on is (default is True), name


@pytest.mark.parametrize(
    ("options", "warmup"),
    [
        ("--warmup_ratio 0.1", 10),
        ("--warmup_steps 7 --lr_scheduler_type cosine", 7),
        ("--lr_scheduler_type polynomial", 0),
        ('--lr_scheduler_type polynomial --lr_scheduler_kwargs {"power":2.0} --warmup_steps 10', 10),
        ('--lr_scheduler_type cosine_with_min_lr --lr_scheduler_kwargs {"min_lr_rate":0.1}', 0),
        ('--lr_scheduler_type cosine_with_min_lr --lr_scheduler_kwargs {"min_lr":1e-5} --warmup_steps 5', 5),
        ("--lr_scheduler_type constant --warmup_steps 10", 10),
        ("--lr_scheduler_type constant_with_warmup --warmup_steps 10", 10),
        (
            "--lr_scheduler_type warmup_stable_decay "
            '--lr_scheduler_kwargs {"num_decay_steps":20,"decay_type":"linear"}',
            0,
        ),
        (
            '--lr_scheduler_type warmup_stable_decay --lr_scheduler_kwargs {"num_decay_steps":9,"decay_type":"1-sqrt"}',
            0,
        ),
    ],
)
def test_a_schedule_has_the_rates_of_the_original(options: str, warmup: int, tmp_path: Path) -> None:
    """After the warm-up, whose first rate is 0 in the original; `lr_end` of polynomial is 1e-7 there and 0 here."""
    optimization = pytest.importorskip("transformers.optimization", reason="transformers is not installed")
    steps, peak = 100, 1e-3
    made = values(f"{MLM} --max_steps {steps} --learning_rate {peak} {options}")
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n")
    recipe = translated(f"{MLM} --max_steps {steps} --learning_rate {peak} {options}").recipe
    recipe["vocab"]["file"] = str(tmp_path / "vocab.txt")
    phase = Recipe(**recipe).train.phases[0]
    schedule: Schedule = phase.schedule
    ours = [learning_rate(schedule, step, steps, phase.warmup_steps(steps), peak) for step in range(steps)]
    words = options.split()
    kind = words[words.index("--lr_scheduler_type") + 1] if "--lr_scheduler_type" in words else "linear"
    keys = json.loads(words[words.index("--lr_scheduler_kwargs") + 1]) if "--lr_scheduler_kwargs" in words else {}
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=peak)
    theirs_schedule = optimization.get_scheduler(kind, optimizer, warmup, steps, scheduler_specific_kwargs=keys)
    theirs = []
    for _ in range(steps):
        theirs.append(theirs_schedule.get_last_lr()[0])
        optimizer.step()
        theirs_schedule.step()
    start = 0 if kind == "constant" else warmup
    assert ours[start:] == pytest.approx(theirs[start:], abs=2e-7), made["schedule"]
    assert kind != "constant" or made["warmup"] == 0


@each_row(
    ("options", "said"),
    [
        ("--label_smoothing_factor 0.1", "--label_smoothing_factor 0.1 has no counterpart: labels are not smoothed"),
        ("--neftune_noise_alpha 5", "--neftune_noise_alpha 5 has no counterpart: noise on embeddings"),
        ("--adafactor", "--adafactor has no counterpart: Adafactor is not available"),
        ("--optim lion_32bit", "optim lion_32bit: give one of adamw_torch_fused, adamw_torch,"),
        (
            "--split_batches True",
            "--split_batches True has no counterpart: Then per_device_train_batch_size is a batch",
        ),
        ("--lr_scheduler_type inverse_sqrt", "--lr_scheduler_type inverse_sqrt: this schedule is not translated."),
        (
            "--lr_scheduler_type warmup_stable_decay --max_steps 9",
            "warmup_stable_decay: this schedule is not translated",
        ),
        ('--lr_scheduler_kwargs {"num_cycles":2}', "num_cycles has no counterpart. Leave it out."),
        ("--lr_scheduler_kwargs power=2", "--lr_scheduler_kwargs power=2: give a JSON object"),
        ("--save_steps 0.1", "--save_steps 0.1: a share of the steps, and how many the epochs have is known only once"),
        ("--config_overrides hidden_size=64", "hidden_size is no key of [model]. Write a config.json"),
        ("--config_overrides hidden_dropout_prob=much", "hidden_dropout_prob = 'much' is not a number"),
        ("--model_type roberta", "--model_type roberta: networks here are bert, distilbert, modernbert."),
        ("--model_name_or_path FacebookAI/roberta-base", "it is no network of the families that are known here"),
        ("--train_file a.csv", "running text is not read from CSV"),
        ("--fsdp full_shard --fsdp offload", "weights are not kept in the memory of the host"),
        ("--dataloader-num-worker 4 --no_do_train", "transformers' run_mlm.py has no option --no_do_train"),
    ],
)
def test_unavailable_training_options_are_refused(options: str, said: str) -> None:
    with pytest.raises(RecipeError) as refused:
        translated(f"{MLM} {options}")
    assert said in str(refused.value)


def test_options_are_typed_as_its_parser_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hyphens, words behind one option, switches with a value, their opposites, and all of them in a JSON file."""
    monkeypatch.chdir(tmp_path)
    plain = values(f"{MLM} --per_device_train_batch_size 4 --report_to tensorboard wandb --bf16 true --use_cpu")
    assert plain["observers" if "observers" in plain else "train.observers"] == [
        {"kind": "tensorboard"},
        {"kind": "wandb"},
    ]
    assert (plain["batch"], plain["train.precision"], plain["train.device"]) == (4, "bf16", "cpu")
    assert plain == values(
        f"{MLM} --per-device-train-batch-size=4 --report-to tensorboard wandb --bf16 --use-cpu True "
        "--no_remove_unused_columns --no-skip-memory-metrics --fp16 False"
    )
    given = {"model_type": "bert", "tokenizer_name": "bert-base-cased", "train_file": "a.txt", "do_train": True}
    given |= {"output_dir": "o", "per_device_train_batch_size": 4, "report_to": ["tensorboard", "wandb"], "bf16": True}
    Path("args.json").write_text(json.dumps({**given, "use_cpu": True, "fp16": False, "deepspeed": None}))
    assert plain == values("run_mlm.py args.json")
    Path("args.json").write_text("[1]")
    with pytest.raises(RecipeError, match=r"args\.json cannot be read \(it holds no object\)"):
        translated("run_mlm.py args.json")


def test_intervals_count_as_their_strategies_say() -> None:
    def intervals(options: str) -> dict[str, int]:
        keys = ("train.log_every", "train.checkpoint_every", "train.evaluate_every")
        return {key: value for key, value in values(f"{MLM} --max_steps 1000 {options}").items() if key in keys}

    assert intervals("") == {}, "those of the original are for watching, and not given"
    assert intervals("--logging_steps 0.01 --save_steps 250.0") == {
        "train.log_every": 10,
        "train.checkpoint_every": 250,
    }
    assert intervals("--save_strategy epoch --save_steps 5 --logging_strategy no --logging_steps 5") == {
        "train.checkpoint_every": "epoch"
    }
    assert intervals("--eval_steps 50") == {}, "the strategy is no"
    assert intervals("--evaluation_strategy steps --eval_steps 50") == {"train.evaluate_every": 50}
    assert intervals("--eval_strategy steps --logging_steps 20")["train.evaluate_every"] == 20


def test_observers_get_the_keys_of_their_own() -> None:
    options = "--report_to tensorboard trackio all --logging_dir logs --project mine --trackio_space_id me/space"
    assert values(f"{MLM} {options}")["train.observers"] == [
        {"kind": "tensorboard", "folder": "logs"},
        {"kind": "trackio", "project": "mine", "space": "me/space"},
    ]
    assert "train.observers" not in values(f"{MLM} --report_to all --logging_dir logs")


def folder_of(path: Path, **config: object) -> Path:
    """A folder as transformers writes it, without weights."""
    path.mkdir()
    (path / "config.json").write_text(json.dumps({"model_type": "bert", "max_position_embeddings": 64, **config}))
    (path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n")
    return path


def test_a_network_is_a_folder_or_a_name_to_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder_of(tmp_path / "mine")
    (tmp_path / "mine" / "tokenizer_config.json").write_text(
        json.dumps({"do_lower_case": True, "strip_accents": False})
    )
    made = values("run_mlm.py --model_name_or_path mine --train_file a.txt --do_train")
    assert (made["train.init_from"], made["model.config"], made["vocab.file"]) == (
        *("mine", "mine/config.json", "mine/vocab.txt"),
    )
    assert (made["vocab.lower_case"], made["vocab.strip_accents"], made["length"]) == (True, False, 64)
    assert (
        values("run_mlm.py --model_name_or_path mine --train_file a.txt --do_train --max_seq_length 32")["length"] == 32
    )
    normalizer = {"type": "BertNormalizer", "lowercase": True, "strip_accents": None}
    (tmp_path / "mine" / "tokenizer_config.json").write_text('{"tokenizer_class": "TokenizersBackend"}')
    (tmp_path / "mine" / "tokenizer.json").write_text(json.dumps({"normalizer": normalizer, "model": {"vocab": {}}}))
    made = values("run_mlm.py --model_name_or_path mine --train_file a.txt --do_train")
    assert (made["vocab.lower_case"], made["vocab.strip_accents"]) == (True, True), "as transformers 5 writes it"
    named = translated("run_mlm.py --model_name_or_path distilbert/distilbert-base-cased --train_file a.txt --do_train")
    assert named.sections["model.kind"].value == "distilbert" and named.phases[0]["length"].value == 512
    assert named.sections["train.init_from"].value == "downloads/distilbert-base-cased"
    said = " ".join(text(named).replace("#", " ").split())
    assert "hf download distilbert/distilbert-base-cased --local-dir downloads/distilbert-base-cased" in said
    assert named.sections["vocab.lower_case"].value is False
    folder_of(tmp_path / "other", model_type="electra")
    with pytest.raises(RecipeError, match="no network of the families"):
        translated("run_mlm.py --model_name_or_path other --train_file a.txt --do_train")


def test_texts_keep_the_form_that_the_original_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_text('{"title": "x", "body": "y"}\n')
    Path("b.json").write_text('{"title": "x", "text": "y"}\n')

    def source(options: str) -> object:
        return values(f"{MLM} {options}")["corpus.source"]

    assert source("") == {"path": "a.txt", "format": "text", "lines": "paragraphs"}
    assert source("--line_by_line") == {"path": "a.txt", "format": "text", "lines": "articles"}
    assert source("--train_file a.json") == {"path": "a.json", "format": "jsonl", "text": "title"}
    assert source("--train_file b.json") == {"path": "b.json", "format": "jsonl", "text": "text"}
    joined, lines = values(MLM), values(f"{MLM} --line_by_line --validation_split_percentage 10")
    assert (joined["examples.plan"], lines["examples.plan"]) == ("full-sentences", "doc-sentences")
    assert (joined["examples.heldout"], lines["examples.heldout"]) == (0.05, 0.1)
    assert "examples.heldout" not in values(f"{MLM} --validation_file v.txt")
    assert "corpus.language = en: no command says the language of the texts." in " ".join(translated(MLM).open)


def rows(file: Path, columns: list[str], *lines: tuple[object, ...]) -> None:
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(columns)
        writer.writerows(lines)


GLUE = "run_glue.py --model_name_or_path mine --do_train --output_dir o"
CLASSES = "run_classification.py --model_name_or_path mine --do_train --output_dir o"


def test_classes_and_columns_are_read_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder_of(tmp_path / "mine")
    rows(Path("train.csv"), ["label", "text"], ("jó, szép", 'Ez "jó",\nés szép.'), ("rossz", "Őszintén?"), ("", "x"))
    Path("validation.csv").touch()
    made = values(f"{GLUE} --train_file train.csv --validation_file validation.csv")
    assert made["train.objective"] == {"kind": "classification", "labels": ["jó, szép", "rossz"], "text": "text"}
    assert made["data"] == "." and made["length"] == 128 and made["epochs"] == 3.0
    assert values(f"{GLUE} --train_file train.csv --validation_file other/dev.csv")["data"] == "train.csv"
    rows(Path("pairs.csv"), ["sentence2", "sentence1", "label"], ("b", "a", 10), ("b", "a", 9), ("b", "a", 10))
    pairs = values(f"{GLUE} --train_file pairs.csv --validation_file v.csv")["train.objective"]
    assert pairs == {"kind": "classification", "labels": ["9", "10"], "text": "sentence1", "pair": "sentence2"}
    rows(Path("numbers.csv"), ["text", "label"], ("a", 1.5), ("b", 2))
    assert values(f"{GLUE} --train_file numbers.csv --validation_file v.csv")["train.objective"]["labels"] == ["label"]
    Path("own.json").write_text('{"review": "a", "stars": "5"}\n{"review": "b", "stars": "1"}\n')
    own = f"{CLASSES} --train_file own.json --validation_file v.json --label_column_name stars"
    assert values(f"{own} --text_column_names review")["train.objective"] == {
        "kind": "classification",
        "labels": ["1", "5"],
        "text": "review",
        "label": "stars",
    }
    assert values(f"{own} --text_column_names review --do_regression")["train.objective"]["labels"] == ["stars"]
    for more, said in (
        ("", "it has no column sentence. Give one of review, stars as --text_column_names."),
        ("--text_column_names review,stars", "the original joins these columns to one text"),
        ("--text_column_names review --train_file none.json", "the classes are read from this file"),
        ("--text_column_names review --label_column_name grade", "it has no column grade, which holds the labels"),
        (
            "--text_column_names review --dataset_name imdb",
            "--dataset_name imdb has no counterpart: Nothing is fetched",
        ),
    ):
        with pytest.raises(RecipeError) as refused:
            translated(f"{own} {more}")
        assert said in str(refused.value)


def test_a_task_of_glue_is_one_in_any_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder_of(tmp_path / "mine")
    made = values(f"{GLUE} --task_name MRPC --num_train_epochs 2.5 --learning_rate 2e-5")
    assert made["train.objective"] == {"kind": "classification", "task": "mrpc"} and made["data"] == "glue/mrpc"
    assert made["epochs"] == 2.5 and math.isclose(made["learning_rate"], 2e-5)
