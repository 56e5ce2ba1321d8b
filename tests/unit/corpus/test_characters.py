import unicodedata

import pytest
from tests.rows import each_row

from bertwright.corpus import characters
from bertwright.corpus.characters import (
    LAST_LETTER,
    bare,
    in_word,
    is_syllable,
    letters,
    script,
    scripts,
    shortest_word,
    spaced,
)
from bertwright.corpus.words import count_tokens


def test_table_alphabets_are_the_settled_ones() -> None:
    assert set(letters("hu")) == set("abcdefghijklmnopqrstuvwxyzáéíóöőúüű")
    assert set(letters("uk")) == set("абвгґдеєжзиіїйклмнопрстуфхцчшщьюя")
    assert len(letters("ru")) == 33
    assert letters("simple") == letters("en") == "abcdefghijklmnopqrstuvwxyz"


def test_other_languages_get_their_script_with_its_marks() -> None:
    assert set("কি্") <= set(letters("bn"))
    assert "a" not in letters("bn")
    assert set("աև") <= set(letters("hy"))
    assert set("語かナ") <= set(letters("ja"))


def test_an_unlisted_language_is_latin() -> None:
    assert set("abyķūōž") <= set(letters("ltg"))
    assert not set("яα") & set(letters("ltg"))


@each_row(
    ("language", "text"),
    [
        ("mag", "मगही भाषा"),
        ("tig", "ትግረ"),
        ("rki", "ရခိုင်"),
        ("mo", "република Молдова"),
        ("syl", "ꠍꠤꠟꠐꠤ"),
        ("cdo", "Mìng-dĕ̤ng-ngṳ̄ 閩東語"),
        ("hak", "Hak-kâ-fa 客家話"),
        ("zh-min-nan", "Bân-lâm-gí 閩南語"),
        ("lad", "djudeo-espanyol גﬞודיאו־איספאנייול"),
        ("kaa", "Qaraqalpaq Қарақалпақ"),
        ("mni", "ꯃꯤꯇꯩꯂꯣꯟ মৈতৈলোন্"),
    ],
)
def test_a_wiki_is_written_in_its_own_scripts(language: str, text: str) -> None:
    assert {script(letter) for letter in text if letter.isalpha()} <= scripts(language)


def test_a_language_without_a_wiki_may_be_written_in_any_script() -> None:
    assert {"LATIN", "ARABIC", "DEVANAGARI", "CJK"} <= scripts("bgc") == scripts("xx")
    assert scripts("ltg") == {"LATIN"}


def test_cherokee_is_written_in_what_unicode_calls_capitals() -> None:
    assert set("ᏣᎳᎩ") <= set(letters("chr"))
    assert "Ა" not in letters("ka") and "ა" in letters("ka")


def test_no_alphabet_holds_capitals() -> None:
    for language in ("hu", "uk", "vi", "ltg", "el", "hy"):
        assert letters(language) == letters(language).lower(), language


def test_words_are_one_letter_where_spaces_do_not_part_them() -> None:
    assert (shortest_word("hu"), shortest_word("ja"), shortest_word("zh"), shortest_word("ko")) == (2, 1, 1, 1)


def test_some_languages_put_no_spaces_between_words() -> None:
    unspaced = [code for code in ("hu", "ko", "zh", "zh-yue", "ja", "th", "km", "bn", "ltg") if not spaced(code)]
    assert unspaced == ["zh", "zh-yue", "ja", "th", "km"]


def test_the_newest_ideographs_are_letters_and_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Letters are looked for as far as words are: an older Unicode of Python's has no name for the last of them."""
    last = chr(LAST_LETTER)
    named = unicodedata.name
    monkeypatch.setattr(unicodedata, "name", lambda c, *d: "CJK UNIFIED IDEOGRAPH-323AF" if c == last else named(c, *d))
    monkeypatch.setattr(unicodedata, "category", lambda c: "Lo")
    assert characters._letters_of.__wrapped__("CJK").endswith(last)
    assert count_tokens(last * 4) == 2 and count_tokens(chr(LAST_LETTER + 1) * 4) != 2


def test_marks_and_joiners_are_parts_of_words() -> None:
    assert not "कि".isalpha(), "Python's letters are fewer"
    assert bare("कि") == "क" and bare("می\u200cشود") == "میشود" and bare("क्\u200dष") == "कष"
    assert [bare(word).isalpha() for word in ("മീ", "ក្រុម", "ས་", "1st")] == [True, True, False, False]
    assert all(map(in_word, "aπ5ি\u0301\u200c\u200d")) and not any(map(in_word, ("", ".", " ", "\u200b", "।")))


def test_a_syllable_is_a_letter_with_what_joins_it() -> None:
    assert all(map(is_syllable, ("कि", "प्र", "श्री", "क्\u200dष", "ს", "கி", "Ç", "a\u0301")))
    assert not any(map(is_syllable, ("", "आहे", "होते", "एम", "১", "ি", "কি.", "ab")))


def test_every_mark_of_a_script_is_known() -> None:
    marks = {c for c in map(chr, range(0x20000)) if unicodedata.category(c)[0] == "M"}
    assert not {c for c in marks if not in_word(c) or bare(c)}
