import os
from pathlib import Path

import pytest
from tests.unit.examples.made import text

from bertwright.core.errors import ArtifactError
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.normal import build_tokenizer
from bertwright.vocab.tokenizer import Tokenizer
from bertwright.vocab.wordpiece import train_wordpiece

SHARED = Path(os.environ.get("BERTWRIGHT_SHARED", Path(__file__).parents[4] / "shared"))
HUNGARIAN = SHARED / "data" / "text" / "hu_nerkor_wikipedia_sents.txt"
UNCASED = SHARED / "data" / "vocab" / "bert-base-uncased-vocab.txt"

NASTY = [
    "",
    " ",
    "  two  spaces ",
    "tab\tand\u00a0no-break\u2003em space",
    "a\u0301 e\u0301\u0302 \u0301lone mark",
    "soft\u00adhyphen zero\u200bwidth \ufeffbom \x00nul \x07bell",
    "日本語と한국어 中文abc文",
    "ΣΊΣΥΦΟΣ ΣΑΣ İstanbul ǅ straße ﬁ",
    "emoji 👩‍👩‍👧 🇭🇺 e.g. U.S.A. can't-won't",
    "x" * 101 + " " + "y" * 100,
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \U0010ffff \ufffd",
    "١٢٣ ½ 10⁻³ H₂O",
]


def built(lower_case: bool = False, strip_accents: bool = False, **arguments: int) -> tuple[Tokenizer, object]:
    sentences = [sentence for document in text(100) for sentence in document] + NASTY
    config = VocabConfig(size=600, lower_case=lower_case, strip_accents=strip_accents)
    fast = build_tokenizer(train_wordpiece(config, lambda: sentences), lower_case, strip_accents)
    return Tokenizer(fast, **arguments), fast


def assert_equal_to_the_library(ours: Tokenizer, fast: object, sentences: list[str]) -> None:
    ids, lengths = ours.encode_sentences(sentences)
    expected = [e.ids for e in fast.encode_batch(sentences, add_special_tokens=False)]  # type: ignore[attr-defined]
    assert lengths.tolist() == [len(e) for e in expected]
    assert ids.tolist() == [i for e in expected for i in e]
    assert ids.dtype.name == "uint32"


@pytest.mark.parametrize("lower_case", [False, True])
@pytest.mark.parametrize("strip_accents", [False, True])
def test_ids_are_those_of_tokenizers(lower_case: bool, strip_accents: bool) -> None:
    ours, fast = built(lower_case, strip_accents)
    made = [sentence for document in text(60, seed=8) for sentence in document]
    assert_equal_to_the_library(ours, fast, made + NASTY)
    assert_equal_to_the_library(ours, fast, NASTY + made)  # from a warm cache


def test_a_small_cache_changes_nothing() -> None:
    ours, fast = built(cached_words=20)
    sentences = [sentence for document in text(20, seed=3) for sentence in document]
    for start in range(0, len(sentences), 7):
        assert_equal_to_the_library(ours, fast, sentences[start : start + 7])


def test_nothing_gives_nothing() -> None:
    ids, lengths = built()[0].encode_sentences([])
    assert len(ids) == len(lengths) == 0


def test_special_tokens_in_running_text_are_text() -> None:
    ours, _ = built()
    ids, _ = ours.encode_sentences(["the [MASK] and [SEP] tokens"])
    assert not {ours.ids("[MASK]"), ours.ids("[SEP]")} & set(ids.tolist())


def test_entries_ids_and_text() -> None:
    ours, fast = built()
    assert ours.vocabulary[0] == "[PAD]" and ours.ids("[MASK]") == 4
    assert ours.continuation.tolist() == [entry.startswith("##") for entry in ours.vocabulary]
    ids, _ = ours.encode_sentences(["Gárőmu cédi."])
    assert ours.decode([ours.ids("[CLS]"), *ids]) == "[CLS] Gárőmu cédi ."
    assert fast.encode("ba", "di").tokens == ["[CLS]", "ba", "[SEP]", "di", "[SEP]"]  # type: ignore[attr-defined]
    with pytest.raises(ArtifactError, match="no entry 'nonsense'"):
        ours.ids("nonsense")


@pytest.mark.skipif(not (HUNGARIAN.exists() and UNCASED.exists()), reason=f"no shared data at {SHARED}")
@pytest.mark.parametrize(("lower_case", "strip_accents"), [(True, True), (False, False)])
def test_ids_are_those_of_tokenizers_on_real_text(lower_case: bool, strip_accents: bool) -> None:
    fast = build_tokenizer(UNCASED.read_text("utf-8").splitlines(), lower_case, strip_accents)
    assert_equal_to_the_library(Tokenizer(fast), fast, HUNGARIAN.read_text("utf-8").splitlines()[:3000])
