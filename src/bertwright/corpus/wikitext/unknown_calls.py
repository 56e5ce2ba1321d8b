"""Calls of templates that neither the tables nor the dump define: which of their arguments are words of the sentence.

Only the form and the place of the call are known. Calls of five forms print their arguments on nearly every wiki, and
only these are kept: a text with its language code, a link's text with its title in another language, a number with its
unit, a single short argument, and two arguments of which the second is a remark. Footnotes, maintenance notices and
flags have the same forms, but other places. So the words that a call may print are put between markers, and keep_words
once their line is complete: a word of the sentence is separated from the word before it; a note is attached to the
text that it is about. Scripts without spaces do not show the difference, so there the text on both sides decides.
"""

import re
from collections.abc import Sequence

_REACH = 24
"""Characters of the line before and after a call that are examined."""
_LIST = "*#:;|!{="
_ITEM = 20
"""Fewest word characters, outside calls, of a list item that is prose."""
_WORD = re.compile(r"\w")
# Private-use characters, as in `regions`.
_SURE, _PERHAPS, _END = "\U0010fff0", "\U0010fff1", "\U0010fff2"
_MARKED = re.compile(f"([{_SURE}{_PERHAPS}])([^{_SURE}{_PERHAPS}{_END}]*+){_END}")
_MARKS = re.compile(f"[{_SURE}{_PERHAPS}{_END}]")

_APART = re.compile(
    r"""(?:[\s(\[{/–—-]
      | (?:^|[\s(\[])["'“”„«»‘’‹›]+
      | [（［｛〔【〈《「『、，]                    # full-width brackets and commas have their space within
      | (?:^|[\s("“«„])[^\W\d_]{1,6}['’]         # an article or preposition that has lost its vowel: l', dell', d’
      | (?:^|[\s(])(?:ו?[בהכלמש]|[وبلكف])         # Hebrew and Arabic ones, which are joined to their word
    )$""",
    re.VERBOSE,
)
_SENTENCE_ENDED = re.compile(r"[.!?;。！？।؟…]['\"”»’)\]]*\s*$")
_GOES_ON = re.compile(r"[\w「『（]")


def _mark_words(words: str, *, sure: bool) -> str:
    """Put the words that a call may print between markers for `keep_words`; `sure`: keep them anywhere in prose."""
    return f"{_SURE if sure else _PERHAPS}{words}{_END}"


def _without_marks(text: str) -> str:
    """`text` without the marker characters, which a page itself may contain."""
    return _MARKS.sub("", text)


def keep_words(text: str) -> str:
    """`text` with the marked words kept that are part of a sentence, and the others removed."""
    if _END not in text:
        return text
    return "\n".join(_line(line) if _END in line else line for line in text.split("\n"))


def _line(line: str) -> str:
    listed = line.lstrip()[:1] in _LIST
    besides = len(_WORD.findall(_MARKED.sub("", line)))
    kept: list[str] = []
    position = 0
    for call in _MARKED.finditer(line):
        kept.append(line[position : call.start()])
        position = call.end()
        if besides >= _ITEM if listed else besides:
            mark, words = call.groups()
            # Examine only the end of the text before: entire lines would make the cost quadratic in their calls.
            before, after = "".join(kept[-2:])[-_REACH:], _without_marks(line[position : position + _REACH])
            if mark == _SURE or (not listed and _in_sentence(before, words, after)):
                kept.append(words)
    kept.append(line[position:])
    return _without_marks("".join(kept))


def _in_sentence(before: str, words: str, after: str) -> bool:
    """Whether `words` belong to the sentence around them and are not a footnote of it."""
    plain = before.replace("'''", "").replace("''", "")
    if not plain.strip() or _SENTENCE_ENDED.search(plain):
        return False
    if _APART.search(plain):
        return True
    goes_on = _GOES_ON.match(after.replace("''", "").lstrip("'")) is not None
    # Particles are written in hiragana: the text after one is usually what it leads to, seldom a note.
    joined = _is_hiragana(plain[-1]) or (_is_ideograph(plain[-1]) and _is_one_character(words))
    return goes_on and joined


# Comparisons, because compiling a class of a regular expression with the ideographs takes three milliseconds.
def _is_hiragana(character: str) -> bool:
    return "ぁ" <= character <= "ゖ"


def _is_ideograph(character: str) -> bool:
    """Whether a character is an ideograph of the Basic Multilingual Plane or katakana."""
    return (
        "\u3400" <= character <= "\u9fff"
        or "\uf900" <= character <= "\ufaff"
        or "ァ" <= character <= "ヺ"
        or character in "々〆ー"
    )


