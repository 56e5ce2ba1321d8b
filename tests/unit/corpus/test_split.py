import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertwright.corpus.split import splitter

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))  # the script imports its neighbours by their short names
try:
    from benchmarks.sentences import alone_splitter, gold_sets, score
finally:
    sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize(
    "sentence",
    [
        "A szerződést 2010. augusztus 5-én írták alá.",
        "II. Lipót király 1790. február 20. óta uralkodott.",
        "A város kb. 300 lakosú, ill. annál nagyobb.",
        "A 2. világháború idején a Bp. Honvéd nem játszott.",
        "Lakói (pl. Kovács János és Dr. Szabó Anna) maradtak.",
        "„Gyere ide!” – mondta halkan.",
    ],
)
def test_hungarian_sentences_that_stay_whole(sentence: str) -> None:
    assert splitter("hu")(sentence) == [sentence]


def test_hungarian_sentences_that_are_two() -> None:
    split = splitter("hu")
    assert split("Hideg volt. A tó befagyott.") == ["Hideg volt.", "A tó befagyott."]
    assert split("A csapat győzött 3–0-ra. Mindenki örült!") == ["A csapat győzött 3–0-ra.", "Mindenki örült!"]


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("de", "Die Sitzung am 3. Oktober dauerte lange."),
        ("de", "Er kam im 19. Jahrhundert in die Stadt."),
        ("fi", "Kirjan kirjoitti J. R. R. Tolkien kotonaan."),
        ("fi", "Se alkoi 1. maaliskuuta aamulla."),
        ("tr", "Savaşta 3. Ordu komutanıydı."),
        ("tr", "Bkz. Prof. Dr. Ayşe Kaya ve II. Mehmet."),
        ("el", "Το ΠΑ.ΣΟ.Κ. κέρδισε τις εκλογές."),
        ("hy", "Ա. Խաչատրյանը ծնվել է այստեղ։"),
        ("bn", "ড. রহমান ১.৫ কিলোমিটার হেঁটেছেন।"),
        ("uk", "Він жив на вул. Шевченка у м. Києві з І. Франком."),
    ],
)
def test_sentences_of_other_languages_that_stay_whole(language: str, sentence: str) -> None:
    assert splitter(language)(sentence) == [sentence]


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ["It was cold.", "The lake froze."]),
        ("ltg", ["Viesture.", "Cylvāks."]),
        ("xx", ["It was granted.", "4. Restrictions apply."]),
        ("de", ["Es endete 1804.", "Die Stadt wuchs."]),
        ("el", ["Πότε ήρθες;", "Δεν ξέρω."]),
        ("hy", ["Ցուրտ էր։", "Լիճը սառեց։"]),
        ("bn", ["সে এল।", "আমি গেলাম।"]),
    ],
)
def test_sentences_that_are_two(language: str, sentences: list[str]) -> None:
    assert splitter(language)(" ".join(sentences)) == sentences


def test_a_quotation_mark_after_a_space_belongs_to_what_follows() -> None:
    sentences = ["”Milloin tulet?” hän kysyi.", "”Huomenna”, vastasi Matti."]
    assert splitter("fi")(" ".join(sentences)) == sentences
    sentences = ['It bears the "CE" mark, so "he said.', '"Balzac" is another.']
    assert splitter("en")(" ".join(sentences)) == sentences


@pytest.mark.parametrize("language", ["hu", "en", "ja"])
@pytest.mark.parametrize(
    "unit", ["Az árvíz elvitte a hidat. ", "„", 'Azt mondta: "nem. ', "a", "3. ", "(", "。", "I. "]
)
def test_a_paragraph_of_any_length_keeps_its_text(language: str, unit: str) -> None:
    """Far more than is given to sentencex at once, whose time grows with the square of some of these."""
    text = unit * (60_000 // len(unit))
    sentences = splitter(language)(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence == sentence.strip() != "" for sentence in sentences)


def test_a_long_paragraph_is_cut_as_its_parts_are() -> None:
    sentences = [f"A {i}. hídon át {'lassan ' * (i % 40)}ment haza Kovács Béla." for i in range(1, 400)]
    assert splitter("hu")(" ".join(sentences)) == sentences


@settings(max_examples=200, deadline=None)
@given(
    st.text("Aaá. \n\t\u00a0\u2028IVX1!?„”\"'»()-։।", max_size=80),
    st.sampled_from(["hu", "en", "uk", "de", "tr", "hy", "bn"]),
)
def test_sentences_hold_all_the_text_and_no_newline(text: str, language: str) -> None:
    sentences = splitter(language)(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    for sentence in sentences:
        assert sentence == " ".join(sentence.split()) != ""


LEAST = {"NerKor, odd files": 98.2, "UD Hungarian-Szeged": 98.5, "UD English-EWT": 86.6}


def test_gold_sentences(shared: Path) -> None:
    """Boundaries are found as well as promised (F1, percent), and in no set worse than by sentencex alone."""
    ours, alone = {}, {}
    for name, language, paragraphs in gold_sets(shared):
        ours[name] = float(score(paragraphs, splitter(language)).split()[0])
        alone[name] = float(score(paragraphs, alone_splitter(language)).split()[0])
    assert {name: ours[name] for name in ours if ours[name] < LEAST.get(name, alone[name])} == {}
    assert ours.keys() >= LEAST.keys() | {
        f"hand-written {language}" for language in ("bn", "de", "el", "fi", "hy", "tr", "uk")
    }
