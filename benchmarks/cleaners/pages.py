"""The articles of a shared dump, as the corpus stage reads them, and our text of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bertwright.corpus.citation_filter import detect_references
from bertwright.corpus.sources.detect import examine
from bertwright.corpus.sources.dump import PAGE, Page, PageSplitter, parse_header, parse_page
from bertwright.corpus.sources.file import Reader
from bertwright.corpus.sources.format import Paragraph
from bertwright.corpus.split import splitter
from bertwright.corpus.wikitext.clean import paragraphs
from bertwright.corpus.wikitext.definitions import Definitions, plain_definition
from bertwright.corpus.wikitext.links import redirect_target
from bertwright.corpus.wikitext.site import CATEGORY, FILE, MEDIA, Site

_TEMPLATE = 10


@dataclass(frozen=True)
class Wiki:
    """A dump, or its first articles."""

    name: str
    """Such as "enwiki-p10p30302-shortened"."""
    site: Site
    articles: Sequence[Page]
    """Pages of the article namespace that lead nowhere else, in order."""
    definitions: Definitions
    """Of the templates among its pages."""
    xml: bytes
    """An export that holds these articles and all templates."""

    @property
    def hidden(self) -> dict[str, list[str]]:
        """The names of the namespaces a link to which shows no text, by what such a link is."""
        own = self.site.namespaces
        files = [*own.get(MEDIA, ()), *own.get(FILE, ()), "File", "Image", "Media"]
        return {"caption": files, "category": [*own.get(CATEGORY, ()), "Category"]}


def read_wiki(path: Path, limit: int | None, language: str = "") -> Wiki:
    """The dump at `path`, with its first `limit` articles, in the language it names unless another is given."""
    data = _unpacked(path)
    head = data[: data.index(PAGE)]
    header = parse_header(head, path)
    site = Site(language or header.language, header.namespaces)
    whole = list(PageSplitter(path, first=True).pages([data]))
    pages = [(page, raw) for raw in whole for page in [parse_page(raw)]]
    articles = list(islice(((page, raw) for page, raw in pages if _is_article(page, site)), limit))
    kept = [raw for page, raw in pages if page.namespace == _TEMPLATE] + [raw for _, raw in articles]
    xml = b"".join([head, *(b"  " + raw + b"\n" for raw in kept), b"</mediawiki>\n"])
    templates = (plain_definition(page.title, page.text, site) for page, _ in pages if page.namespace == _TEMPLATE)
    definitions = Definitions(dict(filter(None, templates)))
    return Wiki(path.name.partition(".")[0], site, [page for page, _ in articles], definitions, xml)


def has_pages(path: Path) -> bool:
    """Whether the dump at `path` has any."""
    return PAGE in _unpacked(path)


def _unpacked(path: Path) -> bytes:
    """Its content as UTF-8, however it is packed and encoded."""
    return b"".join(Reader(examine(path)))


def _is_article(page: Page, site: Site) -> bool:
    redirect = page.redirect or redirect_target(page.text, site) is not None
    return not page.namespace and page.model == "wikitext" and not redirect


def our_text(page: Page, wiki: Wiki) -> str:
    """The page's paragraphs, one a line, before any is split or filtered."""
    return "\n".join(paragraph.text for paragraph in _paragraphs(page, wiki))


def sentences_of(page: Page, wiki: Wiki, language: str) -> list[str]:
    """The page's sentences as the filter gets them."""
    split, found = splitter(language), _paragraphs(page, wiki)
    kept = (each.text for each, cited in zip(found, detect_references(found), strict=True) if not cited)
    return [sentence for text in kept for sentence in split(text)]


def _paragraphs(page: Page, wiki: Wiki) -> list[Paragraph]:
    return list(paragraphs(page.text, wiki.site, title=page.title, definitions=wiki.definitions))
