"""Language identification: which documents are in another language than the wiki's.

CLD2 reads 10 MB/s and gets eight stretches of 500 characters, evenly spaced over a document: on 3,062 articles in eight
languages the result was the same as on the entire text. A document is foreign only if CLD2 is sure of a language that
it does not take the wiki's own texts for, and py3langid (Barbaresi's langid.py, Lui & Baldwin 2012), which takes
milliseconds, half a second to load and 75 MB of memory, does not take the document for the wiki's language. In all
other cases the document counts as the wiki's own: Scots is close to English for both, and that is known.

What either takes texts of a language for was counted on texts that are known to be in it: `confusions.tsv`, which
`benchmarks/confusions.py` makes. Each line has the codes of a language's wikis, the number of texts, how many of them
CLD2 was sure to be in which language, what py3langid often took them for, and in which scripts they are. The answers of
CLD2 that occurred only once estimate how often an answer comes that never occurred (Good 1953); where there are too
many of them, or too few texts, or none in a script of the wiki, no document is dropped because of its language.

A dump in another language than `corpus.language` is found before the work begins. Its header may be wrong: a mirror or
a private wiki often leaves it at English. So the setting is rejected only if the first articles contradict it, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pycld2

from bertwright.core.errors import RecipeError
from bertwright.core.log import Log
from bertwright.corpus.characters import script, scripts
from bertwright.corpus.config import CorpusConfig
from bertwright.corpus.sources.dump import Header, PageSplitter, parse_page
from bertwright.corpus.sources.file import File, Reader
from bertwright.corpus.sources.known import format_of
from bertwright.corpus.sources.wiki import read_header
from bertwright.corpus.wikis import wikis
from bertwright.corpus.wikitext.clean import paragraphs
from bertwright.corpus.wikitext.links import redirect_target

_FILE = Path(__file__).with_name("confusions.tsv")
# Codes of CLD2 for languages whose wiki has another one.
_CLD2_CODES = {"iw": "he", "jw": "jv", "zh-Hant": "zh"}
SURE = 60
"""Percent of the text from which CLD2's first language is trusted."""
FEWEST = 10
"""Texts of a language from which its answers are known well enough."""
_UNSEEN = 0.03
"""Largest share of texts whose answer was seen only once."""
OFTEN = 0.02
"""Share of texts from which an answer does not contradict the language: below it, the texts themselves may be wrong."""
# Characters passed to either identifier.
_READ = 4000
_STRETCHES = 8


class Answers(NamedTuple):
    """What the identifiers answer for texts that are known to be in one language."""

    codes: tuple[str, ...]
    """The codes of its wikis."""
    texts: int
    cld2: dict[str, int]
    """The number of texts that CLD2 was sure to be in each language."""
    langid: tuple[str, ...]
    """The languages that py3langid often took the texts for."""
    scripts: frozenset[str]
    """The scripts that they are written in."""

    @property
    def own(self) -> frozenset[str]:
        """CLD2's languages that do not contradict this one: its own, and those it is often taken for."""
        often = max(2, OFTEN * self.texts)
        return frozenset((*self.codes, *(code for code, count in self.cld2.items() if count >= often)))

    @property
    def suffice(self) -> bool:
        """Whether there were enough of them to know that any other answer of CLD2 means another language."""
        once = sum(count == 1 for code, count in self.cld2.items() if code not in self.codes)
        return self.texts >= FEWEST and once <= _UNSEEN * self.texts


@cache
def _answers() -> dict[str, Answers]:
    """The lines of `confusions.tsv` by wiki code."""
    lines = [line.split("\t") for line in _FILE.read_text(encoding="utf-8").splitlines() if line[0] != "#"]
    of_languages = [
        Answers(
            tuple(codes.split()),
            int(texts),
            {c: int(n) for c, n in _pairs(cld2)},
            tuple(langid.split()),
            frozenset(written.split()),
        )
        for codes, texts, cld2, langid, written in lines
    ]
    return {code: answers for answers in of_languages for code in answers.codes}


def _pairs(column: str) -> Iterator[tuple[str, str]]:
    fields = column.split()
    return zip(fields[::2], fields[1::2], strict=True)


def answers(code: str) -> Answers:
    """What the identifiers answer for texts in the language of a wiki; no texts where none were measured."""
    return _answers().get(code) or Answers((code,), 0, {}, (), frozenset())


class Identifier:
    """Identifies the language of texts, given the wanted ones (wiki codes)."""

    def __init__(self, wanted: Sequence[str]) -> None:
        of_wanted = {code: answers(code) for code in wanted}
        self._cld2 = {name: code for code, own in reversed(of_wanted.items()) for name in own.own}
        self._langid = {name: code for code, own in reversed(of_wanted.items()) for name in own.langid}
        # A wanted language precedes those that another one is taken for.
        self._cld2 |= {name: code for code, own in of_wanted.items() for name in own.codes}
        self._knows = all(own.suffice for own in of_wanted.values())
        # A wiki in several scripts may have been measured in one of them only.
        self._unmeasured = frozenset[str]().union(*(scripts(code) - own.scripts for code, own in of_wanted.items()))

    def language(self, text: str) -> str:
        """The language of the text: a wanted code, CLD2's code of another language, or "" if unknown."""
        # The entire text took 0.06 s longer on the Ukrainian sample, with the same results.
        text = _stretches(text)
        shares, reliable = detect(text)
        identified, share = shares[0]
        if identified in self._cld2:
            return self._cld2[identified]
        if not (self._knows and reliable and share >= SURE and identified != "un"):
            return ""
        # Asked only before a document is dropped, because it takes milliseconds.
        if self._unmeasured and main_script(text) in self._unmeasured:
            return ""
        return self._langid.get(_langid().classify(text)[0], identified)

    @property
    def knows(self) -> bool:
        """Whether any text can be identified as being in another language than the wanted ones."""
        return self._knows

    def wants(self, language: str) -> bool:
        """Whether `language`, as returned by an identifier, is one of the wanted languages."""
        return language in self._cld2


def _stretches(text: str) -> str:
    """The text, or evenly spaced stretches of a long one."""
    if len(text) <= _READ:
        return text
    width = _READ // _STRETCHES
    step = (len(text) - width) // (_STRETCHES - 1)
    return " ".join(text[start : start + width] for start in range(0, _STRETCHES * step, step))


def main_script(text: str) -> str:
    """The Unicode script of most of its letters; "" if it has none."""
    by_script = Counter(map(script, filter(str.isalpha, text)))
    return by_script.most_common(1)[0][0] if by_script else ""


def detect(text: str) -> tuple[list[tuple[str, int]], bool]:
    """The wiki codes of CLD2's three main languages ("un": none) with their percent of the text, and whether it is
    sure."""
    try:
        reliable, _, languages = pycld2.detect(text)
    except pycld2.error:  # noncharacters and the like: valid UTF-8, but CLD2 rejects it
        reliable, _, languages = pycld2.detect("".join(c if c.isprintable() else " " for c in text))
    return [(_wiki_code(code), share) for _, code, share, _ in languages], bool(reliable)


def _wiki_code(code: str) -> str:
    # CLD2 names a script ("xx-Java") where it knows no language written in it, and a text without words ("zxx").
    return "un" if code.startswith(("xx-", "zxx")) else _CLD2_CODES.get(code, code)


@cache
def _langid() -> Any:
    # Loading takes half a second and 75 MB, so it waits for the first document that would be dropped.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE)


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
