"""Records of known data sets of wikis, whether they are lines of JSON or rows of a table.

| schema | text | written by |
|---|---|---|
| Wikimedia Enterprise | `article_body.html` (or `.wikitext`) | Enterprise HTML dumps, Snapshot and On-demand APIs |
| structured Wikipedia | nested `sections` | Enterprise Structured Contents, `wikimedia/structured-wikipedia` |
| FineWiki | `text`, in Markdown | `HuggingFaceFW/finewiki` |
| CirrusSearch | `text`, all on one line | dumps of Wikimedia's search index |
| Markdown, HTML | `markdown` or `html`, where there is no `text` | GoodWiki, crawlers |

A record is recognised by its keys. A recipe that names another key of the text means that key, as it stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bertwright.corpus.config import SourceConfig
from bertwright.corpus.html_text import read_html, selectolax
from bertwright.corpus.markdown_text import markdown_paragraphs
from bertwright.corpus.sources.dump import Header
from bertwright.corpus.sources.file import ExtractJob
from bertwright.corpus.sources.format import Article, Paragraph, PassedOverError
from bertwright.corpus.sources.records import document, plain_lines
from bertwright.corpus.wikimedia import split_database, wiki_address
from bertwright.corpus.wikitext.clean import paragraphs

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Schema:
    """How records of one kind are recognised and read."""

    name: str
    keys: tuple[frozenset[str], ...]
    """A record is one of these if it has all keys of any of these sets."""
    columns: tuple[str, ...]
    """The columns of a table that are read; those that are missing are left out."""
    read: Callable[[ExtractJob, Record, int], Article]
    """Gives the article of a record, whose place in the file is its id if it has none. Raises `PassedOverError` for a
    page that is no article, `ValueError` for a record that is none of these after all."""
    wiki: Callable[[Record], tuple[str, str]]
    """The database and the language of a record's wiki; "" where it does not say."""
    no: frozenset[str] = frozenset()
    """Keys that no record of these has."""


def schema_of(keys: Collection[str], config: SourceConfig) -> Schema | None:
    """The known schema of records with these keys; None for any other, and where the recipe names a key of the text."""
    if config.text != "text":
        return None
    present = set(keys)
    matching = (known for known in SCHEMAS if not known.no & present and any(keys <= present for keys in known.keys))
    return next(matching, None)


def header_of(record: Any, config: SourceConfig) -> Header:
    """What a record says of its wiki."""
    schema = schema_of(record, config) if isinstance(record, dict) else None
    if schema is None:
        return Header()
    if schema is HTML or (schema is ENTERPRISE and _in(record, "article_body", "html")):
        selectolax()  # a missing package is said before work starts
    database, language = schema.wiki(record)
    parts = split_database(database)
    return Header("", database, wiki_address(database), language or (parts[0].replace("_", "-") if parts else ""))


def _in(record: Any, *path: str) -> Any:
    """A value inside nested objects; None where one of them is something else."""
    for key in path:
        record = record.get(key) if isinstance(record, Mapping) else None
    return record


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _article(job: ExtractJob, found: list[Paragraph], place: int, **facts: Any) -> Article:
    """An article with paragraphs that are read already."""
    return Article(document(job, "", {key: value for key, value in facts.items() if value}, place).facts, found)


def _lines(values: Iterator[tuple[str, str | None]] | list[tuple[str, str | None]]) -> list[Paragraph]:
    """The paragraphs of texts with the heading that stands before each."""
    found, heading = list[Paragraph](), None
    for text, before in values:
        heading = before or heading
        for line in plain_lines(text):
            found.append(Paragraph(" ".join(line.split()), heading))
            heading = None
    return found


def _enterprise_wiki(record: Record) -> tuple[str, str]:
    return _string(_in(record, "is_part_of", "identifier")), _string(_in(record, "in_language", "identifier"))


def _enterprise_facts(record: Record) -> dict[str, Any]:
    return {
        "id": record.get("identifier"),
        "title": record.get("name"),
        "url": record.get("url"),
        "revision": _in(record, "version", "identifier"),
    }


def _check_namespace(namespace: Any) -> None:
    if isinstance(namespace, int) and namespace != 0:
        raise PassedOverError("other_namespaces")


def _read_enterprise(job: ExtractJob, record: Record, place: int) -> Article:
    _check_namespace(_in(record, "namespace", "identifier"))
    facts, maths = _enterprise_facts(record), job.config.wikitext
    if html := _string(_in(record, "article_body", "html")):
        page = read_html(html, maths.maths, wiki=True)
        if page.kind == "redirects" or (page.kind == "disambiguations" and not job.config.keep_disambiguation):
            raise PassedOverError(page.kind)
        return _article(job, page.paragraphs, place, **facts)
    source = _string(_in(record, "article_body", "wikitext"))
    return _article(job, paragraphs(source, job.site, maths, _string(record.get("name"))), place, **facts)


def _read_structured(job: ExtractJob, record: Record, place: int) -> Article:
    sections = record.get("sections")
    if isinstance(sections, str):
        sections = json.loads(sections)
    found = _lines(_parts(sections if isinstance(sections, list) else []))
    lead = _string(record.get("abstract")).strip()
    # In early releases the first section is called "Abstract" and empty.
    if lead and not any(paragraph.text[:40] == lead[:40] for paragraph in found[:3]):
        found = _lines([(lead, None)]) + found
    return _article(job, found, place, **_enterprise_facts(record))


