"""Entries that a text does not need are removed, and its pieces stay the same."""

import bz2
import lzma
import random
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import SHARED
from tests.rows import each_row

from bertwright.core.errors import DataError, RecipeError
from bertwright.corpus.lines import open_lines
from bertwright.vocab import prune
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.entries import SPECIALS, TextSettings
from bertwright.vocab.prune import UsageCounter, keep
from bertwright.vocab.run import train_entries
from bertwright.vocab.split import build_tokenizer

WIKIS = SHARED / "data" / "wiki"
CASED = TextSettings(lower_case=False, strip_accents=False)


def counted(entries: list[str], lines: list[str]) -> UsageCounter:
    counter = UsageCounter(entries, CASED)
    counter.read(lines)
    return counter


def pieces(entries: list[str], lines: list[str]) -> list[list[str]]:
    """By the library's own tokenizer."""
    tokenizer = build_tokenizer(entries, *CASED)
    return [tokenizer.encode(line, add_special_tokens=False).tokens for line in lines]


def test_only_what_is_used_stays() -> None:
    entries = [*SPECIALS, "alma", "körte", "##fa", "a", "##a", "б", "##б", "ház"]
    counter = counted(entries, ["almafa", "alma"])
    assert [entries[i] for i in counter.kept()] == [*SPECIALS, "alma", "##fa", "a", "##a"]
    report = counter.report(counter.kept())
    assert report["scripts"] == ["Latin"] and (report["entries_before"], report["entries_after"]) == (13, 9)
    assert report["used"] == 2 and report["tokens"] == 3 and report["changed_tokens"] == 0


def test_pieces_of_an_unknown_word_stay() -> None:
    # "abcd" is [UNK]: "abc" is the longest match, and nothing goes on with d. Without "abc" it would be ab ##cd.
    entries = [*SPECIALS, "abc", "ab", "##cd"]
    lines = ["abcd", "ab abcd"]
    counter = counted([*entries, "xyz"], lines)
    kept = [[*entries, "xyz"][i] for i in counter.kept()]
    assert "abc" in kept and "xyz" not in kept and "##cd" not in kept
    assert pieces(kept, lines) == pieces([*entries, "xyz"], lines)
    assert pieces([*SPECIALS, "ab", "##cd"], lines) != pieces(entries, lines)


def test_random_vocabularies_give_their_texts_the_same_pieces() -> None:
    draw = random.Random(7)
    letters = "abcd"
    for _ in range(60):
        words = {"".join(draw.choices(letters, k=draw.randint(1, 4))) for _ in range(25)}
        rests = {f"##{''.join(draw.choices(letters, k=draw.randint(1, 3)))}" for _ in range(12)}
        entries = [*SPECIALS, *sorted(words), *sorted(rests)]
        lines = [
            " ".join("".join(draw.choices(letters, k=draw.randint(1, 8))) for _ in range(draw.randint(0, 6)))
            for _ in range(6)
        ]
        counter = counted(entries, lines)
        kept = [entries[i] for i in counter.kept()]
        assert pieces(kept, lines) == pieces(entries, lines)


def test_fewer_entries_than_the_text_uses() -> None:
    entries = [*SPECIALS, "a", "b", "##a", "##b", "ab", "ba", "aab"]
    lines = ["ab ab ab ba aab"] * 4
    counter = counted(entries, lines)
    assert len(counter.kept()) == len(entries)
    kept = counter.kept(10)
    assert [entries[i] for i in kept] == [*SPECIALS, "a", "b", "##a", "##b", "ab"]  # the commonest word
    report = counter.report(kept, 10)
    assert report["tokens"] == 20 and report["changed_tokens"] == 8  # ba and aab, four times each
    # The reference: tokens of the full vocabulary that are not among the kept ones.
    gone = {"ba", "aab"}
    assert report["changed_tokens"] == sum(piece in gone for line in pieces(entries, lines) for piece in line)
    with pytest.raises(RecipeError, match="--entries 8 .* at least 9"):
        counter.kept(8)


def test_heldout_lines_show_what_other_texts_lose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune, "HELDOUT_EVERY", 2)
    entries = [*SPECIALS, *"abcd", "##a", "##b", "ab", "ba", "bab"]
    lines = ["bab ab a", "ab ba", "ab ab", "ab"]  # the first and the third are held out
    counter = counted(entries, lines)
    report = counter.report(counter.kept())
    # Of bab, ab, a, ab, ab only bab is in no other line: it becomes ba ##b.
    assert (report["heldout_words"], report["heldout_changed_words"]) == (5, 1)
    assert report["changed_tokens"] == 0 and "bab" in [entries[i] for i in counter.kept()]


