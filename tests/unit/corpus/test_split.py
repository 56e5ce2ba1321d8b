from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertwright.corpus.split import splitter


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


def test_other_languages_are_left_to_sentencex() -> None:
    assert splitter("en")("It was cold. The lake froze.") == ["It was cold.", "The lake froze."]
    assert splitter("ltg")("Viesture. Cylvāks.") == ["Viesture.", "Cylvāks."]


@settings(max_examples=200, deadline=None)
@given(st.text("Aaá. \n\t\u00a0\u2028IVX1!?„”()-", max_size=80), st.sampled_from(["hu", "en", "uk"]))
def test_sentences_hold_all_the_text_and_no_newline(text: str, language: str) -> None:
    sentences = splitter(language)(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    for sentence in sentences:
        assert sentence == " ".join(sentence.split()) != ""


def f1(documents: list[list[str]]) -> float:
    """F1 of sentence boundaries, gold sentences joined in blocks of ten by one space."""
    split, hits, found, wanted = splitter("hu"), 0, 0, 0
    for document in documents:
        for i in range(0, len(document), 10):
            gold = _ends(document[i : i + 10])
            ours = _ends(split(" ".join(document[i : i + 10])))
            hits, found, wanted = hits + len(gold & ours), found + len(ours), wanted + len(gold)
    return 200 * hits / (found + wanted)


def _ends(sentences: list[str]) -> set[int]:
    ends, done = [], 0
    for sentence in sentences:
        done += len("".join(sentence.split()))
        ends.append(done)
    return set(ends[:-1])


def test_hungarian_wikipedia_gold(shared: Path) -> None:
    text = (shared / "text/hu_nerkor_wikipedia_sents.txt").read_text(encoding="utf-8")
    assert f1([block.split("\n") for block in text.strip().split("\n\n")]) >= 98.0


def test_hungarian_news_gold(shared: Path) -> None:
    documents = []
    for path in sorted((shared / "eval/ud_hungarian_szeged").glob("*.conllu")):
        lines = path.read_text(encoding="utf-8").split("\n")
        documents.append([line.removeprefix("# text = ") for line in lines if line.startswith("# text = ")])
    assert f1(documents) >= 98.5
