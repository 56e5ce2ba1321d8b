import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.near_copies import shingles
from tests.rows import each_row

from bertwright.core.rng import bits
from bertwright.corpus.filter import ByScript
from bertwright.corpus.ngrams import grams, runs, words
from bertwright.corpus.words import count_tokens, count_tokens_of_sentences, has_unspaced, pieces


def test_case_marks_and_numbers_make_no_difference() -> None:
    first = grams("„A Híd, 1912-ben – épült!”", 3)
    assert first.tolist() == grams("a híd 1,024.5-ben épült", 3).tolist()
    assert len(first) == 2
    assert not set(first.tolist()) & set(grams("a hid 1912-ben épült", 3).tolist())


def test_combining_marks_are_letters() -> None:
    """They carry the vowels of Indic words."""
    assert words("कि")[0].tolist() != words("की")[0].tolist() != words("क")[0].tolist()


@given(st.text(st.sampled_from("aAáÁ09 \n-,!ß中"), max_size=60), st.integers(1, 6))
def test_runs_are_equal_where_the_words_are(text: str, n: int) -> None:
    """As many different runs as the definition counts, and the same ones when the text is written otherwise."""
    expected = shingles(text, n) - {()}
    assert len(set(grams(text, n).tolist())) == len(expected)
    rewritten = text.upper().replace(" ", " – ").replace("9", "123")
    assert grams(rewritten, n).tolist() == grams(text, n).tolist()


def test_every_word_has_its_line() -> None:
    hashes, lines = words("egy kettő\n–\n\nHárom, 4")
    assert lines.tolist() == [0, 0, 3, 3]
    assert hashes.tolist() == np.concatenate([words(word)[0] for word in ("egy", "kettő", "három", "0")]).tolist()
    assert words("\n")[0].tolist() == words("")[1].tolist() == []


@each_row("n", [1, 3, 13])
def test_a_run_is_a_polynomial_of_its_words(n: int) -> None:
    numbers = bits(1, np.arange(20))
    factor = 0x9E3779B97F4A7C15
    starts = range(20 - n + 1)
    totals = [sum(int(numbers[start + k]) * factor**k for k in range(n)) % 2**64 for start in starts]
    expected = [int(bits(n, total)[0]) for total in totals]
    assert runs(numbers, n).tolist() == expected


def test_short_texts_are_one_run_and_empty_ones_none() -> None:
    assert len(grams("két szó", 5)) == 1
    assert grams("két szó", 5).tolist() == grams("Két szó.", 9).tolist()
    assert grams("két szó", 5).tolist() != grams("szó két", 5).tolist()
    assert len(grams(" – … !", 5)) == len(grams("", 5)) == 0
    assert runs(np.zeros(0, np.uint64), 5).dtype == np.uint64


def test_without_spaces_two_characters_are_a_word() -> None:
    text = "東京は 日本の首都であり、世界最大の都市の一つである。"
    assert len(words(text, spaced=False)[0]) == len(text) - 3
    assert len(grams(text, 3, spaced=False)) == len(text) - 3 - 6 + 1
    assert grams(text, 3, spaced=False)[0] == grams("東京は日本の", 3, spaced=False)[0]


def test_the_hashes_are_the_same_on_every_machine() -> None:
    """Signatures and manifests must agree between the machines of one run."""
    factor = 0x9E3779B97F4A7C15
    expected = sum(ord(letter) * factor ** (i + 1) for i, letter in enumerate("híd")) % 2**64
    assert words("Híd –")[0].tolist() == [expected]


@each_row(("text", "unspaced"), [("Ő – 한국 देश!", False), ("a 京", True), ("ไทย", True), ("ก", True), ("", False)])
def test_letters_of_scripts_without_spaces_are_found(text: str, unspaced: bool) -> None:
    assert has_unspaced(text) == unspaced
    assert count_tokens_of_sentences(text, unspaced=unspaced) == count_tokens_of_sentences(text)


@each_row("language", ["hu", "ja"])
def test_what_is_counted_in_pieces_is_what_is_counted_at_once(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line may be a whole file, and is never held as arrays at once."""
    sentences = ["Az 1848. évi forradalom\u2028a „híres” ősz-hős.", "東京は日本の首都である。 2 3", "x" * 30, "Ő!"] * 9
    text = "\n".join(sentences)
    measure = ByScript([language]).measure
    at_once = (count_tokens(text), words(text, spaced=language == "hu"), measure(sentences))
    monkeypatch.setattr("bertwright.corpus.words._PIECE", 44)
    monkeypatch.setattr("bertwright.corpus.filter.BATCH", 44)
    assert "".join(pieces(text)) == text and max(map(len, pieces(text))) <= 44
    assert count_tokens(text) == at_once[0]
    for found, expected in zip(words(text, spaced=language == "hu"), at_once[1], strict=True):
        np.testing.assert_array_equal(found, expected)
    assert measure(sentences) == at_once[2]


@given(st.lists(st.text(st.sampled_from("aZ9.я—中々กຂ한"), min_size=1, max_size=8), min_size=1, max_size=8))
def test_tokens_of_sentences_are_counted_by_their_spaces(sentences: list[str]) -> None:
    assert count_tokens_of_sentences(" ".join(sentences)) == count_tokens(" ".join(sentences))


def test_text_without_spaces_is_cut_at_a_million_characters() -> None:
    assert list(map(len, pieces("a" * (2**21 + 3)))) == [2**20, 2**20, 3]
    assert list(pieces("")) == [""]


def test_long_document_is_measured_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each character takes about 20 bytes while it is measured."""
    sizes: list[int] = []
    monkeypatch.setattr("bertwright.corpus.filter.count_tokens", lambda text: sizes.append(len(text)) or 0)
    assert ByScript(["hu"]).measure(["a " * 2**19] * 5).characters == 5 * 2**20
    assert sizes == [2**21 + 1, 2**21 + 1, 2**20]
