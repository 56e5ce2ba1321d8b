from typing import Any

import pytest
from tests.rows import each_row

from bertwright.corpus import language
from bertwright.corpus.language import Identifier, detect

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
@each_row(("text", "code"), [(HUNGARIAN, "hu"), (ENGLISH, "en"), (UKRAINIAN, "uk")])
def test_clear_texts_need_no_py3langid(text: str, code: str) -> None:
    identifier = Identifier(["hu", "uk"])
    assert identifier.language(text * 3) == code
    assert identifier.wants(code) == (code != "en")


@pytest.mark.usefixtures("without_langid")
def test_cld2_shares_are_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    identifier = Identifier(["uk"])
    for shares, reliable, expected in [
        ([("uk", 20)], False, "uk"),
        ([("ru", 49), ("uk", 36)], False, "uk"),
        ([("ru", 55), ("uk", 40)], True, "uk"),
        ([("ru", 60), ("uk", 39)], True, "ru"),
    ]:
        monkeypatch.setattr(language, "detect", lambda text, found=(shares, reliable): found)
        assert identifier.language("") == expected


def test_py3langid_decides_where_cld2_is_unsure(monkeypatch: pytest.MonkeyPatch) -> None:
    for shares, reliable in [([("ru", 49), ("uk", 30)], False), ([("ru", 59), ("uk", 30)], True), ([("un", 0)], False)]:
        monkeypatch.setattr(language, "detect", lambda text, found=(shares, reliable): found)
        assert Identifier(["uk"]).language(UKRAINIAN) == "uk"
        assert Identifier(["uk"]).language(HUNGARIAN) == "hu"


@pytest.mark.usefixtures("without_langid")
@each_row("code", ["un", "zxx", "xx-Java"])
def test_a_script_alone_is_no_language(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """CLD2 is sure of the name of a script of which it knows no language."""
    monkeypatch.setattr(language, "detect", lambda text: ([(code, 99)], True))
    monkeypatch.setattr(language, "_labels", frozenset)
    assert Identifier(["hu"]).language("ꦱꦧꦼꦤ꧀") == ""


@pytest.mark.usefixtures("without_langid")
def test_all_of_a_long_text_is_represented() -> None:
    """A short beginning in another language, such as a quotation, does not decide; most of the text does."""
    identifier = Identifier(["hu"])
    assert identifier.language(ENGLISH * 30 + HUNGARIAN * 170) == "hu"
    assert identifier.language(HUNGARIAN * 30 + ENGLISH * 170) == "en"


def test_py3langid_identifies_what_cld2_does_not_know() -> None:
    identifier = Identifier(["ltg"])
    assert identifier.language(LATGALIAN) == "ltg"
    assert not identifier.wants(identifier.language(UKRAINIAN))


def test_konkani_is_not_identified() -> None:
    latin = "Bhaxe pasot lipi ghoddovpachi khoim. Sonvsarantlea zonn eke bhaxen apli lipi ghoddoil’li zalear. "
    kannada = "ಕೊಂಕ್ಣಿ ಭಾರತಾಂತ್ಲಿ ಏಕ್ ಭಾಸ್, ತೆ ಭಾರತಿ ಕುಟ್ಮಾಚೆ ಭಾಸ್ ಜಾವ್ನಾಸಾ ಆನಿ ಹರ್ಯೆಕ್ ಜಾಗ್ಯಾಂತ್ ಥೊಡ್ಯೊ ಸಬ್ದ್ ವಾಪರ್ತಾತ್. "
    assert [Identifier(["gom"]).language(text * 3) for text in (latin, kannada)] == ["", ""]


def test_language_unknown_to_both_is_not_identified() -> None:
    assert Identifier(["szl"]).language(HUNGARIAN) == ""
    assert Identifier(["szl", "ltg"]).language(LATGALIAN) == ""
    assert Identifier(["szl"]).wants("szl")


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
    assert Identifier(["sr"]).language(serbian) == "sr" == Identifier(["sr"]).language(croatian)
    assert Identifier(["hr", "sr"]).language(croatian) == Identifier(["sr", "hr"]).language(croatian) == "hr"
