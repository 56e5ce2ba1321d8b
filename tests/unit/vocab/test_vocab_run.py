import json
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.rows import each_row
from tests.unit.examples import made
from tokenizers import Tokenizer

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError, DataError, RecipeError
from bertwright.core.log import Silent
from bertwright.vocab import run as stage
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.entries import SPECIALS
from bertwright.vocab.report import measure
from bertwright.vocab.split import bert_splitter, count_words
from bertwright.vocab.tokenizer import load_tokenizer


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    return made.corpus(tmp_path_factory.mktemp("vocab") / "corpus", [made.text(60, seed=1), made.text(60, seed=2)])


def test_files_and_counts(corpus: Artifact, tmp_path: Path) -> None:
    artifact = stage.run(VocabConfig(size=300), corpus, tmp_path / "vocab")
    assert artifact.names() == ["report.json", "tokenizer.json", "vocab.txt"]
    entries = artifact.file("vocab.txt").read_text("utf-8").splitlines()
    report = json.loads(artifact.file("report.json").read_text())
    assert report["entries"] == len(entries) == artifact.counts["entries"] == 300
    assert 1.0 < report["fertility"] < 4.0 and report["unknown_rate"] == 0.0
    assert load_tokenizer(artifact).vocabulary == load_tokenizer(tmp_path / "vocab").vocabulary == entries
    fast = Tokenizer.from_file(str(artifact.file("tokenizer.json")))
    assert fast.encode("ba [MASK]").tokens == ["[CLS]", "ba", "[MASK]", "[SEP]"]


def test_training_twice_gives_the_same_vocabulary(corpus: Artifact, tmp_path: Path) -> None:
    a, b = (stage.run(VocabConfig(size=300), corpus, tmp_path / name) for name in "ab")
    assert all(a.file(name).read_bytes() == b.file(name).read_bytes() for name in a.names())


def test_the_vocabulary_hash_covers_entries_and_settings(corpus: Artifact, tmp_path: Path) -> None:
    configs = [VocabConfig(size=300), VocabConfig(size=301), VocabConfig(size=300, lower_case=True)]
    hashes = {stage.run(c, corpus, tmp_path / str(i)).counts["vocabulary"] for i, c in enumerate(configs)}
    assert len(hashes) == 3


def test_a_given_file_counts_by_content(corpus: Artifact, tmp_path: Path) -> None:
    trained = stage.run(VocabConfig(size=300, longest_word=100), corpus, tmp_path / "trained")
    here, there = tmp_path / "here.txt", tmp_path / "there.txt"
    for path in (here, there):
        path.write_bytes(trained.file("vocab.txt").read_bytes())
    given = stage.run(VocabConfig.model_validate({"file": here}), corpus, tmp_path / "given")
    assert given.counts["vocabulary"] == trained.counts["vocabulary"]
    again = stage.run(VocabConfig.model_validate({"file": there}), corpus, tmp_path / "given")
    assert again.fingerprint == given.fingerprint
    there.write_bytes(there.read_bytes() + b"extra\n")
    changed = stage.run(VocabConfig.model_validate({"file": there}), corpus, tmp_path / "given")
    assert changed.fingerprint != given.fingerprint and changed.counts["entries"] == 301


def test_a_given_file_that_leaves_words_unknown_is_warned_of(corpus: Artifact, tmp_path: Path) -> None:
    class Heard(Silent):
        def say(self, message: str) -> None:
            said.append(message)

    said: list[str] = []
    path = tmp_path / "theirs.txt"
    path.write_bytes(stage.run(VocabConfig(size=300), corpus, tmp_path / "trained").file("vocab.txt").read_bytes())
    config = VocabConfig.model_validate({"file": path})
    stage.run(config, corpus, tmp_path / "fitting", Heard())
    assert len(said) == 1 and "0.00% unknown" in said[0]
    other = made.corpus(tmp_path / "other", [made.text(60, seed=3) + [["Жж."]] * 12])
    stage.run(config, other, tmp_path / "given", Heard())
    warning = said[-1]
    assert warning.startswith("vocab: warning: 0.") and "are unknown ([UNK])" in warning
    assert warning.endswith("such as Ж ж. Take a vocab.file made for such text, or leave it out to train one.")


def test_a_file_that_does_not_belong_leaves_nothing(corpus: Artifact, tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##a\n", encoding="utf-8")
    with pytest.raises(RecipeError, match="does not fit this corpus"):
        stage.run(VocabConfig.model_validate({"file": path}), corpus, tmp_path / "vocab")
    assert not (tmp_path / "vocab").exists()


def test_an_empty_corpus_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no sentences"):
        stage.run(VocabConfig(size=300), made.corpus(tmp_path / "corpus", [[]]), tmp_path / "vocab")


def test_measures_by_hand() -> None:
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "##s", "a", "."]
    report = measure(entries, count_words(["a cats dog.", "a"], bert_splitter(False, False)))
    # words: a, cats, dog, . and a; tokens: a, cat ##s, [UNK], . and a
    assert report["sample_words"] == 5 and report["sample_tokens"] == 6
    assert report["fertility"] == 1.2 and report["unknown_rate"] == 0.2
    assert report["single_character_rate"] == round(4 / 6, 4)
    assert report["unused_rate"] == round(4 / 9, 4)


