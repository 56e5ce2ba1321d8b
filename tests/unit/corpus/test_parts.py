"""The first pass over a dump: the same definitions from every packaging, and a corpus that uses them."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from bertwright.core.errors import DataError
from bertwright.core.task_records import mark_done, read_done
from bertwright.core.tasks import Pool
from bertwright.core.work_split import WorkSplit
from bertwright.corpus.config import CorpusConfig, DeduplicateConfig, FilterConfig, WikitextConfig
from bertwright.corpus.parts import gather_definitions
from bertwright.corpus.run import run
from bertwright.corpus.sources.detect import examine
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
    assert gather_definitions([examine(tmp_path / "a.xml")], "hu", 0, tmp_path, Pool(1)) == (kept, [])
    assert read_done(kept) == {}


@pytest.mark.usefixtures("small_pieces")
def test_what_was_decoded_in_the_search_is_not_decoded_again(
    packagings: Callable[..., dict[str, bytes]], export: Callable[..., bytes], new_page: NewPage, tmp_path: Path
) -> None:
    for number, (name, data) in enumerate(packagings(pages(new_page)).items()):
        (tmp_path / name).write_bytes(data)
        file = examine(tmp_path / name)
        with Pool(1) as pool:
            _, found = gather_definitions([file], "hu", number, tmp_path, pool)
        assert len(found) > 1
        if file.compression != "plain" or file.encoding != "utf-8":
            (tmp_path / name).write_bytes(b"gone")
        read_again = b"".join(block for file, piece in found for block in read(file, piece))
        assert read_again.removeprefix(b"\xef\xbb\xbf") == export(pages(new_page)), name


@pytest.mark.usefixtures("small_pieces")
def test_a_rank_keeps_the_pieces_that_are_its_own(
    packagings: Callable[..., dict[str, bytes]], new_page: NewPage, tmp_path: Path
) -> None:
    for number, (name, data) in enumerate(packagings(pages(new_page)).items()):
        (tmp_path / name).write_bytes(data)
        with Pool(1) as pool:
            _, found = gather_definitions([examine(tmp_path / name)], "hu", number, tmp_path, pool, WorkSplit(1, 2))
        copied = {piece.index for _, piece in found if piece.copy and piece.copy.exists()}
        assert copied == ({i for i in range(len(found)) if (number + i) % 2 == 1} if name == "c.xml.bz2" else set())
        assert not list(tmp_path.glob("*.piece.zst")), "another rank would remove or write the same file"


@pytest.mark.usefixtures("small_pieces")
def test_decoded_copies_are_not_kept_on_a_full_disk(
    packagings: Callable[..., dict[str, bytes]], new_page: NewPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = packagings(pages(new_page))
    for number, name in enumerate(("c.xml.bz2", "d.xml.xz")):
        (tmp_path / name).write_bytes(files[name])
        file = examine(tmp_path / name)
        monkeypatch.setattr("shutil.disk_usage", lambda _, size=file.size: SimpleNamespace(free=size))
        with Pool(1) as pool:
            path, found = gather_definitions([file], "hu", number, tmp_path, pool)
        assert found == [] and read_done(path) == FOUND
        assert not list(tmp_path.glob("*.zst"))


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
    assert not any("híd" in each or "Szerintünk" in each for each in without), "it would be 0 or 70 of what?"
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