def test_a_rare_script_does_not_bring_its_characters() -> None:
    entries = [*SPECIALS, "a", "бв", "б", "в", "7", "!", "##7"]
    lines = ["a " * 20_000, "бв"]
    kept = [entries[i] for i in counted(entries, lines).kept()]
    assert "бв" in kept and "б" not in kept and "в" not in kept and {"7", "!", "##7"} <= set(kept)
    assert "б" in [entries[i] for i in counted(entries, ["a бв"]).kept()]


def test_chunks_count_like_one(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [*SPECIALS, *"abc", "##a", "ab"]
    lines = [f"{'ab' * (i % 3)} c{'a' * (i % 5)}" for i in range(400)]
    whole = counted(entries, lines)
    monkeypatch.setattr(prune, "_CHUNK_CHARACTERS", 50 * 7)
    parts = counted(entries, lines)
    for name in ("pieces_V", "walked_V"):
        one, other = (getattr(each.learned + each.heldout, name) for each in (whole, parts))
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(keep(entries, whole.learned + whole.heldout), parts.kept())


def test_no_text() -> None:
    counter = counted([*SPECIALS, "a"], [])
    assert [*counter.kept()] == [0, 1, 2, 3, 4] and counter.report(counter.kept())["heldout_words"] == 0


def test_lines_of_files(tmp_path: Path) -> None:
    text = "első sor\r\n\nmásodik\nvége"
    (tmp_path / "plain.txt").write_bytes(b"\xef\xbb\xbf" + text.encode())
    (tmp_path / "packed.txt.xz").write_bytes(lzma.compress(text.encode()))
    for name in ("plain.txt", "packed.txt.xz"):
        (lines,) = open_lines([tmp_path / name])
        assert list(lines) == ["első sor", "", "második", "vége"] and lines.size
    long = "szó " * 700_000
    (tmp_path / "long.txt").write_text(long, encoding="utf-8")
    (lines,) = open_lines([tmp_path / "long.txt"])
    parts = list(lines)
    assert len(parts) > 1 and "".join(parts) == long


@each_row(
    ("content", "message"),
    [
        (b'{"text": "a"}\n', "jsonl"),
        (b"", "empty"),
        (b"a\x00b", "byte 1 is zero"),
        (b"good\n\xff\xfe bad\n" + b"x" * 5000, "UTF-8 at byte 5"),
    ],
)
def test_other_files_are_refused(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(content)
    with pytest.raises((RecipeError, DataError), match=message):
        (lines,) = open_lines([tmp_path / "text"])
        list(lines)


def test_folders_without_a_corpus_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="without a finished corpus"):
        open_lines([tmp_path])
    with pytest.raises(DataError, match="none"):
        open_lines([tmp_path / "none"])


def markup_of(wiki: Path, characters: int = 150_000) -> list[str]:
    """Lines of a dump's markup, which has words of its language among those of templates."""
    opener = lzma.open if wiki.suffix == ".xz" else bz2.open
    with opener(wiki, "rt", encoding="utf-8") as handle:
        handle.read(100_000)  # the site's own names
        return handle.read(characters).splitlines()


@pytest.mark.skipif(not WIKIS.is_dir(), reason=f"no {WIKIS} here; BERTWRIGHT_SHARED names the folder of real data")
def test_a_vocabulary_of_many_languages_keeps_one() -> None:
    names = ("bnwiki.xml.xz", "elwiki.xml.xz", "hywiki.xml.xz", "mrwiki.xml.xz", "ukwiki.xml.xz", "viwiki.xml.xz")
    texts = {name: markup_of(WIKIS / name) for name in names}
    entries, _ = train_entries(VocabConfig(size=5000), (line for lines in texts.values() for line in lines[::2]))
    for name, lines in texts.items():
        counter = counted(entries, lines)
        kept = [entries[i] for i in counter.kept()]
        report = counter.report(counter.kept())
        assert len(kept) < 0.7 * len(entries) and report["changed_tokens"] == 0, name
        assert pieces(kept, lines) == pieces(entries, lines), name
        assert 0 <= report["heldout_changed_words"] < 0.2 * report["heldout_words"], report
