"""The longest word that is split into pieces: one setting, from the recipe to the ids that other programs get."""

import json
from pathlib import Path

from tests.rows import each_row
from tokenizers import Tokenizer as FastTokenizer

from bertwright.core.files import sha256_of
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.entries import SPECIALS, TextSettings, text_settings
from bertwright.vocab.report import measure, shortcomings
from bertwright.vocab.run import run as make_vocab
from bertwright.vocab.split import build_tokenizer
from bertwright.vocab.tokenizer import load_tokenizer

ENTRIES = [*SPECIALS, "ก", "กรุง", "##ก", "##รุง", "##ร", "##ุ", "##ง"]


def given(folder: Path, **settings: object) -> VocabConfig:
    (folder / "vocab.txt").write_text("".join(f"{entry}\n" for entry in ENTRIES), encoding="utf-8")
    return VocabConfig.model_validate({"file": folder / "vocab.txt", **settings})


def test_a_new_vocabulary_splits_long_words_and_a_finished_one_does_as_it_did() -> None:
    assert VocabConfig().longest_word == 1000
    for key in ("file", "extend"):
        assert VocabConfig.model_validate({key: "vocab.txt"}).longest_word == 100
        config = VocabConfig.model_validate({key: "vocab.txt", "longest_word": 1000})
        assert config.longest_word == 1000
        assert VocabConfig.model_validate(config.model_dump(mode="json", exclude_none=True)) == config


def test_a_vocabulary_that_was_made_here_keeps_its_limit(tmp_path: Path) -> None:
    first = make_vocab(given(tmp_path, longest_word=1000), None, tmp_path / "first")
    for name in ("vocab.txt", "tokenizer.json"):
        again = VocabConfig.model_validate({"file": str(first.file(name))})
        assert again.longest_word == 1000
        assert make_vocab(again, None, tmp_path / name[:5]).counts["vocabulary"] == first.counts["vocabulary"]
    assert VocabConfig.model_validate({"file": first.file("vocab.txt"), "longest_word": 100}).longest_word == 100


def test_the_limit_is_part_of_what_ids_mean(tmp_path: Path) -> None:
    text = "".join(f"{entry}\n" for entry in ENTRIES)
    # As recorded by artifacts that are older than the setting.
    assert given(tmp_path).hash_of(ENTRIES) == sha256_of([text, False, False])
    assert given(tmp_path, longest_word=1000).hash_of(ENTRIES) == sha256_of([text, False, False, 1000])


@each_row("longest", [3, 100, 1000])
def test_ids_are_those_of_the_library_at_the_limit(longest: int, tmp_path: Path) -> None:
    vocab = make_vocab(given(tmp_path, longest_word=longest), None, tmp_path / "vocab")
    ours, fast = load_tokenizer(vocab), FastTokenizer.from_file(str(vocab.file("tokenizer.json")))
    words = ["ก" * size for size in (1, 2, 3, 4, 99, 100, 101, 999, 1000, 1001)]
    lines = [*words, "กรุง" * 250, " ".join(words), "กรุง" * 250 + "x"]
    for line in lines:
        flat, _ = ours.encode_texts([line])
        assert flat.tolist() == fast.encode(line, add_special_tokens=False).ids
    flat, _ = ours.encode_texts([words[2]])
    assert len(flat) == 3
    flat, _ = ours.encode_texts(["ก" * (longest + 1)])
    assert flat.tolist() == [ours.ids("[UNK]")]
    assert vocab.counts["longest_word"] == longest


def test_a_tokenizer_file_says_it(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    build_tokenizer(ENTRIES, False, False, 1000).save(str(file))
    assert text_settings(tmp_path) == TextSettings(False, False, 1000)
    assert str(text_settings(tmp_path)) == ("vocab.lower_case=false vocab.strip_accents=false vocab.longest_word=1000")
    written = json.loads(file.read_text(encoding="utf-8"))
    del written["model"]["max_input_chars_per_word"]
    file.write_text(json.dumps(written), encoding="utf-8")
    assert text_settings(tmp_path) == TextSettings(False, False)


def test_longer_words_are_reported() -> None:
    words = {"ก" * 101: 1, "ก" * 1001: 1, "ก": 2}
    assert measure(ENTRIES, words)["too_long"] == 2
    report = measure(ENTRIES, words, 1000)
    assert report["too_long"] == 1 and report["unknown_rate"] == 0.25
    assert "; 100% of these words have more than 1,000 characters without a space" in shortcomings(
        report, VocabConfig()
    )
