"""Contract of every token-document format; adding a format to the tuple of all formats tests it here."""

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from tests.contract.damage import MAGIC, cuts, facts_or_fault, flipped
from tests.unit.formats.samples import VOCABULARY, token_documents

from bertwright.core.errors import DataError
from bertwright.formats.detect import detect, open_documents
from bertwright.formats.errors import ShardError
from bertwright.formats.format import DocumentFormat, Kind, TokenDocuments
from bertwright.formats.known import DOCUMENT_FORMATS, FORMATS

DOCUMENTS = token_documents([[[7, 8, 9], [10]], [[11, 12]], [[13], [14, 15], [16, 17, 18]]])

of_documents = pytest.mark.parametrize("each", [f for f in DOCUMENT_FORMATS if f.write], ids=lambda each: each.kind)


def written_documents(each: DocumentFormat, folder: Path) -> list[Path]:
    assert each.write
    file = folder / f"wiki_00000{each.suffix}"
    assert each.write(file, iter([DOCUMENTS]), len(VOCABULARY)) == len(DOCUMENTS)
    return [file, *each.beside(file)]


def read_documents(each: DocumentFormat, file: Path) -> TokenDocuments:
    return each.open(file).read(0, len(DOCUMENTS))


def test_every_kind_has_one_format_and_what_is_only_read_is_told_by_another() -> None:
    kinds, documents = [each.kind for each in FORMATS], [each.kind for each in DOCUMENT_FORMATS]
    assert len({*kinds}) == len(kinds) and len({*documents}) == len(documents)
    assert {*kinds, *documents} == {*get_args(Kind)}
    assert all(each.facts or each.kind in kinds for each in DOCUMENT_FORMATS)
    assert all(each.write or each.kind in kinds for each in DOCUMENT_FORMATS), "every kind can be written"


@of_documents
def test_documents_that_are_written_are_recognised_and_read_back(each: DocumentFormat, tmp_path: Path) -> None:
    file, *_ = written_documents(each, tmp_path)
    (found,) = detect(tmp_path)
    assert (found.kind, found.documents, found.files) == (each.kind, True, (file,))
    assert found.examples == len(DOCUMENTS) and not found.damaged
    opened = open_documents(file, found.kind)
    assert opened.counts.tolist() == DOCUMENTS.counts.tolist()
    assert [number for piece in opened.pieces(4) for number in range(*piece)] == [*range(len(DOCUMENTS))]
    read_back = read_documents(each, file)
    for name, values in vars(DOCUMENTS).items():
        assert np.array_equal(getattr(read_back, name), values), name


@of_documents
def test_documents_that_are_cut_off_are_damaged(each: DocumentFormat, tmp_path: Path) -> None:
    file, *others = written_documents(each, tmp_path)
    for damaged in (file, *others):
        whole = damaged.read_bytes()
        for cut in cuts(len(whole)):
            damaged.write_bytes(whole[:cut])
            with pytest.raises(ShardError):
                read_documents(each, file)
        damaged.write_bytes(whole)


@of_documents
def test_documents_with_a_damaged_header_are_damaged_or_read(each: DocumentFormat, tmp_path: Path) -> None:
    file, *others = written_documents(each, tmp_path)
    for at, damaged in flipped(file.read_bytes()):
        file.write_bytes(damaged)
        facts = facts_or_fault(file)
        assert at >= MAGIC or not facts, "the bytes by which it is known are not looked at"
        try:
            read_documents(each, file)
        except ShardError as error:
            assert error.file in (file, *others)


@of_documents
def test_a_write_of_documents_that_fails_leaves_no_file(each: DocumentFormat, tmp_path: Path) -> None:
    def blocks() -> Iterator[TokenDocuments]:
        yield DOCUMENTS
        raise RuntimeError("the source ends here")

    assert each.write
    with pytest.raises(RuntimeError, match="the source ends here"):
        each.write(tmp_path / "new.idx", blocks(), len(VOCABULARY))
    with pytest.raises(DataError, match="outside the"):
        each.write(tmp_path / "new.idx", iter([DOCUMENTS]), 10)
    assert not list(tmp_path.iterdir())
