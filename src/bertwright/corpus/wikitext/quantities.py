"""Numbers, units, centuries and eras in calls of templates that nothing explains, and calls whose number is lost.

A hole in the place of an era or a unit makes another statement of the sentence: "in 300 {{a. C.}}" would be AD, and
"{{M|12||km}}" without its unit is a number of something else. So a name that is itself an era, a unit or a century is
printed, and a number is printed with what it counts. Calls whose arguments are nothing but numbers print something that
only the template knows: a date in an unknown order, an age, an amount in today's money.
"""

import re
from collections.abc import Sequence

from bertwright.corpus.wikitext.polish import RAISED

_NUMBER = re.compile(r"[-+−–±~≈]?\s*+\d[\d.,'’ \xa0\u202f⁄/]*+")
_BETWEEN = re.compile(r"to|and|or|by|[-–−x×±+]|to\(-\)|и|и́|a|e|y|et|und")
_UNIT = re.compile(
    "(?:[kcdmnµμ]?m|in|ft|yd|n?mi|ha|acres?|sq ?(?:mi|ft))[23²³]?|[dm]?[lL]|[km]?g|t|lbs?|oz|st|°?[CF]|K|s|min|h"
    "|km/h|m/s|mph|kn|kt|[kMG]?Wh?|hp|PS|k?[VNJ]|eV|[kMG]?Hz|[kh]?Pa|bar|[ксм]?м[23²³]?|га|к?г|т|л|км/ч"
)
# A prefix and a unit as two arguments; "m" is not a prefix here because it would mean metres.
_MULTIPLE, _MULTIPLIED = re.compile("[kMGTµμn]"), re.compile("Hz|Pa|Wh?|eV|[VANJBb]|bit|Bq|Ω|t")
_LENGTH = re.compile("[kcdmµμ]?m|[ксм]?м")
_AMOUNT, _MONEY = re.compile(r"\d[\d., ]*+\w*"), re.compile(r"[A-Z]{3}")
# What is counted, in a word or two: {{nombre|173|stations}}. A capital letter begins a name.
_COUNTED = re.compile(r"[^\W\d_A-ZÀ-ÖØ-ÞΑ-ΩА-Я][^\W\d_]{2,}(?:[ '’.-][^\W\d_]+){0,2}\.?")
# A year or a larger number. A smaller one alone may be that of a note, a page, a width.
_LARGE = re.compile(r"\d{4}|[1-9]\d{0,2}(?:[., \xa0]\d{3})+|\d{5,12}")
_DAY, _MONTH, _YEAR = "0?[1-9]|[12][0-9]|3[01]", "0?[1-9]|1[0-2]", "1[0-9]{3}|20[0-9]{2}"
# In the order of the day; a date that begins with the year is mostly an argument of an age.
_DATE = re.compile(rf"(?:{_DAY})\|(?:{_MONTH})\|(?:{_YEAR})")
_DATE_IN_WORDS = re.compile(rf"(?:{_DAY})\|[^\W\d_]{{3,}}\.?\|(?:{_YEAR})|(?:{_YEAR})\|[^\W\d_]{{3,}}\.?\|(?:{_DAY})")
_ROMAN = re.compile(r"(?=[IVXL])(?:XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
# A name that is a century: {{XXe siècle}}, {{18e eeuw}}, {{XIIvet}}.
_CENTURY = re.compile(
    rf"{_ROMAN.pattern}[^\W\d_A-Z]{{0,4}}(?:[ -][^\W\d_]{{4,}})?|\d{{1,2}}\.?[^\W\d_]{{0,4}} [^\W\d_]{{4,}}"
)
_ORDINAL = re.compile(r"\d{1,4}[^\W\d_A-Z]{1,3}")
# An abbreviation with stops, "p. n. e.", or a sign of numbers, "n°", "§".
_ABBREVIATION = re.compile(r"(?:[^\W\d_]{1,4}\.[ \xa0-]?){1,4}(?:[^\W\d_]{1,4})?|[Nn][°º]|№|§+")
# Eras as CLDR abbreviates them (eraAbbr and eraNarrow), without stops and spaces; no codes of languages.
_ERA_LETTERS = """
ac dc aec ec bc bce ce ad avjc apjc vchr nchr vuz uz vc nc vgj gj fkr ekr fvt evt pne ne ie isz pkr ema maj ak pk ane
mö îhr dhr îen přnl předkr pokr predkr prednl prkr prnšt ponšt prme pmē mē tcn scn eaa jaa ekr jkr πχ μχ πκχ κχ
нэ донэ данэ не доне прне пне прхр слне бэ бз мэ մթ մթա ძვწ ახწ לפנהס לספירה قم قبلمیلاد قدم
"""
_ERAS = frozenset(_ERA_LETTERS.split())
_NOT_LETTERS = re.compile(r"[\W\d_]+")
# A key to a table of data: the codes of a country and a place.
_KEY, _CODES = re.compile(r"\d{5,}"), re.compile(r"[A-Z]{2,3}")
_TABLE = re.compile(r".* [A-Z]{2,3}-[A-Z0-9]{1,3}")
_DIGITS = re.compile(r"[-+−–]?\d[\d.,' \xa0/:-]*")


def measure(key: str, given: Sequence[str]) -> str:
    """A number, or two with a word between them, and a unit; {{km|70}} has the unit in its name."""
    value, rest = given[0].replace("&nbsp;", " ") if given else "", [each for each in given[1:] if each]
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
    if not _UNIT.fullmatch(unit):
        return ""
    if len(rest) > 2 and not in_name and _NUMBER.fullmatch(rest[1]) and _UNIT.fullmatch(rest[2]):
        return f"{value} {unit} {rest[1]} {rest[2]}"  # 6 ft 4 in
    power = rest[1].translate(RAISED) if rest[1:] and rest[1] in ("2", "3") and _LENGTH.fullmatch(unit) else ""
    return f"{value} {unit}{power}"


def count(key: str, given: Sequence[str]) -> str:
    """A number with the word that it counts, or with the abbreviation that is the template's name; a Roman number."""
    values = [each for each in given if each]
    if not values:
        return ""
    if len(values) == 1 and _ORDINAL.fullmatch(key):
        return f"{key} {values[0]}"
    if len(values) == 1 and _LARGE.fullmatch(values[0]):
        return values[0]
    if len(values) == 3 and _DATE.fullmatch("|".join(values)):
        return ".".join(values)
    if len(values) == 1 and _is_era(key) and (_DIGITS.fullmatch(values[0]) or _ROMAN.fullmatch(values[0])):
        return f"{values[0]} {key}"
    if len(values) == 1 and _ABBREVIATION.fullmatch(key) and _DIGITS.fullmatch(values[0]):
        return f"{key} {values[0]}"
    if len(values) == 2 and _NUMBER.fullmatch(values[0]) and _COUNTED.fullmatch(values[1]):
        return f"{values[0]} {values[1]}"
    # A letter in the second place may be an era, one in a later place only says how the number is written.
    is_roman = len(values[0]) > 0 and _ROMAN.fullmatch(values[0]) and not any(given[1:2])
    if len(values) == 3 and _DATE_IN_WORDS.fullmatch("|".join(values)):
        return " ".join(values)
    return values[0] if is_roman and all(len(each) == 1 for each in values[1:]) else ""


def is_ordinal(name: str) -> bool:
    """Whether the name of a template called without arguments is an ordinal number or a century."""
    return bool(_CENTURY.fullmatch(name) or _ORDINAL.fullmatch(name))


def is_abbreviation(name: str) -> bool:
    """Whether the name of a template called without arguments is an abbreviation with stops, or a sign of numbers."""
    return bool(_ABBREVIATION.fullmatch(name))


def follows_number(name: str) -> bool:
    """Whether the name of a template called without arguments is what stands after a number: an era or a unit."""
    return _is_era(name) or bool(_UNIT.fullmatch(name) and len(name) > 1)


def is_small_roman(text: str) -> bool:
    """Whether `text` is a Roman number of two or more small letters."""
    return text.islower() and len(text) > 1 and bool(_ROMAN.fullmatch(text.upper()))


def _is_era(name: str) -> bool:
    return _NOT_LETTERS.sub("", name).lower() in _ERAS


def is_unit(text: str) -> bool:
    """Whether `text` is a unit."""
    return bool(_UNIT.fullmatch(text))


def is_numeric(given: Sequence[str]) -> bool:
    """Whether the arguments are nothing but numbers, or codes and a long number: a key to a table of numbers."""
    values = [each for each in given if each]
    if values and all(map(_DIGITS.fullmatch, values)):
        return True
    others = [each for each in values if not _DIGITS.fullmatch(each)]
    return any(map(_KEY.fullmatch, values)) and all(map(_CODES.fullmatch, others))


def is_table(name: str) -> bool:
    """Whether the name of a template is that of a table of data, called with a key: "Population GER-BE"."""
    return _TABLE.fullmatch(name) is not None
