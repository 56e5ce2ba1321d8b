from pathlib import Path

from bertwright.vocab.config import VocabConfig
from bertwright.vocab.report import measure, script, script_lines, shortcomings, usage
from bertwright.vocab.split import bert_splitter, count_words

ENTRIES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "##s", "a", ".", "мир", "zebra", "1", "##8"]
WORDS = count_words(["a cats dog. мир миры", "a 18"], bert_splitter(False, False))


def test_by_script_by_hand() -> None:
    report = measure(ENTRIES, WORDS)
    # Latin: a a cats dog -> a, a, cat ##s, [UNK]; Cyrillic: мир, миры -> мир, [UNK]; digits: 18 -> 1 ##8; marks: "."
    assert list(report["scripts"]) == ["Latin", "Cyrillic", "digits", "other marks"]
    latin, cyrillic, digits, marks = report["scripts"].values()
    assert latin == {
        "words": 4, "fertility": 1.25, "unknown_rate": 0.25, "single_character_rate": 0.6,
        "unused_rate": 0.25, "entries": 4, "unused": 1,
    }  # fmt: skip
    assert (cyrillic["words"], cyrillic["unknown_rate"], cyrillic["entries"]) == (2, 0.5, 1)
    assert (digits["fertility"], digits["single_character_rate"]) == (2.0, 1.0)
    assert (marks["words"], marks["unused"]) == (1, 0)
    assert report["sample_words"] == 8 and report["sample_tokens"] == 10
    assert sum(row["words"] for row in report["scripts"].values()) == report["sample_words"]


def test_what_is_unknown_is_counted_in_words_and_characters_and_named() -> None:
    # unknown: dog, миры (7 of 19 characters); entries by themselves: a . 1 8 s
    report = measure(ENTRIES, WORDS)
    assert report["unknown_character_rate"] == round(7 / 19, 6) and report["too_long"] == 0
    alphabet = report["alphabet"]
    assert (alphabet["characters"], alphabet["of"]) == (5, 14)
    assert alphabet["coverage"] == round(7 / 19, 6)
    assert alphabet["missing"] == ["и", "м", "р", "c", "d", "g", "o", "t", "ы"]
    assert shortcomings(report, VocabConfig()) == (
        "warning: 25.00% of the words, with 36.84% of the characters, are unknown ([UNK]); 63.158% of the characters "
        "are not in the vocabulary, such as и м р c d g o t ы. Raise vocab.alphabet_coverage."
    )


def test_the_remedy_for_unknown_words_names_its_coverage() -> None:
    for added, remedy in (
        (False, "Set vocab.trainer.add_characters=true, or raise vocab.trainer.character_coverage."),
        (True, "Raise vocab.alphabet_coverage."),
    ):
        trainer = {"kind": "sentencepiece", "add_characters": added}
        told = shortcomings(measure(ENTRIES, WORDS), VocabConfig.model_validate({"trainer": trainer}))
        assert told.endswith(f"such as и м р c d g o t ы. {remedy}")


def test_where_every_character_has_an_entry_no_coverage_is_advised() -> None:
    told = shortcomings(measure([*ENTRIES, "##a"], {"a" * 101: 1, "a": 2}), VocabConfig())
    assert told.endswith("without a space.")


def test_of_a_given_vocabulary_the_remedy_is_another_one() -> None:
    given = VocabConfig(file=Path("vocab.txt"), size=None)
    assert shortcomings(measure(ENTRIES, WORDS), given).endswith(
        "are not in the vocabulary, such as и м р c d g o t ы. Take a vocab.file made for such text, or leave "
        "it out to train one."
    )
    told = shortcomings(measure([*ENTRIES, "##a"], {"a" * 101: 1, "a": 2}), given)
    assert told.endswith("without a space. Take a vocab.file made for such text, or leave it out to train one.")


def test_one_unknown_word_in_a_thousand_is_not_worth_a_word() -> None:
    assert shortcomings(measure(ENTRIES, {"a": 999, "q": 1}), VocabConfig()) == ""
    assert shortcomings(measure(ENTRIES, {"a": 998, "q": 2}), VocabConfig()) != ""


def test_special_tokens_in_the_text_are_text() -> None:
    assert measure(ENTRIES, count_words(["[MASK]"], bert_splitter(False, False)))["unknown_rate"] == 1


def test_usage_counts_entries() -> None:
    assert usage(ENTRIES, WORDS) == {
        "a": 2, "cat": 1, "##s": 1, "[UNK]": 2, ".": 1, "мир": 1, "1": 1, "##8": 1,
    }  # fmt: skip


def test_nothing_is_measured_as_nothing() -> None:
    report = measure(ENTRIES, {})
    assert report["sample_words"] == report["fertility"] == 0 and report["scripts"] == {}


def test_scripts_and_their_lines() -> None:
    found = map(script, ["##árvíz", "Ελλάδα", "'ukr", "中", "ひ", "2026", "...", "\U000e0001"])
    assert list(found) == ["Latin", "Greek", "Latin", "Cjk", "Hiragana", "digits", "other marks", "other marks"]
    lines = dict(script_lines(measure(ENTRIES, WORDS)["scripts"]))
    assert lines["Cyrillic"].startswith("2 words, 1.0 tokens per word, 50.00% unknown")


def test_a_given_vocabulary_that_the_text_hardly_uses_is_named() -> None:
    given = VocabConfig(file=Path("vocab.txt"), size=None)
    letters = [*ENTRIES[:5], *"abc", *(f"##{letter}" for letter in "abc")]
    in_letters = measure(letters, {"abca": 900, "ab": 100})
    assert shortcomings(in_letters, given) == (
        "warning: 3.8 tokens per word (1.1 to 2 are usual), 100% of the tokens are one character. Leave vocab.file "
        "out to train one on this text, unless training starts from a network that has this one."
    )
    assert shortcomings(in_letters, VocabConfig()) == "", "one of this corpus is as small as was asked for"
    foreign = [*letters, "abca", *(f"x{number}" for number in range(20))]
    assert "91% of the entries occur nowhere in 1,000 words" in shortcomings(
        measure(foreign, {"abca": 900, "ab": 100}), given
    )
    assert shortcomings(measure(foreign, {"abca": 90, "ab": 10}), given) == "", "too little text to tell"
