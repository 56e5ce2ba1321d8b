import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.rows import each_row
from tests.unit.examples.made import text

from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.vocab.config import SentencePieceConfig, VocabConfig
from bertwright.vocab.report import measure
from bertwright.vocab.run import train_entries
from bertwright.vocab.split import bert_splitter
from bertwright.vocab.trainers import lay_out, to_wordpiece, train_sentencepiece

pytestmark = pytest.mark.heavy

sentencepiece = pytest.importorskip("sentencepiece", reason="needs the extra sentencepiece")
SHARED = Path(os.environ.get("BERTWRIGHT_SHARED", Path(__file__).parents[4] / "shared"))
HUNGARIAN = SHARED / "data" / "text" / "hu_nerkor_wikipedia_sents.txt"
SENTENCES = [sentence for document in text(200) for sentence in document] + ["egyszer: œ €"]


def config(size: int, unused: int = 100, **trainer: object) -> VocabConfig:
    coverage = {"alphabet_coverage": 1} if trainer.get("add_characters", True) else {}
    return VocabConfig.model_validate(
        {"size": size, "unused": unused, **coverage, "trainer": {"kind": "sentencepiece", **trainer}}
    )


def model(settings: VocabConfig, sentences: list[str] = SENTENCES) -> bytes:
    assert isinstance(settings.trainer, SentencePieceConfig)
    split = bert_splitter(False, False)
    return train_sentencepiece(settings, settings.trainer, (" ".join(split.words(s)) for s in sentences))


def sent2wordpiece(made: bytes, unused: int = 100) -> list[str]:
    """The conversion of TurkuNLP's sent2wordpiece, restated from its listing of a vocabulary file."""
    pieces = sentencepiece.SentencePieceProcessor(model_proto=made)
    listed = [pieces.id_to_piece(i) for i in range(pieces.get_piece_size())]
    entries = ["[PAD]"]
    entries += [f"[unused{number}]" for number in range(unused)]
    entries += ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    for piece in listed:
        if piece in ("<unk>", "<s>", "</s>", "▁"):
            continue
        entries.append(piece[1:] if piece[0] == "▁" else "##" + piece)
    return entries


@each_row("kind", ["bpe", "unigram"])
def test_the_classic_conversion_is_that_of_sent2wordpiece(kind: str) -> None:
    settings = config(351, model=kind, add_characters=False)
    made = model(settings)
    entries = lay_out(settings, False, to_wordpiece(made), {})
    assert entries == sent2wordpiece(made)
    assert sentencepiece.SentencePieceProcessor(model_proto=made).get_piece_size() == 250 and len(entries) == 351
    assert train_entries(settings, SENTENCES)[0] == entries


@pytest.mark.slow
@pytest.mark.skipif(not HUNGARIAN.exists(), reason=f"no shared data at {SHARED}")
def test_32000_pieces_of_hungarian_give_32101_entries() -> None:
    settings = config(32_101, add_characters=False)
    sentences = HUNGARIAN.read_text("utf-8").splitlines()
    made = model(settings, sentences)
    assert sentencepiece.SentencePieceProcessor(model_proto=made).get_piece_size() == 32_000
    assert lay_out(settings, False, to_wordpiece(made), {}) == sent2wordpiece(made)
    assert len(sent2wordpiece(made)) == 32_101


def test_two_processes_train_the_same_bytes() -> None:
    code = (
        "import hashlib; from tests.unit.vocab.test_sent2wordpiece import *;"
        "small = config(300, model='unigram');"
        "print(hashlib.sha256(model(small)).hexdigest())"
    )
    assert len({subprocess.check_output([sys.executable, "-c", code]) for _ in range(2)}) == 1


def test_added_characters_leave_no_more_unknown_words() -> None:
    settings = config(400, unused=3, character_coverage=0.98)
    ours, words = train_entries(settings, SENTENCES)
    native, _ = train_entries(VocabConfig(size=400, unused=3, alphabet_coverage=1), SENTENCES)
    classic, _ = train_entries(config(400, unused=3, character_coverage=0.98, add_characters=False), SENTENCES)
    unknown = {name: measure(entries, words)["unknown_rate"]
               for name, entries in {"ours": ours, "native": native, "classic": classic}.items()}  # fmt: skip
    assert unknown["ours"] == unknown["native"] == 0 < unknown["classic"]
    assert len(ours) == len(set(ours)) == 400
    longer = [entry for entry in classic if len(entry.removeprefix("##")) > 1 and entry[0] != "["]
    kept = [entry for entry in ours if entry in longer]
    assert kept == longer[: len(kept)], "the rarest pieces make room"


def test_a_piece_that_is_an_entry_already_is_not_entered_twice() -> None:
    settings = config(110)
    assert lay_out(settings, False, ["a", "[UNK]", "##b", "a"], {}) == [*sent2wordpiece_specials(), "a", "##b"]


def sent2wordpiece_specials() -> list[str]:
    return ["[PAD]", *(f"[unused{i}]" for i in range(100)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def test_without_shuffling_the_first_sentences_are_taken() -> None:
    first = config(300, unused=0, input_sentence_size=100, shuffle=False)
    assert model(first) == model(config(300, unused=0), SENTENCES[:100]) != model(config(300, unused=0))


def test_a_small_corpus_gives_fewer_entries_and_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    entries, _ = train_entries(config(5000), SENTENCES[:5])
    assert 105 < len(entries) < 1000
    assert capfd.readouterr() == ("", "")


def test_what_sentencepiece_refuses_is_a_recipe_error() -> None:
    with pytest.raises(RecipeError, match=r"SentencePiece \(bpe\) cannot make 9 pieces of this text"):
        model(config(110))


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bertwright\[sentencepiece\]'"):
        model(config(300))
