"""A translated command runs as printed, on files that an original would have read."""

import json
from pathlib import Path

import pytest
from tests.pipeline.conftest import Call

from bertwright.cli.conversion import convert
from bertwright.formats.target import Target
from bertwright.model.bert.config import SIZES


def test_a_command_of_nvidias_trains_on_its_files(
    finished: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    convert(finished, Path("made"), Target("hdf5"))
    data = next(path for path in Path("made").iterdir() if "seq_len_16" in path.name)
    hidden, layers, heads, inner = SIZES["tiny"]
    numbers = {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads}
    rows = len((finished / "vocab" / "vocab.txt").read_text(encoding="utf-8").splitlines())
    config = {**numbers, "intermediate_size": inner, "max_position_embeddings": 16, "vocab_size": rows}
    Path("bert_config.json").write_text(json.dumps(config))
    said = {"input_dir": data, "output_dir": "results", "config_file": "bert_config.json", "max_seq_length": 16}
    said |= {"train_batch_size": 16, "gradient_accumulation_steps": 2, "max_steps": 4, "max_predictions_per_seq": 3}
    said |= {"vocab_file": finished / "vocab" / "vocab.txt", "learning_rate": 1e-3, "num_steps_per_checkpoint": 2}
    words = [word for name, value in said.items() for word in (f"--{name}", str(value))]
    done = call("translate", "--out", "mine.toml", "--", "python", "run_pretraining.py", *words, "--do_train")
    assert done.code == 0, done.err
    # The vocabulary is cased, which no option of the originals states.
    case = ("vocab.lower_case=false", "vocab.strip_accents=false", "examples.workers=1")
    done = call("run", "mine.toml", *case, "--until", "train", "--out", "results")
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in Path("results/train/metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["steps"] == 4 and rows[-1]["mlm_loss"] > 0
