"""The beginning of a trained vocabulary: which characters have entries, in which forms and order."""

import re

import pytest

from bertwright.core.errors import RecipeError
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.trainers import count_characters, first_entries, special_entries


def entries(words: dict[str, int], **settings: float) -> list[str]:
    return first_entries(VocabConfig(size=300, alphabet_coverage=1, **settings), words)[0]


def test_special_entries_have_the_published_order() -> None:
    assert special_entries(0) == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert special_entries(2)[:4] == ["[PAD]", "[unused0]", "[unused1]", "[UNK]"]


def test_what_always_stands_alone_has_no_form_inside_words() -> None:
    """Punctuation and ideographs are set apart by BERT; kana, Thai and combining marks are not."""
    made = entries({"中": 1, "!": 1, "。": 1, "𠀀": 1, "か": 1, "ก": 1, "\u0301": 1, "é": 1})
    inside = {entry for entry in made if entry.startswith("##")}
    assert inside == {"##か", "##ก", "##\u0301", "##é"}
    assert {"中", "!", "。", "𠀀", "か", "ก", "\u0301", "é"} <= set(made)


def test_ties_are_broken_by_code_points() -> None:
    """Two processes that count the same words in another order must make the same entries."""
    words = {chr(0xAC00 + number): 1 + number % 3 for number in range(3000)}
    for counted in (words, dict(reversed(words.items()))):
        characters, counts = count_characters(counted)
        assert characters == sorted(words, key=lambda character: (-words[character], character))
        assert counts.tolist() == [3] * 1000 + [2] * 1000 + [1] * 1000


def test_the_coverage_that_an_error_advises_can_be_had() -> None:
    words = {chr(0xAC00 + number): 1 + 5000 // (number + 1) for number in range(500)}
    with pytest.raises(RecipeError) as caught:
        first_entries(VocabConfig(size=305, alphabet_coverage=1), words)
    (advised,) = re.findall(r"lower vocab\.alphabet_coverage to ([\d.]+)", str(caught.value))
    first, alphabet = first_entries(VocabConfig(size=305, alphabet_coverage=float(advised)), words)
    assert len(first) <= 305 and len(alphabet) > 140


def test_the_size_that_an_error_asks_for_is_enough() -> None:
    words = {chr(0xAC00 + number): 1 for number in range(500)}
    with pytest.raises(RecipeError) as caught:
        first_entries(VocabConfig(size=305, alphabet_coverage=1, unused=7), words)
    (needed,) = re.findall(r"need ([\d,]+) entries", str(caught.value))
    size = int(needed.replace(",", ""))
    assert len(first_entries(VocabConfig(size=size, alphabet_coverage=1, unused=7), words)[0]) == size
    with pytest.raises(RecipeError):
        first_entries(VocabConfig(size=size - 1, alphabet_coverage=1, unused=7), words)
