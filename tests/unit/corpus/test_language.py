from typing import Any

import pytest
from tests.rows import each_row

from bertwright.corpus import language
from bertwright.corpus.language import Answers, Identifier, answers, detect
from bertwright.corpus.wikis import wikis

HUNGARIAN = "A folyó lassan kanyarog a dombok között, és estére eléri a tengert, ahol a halászok várják. "
ENGLISH = "The old river winds slowly between the hills and reaches the sea by evening, where fishermen wait. "
UKRAINIAN = "Стара річка повільно тече між пагорбами і ввечері досягає моря, де на неї чекають рибалки. "
LATGALIAN = "Latgola ir Latvejis vaļsts dīnvydaustrumu reģions, kur dzeivoj latgalīši i runoj latgalīšu volūdā. "


class Never:
    """Stands in for py3langid where it must not be asked."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"py3langid was loaded for its {name}")


@pytest.fixture
def without_langid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "_langid", Never)


@pytest.mark.usefixtures("without_langid")
@each_row(("text", "code"), [(HUNGARIAN, "hu"), (UKRAINIAN, "uk")])
def test_texts_in_the_wanted_language_need_no_py3langid(text: str, code: str) -> None:
    assert Identifier(["hu", "uk"]).language(text * 3) == code


def test_a_sure_answer_that_the_language_never_got_is_foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    identifier = Identifier(["uk"])
    for shares, reliable, expected in [
        ([("uk", 20)], False, "uk"),
        ([("ru", 59), ("uk", 40)], True, ""),
        ([("ru", 100)], False, ""),
        ([("un", 100)], True, ""),
        ([("ru", 60), ("uk", 39)], True, "ru"),
    ]:
        monkeypatch.setattr(language, "detect", lambda text, found=(shares, reliable): found)
        assert identifier.language(ENGLISH) == expected


def test_py3langid_can_keep_what_cld2_takes_for_another_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "detect", lambda text: ([("ru", 90)], True))
    assert Identifier(["uk"]).language(UKRAINIAN) == "uk"
    assert Identifier(["uk"]).language(HUNGARIAN) == "ru"


SCOTS = (
    "Edinburgh is the caipital o Scotland and the seicont lairgest ceety in the kintra. It staunds on the sooth shore "
    "o the Firth o Forth and haes been the seat o the Scots govrenment syne the fifteent century. "
)
MALAY = (
    "Malaysia ialah sebuah negara raja berperlembagaan di Asia Tenggara yang terdiri daripada tiga belas buah negeri. "
    "Ibu negaranya ialah Kuala Lumpur, dan kerajaan persekutuan terletak di Putrajaya. "
)
INDONESIAN = (
    "Indonesia adalah sebuah negara kepulauan di Asia Tenggara yang dilintasi garis khatulistiwa. Ibu kotanya adalah "
    "Jakarta, dan penduduknya tersebar di ribuan pulau besar maupun kecil. "
)
CANTONESE = (
    "香港係中華人民共和國嘅一個特別行政區，喺珠江口東邊，北面係深圳。呢度嘅人多數講廣東話，平時都係用中文同英文。"
)
RUNDI = "Abantu bose bavukana amateka n'agateka bingana. Bategerezwa kubanirana nk'abavandimwe, bafise umutima. "


@each_row(
    ("wiki", "text"),
    [
        ("sco", SCOTS), ("sco", ENGLISH), ("zh-yue", CANTONESE), ("yue", CANTONESE), ("ms", MALAY), ("ms", INDONESIAN),
        ("id", MALAY), ("id", INDONESIAN), ("rn", RUNDI), ("szl", "Ślōnsk je krajinōm w Polsce, Czechach a Niymcach. "),
    ],
)  # fmt: skip
def test_close_languages_are_not_foreign(wiki: str, text: str) -> None:
    assert Identifier([wiki]).language(text * 3) in ("", wiki)


@each_row(
    ("wiki", "text", "code"),
    [
        ("el", ENGLISH, "en"), ("uk", HUNGARIAN, "hu"), ("sco", HUNGARIAN, "hu"), ("szl", ENGLISH, "en"),
        ("zh-yue", ENGLISH, "en"), ("ms", ENGLISH, "en"), ("it", ENGLISH, "en"), ("ltg", UKRAINIAN, "uk"),
        ("pt", INDONESIAN, "id"), ("gom", ENGLISH, "en"),
    ],
)  # fmt: skip
def test_other_languages_are_foreign_in_any_wiki_that_was_measured(wiki: str, text: str, code: str) -> None:
    assert Identifier([wiki]).language(text * 3) == code and not Identifier([wiki]).wants(code)


def test_answers_are_known_for_most_wikis_and_suffice_only_where_they_are_many() -> None:
    measured = [code for code in wikis() if answers(code).texts]
    assert len(measured) > 340 and sum(answers(code).suffice for code in measured) > 315
    assert "en" in answers("sco").own and "id" in answers("ms").own and "ms" in answers("id").own
    assert answers("yue") is answers("zh-yue") and "zh" in answers("yue").own
    assert not Identifier(["chr"]).knows and Identifier(["chr"]).language(ENGLISH * 3) == ""
    once = dict.fromkeys(("en", "de", "fr", "it"), 1)
    assert not Answers(("xx",), 100, {"xx": 96, **once}, (), frozenset()).suffice
    assert Answers(("xx",), 200, {"xx": 196, **once}, (), frozenset()).suffice
    assert not Answers(("xx",), 9, {"xx": 9}, (), frozenset()).suffice


@each_row("code", ["un", "zxx", "xx-Java"])
def test_what_is_no_language_is_not_foreign(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language.pycld2, "detect", lambda text: (True, 100, (("NAME", code, 99, 1.0),)))
    assert Identifier(["hu"]).language("ꦱꦧꦼꦤ꧀ꦮꦺꦴꦁ") == ""


def test_all_of_a_long_text_is_represented() -> None:
    """A short beginning in another language, such as a quotation, does not decide; most of the text does."""
    identifier = Identifier(["hu"])
    assert identifier.language(ENGLISH * 30 + HUNGARIAN * 170) == "hu"
    assert identifier.language(HUNGARIAN * 30 + ENGLISH * 170) == "en"


def test_a_language_that_cld2_does_not_know_is_not_foreign() -> None:
    assert Identifier(["ltg"]).language(LATGALIAN) in ("", "ltg")


def test_konkani_is_kept_in_both_of_its_scripts() -> None:
    latin = "Bhaxe pasot lipi ghoddovpachi khoim. Sonvsarantlea zonn eke bhaxen apli lipi ghoddoil’li zalear. "
    kannada = "ಕೊಂಕ್ಣಿ ಭಾರತಾಂತ್ಲಿ ಏಕ್ ಭಾಸ್, ತೆ ಭಾರತಿ ಕುಟ್ಮಾಚೆ ಭಾಸ್ ಜಾವ್ನಾಸಾ ಆನಿ ಹರ್ಯೆಕ್ ಜಾಗ್ಯಾಂತ್ ಥೊಡ್ಯೊ ಸಬ್ದ್ ವಾಪರ್ತಾತ್. "
    assert all(Identifier(["gom"]).language(text * 3) in ("", "gom") for text in (latin, kannada))


def test_no_text_is_foreign_where_a_wanted_language_was_not_measured() -> None:
    assert Identifier(["xx"]).language(HUNGARIAN) == ""
    assert Identifier(["xx", "uk"]).language(HUNGARIAN) == ""
    assert Identifier(["xx"]).wants("xx")


@pytest.mark.usefixtures("without_langid")
@each_row(
    ("wiki", "text"),
    [
        ("simple", ENGLISH),
        ("he", "ירושלים היא עיר הבירה של מדינת ישראל והעיר הגדולה ביותר בה, והיא שוכנת בהרי יהודה. "),
        ("nb", "Hun ble født i Oslo, men flyttet etter hvert til Bergen, og hva hun gjorde der, vet ingen. "),
        ("arz", "القاهرة هي عاصمة جمهورية مصر العربية وأكبر مدنها وتقع على ضفاف نهر النيل في شمال مصر. "),
        ("zh", "北京市是中华人民共和国的首都，也是全国的政治和文化中心，位于华北平原的北部。"),
    ],
)
def test_the_codes_of_wikis_are_understood(wiki: str, text: str) -> None:
    assert Identifier([wiki]).language(text * 3) == wiki


def test_detect_survives_what_cld2_refuses() -> None:
    (first, *_), reliable = detect(HUNGARIAN * 2 + "\ufffe\x0b")
    assert first[0] == "hu" and reliable
    assert detect("") == ([("un", 0)] * 3, False)


def test_a_wanted_language_precedes_the_neighbour_of_another() -> None:
    serbian = "Grad leži na reci i ima tri miliona stanovnika. " * 8
    croatian = "Grad leži na rijeci i ima više od tri milijuna stanovnika, tisuću crkava i kazališta. " * 8
    assert Identifier(["sr"]).language(croatian) in ("", "sr")
    assert Identifier(["hr", "sr"]).language(croatian) == Identifier(["sr", "hr"]).language(croatian) == "hr"
    assert Identifier(["hr", "sr"]).language(serbian) in ("", "sr")
