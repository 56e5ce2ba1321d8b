"""How the sentence benchmark reads gold sentences and counts boundaries."""

import sys
from pathlib import Path

from tests.rows import each_row

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))  # the script imports its neighbours by their short names
try:
    from benchmarks.sentences import blocks, boundaries, conllu, errors, paragraph, score, sections
finally:
    sys.path.remove(str(ROOT / "benchmarks"))


def test_boundaries_are_counted_in_characters_without_spaces() -> None:
    assert boundaries(["A b.", "C d e.", "F."]) == {3, 7}
    assert boundaries(["All."]) == boundaries([]) == set()


def test_score_counts_false_and_missed_boundaries() -> None:
    paragraphs = [["One.", "Two.", "Three."], ["Four."]]
    assert score(paragraphs, lambda text: text.split(" ")) == "100.00 (0 + 0)"
    assert score(paragraphs, lambda text: [text]) == "0.00 (0 + 2)"
    assert score(paragraphs[:1], lambda text: ["One.", "Two. Th", "ree."]) == "50.00 (1 + 1)"


def test_chinese_and_japanese_are_joined_without_spaces() -> None:
    assert paragraph(["One.", "Two.", "三。", "「四。」", "Five."]) == "One. Two. 三。「四。」Five."


def test_errors_show_the_place() -> None:
    (place,) = errors([["One.", "Two."]], lambda text: [text], 5)
    assert place == "missed: …One. | Two.…"


def test_conllu_follows_paragraphs_or_makes_blocks_of_ten() -> None:
    marked = "# newdoc id = a\n# newpar\n# text = One.\n1\tOne\n\n# text = Two.\n\n"
    marked += "# newpar\n# text = Three.\n\n# text = Four.\n"
    assert conllu(marked) == [["One.", "Two."], ["Three.", "Four."]]
    single = "".join(f"# newpar\n# text = S{n}.\n\n" for n in range(12))
    assert [len(block) for block in conllu(single)] == [10, 2], "paragraphs of one sentence say nothing of ends"
    plain = "".join(f"# text = S{n}.\n\n" for n in range(12))
    assert [len(block) for block in conllu(plain)] == [10, 2]


def test_sections_and_blocks() -> None:
    assert sections("a\nb\n\nc\n") == [["a", "b"], ["c"]]
    assert blocks(list("abcdefghijk")) == [list("abcdefghij"), ["k"]]


FEWEST = dict.fromkeys(("bn", "de", "el", "fi", "hy", "tr"), 35) | dict.fromkeys(
    ("bg", "ja", "pl", "sr", "uk", "zh"), 15
)


@each_row(("language", "fewest"), [*FEWEST.items(), ("th", 7)])
def test_hand_written_gold_is_clean(language: str, fewest: int) -> None:
    paragraphs = sections((ROOT / "tests/unit/corpus/sentences" / f"{language}.txt").read_text("utf-8"))
    sentences = [sentence for paragraph in paragraphs for sentence in paragraph]
    assert fewest <= len(sentences) <= 50
    assert all(sentence == " ".join(sentence.split()) != "" for sentence in sentences)
    assert len(set(sentences)) == len(sentences)
