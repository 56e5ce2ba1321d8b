import subprocess
import sys

import pytest
from tests.rows import each_row
from tests.unit.examples.made import text

from bertwright.core.errors import DataError, RecipeError
from bertwright.vocab.config import VocabConfig, WordPieceConfig
from bertwright.vocab.split import bert_splitter, count_words, normalizer
from bertwright.vocab.trainers import count_characters, first_entries, train_wordpiece

pytestmark = pytest.mark.heavy

SENTENCES = [sentence for document in text(150) for sentence in document]
WORDS = count_words(SENTENCES, bert_splitter(False, False))


def trained(min_frequency: int = 2, **settings: object) -> list[str]:
    config = VocabConfig.model_validate(settings)
    return train_wordpiece(config, WordPieceConfig(min_frequency=min_frequency), WORDS)


def test_order_and_size() -> None:
    entries = trained(size=200, unused=2)
    assert entries[:7] == ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert len(entries) == len(set(entries)) == 200


def test_the_commonest_pair_is_joined_first_and_rare_ones_never() -> None:
    words = count_words(["ab ab ab ab cd cd cd ef"], bert_splitter(False, False))
    config = VocabConfig(size=100)
    pieces = train_wordpiece(config, WordPieceConfig(min_frequency=2), words)[5 + 2 * 6 :]
    assert pieces == ["ab", "cd"]
    assert train_wordpiece(config, WordPieceConfig(min_frequency=1), words)[5 + 2 * 6 :] == ["ab", "cd", "ef"]


def test_two_processes_train_the_same_bytes() -> None:
    """This one and another, whose hashes of strings are others."""
    code = "from tests.unit.vocab.test_wordpiece import trained; print(ascii(trained(size=250)))"
    other = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert other.strip() == ascii(trained(size=250))


def test_every_character_of_the_text_is_kept_in_both_forms() -> None:
    entries = set(trained(size=200))
    characters = set("".join(SENTENCES)) - {" "}
    assert characters <= entries
    assert {"##" + c for c in characters - {"."}} <= entries
    assert "##." not in entries, "punctuation is split off, so it never continues a word"


def test_characters_are_counted_commonest_first() -> None:
    assert count_characters({"aabbbc": 1, "d": 1})[0] == ["b", "a", "c", "d"]
    characters, counts = count_characters({"ba": 2, "c": 3})
    assert characters == ["c", "a", "b"] and counts.tolist() == [3, 2, 2]


@each_row(
    ("coverage", "kept"),
    [(0.1, "abc"), (0.85, "abc"), (0.86, "abcd"), (0.9, "abcd"), (0.91, "abcde"), (0.96, "abcdef"), (1, "abcdef")],
)
def test_the_alphabet_is_as_large_as_the_coverage_asks_for(coverage: float, kept: str) -> None:
    """The shares are 50, 25, 10, 5, 5 and 5 %; a vocabulary of 100 has room for three in any case."""
    words = {"aaaaa": 2, "b": 5, "c": 2, "d": 1, "e": 1, "f": 1}
    assert "".join(first_entries(VocabConfig(size=100, alphabet_coverage=coverage), words)[1]) == kept


def test_large_alphabets_are_kept_if_the_size_allows_it() -> None:
    """Chinese characters need one entry each, Korean syllables two, as they also stand inside words."""
    words = {chr(0x4E00 + i): 50 for i in range(3000)} | {chr(0xAC00 + i): 1 for i in range(10)}
    first, alphabet = first_entries(VocabConfig(size=3025, alphabet_coverage=1), words)
    assert len(alphabet) == 3010 and len(first) == 5 + 3000 + 2 * 10
    with pytest.raises(RecipeError) as caught:
        first_entries(VocabConfig(size=3004, alphabet_coverage=1), words)
    assert str(caught.value) == (
        "vocab.size=3,004 is too small: the 3,010 characters that make up 100.00% of the text need 3,025 entries, with "
        "their ## forms and the special ones. Raise vocab.size above that, or lower vocab.alphabet_coverage to 0.9996 "
        "(words with a rarer character become [UNK])."
    )
    assert 3000 < len(first_entries(VocabConfig(size=3004, alphabet_coverage=0.9996), words)[0]) <= 3004


@each_row(
    ("lower_case", "strip_accents", "expected"),
    [(False, False, "Árvíz"), (True, False, "árvíz"), (False, True, "Arviz"), (True, True, "arviz")],
)
def test_case_and_accents_are_two_settings(lower_case: bool, strip_accents: bool, expected: str) -> None:
    """The originals' one switch did both, and NVIDIA's could not be turned off."""
    assert normalizer(lower_case, strip_accents).normalize_str("Árvíz") == expected
    decomposed = "A\u0301rvi\u0301z"
    assert normalizer(lower_case, strip_accents).normalize_str(decomposed) == expected


def test_too_small_and_empty_are_errors() -> None:
    with pytest.raises(RecipeError, match=r"vocab\.size=100 is too small: the .* or lower vocab\.unused"):
        trained(size=100, unused=90)
    with pytest.raises(DataError, match="no text to train"):
        train_wordpiece(VocabConfig(size=200), WordPieceConfig(), count_words(["", " "], bert_splitter(False, False)))


@each_row(
    ("text", "unseen", "never"),
    [
        ("ပြည်ထောင်စု", "A~7ကဧ၀၉၊”", "กéÃ"),
        ("ราชบุรี ราชบุรี", "A~7ฯ๙", "၀éက"),
        ("Győr, Pécs", "AZ~7[", "ñЖ၀"),
        ("ሰላም", "Aሀፐ", "é၀"),
        ("한국", "A7", "글é"),
    ],
)
def test_a_short_text_gets_the_characters_that_it_lacks_by_chance(text: str, unseen: str, never: str) -> None:
    words = count_words([text], bert_splitter(False, False))
    entries = train_wordpiece(VocabConfig(size=30_000), WordPieceConfig(), words)
    assert {*unseen} <= {*entries} and {f"##{c}" for c in unseen if c.isalnum()} <= {*entries}
    assert {*entries}.isdisjoint({*never} - {*text})
    assert {*unseen}.isdisjoint(train_wordpiece(VocabConfig(size=200), WordPieceConfig(), words)), "there is no room"


def test_characters_that_a_normalised_text_cannot_have_are_left_out() -> None:
    config = VocabConfig(size=30_000, lower_case=True, strip_accents=True)
    first, _ = first_entries(config, count_words(["ქართული ของ Duna"], bert_splitter(True, True)))
    assert {"q", "7", "ฯ"} <= {*first} and {"Q", "é", "\u0e31", "\u0e48"}.isdisjoint(first)
