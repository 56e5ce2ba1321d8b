"""Forms of a pattern's field: what a template makes of a number or a date before it prints it ("{1:ordinal}")."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta

from bertwright.corpus.wikitext.locales import Locale
from bertwright.corpus.wikitext.polish import RAISED

Form = Callable[[Sequence[str], Locale], str | None]
"""From the values of a field, "" where the call lacks one, to its text; None if the values do not fit."""

_ISO_DATE = re.compile(r"(\d{1,4})-(\d{1,2})(?:-(\d{1,2}))?")
_ROMAN = tuple(
    zip(
        ["M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"],
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        strict=True,
    )
)
# Of a line of {{ppoem}}: its class, and what stands in the margins.
_MARKS_OF_VERSE = r"(?m)^:*+\{[^{}\n]*+\}|^[^<>\n]{0,12}<<|>>[^<>\n]{0,12}$|^:++"
_POWER = re.compile("[-−+]?[0-9]{1,4}n?|n")
# The codes of Template:Convert whose symbol is not the code itself.
_UNITS = {
    "C": "°C", "F": "°F", "R": "°R", "sqmi": "sq mi", "sqft": "sq ft", "sqin": "sq in", "sqyd": "sq yd",
    "cuft": "cu ft", "cuin": "cu in", "cuyd": "cu yd", "cumi": "cu mi", "kph": "km/h", "impgal": "imp gal",
    "usgal": "US gal", "USgal": "US gal", "acre": "acres", "mpgus": "mpg", "mpgimp": "mpg", "mpgUS": "mpg",
    "cuft/s": "cu ft/s", "cuft/min": "cu ft/min", "lbft": "lb⋅ft", "lb.ft": "lb⋅ft", "ftlbf": "ft⋅lbf", "Nm": "N⋅m",
    "km/hour": "km/h", "lb/sqin": "lb/sq in", "LT": "long tons", "ST": "short tons", "MT": "t", "long ton": "long tons",
    "short ton": "short tons", "tonne": "t",
}  # fmt: skip
_MULTIPLE = re.compile(r"e([0-9]{1,2})(\S.*)")
_POWER_OF_UNIT = re.compile(r"(?<=[A-Za-zµм])([23])(?![0-9])")


def _is_short_number(text: str) -> bool:
    """Whether a text is a number of up to four digits: `int` refuses very long ones, which no page should stop at."""
    return text.isdecimal() and len(text) < 5


def _number(values: Sequence[str], locale: Locale) -> str:
    return locale.number(values[0])


def _formatnum(values: Sequence[str], locale: Locale) -> str:
    return locale.formatnum(values[0])


def _date(values: Sequence[str], locale: Locale) -> str | None:
    """Year, month and day. A single value is a whole date: as ISO 8601 writes it, or in words, which stay."""
    given = [value for value in values if value]
    if len(given) > 1 or (len(values) > 1 and _is_short_number(given[0])):
        return locale.written_date(*_in_order((*values, "")[:3]))
    iso = _ISO_DATE.fullmatch(given[0])
    return (locale.written_date(iso[1], iso[2], iso[3] or "") if iso else None) or given[0]


def _in_order(parts: Sequence[str]) -> Sequence[str]:
    """A year, a month and a day, also if the wiki accepts them in the other order: a day has no three digits."""
    first, _, last = parts
    return parts[::-1] if last.isdecimal() and len(last) > 2 and len(first) < 3 else parts


def _julian(values: Sequence[str], locale: Locale) -> str | None:
    """A date of the Julian calendar, "8.4.1765", with that of the Gregorian one: "8 (19) April 1765"."""
    parts = values[0].split(".")
    if len(parts) != 3 or not all(map(_is_short_number, parts)):
        return values[0]
    day, month, year = map(int, parts)
    if not (1 <= month <= 12 and 1 <= day <= 31 and 300 <= year < 2100 and locale.months):
        return None
    # The days that the calendars differ by are counted from March, after the day that a century may lack.
    century = (year - (month < 3)) // 100
    new = date(year, month, 1) + timedelta(days=day - 1 + century - century // 4 - 2)
    old_month, new_month = locale.months[month - 1], locale.months[new.month - 1]
    if new.year > year:
        return f"{day} {old_month} {year} ({new.day} {new_month} {new.year})"
    if new.month != month:
        return f"{day} {old_month} ({new.day} {new_month}) {year}"
    return f"{day} ({new.day}) {old_month} {year}"


def _month(values: Sequence[str], locale: Locale) -> str | None:
    """A month's name as a date has it, for its number; other text as it is."""
    number = int(values[0]) if _is_short_number(values[0]) else 0
    return locale.months[number - 1] if locale.months and 1 <= number <= 12 else values[0]


