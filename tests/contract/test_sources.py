"""Contract of every source format in the tuple of all formats; a new one needs a sample of its files."""

from pathlib import Path
from typing import get_args

import pytest
from tests.contract.source_samples import DOCUMENTS, PACKAGINGS, cut_small, of_sources, packed, written
from tests.unit.corpus.sources.reading import Read

from bertwright.cli.describe import describe
from bertwright.core.errors import RecipeError
from bertwright.core.log import SILENT
from bertwright.core.work_split import SINGLE, WorkSplit
from bertwright.corpus.config import CorpusConfig, SourceConfig, SourceKind
from bertwright.corpus.errors import SourceError
from bertwright.corpus.run import identity
from bertwright.corpus.sources.detect import examine
from bertwright.corpus.sources.file import File
from bertwright.corpus.sources.format import Key, SourceFormat
from bertwright.corpus.sources.known import FORMATS
from bertwright.corpus.sources.pieces import read
from bertwright.corpus.sources.source import open_source

VALUES = {"lines": "articles", "text": "body"}
"""A value for every key that only some formats use."""


def head_of(each: SourceFormat, path: Path) -> bytes:
    return path.read_bytes()[: 4096 if each.is_text else 16]


def test_the_formats_are_those_that_a_recipe_may_name() -> None:
    kinds = [each.kind for each in FORMATS]
    assert len(kinds) == len(set(kinds)) and set(kinds) == set(get_args(SourceKind))
    assert get_args(SourceConfig.model_fields["format"].annotation) == ("auto", *get_args(SourceKind))
    assert set(VALUES) == set(get_args(Key)) <= set(SourceConfig.model_fields)


@packed
def test_it_is_told_by_its_content_in_any_packaging(each: SourceFormat, packaging: str, tmp_path: Path) -> None:
    path = written(each.kind, tmp_path, packaging)
    _, compression, encoding = PACKAGINGS[packaging]
    for format in ("auto", each.kind):
        file = examine(path, format)
        assert (file.format, file.compression, file.encoding) == (each.kind, compression, encoding)
    if each.is_text:  # tables are first examined as training data
        assert describe(path)["what"] == f"a {each.kind}"


@of_sources
def test_no_other_format_that_is_certain_takes_it(each: SourceFormat, tmp_path: Path) -> None:
    path = written(each.kind, tmp_path)
    alike = [other for other in FORMATS if other.certain and other.is_text == each.is_text]
    assert [other for other in alike if other.matches(head_of(each, path))] == ([each] if each.certain else [])


@of_sources
def test_named_for_a_file_of_another_format_it_is_refused(each: SourceFormat, tmp_path: Path) -> None:
    for other in FORMATS:
        path = written(other.kind, tmp_path)
        if other.kind in (each.kind, *each.also):
            assert examine(path, each.kind).format == other.kind
        elif each.certain:
            with pytest.raises(SourceError, match=f"is not a {each.kind} file: it looks like|is not text: byte"):
                examine(path, each.kind)


@of_sources
def test_what_is_no_text_is_not_unpacked(each: SourceFormat, tmp_path: Path) -> None:
    if not each.is_text:
        with pytest.raises(SourceError, match=r"\.$"):
            examine(written(each.kind, tmp_path, "gz"))


@packed
def test_pieces_are_together_the_whole(
    each: SourceFormat, packaging: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_small(each, monkeypatch)
    file, config = examine(written(each.kind, tmp_path, packaging)), SourceConfig(path="a")
    pieces = list(each.splits(file, config, 3, 5, tmp_path, SINGLE))
    assert len(pieces) > 2
    assert [(piece.source, piece.index) for piece in pieces] == [(3, 5 + i) for i in range(len(pieces))]
    assert [piece.last for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert file.size - len(pieces) < sum(piece.progress for piece in pieces) <= file.size
    assert [piece.start for piece in pieces] == [0, *(piece.stop for piece in pieces[:-1])]
    if each.is_text:
        whole = written(each.kind, tmp_path).read_bytes()
        assert b"".join(block for piece in pieces for block in read(file, piece)) == whole


@packed
def test_every_rank_has_the_same_pieces(
    each: SourceFormat, packaging: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_small(each, monkeypatch)
    file, config = examine(written(each.kind, tmp_path, packaging)), SourceConfig(path="a")
    whole, *ranks = (
        list(each.splits(file, config, 0, 0, tmp_path, share)) for share in (SINGLE, WorkSplit(0, 2), WorkSplit(1, 2))
    )
    assert ranks == [whole, whole]


@packed
def test_documents_are_the_same_however_a_file_is_packed_and_cut(
    each: SourceFormat, packaging: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Read(written(each.kind, tmp_path), tmp_path)
    assert len(whole.names) == 1 and len(whole.articles) == DOCUMENTS
    path = written(each.kind, tmp_path, packaging)
    assert Read(path, tmp_path).articles == whole.articles
    cut_small(each, monkeypatch)
    cut = Read(path, tmp_path)
    assert len(cut.names) > 2
    assert (cut.articles, cut.counts) == (whole.articles, whole.counts)
    assert all(state["ended"] and not state["lost_bytes"] for state in cut.states)
    assert cut.states[-1]["last"]


@of_sources
def test_keys_that_mean_nothing_for_it_are_refused(each: SourceFormat, tmp_path: Path) -> None:
    path = written(each.kind, tmp_path)
    for key, value in VALUES.items():
        config = SourceConfig(path=str(path), **{key: value})
        if key in each.keys:
            assert open_source(config, tmp_path, SILENT).files == (File(path, each.kind),)
            continue
        with pytest.raises(RecipeError, match=f"corpus.source: {key} = '{value}' .*Remove the key"):
            open_source(config, tmp_path, SILENT)


@of_sources
def test_what_is_for_wikis_is_refused_where_it_is_none(each: SourceFormat, tmp_path: Path) -> None:
    config = CorpusConfig(source=str(written(each.kind, tmp_path)), language="hu", keep_disambiguation=True)
    if each.is_wiki:
        assert identity(config)
        return
    with pytest.raises(RecipeError, match="corpus.keep_disambiguation applies only to dumps of wikis"):
        identity(config)
