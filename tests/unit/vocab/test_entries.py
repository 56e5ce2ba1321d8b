"""The entries and the text settings of vocabularies that other programs wrote."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row
from tokenizers import Tokenizer, models, normalizers

from bertwright.core.errors import DataError
from bertwright.vocab.entries import TextSettings, entries_of, text_settings
from bertwright.vocab.split import build_tokenizer

ENTRIES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "á", "##b", "\u2028"]


@each_row("lower_case", [False, True])
@each_row("strip_accents", [False, True])
def test_a_tokenizer_file_has_the_entries_and_the_text_settings(
    lower_case: bool, strip_accents: bool, tmp_path: Path
) -> None:
    tokenizer = build_tokenizer(ENTRIES, lower_case, strip_accents)
    tokenizer.add_tokens(["newword"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert entries_of(tmp_path / "tokenizer.json") == [*ENTRIES, "newword"]
    assert text_settings(tmp_path) == TextSettings(lower_case, strip_accents)


@each_row(
    ("normalizer", "stated"),
    [
        (normalizers.BertNormalizer(lowercase=True), (True, True)),
        (normalizers.BertNormalizer(lowercase=False), (False, False)),
        (normalizers.BertNormalizer(lowercase=True, strip_accents=False), (True, False)),
        (normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()]), (True, True)),
        (normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]), (True, False)),
        (normalizers.Replace("x", "y"), None),
    ],
)
def test_accents_follow_the_case_unless_they_are_stated(normalizer: Any, stated: Any, tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0}))
    tokenizer.normalizer = normalizer
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert text_settings(tmp_path) == (TextSettings(*stated) if stated else None)


def test_text_settings_are_read_from_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer_config.json"
    assert text_settings(tmp_path) is None
    for stated, settings in (
        ({"do_lower_case": True}, (True, True)),
        ({"do_lower_case": True, "strip_accents": False}, (True, False)),
        ({"do_lower_case": False, "strip_accents": None}, (False, False)),
        ({"strip_accents": True}, None),
        ([], None),
    ):
        path.write_text(json.dumps(stated))
        assert text_settings(tmp_path) == (TextSettings(*settings) if settings else None)
    assert str(TextSettings(True, False)) == "vocab.lower_case=true vocab.strip_accents=false"


@each_row(
    ("content", "says"),
    [
        ({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}, "is a BPE tokenizer, but only WordPiece"),
        ({"model": {"type": "Unigram", "vocab": [["a", 0.0]]}}, "is a Unigram tokenizer, but only WordPiece"),
        ({"model": {"type": "WordPiece", "vocab": {"a": 0, "b": 2}}}, "does not number its 2 entries from 0 without"),
        ({"model": {"type": "WordPiece"}}, "is not a tokenizer.json of the library tokenizers"),
        ({"model": {"type": "WordPiece", "vocab": {"a": "b"}}}, "is not a tokenizer.json of the library tokenizers"),
        ([], "is not a tokenizer.json of the library tokenizers"),
    ],
)
def test_another_kind_of_tokenizer_is_refused(content: Any, says: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match=says):
        entries_of(tmp_path / "tokenizer.json")


def test_for_a_folder_the_file_in_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder, not a vocabulary. It has no vocab.txt and no tokenizer.json"):
        entries_of(tmp_path)
    (tmp_path / "tokenizer.json").touch()
    with pytest.raises(DataError, match="is a folder, not a vocabulary. Give .*/tokenizer.json"):
        entries_of(tmp_path)
    with pytest.raises(DataError, match="tokenizer.json cannot be read"):
        entries_of(tmp_path / "tokenizer.json")
