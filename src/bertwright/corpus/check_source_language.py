"""Check of a dump's language against `corpus.language`, so that a contradiction is found before the work begins.

The header of a dump may be wrong: a mirror or a private wiki often leaves it at English. So the language of the first
articles is identified as well, and the setting is rejected only if both contradict it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from bertwright.core.errors import RecipeError
from bertwright.core.log import Log
from bertwright.corpus.config import CorpusConfig
from bertwright.corpus.language import Identifier
from bertwright.corpus.sources.dump import Header, PageSplitter, parse_page
from bertwright.corpus.sources.file import File, Reader
from bertwright.corpus.sources.known import format_of
from bertwright.corpus.sources.wiki import read_header
from bertwright.corpus.wikis import wikis
from bertwright.corpus.wikitext.clean import paragraphs
from bertwright.corpus.wikitext.links import redirect_target
from bertwright.corpus.wikitext.site import Site

_ARTICLES = 10
# Characters below which the language of a text is uncertain.
_SHORT = 200
# Bytes of a dump that are searched for articles.
_BYTES = 8 * 2**20
_KINDS = re.compile(r"wik(i|tionary|ibooks|inews|iquote|isource|iversity|ivoyage)$")


def compare_language(config: CorpusConfig, file: File, log: Log) -> None:
    """Log a message, with the remedy, if the header of the dump names another language than the recipe.

    Raises `RecipeError` if its first articles are in another language, too.
    """
    if not format_of(file.format).is_wiki:
        return
    header = read_header(file)
    if not header.namespaces:
        log.say(
            f"corpus: {file.path.name} has no <siteinfo>, so the words of this wiki for files and categories are "
            "unknown, and captions may remain in the text. Copy the head of the complete dump before the pages."
        )
    wanted = (config.language, *config.filter.languages)
    if not header.language or _names(header) & set(wanted) or Identifier(wanted).wants(header.language):
        return
    contradiction = (
        f"{file.path.name} says that its language is {header.language!r}, but corpus.language is {config.language!r}"
    )
    # Mirrors and private wikis often leave the header at English, so check the text before rejecting anything.
    read_as = _read_as(Identifier(wanted), file, header)
    its_own = not read_as or read_as in wanted or Identifier([header.language]).wants(read_as)
    code = _code(header) if its_own else read_as
    remedy = f"Set corpus.language={code}, or, to keep both languages, corpus.filter.languages="
    remedy += f'["{config.language}", "{code}"]'
    if read_as in ("", *wanted):
        seen = (
            f"its first articles are in {read_as!r}" if read_as else "its first articles are in no recognised language"
        )
        log.say(f"corpus: {contradiction}; {seen}, so the run follows the recipe. If the recipe is wrong: {remedy}.")
        return
    raise RecipeError(f"{contradiction}, and its first articles are in {read_as!r}. {remedy}.")


def _names(header: Header) -> set[str]:
    """The codes that a recipe may use for the language of this wiki."""
    return {header.language, header.language.partition("-")[0], _code(header)}


def _code(header: Header) -> str:
    named = _KINDS.sub("", header.database).replace("_", "-")
    return named if named in wikis() else header.language


def _read_as(identifier: Identifier, file: File, header: Header) -> str:
    """The most common language of the first articles; "" where none is identified."""
    languages = Counter(filter(None, map(identifier.language, islice(_texts(file, header), _ARTICLES))))
    return languages.most_common(1)[0][0] if languages else ""


def _texts(file: File, header: Header) -> Iterator[str]:
    site = Site(header.language, header.namespaces)
    for data in PageSplitter(file.path, first=True).pages(_beginning(file)):
        try:
            page = parse_page(data)
        except ValueError:
            continue  # extraction reports where it is and what is wrong with it
        if page.namespace or page.redirect or redirect_target(page.text, site) is not None:
            continue
        if len(text := " ".join(p.text for p in paragraphs(page.text, site, title=page.title))) >= _SHORT:
            yield text


def _beginning(file: File) -> Iterator[bytes]:
    read = 0
    for block in Reader(file, size=2**18):
        yield block
        if (read := read + len(block)) >= _BYTES:
            return
