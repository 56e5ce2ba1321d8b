"""Calls of templates that neither the tables nor the dump define: which of their arguments are words of the sentence.

Only the form and the place of the call are known. Calls of some forms print their arguments on nearly every wiki, and
only these are kept: a text with its language code, a link's text with its title in another language, a number with its
unit (`quantities`), prose (`wrapped_prose`), a single short argument, and two arguments of which the second is a
remark. Footnotes, maintenance notices and flags have the same forms, but other places, so the words that a call may
print are marked, and `marked_words` decides once their line is complete.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from bertwright.corpus.wikitext.marked_words import (
    AFTER_NUMBER,
    LOST,
    NUMBER,
    PERHAPS,
    PROSE,
    SOME_NUMBER,
    SURE,
    keep_words,
    mark,
    without_marks,
)
from bertwright.corpus.wikitext.quantities import (
    count,
    follows_number,
    is_abbreviation,
    is_numeric,
    is_ordinal,
    is_small_roman,
    is_table,
    is_unit,
    measure,
)
from bertwright.corpus.wikitext.wrapped_prose import LONGEST, paragraphs_of, prose_argument

_LONGEST, _LONGEST_NAME = 200, 32
"""The longest call that is not prose, and the longest name that is a word, in characters."""

_COMPUTED = ("#expr:", "#time:", "#timel:", "formatnum:")
"""The beginnings of calls of functions of MediaWiki that print numbers and dates."""
# Calls with many named arguments are citations and boxes.
_MOST_NAMED = 3
_LANGUAGE = re.compile(
    r"\s*(?:lang|language|langue|lingua|idioma|sprache|язык|мова)\s*=\s*[a-z]{2,3}(?:-[a-zA-Z]+)*\s*"
)
_NAMED = re.compile(r"\s*(?![1-9]\s*=)[^=\[\]<>{}\n]{1,40}=")
_POSITION = re.compile(r"\s*[1-9]\s*=")
_WORD = re.compile(r"\w")
_NO_TEXT = re.compile(
    r"(?:(?:https?:)?//\S*|[\w.-]+\.(?:com|org|net|info|[a-z]{2})(?:/\S*)?|[^/\n]+\.[A-Za-z0-9]{3,4}"
    r"|#[0-9A-Fa-f]{3,8})"
)
# A section of a page, or a title in another wiki or namespace, belongs to a "see also" line.
_TITLE = re.compile(r"[^#]*\w#\w.*|:.*")
# Two or three letters are the code of a language, a country or a currency, unless they are a Roman numeral.
_CODE = re.compile(r"[a-z]{2,3}|\d{1,3}|(?![IVXLCDM]+$)[A-Z]{2,3}")
_SHORT = 80
_REMARK = re.compile(r"[.!?।։](?:\s|$)|。")
_HAS_DIGIT = re.compile(r"\d")
# The date since when a text is disputed: a year and a month. A footnote has a year or a page, a source has a day.
_SINCE = re.compile(r"[^=]*=\s*(?:[^\W\d]{3,}\.? \d{4}|\d{4}\s*[-年/]\s*\d{1,2}\s*月?)\s*")
_LABEL = re.compile(r"\s*(?:lt|label|display)\s*=\s*(\S.*?)\s*")
# Language codes used in templates: ISO 639-1, and those of ISO 639-2 and -3 that are common on wikis.
_TWO_LETTERS = """
aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo
es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg
ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn
no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss st su sv sw
ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
"""
_THREE_LETTERS = """
afr akk alb als ang ara arb arc arm arz asm ast aze bak baq bar bel ben bod bos bre bul cat ceb ces che chi chu chv
ckb cmn cop cor cos cym cze dan deu dlm dsb dum egy ell eng enm epo est eus fao fas fij fin fil fra fre frk frm fro
frr fry fur gem geo ger gla gle glg glv gml gmh goh got grc gre grn gsw guj hak hat hau haw hbo heb hin hit hrv hsb
hun hye ibo ice ido ile ina ind isl ita jav jpn kal kan kat kaz khm kin kir kor kur lad lao lat lav lij lim lin lit
lmo ltg ltz lzh mac mal mao mar may mis mkd mlg mlt mon mri msa mul mya nah nan nap nav nds nep new nld nno nob non
nor nrf oci odt ofs ori osp oss osx ota pal pam pan peo per pli pol por pro prs pus que rom ron rum rus ryu sah san
scn sco sga sin sla slk slo slv sme smo sna snd som spa sqi srd srp sun swa swe syr szl tah tam tat tel tgk tgl tha
tib tir tlh ton tuk tur tvl uga uig ukr und urd uzb vec vep vie vls vol wel wln wol wuu xcl xho xno yid yor yue zha
zho zul zza
"""
_CODES = frozenset(_TWO_LETTERS.split()) | frozenset(_THREE_LETTERS.split())
_VARIANT = re.compile(r"[A-Za-z0-9]{2,8}(?:-[A-Za-z0-9]{2,8})*+")


def may_print(call: str) -> bool:
    """Whether a call, given the text between its braces, may print words; citations and boxes do not."""
    if "|" not in call:
        return len(call) <= _LONGEST_NAME or call.startswith(_COMPUTED)
    return len(call) <= LONGEST and call.count("=") <= _MOST_NAMED


def mark_call(name: str, values: Sequence[str], *, alone: bool = False) -> str:
    """The words that a call may print, between markers for `keep_words`; "" if it prints none.

    `alone`: nothing else is on its lines; then only prose is printed, as paragraphs.
    """
    key = " ".join(name.split())
    if key.startswith(_COMPUTED):
        return LOST
    if not key or key[0] in "#{" or ":" in key:
        return ""
    if not values:
        return "" if alone else _named(key)
    unnamed = [
        _POSITION.sub("", value) if "=" in value else value
        for value in values
        if "=" not in value or not _NAMED.match(value)
    ]
    if len(values) - len(unnamed) > _MOST_NAMED:
        return ""
    if alone:
        return paragraphs_of([keep_words(value).strip() for value in unnamed])
    # The call of a table of numbers, and a call that prints a number that a call within it computes.
    whole = "|".join(values)
    if is_table(key) or LOST in whole:
        return mark(NUMBER)
    if "\n" in whole:
        return ""
    size = len(whole) - len(values) + 1
    # Remove markers that the page itself contains; they would never be closed.
    given = [without_marks(value).strip() for value in unnamed]
    while given and not given[-1]:
        given.pop()
    if size <= _LONGEST and (short := _short(key, given, values)):
        return short
    if prose_argument(given):
        return mark(PROSE, without_marks(keep_words(unnamed[0])).strip())
    if size > _LONGEST or not any(map(_HAS_DIGIT.search, given)):
        return ""
    return mark(NUMBER if is_numeric(given) and "/" not in key else SOME_NUMBER)


def _short(key: str, given: Sequence[str], values: Sequence[str]) -> str:
    """The marked words of a call that has no prose."""
    tagged = any(map(_LANGUAGE.fullmatch, values)) or is_language(key.lower().rpartition("-")[2])
    sure = measure(key, given) or _link(given, values) or _with_language(given, tagged=tagged)
    if sure:
        return mark(SURE, sure)
    if given and is_unit(given[0]):
        return mark(AFTER_NUMBER, given[0])
    named = (value for value in values if _NAMED.match(value) and not _SINCE.fullmatch(value))
    pages = any(map(_HAS_DIGIT.search, named))  # the pages or the date of a footnote
    # Subpages of a template are its parts and data tables, which are called with a key.
    perhaps = "" if pages or "/" in key else count(key, given) or _alone(given)
    return mark(PERHAPS, perhaps) if perhaps else ""


@lru_cache(maxsize=4096)
def _named(key: str) -> str:
    """The name of a template that is called without arguments, where it is itself what the template prints."""
    if is_ordinal(key):
        return mark(PERHAPS, key)
    return mark(AFTER_NUMBER, key) if follows_number(key) or is_abbreviation(key) else ""


def _with_language(given: Sequence[str], *, tagged: bool) -> str:
    """The text after language codes, or the text of a call that is `tagged` with a language in another way.

    Examples are {{llang|de|…}}, {{k-de|…}}, {{el|…}} and {{term|…|lang=la}}.
    """
    texts = list(given)
    while texts and is_language(texts[0]) and (len(given) > 1 or not tagged):
        texts = texts[1:]
    text = texts[0] if texts and (tagged or len(texts) < len(given)) else ""
    return text if _is_text(text) else ""


def _link(given: Sequence[str], values: Sequence[str]) -> str:
    """The text shown for {{ill|text|de|Titel}}, a link to an article that exists only in other wikis."""
    if len(given) < 3 or len(given) % 2 == 0 or not all(map(is_language, given[1::2])):
        return ""
    if is_language(given[0]) or given[0].isdecimal() or not all(map(_is_text, given[::2])):
        return ""
    return next((label[1] for value in values if (label := _LABEL.fullmatch(value))), given[0])


def _alone(given: Sequence[str]) -> str:
    """A single argument, or the first of two texts; a name and a year would be a footnote."""
    if (
        not 1 <= len(given) <= 2
        or not all(map(_is_text, given))
        or (_CODE.fullmatch(given[0]) and (is_language(given[0]) or not is_small_roman(given[0])))
        or _TITLE.fullmatch(given[0])
        or any(map(_HAS_DIGIT.search, given[1:]))
    ):
        return ""
    if len(given[0]) > _SHORT or _REMARK.search(given[0]):
        return ""
    return given[0]


def _is_text(text: str) -> bool:
    return bool(_WORD.search(text)) and "\n" not in text and not _NO_TEXT.fullmatch(text)


def is_language(code: str) -> bool:
    """Whether `code` is a language code, possibly with a script or country ("sr", "deu", "zh-Hant", "gem-pro")."""
    base, hyphen, variant = code.partition("-")
    return base in _CODES and (not hyphen or _VARIANT.fullmatch(variant) is not None)
