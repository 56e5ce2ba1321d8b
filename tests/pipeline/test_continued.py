"""A network saved by transformers is continued on one's own text, and becomes a folder of transformers again."""

import json
import re
from pathlib import Path

import pytest
from tests.pipeline.conftest import Call
from tests.unit.init.test_continued import ENGLISH, HUNGARIAN, network, text, words_of

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


FAST = ("corpus.workers=1", "examples.workers=1", "train.heldout_sequences=16", "evaluate.samples=2")


def losses(run: Path) -> dict[str, dict[str, float]]:
    scores = json.loads((run / "evaluate" / "scores.json").read_text(encoding="utf-8"))
    assert "no_before" not in scores
    return {row["text"]: row for row in scores["by_text"]}


def test_an_english_model_goes_on_with_text_of_ones_own(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`init --from`, `check`, `plan` and `run` of a folder of transformers, with a little general text."""
    monkeypatch.chdir(tmp_path)
    network(Path("published"), words_of(ENGLISH))
    Path("own.txt").write_text(text(ENGLISH[:2], 80), encoding="utf-8")
    Path("general.txt").write_text(text(ENGLISH[2:], 80), encoding="utf-8")
    given = ("--from", "published", "--source", "own.txt", "--general", "general.txt", "--out", "continue.toml")
    said = call("init", *given)
    assert said.code == 0 and "5.0% of what is read" in said.out, said.err
    assert call("check", "continue.toml").code == 0 and call("plan", "continue.toml").code == 0
    # A rate for a network of 32 dimensions, so that a few updates are seen in the loss.
    done = call("run", "continue.toml", *FAST, "train.phases.0.learning_rate=2e-2", "--out", "run")
    assert done.code == 0, done.err
    found = losses(Path("run"))
    assert list(found) == ["own", "general"] and found["general"]["documents"] > 60
    assert found["own"]["loss"] < 0.8 * found["own"]["before"]
    (line,) = (line for line in done.err.splitlines() if "loss by text" in line)
    assert re.search(r"own \d\.\d\d -> \d\.\d\d nats \(-\d+\.\d %\), general \d\.\d\d -> \d\.\d\d nats \([+-]", line)
    page = Path("run/report.html").read_text(encoding="utf-8")
    card = Path("run/export/hf/README.md").read_text(encoding="utf-8")
    for shown in (page, card):
        assert "A text whose loss rises is being forgotten." in shown and f"{found['own']['before']:.3f}" in shown
    summary = json.loads(Path("run/summary.json").read_text(encoding="utf-8"))
    assert [row["text"] for row in summary["by_text"]] == ["own", "general"]


def test_a_hungarian_run_goes_on_with_other_text(
    finished: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of one's own is continued as it was trained, and its start is scored before."""
    monkeypatch.chdir(tmp_path)
    Path("novels.txt").write_text(text(HUNGARIAN), encoding="utf-8")
    said = call("init", "--from", finished, "--source", "novels.txt", "--out", "novels.toml")
    assert said.code == 0 and "no general text: the network forgets" in said.out, said.err
    written = Path("novels.toml").read_text(encoding="utf-8")
    assert "0.5 times the peak of its training" in written and f'init_from = "{finished / "train"}"' in written
    done = call("run", "novels.toml", *FAST, "train.phases.0.epochs=1", "--out", "run")
    assert done.code == 0, done.err
    found = losses(Path("run"))
    assert list(found) == ["held-out text"] and found["held-out text"]["before"] > 0
    assert found["held-out text"]["loss"] == json.loads(Path("run/evaluate/scores.json").read_text())["mlm_loss"]
