"""What entries of WordPiece are for tokenizers of other kinds, made by their own library as published networks have
them: byte-level BPE (ModernBERT), BPE over spaces with bytes (Gemma, mmBERT), and Unigram (XLM-RoBERTa)."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from bertwright.core.errors import DataError
from bertwright.vocab.entries import SPECIALS, TextSettings, entries_of, has_other_tokenizer
from bertwright.vocab.other_tokenizers import correspond_to, read_other_tokenizer

TEXT = [
    "the old mill stands by the river",
    "The river (by the hills) has an old name",
    "árvíz, a régi malom: 1848.",
] * 9
CASED, UNCASED = TextSettings(False, False), TextSettings(True, False)


def byte_level() -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False))
    made.add_special_tokens([AddedToken(entry) for entry in SPECIALS])
    return made


def with_spaces() -> Tokenizer:
    made = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    made.normalizer = normalizers.Replace(" ", "▁")
    # Trained on words and marks, as by sentencepiece, but reading whole lines, as published.
    words = [pre_tokenizers.Metaspace(prepend_scheme="never"), pre_tokenizers.Punctuation()]
    made.pre_tokenizer = pre_tokenizers.Sequence(words)
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", *(f"<0x{byte:02X}>" for byte in range(256))]
    made.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=600, special_tokens=special, show_progress=False))
    made.pre_tokenizer = None
    return made


def unigram() -> Tokenizer:
    letters = sorted(set("".join(TEXT)) - {" "} | set("bdpu"))
    pieces = [
        "▁river",
        "▁mill",
        "mill",
        "▁hill",
        "iver",
        "▁régi",
        "▁malom",
        "malom",
        "▁184",
        "8",
        "▁by",
        "▁",
        ",",
        "▁(",
    ]
    entries = ["<s>", "<pad>", "</s>", "<unk>", *pieces, *(letter for letter in letters if letter not in pieces)]
    made = Tokenizer(models.Unigram([(entry, -len(entries) + len(entry)) for entry in entries] + [("<mask>", 0.0)], 3))
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    made.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    return made


KINDS = {"byte-level": byte_level, "with spaces": with_spaces, "unigram": unigram}
ROLES = {"[CLS]": "<bos>", "[SEP]": "<eos>"}


@pytest.fixture(params=KINDS)
def tokenizer(request: pytest.FixtureRequest, tmp_path: Path) -> Tokenizer:
    make: Callable[[], Tokenizer] = KINDS[request.param]
    make().save(str(tmp_path / "tokenizer.json"))
    return read_other_tokenizer(tmp_path / "tokenizer.json")


def pieces_in(tokenizer: Tokenizer, text: str, word: str) -> list[int]:
    """The ids of the word where it is in a text, by their places."""
    start, found = text.index(word), tokenizer.encode(text, add_special_tokens=False)
    return [
        i
        for i, (at, end) in zip(found.ids, found.offsets, strict=True)
        if end > start and at < start + len(word) and text[at:end].strip(" ")
    ]


def test_an_entry_is_what_its_text_is_in_a_sentence(tokenizer: Tokenizer) -> None:
    entries = [*SPECIALS, "river", "mill", "hill", "régi", "1848", ",", "malomriver", "##iver", "##s"]
    found = correspond_to(tokenizer, entries, CASED, ROLES)
    assert found.older == 1 + max(tokenizer.get_vocab().values())
    own, rest = iter(found.pieces_N.tolist()), found.counts_V.tolist()
    pieces = {
        entry: [next(own) for _ in range(count)] or [same]
        for entry, same, count in zip(entries, found.same_V.tolist(), rest, strict=True)
    }
    for word in ("river", "mill", "hill", "régi", "1848", "malomriver"):
        assert pieces[word] == pieces_in(tokenizer, f"by {word} by", word), word
    assert pieces[","] == pieces_in(tokenizer, "árvíz, a", ",")
    assert pieces["##iver"] == pieces_in(tokenizer, "by (iver) by", "iver") != pieces["river"]
    # One piece is the same entry, of which the row is kept.
    assert found.counts_V[entries.index("river")] == 0 and len(pieces["malomriver"]) > 1
    assert found.same_V[entries.index("malomriver")] == -1
    written = tokenizer.get_vocab()
    for role in SPECIALS:
        names = {
            ROLES.get(role, role),
            f"<{role[1:-1].lower()}>",
            "<s>" * (role == "[CLS]"),
            "</s>" * (role == "[SEP]"),
        }
        assert found.same_V[entries.index(role)] in {written[name] for name in (*names, role) if name in written}, role


def test_lower_case_entries_stand_for_capitals_too(tokenizer: Tokenizer) -> None:
    text = "Budapest "
    tokenizer.add_tokens(["Budapest"])
    both = correspond_to(tokenizer, [*SPECIALS, "budapest"], UNCASED, ROLES)
    (piece,) = both.pieces_N.tolist()
    # It counts as new: the row stands for one of several ways to write it.
    assert both.same_V[-1] == -1 and tokenizer.id_to_token(piece) == text.strip()
    cased = correspond_to(tokenizer, [*SPECIALS, "budapest"], CASED, ROLES)
    assert len(cased.pieces_N) > 1


def test_characters_that_a_tokenizer_lacks_are_unknown(tmp_path: Path) -> None:
    found = correspond_to(unigram(), [*SPECIALS, "ж", "riverж"], CASED, {})
    assert found.counts_V[-2:].tolist() == [0, 0] and found.numbers[2] >= 2


def test_kinds_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    for make in KINDS.values():
        make().save(str(file))
        assert has_other_tokenizer(file)
        with pytest.raises(DataError, match=r"train\.init_embeddings=pieces"):
            entries_of(file)
    Tokenizer(models.WordPiece({"[UNK]": 0}, unk_token="[UNK]")).save(str(file))
    assert not has_other_tokenizer(file)
    for damaged in ("{}", "[]", '{"model": 3}', "{", ""):
        file.write_text(damaged)
        assert not has_other_tokenizer(file)
        with pytest.raises(DataError):
            read_other_tokenizer(file)
