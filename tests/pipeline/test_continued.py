"""A network saved by transformers is continued on one's own text, and becomes a folder of transformers again."""

import json
import re
from pathlib import Path

import pytest
from tests.pipeline.conftest import Call

transformers = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
CHEAP = (
    "model.config={folder}/config.json",
    "vocab.size=",
    "vocab.file={folder}/tokenizer.json",
    "train.init_from={folder}",
    "examples.plan=full-sentences",
    "optim.kind=adamw",
    "train.phases.0.learning_rate=1e-4",
    "train.phases.1.learning_rate=1e-4",
)


@pytest.fixture(scope="module")
def saved(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exported network of a run, saved by transformers in several files, and its tokenizer."""
    folder, exported = tmp_path_factory.mktemp("saved"), str(finished / "export" / "hf")
    network = transformers.BertForPreTraining.from_pretrained(exported, local_files_only=True)
    network.save_pretrained(str(folder), max_shard_size="20KB")
    tokenizer = json.loads(Path(exported, "tokenizer.json").read_text(encoding="utf-8"))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    assert (folder / "model.safetensors.index.json").is_file() and not (folder / "vocab.txt").exists()
    return folder


def test_the_whole_road(saved: Path, small_recipe: Path, tmp_path: Path, call: Call) -> None:
    given = [word.format(folder=saved) for word in CHEAP]
    checked = call("check", small_recipe, *given, "--out", tmp_path / "run")
    said = "train.init_from"
    (line,) = (line for line in checked.out.splitlines() if said in line)
    assert checked.code == 0 and line.startswith("ok") and "its bert.pooler.dense, nsp.classifier left out" in line
    done = call("run", small_recipe, *given, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    assert f"train: starting from {saved}; " in done.err
    (started,) = (line for line in done.err.splitlines() if "starting from" in line)
    assert re.search(r"; (\d+) of \1 tensors of the encoder; .*its bert.pooler.dense, nsp.classifier left out", started)
    init = json.loads((tmp_path / "run" / "train" / "manifest.json").read_text())["counts"]["init"]
    assert init["folder"] == str(saved) and init["left_out"] == "bert.pooler.dense, nsp.classifier"
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "without its bert.pooler.dense, nsp.classifier" in page
    card = (tmp_path / "run" / "export" / "hf" / "README.md").read_text(encoding="utf-8")
    assert "trained further for" in card and f"Training started from `{saved}`" in card
    again, loading = transformers.BertForMaskedLM.from_pretrained(
        str(tmp_path / "run" / "export" / "hf"), local_files_only=True, output_loading_info=True
    )
    assert not loading["missing_keys"] and again.config.vocab_size == len(
        json.loads((saved / "tokenizer.json").read_text())["model"]["vocab"]
    )


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (["vocab.file=", "vocab.size=30000"], "; to continue train.init_from, set vocab.file to its vocabulary"),
        (["vocab.file=", "vocab.size=400"], "has a vocabulary, but this run would train another"),
        (["vocab.lower_case=true"], "Set vocab.file={folder}/tokenizer.json vocab.lower_case=false"),
        (["model.config=", "model.size=tiny"], "hidden_size is 16 in {folder} but 128 in [model]"),
        (["model={{kind='distilbert', size='tiny'}}"], "is a BERT but [model] is a DistilBERT; set model.kind=bert"),
    ],
)
def test_another_vocabulary_size_or_family_is_refused_before_the_corpus(
    keys: list[str], says: str, saved: Path, small_recipe: Path, tmp_path: Path, call: Call
) -> None:
    given = [word.format(folder=saved) for word in (*CHEAP, *keys)]
    for verb in ("check", "run"):
        done = call(verb, small_recipe, *given, "--out", tmp_path / "run")
        assert done.code == 2 and says.format(folder=saved) in done.out + done.err, verb
    assert not (tmp_path / "run").exists()
