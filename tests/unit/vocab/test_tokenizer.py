import json
import lzma
import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each_row
from tests.unit.examples.made import text
from tokenizers import Tokenizer as FastTokenizer

from bertwright.core.errors import ArtifactError
from bertwright.vocab.config import VocabConfig, WordPieceConfig
from bertwright.vocab.entries import SPECIALS
from bertwright.vocab.split import bert_splitter, build_tokenizer, count_words
from bertwright.vocab.tokenizer import Tokenizer
from bertwright.vocab.trainers import train_wordpiece
from bertwright.vocab.word_table import APART, ASCII_APART

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
    "ទៅ\u200bផ្សារ\u200b២០\u200b\u200bA4 \u200bก\u200b.\u200bข b\u200bc",
    "ΣΊΣΥΦΟΣ ΣΑΣ İstanbul ǅ straße ﬁ",
    "emoji 👩‍👩‍👧 🇭🇺 e.g. U.S.A. can't-won't",
    "x" * 101 + " " + "y" * 100,
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \U0010ffff \ufffd",
    "١٢٣ ½ 10⁻³ H₂O",
]


def built(lower_case: bool = False, strip_accents: bool = False, **arguments: int) -> tuple[Tokenizer, FastTokenizer]:
    sentences = [sentence for document in text(100) for sentence in document] + NASTY
    config = VocabConfig(size=600, lower_case=lower_case, strip_accents=strip_accents)
    words = count_words(sentences, bert_splitter(lower_case, strip_accents))
    fast = build_tokenizer(train_wordpiece(config, WordPieceConfig(), words), lower_case, strip_accents)
    return Tokenizer(fast, **arguments), fast


FUZZED = {lower_case: built(lower_case, lower_case) for lower_case in (False, True)}


def assert_equal_to_the_library(ours: Tokenizer, fast: FastTokenizer, sentences: list[str]) -> None:
    ids, lengths = ours.encode_sentences(sentences)
    description = json.loads(fast.to_str()) | {"added_tokens": []}  # special tokens in running text are text
    plain = FastTokenizer.from_str(json.dumps(description))
    expected = [e.ids for e in plain.encode_batch(sentences, add_special_tokens=False)]
    assert lengths.tolist() == [len(e) for e in expected]
    assert ids.tolist() == [i for e in expected for i in e]
    assert ids.dtype.name == "uint32"


@each_row("lower_case", [False, True])
@each_row("strip_accents", [False, True])
def test_ids_are_those_of_tokenizers(lower_case: bool, strip_accents: bool) -> None:
    ours, fast = built(lower_case, strip_accents)
    made = [sentence for document in text(60, seed=8) for sentence in document]
    assert_equal_to_the_library(ours, fast, made + NASTY)
    assert_equal_to_the_library(ours, fast, NASTY + made)  # from a warm cache


ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyzáéíóöőúüűABÁŐ .,-",
    "aeocAEOC \u0301\u0302\u0308\u030b\u0323\u0338<=>≮",  # marks that combine, also with signs
    ",.;:!?)]”»…([„«-'\"“’ab \u0301\u0338\u0345\u3099",
    "한국어\u1112\u1161\u11ab 中文、。",  # Hangul syllables and the letters they are made of
    "কাে\u09d7ো ब\u093cक़",  # Indic signs that combine
    "\t\n\r\x00\x07\x1c\x85\xa0\xad\u200b\u2028\ufeff\ufffd ab",
    "កខ្ិก\u200b\u200b1.a ",  # words separated without spaces
    "#[MASKUNSEPCL] ab",
]


@given(st.lists(st.one_of(st.text(), *(st.text(alphabet) for alphabet in ALPHABETS)), max_size=5))
@settings(max_examples=150)
@pytest.mark.parametrize(("lower_case", "strip_accents"), [(False, False), (True, True)])
def test_ids_are_those_of_tokenizers_on_any_text(lower_case: bool, strip_accents: bool, texts: list[str]) -> None:
    ours, fast = FUZZED[lower_case]
    assert_equal_to_the_library(ours, fast, texts)


