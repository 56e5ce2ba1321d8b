from bertwright.vocab.normal import bert_splitter
from bertwright.vocab.report import measure, script, script_lines, usage
from bertwright.vocab.split import count_words

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
    assert lines["Cyrillic"].startswith("2 words, 1.0 tokens a word, 50.00% unknown")
