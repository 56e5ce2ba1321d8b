"""Data sets of wikis as their publishers write them, as JSON lines and as Parquet. The records are cut down from those
of Enterprise's documentation and of published excerpts; their keys are unchanged."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row
from tests.unit.corpus.sources.reading import Read

from bertwright.corpus.errors import SourceError

WIKI = {
    "is_part_of": {"name": "Wikipédia", "identifier": "huwiki"},
    "in_language": {"name": "Hungarian", "identifier": "hu"},
    "version": {"identifier": 1220413474, "tags": [], "editor": {"name": "N"}},
}
HTML = (
    '<!DOCTYPE html>\n<html><head><title>Híd</title></head><body><section data-mw-section-id="0"><p>A <b>híd</b> '
    'műtárgy.<sup typeof="mw:Extension/ref" class="mw-ref">[1]</sup></p><table class="infobox"><tr><td>x</table>'
    '</section><section data-mw-section-id="1"><h2>Fajtái</h2><ul><li>függőhíd</li></ul></section></body></html>'
)
ENTERPRISE = {
    "name": "Híd", "identifier": 12, "url": "https://hu.wikipedia.org/wiki/H%C3%ADd",
    "namespace": {"name": "Article", "identifier": 0}, **WIKI,
    "article_body": {"html": HTML, "wikitext": "A '''híd''' műtárgy."},
}  # fmt: skip
STRUCTURED = {
    "name": "Híd", "identifier": 12, "url": "https://hu.wikipedia.org/wiki/H%C3%ADd",
    "abstract": "A híd műtárgy.", **WIKI,
    "infoboxes": [{"type": "infobox", "has_parts": [{"type": "field", "name": "Hossz", "value": "5 m"}]}],
    "sections": [
        {"type": "section", "name": "Abstract"},
        {"type": "section", "name": "Fajtái:", "has_parts": [
            {"type": "paragraph", "value": "Sokféle híd van.", "links": [{"url": "u", "text": "híd"}]},
            {"type": "table", "has_parts": [{"type": "paragraph", "value": "cella"}]},
            {"type": "section", "name": "Régen", "has_parts": [
                {"type": "list", "has_parts": [{"type": "list_item", "value": "fahíd"}]},
            ]},
        ]},
    ],
}  # fmt: skip
FINEWIKI = {
    "text": "# Híd\nA **híd** műtárgy.\n\n## Fajtái\n- függőhíd\n\n| a | b |\n|---|---|\n| 1 | 2 |", "id": "huwiki/12",
    "wikiname": "huwiki", "page_id": 12, "title": "Híd", "url": "https://hu.wikipedia.org/wiki/H%C3%ADd",
    "date_modified": "2025-08-01T00:00:00Z", "in_language": "hu", "wikidata_id": "Q12280", "bytes_html": 9,
    "wikitext": "A '''híd''' műtárgy.", "version": 1220413474, "infoboxes": "[]", "has_math": False,
}  # fmt: skip
CIRRUS = {
    "template": ["Sablon:Híd"], "content_model": "wikitext", "opening_text": "A híd műtárgy.", "wiki": "huwiki",
    "auxiliary_text": ["táblázat"], "language": "hu", "title": "Híd", "namespace": 0, "version": 1220413474,
    "redirect": [{"namespace": 0, "title": "Hidak"}], "heading": ["Fajtái"], "page_id": 12,
    "text": "A híd műtárgy. Sokféle híd van (2 ^ 3). ^ Palotás: Hidak, 1987. ^ Más forrás.",
}  # fmt: skip
LEAD = (None, "A híd műtárgy.")
WANTED: dict[str, tuple[dict[str, Any], list[tuple[str | None, str]]]] = {
    "enterprise": (ENTERPRISE, [LEAD, ("Fajtái", "függőhíd")]),
    "enterprise without html": (ENTERPRISE | {"article_body": {"wikitext": "A '''híd''' műtárgy."}}, [LEAD]),
    "structured": (STRUCTURED, [LEAD, ("Fajtái", "Sokféle híd van."), ("Régen", "fahíd")]),
    "structured as text": (STRUCTURED | {"sections": json.dumps(STRUCTURED["sections"])}, [
        LEAD, ("Fajtái", "Sokféle híd van."), ("Régen", "fahíd"),
    ]),
    "finewiki": (FINEWIKI, [LEAD, ("Fajtái", "függőhíd")]),
    "cirrus": (CIRRUS, [LEAD, (None, "Sokféle híd van (2 ^ 3).")]),
}  # fmt: skip


def write_lines(path: Path, *records: Any) -> Path:
    path.write_text("".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records), "utf-8")
    return path


def check(found: Read, expected: list[tuple[str | None, str]]) -> None:
    assert [[(p.heading, p.text) for p in article.paragraphs] for article in found.articles] == [expected]
    facts = found.articles[0].facts
    assert facts == {
        "id": 12, "title": "Híd", "revision": 1220413474, "url": "https://hu.wikipedia.org/wiki/H%C3%ADd",
        "source": "huwiki", "licence": "CC BY-SA",
    }  # fmt: skip
    assert found.counts["pages"] == 1


@each_row("kind", [*WANTED])
def test_lines_of_json(tmp_path: Path, kind: str) -> None:
    record, expected = WANTED[kind]
    check(Read(write_lines(tmp_path / "a.json", record), tmp_path), expected)


@each_row("kind", [*WANTED])
def test_rows_of_a_table(tmp_path: Path, kind: str) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'bertwright[formats]'")
    from pyarrow import parquet

    record, expected = WANTED[kind]
    parquet.write_table(pyarrow.Table.from_pylist([record]), tmp_path / "a.parquet")
    check(Read(tmp_path / "a.parquet", tmp_path), expected)


@each_row("index", [{"_type": "page", "_id": "12"}, {"_id": "12", "_index": "huwiki_content_first"}])
def test_pairs_of_a_dump_of_the_search_index(tmp_path: Path, index: dict[str, str]) -> None:
    document = {key: value for key, value in CIRRUS.items() if key != "page_id"}  # as before 2021
    found = Read(write_lines(tmp_path / "a", {"index": index}, document), tmp_path)
    assert found.source.files[0].format == "cirrus"
    check(found, WANTED["cirrus"][1])


def test_pages_that_are_no_articles_are_counted(tmp_path: Path) -> None:
    talk, redirect = {"identifier": 1}, {"html": '<link rel="mw:PageProp/redirect" href="./A"><p>a'}
    several = {"html": '<meta property="mw:PageProp/disambiguation"/><p>Híd a következőket jelentheti:'}
    lines = write_lines(
        tmp_path / "a", ENTERPRISE, ENTERPRISE | {"namespace": talk}, ENTERPRISE | {"article_body": redirect},
        ENTERPRISE | {"article_body": several}, CIRRUS | {"namespace": 4},
    )  # fmt: skip
    found = Read(lines, tmp_path)
    kinds = {"pages": 5, "redirects": 1, "other_namespaces": 2, "disambiguations": 1}
    assert len(found.articles) == 1 and {kind: found.counts[kind] for kind in kinds} == kinds


def test_another_key_of_the_text_is_read_as_it_stands(tmp_path: Path) -> None:
    found = Read(write_lines(tmp_path / "a", FINEWIKI), tmp_path, text="wikitext")
    assert found.texts == [["A '''híd''' műtárgy."]]


@each_row(
    ("record", "expected"),
    [
        ({"title": "A", "markdown": "# A\n*Egy* mondat.", "pageid": 3}, ["Egy mondat."]),
        ({"html": "<p>Egy <i>mondat</i>.</p>"}, ["Egy mondat."]),
        ({"text": "Egy <i>mondat</i>.", "html": "<p>x"}, ["Egy <i>mondat</i>."]),
    ],
)
def test_markdown_and_html_in_a_key_of_its_own(tmp_path: Path, record: dict[str, Any], expected: list[str]) -> None:
    assert Read(write_lines(tmp_path / "a", record), tmp_path).texts == [expected]


def test_half_of_a_surrogate_pair_is_replaced_and_counted_in_any_schema(tmp_path: Path) -> None:
    for number, line in enumerate(
        (
            b'{"text": "Egy \\ud83d mondat \\ud83d\\ude00."}\n',
            b'{"html": "<p>Egy \\udc00 mondat \\ud83d\\ude00."}\n',
            b'{"text": "Egy \xff mondat \\ud83d\\ude00."}\n',
        )
    ):
        (tmp_path / str(number)).write_bytes(line)
        found = Read(tmp_path / str(number), tmp_path)
        assert (found.texts, found.counts["replaced_characters"]) == ([["Egy \ufffd mondat 😀."]], 1)


def test_sections_that_are_no_json_are_refused_with_their_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="line 2 is no record of structured Wikipedia"):
        Read(write_lines(tmp_path / "a", STRUCTURED, STRUCTURED | {"sections": "x"}), tmp_path)


@each_row("value", [None, "x", [], {}, 7, [None, [], {"type": "section", "has_parts": 7}]])
def test_values_of_another_kind_are_no_text(tmp_path: Path, value: Any) -> None:
    for record, key in ((ENTERPRISE, "article_body"), (STRUCTURED, "sections"), (CIRRUS, "opening_text")):
        if record is STRUCTURED and value == "x":
            continue
        assert len(Read(write_lines(tmp_path / "a", record | {key: value}), tmp_path).articles) == 1
