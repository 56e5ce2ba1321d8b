"""Language identification: CLD2 first, py3langid where CLD2 is unsure or does not know the language.

CLD2 reads 10 MB/s and gets eight stretches of 500 characters, evenly spaced over a document: on 3,062 articles in eight
languages the result was the same as on the entire text. py3langid (Barbaresi's langid.py, Lui & Baldwin 2012) knows
more languages, but takes milliseconds per document, half a second to load and 75 MB of memory, so it is loaded when
first needed. CLD2's answer is final for a document that it identifies as a wanted language, and for one of which a
third is in a wanted language while CLD2 is unsure of the rest.

A dump in another language than `corpus.language` is found before the work begins. Its header may be wrong: a mirror or
a private wiki often leaves it at English. So the setting is rejected only if the first articles contradict it, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any

import pycld2

from bertwright.core.errors import RecipeError
from bertwright.core.log import Log
from bertwright.corpus.config import CorpusConfig
from bertwright.corpus.sources.dump import Header, PageSplitter, parse_page
from bertwright.corpus.sources.file import File, Reader
from bertwright.corpus.sources.known import format_of
from bertwright.corpus.sources.wiki import read_header
from bertwright.corpus.wikis import wikis
from bertwright.corpus.wikitext.clean import paragraphs
from bertwright.corpus.wikitext.links import redirect_target

# Interlingua and Interlingue are on CLD2's list, but it identifies their pages as English.
_CLD2 = {code for name, code in pycld2.LANGUAGES if name in pycld2.DETECTED_LANGUAGES} - {"ia", "ie"}
# The identifiers' codes for the language of a wiki, where they differ from the wiki's code.
_CODES = {
    "he": ("he", "iw"), "jv": ("jv", "jw"), "simple": ("en",), "nb": ("no",), "zh": ("zh", "zh-Hant"),
    "sh": ("hr", "sr", "bs"), "be-tarask": ("be",), "be-x-old": ("be",), "fil": ("tl",), "tl": ("tl", "fil"),
    "zh-yue": ("yue",), "zh-classical": ("lzh",),
}  # fmt: skip
# Languages whose written form CLD2 identifies as a related one.
_NEIGHBOURS = {
    "arz": ("ar",), "ary": ("ar",), "bs": ("hr", "sr"), "hr": ("bs", "sr"), "sr": ("bs", "hr"),
}  # fmt: skip
# Languages that CLD2 confidently mistakes for another one.
_MISTAKEN = {"sco": "en"}
# Languages that py3langid knows only in one of the scripts of their wiki.
_IN_ONE_SCRIPT = {"gom"}
# Codes of the identifiers for a text without words, in no language they know, or in a script they only know by name.
_NO_LANGUAGES = ("zxx", "un", "xx-")
_SURE = 60
"""Percent of the text from which CLD2's first language is trusted."""
_ENOUGH = 33
"""Percent of the text from which a wanted language is accepted, where the first language is in doubt."""
# Characters passed to either identifier.
_READ = 4000
_STRETCHES = 8


class Identifier:
    """Identifies the language of texts, given the wanted ones (wiki codes)."""

    def __init__(self, wanted: Sequence[str]) -> None:
        named = {code: (code, *_CODES.get(code, ())) for code in wanted}
        # A wanted language precedes the neighbour of another one.
        self._wiki = {name: code for code in wanted for name in _NEIGHBOURS.get(code, ())}
        self._wiki |= {name: code for code, names in named.items() for name in names}
        self._names = [(*names, *_NEIGHBOURS.get(code, ())) for code, names in named.items()]
        self._cld2 = self._known(_CLD2)

    def language(self, text: str) -> str:
        """The language of the text: a wanted code, the identifier's code of another language, or "" if unknown.

        The language is always unknown where neither identifier knows every wanted language.
        """
        identified = ""
        if self._cld2:
            # The entire text took 0.06 s longer on the Ukrainian sample, with the same results.
            shares, reliable = detect(_stretches(text))
            identified, share = shares[0]
            sure = reliable and share >= _SURE
            if identified in self._wiki:
                return self._wiki[identified]
            for code, share in shares[1:]:
                if code in self._wiki and share >= _ENOUGH and (not sure or _MISTAKEN.get(code) == identified):
                    return self._wiki[code]
            if sure and not identified.startswith(_NO_LANGUAGES):
                return identified
        if self._known(_labels()):
            identified = _langid().classify(text[:_READ])[0]
        return "" if identified.startswith(_NO_LANGUAGES) else self._wiki.get(identified, identified)

    @property
    def knows(self) -> bool:
        """Whether either identifier knows every wanted language."""
        return self._cld2 or self._known(_labels())

    def wants(self, language: str) -> bool:
        """Whether `language`, as returned by an identifier, is one of the wanted languages."""
        return language in self._wiki

    def _known(self, codes: Iterable[str]) -> bool:
        return all(not set(names).isdisjoint(codes) for names in self._names)


def _stretches(text: str) -> str:
    """The text, or evenly spaced stretches of a long one."""
    if len(text) <= _READ:
        return text
    width = _READ // _STRETCHES
    step = (len(text) - width) // (_STRETCHES - 1)
    return " ".join(text[start : start + width] for start in range(0, _STRETCHES * step, step))


def detect(text: str) -> tuple[list[tuple[str, int]], bool]:
    """CLD2's codes of the three main languages ("un": none) with their percent of the text, and whether it is sure."""
    try:
        reliable, _, languages = pycld2.detect(text)
    except pycld2.error:  # noncharacters and the like: valid UTF-8, but CLD2 rejects it
        reliable, _, languages = pycld2.detect("".join(c if c.isprintable() else " " for c in text))
    return [(code, share) for _, code, share, _ in languages], bool(reliable)


@cache
def _langid() -> Any:
    # Loading takes half a second and 75 MB, so it waits for the first document that CLD2 is not sure of.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE)


@cache
def _labels() -> frozenset[str]:
    """The languages that py3langid knows."""
    return frozenset(_langid().labels) - _IN_ONE_SCRIPT


_ARTICLES = 10
# Characters below which the language of a text is uncertain.
_SHORT = 200
# Bytes of a dump that are searched for articles.
_BYTES = 8 * 2**20
_KINDS = re.compile(r"wik(i|tionary|ibooks|inews|iquote|isource|iversity|ivoyage)$")


def check_source_language(config: CorpusConfig, file: File, log: Log) -> None:
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
    read_as = _article_language(Identifier(wanted), file, header)
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


def _article_language(identifier: Identifier, file: File, header: Header) -> str:
    """The most common language of the first articles; "" where none is identified."""
    languages = Counter(filter(None, map(identifier.language, islice(_article_texts(file, header), _ARTICLES))))
    return languages.most_common(1)[0][0] if languages else ""


def _article_texts(file: File, header: Header) -> Iterator[str]:
    site = header.site(header.language)
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