def test_the_identity_is_known_from_fingerprints_alone(corpus: Artifact, tmp_path: Path) -> None:
    inputs = {"corpus": corpus.fingerprint}
    found = stage.identity(VocabConfig(size=300), inputs | {"train": "not asked for"})
    assert found.fingerprint == stage.run(VocabConfig(size=300), corpus, tmp_path / "vocab").fingerprint
    assert found.fingerprint != stage.identity(VocabConfig(size=301), inputs).fingerprint
    assert found.fingerprint != stage.identity(VocabConfig(size=300), {"corpus": "another"}).fingerprint


def test_the_report_has_the_training_sample(corpus: Artifact, tmp_path: Path) -> None:
    whole = stage.run(VocabConfig(size=300), corpus, tmp_path / "whole").counts["trained_on"]
    assert whole == {"documents": 120, "bytes": corpus.counts["text_bytes"], "share": 1.0}
    half = VocabConfig(size=300, sample_bytes=corpus.counts["text_bytes"] // 2)
    report = json.loads(stage.run(half, corpus, tmp_path / "half").file("report.json").read_text())
    assert 40 <= report["trained_on"]["documents"] <= 80 and report["trained_on"]["share"] == pytest.approx(0.5, 0.01)
    assert list(report["scripts"]) == ["Latin", "other marks"]
    with pytest.raises(DataError, match=r"Raise vocab\.sample_bytes"):
        stage.run(VocabConfig(size=300, sample_bytes=1), corpus, tmp_path / "none")


def test_sentencepiece_is_another_trainer_of_the_same_stage(corpus: Artifact, tmp_path: Path) -> None:
    pytest.importorskip("sentencepiece", reason="needs the extra sentencepiece")
    config = VocabConfig.model_validate({"size": 300, "unused": 9, "trainer": {"kind": "sentencepiece"}})
    a, b = (stage.run(config, corpus, tmp_path / name) for name in "ab")
    assert all(a.file(name).read_bytes() == b.file(name).read_bytes() for name in a.names())
    assert a.counts["entries"] == 300 and a.counts["unknown_rate"] == 0
    assert a.file("vocab.txt").read_text("utf-8").startswith("[PAD]\n[unused0]\n")


@each_row("trainer", [{"kind": "sentencepiece", "min_frequency": 2}, {"kind": "bpe"}])
def test_a_trainer_takes_its_own_settings_only(trainer: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        VocabConfig.model_validate({"trainer": trainer})


def test_reading_and_learning_move_a_bar(corpus: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[float, float, str]] = []
    log = Silent()
    monkeypatch.setattr(log, "progress", lambda stage, done, total, unit: told.append((done, total, unit)))
    stage.run(VocabConfig(size=200, unused=2), corpus, tmp_path / "vocab", log)
    total = corpus.counts["text_bytes"] / 1e6
    (read, *of_total), *later = told
    assert read < total / 10 and of_total == [total, "MB"]
    assert later == [(total, total, "MB"), (0, 0, "learning 200 entries"), (1, 1, "vocabulary")]


def test_a_tokenizer_that_cannot_be_read_is_named(corpus: Artifact, tmp_path: Path) -> None:
    artifact = stage.run(VocabConfig(size=300), corpus, tmp_path / "vocab")
    path = artifact.path / "tokenizer.json"
    whole = path.read_bytes()
    path.write_bytes(whole[:-9] + b"x" * 9)
    with pytest.raises(ArtifactError, match=r"tokenizer\.json"):
        load_tokenizer(tmp_path / "vocab")  # another content than the manifest's
    path.write_bytes(whole[:-9])
    with pytest.raises(ArtifactError, match=r"tokenizer\.json has .* bytes instead of"):
        load_tokenizer(tmp_path / "vocab")
    with pytest.raises(ArtifactError, match="corpus"):
        load_tokenizer(corpus.path)


def test_a_given_file_without_a_corpus_is_checked_not_measured(tmp_path: Path) -> None:
    letters = [prefix + chr(code) for code in range(ord("a"), ord("z") + 1) for prefix in ("", "##")]
    file = tmp_path / "v.txt"
    file.write_text("\n".join([*SPECIALS, *letters, *map(str.upper, letters)]) + "\n")
    artifact = stage.run(VocabConfig(size=None, file=file), None, tmp_path / "vocab")
    assert artifact.counts["entries"] == 109 and "fertility" not in artifact.counts
    with pytest.raises(RecipeError, match=r"could never occur \(such as 'A'"):
        stage.run(VocabConfig(size=None, file=file, lower_case=True), None, tmp_path / "other")
    with pytest.raises(RecipeError, match=r"vocab\.file is missing: without a corpus"):
        stage.run(VocabConfig(size=300), None, tmp_path / "none")
