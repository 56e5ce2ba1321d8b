import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertwright.vocab.split import bert_splitter, count_words

CASES = [(False, False), (True, False), (False, True), (True, True)]


@pytest.mark.parametrize(("lower_case", "strip_accents"), CASES)
@given(st.text())
@settings(max_examples=100)
def test_the_words_are_those_of_the_library(lower_case: bool, strip_accents: bool, text: str) -> None:
    splitter = bert_splitter(lower_case, strip_accents)
    assert splitter.words(text) == splitter.by_library(text)


def test_by_hand() -> None:
    assert bert_splitter(True, True).words("Árvíz, (1879)! 中文\u00a0x") == [
        "arviz", ",", "(", "1879", ")", "!", "中", "文", "x",
    ]  # fmt: skip
    assert bert_splitter(False, False).lines("a,b\n\nA\u0301") == "a , b\n\nÁ"


def test_single_accents_do_not_combine() -> None:
    splitter = bert_splitter(False, False)
    assert splitter.words("\u0301x") == splitter.by_library("\u0301x") == ["\u0301x"]


def test_words_are_counted_over_all_sentences() -> None:
    counted = count_words(["a b, a", "B"] * 1500, bert_splitter(True, False))
    assert counted == {"a": 3000, "b": 3000, ",": 1500}


def test_a_space_of_no_width_separates_words_of_scripts_without_spaces() -> None:
    words = bert_splitter(False, False).words
    assert words("ទៅ\u200bផ្សារ") == ["ទៅ", "ផ្សារ"]
    assert words("ก\u200bข\u200bA4\u200b၁\u200bမ") == ["ก", "ข", "A4၁", "မ"]
    assert words("zero\u200bwidth ខ\u200b. \u200bខ") == ["zerowidth", "ខ", ".", "ខ"], "as in BERT"