def _ordinal(values: Sequence[str], _: Locale) -> str:
    """The ordinal of English."""
    text = values[0]
    if not text[-1:].isdecimal():
        return text
    teens = text[-2:-1] == "1"
    return text + ("th" if teens else {"1": "st", "2": "nd", "3": "rd"}.get(text[-1], "th"))


def _roman(values: Sequence[str], _: Locale) -> str:
    number = int(values[0]) if _is_short_number(values[0]) else 0
    if not 0 < number < 4000:
        return values[0]
    letters = []
    for letter, worth in _ROMAN:
        letters.append(letter * (number // worth))
        number %= worth
    return "".join(letters)


def _age(values: Sequence[str], _: Locale) -> str | None:
    """Full years from the first date (year, month, day) to the second; None if either lacks a number."""
    if len(values) != 6 or not all(map(_is_short_number, values)):
        return None
    numbers = [int(value) for start in (0, 3) for value in _in_order(values[start : start + 3])]
    return str(numbers[3] - numbers[0] - (numbers[4:] < numbers[1:3]))


def _two_digits(values: Sequence[str], _: Locale) -> str:
    return values[0].zfill(2)


def _day(values: Sequence[str], _: Locale) -> str | None:
    """The day of a month; None for text, such as a day with its month."""
    return values[0] if values[0].isdecimal() and len(values[0]) < 3 else None


def _raised(values: Sequence[str], _: Locale) -> str | None:
    """An exponent: "2" is "²", "1" nothing; None for text."""
    return ("" if values[0] == "1" else values[0].translate(RAISED)) if _POWER.fullmatch(values[0]) else None


def _unit(values: Sequence[str], _: Locale) -> str:
    """The symbol of a unit: "km2" is "km²", "C" is "°C", "e6km" is "×10⁶ km"."""
    power, unit = multiple.groups() if (multiple := _MULTIPLE.fullmatch(values[0])) else ("", values[0])
    symbol = _UNITS.get(unit) or _POWER_OF_UNIT.sub(lambda power: power[1].translate(RAISED), unit)
    return f"×10{power.translate(RAISED)} {symbol}" if power else symbol


def _lower(values: Sequence[str], _: Locale) -> str:
    return values[0].lower()


def _upper(values: Sequence[str], _: Locale) -> str:
    return values[0].upper()


def _language(values: Sequence[str], locale: Locale) -> str | None:
    """The name of a language from its code; None if no table names it."""
    return locale.languages.get(values[0])


def _initial(values: Sequence[str], locale: Locale) -> str | None:
    return values[0] + " " * values[0][-1:].isdigit()


def _verse(values: Sequence[str], locale: Locale) -> str | None:
    return re.sub(_MARKS_OF_VERSE, "", values[0])


FORMS: Mapping[str, Form] = {
    "number": _number, "formatnum": _formatnum, "date": _date, "month": _month, "ordinal": _ordinal, "roman": _roman,
    "age": _age, "day": _day, "00": _two_digits, "unit": _unit, "raised": _raised, "julian": _julian, "lower": _lower,
    "upper": _upper, "language": _language, "verse": _verse, "initial": _initial,
}  # fmt: skip