@pytest.mark.parametrize("last", [0x2FFF, pytest.param(0x10FFFF, marks=pytest.mark.slow)])
def test_every_character_alone_and_between_letters(last: int) -> None:
    for ours, fast in FUZZED.values():
        for start in range(0, last + 1, 0x1000):
            characters = [chr(c) for c in range(start, start + 0x1000) if unicodedata.category(chr(c)) != "Cs"]
            assert_equal_to_the_library(ours, fast, [f"{c} a{c}b" for c in characters])


def test_no_character_is_composed_of_a_mark_that_is_set_apart() -> None:
    decompositions = [unicodedata.decomposition(chr(c)).split() for c in range(0x30000)]
    composed = {
        chr(int(part, 16)) for parts in decompositions if len(parts) == 2 and "<" not in parts[0] for part in parts
    }
    assert "\u0301" in composed and not composed & set(APART + ASCII_APART)


def test_the_cache_is_bounded_for_long_words_too() -> None:
    ours, fast = built(cached_words=100)
    for number in range(30):
        assert_equal_to_the_library(ours, fast, [f"{letter * 90}{number}" for letter in "abcdefghij"])
        assert ours._words.size <= 32 * 100 + 10 * 96


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


@given(st.lists(st.lists(st.sampled_from([*SPECIALS, "[sep]", "the", " ", "[", "\u0301", "\n", ""])).map("".join)))
@settings(max_examples=150)
@pytest.mark.parametrize("lower_case", [False, True])
def test_special_tokens_in_texts_are_those_of_tokenizers(lower_case: bool, texts: list[str]) -> None:
    ours, fast = FUZZED[lower_case]
    ids, lengths = ours.encode_texts(texts)
    expected = [e.ids for e in fast.encode_batch(texts, add_special_tokens=False)]
    assert lengths.tolist() == [len(e) for e in expected]
    assert ids.tolist() == [i for e in expected for i in e]
    assert ids.dtype.name == "uint32"


def test_entries_ids_and_text() -> None:
    ours, fast = built()
    assert ours.vocabulary[0] == "[PAD]" and ours.ids("[MASK]") == 4
    assert ours.continuation.tolist() == [entry.startswith("##") for entry in ours.vocabulary]
    ids, _ = ours.encode_sentences(["Gárőmu cédi."])
    assert ours.decode([ours.ids("[CLS]"), *ids]) == "[CLS] Gárőmu cédi ."
    assert fast.encode("ba", "di").tokens == ["[CLS]", "ba", "[SEP]", "di", "[SEP]"]
    with pytest.raises(ArtifactError, match="no entry 'nonsense'"):
        ours.ids("nonsense")


@pytest.mark.slow
@pytest.mark.skipif(not (HUNGARIAN.exists() and UNCASED.exists()), reason=f"no shared data at {SHARED}")
@pytest.mark.parametrize(("lower_case", "strip_accents"), [(True, True), (False, False)])
def test_ids_are_those_of_tokenizers_on_every_shared_text(lower_case: bool, strip_accents: bool) -> None:
    fast = build_tokenizer(UNCASED.read_text("utf-8").splitlines(), lower_case, strip_accents)
    ours = Tokenizer(fast)
    for path in sorted((SHARED / "data" / "text").glob("*.txt*")):
        with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as lines:
            sentences = [line.removesuffix("\n") for line in lines]
        for start in range(0, len(sentences), 2000):
            assert_equal_to_the_library(ours, fast, sentences[start : start + 2000])


@pytest.mark.skipif(not (HUNGARIAN.exists() and UNCASED.exists()), reason=f"no shared data at {SHARED}")
@each_row(("lower_case", "strip_accents"), [(True, True), (False, False)])
def test_ids_are_those_of_tokenizers_on_real_text(lower_case: bool, strip_accents: bool) -> None:
    fast = build_tokenizer(UNCASED.read_text("utf-8").splitlines(), lower_case, strip_accents)
    assert_equal_to_the_library(Tokenizer(fast), fast, HUNGARIAN.read_text("utf-8").splitlines()[:3000])
