"""Languages whose lower case is not that of BERT's tokenizers."""

from tests.rows import each_row

from bertwright.vocab.config import VocabConfig
from bertwright.vocab.letter_case import different_case
from bertwright.vocab.split import bert_splitter


@each_row(
    ("language", "word", "wrong", "right"),
    [
        ("tr", "IŞIK", "işik", "ışık"),
        ("tr", "İnsan", "i\u0307nsan", "insan"),
        ("az", "İLK", "i\u0307lk", "ilk"),
        ("el", "ΟΔΟΣ", "οδοσ", "οδος"),
        ("lt", "J\u0303", "j\u0303", "j\u0307\u0303"),
    ],
)
def test_a_language_that_the_tokenizers_lower_case_wrongly_is_named(
    language: str, word: str, wrong: str, right: str
) -> None:
    assert bert_splitter(True, False).words(word) == [wrong] != [right]
    text, remedy = different_case(VocabConfig(lower_case=True), language) or ("", "")
    assert f"in this language ({language}) wrongly" in text and remedy.startswith("Leave vocab.lower_case out")
    given = VocabConfig.model_validate({"file": "vocab.txt", "lower_case": True})
    assert (different_case(given, language) or ("", ""))[1].startswith("It must be as the vocabulary was made")
    assert different_case(VocabConfig(), language) is None


def test_of_other_languages_nothing_is_said() -> None:
    assert all(different_case(VocabConfig(lower_case=True), code) is None for code in ("hu", "en", "de", "kk", "uk"))