def _is_one_character(words: str) -> bool:
    """Whether `words` are one character of Japanese or Chinese, which may have a variation selector.

    A single character, which a font may lack or which is highlighted, is part of a name or word.
    """
    if not 1 <= len(words) <= 2:
        return False
    first, selector = words[0], words[1:]
    selected = not selector or "\ufe00" <= selector <= "\ufe0f" or "\U000e0100" <= selector <= "\U000e01ef"
    return selected and (_is_hiragana(first) or _is_ideograph(first) or "\U00020000" <= first <= "\U0003ffff")


LONGEST = 200
"""The longest call that is considered, in characters."""

# Calls with many named arguments are citations and boxes.
_MOST_NAMED = 3
_LANGUAGE = re.compile(
    r"\s*(?:lang|language|langue|lingua|idioma|sprache|язык|мова)\s*=\s*[a-z]{2,3}(?:-[a-zA-Z]+)*\s*"
)
_NAMED = re.compile(r"\s*[^=\[\]<>{}\n]{1,40}=")
_NUMBER = re.compile(r"[-+−–±~≈]?\s*+\d[\d.,'’ \xa0\u202f⁄/]*+")
_BETWEEN = re.compile(r"to|and|or|by|[-–−x×±+]|to\(-\)|и|и́|a|e|y|et|und")
_UNIT = re.compile(
    "(?:[kcdmnµμ]?m|in|ft|yd|n?mi|ha|acres?|sq ?(?:mi|ft))[23²³]?|[dm]?[lL]|[km]?g|t|lbs?|oz|st|°?[CF]|K|s|min|h"
    "|km/h|m/s|mph|kn|kt|[kMG]?Wh?|hp|PS|k?[VNJ]|eV|[kMG]?Hz|[kh]?Pa|bar|[ксм]?м[23²³]?|га|к?г|т|л|км/ч"
)
# A prefix and a unit as two arguments; "m" is not a prefix here because it would mean metres.
_MULTIPLE, _MULTIPLIED = re.compile("[kMGTµμn]"), re.compile("Hz|Pa|Wh?|eV|[VANJBb]|bit|Bq|Ω|t")
_AMOUNT, _MONEY = re.compile(r"\d[\d., ]*+\w*"), re.compile(r"[A-Z]{3}")
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
    return len(call) <= LONGEST and "|" in call and "\n" not in call and call.count("=") <= _MOST_NAMED


def mark_call(name: str, values: Sequence[str]) -> str:
    """The words that a call may print, between markers for `keep_words`; "" if it prints none."""
    key = " ".join(name.split())
    if not key or key[0] in "#{" or ":" in key or not values:
        return ""
    # Remove markers that the page itself contains; they would never be closed.
    given = [_without_marks(value).strip() for value in values if not _NAMED.match(value)]
    if len(values) - len(given) > _MOST_NAMED:
        return ""
    while given and not given[-1]:
        given.pop()
    tagged = any(map(_LANGUAGE.fullmatch, values)) or is_language(key.lower().rpartition("-")[2])
    sure = _measure(key, given) or _link(given, values) or _with_language(given, tagged=tagged)
    if sure:
        return _mark_words(sure, sure=True)
    named = (value for value in values if _NAMED.match(value) and not _SINCE.fullmatch(value))
    pages = any(map(_HAS_DIGIT.search, named))  # the pages or the date of a footnote
    # Subpages of a template are its parts and data tables, which are called with a key.
    perhaps = "" if pages or "/" in key else _alone(given)
    return _mark_words(perhaps, sure=False) if perhaps else ""


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


def _measure(key: str, given: Sequence[str]) -> str:
    """A number, or two with a word between them, and a unit; {{km|70}} has the unit in its name."""
    value, rest = given[0].replace("&nbsp;", " ") if given else "", list(given[1:])
    if rest and _MONEY.fullmatch(rest[0]) and _AMOUNT.fullmatch(value):
        return f"{value} {rest[0]}"
    if not _NUMBER.fullmatch(value):
        return ""
    if len(rest) > 1 and _BETWEEN.fullmatch(rest[0]) and _NUMBER.fullmatch(rest[1]):
        value, rest = f"{value} {rest[0]} {rest[1]}", rest[2:]
    if len(rest) == 2 and _MULTIPLE.fullmatch(rest[0]) and _MULTIPLIED.fullmatch(rest[1]):
        return f"{value} {rest[0]}{rest[1]}"
    # As the first letter of any page's name, that of the unit may be a capital.
    named = key if _UNIT.fullmatch(key) else key[0].lower() + key[1:]
    in_name = bool(_UNIT.fullmatch(named) and len(named) > 1 and len(given) < 3)
    unit = named if in_name else rest[0] if rest else ""
    return f"{value} {unit}" if _UNIT.fullmatch(unit) else ""


def _alone(given: Sequence[str]) -> str:
    """A single argument, or the first of two texts; a name and a year would be a footnote."""
    if (
        not 1 <= len(given) <= 2
        or not all(map(_is_text, given))
        or _CODE.fullmatch(given[0])
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
