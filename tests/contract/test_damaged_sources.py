"""Damaged files of every source format: a clear error message, or the documents that could be read."""

import random
from pathlib import Path

import pytest
from tests.contract.damage import cuts, flipped
from tests.contract.source_samples import PACKAGINGS, cut_small, of_sources, packed, written
from tests.unit.corpus.sources.reading import Read

from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources.format import SourceFormat

FEW = 12
"""Number of documents in a file that is read many times."""
NOISE = b"\0" + random.Random(1).randbytes(5000)


@packed
def test_of_a_file_that_is_cut_off_what_is_lost_is_counted_or_it_is_refused(
    each: SourceFormat, packaging: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Read(written(each.kind, tmp_path, documents=FEW), tmp_path)
    cut_small(each, monkeypatch)
    path = written(each.kind, tmp_path, packaging, documents=FEW)
    data = path.read_bytes()
    for size in cuts(len(data)):
        path.write_bytes(data[:size])
        if found := read_or_refused(each, path):
            is_what_was_left(found, whole)
            if each.is_text and found.states[-1]["ended"]:
                assert not begins_another(whole, len(found.articles), data[:size]), "what is left out is not counted"
            if PACKAGINGS[packaging][1] != "plain" and found.states[-1]["ended"]:
                assert found.articles == whole.articles, "it ends as it should, so nothing may be lost"


def is_what_was_left(found: Read, whole: Read) -> None:
    """Check that a prefix of the documents was read; without an end marker the last of them may be incomplete."""
    number, state = len(found.articles), found.states[-1]
    if state["ended"] and number:
        assert found.articles[:-1] == whole.articles[: number - 1]
        assert last_text(whole, number).startswith(last_text(found, number))
    else:
        assert found.articles == whole.articles[:number]
        assert state["lost_bytes"] >= 0


def begins_another(whole: Read, documents: int, data: bytes) -> bool:
    """Whether a plain file has begun another document after the first `documents`."""
    return documents < FEW and whole.texts[documents][0][:8].encode() in data


def last_text(found: Read, documents: int) -> str:
    """The text of the last of the first `documents` documents."""
    return "\n".join(found.texts[documents - 1]).rstrip()


def read_or_refused(each: SourceFormat, path: Path) -> Read | None:
    """What could be read of a damaged file; None if it was rejected with an error that names the file."""
    try:
        found = Read(path, path.parent, format=each.kind)
    except SourceError as error:
        assert str(path) in str(error) and str(error).endswith((".", "`."))
        return None
    return found if found.states else None


@of_sources
def test_damage_at_the_beginning_is_refused_or_read(each: SourceFormat, tmp_path: Path) -> None:
    path = written(each.kind, tmp_path, documents=FEW)
    for _, data in flipped(path.read_bytes()):
        path.write_bytes(data)
        read_or_refused(each, path)


@of_sources
def test_damage_in_the_middle_is_refused_or_read(each: SourceFormat, tmp_path: Path) -> None:
    path = written(each.kind, tmp_path, documents=FEW)
    whole = path.read_bytes()
    for at in cuts(len(whole)):
        path.write_bytes(whole[:at] + NOISE[: len(whole) // 9] + whole[at + len(whole) // 9 :])
        read_or_refused(each, path)


@of_sources
def test_bytes_that_mean_nothing_are_refused(each: SourceFormat, tmp_path: Path) -> None:
    head = written(each.kind, tmp_path).read_bytes()[:16]
    for start in (b"", head):
        (tmp_path / "noise").write_bytes(start + NOISE)
        assert read_or_refused(each, tmp_path / "noise") is None
