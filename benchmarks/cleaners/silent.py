"""Calls that leave no word in a sentence by nature, the same for every cleaner judged.

They print a mark of doubt, a citation, a footnote's mark, a flag, an anchor, an icon or only a space. Their names are
in `silent.tsv`, in lines of a kind, a source, a wiki ("" for all) and names in lower case. The sources:

pages            read on pages of the wikis, or in their documentation
DBpedia          what redirects to or from the English name of a template of this kind on 50 wikis, in the lists of
                 redirects in `server/src/main/statistics` of dbpedia/extraction-framework, commit e3dfe8bb; for doubts
                 also what names ending in "?" redirect to. Left out were redirects to templates of another kind
Citation Hunt    the marks of missing sources of 55 wikis, in `config.py` of eggpi/citationhunt
wtf_wikipedia    the names that Wikidata links with `Flagicon`, `Sfn`, `Cite web`, `Cite book` and the like, in
                 `plugins/i18n` of spencermountain/wtf_wikipedia
pywikibot        `scripts/reflinks.py` of wikimedia/pywikibot

Three kinds are told by the form of a call: a name that ends in "?" (of the 193 redirects with such names on these
wikis all but some 35, such as users' boxes and titles of books, mark a doubt), a month and a year as the only argument,
which say since when a text is doubted, and the code of a language beside a word for "icon".
What prints a word or number of the sentence is never silent: neither a template that may do so, nor a mark of doubt
that is given three words or more, the doubted text or a remark, unless it was read on pages that it prints none.
"""

import re
from functools import cache
from pathlib import Path

_SHORT = 4
"""Names of so few letters of ASCII mean other things in other wikis."""
_DOUBTED = re.compile(r"(?:\w+\W+){2}\w")
_LANGUAGE = re.compile(
    r"af|ar|az|be|bg|ca|cs|cy|da|de|el|en|eo|es|et|eu|fa|fi|fr|gl|he|hi|hr|hu|hy|id|is|it|ja|ka|ko|la|lt|lv|mk|nl|no|pl"
    r"|pt|ro|ru|sk|sl|sq|sr|sv|th|tr|uk|vi|zh|deu|eng|fra|ger|rus|ukr"
)
_FORM = re.compile(
    r"[^:/|]+[?？؟]|\({1,2}[a-z]{2,3}\){1,2}|[a-z]{2,3}[ -](?:icono?|idioma|ikona?|oznaka|sprog|икона)"
    r"|(?:eicon|icon|ikona?|jezik) [a-z]{2,3}|(?:ref|реф)-[\w.-]+"
    r"|(?:cite|chú thích) .*|#tag:ref.*|#invoke:footnotes.*|(?:defaultsort|displaytitle):.*"
    r"|.*(?: icon|-inline| citation| উদ্ধৃতি| स्रोत)"
)
_SINCE = re.compile(
    r"\{\{[^|{}]*\|\s*[^\W\d]+\s*=\s*(?:[^\W\d]{3,}\.?(?: d[eo])? \d{4}|\d{4}\s*[-年/]\s*\d{1,2}\s*月?)\s*\|?\s*\}\}"
)


@cache
def _kinds() -> dict[tuple[str, str], str]:
    """The kind of each name, by wiki and name; wiki "" is all."""
    kinds = {}
    for line in Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()[1:]:
        kind, source, wiki, names = line.split("\t")
        for name in names.split(" | "):
            kinds[wiki, name] = "read" if source == "pages" else kind
            if source != "pages" and not (kind == "language" or (name.isascii() and len(name) <= _SHORT)):
                kinds["", name] = kind
    return kinds


def is_silent(name: str, argument: str = "", call: str = "", language: str = "") -> bool:
    """Whether a call of this template leaves no word.

    `argument` is the first unnamed one, `call` the whole call in its braces, `language` that of the wiki. By the code
    of a language it is the mark of a source's language, {{de}}, unless it is given words, {{de|Wort}}.
    """
    key = " ".join(name.replace("_", " ").split()).lower()
    if _LANGUAGE.fullmatch(key) and not (len(key) == 3 and name.strip().isupper()):  # {{RUS}} is a country
        return not argument and "|" not in call
    kinds = _kinds()
    kind = kinds.get((language, key)) or kinds.get(("", key))
    if kind == "doubt" or key.endswith("?"):
        return not _DOUBTED.match(argument)
    if key and not key.strip("\"' "):
        return not argument
    return kind is not None or _FORM.fullmatch(key) is not None or _SINCE.fullmatch(call) is not None