_TEXTS = {"paragraph", "list_item", "quote", "blockquote"}


def _parts(sections: list[Any]) -> Iterator[tuple[str, str | None]]:
    """Yield the texts of nested parts in order, each with the heading of the section that it opens."""
    waiting: list[Any] = list(reversed(sections))
    heading: str | None = None
    while waiting:
        part = waiting.pop()
        if not isinstance(part, Mapping):
            continue
        kind, value = part.get("type"), _string(part.get("value"))
        if kind == "section":
            name = _string(part.get("name"))
            heading = None if name == "Abstract" else name.rstrip(":") or heading
        if value and (kind in _TEXTS or kind == "section"):
            yield value, heading
            heading = None
        # Tables, infoboxes, images and their fields have parts as well.
        if kind in ("section", "list", "list_item", "paragraph") and isinstance(part.get("has_parts"), list):
            waiting += reversed(part["has_parts"])


def _read_finewiki(job: ExtractJob, record: Record, place: int) -> Article:
    title = _string(record.get("title"))
    text = "\n".join(plain_lines(_string(record.get("text"))))
    found = markdown_paragraphs(text, title, job.config.wikitext.maths)
    number = record.get("page_id") or record.get("id")
    return _article(
        job, found, place, id=number, title=title, url=record.get("url"), revision=_number(record.get("version"))
    )


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isdecimal() else value


# Old dumps have the notes at the end of the text, each after a mark that links back to its place.
_NOTES = re.compile(r"(?<=[.!?…。”»\"]) (?:\^|↑) (?=[^\W\d]|[\"“„«(])")


def read_cirrus(job: ExtractJob, record: Record, place: int) -> Article:
    """The article of a document of the search index: its text without headings, tables and captions."""
    _check_namespace(record.get("namespace"))
    title, number = _string(record.get("title")), record.get("page_id") or record.get("_id")
    text = _NOTES.split(_string(record.get("text")), maxsplit=1)[0]
    opening = _string(record.get("opening_text")).strip()
    # The only border of paragraphs that is known.
    if opening and text.startswith(opening):
        text = f"{opening}\n{text[len(opening) :].lstrip()}"
    url = job.header.url(title) if title else ""
    facts = {"id": _number(number), "title": title, "url": url, "revision": record.get("version")}
    return document(job, text, {key: value for key, value in facts.items() if value}, place)


def _read_markdown(job: ExtractJob, record: Record, place: int) -> Article:
    title = _string(record.get("title"))
    text = "\n".join(plain_lines(_string(record.get("markdown"))))
    found = markdown_paragraphs(text, title, job.config.wikitext.maths)
    facts = {key: record.get(key) for key in ("id", "url", "revision")}
    facts["id"], facts["revision"] = facts["id"] or record.get("pageid"), facts["revision"] or record.get("revid")
    return _article(job, found, place, title=title, **facts)


def _read_html(job: ExtractJob, record: Record, place: int) -> Article:
    page = read_html(_string(record.get("html")), job.config.wikitext.maths)
    if page.kind == "redirects":
        raise PassedOverError(page.kind)
    title, url = record.get("title") or page.title, record.get("url") or page.url
    return _article(job, page.paragraphs, place, id=record.get("id"), title=title, url=url)


def _no_wiki(record: Record) -> tuple[str, str]:
    return "", ""


_ENTERPRISE_KEYS = frozenset({"name", "url"})
_FACTS = ("name", "identifier", "url", "version", "in_language", "is_part_of", "namespace")
ENTERPRISE = Schema(
    "Wikimedia Enterprise",
    (_ENTERPRISE_KEYS | {"article_body"},),
    (*_FACTS, "article_body"),
    _read_enterprise,
    _enterprise_wiki,
)
STRUCTURED = Schema(
    "structured Wikipedia",
    (_ENTERPRISE_KEYS | {"sections", "identifier"},),
    (*_FACTS, "abstract", "sections"),
    _read_structured,
    _enterprise_wiki,
    no=frozenset({"text"}),
)
FINEWIKI = Schema(
    "FineWiki",
    (frozenset({"text", "title", "wikiname"}), frozenset({"text", "title", "wikitext", "in_language"})),
    ("text", "title", "id", "page_id", "url", "version", "wikiname", "in_language"),
    _read_finewiki,
    lambda record: (_string(record.get("wikiname")), _string(record.get("in_language"))),
)
CIRRUS = Schema(
    "CirrusSearch",
    tuple(frozenset({"text", "title", "namespace", key}) for key in ("wiki", "opening_text", "auxiliary_text")),
    ("text", "opening_text", "title", "namespace", "page_id", "version", "wiki", "language"),
    read_cirrus,
    lambda record: (_string(record.get("wiki")), _string(record.get("language"))),
)
MARKDOWN = Schema(
    "Markdown",
    (frozenset({"markdown", "title"}),),
    ("markdown", "title", "id", "pageid", "url", "revision", "revid"),
    _read_markdown,
    _no_wiki,
    no=frozenset({"text"}),
)
HTML = Schema(
    "HTML", (frozenset({"html"}),), ("html", "title", "id", "url"), _read_html, _no_wiki, no=frozenset({"text"})
)
SCHEMAS = (ENTERPRISE, STRUCTURED, FINEWIKI, CIRRUS, MARKDOWN, HTML)
