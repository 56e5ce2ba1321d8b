"""The first pass over a dump: the same definitions from every packaging, and a corpus that uses them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bertwright.core.done import mark_done, read_done
from bertwright.core.errors import DataError
from bertwright.core.tasks import Pool
from bertwright.corpus.config import CorpusConfig, DeduplicateConfig, FilterConfig, WikitextConfig
from bertwright.corpus.definitions import copy_of, gather_definitions
from bertwright.corpus.run import run
from bertwright.corpus.sources.detect import examine
from bertwright.corpus.sources.formats import pieces as pieces_of
from bertwright.corpus.sources.pieces import read
from bertwright.corpus.text import sentences

NewPage = Callable[..., str]


def pages(new_page: NewPage) -> list[str]:
    """Articles that call templates, and templates among them."""
    text = "A {n}. híd {{{{hossz|{n}0}}}} hosszú. Szerintünk {{{{táv|{n}}}}} széles, és nagyon {{{{jelző}}}} építmény."
    articles = [new_page(n, f"{n}. híd", text.format(n=n)) for n in range(1, 30)]
    templates = {
        "Hossz": "{{{1}}} méter[[Kategória:Hossz]]<noinclude>{{leírás}}</noinclude>",
        "Táv": "#ÁTIRÁNYÍTÁS [[Template:Hossz]]",
        "Jelző": "{{#if:x|szép}}",
        "hossz": "a second page of the same name",
    }
    made = [new_page(50 + i, f"Sablon:{k}", body, namespace=10) for i, (k, body) in enumerate(templates.items())]
    return [*articles[:15], *made, new_page(90, "Hossz", "not a template"), *articles[15:]]


FOUND = {"hossz": "{{{1}}} méter[[Kategória:Hossz]]", "táv": "#hossz"}


def test_definitions_are_those_of_the_dump_in_every_packaging(
    packagings: Callable[..., dict[str, bytes]], new_page: NewPage, tmp_path: Path
) -> None:
    for number, (name, data) in enumerate(packagings(pages(new_page)).items()):
        (tmp_path / name).write_bytes(data)
        with Pool(1) as pool:
            path, _ = gather_definitions([examine(tmp_path / name)], "hu", number, tmp_path, pool)
        assert read_done(path) == FOUND, name


def test_definitions_that_are_there_are_not_gathered_again(
    export: Callable[..., bytes], new_page: NewPage, tmp_path: Path
) -> None:
    (tmp_path / "a.xml").write_bytes(export(pages(new_page)))
    kept = tmp_path / "0000.definitions.json"
    mark_done(kept, facts={})
    assert gather_definitions([examine(tmp_path / "a.xml")], "hu", 0, tmp_path, Pool(1)) == (kept, False)
    assert read_done(kept) == {}


def test_what_was_decoded_in_the_search_is_not_decoded_again(
    multistream: Callable[..., bytes], new_page: NewPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertwright.corpus.sources.pieces.BZ2_BYTES", 1)
    (tmp_path / "a.xml.bz2").write_bytes(multistream(pages(new_page)))
    file = examine(tmp_path / "a.xml.bz2")
    found = list(pieces_of(file, CorpusConfig(source="a", language="hu").source[0], 3, 0, tmp_path))
    assert len(found) > 1
    with Pool(1) as pool:
        path, copied = gather_definitions([file], "hu", 3, tmp_path, pool)
    assert copied and read_done(path) == FOUND
    for piece in found:
        assert b"".join(read(file, replace(piece, copy=copy_of(piece, tmp_path)))) == b"".join(read(file, piece))

    path.unlink()
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=file.size))
    with Pool(1) as pool:
        assert gather_definitions([file], "hu", 3, tmp_path, pool) == (path, False)


def built(path: Path, out: Path, wikitext: WikitextConfig, workers: int = 1) -> list[str]:
    config = CorpusConfig.model_validate({
        "source": str(path),
        "language": "hu",
        "filter": FilterConfig(enabled=False),
        "deduplicate": DeduplicateConfig(documents=False, near_documents=False, paragraphs=False),
        "wikitext": wikitext,
        "workers": workers,
    })  # fmt: skip
    return list(sentences(run(config, out)))


def test_a_corpus_with_and_without_the_templates_of_its_dump(
    multistream: Callable[..., bytes], new_page: NewPage, tmp_path: Path
) -> None:
    path = tmp_path / "a.xml.bz2"
    path.write_bytes(multistream(pages(new_page)))
    without = built(path, tmp_path / "without", WikitextConfig(expand_templates=False))
    expanded = built(path, tmp_path / "expanded", WikitextConfig())
    assert "A 7. híd hosszú." in without and "Szerintünk széles, és nagyon építmény." in without
    assert "A 7. híd 70 méter hosszú." in expanded and "Szerintünk 7 méter széles, és nagyon építmény." in expanded
    assert built(path, tmp_path / "two", WikitextConfig(), workers=2) == expanded


def test_templates_of_the_users_own_file(export: Callable[..., bytes], new_page: NewPage, tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(export(pages(new_page)))
    table = tmp_path / "mine.toml"
    table.write_text('[hu]\n"hossz" = "{1} rőf"\n"jelző" = "nagy"\n"táv" = "{1} láb"\n', "utf-8")
    config = WikitextConfig(templates=table)
    found = built(tmp_path / "a.xml", tmp_path / "corpus", config)
    assert "A 7. híd 70 rőf hosszú." in found and "Szerintünk 7 láb széles, és nagyon nagy építmény." in found


def test_a_table_that_was_edited_counts_at_once(
    export: Callable[..., bytes], new_page: NewPage, tmp_path: Path
) -> None:
    (tmp_path / "a.xml").write_bytes(export(pages(new_page)))
    table = tmp_path / "mine.toml"
    for unit in ("rőf", "láb"):
        table.write_text(f'[hu]\n"hossz" = "{{1}} {unit}"\n', "utf-8")
        found = built(tmp_path / "a.xml", tmp_path / "corpus", WikitextConfig(templates=table))
        assert f"A 7. híd 70 {unit} hosszú." in found


def test_the_table_counts_as_it_was_when_the_work_began(
    export: Callable[..., bytes], new_page: NewPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.xml").write_bytes(export(pages(new_page)))
    table = tmp_path / "mine.toml"
    table.write_text('[hu]\n"hossz" = "{1} rőf"\n', "utf-8")

    def edit(*_: object) -> None:
        table.write_text('[hu]\n"hossz" = "{1} öl"\n', "utf-8")

    monkeypatch.setattr("bertwright.corpus.run._note_identification", edit)
    found = built(tmp_path / "a.xml", tmp_path / "corpus", WikitextConfig(templates=table))
    assert "A 7. híd 70 rőf hosszú." in found


def test_a_missing_table_is_an_error(export: Callable[..., bytes], new_page: NewPage, tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(export(pages(new_page)))
    with pytest.raises(DataError, match=r"none\.toml"):
        built(tmp_path / "a.xml", tmp_path / "corpus", WikitextConfig(templates=tmp_path / "none.toml"))
