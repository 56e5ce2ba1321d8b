"""The recipes of the guide to new vocabularies, run in full on small texts: an English model becomes a Hungarian one,
and its vocabulary is extended."""

import json
import re
from pathlib import Path

import pytest
from tests.pipeline.conftest import Call
from tests.unit.init.test_continued import ENGLISH, HUNGARIAN, network, text, words_of
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from bertwright.vocab.entries import entries_of

transformers = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "new-vocabulary.md"
SMALL = (
    *("corpus.filter.enabled=false", "corpus.workers=1", "examples.workers=1", "examples.heldout=0.1"),
    *("train.heldout_sequences=16", "evaluate.samples=2"),
    *(f"train.phases.{i}.{key}" for i in (0, 1) for key in ("length=32", "batch=16", "learning_rate=5e-3")),
    *("train.phases.0.epochs=1", "train.phases.1.epochs=2"),
)


def recipe_with(source: str, start: str = "english") -> str:
    blocks = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = (block for block in blocks if f'path = "{source}"' in block and f'init_from = "{start}"' in block)
    return str(block)


def test_an_english_model_learns_hungarian(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    network(Path("english"), words_of(ENGLISH))
    Path("novels.txt").write_text(text(HUNGARIAN), encoding="utf-8")
    Path("hungarian.toml").write_text(recipe_with("novels.txt"), encoding="utf-8")
    small = (*SMALL, "vocab.size=220", "train.init_embeddings=text")
    checked = call("check", "hungarian.toml", *small)
    assert checked.code == 0 and "rows for the entries of this run's vocabulary" in checked.out, checked.out
    done = call("run", "hungarian.toml", *small, "--out", "run")
    assert done.code == 0, done.err
    copied = re.search(r"of (\d+) entries (\d+) are copied, (\d+) composed of older pieces, and (\d+) near", done.err)
    assert copied and int(copied[1]) == sum(map(int, copied.groups()[1:])) and int(copied[3]) > 50
    assert "new entries from the neighbours of" in done.err
    rows = [json.loads(line) for line in Path("run/train/metrics.jsonl").read_text().splitlines()]
    losses = [row["mlm_loss"] for row in rows if row.get("mlm_loss") is not None]
    assert losses[-1] < losses[0] - 0.5


def test_an_english_vocabulary_is_extended(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    network(Path("english"), words_of(ENGLISH[:2]))
    Path("papers.txt").write_text(text(ENGLISH), encoding="utf-8")
    Path("papers.toml").write_text(recipe_with("papers.txt"), encoding="utf-8")
    older = entries_of(Path("english/tokenizer.json"))
    # The small network distinguishes case, which the published one of the guide does not.
    small = (*SMALL, f"vocab.size={len(older) + 12}", "vocab.lower_case=false", "vocab.strip_accents=false")
    checked = call("check", "papers.toml", *small)
    assert checked.code == 0 and "up to 12 are added" in checked.out, checked.out + checked.err
    done = call("run", "papers.toml", *small, "--out", "run")
    assert done.code == 0, done.err
    entries = entries_of(Path("run/vocab/vocab.txt"))
    report = json.loads(Path("run/vocab/report.json").read_text())
    assert entries[: len(older)] == older and 0 < report["extended"]["added"] <= 12
    before = report["extended"]["older_fertility"], report["extended"]["older_unknown_rate"]
    assert (report["fertility"], report["unknown_rate"]) < before or report["unknown_rate"] < before[1]
    assert f"of {len(entries)} entries {len(older)} are copied" in done.err


def published_modernbert(folder: Path) -> None:
    """A tiny ModernBERT with byte-level BPE, as transformers saves it."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    bpe.train_from_iterator(text(ENGLISH).splitlines(), trainer)
    roles = {f"{entry[1:-1].lower()}_token": entry for entry in special}
    transformers.PreTrainedTokenizerFast(tokenizer_object=bpe, **roles).save_pretrained(str(folder))
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    ids = {name: special.index(f"[{name.upper()}]") for name in ("pad", "cls", "sep")}
    config = transformers.ModernBertConfig(
        vocab_size=448, max_position_embeddings=64, local_attention=16, **sizes,
        **{f"{name}_token_id": i for name, i in ids.items()}, bos_token_id=ids["cls"], eos_token_id=ids["sep"],
    )  # fmt: skip
    transformers.ModernBertForMaskedLM(config).save_pretrained(str(folder))


def test_a_modernbert_with_bpe_gets_a_vocabulary_of_its_own(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    published_modernbert(Path("modernbert"))
    Path("papers.txt").write_text(text(ENGLISH), encoding="utf-8")
    Path("modern.toml").write_text(recipe_with("papers.txt", "modernbert"), encoding="utf-8")
    refused = call("import", "modernbert", "--out", "ours")
    assert refused.code != 0 and "train.init_embeddings=pieces" in refused.err
    small = (*SMALL, "vocab.size=200", "model.max_positions=32")
    refused = call("check", "modern.toml", *small, "train.init_embeddings=random", "train.phases.0.trains=all")
    assert refused.code != 0 and "is a BPE tokenizer" in refused.out + refused.err
    checked = call("check", "modern.toml", *small)
    assert checked.code == 0, checked.out + checked.err
    done = call("run", "modern.toml", *small, "--out", "run")
    assert done.code == 0, done.err
    copied = re.search(r"of (\d+) entries (\d+) are copied, (\d+) composed of older pieces, and (\d+) near", done.err)
    assert copied and int(copied[2]) > 40 and int(copied[4]) == 0
    rows = [json.loads(line) for line in Path("run/train/metrics.jsonl").read_text().splitlines()]
    losses = [row["mlm_loss"] for row in rows if row.get("mlm_loss") is not None]
    assert losses[-1] < losses[0] - 0.2
    exported = transformers.AutoModelForMaskedLM.from_pretrained("run/export/hf", local_files_only=True)
    assert exported.config.model_type == "modernbert" and exported.config.vocab_size == 200
    refused = call("init", "--from", "modernbert", "--source", "papers.txt")
    assert refused.code != 0 and "train.init_embeddings=pieces" in refused.err
